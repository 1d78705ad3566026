"""Arrays of dask, written so that no two tasks write into one file."""

from __future__ import annotations

import importlib
import itertools
from typing import Any, Optional, Sequence, Union

import numpy as np

from ._array import Array
from ._calls import shown
from ._commands import create
from ._errors import InvalidArgument
from ._making import Path


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


def _write(target: Array, begin: tuple[int, ...], values: object) -> int:
    values = np.asarray(values)
    target[tuple(slice(b, b + n) for b, n in zip(begin, values.shape))] = values
    return int(values.size)


class Blocks:
    """A dask array in blocks that end where chunks or shards of its target do.

    They are written one by one by :meth:`write`, in this process, or all by :meth:`delayed`, in any. It pickles.
    """

    def __init__(self, source: Any, array: Array, region: Optional[Sequence[slice]] = None):
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
        self._array = array
        starts = [begin for begin, _ in bounds]
        self._blocks = source.rechunk(_lengths(source, array, bounds))
        self._offsets = [np.cumsum([start, *lengths[:-1]]).tolist() for start, lengths in zip(starts, self._blocks.chunks)]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of blocks along each dimension."""
        return tuple(map(len, self._offsets))

    def _begin(self, index: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self._offsets[axis][number] for axis, number in enumerate(index))

    def write(self, index: tuple[int, ...]) -> int:
        """Computes and writes a block. Returns how many elements it has."""
        return _write(self._array, self._begin(index), self._blocks.blocks[index].compute())

    def delayed(self) -> Any:
        """All of them as one task of dask."""
        task: Any = importlib.import_module("dask").delayed
        written = task(_write, pure=False)
        return task(sum)([written(self._array, self._begin(index), block)
                          for index, block in np.ndenumerate(np.asarray(self._blocks.to_delayed(), dtype=object))])


def _lengths(source: Any, array: Array, bounds: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """The lengths of blocks along each dimension."""
    if array._handle.differs():
        return tuple(_cut(*bound, along) for bound, along in zip(bounds, array._handle.chunk_lengths(True)))
    units = array.shards or array.chunks or (1,) * array.ndim
    return tuple(_aligned(begin, lengths, unit) for (begin, _), lengths, unit in zip(bounds, source.chunks, units))


def store(source: Any, target: Union[Array, Path], *, region: Optional[Sequence[slice]] = None,
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
    if not hasattr(source, "to_delayed") or not hasattr(source, "chunks"):
        raise TypeError(f"store(): source: expected a dask array, found {shown(source)}")
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
    written = Blocks(source, array, region).delayed()
    if not compute:
        return written
    written.compute()
    return None
