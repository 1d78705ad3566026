# mypy: enable-incomplete-feature=Unpack
"""Arrays that are computed from others, or assembled from them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union, overload

import numpy as np

from . import _tessera
from ._array import Array
from ._calls import warn
from ._data_set import DataSet
from ._errors import InvalidArgument
from ._making import Path, json_fill, new_place
from ._options import (ComputedOptions, JoinedOptions, JoiningOptions, LevelOptions, NewJoinedOptions, NewResultOptions,
                       ProgressCallback, ResultOptions, SetOptions, StepOptions, absolute, over_network, over_network_of_node,
                       without_work, work)
from ._commands import open, open_array
from ._group import Group
from ._lazy import View
from ._types import Coarsening, DTypeLike, Document, Reduction, Remote, Values

if TYPE_CHECKING:
    from typing_extensions import Unpack

OneOperand = Union[Path, Array, View, Values]
Operand = Union[OneOperand, Group]


def _place_of(given: Operand) -> str:
    """Where an operand lies; nowhere, of values in memory."""
    if isinstance(given, np.ndarray):
        return ""
    return given.path if isinstance(given, (Array, Group)) else absolute(given)


def _made(asked: Document, destination: Optional[Path], running: _tessera.WorkOptions, options: Mapping[str, object]) -> Any:
    """Makes what a recipe describes; without a destination an array in memory, or several."""
    asked.update(options)
    if destination is not None and "fill_value" in asked:
        fill, dtype = asked["fill_value"], asked["dtype"]
        asked["fill_value"] = json_fill(fill, np.asarray(fill).dtype if dtype is None else dtype)
    made, notes = _tessera.make(asked, None if destination is None else new_place(destination), running)
    for note in notes:
        warn(note)
    return DataSet(*made) if isinstance(made, tuple) else made


def _calc_in_place(array: Union[Path, Array], recipe: Document, sel: object, running: _tessera.WorkOptions, max_memory: Union[int, str]) -> None:
    opened = array if isinstance(array, Array) else open(array, "r+", max_memory=max_memory)
    if not isinstance(opened, Array):
        raise InvalidArgument(f"{_place_of(array)}: expected an array")
    opened._require_writable()
    picked = None
    if sel is not None:
        picked = opened._handle.pick(sel)
        if picked is None or any(axis < 0 for axis in picked.axes):
            raise InvalidArgument(f"sel {sel!r}: expected integers, slices and ...")
    _tessera.calc_in_place(opened._handle, recipe, picked, running)


@overload
def calc(destination: None, expression: str, operands: Mapping[str, Operand], *,
         raw: bool = False, **options: Unpack[ResultOptions]) -> Values: ...
@overload
def calc(destination: Union[Path, Array], expression: str, operands: Mapping[str, Operand], *, in_place: bool = False,
         raw: bool = False, **options: Unpack[NewResultOptions]) -> None: ...
@overload
def calc(destination: str, **operands: Any) -> Any: ...
@over_network
def calc(destination: Union[None, Path, Array], expression: Optional[str] = None, operands: Optional[Mapping[str, Operand]] = None, *,
         dtype: DTypeLike = None, cast: str = "same_kind", overwrite: bool = False, in_place: bool = False, sel: object = None, raw: bool = False,
         threads: int = 0, max_memory: Union[int, str] = 0, progress: ProgressCallback = None,
         storage_options: Remote = None, **options: Any) -> Union[Values, DataSet, None]:
    """Evaluate an expression over arrays, block by block.

    Parameters
    ----------
    destination : path, Array or None
        The place of the result: a directory; or a ``.zip`` or an array file by its extension. None: memory. With
        `in_place`, the array that changes.
    expression : str
        In NumPy's notation: ``"where(a < 0, 0, a * 0.1 + b)"``; ``tessera help calc`` lists the functions. What
        :func:`reduce` computes may stand in it, with names of dimensions or parts of time: ``"t - mean(t, by=month)"``,
        ``"(t - mean(t, time)) / std(t, time)"``. Missing elements are left out there, and ``month`` is that of the year;
        ``year-month`` is each month of each year.
    operands : dict
        The arrays by their names in the expression: paths, open arrays, views of them (:attr:`Array.lazy`), or NumPy
        arrays. They are broadcast by the names of their dimensions; without names by position, as in NumPy.
    dtype, cast
        Convert the result; `cast` is ``"safe"``, ``"same_kind"``, ``"unsafe"``, ``"round"`` or ``"clip"``.
    overwrite : bool
        Replace an existing array or file.
    in_place : bool
        Change the elements of the array `destination`, which may be an operand, in one batch: all of them, or none if
        anything fails. Values of another dtype are converted to its dtype by `cast`. :func:`undo` takes it back.
    sel : str or basic index, optional
        Compute with this part alone, as in :func:`copy`: ``"time=2020-01"``; of each operand the items whose dimensions it
        has. With `in_place` an index: change only this part. The operands are still broadcast to the whole array.
    raw : bool
        Compute with the stored codes, not with what they stand for.
    threads, max_memory, progress
        As in :meth:`Array.read`.
    storage_options : dict, optional
        As in :func:`open`, for all places that are paths; what is open keeps its own.
    **options
        Options of the new array, as in :func:`copy`: chunks, codec, format, dims, …; by default the first operand's. Where
        operands are groups or files of several arrays, a result is made of each array, in a group or file that has the
        coordinates, too: `only` and `exclude` choose. In the short form ``calc(expression, a=…, b=…)``, whose result is
        in memory, the operands.

    Returns
    -------
    numpy.ndarray, DataSet or None
        The result, if `destination` is None; of groups and files of several arrays a :class:`DataSet`.

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
    >>> tessera.calc("a - mean(a, axis=1)", a="plain.npy")
    array([[-1.,  0.,  1.],
           [-1.,  0.,  1.]])
    >>> a = tessera.create("grid.zarr", shape=4, dtype="<i4", overwrite=True)
    >>> tessera.calc(a, "a + 5", {"a": a}, in_place=True, sel=slice(1, 3))
    >>> a[:]
    array([0, 5, 5, 0], dtype=int32)
    """
    if expression is None and isinstance(destination, str):  # calc(expression, a=…)
        destination, expression, operands, options = None, destination, options, {}
    if expression is None or operands is None:
        raise TypeError("calc: expected calc(destination, expression, operands) or calc(expression, a=…)")
    recipe = {"do": "calc", "expression": expression, "operands": operands, "raw": raw, "dtype": dtype, "overwrite": overwrite,
              "cast": cast if in_place or dtype is not None else None}
    if in_place:
        if destination is None or options or overwrite or dtype is not None:
            raise InvalidArgument("in_place: changes the elements of an array that is there; only sel and cast go with it")
        _calc_in_place(destination, recipe, sel, work(threads, max_memory, progress), max_memory)
        return None
    recipe["sel"] = sel
    if isinstance(destination, Array):
        raise InvalidArgument(f"{destination.path}: an open array; in_place=True changes its elements")
    made: Union[Values, DataSet, None] = _made(recipe, destination, work(threads, max_memory, progress), options)
    return made


@overload
def reduce(array: Group, destination: None = None, *, how: Reduction, axis: Union[None, int, str, Sequence[Union[int, str]]] = None,
           dims: Union[None, str, Sequence[str]] = None,
           by: Optional[Operand] = None, weights: Optional[Operand] = None, rolling: Union[None, str, Mapping[str, int]] = None,
           min_count: Optional[int] = None, center: bool = False, keepdims: bool = False, skip_nan: bool = False, keep_missing: bool = False, raw: bool = False, no_index: bool = False,
           **options: Unpack[SetOptions]) -> DataSet: ...
@overload
def reduce(array: Group, destination: Reduction, *, axis: Union[None, int, str, Sequence[Union[int, str]]] = None,
           dims: Union[None, str, Sequence[str]] = None,
           by: Optional[Operand] = None, weights: Optional[Operand] = None, rolling: Union[None, str, Mapping[str, int]] = None,
           min_count: Optional[int] = None, center: bool = False, keepdims: bool = False, skip_nan: bool = False, keep_missing: bool = False, raw: bool = False, no_index: bool = False,
           **options: Unpack[SetOptions]) -> DataSet: ...
@overload
def reduce(array: OneOperand, destination: Reduction, *, axis: Union[None, int, str, Sequence[Union[int, str]]] = None,
           dims: Union[None, str, Sequence[str]] = None,
           by: Optional[Operand] = None, weights: Optional[Operand] = None, rolling: Union[None, str, Mapping[str, int]] = None,
           min_count: Optional[int] = None, center: bool = False, keepdims: bool = False, skip_nan: bool = False, keep_missing: bool = False, raw: bool = False, no_index: bool = False,
           **options: Unpack[ResultOptions]) -> Values: ...
@overload
def reduce(array: OneOperand, destination: None = None, *, how: Reduction, axis: Union[None, int, str, Sequence[Union[int, str]]] = None,
           dims: Union[None, str, Sequence[str]] = None,
           by: Optional[Operand] = None, weights: Optional[Operand] = None, rolling: Union[None, str, Mapping[str, int]] = None,
           min_count: Optional[int] = None, center: bool = False, keepdims: bool = False, skip_nan: bool = False, keep_missing: bool = False, raw: bool = False, no_index: bool = False,
           **options: Unpack[ResultOptions]) -> Values: ...
@overload
def reduce(array: Operand, destination: Path, *, how: Reduction, axis: Union[None, int, str, Sequence[Union[int, str]]] = None,
           by: Optional[Operand] = None, weights: Optional[Operand] = None, rolling: Union[None, str, Mapping[str, int]] = None,
           min_count: Optional[int] = None, center: bool = False, keepdims: bool = False, skip_nan: bool = False, keep_missing: bool = False, raw: bool = False, no_index: bool = False,
           **options: Unpack[NewResultOptions]) -> None: ...
@over_network
def reduce(array: Operand, destination: Optional[Path] = None, *, how: Optional[Reduction] = None, axis: Union[None, int, str, Sequence[Union[int, str]]] = None,
           by: Optional[Operand] = None, weights: Optional[Operand] = None, rolling: Union[None, str, Mapping[str, int]] = None,
           min_count: Optional[int] = None, center: bool = False, keepdims: bool = False, skip_nan: bool = False, keep_missing: bool = False, raw: bool = False, no_index: bool = False, dtype: DTypeLike = None, cast: str = "same_kind", sel: object = None,
           overwrite: bool = False, threads: int = 0, max_memory: Union[int, str] = 0, progress: ProgressCallback = None,
           storage_options: Remote = None, **options: Unpack[ComputedOptions]) -> Union[Values, DataSet, None]:
    """Minimum, mean, median and so on along dimensions, block by block.

    Parameters
    ----------
    array : path, Array, View, Group or numpy.ndarray
        Of a group or a file of several arrays, each that has the dimensions is reduced; the others are copied. Without a
        destination the result is a :class:`DataSet` then.
    destination, dtype, cast, overwrite, threads, max_memory, progress, storage_options, **options
        As in :func:`calc`, and `sel`: compute with this part alone. Without `how`, the second argument is that:
        ``reduce(a, "mean")``.
    how : {"min", "max", "sum", "mean", "std", "var", "count", "argmin", "argmax", "any", "all", "median", "p95"}
        A percentile is "p" and a number from 0 to 100, such as "p2.5": NumPy's linear method, exact in any memory.
    axis : int, str or a tuple of them, optional
        The dimensions to reduce, by number or name; by default all. `dims` is the same.
    by : {"year", "month", "month-of-year", "day-of-year", "hour-of-day", "season"} or array, optional
        A result for each group of indices along one axis: by the calendar of its coordinate, or by an array of labels.
        "month" is each month of each year, as "year-month", which :func:`calc` has, too.
    weights : "area", name of a dimension, or array, optional
        How much each element counts in a mean, sum, std or var: the area of its cell on the earth; the cosine of the
        dimension's coordinate in degrees (``"latitude"``); or an array, or its path, that has some of the reduced
        dimensions. Missing elements have no weight. A path without extension begins with ``./``.
    rolling : dict or str, optional
        In place of `axis`: the reduction of each window of a length along a dimension, ``{"time": 30}``, at its last
        element; the result has the array's shape. A window is missing if fewer than `min_count` elements (by default
        all) are in it that are not missing; with `center`, windows lie around their elements: xarray's ``rolling``.
    keepdims : bool
        Whether to keep them with length 1.
    keep_missing : bool
        A missing element, NaN or NaT makes its result missing; else it is left out (`skip_nan`, the default).
    raw : bool
        Compute with the stored codes, not with what they stand for.
    no_index : bool
        Read all, whatever the index of chunks says (``tessera index``).

    Examples
    --------
    >>> np.save("plain.npy", np.arange(6).reshape(2, 3))
    >>> tessera.reduce("plain.npy", how="mean", axis=0)
    array([1.5, 2.5, 3.5])
    """
    if how is None:
        if not isinstance(destination, str):
            raise TypeError('reduce(): how: expected such as "mean": reduce(a, "mean") or reduce(a, "new.zarr", how="mean")')
        how, destination = destination, None  # type: ignore[assignment]
    if axis is None and by is None and rolling is None and not keepdims:
        named: Any = options.pop("dims", None)  # as xarray calls it: the result has no dimensions to be named
        axis = named
    if isinstance(axis, (tuple, list)) and not axis:
        raise InvalidArgument("axis=(): no dimension is named")
    recipe = {"do": "reduce", "array": array, "how": how, "axis": axis, "by": by, "weights": weights, "rolling": rolling,
              "min_count": min_count, "center": center, "keepdims": keepdims, "skip_nan": skip_nan,
              "keep_missing": keep_missing, "raw": raw, "no_index": no_index, "dtype": dtype, "cast": None if dtype is None else cast, "sel": sel, "overwrite": overwrite}
    made: Union[Values, DataSet, None] = _made(recipe, destination, work(threads, max_memory, progress), options)
    return made


@overload
def coarsen(array: Group, destination: None = None, *, by: object, how: Coarsening = "mean",
            keep_missing: bool = False, raw: bool = False, **options: Unpack[SetOptions]) -> DataSet: ...
@overload
def coarsen(array: OneOperand, destination: None = None, *, by: object, how: Coarsening = "mean",
            keep_missing: bool = False, raw: bool = False, **options: Unpack[ResultOptions]) -> Values: ...
@overload
def coarsen(array: Operand, destination: Path, *, by: object, how: Coarsening = "mean",
            keep_missing: bool = False, raw: bool = False, **options: Unpack[NewResultOptions]) -> None: ...
@over_network
def coarsen(array: Operand, destination: Optional[Path] = None, *, by: object, how: Coarsening = "mean",
            keep_missing: bool = False, raw: bool = False, dtype: DTypeLike = None, cast: str = "same_kind", sel: object = None, overwrite: bool = False, threads: int = 0, max_memory: Union[int, str] = 0,
            progress: ProgressCallback = None, storage_options: Remote = None, **options: Unpack[ComputedOptions]) -> Union[Values, DataSet, None]:
    """Downsample by whole factors: one element for each block.

    Parameters
    ----------
    array : path, Array, View, Group or numpy.ndarray
    destination, dtype, cast, overwrite, threads, max_memory, progress, storage_options, **options
        As in :func:`calc`.
    by : tuple of int or dict
        The lengths of a block; blocks at the ends may be smaller. A dict names dimensions: ``{"lat": 4}``.
    how : {"mean", "max", "min", "mode", "nearest"}
        Means of integers are rounded half to even.
    keep_missing, raw
        As in :func:`reduce`.

    Examples
    --------
    >>> np.save("plain.npy", np.arange(6).reshape(2, 3))
    >>> tessera.coarsen("plain.npy", by=(2, 2), how="max")
    array([[4, 5]])
    """
    recipe = {"do": "coarsen", "array": array, "by": by, "how": how, "keep_missing": keep_missing, "raw": raw, "dtype": dtype,
              "cast": None if dtype is None else cast, "sel": sel, "overwrite": overwrite}
    made: Union[Values, DataSet, None] = _made(recipe, destination, work(threads, max_memory, progress), options)
    return made


@overload
def regrid(array: Operand, destination: None = None, *, like: Optional[Operand] = None, to: Optional[str] = None,
           method: str = "bilinear", **options: Unpack[ResultOptions]) -> Values: ...
@overload
def regrid(array: Operand, destination: Path, *, like: Optional[Operand] = None, to: Optional[str] = None,
           method: str = "bilinear", **options: Unpack[NewResultOptions]) -> None: ...
@over_network
def regrid(array: Operand, destination: Optional[Path] = None, *, like: Optional[Operand] = None, to: Optional[str] = None,
           method: str = "bilinear", dtype: DTypeLike = None, cast: str = "same_kind", sel: object = None, overwrite: bool = False, threads: int = 0,
           max_memory: Union[int, str] = 0, progress: ProgressCallback = None,
           storage_options: Remote = None, **options: Unpack[ComputedOptions]) -> Union[Values, DataSet, None]:
    """Interpolate to other latitudes and longitudes.

    Parameters
    ----------
    array : path, Array, View or Group
        It has latitudes and longitudes along two dimensions, whose coordinates lie beside it. Of a group or a file of
        several arrays, each that has both is interpolated, and the others are copied.
    destination, dtype, cast, overwrite, threads, max_memory, progress, storage_options, **options
        As in :func:`calc`. A destination in a group, and a netCDF or HDF5 file, gets the new coordinates.
    like : path, Array or Group, optional
        The array whose latitudes and longitudes the result gets, or a group or file of one grid.
    to : str, optional
        Or these, with both ends and a step: ``"lat=-90:90:1,lon=0:359:1"``.
    method : {"bilinear", "nearest", "conservative"}
        Missing elements are as in CDO's remapbil, remapnn and remapcon: `bilinear` needs all four neighbours, and
        `conservative` is the mean of the cells that are there, by the areas in common.

    Examples
    --------
    >>> g = tessera.create_group("earth.zarr")
    >>> for name, values in (("lat", [0.0, 10.0]), ("lon", [0.0, 10.0, 20.0]), ("t", [[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]])):
    ...     tessera.save(f"earth.zarr/{name}", np.array(values), dims=["lat", "lon"] if name == "t" else [name])
    >>> tessera.regrid("earth.zarr/t", to="lat=0:10:5,lon=5:15:10")
    array([[ 0.5,  1.5],
           [ 5.5,  6.5],
           [10.5, 11.5]])
    """
    recipe = {"do": "regrid", "array": array, "like": like, "to": to, "method": method, "dtype": dtype,
              "cast": None if dtype is None else cast, "sel": sel, "overwrite": overwrite}
    made: Union[Values, DataSet, None] = _made(recipe, destination, work(threads, max_memory, progress), options)
    return made


def _join(arrays: Sequence[Operand], destination: Optional[Path], axis: Union[int, str], new_axis: bool, dtype: DTypeLike,
          cast: str, overwrite: bool, running: _tessera.WorkOptions, options: Mapping[str, object]) -> Union[Values, DataSet, None]:
    given = [arrays] if isinstance(arrays, (str, bytes, os.PathLike, Array)) else arrays
    recipe = {"do": "join", "arrays": list(given), "axis": axis, "new_axis": new_axis, "dtype": dtype,
              "cast": None if dtype is None else cast, "overwrite": overwrite}
    made: Union[Values, DataSet, None] = _made(recipe, destination, running, options)
    return made


@overload
def stack(arrays: Sequence[Operand], destination: None = None, *, axis: int = 0,
          **options: Unpack[JoinedOptions]) -> Values: ...
@overload
def stack(arrays: Sequence[Operand], destination: Path, *, axis: int = 0,
          **options: Unpack[NewJoinedOptions]) -> None: ...
@over_network_of_node
def stack(arrays: Sequence[Operand], destination: Optional[Path] = None, *, axis: int = 0, dtype: DTypeLike = None,
          cast: str = "same_kind", overwrite: bool = False, threads: int = 0, max_memory: Union[int, str] = 0,
          progress: ProgressCallback = None, storage_options: Remote = None, **options: Unpack[JoiningOptions]) -> Union[Values, DataSet, None]:
    """Join arrays of one shape and dtype along a new axis, like numpy.stack.

    Parameters
    ----------
    arrays : list of paths, Arrays, NumPy arrays or Groups
        All are checked before anything is written; one that does not fit is refused by name. A pattern (``"day-*.npy"``)
        stands for what matches it, in the order of the numbers in the names: day-2 before day-10.
        Packed numbers and times become codes of the first one's packing, units and calendar, where that loses nothing;
        ``cf="decode"`` joins what they stand for.
    destination, dtype, cast, overwrite, threads, max_memory, progress, storage_options, **options
        As in :func:`calc`, and `cf`, `keep_bits`, `max_error`, `where`, `points`, `header`, `missing` and `reverse_dims` as
        in :func:`copy`. ``as_given=True`` keeps the order of the names as text.
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


@overload
def concat(arrays: Sequence[Operand], destination: None = None, *, axis: Union[int, str] = 0,
           **options: Unpack[JoinedOptions]) -> Values: ...
@overload
def concat(arrays: Sequence[Operand], destination: Path, *, axis: Union[int, str] = 0,
           **options: Unpack[NewJoinedOptions]) -> None: ...
@over_network_of_node
def concat(arrays: Sequence[Operand], destination: Optional[Path] = None, *, axis: Union[int, str] = 0, dtype: DTypeLike = None,
           cast: str = "same_kind", overwrite: bool = False, threads: int = 0, max_memory: Union[int, str] = 0,
           progress: ProgressCallback = None, storage_options: Remote = None, **options: Unpack[JoiningOptions]) -> Union[Values, DataSet, None]:
    """Join arrays along an existing axis, by number or name, like numpy.concatenate; otherwise as :func:`stack`.

    Examples
    --------
    >>> np.save("plain.npy", np.arange(3))
    >>> tessera.concat(["plain.npy", "plain.npy"], "twice.zarr", chunks=2, overwrite=True)
    >>> tessera.load("twice.zarr")
    array([0, 1, 2, 0, 1, 2])
    """
    return _join(arrays, destination, axis, False, dtype, cast, overwrite, work(threads, max_memory, progress), options)


@over_network
def unstack(array: Union[Path, Array, Group], pattern: str, *, axis: Union[int, str] = 0, overwrite: bool = False,
            resume: bool = False, **options: Unpack[StepOptions]) -> list[str]:
    """Write each step along an axis as a file or an array of its own; the reverse of :func:`stack`.

    Parameters
    ----------
    array : path, Array or Group
        Of a group or a file of several arrays, each step is one, too: a copy of one index of the dimension, with the
        arrays that do not have it.
    pattern : str
        Their names, with ``{}`` for the number: ``"frames/frame-{}.npy"``. All numbers have as many digits as the last.
    axis : int or str
        The dimension to split, by number or name; of several arrays by name.
    overwrite : bool
        Replace existing ones, one after the other. Without it, no name may exist, and a failure leaves none behind.
    resume : bool
        Continue: keep files that hold their step already, which is compared, and keep the finished ones after a failure.
    **options
        Options of :func:`copy` for each step: chunks, codec, format, deflate, storage_options, …

    Returns
    -------
    list of str
        The paths.

    Examples
    --------
    >>> np.save("plain.npy", np.arange(6).reshape(2, 3))
    >>> [path[-10:] for path in tessera.unstack("plain.npy", "steps/step-{}.npy", axis=1)]
    ['step-0.npy', 'step-1.npy', 'step-2.npy']
    """
    asked, running = without_work({"do": "copy", "array": array, "overwrite": overwrite, "resume": resume, **options})
    place = _tessera.PlaceOptions(False, break_seal=asked.pop("break_seal", False))
    if "fill_value" in asked:
        if isinstance(array, Group):
            raise InvalidArgument(f"{array.path}: fill_value is of one array, and this holds several")
        opened = array if isinstance(array, Array) else open_array(array, max_memory=options.get("max_memory", 0))
        asked["fill_value"] = json_fill(asked["fill_value"], opened.dtype)
    paths: list[str]
    paths, notes = _tessera.unstack(asked, absolute(pattern), axis, place, running)
    for note in notes:
        warn(note)
    return paths


@over_network
def pyramid(array: Operand, destination: Path, *, by: Union[int, Sequence[int]] = 2, levels: Optional[int] = None,
            how: Coarsening = "mean", keep_missing: bool = False, raw: bool = False, axes: Optional[Sequence[str]] = None, scale: Optional[Sequence[float]] = None,
            units: Optional[Sequence[Optional[str]]] = None, format: Optional[str] = None, ome: Optional[str] = None,
            geo: bool = False, crs: Optional[str] = None, transform: Optional[Sequence[float]] = None, overwrite: bool = False,
            dry_run: bool = False, threads: int = 0, max_memory: Union[int, str] = 0,
            progress: ProgressCallback = None, storage_options: Remote = None, **options: Unpack[LevelOptions]) -> Optional[list[str]]:
    """Make an OME-Zarr image: a new group with the array, its overviews and multiscales metadata.

    Parameters
    ----------
    array : path, Array, View or numpy.ndarray
    destination : path
        A directory that does not exist yet, or a ``.zip``.
    by : int or tuple of int
        The factor between levels, for the spatial dimensions; or one factor for each dimension.
    levels : int, optional
        The number of levels, the first included; by default until no dimension that shrinks is longer than 256.
    how : {"mean", "max", "min", "mode", "nearest"}
    keep_missing, raw
        As in :func:`reduce`. Levels are packed as the array is.
    axes : sequence of str, optional
        Names of the dimensions: ``"t"``, ``"c"``, ``"z"``, ``"y"``, ``"x"``; by default the array's own, if they are
        among these, else the last of these.
    scale, units : sequences, optional
        Distances between neighbours in the first level, and their units (``"micrometer"``).
    format : {"v3", "v2"}
        OME-NGFF 0.5 or 0.4; by default what `ome` needs, else v3.
    ome : {"0.4", "0.5", "0.6"}, optional
        The version of OME-Zarr: 0.4 in v2, 0.5 (the default) and 0.6 (0.6rc0) in v3.
    geo : bool
        GeoZarr's metadata (multiscales, spatial, proj) in place of OME-Zarr's; both with `ome`. The array has a
        georeference, as from GeoTIFF, or the next two say one.
    crs : str, optional
        The coordinate reference system: ``"EPSG:4326"``, or WKT2, or PROJJSON.
    transform : sequence of six floats, optional
        a, b, c, d, e, f: x = a * column + b * row + c, y = d * column + e * row + f.
    overwrite : bool
        Replace the levels of a pyramid that is there. A level more than the new one has is refused.
    dry_run : bool
        Only say what would be made.
    threads, max_memory, progress
        As in :meth:`Array.read`.
    storage_options : dict, optional
        As in :func:`calc`.
    **options
        Options of the arrays, as in :func:`copy`: chunks, codec, fill_value.

    Returns
    -------
    list of str or None
        With `dry_run`: a sentence for each level.

    Examples
    --------
    >>> tessera.pyramid(np.zeros((600, 500), "u2"), "image.ome.zarr", scale=(0.5, 0.5), units=("micrometer",) * 2)
    >>> [tessera.open(f"image.ome.zarr/{level}").shape for level in range(3)]
    [(600, 500), (300, 250), (150, 125)]
    """
    unknown = sorted(options.keys() - LevelOptions.__annotations__.keys())
    if unknown:
        raise TypeError(f"unexpected argument {unknown[0]!r}; of the arrays there are: {', '.join(LevelOptions.__annotations__)}")
    opened = array if isinstance(array, (Array, View, np.ndarray)) else open_array(_place_of(array), max_memory=max_memory)
    asked: Document = {
             "do": "pyramid", "array": opened, "by": by, "levels": levels, "how": how, "keep_missing": keep_missing,
             "raw": raw, "axes": axes, "scale": scale, "units": units, "ome": ome, "geo": geo or crs is not None or transform is not None, "crs": crs,
             "transform": transform, "format": format or ("v2" if ome == "0.4" else "v3"), "overwrite": overwrite,
             "dry_run": dry_run, **options}
    if "fill_value" in asked:
        asked["fill_value"] = json_fill(asked["fill_value"], opened.dtype)
    said: list[str] = _tessera.pyramid(asked, new_place(destination, file=False), work(threads, max_memory, progress))
    return said if dry_run else None
