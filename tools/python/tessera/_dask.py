"""The requirements of dask: blocks along an array's chunks, and a token that distinguishes versions."""

from __future__ import annotations

import importlib
import os
import time
import uuid
from typing import Any

import numpy as np

from . import _tessera
from ._describe import Described

# What was written so short a time ago may be written again without a stamp that tells: a tick of the system's clock is
# some milliseconds.
_YOUNG = 1_000_000_000


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
    in_directory = array._handle.is_chunked and os.path.isdir(array.path)
    state, newest = _tessera.state(array._handle) if in_directory else _file_state(array)
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


def to_dask(array: Described, chunks: object, limit: object) -> Any:
    """See :meth:`Array.to_dask`."""
    module = importlib.import_module("dask.array")
    wanted = blocks(array, limit) if chunks is None else chunks
    return module.from_array(array, chunks=wanted, fancy=False)
