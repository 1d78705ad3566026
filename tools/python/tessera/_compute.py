"""Arrays that are computed from others, or put together of them."""

from __future__ import annotations

import os
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from . import _tessera
from ._array import Array
from ._errors import InvalidArgument
from ._options import ProgressCallback, work
from ._verbs import _absolute, _json_fill

Path = Union[str, "os.PathLike[str]"]
Operand = Union[Path, Array, np.ndarray[Any, Any]]
_KNOWN = ("chunks", "shards", "codec", "format", "order", "separator", "fill_value", "dims", "deflate")


def _operand(given: Operand) -> Any:
    if isinstance(given, np.ndarray):
        return given
    return given._handle if isinstance(given, Array) else _absolute(given)


def _place_of(given: Operand) -> str:
    """Where an operand lies; nowhere, of values in memory."""
    if isinstance(given, np.ndarray):
        return ""
    return os.path.realpath(given.path if isinstance(given, Array) else os.fspath(given))


def _way(destination: Optional[Path], operands: Sequence[Operand], overwrite: bool, dtype: Any, cast: str,
         options: dict[str, Any]) -> Any:
    for name in options:
        if name not in _KNOWN:
            raise TypeError(f"unexpected argument {name!r}; there are: {', '.join(_KNOWN)}")
    if destination is None:
        if options or overwrite:
            raise InvalidArgument("without a destination the result is a NumPy array, which has no such options")
        return _tessera.ComputedWay(None, {}, False, dtype, cast)
    place = _absolute(destination)
    for operand in operands:
        other = _place_of(operand)
        mine = os.path.realpath(place)
        if other and os.path.commonpath([other, mine]) in (other, mine):
            raise InvalidArgument(f"{place}: the destination and {other} overlap")
    made = {name: value for name, value in options.items() if value is not None or name in ("shards", "fill_value")}
    if "fill_value" in made:
        fill = made["fill_value"]
        made["fill_value"] = _json_fill(fill, np.asarray(fill).dtype if dtype is None else dtype)
    return _tessera.ComputedWay(place, made, overwrite, dtype, cast)


def calc(destination: Optional[Path], expression: str, operands: Mapping[str, Operand], *, dtype: Any = None,
         cast: str = "same_kind", overwrite: bool = False, threads: int = 0, max_memory: Union[int, str] = 0,
         progress: ProgressCallback = None, **options: Any) -> Optional[np.ndarray[Any, Any]]:
    """Evaluate an expression over arrays, block by block.

    Parameters
    ----------
    destination : path or None
        Where the result goes: a directory; or a ``.zip`` or an array file by its extension. None: into memory.
    expression : str
        In NumPy's notation: ``"where(a < 0, 0, a * 0.1 + b)"``; ``tessera help calc`` lists the functions.
    operands : dict
        The arrays by the names that the expression gives them: paths, open arrays, or NumPy arrays. They are broadcast.
    dtype, cast
        Convert the result; `cast` is ``"safe"``, ``"same_kind"``, ``"unsafe"``, ``"round"`` or ``"clip"``.
    overwrite : bool
        Replace an array or a file that lies there.
    threads, max_memory, progress
        As in :meth:`Array.read`.
    **options
        Of the new array, as in :func:`copy`: chunks, codec, format, dims, …; the first operand's where not given.

    Returns
    -------
    numpy.ndarray or None
        The result, where `destination` is None.

    Raises
    ------
    InvalidArgument
        The expression, its names or the shapes do not fit; the message says where.

    Examples
    --------
    >>> np.save("plain.npy", np.arange(6).reshape(2, 3))
    >>> tessera.calc(None, "where(a > b, a, -1)", {"a": "plain.npy", "b": np.array([1, 1, 9])})
    array([[-1, -1, -1],
           [ 3,  4, -1]])
    """
    way = _way(destination, list(operands.values()), overwrite, dtype, cast, options)
    given = {name: _operand(value) for name, value in operands.items()}
    result: Optional[np.ndarray[Any, Any]] = _tessera.calc(expression, given, way, work(threads, max_memory, progress))
    return result


def reduce(array: Operand, destination: Optional[Path] = None, *, how: str, axis: Union[None, int, Sequence[int]] = None,
           keepdims: bool = False, skip_nan: bool = False, dtype: Any = None, cast: str = "same_kind",
           overwrite: bool = False, threads: int = 0, max_memory: Union[int, str] = 0, progress: ProgressCallback = None,
           **options: Any) -> Optional[np.ndarray[Any, Any]]:
    """Minimum, mean, median and so on along dimensions, block by block.

    Parameters
    ----------
    array : path, Array or numpy.ndarray
    destination, dtype, cast, overwrite, threads, max_memory, progress, **options
        As in :func:`calc`.
    how : {"min", "max", "sum", "mean", "std", "count", "argmin", "argmax", "median"}
    axis : int or tuple of int, optional
        The dimensions that go; by default all.
    keepdims : bool
        Whether they stay as length 1.
    skip_nan : bool
        Leave NaN and NaT out, as numpy.nanmean does.

    Examples
    --------
    >>> np.save("plain.npy", np.arange(6).reshape(2, 3))
    >>> tessera.reduce("plain.npy", how="mean", axis=0)
    array([1.5, 2.5, 3.5])
    """
    way = _way(destination, [array], overwrite, dtype, cast, options)
    axes = [] if axis is None else [axis] if isinstance(axis, int) else [int(a) for a in axis]
    if axis is not None and not axes:
        raise InvalidArgument("axis=(): no dimension is named")
    result: Optional[np.ndarray[Any, Any]] = _tessera.reduce(_operand(array), how, axes, keepdims, skip_nan, way,
                                                             work(threads, max_memory, progress))
    return result


def coarsen(array: Operand, destination: Optional[Path] = None, *, by: Any, how: str = "mean", dtype: Any = None,
            cast: str = "same_kind", overwrite: bool = False, threads: int = 0, max_memory: Union[int, str] = 0,
            progress: ProgressCallback = None, **options: Any) -> Optional[np.ndarray[Any, Any]]:
    """Downsample by whole factors: one element for each block.

    Parameters
    ----------
    array : path, Array or numpy.ndarray
    destination, dtype, cast, overwrite, threads, max_memory, progress, **options
        As in :func:`calc`.
    by : tuple of int
        The lengths of a block; those at the ends hold what is left.
    how : {"mean", "max", "min", "mode", "nearest"}
        Means of integers are rounded half to even.

    Examples
    --------
    >>> np.save("plain.npy", np.arange(6).reshape(2, 3))
    >>> tessera.coarsen("plain.npy", by=(2, 2), how="max")
    array([[4, 5]])
    """
    way = _way(destination, [array], overwrite, dtype, cast, options)
    result: Optional[np.ndarray[Any, Any]] = _tessera.coarsen(_operand(array), by, how, way,
                                                              work(threads, max_memory, progress))
    return result


def _join(arrays: Sequence[Union[Path, Array]], destination: Optional[Path], axis: int, new_axis: bool, dtype: Any,
          cast: str, overwrite: bool, running: Any, options: dict[str, Any]) -> Optional[np.ndarray[Any, Any]]:
    if isinstance(arrays, (str, bytes, os.PathLike, Array)):
        raise InvalidArgument("expected a list of arrays; for a pattern: sorted(glob.glob(pattern))")
    way = _way(destination, arrays, overwrite, dtype, cast, options)
    paths = [array.path if isinstance(array, Array) else _absolute(array) for array in arrays]
    result: Optional[np.ndarray[Any, Any]] = _tessera.join(paths, axis, new_axis, way, running)
    return result


def stack(arrays: Sequence[Union[Path, Array]], destination: Optional[Path] = None, *, axis: int = 0, dtype: Any = None,
          cast: str = "same_kind", overwrite: bool = False, threads: int = 0, max_memory: Union[int, str] = 0,
          progress: ProgressCallback = None, **options: Any) -> Optional[np.ndarray[Any, Any]]:
    """Many arrays of one shape and dtype as one, along a new axis, as numpy.stack.

    Parameters
    ----------
    arrays : list of paths or Arrays
        Looked at before anything is written: one that does not fit is refused by name.
    destination, dtype, cast, overwrite, threads, max_memory, progress, **options
        As in :func:`calc`.
    axis : int
        The place of the new axis in the result.

    Examples
    --------
    >>> np.save("plain.npy", np.arange(3))
    >>> tessera.stack(["plain.npy", "plain.npy"], axis=1)
    array([[0, 0],
           [1, 1],
           [2, 2]])
    """
    return _join(arrays, destination, axis, True, dtype, cast, overwrite, work(threads, max_memory, progress), options)


def concat(arrays: Sequence[Union[Path, Array]], destination: Optional[Path] = None, *, axis: int = 0, dtype: Any = None,
           cast: str = "same_kind", overwrite: bool = False, threads: int = 0, max_memory: Union[int, str] = 0,
           progress: ProgressCallback = None, **options: Any) -> Optional[np.ndarray[Any, Any]]:
    """As :func:`stack`, but along an axis that the arrays have, as numpy.concatenate.

    Examples
    --------
    >>> np.save("plain.npy", np.arange(3))
    >>> tessera.concat(["plain.npy", "plain.npy"], "twice.zarr", chunks=2, overwrite=True)
    >>> tessera.load("twice.zarr")
    array([0, 1, 2, 0, 1, 2])
    """
    return _join(arrays, destination, axis, False, dtype, cast, overwrite, work(threads, max_memory, progress), options)
