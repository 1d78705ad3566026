# mypy: warn-unused-ignores=False
"""Views of everything that Tessera opens, for programs that read Zarr v2: zarr-python 2, xarray, dask."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import MutableMapping
from typing import Any, Iterator, Optional

import numpy as np

from . import _tessera
from ._array import Array
from ._errors import Error, InvalidArgument, NotFound, Unsupported
from ._group import Group, Members

_Base: Any
try:
    from zarr.storage import Store as _Base  # type: ignore
except ImportError:
    _Base = MutableMapping

# Marks arrays whose fill was null, and became zeros in a format without null.
_NULL_FILL = "_TESSERA_FILL_VALUE"
# Plain files are cut into contiguous pieces of at most so many bytes.
_PIECE = 8 << 20


def _float_json(value: float) -> Any:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return float(value)


def fill_json(fill: Any, dtype: np.dtype[Any]) -> Any:
    """A fill as Zarr v2 spells it."""
    if fill is None:
        return None
    kind = dtype.kind
    if kind == "f":
        return _float_json(fill)
    if kind == "c":
        return [_float_json(fill.real), _float_json(fill.imag)]
    if kind in "SV":
        return base64.standard_b64encode(np.array(fill, dtype).tobytes()).decode("ascii")
    if kind in "Mm":
        return int(np.array(fill).view("i8"))
    if kind == "O":
        return fill if isinstance(fill, str) else base64.standard_b64encode(fill).decode("ascii")
    return np.array(fill, dtype)[()].item()


def _descr(dtype: np.dtype[Any]) -> Any:
    """A dtype as Zarr v2 spells it. Padding becomes fields of bytes, as in zarr-python."""
    if dtype.names is None:
        return dtype.str
    described = []
    for name in dtype.names:
        part = dtype.fields[name][0]  # type: ignore
        base, shape = (part.base, part.shape)
        described.append([name, _descr(base), list(shape)] if shape else [name, _descr(base)])
    return described


def _packed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype without padding and titles, in which Zarr v2 has it."""
    return np.dtype([(n, _packed(dtype.fields[n][0].base), dtype.fields[n][0].shape)  # type: ignore
                     for n in dtype.names]) if dtype.names is not None else dtype


# Codecs of numcodecs 0.11, for where it is not installed to be asked.
_KNOWN = {"adler32", "astype", "bitround", "blosc", "bz2", "categorize", "crc32", "delta", "fixedscaleoffset", "gzip",
          "lz4", "lzma", "packbits", "quantize", "shuffle", "vlen-bytes", "vlen-utf8", "zlib", "zstd"}


def _decodes(codec: dict[str, Any]) -> bool:
    """Whether who reads the view has this codec."""
    try:
        import numcodecs  # type: ignore
    except ImportError:
        return codec["id"] in _KNOWN
    try:
        numcodecs.get_codec(dict(codec))
    except (TypeError, ValueError):
        return False
    return True


class _ArrayKeys:
    """The keys of one array: its documents, and its chunks as they are stored where Zarr v2 can say them, else decoded."""

    def __init__(self, array: Array):
        self.array = array
        layout = array._handle.layout()
        self.order = layout["order"] if layout["chunks"] is None else "C"
        self.chunks = layout["chunks"] if layout["chunks"] is not None else self._pieces()
        self.grid = tuple(-(-n // c) for n, c in zip(array.shape, self.chunks))
        self.stored: Optional[dict[str, Any]] = _tessera.zarray(array._handle)
        if self.stored is not None:
            codecs = (self.stored["filters"] or []) + [self.stored["compressor"] or {"id": "blosc"}]
            if not all(map(_decodes, codecs)):
                self.stored = None
        # Of an absent chunk whose fill is null, zarr leaves whatever its memory held. And it makes a complex fill by
        # arithmetic: beside an infinity the other part becomes NaN.
        fill = self._fill()
        self.always = fill is None or (array.dtype.kind == "c" and not np.isfinite(fill))

    def _pieces(self) -> tuple[int, ...]:
        """Contiguous pieces of a plain file: whole along its fastest dimensions."""
        shape = self.array.shape
        chunks = [1] * len(shape)
        left = max(_PIECE // max(self.array.itemsize, 1), 1)
        axes = range(len(shape)) if self.order == "F" else reversed(range(len(shape)))
        for axis in axes:
            chunks[axis] = max(min(shape[axis], left), 1)
            left //= chunks[axis]
            if chunks[axis] < shape[axis]:
                break
        return tuple(chunks)

    def document(self) -> dict[str, Any]:
        """``.zarray``"""
        array = self.array
        dtype: Any = array.dtype
        if self.stored is not None:
            return {**self.stored, "shape": list(array.shape), "dimension_separator": ".",
                    "fill_value": fill_json(self._fill(), _packed(dtype))}
        filters = None
        if dtype == object:
            if not array._handle.is_variable:
                raise Unsupported(f"{array.path}: Zarr v2 cannot say what its elements are")
            text = array._handle.dtype_text == "string"
            filters = [{"id": "vlen-utf8" if text else "vlen-bytes"}]
            spelt: Any = "|O"
        else:
            spelt = _descr(dtype)
        return {"zarr_format": 2, "shape": list(array.shape), "chunks": list(self.chunks), "dtype": spelt,
                "compressor": None, "fill_value": fill_json(self._fill(), _packed(dtype)), "order": self.order,
                "filters": filters, "dimension_separator": "."}

    def _fill(self) -> Any:
        """xarray takes a fill for a missing value: one that only stands for null is none."""
        return None if self.array.attrs.get(_NULL_FILL) == "null" else self.array.fill_value

    def attributes(self) -> dict[str, Any]:
        """``.zattrs``, with the names of dimensions as xarray looks for them."""
        attributes = self.array.attrs.asdict()
        attributes.pop(_NULL_FILL, None)
        names = self.array.dims
        if names is not None and all(name is not None for name in names):
            attributes.setdefault("_ARRAY_DIMENSIONS", list(names))
        return attributes

    def index(self, name: str) -> Optional[tuple[int, ...]]:
        """The chunk that a name means."""
        if not self.array.shape:
            return () if name == "0" else None
        parts = name.split(".")
        if len(parts) != len(self.grid) or not all(part.isdecimal() and str(int(part)) == part for part in parts):
            return None
        index = tuple(map(int, parts))
        return index if all(i < n for i, n in zip(index, self.grid)) else None

    def chunk(self, index: tuple[int, ...]) -> Optional[bytes]:
        """A chunk; None for one that is not stored and reads as the fill."""
        if self.stored is None:
            return self._decoded(index)
        return _tessera.chunk_bytes(self.array._handle, index, self.always)

    def _decoded(self, index: tuple[int, ...]) -> bytes:
        """A chunk's elements; beyond the edge the fill."""
        array = self.array
        start = [i * c for i, c in zip(index, self.chunks)]
        stop = [min(s + c, n) for s, c, n in zip(start, self.chunks, array.shape)]
        inside: Any = (*(slice(0, b - a) for a, b in zip(start, stop)), ...)
        chunk = np.zeros(self.chunks, array.dtype, order=self.order)
        if any(b - a < c for a, b, c in zip(start, stop, self.chunks)) and array.fill_value is not None:
            chunk[...] = array.fill_value
        elif chunk.dtype == object:
            chunk[...] = "" if array._handle.dtype_text == "string" else b""
        array.read(tuple(slice(a, b) for a, b in zip(start, stop)), out=chunk[inside])
        if chunk.dtype == object:
            return _variable(chunk)
        packed = _packed(chunk.dtype)
        return chunk.astype(packed).tobytes(self.order) if packed != chunk.dtype else chunk.tobytes(self.order)


def _variable(chunk: np.ndarray[Any, Any]) -> bytes:
    """As numcodecs' vlen-utf8 and vlen-bytes: the number of elements, and of each its length and bytes."""
    parts = [np.uint32(chunk.size).astype("<u4").tobytes()]
    for element in chunk.reshape(-1):
        encoded = element.encode() if isinstance(element, str) else element
        parts += [np.uint32(len(encoded)).astype("<u4").tobytes(), encoded]
    return b"".join(parts)


class ZarrView(_Base):  # type: ignore
    """Keys to bytes: anything that Tessera opens, as a read-only Zarr v2 store. See :func:`zarr_view`."""

    _readable = True
    _writeable = False
    _erasable = False
    _listable = True

    def __init__(self, node: Any):
        self._node = node
        self._arrays: dict[str, _ArrayKeys] = {}

    def __reduce__(self) -> Any:
        return ZarrView, (self._node,)

    # ---- nodes

    def _child(self, path: str) -> Any:
        return self._node if path == "" else self._node[path]

    def _keys_of(self, path: str) -> Optional[_ArrayKeys]:
        """Of the array at a path; None where there is a group. Raises NotFound where there is nothing."""
        if path not in self._arrays:
            node = self._child(path) if path == "" or not isinstance(self._node, Array) else None
            if node is None:
                raise NotFound(path)
            if not isinstance(node, Array):
                return None
            self._arrays[path] = _ArrayKeys(node)
        return self._arrays[path]

    def _children(self, path: str) -> list[str]:
        try:
            node = self._child(path)
        except (NotFound, TypeError):
            return []
        return [] if isinstance(node, Array) else list(node)

    def _names(self, path: str) -> list[str]:
        """The documents at a path, without its chunks."""
        try:
            keys = self._keys_of(path)
        except Error as error:
            # What cannot be opened is there, and says so when its document is read.
            return [] if isinstance(error, NotFound) else [".zarray"]
        if keys is not None:
            return [".zarray", ".zattrs"]
        return [".zgroup", ".zattrs", ".zmetadata"] if path == "" else [".zgroup", ".zattrs"]

    def _walk(self, path: str = "") -> Iterator[str]:
        prefix = f"{path}/" if path else ""
        for name in self._names(path):
            yield prefix + name
        for child in self._children(path):
            yield from self._walk(prefix + child)

    # ---- a mapping

    def __getitem__(self, key: str) -> bytes:
        path, _, name = key.rpartition("/")
        try:
            keys = self._keys_of(path)
        except NotFound:
            raise KeyError(key) from None
        if name == ".zmetadata" and path == "" and keys is None:
            return self._consolidated()
        if keys is None:
            if name == ".zgroup":
                return b'{"zarr_format": 2}'
            if name == ".zattrs":
                node = self._child(path)
                return _encode(node.attrs.asdict() if isinstance(node, Group) else {})
        elif name == ".zarray":
            return _encode(keys.document())
        elif name == ".zattrs":
            return _encode(keys.attributes())
        elif (index := keys.index(name)) is not None:
            try:
                value = keys.chunk(index)
            except Error as error:
                # Not a KeyError, which zarr would take for a chunk that is absent.
                raise OSError(str(error)) from error
            if value is not None:
                return value
        raise KeyError(key)

    def _consolidated(self) -> bytes:
        documents = {}
        for key in self._walk():
            if not key.endswith(".zmetadata"):
                try:
                    documents[key] = json.loads(self[key])
                except Error:
                    continue  # named when it is asked for by itself
        return _encode({"zarr_consolidated_format": 1, "metadata": documents})

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        path, _, name = key.rpartition("/")
        if name in self._names(path):
            return True
        try:
            keys = self._keys_of(path)
        except Error:
            return False
        index = None if keys is None else keys.index(name)
        return keys is not None and index is not None and (keys.stored is None or keys.chunk(index) is not None)

    def __iter__(self) -> Iterator[str]:
        return self._walk()

    def __len__(self) -> int:
        return sum(1 for _ in self._walk())

    def __setitem__(self, key: str, value: Any) -> None:
        raise PermissionError("a view is only read; tessera.open(path, \"r+\") writes")

    def __delitem__(self, key: str) -> None:
        raise PermissionError("a view is only read; tessera.open(path, \"r+\") writes")

    def listdir(self, path: str = "") -> list[str]:
        """The names at a path; chunks are not among them."""
        path = (path or "").strip("/")
        return self._names(path) + self._children(path)

    def getsize(self, path: str = "") -> int:
        """The bytes of the elements of an array; -1 where that is not known."""
        try:
            keys = self._keys_of((path or "").strip("/"))
        except Error:
            return -1
        return -1 if keys is None else keys.array.nbytes

    def __repr__(self) -> str:
        return f"<tessera.zarr_view of {self._node!r}>"


class KeyStore(_Base):  # type: ignore
    """A directory as a writable store of zarr-python 2 and of ``xarray.Dataset.to_zarr``.

    Each value is replaced as a whole: a reader sees the old bytes or the new ones, even after a program was killed.
    Assigned values are on the disk. Programs that write to one chunk in this way do not wait for each other.

    Parameters
    ----------
    path : str or os.PathLike
        The directory; the first value creates it.
    durability : {"none", "commit", "each"}
        As in :func:`tessera.open`; with ``"none"`` the system decides when values reach the disk.

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

    def __init__(self, path: Any, durability: str = "commit"):
        self._path: str = os.path.abspath(os.fspath(path))
        self._durability = durability
        self._handle = _tessera.KeyStoreHandle(self._path, _tessera.PlaceOptions(False, durability))

    @property
    def path(self) -> str:
        """The directory."""
        return self._path

    def __reduce__(self) -> Any:
        return KeyStore, (self._path, self._durability)

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
            if folder != ".tessera":
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
        return sorted(names + [folder for folder in folders if folder != ".tessera"])

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


def _encode(document: Any) -> bytes:
    return json.dumps(document, indent=4, ensure_ascii=True).encode("ascii")


def zarr_view(path: Any) -> ZarrView:
    """Present anything that Tessera opens as a Zarr v2 store: ``zarr.open(tessera.zarr_view("old.zarr"))``.

    Takes arrays of every format, array files, files of several arrays and hierarchies of all these; read-only. Chunks
    are passed on as stored if Zarr v2 has their codecs (chunks within shards, too). Otherwise Tessera decodes them and
    passes them on uncompressed. Array files are passed on in pieces of at most 8 MiB.

    Parameters
    ----------
    path : path, Array, Group or Members

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

    return ZarrView(path if isinstance(path, (Array, Group, Members)) else open_path(os.fspath(path)))
