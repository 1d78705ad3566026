"""The requirements of dask: blocks along an array's chunks, and a token that distinguishes versions."""

from __future__ import annotations

import importlib
import itertools
import os
import time
import uuid
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

import numpy as np

from . import _tessera
from ._errors import InvalidArgument

if TYPE_CHECKING:
    from ._array import Array

# What was written so short a time ago may be written again without a stamp that tells: a tick of the system's clock is
# some milliseconds.
_YOUNG = 1_000_000_000


def _file_state(array: "Array") -> tuple[Any, int]:
    """Of an array file, or of the zip that an array lies in."""
    place = array.path
    while not os.path.isfile(place):
        above = place.rpartition("::")[0] or os.path.dirname(place)
        if above == place:
            raise FileNotFoundError(array.path)
        place = above
    status = os.stat(place)
    return (status.st_size, status.st_mtime_ns, status.st_ino), status.st_mtime_ns


def token(array: "Array") -> tuple[Any, ...]:
    """A token for the elements at one place; it differs once anything there has changed."""
    in_directory = array._handle.is_chunked and os.path.isdir(array.path)
    state, newest = _tessera.state(array._handle) if in_directory else _file_state(array)
    if newest > time.time_ns() - _YOUNG:
        state = uuid.uuid4().hex
    return ("tessera.Array", array.path, array.shape, array.dtype.str, array._handle.dtype_text, state)


def blocks(array: "Array", limit: Optional[Any]) -> tuple[int, ...]:
    """Lengths of a block of about dask's ``array.chunk-size``: a multiple of the unit of storage."""
    core: Any = importlib.import_module("dask.array.core")

    units = array.shards or array.chunks or (1,) * array.ndim
    if 0 in array.shape or array.itemsize == 0:
        return units
    proposed = core.normalize_chunks("auto", shape=array.shape, limit=limit, dtype=np.dtype(f"V{array.itemsize}"),
                                   previous_chunks=units)
    return tuple(max(lengths[0] // unit, 1) * unit for lengths, unit in zip(proposed, units))


def to_dask(array: "Array", chunks: Any, limit: Optional[Any]) -> Any:
    """See :meth:`Array.to_dask`."""
    module: Any = importlib.import_module("dask.array")
    wanted = blocks(array, limit) if chunks is None else chunks
    return module.from_array(array, chunks=wanted, fancy=False)


def _aligned(start: int, lengths: Sequence[int], unit: int) -> tuple[int, ...]:
    """Lengths of blocks about as long as those given, which end where units of the target do."""
    total = sum(lengths)
    step = max(1, -(-max(lengths, default=1) // unit)) * unit
    ends = list(range((start // unit) * unit + step, start + total, step)) + [start + total]
    return tuple(end - begin for begin, end in zip([start, *ends], ends)) if total else (0,)


def _cut(start: int, end: int, lengths: Sequence[int]) -> tuple[int, ...]:
    """Lengths of blocks from start to end, of which each lies in one of the units of the target."""
    ends = [stop for stop in itertools.accumulate(lengths) if start < stop < end] + [end]
    return tuple(stop - begin for begin, stop in zip([start, *ends], ends)) if end > start else (0,)


def _write(target: "Array", begin: tuple[int, ...], values: Any) -> int:
    values = np.asarray(values)
    target[tuple(slice(b, b + n) for b, n in zip(begin, values.shape))] = values
    return int(values.size)


def store(source: Any, target: Union["Array", str, "os.PathLike[str]"], *, region: Optional[Sequence[slice]] = None,
          compute: bool = True, **options: Any) -> Any:
    """Write a dask array, in blocks that are first made to end where chunks or shards of the target do.

    So no two tasks write into one file, and nothing depends on locks between machines. Only where `region` begins or
    ends inside a chunk is that chunk shared with others who write at the same time.

    Parameters
    ----------
    source : dask.array.Array
    target : Array or path
        An array that is open for writing, or the place of a new one.
    region : tuple of slices, optional
        The part of an existing array to write, one slice with step 1 for each dimension.
    compute : bool
        False returns a delayed value that does the work when it is computed.
    **options
        Of a new array, as in :func:`create`; its chunks are by default those of `source`.

    Examples
    --------
    >>> import dask.array
    >>> tessera.store(dask.array.ones((10, 10), chunks=(3, 10)), "ones.zarr", chunks=(4, 5), overwrite=True)
    >>> float(tessera.load("ones.zarr").sum())
    100.0
    """
    delayed: Any = importlib.import_module("dask").delayed
    from ._array import Array
    from ._commands import create

    if any(np.isnan(length) for lengths in source.chunks for length in lengths):
        raise InvalidArgument("the lengths of the dask array's blocks are not known: compute_chunk_sizes() finds them")
    if isinstance(target, Array):
        if options:
            raise TypeError(f"unexpected argument {next(iter(options))!r}: only for a new array")
        array = target
    else:
        if region is not None:
            raise InvalidArgument("region: only for an array that is there: tessera.open(path, \"r+\")")
        if 0 not in source.shape:
            options.setdefault("chunks", source.chunksize)
        array = create(target, shape=source.shape, dtype=source.dtype, **options)
    array._require_writable()
    given = region if region is not None else (slice(None),) * array.ndim
    if len(given) != array.ndim or any(part.step not in (None, 1) for part in given):
        raise InvalidArgument(f"region: expected {array.ndim} slices with step 1, found {region}")
    bounds = [part.indices(length)[:2] for part, length in zip(given, array.shape)]
    lengths = tuple(max(0, end - begin) for begin, end in bounds)
    if lengths != source.shape:
        raise InvalidArgument(f"{array.path}: an array of shape {source.shape} does not fit into {lengths}")
    if not np.can_cast(source.dtype, array.dtype, "same_kind"):
        raise InvalidArgument(f"{array.path}: {source.dtype} would lose values in {array.dtype}: convert it before, by astype()")
    stored = array._handle.chunk_lengths(True) if array._handle.differs() else None
    units = array.shards or array.chunks or (1,) * array.ndim
    starts = [begin for begin, _ in bounds]
    if stored is None:
        wanted = tuple(_aligned(*each) for each in zip(starts, source.chunks, units))
    else:
        wanted = tuple(_cut(*bound, along) for bound, along in zip(bounds, stored))
    blocks_of = source.rechunk(wanted)
    offsets = [np.cumsum([start, *lengths[:-1]]).tolist() for start, lengths in zip(starts, blocks_of.chunks)]
    tasks = []
    for index, block in np.ndenumerate(np.asarray(blocks_of.to_delayed(), dtype=object)):
        begin = tuple(offsets[d][i] for d, i in enumerate(index))
        tasks.append(delayed(_write, pure=False)(array, begin, block))
    written = delayed(sum)(tasks)
    if not compute:
        return written
    written.compute()
    return None
