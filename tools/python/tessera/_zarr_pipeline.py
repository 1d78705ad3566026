# mypy: ignore-errors
"""The class behind tessera.zarr.CodecPipeline.

A batch of zarr (one item for each chunk) that slices and integers made becomes one selection again, which the library
reads or writes as for tessera.Array. Values of stores that only Python reaches go through a store in memory. What the
library lacks goes to zarr's own pipeline.
"""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from typing import TYPE_CHECKING, Callable, Iterable, Iterator, Optional, Union

import numpy as np
from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.codecs._v2 import V2Codec
from zarr.core.buffer import Buffer, default_buffer_prototype
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.core.common import concurrent_map
from zarr.core.config import config
from zarr.storage import LocalStore, StorePath

from . import _tessera
from ._errors import Error
from ._types import Values
from ._zarr_store import Store, _Files

# Whichever of the two this zarr depends on.
try:
    from google_crc32c import value as crc32c
except ImportError:
    from crc32c import crc32c

if TYPE_CHECKING:
    from zarr.abc.codec import Codec
    from zarr.abc.store import ByteGetter, ByteRequest
    from zarr.abc.store import Store as ZarrStore
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import NDBuffer
    from zarr.core.indexing import SelectorTuple
    from zarr.core.metadata import ArrayV2Metadata, ArrayV3Metadata

    Metadata = Union[ArrayV2Metadata, ArrayV3Metadata]
    # Of a chunk: its key, how it is encoded, the parts of it and of the whole that are meant, and whether that is all of it.
    Item = tuple[StorePath, ArraySpec, SelectorTuple, SelectorTuple, bool]

# Smaller work is done in the event loop, where it is over before another thread had begun.
_BRIEF = 1 << 20
_NUMBER = re.compile(r"\d+")
# By number of threads.
_WORK: dict[int, _tessera.WorkOptions] = {}
# Decoded bytes that are held at once beside the result.
_HELD = 256 << 20


def _chunk_parts(metadata: Metadata) -> Optional[int]:
    """The parts of a chunk's key; None if the library does not know how chunks are named."""
    rank = len(metadata.shape)
    if metadata.zarr_format == 2:
        return max(rank, 1) if metadata.dimension_separator == "/" else 1
    encoding = metadata.chunk_key_encoding
    if encoding.name not in ("default", "v2"):
        return None
    if encoding.separator != "/":
        return 1
    return rank + 1 if encoding.name == "default" else max(rank, 1)


def _documents(metadata: Metadata, batch: Optional["_Batch"] = None) -> tuple[str, bytes]:
    """The name of an array's metadata document, and the document; with a shape of whole chunks that holds a batch.

    zarr resizes arrays without telling their pipeline, and keeps what lies beyond the edge in a chunk.
    """
    documents = metadata.to_buffer_dict(default_buffer_prototype())
    name = ".zarray" if metadata.zarr_format == 2 else "zarr.json"
    document = documents[name].to_bytes()
    if batch is None or not metadata.shape:
        return name, document
    indices = [[int(n) for n in _NUMBER.findall(item[0].path[batch.prefix:])] for item in batch.items]
    shape = [max(-(-length // chunk), max(axis) + 1) * chunk
             for length, chunk, axis in zip(metadata.shape, batch.items[0][1].shape, zip(*indices))]
    return name, json.dumps({**json.loads(document), "shape": shape}).encode()


# Codecs that wrap where zarr's own raise.
_STRICTER = ("scale_offset", "cast_value")


def _codecs(metadata: Metadata) -> Iterator[Codec]:
    """The codecs of format 3, those within shards too."""
    rest = list(getattr(metadata, "codecs", ()))
    while rest:
        codec = rest.pop()
        yield codec
        rest += getattr(codec, "codecs", ())


def _knows(metadata: Metadata) -> bool:
    """Whether the library does with the array's elements what zarr does: objects are only str and bytes.

    Where chunks differ in length, a batch does not tell where they begin.
    """
    if metadata.zarr_format == 3:
        regular = hasattr(metadata.chunk_grid, "chunk_shape")
        return regular and not any(codec.to_dict().get("name") in _STRICTER for codec in _codecs(metadata))
    if metadata.dtype.to_native_dtype().kind != "O":
        return True
    return any(getattr(one, "codec_id", "") in ("vlen-utf8", "vlen-bytes") for one in metadata.filters or ())


def _own_order(metadata: Metadata) -> bool:
    """Whether somebody chose the order of the chunks within shards. Morton order, the default, is no choice."""
    return any(getattr(codec, "subchunk_write_order", "") == "colexicographic" for codec in _codecs(metadata))


def _sharded(metadata: Metadata) -> bool:
    return any(type(codec).__name__ == "ShardingCodec" for codec in getattr(metadata, "codecs", ()))


def _folder(store: ZarrStore) -> Optional[tuple[str, tuple[str, bool]]]:
    """The folder of a local store, and its durability and locks; None for any other store."""
    if type(store) is LocalStore:
        asked = config.get("codec_pipeline")
        return str(store.root), (asked.get("durability", "none"), asked.get("locks", True))
    if type(store) is Store and isinstance(store._keys, _Files):
        return store.path, store._options[2:]
    return None


class _ShardIndex:
    """Where the chunks of shards lie in them, for shards whose bytes are only the chunks and a plain index."""

    _EMPTY = np.uint64(2**64 - 1)

    def __init__(self, metadata: Metadata):
        codecs = json.loads(_documents(metadata)[1])["codecs"]
        about = codecs[0]["configuration"] if len(codecs) == 1 else {}
        little, checksum = {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}
        if about.get("index_codecs") not in ([little], [little, checksum]):
            raise _Unknown
        self.first = about.get("index_location") == "start"
        self.chunk, self.checked = about["chunk_shape"], checksum in about["index_codecs"]

    def size(self, shape: tuple[int, ...]) -> int:
        return 16 * int(np.prod([n // c for n, c in zip(shape, self.chunk)])) + 4 * self.checked

    def request(self, size: int) -> ByteRequest:
        return RangeByteRequest(0, size) if self.first else SuffixByteRequest(size)

    def wanted(self, selection: SelectorTuple, shape: tuple[int, ...]) -> Optional[Values]:
        """The numbers of the chunks that a selection of a shard touches; None for all."""
        parts = selection if isinstance(selection, tuple) else (selection,)
        grid = [n // c for n, c in zip(shape, self.chunk)]
        axes = []
        for part, length, chunk in zip(parts, shape, self.chunk):
            if isinstance(part, slice):
                picked = range(*part.indices(length))
                near = bool(picked) and 0 < picked.step <= chunk  # no chunk between is left out
                axes.append(np.arange(picked[0] // chunk, picked[-1] // chunk + 1) if near else np.asarray(picked, "i8") // chunk)
            else:
                axes.append(np.asarray(part) // chunk)
        if len(axes) != len(grid):
            raise _Unknown
        points = all(axis.ndim == 1 and not isinstance(part, slice) for axis, part in zip(axes, parts))
        indices = axes if points else np.ix_(*(np.unique(axis) for axis in axes))
        found = np.unique(np.ravel_multi_index(tuple(np.broadcast_arrays(*indices)), grid))
        return None if len(found) == np.prod(grid) else found

    def places(self, index: Values, wanted: Values) -> Values:
        """(offset, length) of the wanted chunks, from a shard's index."""
        data = bytes(index)
        if self.checked and crc32c(data[:-4]) != int.from_bytes(data[-4:], "little"):
            raise _Unknown  # zarr's own pipeline says what is wrong
        return np.frombuffer(data, "<u8", len(data) // 16 * 2).reshape(-1, 2)[wanted]

    def packed(self, size: int, wanted: Values, chunks: list[Optional[bytes]]) -> bytes:
        """A shard of nothing but the wanted chunks; None stands for an absent one."""
        table = np.full((size // 16, 2), self._EMPTY, "<u8")
        at = size if self.first else 0
        for number, chunk in zip(wanted, chunks):
            if chunk is not None:
                table[number] = at, len(chunk)
                at += len(chunk)
        index = table.tobytes()
        index += crc32c(index).to_bytes(4, "little") if self.checked else b""
        data = b"".join(chunk for chunk in chunks if chunk is not None)
        return index + data if self.first else data + index


async def _ranges(getter: ByteGetter, spec: ArraySpec, ranges: list[RangeByteRequest]) -> list[Optional[Buffer]]:
    """Ranges of one value, in order; None for what is gone. Stores of zarr 3.4 join those that lie close together."""
    if not hasattr(spec.config, "sharding_coalesce_max_bytes"):
        requests = [(spec.prototype, one) for one in ranges]
        return await concurrent_map(requests, getter.get, config.get("async.concurrency"))
    values = [None] * len(ranges)
    if not ranges:
        return values
    limits = {"max_gap_bytes": spec.config.sharding_coalesce_max_gap_bytes,
              "max_coalesced_bytes": spec.config.sharding_coalesce_max_bytes}
    try:
        async for group in getter.store.get_ranges(getter.path, ranges, prototype=spec.prototype, **limits):
            for number, value in group:
                values[number] = value
    except BaseExceptionGroup as failures:
        _, others = failures.split(FileNotFoundError)
        if others is not None:
            raise others from None
    return values


class _Unknown(Exception):
    """What zarr's own pipeline has to do."""


class _Batch:
    """The items of a batch, and one side of it: the result, or the values."""

    def __init__(self, items: list[Item], prefix: int, elements: Values, drop_axes: tuple[int, ...]):
        self.items, self.prefix, self.elements, self.drop_axes = items, prefix, elements, drop_axes
        self.scalar = elements.ndim == 0
        workers = config.get("threading.max_workers", None) or 0
        if workers not in _WORK:
            _WORK[workers] = _tessera.WorkOptions(workers, 0, None)
        self.work = _WORK[workers]

    def parts(self, handle: _tessera.ArrayHandle) -> Optional[list[tuple[_tessera.Picked, Optional[tuple[slice, ...]]]]]:
        """(Picked, key) pairs; None if there are integer arrays among the selections."""
        if self.drop_axes:
            return None
        return _tessera.batch_parts(handle, self.items, self.prefix, None if self.scalar else self.elements.shape)

    def box(self, handle: _tessera.ArrayHandle, item: Item) -> tuple[tuple[slice, ...], SelectorTuple]:
        """The smallest box of the array that holds what an item picks, and the selection within it."""
        start = _tessera.chunk_start(handle, item[0].path[self.prefix:])
        chunk = item[2] if isinstance(item[2], tuple) else (item[2],)
        if start is None or len(chunk) != len(start):
            raise _Unknown
        places, within = [], []
        for base, picked in zip(start, chunk):
            if isinstance(picked, slice):
                if picked.step not in (None, 1) and picked.step < 1 or picked.start is None or picked.stop is None:
                    raise _Unknown
                low, high = picked.start, picked.stop
                within.append(slice(0, high - low, picked.step))
            elif isinstance(picked, np.ndarray) and picked.dtype.kind in "iu":
                low, high = (int(picked.min()), int(picked.max()) + 1) if picked.size else (0, 0)
                within.append(picked - low)
            elif isinstance(picked, (int, np.integer)):
                low, high = int(picked), int(picked) + 1
                within.append(0)
            else:
                raise _Unknown
            places.append(slice(base + low, base + high))
        return tuple(places), tuple(within)

    def points(self, handle: _tessera.ArrayHandle) -> Optional[Values]:
        """The indices of all items, if they pick elements one by one."""
        rows = []
        for item in self.items:
            chunk = item[2] if isinstance(item[2], tuple) else (item[2],)
            if not chunk or not all(isinstance(p, np.ndarray) and p.ndim == 1 and p.dtype.kind in "iu" for p in chunk):
                return None
            start = _tessera.chunk_start(handle, item[0].path[self.prefix:])
            if start is None or len(start) != len(chunk):
                raise _Unknown
            rows.append(np.stack(chunk, axis=1).astype("i8") + np.asarray(start, "i8"))
        return np.concatenate(rows)

    # ---- reading

    def read(self, handle: _tessera.ArrayHandle) -> None:
        """Fill the result."""
        parts = self.parts(handle)
        if parts is None:
            handle.refresh()
            self._read_places(handle)
            return
        for picked, key in parts:
            out = self.elements if key is None else self.elements[key]
            if handle.is_variable and out.dtype.kind != "O":
                objects = np.empty(out.shape, object)
                handle.read(picked, objects, self.work)
                out[...] = objects
            else:
                handle.read(picked, out, self.work)

    def _read_places(self, handle: _tessera.ArrayHandle) -> None:
        points = self.points(handle) if not self.drop_axes else None
        dtype = np.dtype(object) if handle.is_variable else self.elements.dtype
        if points is not None:
            values = np.empty(len(points), dtype)
            handle.read_points(points, values, self.work)
            at = 0
            for item in self.items:
                count = len(item[2][0] if isinstance(item[2], tuple) else item[2])
                self.elements[item[3]] = values[at:at + count]
                at += count
            return
        held, boxes = 0, []
        for item in self.items:
            places, within = self.box(handle, item)
            box = np.empty([place.stop - place.start for place in places], dtype)
            boxes.append((item, places, within, box))
            held += box.nbytes
            if held > _HELD:
                self._read_boxes(handle, boxes)
                held, boxes = 0, []
        self._read_boxes(handle, boxes)

    def _read_boxes(self, handle: _tessera.ArrayHandle, boxes: list[tuple[Item, tuple[slice, ...], SelectorTuple, Values]]) -> None:
        if handle.is_variable:
            for _, places, _, box in boxes:
                handle.read(handle.pick(places), box, self.work)
        else:
            handle.read_boxes([(tuple(place.start for place in places), box) for _, places, _, box in boxes], self.work)
        for item, _, within, box in boxes:
            picked = box[within]
            self.elements[item[3]] = picked.squeeze(axis=self.drop_axes) if self.drop_axes else picked

    # ---- writing

    def write(self, handle: _tessera.ArrayHandle) -> None:
        """Write the values, each chunk under its lock."""
        parts = self.parts(handle)
        if parts is None:
            handle.refresh()
            self._write_places(handle)
            return
        for picked, key in parts:
            values = self.elements if key is None else self.elements[key]
            if self.scalar:
                values = np.broadcast_to(values, picked.shape)
            handle.write(picked, values, self.work)

    def _write_places(self, handle: _tessera.ArrayHandle) -> None:
        points = self.points(handle) if not self.drop_axes else None
        if points is not None:
            if self.scalar:
                values = np.broadcast_to(self.elements, len(points))
            else:
                values = np.concatenate([np.atleast_1d(self.elements[item[3]]) for item in self.items])
            if values.shape != (len(points),):
                raise _Unknown
            handle.write_points(points, values, self.work)
            return
        for item in self.items:
            places, within = self.box(handle, item)
            values = self.elements if self.scalar else self.elements[item[3]]
            if self.drop_axes and not self.scalar:
                values = values[tuple(None if axis in self.drop_axes else slice(None) for axis in range(len(places)))]

            def assign(elements: Values, values: Values = values, within: SelectorTuple = within) -> None:
                elements[within] = values

            handle.update(handle.pick(places), assign, False, self.work)


async def _run(function: Callable[[_tessera.ArrayHandle], None], handle: _tessera.ArrayHandle, size: int) -> None:
    if size <= _BRIEF:
        function(handle)
    else:
        await asyncio.to_thread(function, handle)


class CodecPipeline(BatchedCodecPipeline):
    """Tessera's codecs, partial shards, threads and locks in the arrays of zarr-python 3.

    ``zarr.config.set({"codec_pipeline.path": "tessera.zarr.CodecPipeline"})`` switches it on. In a local store each
    write of a chunk or shard, whole or partial, holds that chunk's lock, so that processes may write different parts of
    it. Chunks of other stores come and go through the store's get and set. Codecs that Tessera lacks go to zarr's own
    pipeline.

    Settings of ``zarr.config``: ``threading.max_workers``; ``codec_pipeline.durability`` (``"none"``, as zarr's own
    store has it, ``"commit"`` or ``"each"``) and ``codec_pipeline.locks`` (True), of local stores.
    """

    _metadata = None

    @classmethod
    def from_array_metadata_and_store(cls, array_metadata: Metadata, store: ZarrStore) -> "CodecPipeline":
        """The pipeline of an array."""
        return cls._of(array_metadata)

    @classmethod
    def _of(cls, metadata: Metadata) -> "CodecPipeline":
        v2 = metadata.zarr_format == 2
        codecs = [V2Codec(filters=metadata.filters, compressor=metadata.compressor)] if v2 else metadata.codecs
        made = cls.from_codecs(codecs)
        made._keep(metadata)
        return made

    def _keep(self, metadata: Metadata) -> None:
        object.__setattr__(self, "_metadata", metadata)
        object.__setattr__(self, "_dtype", metadata.dtype.to_native_dtype())
        object.__setattr__(self, "_opened", {})
        object.__setattr__(self, "_known", None)

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> "CodecPipeline":
        """As in zarr's own."""
        made = super().evolve_from_array_spec(array_spec)
        if self._metadata is not None:
            made._keep(self._metadata)
        return made

    def __reduce__(self) -> tuple[object, ...]:
        if self._metadata is not None:
            return CodecPipeline._of, (self._metadata,)
        return CodecPipeline.from_codecs, (list(self),)

    # ---- the array

    def _prefix(self, items: list[Item]) -> int:
        """The length of the array's path in the keys. Raises _Unknown for what the library does not know at all."""
        metadata = self._metadata
        if metadata is None or not isinstance(items[0][0], StorePath):
            raise _Unknown
        if self._known is None:
            parts = _chunk_parts(metadata) if _knows(metadata) else None
            if parts is not None:
                try:
                    _tessera.Stage(*_documents(metadata)).handle()
                except (Error, ValueError, TypeError):
                    parts = None
            object.__setattr__(self, "_known", (parts,))
        parts = self._known[0]
        if parts is None:
            raise _Unknown
        path = items[0][0].path
        above = path.rsplit("/", parts)
        return len(above[0]) + 1 if len(above) == parts + 1 else 0

    def _handle(self, items: list[Item], prefix: int, write: bool) -> Optional[_tessera.ArrayHandle]:
        """The array in a local store; None in other stores."""
        store = items[0][0].store
        place = _folder(store)
        if place is None:
            return None
        root, options = place
        if write:
            store._check_writable()
        keep = write and items[0][1].config.write_empty_chunks
        path = items[0][0].path[:max(prefix - 1, 0)]
        known = (root, path, write, keep, options)
        handle = self._opened.get(known)
        if handle is None:
            try:
                handle = _tessera.open_below(root, path, _tessera.PlaceOptions(not write, *options))
            except Error:  # zarr has metadata in hand that are not in the store
                raise _Unknown from None
            if keep:
                _tessera.store_fill(handle)
            layout = handle.layout()
            chunks = layout["shards"] or layout["chunks"] or ()
            if tuple(chunks) != tuple(items[0][1].shape):
                raise _Unknown
            self._opened[known] = handle
        return handle

    def _batch(self, items: list[Item], prefix: int, buffer: NDBuffer, drop_axes: tuple[int, ...]) -> _Batch:
        elements = buffer.as_ndarray_like()
        if not isinstance(elements, np.ndarray):
            raise _Unknown
        dtype = elements.dtype
        if dtype != self._dtype:
            same = dtype.newbyteorder("=") == self._dtype.newbyteorder("=") if self._dtype.kind not in "OT" else dtype.kind in "OT"
            if not same:
                raise _Unknown
        return _Batch(items, prefix, elements, tuple(drop_axes))

    # ---- batches

    async def read(self, batch_info: Iterable[Item], out: NDBuffer, drop_axes: tuple[int, ...] = ()) -> tuple[object, ...]:
        """As in zarr's own."""
        items = list(batch_info)
        try:
            if not items or not getattr(items[0][1].config, "read_missing_chunks", True):
                raise _Unknown
            prefix = self._prefix(items)
            batch = self._batch(items, prefix, out, drop_axes)
            handle = self._handle(items, prefix, False)
            if handle is not None:
                await _run(batch.read, handle, batch.elements.nbytes)
            else:
                await self._read_staged(batch)
        except _Unknown:
            return await super().read(items, out, drop_axes)
        return ({"status": "present"},) * len(items)

    async def write(self, batch_info: Iterable[Item], value: NDBuffer, drop_axes: tuple[int, ...] = ()) -> None:
        """As in zarr's own."""
        items = list(batch_info)
        try:
            if not items:
                return
            prefix = self._prefix(items)
            if _own_order(self._metadata):
                raise _Unknown
            batch = self._batch(items, prefix, value, drop_axes)
            handle = self._handle(items, prefix, True)
            if handle is not None:
                await _run(batch.write, handle, batch.elements.nbytes)
            else:
                await self._write_staged(batch)
        except _Unknown:
            await self._write_own(items, value, drop_axes)

    async def _write_own(self, items: list[Item], value: NDBuffer, drop_axes: tuple[int, ...]) -> None:
        """zarr's own pipeline; in a local store chunk by chunk under the chunk's lock, like all writes."""
        place = None if self._metadata is None or not isinstance(items[0][0], StorePath) else _folder(items[0][0].store)
        parts = _chunk_parts(self._metadata) if place is not None else None
        if parts is None:
            await super().write(items, value, drop_axes)
            return
        root, options = place
        items[0][0].store._check_writable()
        write = super().write

        def locked(item: Item) -> None:
            above = item[0].path.rsplit("/", parts)
            array = above[0] if len(above) == parts + 1 else ""
            with _tessera.ChunkLock(root, array, self._slot(item[0].path[len(array):]), _tessera.PlaceOptions(False, *options)):
                # A lock belongs to a thread, which therefore runs all of this.
                asyncio.run(write([item], value, drop_axes))

        await concurrent_map([(item,) for item in items], lambda item: asyncio.to_thread(locked, item), 4)

    def _slot(self, key: str) -> int:
        """The number of a chunk's lock: its place in the grid."""
        index = [int(part) for part in _NUMBER.findall(key)]
        grid = getattr(self._metadata, "chunk_grid", None)
        chunks = self._metadata.chunks if grid is None else getattr(grid, "chunk_shape", getattr(grid, "chunk_shapes", None))
        if chunks is None or len(chunks) != len(index):
            return zlib.crc32(key.encode())
        number = 0
        for at, length, chunk in zip(index, self._metadata.shape, chunks):
            number = number * max(-(-length // chunk) if isinstance(chunk, int) else len(chunk), 1) + at
        return number

    # ---- stores that only Python reaches

    def _groups(self, batch: _Batch) -> Iterable[_Batch]:
        """The batch in pieces whose chunks may be held at once."""
        spec = batch.items[0][1]
        size = max(1, int(np.prod(spec.shape)) * self._metadata.dtype.to_native_dtype().itemsize)
        count = max(1, _HELD // size)
        for first in range(0, len(batch.items), count):
            yield _Batch(batch.items[first:first + count], batch.prefix, batch.elements, batch.drop_axes)

    async def _fetch(self, stage: _tessera.Stage, batch: _Batch, items: list[Item]) -> None:
        values = await concurrent_map([(item[0], item[1].prototype) for item in items],
                                      lambda getter, prototype: getter.get(prototype), config.get("async.concurrency"))
        for item, value in zip(items, values):
            if value is not None:
                stage.put(item[0].path[batch.prefix:], value.as_numpy_array())

    async def _stage(self, batch: _Batch, items: list[Item]) -> _tessera.Stage:
        """The array with the values of some items, in memory."""
        stage = _tessera.Stage(*_documents(self._metadata, batch))
        await self._fetch(stage, batch, items)
        return stage

    async def _fetch_parts(self, stage: _tessera.Stage, batch: _Batch, items: list[Item]) -> None:
        """The chunks that are wanted of some shards, and nothing else of them."""
        index = _ShardIndex(self._metadata)

        async def fetch(getter: ByteGetter, spec: ArraySpec, selection: SelectorTuple) -> None:
            wanted, size = index.wanted(selection, spec.shape), index.size(spec.shape)
            if wanted is None:
                await self._fetch(stage, batch, [(getter, spec)])
                return
            found = await getter.get(spec.prototype, index.request(size))
            if found is None:
                return
            places = index.places(found.as_numpy_array(), wanted)
            present = places[:, 0] != index._EMPTY
            ranges = [RangeByteRequest(int(at), int(at + length)) for at, length in places[present]]
            values = iter(await _ranges(getter, spec, ranges))
            chunks = [next(values) if there else None for there in present]
            if any(chunk is None for chunk, there in zip(chunks, present) if there):
                raise _Unknown  # somebody replaced the shard meanwhile
            stage.put(getter.path[batch.prefix:], index.packed(
                size, wanted, [chunk if chunk is None else chunk.as_numpy_array().tobytes() for chunk in chunks]))

        await concurrent_map([item[:3] for item in items], fetch, config.get("async.concurrency"))

    async def _read_staged(self, whole: _Batch) -> None:
        for batch in self._groups(whole):
            parts = [item for item in batch.items if not item[4]] if _sharded(self._metadata) else []
            if parts:
                stage = await self._stage(batch, [item for item in batch.items if item[4]])
                await self._fetch_parts(stage, batch, parts)
            else:
                stage = await self._stage(batch, batch.items)
            await _run(batch.read, stage.handle(), batch.elements.nbytes)

    def _replaces(self, item: Item) -> bool:
        """Whether nothing of the old value stays; of a shard zarr keeps what lies beyond the array's edge."""
        chunk = item[2] if isinstance(item[2], tuple) else (item[2],)
        return item[4] and not (_sharded(self._metadata) and any(
            isinstance(part, slice) and part.stop != length for part, length in zip(chunk, item[1].shape)))

    async def _write_staged(self, whole: _Batch) -> None:
        for batch in self._groups(whole):
            stage = await self._stage(batch, [item for item in batch.items if not self._replaces(item)])
            handle = stage.handle()
            if batch.items[0][1].config.write_empty_chunks:
                _tessera.store_fill(handle)
            await _run(batch.write, handle, batch.elements.nbytes)

            async def send(item: Item, stage: _tessera.Stage = stage, batch: _Batch = batch) -> None:
                value = stage.get(item[0].path[batch.prefix:])
                if value is None:
                    await item[0].delete()
                else:
                    await item[0].set(item[1].prototype.buffer.from_bytes(value))

            await concurrent_map([(item,) for item in batch.items], send, config.get("async.concurrency"))

