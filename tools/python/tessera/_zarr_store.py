# mypy: ignore-errors
"""The class behind tessera.zarr.Store."""

from __future__ import annotations

import asyncio
import os
from typing import AsyncIterator, Iterable, Iterator, Optional, Union

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.abc.store import Store as _Base
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from . import _tessera
from ._errors import InvalidArgument, NotFound, Unsupported
from ._node import Node, open_node
from ._options import absolute
from ._types import Document
from ._zarr_keys import NodeKeys, Part

# Formats of Zarr that zarr-python 3 reads and writes by itself.
_OWN = ("v2", "v3")


def _range(request: Optional[ByteRequest]) -> Optional[Part]:
    """As the library takes it: (start, stop), from the end if start is negative."""
    if request is None:
        return None
    if isinstance(request, RangeByteRequest):
        return request.start, request.end
    if isinstance(request, OffsetByteRequest):
        return request.offset, None
    if isinstance(request, SuffixByteRequest):
        return (-request.suffix, None) if request.suffix else (0, 0)
    raise ValueError(f"Unexpected byte_range, got {request}.")


def _holds_keys(folder: str) -> bool:
    """Whether there is a file anywhere below a folder."""
    with os.scandir(folder) as entries:
        return any(_holds_keys(entry.path) if entry.is_dir() else True for entry in entries if entry.name != ".tessera")


def _all_own(node: Node) -> bool:
    """Whether zarr-python itself reads all arrays at and below a node."""
    if isinstance(node._handle, _tessera.GroupHandle) and node.format is None:
        return all(_all_own(child) for child in node.values())
    return getattr(node, "format", None) in _OWN


class _Files:
    """The keys of a directory, as they are."""

    def __init__(self, path: str, durability: str, locks: bool, read_only: bool):
        self._path = path
        options = _tessera.PlaceOptions(read_only, durability, locks)
        self._handle = _tessera.KeyStoreHandle(path, options)

    def get(self, key: str, range: Optional[Part]) -> Optional[bytes]:
        try:
            return self._handle.get(key, range)
        except (InvalidArgument, IsADirectoryError):
            return None  # no key at all

    def size(self, key: str) -> Optional[int]:
        try:
            return self._handle.size(key)
        except InvalidArgument:
            return None

    def contains(self, key: str) -> bool:
        return self.size(key) is not None

    def put(self, key: str, value: object) -> None:
        self._handle.put(key, value)

    def put_new(self, key: str, value: object) -> None:
        self._handle.put_new(key, value)

    def erase(self, key: str) -> None:
        try:
            self._handle.erase(key)
        except InvalidArgument:
            pass  # no key at all

    def erase_below(self, path: str) -> None:
        self._handle.erase_below(path)

    def list_dir(self, path: str) -> list[str]:
        names, folders = self._handle.list(path)
        # zarr's stores have no folders without keys in them, which deleted chunks leave.
        return names + [folder for folder in folders if _holds_keys(os.path.join(self._path, path, folder))]

    def walk(self, path: str) -> Iterator[str]:
        names, folders = self._handle.list(path)
        below = f"{path}/" if path else ""
        yield from (below + name for name in names)
        for folder in folders:
            yield from self.walk(below + folder)


class _View:
    """The keys of anything else, as Zarr shows it."""

    def __init__(self, node: Node, zarr_format: int):
        self.keys = NodeKeys(node, zarr_format)
        self.get = self.keys.get
        self.contains = self.keys.contains

    def size(self, key: str) -> Optional[int]:
        value = self.keys.get(key)
        return None if value is None else len(value)

    def list_dir(self, path: str) -> list[str]:
        names = self.keys.documents(path) + self.keys.children(path)
        if names:
            try:
                keys = self.keys.array(path)
            except Exception:  # its document says what is wrong
                keys = None
            chunks = keys.stored() if keys is not None else []
            return names + list(dict.fromkeys(chunk.partition("/")[0] for chunk in chunks))
        return list(dict.fromkeys(key[len(path) + 1:].partition("/")[0] for key in self.walk(path)))

    def walk(self, path: str) -> Iterator[str]:
        try:
            self.keys.array(path)
        except NotFound:  # within the chunks of an array
            above = path.rpartition("/")[0]
            if path:
                yield from (key for key in self.walk(above) if key.startswith(path + "/"))
            return
        yield from self.keys.walk(path, True)


class Store(_Base):
    """Anything that Tessera opens, as a store of zarr-python 3: ``zarr.open(tessera.zarr.Store("dem.zarr"))``.

    A directory of Zarr v2 or v3 is shown as it is, and can be written: each key is replaced as a whole. Everything else
    (``__zmeta__``, v1, zip archives, ``.npy``, ``file.npz::member``, ...) is read-only, and is shown as Zarr v3 without
    a copy; chunks are passed on as they are stored where the format has their codecs. A place where nothing is yet
    becomes a directory at the first write.

    All threads and event loops may use it, and it may be pickled.

    Parameters
    ----------
    path : path, Array, Group or Members
    read_only : bool, optional
        By default whatever cannot be written is read-only, and so is an array or group that was opened for reading.
    zarr_format : {2, 3}, optional
        The format in which others are shown; 3 by default, and 2 for what is Zarr v2 inside an archive.
    durability : {"none", "commit", "each"}
        As in :func:`tessera.open`.
    locks : bool
        As in :func:`tessera.open`; of the codec pipeline's writes.

    Examples
    --------
    >>> np.save("plain.npy", np.arange(6).reshape(2, 3))
    >>> zarr.open(tessera.zarr.Store("plain.npy"), mode="r")[1, :].tolist()
    [3, 4, 5]
    """

    supports_listing = True

    def __init__(self, path: Union[str, "os.PathLike[str]", Node], *, read_only: Optional[bool] = None, zarr_format: Optional[int] = None,
                 durability: str = "commit", locks: bool = True):
        if zarr_format not in (None, 2, 3):
            raise InvalidArgument(f"zarr_format is 2 or 3, not {zarr_format!r}")
        node = path if isinstance(path, Node) else None
        place = node.path if node is not None else os.fspath(path)
        if os.path.exists(place) or "::" not in place:
            place = absolute(place)
        if node is not None and read_only is None and node.mode == "r":
            read_only = True
        self._options = (read_only, zarr_format, durability, locks)
        shown = self._shown(node, place, read_only, zarr_format)
        if shown is not None and read_only is False:
            raise Unsupported(f"{place}: only directories of Zarr v2 and v3 can be written through a store; "
                              "tessera.convert() makes one")
        super().__init__(read_only=shown is not None or bool(read_only))
        self._path: str = place
        self._node = node
        self._keys: Union[_View, _Files] = shown or _Files(place, durability, locks, self._read_only)

    @staticmethod
    def _shown(node: Optional[Node], place: str, read_only: Optional[bool], zarr_format: Optional[int]) -> Optional[_View]:
        """The view; None for a directory that is shown as it is."""
        if not os.path.lexists(place) and node is None and "::" not in place and ":" not in place:
            return None
        if node is None:
            try:
                node = open_node(absolute(place))
            except NotFound:
                if not os.path.isdir(place):
                    raise
                return None  # of folders and keys, or empty
        own = getattr(node, "format", None)
        if os.path.isdir(place):
            if own in _OWN and zarr_format in (None, int(own[1])):
                return None
            # A plain folder is shown as it is, unless that would hide something.
            if own is None and isinstance(node._handle, _tessera.GroupHandle) and (read_only is False or _all_own(node)):
                return None
        return _View(node, zarr_format or (2 if own == "v2" else 3))

    # ---- what it is

    @property
    def path(self) -> str:
        """The path that is shown."""
        return self._path

    @property
    def supports_writes(self) -> bool:
        """Whether it is a directory that is shown as it is."""
        return isinstance(self._keys, _Files)

    # zarr-python 3.0, Debian 13's, wants these two; later ones do not know them.

    @property
    def supports_partial_writes(self) -> bool:
        """Never: a value is set as a whole."""
        return False

    async def set_partial_values(self, key_start_values: Iterable[tuple[str, int, bytes]]) -> None:
        """Not there: a value is set as a whole."""
        raise NotImplementedError("a value is set as a whole")

    @property
    def supports_deletes(self) -> bool:
        """As supports_writes."""
        return isinstance(self._keys, _Files)

    def with_read_only(self, read_only: bool = False) -> "Store":
        """The same place, for reading only or for writing too."""
        _, zarr_format, durability, locks = self._options
        if not self.supports_writes and not read_only:
            raise Unsupported(f"{_tessera.without_secrets(self._path)}: is shown as Zarr, and cannot be written")
        made = type(self).__new__(type(self))
        _Base.__init__(made, read_only=read_only)
        made._options = (read_only, zarr_format, durability, locks)
        made._path, made._node = self._path, self._node
        made._keys = _Files(self._path, durability, locks, read_only) if self.supports_writes else self._keys
        return made

    def __getstate__(self) -> Document:
        state = self.__dict__.copy()
        del state["_keys"]
        return {**state, "_view": None if self.supports_writes else (self._keys.keys.node, self._keys.keys.format)}

    def __setstate__(self, state: Document) -> None:
        view = state.pop("_view")
        self.__dict__.update(state)
        _, _, durability, locks = self._options
        self._keys = _Files(self._path, durability, locks, self._read_only) if view is None else _View(*view)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        return self._path, self._read_only, None if self.supports_writes else self._keys.keys.format

    def __str__(self) -> str:
        return f"tessera://{_tessera.without_secrets(self._path)}"

    def __repr__(self) -> str:
        return f"tessera.zarr.Store({_tessera.without_secrets(self._path)!r})"

    # ---- values

    def get_sync(self, key: str, *, prototype: Optional[BufferPrototype] = None,
                 byte_range: Optional[ByteRequest] = None) -> Optional[Buffer]:
        """A value or a part of it; None if there is none."""
        value = self._keys.get(key, _range(byte_range))
        return None if value is None else (prototype or default_buffer_prototype()).buffer.from_bytes(value)

    def set_sync(self, key: str, value: Buffer) -> None:
        """Set a value as a whole."""
        self._check_writable()
        if not isinstance(value, Buffer):
            raise TypeError(f"tessera.zarr.Store.set(): `value` must be a Buffer instance, not {type(value)}")
        self._keys.put(key, value.as_numpy_array())

    def delete_sync(self, key: str) -> None:
        """Remove a value, if there is one."""
        self._check_writable()
        self._keys.erase(key)

    async def get(self, key: str, prototype: Optional[BufferPrototype] = None,
                  byte_range: Optional[ByteRequest] = None) -> Optional[Buffer]:
        """A value or a part of it; None if there is none."""
        _range(byte_range)
        return await asyncio.to_thread(self.get_sync, key, prototype=prototype, byte_range=byte_range)

    async def get_partial_values(self, prototype: BufferPrototype,
                                 key_ranges: Iterable[tuple[str, Optional[ByteRequest]]]) -> list[Optional[Buffer]]:
        """Many parts of values."""
        return list(await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges)))

    async def exists(self, key: str) -> bool:
        """Whether there is a value."""
        return await asyncio.to_thread(self._keys.contains, key)

    async def getsize(self, key: str) -> int:
        """The bytes of a value."""
        size = await asyncio.to_thread(self._keys.size, key)
        if size is None:
            raise FileNotFoundError(key)
        return size

    async def set(self, key: str, value: Buffer) -> None:
        """Set a value as a whole: readers see the old one or the new one."""
        await asyncio.to_thread(self.set_sync, key, value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Set a value unless there is one; of several processes one succeeds."""
        self._check_writable()
        await asyncio.to_thread(self._keys.put_new, key, value.as_numpy_array())

    async def delete(self, key: str) -> None:
        """Remove a value, if there is one."""
        await asyncio.to_thread(self.delete_sync, key)

    async def delete_dir(self, prefix: str) -> None:
        """Remove everything below a path."""
        self._check_writable()
        await asyncio.to_thread(self._keys.erase_below, prefix.strip("/"))

    # ---- listing

    async def list(self) -> AsyncIterator[str]:
        """All keys."""
        for key in await asyncio.to_thread(lambda: [*self._keys.walk("")]):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """All keys that begin so."""
        prefix = prefix.lstrip("/")
        folder = prefix.rpartition("/")[0]
        for key in await asyncio.to_thread(lambda: [*self._keys.walk(folder)]):
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """The names directly below a path."""
        for name in await asyncio.to_thread(self._keys.list_dir, prefix.strip("/")):
            yield name
