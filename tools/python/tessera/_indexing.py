"""Keys beyond basic indexing: fields, vindex and oindex; and the conversion of assigned values."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any, Iterator

import numpy as np

from . import _tessera
from ._errors import InvalidArgument

if TYPE_CHECKING:
    from ._array import Array

_WORK = _tessera.WorkOptions()
# Elements that are asked for at once: each takes a kilobyte of the library's memory meanwhile.
_POINTS = 1 << 16
# Bytes of boxes that are read at once.
_BOXES = 64 << 20


def not_basic(key: Any) -> IndexError:
    """The error for a key that is not basic."""
    return IndexError(
        f"{key!r:.200}: only integers, slices (`:`), ellipsis (`...`), None and names of fields are valid indices here; "
        "lists, arrays and masks go to .vindex (places) or .oindex (each dimension by itself)"
    )


def has_one_list(key: Any) -> bool:
    """Whether a key is slices, ``...`` and one list or array of one dimension: NumPy and oindex agree on these."""
    items = key if isinstance(key, tuple) else (key,)
    lists = [item for item in items if not (isinstance(item, slice) or item is Ellipsis)]
    if len(lists) != 1 or not isinstance(lists[0], (list, np.ndarray)):
        return False
    one = np.asarray(lists[0])
    return one.ndim == 1 and (one.dtype.kind in "iub" or one.size == 0)


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


def _integers(index: np.ndarray[Any, Any], length: int, axis: int) -> np.ndarray[Any, Any]:
    """Indices within a dimension, negative ones counted from its end."""
    if index.dtype.kind not in "iu" and index.size:
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    bad = (index < -length) | (index >= length)
    if bad.any():
        raise IndexError(f"index {index[bad].flat[0]} is out of bounds for axis {axis} with size {length}")
    index = index.astype(np.int64)
    return np.where(index < 0, index + length, index)


def _mask(mask: np.ndarray[Any, Any], axis: int, length: int) -> np.ndarray[Any, Any]:
    if mask.shape != (length,):
        raise IndexError(f"boolean index did not match indexed array along dimension {axis}; dimension is {length} "
                         f"but corresponding boolean dimension is {mask.shape[0] if mask.ndim else 0}")
    return np.flatnonzero(mask)


def _block(array: "Array") -> tuple[int, ...]:
    """What is read together: chunks, or of a plain file a few thousand elements in each dimension."""
    chunks = array.chunks
    return chunks if chunks is not None else tuple(4096 for _ in array.shape)


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
    """

    def __init__(self, array: "Array"):
        self._array = array

    def _places(self, key: Any) -> tuple[np.ndarray[Any, Any], tuple[int, ...]]:
        """An (n, ndim) array of places, and the shape of the result."""
        shape = self._array.shape
        items = key if isinstance(key, tuple) else (key,)
        arrays = [np.asarray(item) for item in items]
        if len(arrays) == 1 and arrays[0].dtype == bool:
            if arrays[0].shape != shape:
                raise IndexError(f"a mask of shape {arrays[0].shape} for an array of shape {shape}")
            places = np.argwhere(arrays[0])
            return places, (len(places),)
        if len(arrays) != len(shape) or any(isinstance(item, slice) or item is None or item is ... for item in items):
            raise IndexError(f"vindex takes an integer array for each of the {len(shape)} dimensions, or a mask")
        indices = [_integers(index, length, axis) for axis, (index, length) in enumerate(zip(arrays, shape))]
        together = np.broadcast_arrays(*indices) if indices else []
        result = together[0].shape if together else ()
        return np.stack([index.ravel() for index in together], axis=-1), result

    def _batches(self, places: np.ndarray[Any, Any]) -> Iterator[Any]:
        """The places, those of one chunk together where they are many."""
        if len(places) <= _POINTS:
            yield slice(None)
            return
        chunks = places // np.asarray(_block(self._array))
        order = np.lexsort(chunks.T[::-1])
        for first in range(0, len(order), _POINTS):
            yield order[first:first + _POINTS]

    def __getitem__(self, key: Any) -> Any:
        fields, rest = split_fields(key)
        if fields is not None:
            return self[rest if len(rest) > 1 else rest[0]][fields]
        places, shape = self._places(key)
        out = np.empty(len(places), self._array.dtype)
        handle = self._array._handle
        if handle.is_chunked and not handle.is_variable:
            handle.read_points(places, out, _WORK)  # which puts those of one chunk together
            return out.reshape(shape)[()]
        for batch in self._batches(places):
            part = out if isinstance(batch, slice) else np.empty(len(batch), out.dtype)
            handle.read_points(places[batch], part, _WORK)
            if part is not out:
                out[batch] = part
        return out.reshape(shape)[()]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array._require_writable()
        places, shape = self._places(key)
        values = self._array._values(value, shape, False).reshape(-1)
        for batch in self._batches(places):
            self._array._handle.write_points(places[batch], values[batch], _WORK)


class _Group:
    """Of one dimension: the picks that lie in one block."""

    __slots__ = ("start", "length", "local", "positions")

    def __init__(self, picks: np.ndarray[Any, Any], positions: np.ndarray[Any, Any]):
        self.start = int(picks.min())
        self.length = int(picks.max()) - self.start + 1
        self.local = picks - self.start
        self.positions = positions

    def plain(self) -> bool:
        """Whether a slice of the result gets a slice of the array."""
        steps = np.arange(len(self.local))
        return np.array_equal(self.local, steps) and np.array_equal(self.positions, steps + self.positions[0])


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

    def _picks(self, key: Any) -> tuple[list[np.ndarray[Any, Any]], list[int]]:
        """Of each dimension the indices, and which dimensions stay."""
        shape = self._array.shape
        items = list(key) if isinstance(key, tuple) else [key]
        if sum(item is Ellipsis for item in items) > 1:
            raise IndexError("an index can only have a single ellipsis ('...')")
        missing = len(shape) - sum(item is not Ellipsis for item in items)
        if missing < 0:
            raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but "
                             f"{len(items)} were indexed")
        at = next((i for i, item in enumerate(items) if item is Ellipsis), None)
        if at is None:
            items += [slice(None)] * missing
        else:
            items[at:at + 1] = [slice(None)] * missing
        picks = []
        kept = []
        for axis, (item, length) in enumerate(zip(items, shape)):
            if isinstance(item, slice):
                index = np.arange(*item.indices(length))
            else:
                index = np.asarray(item)
                if index.dtype == bool:
                    index = _mask(index, axis, length)
                index = _integers(index, length, axis)
            if index.ndim > 1:
                raise IndexError("oindex takes integers, slices and arrays of one dimension")
            if index.ndim == 1:
                kept.append(axis)
            picks.append(index.reshape(-1))
        return picks, kept

    def _groups(self, picks: list[np.ndarray[Any, Any]]) -> Iterator[tuple[_Group, ...]]:
        """The picks of each block that any lie in."""
        axes = []
        for index, block in zip(picks, _block(self._array)):
            blocks = index // block
            order = np.argsort(blocks, kind="stable")
            cuts = np.flatnonzero(np.diff(blocks[order])) + 1
            axes.append([_Group(index[part], part) for part in np.split(order, cuts)] if len(index) else [])
        return itertools.product(*axes)

    def __getitem__(self, key: Any) -> Any:
        fields, rest = split_fields(key)
        if fields is not None:
            return self[rest][fields]
        picks, kept = self._picks(key)
        out = np.empty([len(index) for index in picks], self._array.dtype)
        if out.dtype == object or not picks:
            return self._read_small(out, picks, kept)
        waiting: list[Any] = []
        held = 0
        for groups in self._groups(picks):
            if all(group.plain() for group in groups):
                target = out[tuple(slice(g.positions[0], g.positions[0] + g.length) for g in groups)]
                waiting.append(([g.start for g in groups], target, None))
            else:
                box = np.empty([g.length for g in groups], out.dtype)
                waiting.append(([g.start for g in groups], box, groups))
                held += box.nbytes
            if held > _BOXES or len(waiting) > 4096:
                self._read(out, waiting)
                waiting, held = [], 0
        self._read(out, waiting)
        return self._dropped(out, kept)

    def _read(self, out: np.ndarray[Any, Any], waiting: list[Any]) -> None:
        self._array._handle.read_boxes([(start, box) for start, box, _ in waiting], _WORK)
        for _, box, groups in waiting:
            if groups is not None:
                out[np.ix_(*[g.positions for g in groups])] = box[np.ix_(*[g.local for g in groups])]

    def _read_small(self, out: np.ndarray[Any, Any], picks: list[np.ndarray[Any, Any]], kept: list[int]) -> Any:
        """Objects have no memory that could be read into; and an array without dimensions needs no boxes."""
        for groups in self._groups(picks):
            box = self._array[tuple(slice(g.start, g.start + g.length) for g in groups)]
            if groups:
                out[np.ix_(*[g.positions for g in groups])] = box[np.ix_(*[g.local for g in groups])]
            else:
                out[()] = box
        return self._dropped(out, kept)

    def _dropped(self, out: np.ndarray[Any, Any], kept: list[int]) -> Any:
        return out.reshape([out.shape[axis] for axis in kept])[()]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array._require_writable()
        picks, kept = self._picks(key)
        shape = tuple(len(picks[axis]) for axis in kept)
        values = self._array._values(value, shape, False)
        values = values[tuple(slice(None) if axis in kept else None for axis in range(len(picks)))]
        for groups in self._groups(picks):
            box = tuple(slice(g.start, g.start + g.length) for g in groups)
            if not groups or all(group.plain() for group in groups):
                part = values[tuple(slice(g.positions[0], g.positions[0] + g.length) for g in groups)]
                picked = self._array._handle.pick(box)
                assert picked is not None
                self._array._handle.write(picked, part, _WORK)
                continue
            part = values[np.ix_(*[g.positions for g in groups])]
            self._array.update(box, _assigner(np.ix_(*[g.local for g in groups]), part))


def _assigner(places: Any, part: np.ndarray[Any, Any]) -> Any:
    def assign(elements: np.ndarray[Any, Any]) -> None:
        elements[places] = part

    return assign

