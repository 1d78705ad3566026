"""Views of arrays: parts that are composed without reading, and read when their elements are asked for."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any, Iterator, Optional, Sequence, Union

import numpy as np

from . import _tessera
from ._arrow import Columns
from ._errors import InvalidArgument, Unsupported
from ._indexing import Converted, Decoded, Indexable, broadcast, require_copy, split_fields
from ._picture import selection_text
from ._types import DType, DTypeLike, Values

if TYPE_CHECKING:
    from ._attrs import Attributes

# Names of dimensions that a selection takes without quotes.
_NAME = re.compile(r"[A-Za-z_]\w*")
# What a view takes along a dimension of its array.
Taken = Union[int, range, Values]


def _as_slice(taken: range) -> slice:
    if not taken:
        return slice(0, 0)
    end = taken[-1] + (1 if taken.step > 0 else -1)
    return slice(taken.start, None if end < 0 else end, taken.step)


def _composed(taken: Taken, index: Any, axis: int) -> Taken:
    """What `index` picks of what is taken already."""
    assert not isinstance(taken, int)
    if isinstance(index, slice):
        return taken[index]
    picked = np.asarray(index)
    if picked.dtype == bool:
        if picked.shape != (len(taken),):
            raise IndexError(f"boolean index did not match indexed array along axis {axis}; size of axis is {len(taken)} "
                             f"but size of corresponding boolean axis is {picked.size}")
        picked = np.flatnonzero(picked)
    if picked.size == 0:
        picked = picked.astype(np.int64)
    if picked.dtype.kind not in "iu" or picked.ndim > 1:
        raise IndexError(f"lazy takes integers, slices, `...`, and a list or mask of one dimension; found {index!r}")
    outside = picked[(picked < -len(taken)) | (picked >= len(taken))]
    if outside.size:
        raise IndexError(f"index {outside.flat[0]} is out of bounds for axis {axis} with size {len(taken)}")
    places: Values = np.asarray(taken, np.int64)[picked]
    return int(places) if picked.ndim == 0 else places


def _expanded(key: object, ndim: int) -> tuple[list[Any], int]:
    """An index for each dimension, and before which an ellipsis of none stands, which sets lists apart in NumPy."""
    given = list(key) if isinstance(key, tuple) else [key]
    at = [number for number, index in enumerate(given) if index is Ellipsis]
    if len(at) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if any(index is None for index in given):
        raise IndexError("lazy takes no np.newaxis: a view has the array's dimensions")
    if len(given) - len(at) > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {len(given) - len(at)} were indexed")
    missing = [slice(None)] * (ndim - len(given) + len(at))
    place = at[0] if at else len(given)
    return given[:place] + missing + given[place + len(at):], ndim if missing or not at else place


class View(Columns):
    """A part of an array, by :attr:`Array.lazy` and :attr:`Array.T`: composed without reading anything.

    Keys read and assign elements as those of an array do, by NumPy's rules, through the array; ``lazy`` composes further.
    It pickles as the array and what is taken of it. :func:`calc`, :func:`reduce`, :func:`coarsen`, :func:`regrid`,
    :func:`stats`, :func:`copy` and others take it for an array where slices, integers, one field and names of dimensions
    in another order made it.

    Examples
    --------
    >>> a = tessera.create("grid.zarr", data=np.arange(24).reshape(4, 6), overwrite=True)
    >>> view = a.lazy[::2, 1:5].T
    >>> view.shape, view[0], view.lazy[-1][:]
    ((4, 2), array([ 1, 13]), array([ 4, 16]))
    >>> view[1] = -1
    >>> a[0]
    array([ 0,  1, -1,  3,  4,  5])
    """

    def __init__(self, array: Indexable, taken: Sequence[Taken], order: Sequence[int], fields: Any = None):
        self._array = array
        self._taken = tuple(taken)
        self._order = tuple(order)
        self._fields = fields

    @staticmethod
    def _whole(array: Indexable) -> "View":
        return View(array, [range(length) for length in array.shape], range(array.ndim))

    def __reduce__(self) -> tuple[object, ...]:
        return View, (self._array, self._taken, self._order, self._fields)

    # ---- what it is

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths."""
        return tuple(len(self._taken[axis]) for axis in self._order)  # type: ignore[arg-type]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._order)

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for length in self.shape:
            size *= length
        return size

    @property
    def dtype(self) -> DType:
        """The dtype of the elements, of fields where these were taken."""
        if self._fields is None:
            return self._array.dtype
        of_fields: DType = np.empty(0, self._array.dtype)[self._fields].dtype
        return of_fields

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, decoded."""
        return self.size * self.dtype.itemsize

    @property
    def chunks(self) -> Optional[tuple[int, ...]]:
        """The lengths of blocks that suit reading; None for a plain file."""
        stored = self._array.chunks
        if stored is None:
            return None
        steps = [abs(taken.step) if isinstance(taken, range) else 1 for taken in self._taken]
        return tuple(max(1, min(-(-stored[axis] // steps[axis]), length)) for axis, length in zip(self._order, self.shape))

    @property
    def dims(self) -> Optional[tuple[Optional[str], ...]]:
        """The names of the dimensions."""
        names = self._array.dims
        return None if names is None else tuple(names[axis] for axis in self._order)

    @property
    def attrs(self) -> "Attributes":
        """The attributes of the array."""
        return self._array.attrs

    @property
    def fill_value(self) -> Any:
        """The value of elements that were never written."""
        fill = self._array.fill_value
        return fill if fill is None or self._fields is None else fill[self._fields]

    def __len__(self) -> int:
        if not self._order:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<tessera.View {self.shape} {self.dtype} of {self._array!r}>"

    # ---- composing

    @property
    def lazy(self) -> "Lazy":
        """Views of this view: ``view.lazy[key]``."""
        return Lazy(self)

    @property
    def T(self) -> "View":
        """The dimensions in reverse."""
        return View(self._array, self._taken, self._order[::-1], self._fields)

    def transpose(self, *axes: Any) -> "View":
        """The dimensions in another order, as in NumPy: ``view.transpose(1, 0)``."""
        given = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        if not given or given == (None,):
            return self.T
        numbers = [axis + self.ndim if axis < 0 else axis for axis in given]
        if sorted(numbers) != list(range(self.ndim)):
            raise ValueError(f"axes {tuple(given)} are no order of {self.ndim} dimensions")
        return View(self._array, self._taken, [self._order[axis] for axis in numbers], self._fields)

    def _of_fields(self, fields: Any) -> "View":
        if self._fields is not None and isinstance(self._fields, str):
            raise IndexError(f"the field {self._fields!r} is taken already")
        kept = np.empty(0, self.dtype)[fields]  # the errors of unknown names
        if kept.ndim > 1:
            raise Unsupported(f"the field {fields!r} has dimensions of its own: read it, array[{fields!r}]")
        return View(self._array, self._taken, self._order, fields)

    def _composed(self, key: object) -> "View":
        fields, key = split_fields(key)
        if fields is not None:
            return self._of_fields(fields)._composed(key)
        indices, gap = _expanded(key, self.ndim)
        taken, order = list(self._taken), list(self._order)
        lists, dropped = [], []
        for place, (axis, index) in enumerate(zip(self._order, indices)):
            if isinstance(index, (bool, np.bool_)):
                raise IndexError(f"lazy takes no {index}: a view has the array's dimensions")
            taken[axis] = _composed(taken[axis], index, place)
            if isinstance(taken[axis], int):
                order.remove(axis)
                dropped.append(place + (place >= gap))
            elif not isinstance(index, slice):
                lists.append((place + (place >= gap), axis))
        if len(lists) > 1:
            raise IndexError("two lists pick points in NumPy; lazy[list].lazy[:, list] takes the rows and columns of a grid")
        if lists:  # as NumPy orders dimensions where integers and a list are apart
            places = sorted([lists[0][0], *dropped])
            if places[-1] - places[0] >= len(places):
                order.remove(lists[0][1])
                order.insert(0, lists[0][1])
        return View(self._array, taken, order, self._fields)

    # ---- elements

    def _is_plain(self) -> bool:
        return not any(isinstance(taken, np.ndarray) for taken in self._taken)

    def _key(self) -> tuple[Any, ...]:
        """The key of the array, its dimensions in their own order."""
        key = tuple(_as_slice(taken) if isinstance(taken, range) else taken for taken in self._taken)
        return key if self._fields is None else (self._fields, *key)

    def _axes(self) -> list[int]:
        """Of each dimension, its place among those that the array's own key leaves."""
        kept = sorted(self._order)
        return [kept.index(axis) for axis in self._order]

    def _read(self) -> Any:
        values = self._array[self._key()] if self._is_plain() else self._array.oindex[self._key()]
        return np.transpose(values, self._axes()) if self._order != tuple(sorted(self._order)) else values

    def _write(self, value: Any) -> None:
        if self._order != tuple(sorted(self._order)) and np.ndim(value) > 0:
            value = np.transpose(broadcast(np.asarray(value), self.shape), np.argsort(self._axes()))
        if self._is_plain():
            self._array[self._key()] = value
        else:
            self._array.oindex[self._key()] = value

    def _points(self, key: Any) -> tuple[Any, ...]:
        """Of a key that does not compose, the places in the array."""
        grid = []
        for axis, taken in enumerate(self._taken):
            if isinstance(taken, int):
                grid.append(np.broadcast_to(np.int64(taken), self.shape)[key])
                continue
            along = [1] * self.ndim
            along[self._order.index(axis)] = len(taken)
            grid.append(np.broadcast_to(np.asarray(taken, np.int64).reshape(along), self.shape)[key])
        return tuple(grid) if self._fields is None else (self._fields, *grid)

    def _part(self, key: Any) -> Optional["View"]:
        """The view that a key composes; None for any other key that NumPy takes."""
        try:
            return self._composed(key)
        except IndexError:
            np.broadcast_to(np.int8(0), self.shape)[key]  # NumPy's own error, of what is no key
            return None

    def __getitem__(self, key: object) -> Any:
        part = self._part(key)
        return self._array.vindex[self._points(key)] if part is None else part._read()

    def __setitem__(self, key: object, value: object) -> None:
        part = self._part(key)
        if isinstance(value, View):
            value = value[...]
        if part is None:
            places = self._points(key)
            self._array.vindex[places] = value
        else:
            part._write(value)

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in range(len(self)))

    def __array__(self, dtype: DTypeLike = None, copy: Optional[bool] = None) -> Values:
        require_copy(copy)
        values = np.asarray(self[...])
        return values if dtype is None else np.asarray(self._astype(values, dtype))

    def __dlpack__(self, **options: Any) -> Any:
        """The elements, read into memory; see :meth:`Array.__dlpack__`."""
        values = np.asarray(self[...])
        return values.astype(values.dtype.newbyteorder("="), copy=False).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the processor's memory

    def _arrow_source(self) -> Any:
        return self.decoded if self._fields is None else self

    @property
    def _handle(self) -> Any:
        return self._array._handle

    def _astype(self, values: Values, dtype: DTypeLike) -> Any:
        return self._array._astype(values, dtype)

    def astype(self, dtype: DTypeLike) -> Converted:
        """The same view with its elements converted when they are read."""
        return Converted(self, dtype)

    @property
    def decoded(self) -> Decoded:
        """The same view by what its elements stand for; see :attr:`Array.decoded`."""
        if self._fields is not None:
            raise Unsupported("fields have no conventions by which elements stand for something else")
        return Decoded(self)

    def to_dask(self, chunks: object = "auto") -> Any:
        """A dask array of the view's elements, read block by block when it is computed; `chunks` as in dask."""
        return importlib.import_module("dask.array").from_array(self, chunks=chunks, meta=np.empty((0,) * self.ndim, self.dtype))

    def __dask_tokenize__(self) -> object:
        array: Any = self._array
        return "tessera.View", array.__dask_tokenize__(), [np.asarray(taken).tolist() if isinstance(taken, np.ndarray) else repr(taken)
                                                                 for taken in self._taken], self._order, self._fields

    def _source(self) -> tuple[Any, tuple[Any, ...]]:
        """An array and its key, for copies and jobs."""
        if self._order != tuple(sorted(self._order)) or self._fields is not None:
            return self._as_array(), ()
        self._require_slices()
        return self._array, self._key()

    def _selection(self) -> tuple[Any, str]:
        """The array and the selection as text, for what opens the array by its path."""
        if self._order != tuple(sorted(self._order)) or self._fields is not None:
            raise InvalidArgument("a view of fields, or of dimensions in another order, is no source of a job, whose processes open the "
                                  "array by its path: `dims` of the result puts dimensions into another order, and tessera.copy(view, "
                                  "path) makes an array of the view")
        return self._array, self._text()

    def _text(self) -> str:
        """What is taken of the array, as the library reads it; by names where there are some, which its coordinates share."""
        self._require_slices()
        key = [_as_slice(taken) if isinstance(taken, range) else taken for taken in self._taken]
        names = self._array.dims or (None,)
        if len(set(names)) < self._array.ndim or not all(name and _NAME.fullmatch(name) for name in names):
            return selection_text(tuple(key))
        whole = [isinstance(taken, range) and taken == range(length) for taken, length in zip(self._taken, self._array.shape)]
        return ", ".join(f"{name}@{selection_text(part)}" for name, part, all_of in zip(names, key, whole) if not all_of)

    def _require_slices(self) -> None:
        if not self._is_plain():
            raise InvalidArgument("a view by lists or masks is read by its keys, and is no source of what is computed or copied: "
                                  "tessera.save(path, view) writes its elements first")

    def _as_array(self) -> Any:
        """The view as an array that is only read, and lies nowhere, for what takes arrays: without reading elements."""
        text = self._text()
        if not isinstance(self._fields, (str, type(None))):
            raise InvalidArgument(f"a view of the fields {self._fields!r} is no source of what is computed or copied: take one "
                                  "field, or tessera.save(path, view) writes its elements first")
        names = list(self.dims or [None] * self.ndim) if self._order != tuple(sorted(self._order)) else []
        if None in names or len(set(names)) < len(names):
            raise InvalidArgument("dimensions without names of their own have no other order where something is computed or copied: "
                                  "name them (array.dims = …), or tessera.save(path, view) writes the elements first")
        array: Any = self._array
        handle = _tessera.part_of_array(array._handle, self._fields, text, names)
        return importlib.import_module("tessera._array").Array(handle, "", "r", {})


class Lazy:
    """Makes views; see :attr:`Array.lazy`."""

    def __init__(self, view: View):
        self._view = view

    def __getitem__(self, key: object) -> View:
        return self._view._composed(key)
