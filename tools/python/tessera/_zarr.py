# mypy: warn-unused-ignores=False
"""Views of everything that Tessera opens, for programs that read Zarr: zarr-python, xarray, dask."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import Any, Iterator, Optional, Union

from . import _tessera
from ._describe import Described
from ._errors import Error, InvalidArgument, Unsupported
from ._making import Path
from ._node import Node, open_node
from ._options import absolute
from ._types import Remote
from ._zarr_keys import NodeKeys

_Base: Any
try:
    from zarr.storage import Store as _Base  # type: ignore
except ImportError:  # zarr 3 has its stores elsewhere: see tessera.zarr
    _Base = MutableMapping


class ZarrView(_Base):  # type: ignore
    """Keys to bytes: anything that Tessera opens, as a read-only Zarr v2 store. See :func:`zarr_view`."""

    _readable = True
    _writeable = False
    _erasable = False
    _listable = True

    def __init__(self, node: Node):
        self._keys = NodeKeys(node, 2)

    def __reduce__(self) -> tuple[object, ...]:
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

    def __setitem__(self, key: str, value: object) -> None:
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
        return node.nbytes if isinstance(node, Described) else -1

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

    def __init__(self, path: Path, durability: str = "commit", storage_options: Remote = None):
        self._path: str = absolute(path)
        self._options = (durability, storage_options)
        self._handle = _tessera.KeyStoreHandle(
            self._path, _tessera.PlaceOptions(False, durability, storage_options=storage_options))

    @property
    def path(self) -> str:
        """The directory."""
        return self._path

    def __reduce__(self) -> tuple[object, ...]:
        return KeyStore, (self._path, *self._options)

    def __eq__(self, other: object) -> bool:
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

    def __setitem__(self, key: str, value: object) -> None:
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
        return f"<tessera.KeyStore {_tessera.without_secrets(self._path)!r}>"


def as_zarr(node: Any, zarr_format: Optional[int] = None) -> Any:
    """See :meth:`Array.as_zarr`."""
    import zarr  # type: ignore

    if int(zarr.__version__.partition(".")[0]) >= 3:
        from .zarr import Store

        return zarr.open(Store(node, zarr_format=zarr_format), mode="r" if node.mode == "r" else "r+")
    if zarr_format == 3:
        raise Unsupported(f"{node.path}: zarr-python {zarr.__version__} reads only Zarr v2")
    if node.mode != "r" and node.format == "v2" and os.path.isdir(node.path):
        return zarr.open(KeyStore(node.path), mode="r+")
    return zarr.open(ZarrView(node), mode="r")


def zarr_view(path: Union[Path, Node], *, storage_options: Remote = None) -> ZarrView:
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
    return ZarrView(path if isinstance(path, Node) else open_node(absolute(path), storage_options=storage_options))
