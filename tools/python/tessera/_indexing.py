"""Reading and assigning by keys beyond basic ones; and the conversion of assigned values."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any, Callable, Iterator

import numpy as np

from ._errors import InvalidArgument
from ._picks import Box, Picks, is_full_mask, masked

if TYPE_CHECKING:
    from ._array import Array

# Elements that are asked for at once: each takes a kilobyte of the library's memory meanwhile.
_POINTS = 1 << 16
# Bytes of boxes that are read at once.
_BOXES = 64 << 20


def not_basic(key: Any) -> IndexError:
    """The error for a key that is not basic, where only such a key is possible."""
    text = repr(key)
    return IndexError("only integers, slices (`:`), ellipsis (`...`) and None are valid indices here, found "
                      + (text if len(text) <= 60 else text[:57] + "..."))


def require_fields(array: "Array", fields: Any) -> None:
    """Raises as NumPy does for fields that the elements do not have, before anything is read."""
    np.empty(0, array._dtype)[fields]


def read_only(path: str) -> Exception:
    """The error for changing a node that was opened for reading."""
    return InvalidArgument(f'{path}: was opened for reading; tessera.open(path, "r+") can change it')


def split_fields(key: Any) -> tuple[Any, Any]:
    """The names of fields in a key, and the rest of it: ``a["x"]``, ``a[["x", "y"]]``, ``a["x", 0]``."""
    if isinstance(key, str) or (isinstance(key, list) and key and all(isinstance(k, str) for k in key)):
        return key, ...
    if isinstance(key, tuple):
        names = [k for k in key if isinstance(k, str)]
        if names:
            return names[0] if len(names) == 1 else names, tuple(k for k in key if not isinstance(k, str))
    return None, key


def broadcast(values: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """As an assignment broadcasts: leading dimensions of 1 may be too many."""
    if values.shape == shape:
        return values
    stripped = values
    while stripped.ndim > len(shape) and stripped.shape[0] == 1:
        stripped = stripped[0, ...]
    try:
        return np.broadcast_to(stripped, shape)
    except ValueError:
        text = ",".join(map(str, values.shape)) + ("," if values.ndim == 1 else "")
        wanted = ",".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        raise ValueError(f"could not broadcast input array from shape ({text}) into shape ({wanted})") from None


_HERE = os.path.dirname(__file__)
_WARNING = threading.Lock()


def _callers_level() -> int:
    """The `stacklevel`, for a function that calls this one, of the line outside of this package."""
    frame: Any = sys._getframe(1)
    level = 1
    while frame is not None and os.path.dirname(frame.f_code.co_filename) == _HERE:
        frame, level = frame.f_back, level + 1
    return level


def _beyond(value: Any, dtype: np.dtype[Any]) -> bool:
    """Whether Python integers are too large for a dtype of integers, of which NumPy warns."""
    if dtype.kind not in "iu" or not isinstance(value, (int, list, tuple)):
        return False
    known = np.asarray(value)
    bounds = np.iinfo(dtype)
    return known.dtype.kind in "iu" and known.size > 0 and bool(known.min() < bounds.min or known.max() > bounds.max)


def _assign(into: np.ndarray[Any, Any], key: Any, value: Any) -> None:
    """``into[key] = value``, with NumPy's warning about integers at the line that the value is from."""
    if not _beyond(value, into.dtype):
        into[key] = value
        return
    with _WARNING, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        into[key] = value
    for text in dict.fromkeys((str(warning.message), warning.category) for warning in caught):
        warnings.warn(text[0], text[1], stacklevel=_callers_level())


def can_cast(values: Any, dtype: np.dtype[Any], casting: Any) -> bool:
    """Whether a rule allows a cast: of a single number by its value, as in NumPy 1, of an array by its dtype."""
    if values.ndim or values.dtype.kind not in "biufc":
        return np.can_cast(values.dtype, dtype, casting)
    least = [np.min_scalar_type(values[()])]
    if values.dtype.kind in "iu" and values >= 0:
        least.append(np.min_scalar_type(-int(values) - 1))  # which 7 fits into, too
    return any(np.can_cast(one, dtype, casting) for one in least)


def padding_named(value: Any, dtype: np.dtype[Any]) -> Any:
    """A structure with padding as one of `dtype`, in which a format has made that padding the fields f1, f2, …"""
    if not dtype.names or not isinstance(value, (np.ndarray, np.void)) or not value.dtype.names:
        return value
    if value.dtype.hasobject or value.dtype == dtype or value.dtype.itemsize != dtype.itemsize:
        return value
    try:
        named = np.dtype(value.dtype.descr)  # "" as the name of padding becomes f1 there, too
    except ValueError:  # fields overlap, or a name is taken
        return value
    return value.view(named) if named.names == dtype.names else value  # NumPy casts field by field


def stored(value: Any, dtype: np.dtype[Any], shape: tuple[int, ...], element: bool) -> np.ndarray[Any, Any]:
    """A value as NumPy would store it in an array of this dtype and shape."""
    value = padding_named(value, dtype)
    if element:
        one = np.empty(1, dtype)
        _assign(one, 0, value)
        return one.reshape(())
    if type(value) is np.ndarray and value.dtype == dtype and dtype != object:
        return broadcast(value, shape)
    # In the value's own shape where that is known: a scalar for a large region takes no memory.
    if isinstance(value, (np.ndarray, np.generic, int, float, complex, str, bytes)):
        converted = np.empty(np.shape(value), dtype)
        _assign(converted, ..., value)
        return broadcast(converted, shape)
    converted = np.empty(shape, dtype)
    _assign(converted, ..., value)
    return converted


def with_dropped(picked: Any, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Values for a pick, with a dimension for each of the array's: 1 where an integer picked."""
    key: tuple[Any, ...] = tuple(0 if axis < 0 else slice(None) for axis in picked.axes)
    kept = values[key]
    full: tuple[Any, ...] = tuple(slice(None) if d in picked.axes else None for d in range(len(picked.full_shape)))
    spread: np.ndarray[Any, Any] = kept[full]
    return spread


def _block(array: "Array") -> tuple[int, ...]:
    """What is read together: a chunk, or a contiguous piece of a plain file."""
    if array.chunks is not None:
        return array.chunks
    shape = array.shape
    block = [1] * len(shape)
    left = 1 << 18
    for axis in range(len(shape)) if array._handle.layout()["order"] == "F" else reversed(range(len(shape))):
        block[axis] = max(1, min(shape[axis], left))
        left //= block[axis]
    return tuple(block)


def _in_batches(array: "Array", places: np.ndarray[Any, Any]) -> Iterator[Any]:
    """Rows of places in batches, those of one chunk together."""
    if len(places) <= _POINTS:
        yield slice(None)
        return
    chunks = places // np.asarray(_block(array))
    order = np.lexsort(chunks.T[::-1])
    for first in range(0, len(order), _POINTS):
        yield order[first:first + _POINTS]


def _read_points(array: "Array", places: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
    handle = array._handle
    if handle.is_chunked and not handle.is_variable:
        handle.read_points(places, out, array._brief)  # which puts those of one chunk together
        return
    for batch in _in_batches(array, places):
        part = out if isinstance(batch, slice) else np.empty(len(batch), out.dtype)
        handle.read_points(places[batch], part, array._brief)
        if part is not out:
            out[batch] = part


def _write_points(array: "Array", places: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> None:
    for batch in _in_batches(array, places):
        array._handle.write_points(places[batch], values[batch], array._brief)


def _read_boxes(array: "Array", picks: Picks, out: np.ndarray[Any, Any]) -> None:
    waiting: list[tuple[Box, np.ndarray[Any, Any]]] = []
    held = 0

    def read() -> None:
        if out.dtype == object:  # has no memory that could be read into
            waiting[:] = [(box, array[box.key]) for box, _ in waiting]
        else:
            array._handle.read_boxes([(box.start, elements) for box, elements in waiting], array._brief)
        for box, elements in waiting:
            if out.dtype == object or not box.is_plain():
                view, local = box.of_box(elements)
                out[box.of_table()] = view[local]
        waiting.clear()

    for box in picks.boxes(_block(array)):
        if out.dtype != object and box.is_plain():
            waiting.append((box, out[box.of_table()]))
        else:
            waiting.append((box, np.empty(box.shape, out.dtype)))
            held += waiting[-1][1].nbytes
        if held > _BOXES or len(waiting) > 4096:
            read()
            held = 0
    read()


def read_picks(array: "Array", picks: Picks) -> np.ndarray[Any, Any]:
    """What a key with lists, arrays or masks picks."""
    out = np.empty(picks.table, array._dtype)
    basic = picks.basic()
    if basic is not None:
        array.read(basic, out)
    elif out.size and picks.are_points():
        _read_points(array, picks.points(), out.reshape(-1))
    elif out.size:
        _read_boxes(array, picks, out)
    return picks.arranged(out)


def _assigner(box: Box, fields: Any, part: np.ndarray[Any, Any]) -> Callable[[np.ndarray[Any, Any]], None]:
    def assign(elements: np.ndarray[Any, Any]) -> None:
        view, local = box.of_box(elements if fields is None else elements[fields])
        view[local] = part

    return assign


def write_picks(array: "Array", picks: Picks, value: Any, fields: Any = None) -> None:
    """Assigns to what a key with lists, arrays or masks picks, or to fields of it. Each chunk changes in one step."""
    if isinstance(value, (list, tuple)) and np.ndim(value) > len(picks.shape):
        value = np.asarray(value)  # has leading dimensions of 1, or does not fit
    if fields is None:
        values = array._values(value, picks.shape, False)
    else:
        part = np.empty(0, array._dtype)[fields]
        values = stored(value, part.dtype, picks.shape + part.shape[1:], False)
    values = picks.tabled(values)
    size = int(np.prod(picks.table, dtype=np.int64))
    if size == 0:
        return
    basic = picks.basic()
    if basic is not None and fields is None:
        array._handle.write(_picked(array, basic), values, array._brief)
    elif fields is None and picks.are_points():
        _write_points(array, picks.points(), values.reshape(-1))
    elif fields is None and not array._handle.is_chunked:  # a file, or a cache: neither is changed in steps
        for first in range(0, size, _POINTS):
            at, rows = picks.rows(first, min(first + _POINTS, size))
            array._handle.write_points(rows, values[at], array._brief)
    else:
        for box in picks.boxes(_block(array)):
            if fields is None and box.is_plain():
                array._handle.write(_picked(array, box.key), values[box.of_table()], array._brief)
            else:
                array.update(box.key, _assigner(box, fields, values[box.of_table()]))


def _picked(array: "Array", key: tuple[slice, ...]) -> Any:
    picked = array._handle.pick(key)
    assert picked is not None
    return picked


def read_mask(array: "Array", mask: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements where a mask of all dimensions is true, in C order."""
    out = np.empty(int(np.count_nonzero(mask)), array._dtype)
    for box in masked(mask, _block(array)):
        dense, rest = ([], box.part) if out.dtype == object else box.divided(_block(array), 1, 32)
        places = box.places(rest)
        found: np.ndarray[Any, Any] = np.empty(len(places), out.dtype)
        _read_points(array, places, found)
        if dense:
            elements = np.empty(box.part.shape, out.dtype)
            array._handle.read_boxes([([item.start for item in box.moved(part)], elements[part]) for part in dense],
                                     array._brief)
            elements[rest] = found
            found = elements[box.part]
        out[box.positions] = found
    return out


def _where(mask: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> Callable[[np.ndarray[Any, Any]], None]:
    def assign(elements: np.ndarray[Any, Any]) -> None:
        elements[mask] = values

    return assign


def write_mask(array: "Array", mask: np.ndarray[Any, Any], value: Any) -> None:
    """Assigns where a mask of all dimensions is true."""
    values = array._values(value, (int(np.count_nonzero(mask)),), False)
    for box in masked(mask, _block(array)):
        dense, rest = box.divided(_block(array), 64, 4096) if array._handle.is_chunked else ([], box.part)
        positions = np.empty(box.part.shape, np.int64)
        positions[box.part] = box.positions
        for part in dense:
            chosen = box.part[part]
            array.update(box.moved(part), _where(chosen, values[positions[part][chosen]]))
        _write_points(array, box.places(rest), values[positions[rest]])


def read_key(array: "Array", key: Any, first: bool = False) -> Any:
    """``array[key]`` for a key that is not basic. With `first`, as vindex orders the result."""
    mask = is_full_mask(key, array.shape)
    if mask is not None:
        return read_mask(array, mask)
    return read_picks(array, Picks.of(key, array.shape, first))


def write_key(array: "Array", key: Any, value: Any, fields: Any = None, first: bool = False) -> None:
    """``array[key] = value`` for a key that is not basic."""
    mask = is_full_mask(key, array.shape) if fields is None else None
    of_all = mask is not None or (array.shape == () and isinstance(key, (bool, np.bool_)))
    if of_all and isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) > 1:
        raise TypeError(f"values for a mask have at most one dimension, found {np.ndim(value)}")
    if mask is not None:
        write_mask(array, mask, value)
    else:
        write_picks(array, Picks.of(key, array.shape, first), value, fields)


class VIndex:
    """Elements at many places; see :attr:`Array.vindex`.

    Examples
    --------
    >>> a = tessera.create("grid.zarr", shape=(3, 4), dtype="<i4", overwrite=True)
    >>> a.vindex[[0, 2], [1, 3]] = [5, 6]
    >>> a[:]
    array([[0, 5, 0, 0],
           [0, 0, 0, 0],
           [0, 0, 0, 6]], dtype=int32)
    >>> a.vindex[a[:] > 5]
    array([6], dtype=int32)
    >>> a.vindex[[0, 2], :].shape
    (2, 4)
    """

    def __init__(self, array: "Array"):
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        fields, rest = split_fields(key)
        if fields is not None:
            require_fields(self._array, fields)
            return self[rest][fields]
        picked = self._array._handle.pick(key)
        return self._array[key] if picked is not None else read_key(self._array, key, first=True)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array._require_writable()
        fields, rest = split_fields(key)
        if self._array._handle.pick(rest) is not None:
            self._array[key] = value
        else:
            write_key(self._array, rest, value, fields, first=True)


class OIndex:
    """An independent index for each dimension; see :attr:`Array.oindex`.

    Examples
    --------
    >>> a = tessera.create("grid.zarr", shape=(3, 4), dtype="<i4", overwrite=True)
    >>> a.oindex[[0, 2], [True, False, False, True]] = [[1, 2], [3, 4]]
    >>> a[:]
    array([[1, 0, 0, 2],
           [0, 0, 0, 0],
           [3, 0, 0, 4]], dtype=int32)
    >>> a.oindex[:, -1]
    array([2, 0, 4], dtype=int32)
    """

    def __init__(self, array: "Array"):
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        fields, rest = split_fields(key)
        if fields is not None:
            require_fields(self._array, fields)
            return self[rest][fields]
        return read_picks(self._array, Picks.orthogonal(key, self._array.shape))[()]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array._require_writable()
        fields, rest = split_fields(key)
        write_picks(self._array, Picks.orthogonal(rest, self._array.shape), value, fields)
