# mypy: warn-unused-ignores=False
"""Views of everything that Tessera opens, for programs that read Zarr: zarr-python, xarray, dask."""

from __future__ import annotations

import json
import os
import re
from collections.abc import MutableMapping
from typing import Any, Iterator, Optional

from . import _tessera
from ._array import Array
from ._errors import Error, InvalidArgument, NotFound, Unsupported
from ._group import Group, Members
from ._options import absolute

_Base: Any
try:
    from zarr.storage import Store as _Base  # type: ignore
except ImportError:  # zarr 3 has its stores elsewhere: see tessera.zarr
    _Base = MutableMapping

# What a chunk is called in the formats of Zarr: "0.1", "c/0/1", "c".
_CHUNK = re.compile(r"c([./]\d+)*|\d+([./]\d+)*")


def encode(document: Any) -> bytes:
    """A document of JSON as Zarr stores it."""
    return json.dumps(document, indent=4, ensure_ascii=True).encode("ascii")


class NodeKeys:
    """The keys of a node and of all below it, as a read-only hierarchy of Zarr v2 or v3."""

    def __init__(self, node: Any, zarr_format: int):
        self.node = node
        self.format = zarr_format
        self._arrays: dict[str, Any] = {}

    def _child(self, path: str) -> Any:
        return self.node if path == "" else self.node[path]

    def array(self, path: str) -> Any:
        """Of the array at a path; None where there is a group. Raises NotFound where there is nothing."""
        if path not in self._arrays:
            node = self._child(path) if path == "" or not isinstance(self.node, Array) else None
            if node is None:
                raise NotFound(path)
            if not isinstance(node, Array):
                return None
            self._arrays[path] = _tessera.ZarrKeys(node._handle, self.format)
        return self._arrays[path]

    def children(self, path: str) -> list[str]:
        """The names of the nodes below a group."""
        try:
            node = self._child(path)
        except (NotFound, TypeError):
            return []
        return [] if isinstance(node, Array) else list(node)

    def documents(self, path: str) -> list[str]:
        """The names of the documents at a path."""
        try:
            keys = self.array(path)
        except Error as error:
            # What cannot be opened is there, and says so when its document is read.
            return [] if isinstance(error, NotFound) else [".zarray" if self.format == 2 else "zarr.json"]
        if self.format == 3:
            return ["zarr.json"]
        if keys is not None:
            return [".zarray", ".zattrs"]
        return [".zgroup", ".zattrs", ".zmetadata"] if path == "" else [".zgroup", ".zattrs"]

    def walk(self, path: str = "", chunks: bool = False) -> Iterator[str]:
        """All keys from a path on; chunks only if they are asked for."""
        prefix = f"{path}/" if path else ""
        for name in self.documents(path):
            yield prefix + name
        if chunks:
            try:
                keys = self.array(path)
            except Error:
                keys = None
            if keys is not None:
                yield from (prefix + key for key in keys.stored())
        for child in self.children(path):
            yield from self.walk(prefix + child, chunks)

    def _document(self, path: str, name: str) -> Any:
        """None if there is no such document."""
        keys = self.array(path)
        if keys is not None:
            if name in (".zarray", "zarr.json"):
                return keys.document()
            return keys.attributes() if name == ".zattrs" else None
        node = self._child(path)
        attributes = node.attrs.asdict() if isinstance(node, Group) else {}
        if name == "zarr.json":
            return {"zarr_format": 3, "node_type": "group", "attributes": attributes}
        if name == ".zmetadata":
            return self._consolidated() if path == "" else None
        return {".zgroup": {"zarr_format": 2}, ".zattrs": attributes}.get(name)

    def _consolidated(self) -> Any:
        documents = {}
        for key in self.walk():
            path, _, name = key.rpartition("/")
            if name != ".zmetadata":
                try:
                    documents[key] = self._document(path, name)
                except Error:
                    continue  # named when it is asked for by itself
        return {"zarr_consolidated_format": 1, "metadata": documents}

    def chunk(self, key: str) -> Optional[tuple[Any, str]]:
        """The array that a key leads to, and the name of the chunk in it."""
        parts = key.split("/")
        for n in range(len(parts) - 1, -1, -1):
            name = "/".join(parts[n:])
            if not _CHUNK.fullmatch(name):
                if not _CHUNK.fullmatch(parts[n]):
                    return None
                continue
            try:
                keys = self.array("/".join(parts[:n]))
            except NotFound:
                continue
            if keys is not None and keys.is_chunk(name):
                return keys, name
        return None

    def get(self, key: str, range: Any = None) -> Optional[bytes]:
        """A value, or a part of it (start, stop); None if there is none."""
        path, _, name = key.rpartition("/")
        if name in ((".zarray", ".zgroup", ".zattrs", ".zmetadata") if self.format == 2 else ("zarr.json",)):
            try:
                document = self._document(path, name)
            except NotFound:
                return None
            value = None if document is None else encode(document)
            return value if value is None or range is None else value[range[0]:range[1]]
        found = self.chunk(key)
        if found is None:
            return None
        try:
            chunk: Optional[bytes] = found[0].get(found[1], range)
            return chunk
        except Error as error:
            # Not a KeyError, which zarr would take for a chunk that is absent.
            raise OSError(str(error)) from error

    def contains(self, key: str) -> bool:
        """Whether there is a value; decodes nothing."""
        path, _, name = key.rpartition("/")
        if name in self.documents(path):
            return True
        try:
            found = self.chunk(key)
        except Error:
            return False
        return found is not None and found[0].contains(found[1])


class ZarrView(_Base):  # type: ignore
    """Keys to bytes: anything that Tessera opens, as a read-only Zarr v2 store. See :func:`zarr_view`."""

    _readable = True
    _writeable = False
    _erasable = False
    _listable = True

    def __init__(self, node: Any):
        self._keys = NodeKeys(node, 2)

    def __reduce__(self) -> Any:
        return ZarrView, (self._keys.node,)

    def __getitem__(self, key: str) -> bytes:
        value = self._keys.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._keys.contains(key)

    def __iter__(self) -> Iterator[str]:
        return self._keys.walk()

    def __len__(self) -> int:
        return sum(1 for _ in self._keys.walk())

    def __setitem__(self, key: str, value: Any) -> None:
        raise PermissionError("a view is only read; tessera.open(path, \"r+\") writes")

    def __delitem__(self, key: str) -> None:
        raise PermissionError("a view is only read; tessera.open(path, \"r+\") writes")

    def listdir(self, path: str = "") -> list[str]:
        """The names at a path; chunks are not among them."""
        path = (path or "").strip("/")
        return self._keys.documents(path) + self._keys.children(path)

    def getsize(self, path: str = "") -> int:
        """The bytes of the elements of an array; -1 where that is not known."""
        try:
            node = self._keys._child((path or "").strip("/"))
        except (Error, TypeError):
            return -1
        return node.nbytes if isinstance(node, Array) else -1

    def __repr__(self) -> str:
        return f"<tessera.zarr_view of {self._keys.node!r}>"


class KeyStore(_Base):  # type: ignore
    """A directory, or a place such as ``s3://…``, as a writable store of zarr-python 2 and ``xarray.Dataset.to_zarr``.

    Each value is replaced as a whole: a reader sees the old bytes or the new ones, even after a program was killed.
    Assigned values are on the disk. Programs that write to one chunk in this way do not wait for each other.

    Parameters
    ----------
    path : str or os.PathLike
        The directory, which the first value creates, or the place.
    durability : {"none", "commit", "each"}
        As in :func:`tessera.open`; with ``"none"`` the system decides when values reach the disk.
    storage_options : dict, optional
        As in :func:`tessera.open`.

    Examples
    --------
    >>> store = tessera.KeyStore("keys")
    >>> store["a/b"] = b"value"
    >>> store["a/b"], list(store), store.listdir("a")
    (b'value', ['a/b'], ['b'])
    """

    _readable = True
    _writeable = True
    _erasable = True
    _listable = True

    def __init__(self, path: Any, durability: str = "commit", storage_options: Optional[dict[str, Any]] = None):
        self._path: str = absolute(path)
        self._options = (durability, storage_options)
        self._handle = _tessera.KeyStoreHandle(
            self._path, _tessera.PlaceOptions(False, durability, storage_options=storage_options))

    @property
    def path(self) -> str:
        """The directory."""
        return self._path

    def __reduce__(self) -> Any:
        return KeyStore, (self._path, *self._options)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, KeyStore) and other._path == self._path

    def __hash__(self) -> int:
        return hash(self._path)

    def __getitem__(self, key: str) -> bytes:
        try:
            value = self._handle.get(key)
        except InvalidArgument:
            value = None  # no key at all
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        self._handle.put(key, value)

    def __delitem__(self, key: str) -> None:
        if not self._handle.erase(key):
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        try:
            return isinstance(key, str) and self._handle.size(key) is not None
        except InvalidArgument:
            return False

    def _walk(self, prefix: str = "") -> Iterator[str]:
        names, folders = self._handle.list(prefix)
        below = f"{prefix}/" if prefix else ""
        for name in names:
            yield below + name
        for folder in folders:
            yield from self._walk(below + folder)

    def __iter__(self) -> Iterator[str]:
        return self._walk()

    def __len__(self) -> int:
        return sum(1 for _ in self._walk())

    def clear(self) -> None:
        """Remove everything."""
        self._handle.erase_below("")

    def listdir(self, path: str = "") -> list[str]:
        """The names directly below a path."""
        names, folders = self._handle.list((path or "").strip("/"))
        return sorted(names + folders)

    def rmdir(self, path: str = "") -> None:
        """Remove what is below a path."""
        self._handle.erase_below((path or "").strip("/"))

    def rename(self, src_path: str, dst_path: str) -> None:
        """Move what is below a path to another one, where nothing may be."""
        self._handle.move(src_path.strip("/"), dst_path.strip("/"))

    def getsize(self, path: str = "") -> int:
        """The bytes of a value, or of those directly below a path."""
        path = (path or "").strip("/")
        size = self._handle.size(path) if path else None
        if size is not None:
            return size
        below = f"{path}/" if path else ""
        return sum(self._handle.size(below + name) or 0 for name in self._handle.list(path)[0])

    def __repr__(self) -> str:
        return f"<tessera.KeyStore {self._path!r}>"


def as_zarr(node: Any, zarr_format: Optional[int] = None) -> Any:
    """See :meth:`Array.as_zarr`."""
    import zarr  # type: ignore

    if int(zarr.__version__.partition(".")[0]) >= 3:
        from .zarr import Store

        return zarr.open(Store(node, zarr_format=zarr_format), mode="r" if getattr(node, "mode", "r") == "r" else "r+")
    if zarr_format == 3:
        raise Unsupported(f"{node.path}: zarr-python {zarr.__version__} reads only Zarr v2")
    if getattr(node, "mode", "r") != "r" and node.format == "v2" and os.path.isdir(node.path):
        return zarr.open(KeyStore(node.path), mode="r+")
    return zarr.open(ZarrView(node), mode="r")


def zarr_view(path: Any, *, storage_options: Optional[dict[str, Any]] = None) -> ZarrView:
    """Present anything that Tessera opens as a Zarr v2 store: ``zarr.open(tessera.zarr_view("old.zarr"))``.

    Takes arrays of every format, array files, files of several arrays and hierarchies of all these; read-only. Chunks
    are passed on as stored if Zarr v2 has their codecs (chunks within shards, too). Otherwise Tessera decodes them and
    passes them on uncompressed. Array files are passed on in pieces of at most 8 MiB.

    Parameters
    ----------
    path : path, Array, Group or Members
    storage_options : dict, optional
        As in :func:`open`.

    Returns
    -------
    ZarrView
        A ``zarr.storage.Store`` if zarr-python 2 is installed, and in any case a mapping of keys to bytes.

    Examples
    --------
    >>> tessera.save("ramp.zarr", np.arange(6).reshape(2, 3), chunks=(1, 3), format="v3", codec="none")
    >>> view = tessera.zarr_view("ramp.zarr")
    >>> sorted(view), np.frombuffer(view["1.0"], "i8")
    (['.zarray', '.zattrs'], array([3, 4, 5]))
    """
    from . import open as open_path

    opened = isinstance(path, (Array, Group, Members))
    return ZarrView(path if opened else open_path(os.fspath(path), storage_options=storage_options))
