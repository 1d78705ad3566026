"""The requirements of dask: blocks along an array's chunks, and a token that distinguishes versions."""

from __future__ import annotations

import importlib
import itertools
import os
import time
import uuid
from typing import Any, Optional

import numpy as np

from . import _tessera
from ._describe import Described

_MA: Any = np.ma  # of which some NumPy has no types

# What was written so short a time ago may be written again without a stamp that tells: a tick of the system's clock is
# some milliseconds.
_YOUNG = 1_000_000_000
# Where a listing tells the version of each value.
_LISTED = ("s3", "s3+anon", "gs", "gs+anon")


def _file_state(array: Described) -> tuple[tuple[int, ...], int]:
    """Of an array file, or of the zip that an array lies in."""
    place = array.path
    while not os.path.isfile(place):
        above = place.rpartition("::")[0] or os.path.dirname(place)
        if above == place:
            raise FileNotFoundError(array.path)
        place = above
    status = os.stat(place)
    return (status.st_size, status.st_mtime_ns, status.st_ino), status.st_mtime_ns


def token(array: Described) -> tuple[object, ...]:
    """A token for the elements at one place; it differs once anything there has changed."""
    scheme = array.path.partition("://")[0] if "://" in array.path else ""
    state: object
    if array._handle.is_chunked and (scheme in _LISTED or os.path.isdir(array.path)):
        state, newest = _tessera.state(array._handle)
    elif scheme:
        state, newest = uuid.uuid4().hex, 0  # only a request for each chunk would tell
    else:
        state, newest = _file_state(array)
    if newest > time.time_ns() - _YOUNG:
        state = uuid.uuid4().hex
    return ("tessera.Array", array.path, array.shape, array.dtype.str, array._handle.dtype_text, state)


def blocks(array: Described, limit: object) -> tuple[int, ...]:
    """Lengths of a block of about dask's ``array.chunk-size``: a multiple of the unit of storage."""
    core = importlib.import_module("dask.array.core")

    units = array.shards or array.chunks or (1,) * array.ndim
    if 0 in array.shape or array.itemsize == 0:
        return units
    proposed = core.normalize_chunks("auto", shape=array.shape, limit=limit, dtype=np.dtype(f"V{array.itemsize}"),
                                   previous_chunks=units)
    return tuple(max(lengths[0] // unit, 1) * unit for lengths, unit in zip(proposed, units))


def to_dask(array: Described, chunks: object, limit: object, where: Optional[str]) -> Any:
    """See :meth:`Array.to_dask`."""
    module = importlib.import_module("dask.array")
    wanted = blocks(array, limit) if chunks is None else chunks
    whole = module.from_array(array, chunks=wanted, fancy=False)
    return whole if where is None else _matching(module, array, whole.chunks, where)


def _matching(module: Any, array: Any, lengths: tuple[tuple[int, ...], ...], where: str) -> Any:
    """Blocks of :meth:`Array.where`; those in which nothing can match are not read."""
    may = _tessera.may_match(array._handle, where, array._work())
    dtype = array.decoded.dtype
    base = importlib.import_module("dask.base")
    name = "tessera-where-" + base.tokenize(array, where, lengths)
    ends = [list(itertools.accumulate(run)) for run in lengths]
    tasks: dict[Any, Any] = {}
    for at in np.ndindex(*map(len, lengths)):
        key = tuple(slice(end[i] - run[i], end[i]) for i, end, run in zip(at, ends, lengths))
        reads = may is None or may[_chunks_of(array, key)].any()
        shape = tuple(part.stop - part.start for part in key)
        tasks[(name, *at)] = (_read, array, where, key) if reads else (_nothing, shape, dtype)
    return module.Array(tasks, name, lengths, meta=_nothing((0,) * len(lengths), dtype))


def _chunks_of(array: Described, key: tuple[slice, ...]) -> tuple[slice, ...]:
    """The chunks that a part touches, as a part of their grid."""
    starts = [np.cumsum((0, *run))[:-1] for run in array.chunk_lengths]
    return tuple(slice(int(np.searchsorted(begin, part.start, "right")) - 1, int(np.searchsorted(begin, part.stop, "left")))
                 for begin, part in zip(starts, key))


def _read(array: Any, where: str, key: tuple[slice, ...]) -> Any:
    return array.where(where, key or ...)


def _nothing(shape: tuple[int, ...], dtype: Any) -> Any:
    return _MA.masked_all(shape, dtype)
