"""Arrays as their keys read and assign elements, and the conversion of assigned values."""

from __future__ import annotations

import itertools
import operator
import threading
import warnings
from typing import Any, Callable, Iterator, Optional, Union

import numpy as np

from . import _bfloat16, _tessera
from ._arrow import Columns
from ._calls import warn
from ._describe import Described
from ._options import ProgressCallback
from ._picks import Box, Picks, is_full_mask, masked
from ._types import DType, DTypeLike, Values

_MA: Any = np.ma  # of which some NumPy has no types

# Elements that are asked for at once: each takes a kilobyte of the library's memory meanwhile.
_POINTS = 1 << 16
# Bytes of boxes that are read at once.
_BOXES = 64 << 20


def not_basic(key: object) -> IndexError:
    """The error for a key that is not basic, where only such a key is possible."""
    text = repr(key)
    return IndexError("only integers, slices (`:`), ellipsis (`...`) and None are valid indices here, found "
                      + (text if len(text) <= 60 else text[:57] + "..."))


def require_fields(array: "Indexable", fields: Any) -> None:
    """Raises as NumPy does for fields that the elements do not have, before anything is read."""
    np.empty(0, array._dtype)[fields]


def _are_fields(item: object) -> bool:
    return isinstance(item, str) or (isinstance(item, list) and bool(item) and all(isinstance(k, str) for k in item))


def split_fields(key: object) -> tuple[Any, Any]:
    """The names of fields in a key, and the rest of it: ``a["x"]``, ``a[["x", "y"]]``, ``a["x", 0]``, ``a[["x", "y"], 0]``."""
    if not isinstance(key, tuple):
        return (key, ...) if _are_fields(key) else (None, key)
    named = [item for item in key if _are_fields(item)]
    if not named:
        return None, key
    names = [name for item in named for name in ([item] if isinstance(item, str) else item)]
    return named[0] if len(named) == 1 else names, tuple(item for item in key if not _are_fields(item))


def broadcast(values: Values, shape: tuple[int, ...]) -> Values:
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


_WARNING = threading.Lock()


def _beyond(value: object, dtype: DType) -> bool:
    """Whether Python integers are too large for a dtype of integers, of which NumPy warns."""
    if dtype.kind not in "iu" or not isinstance(value, (int, list, tuple)):
        return False
    known = np.asarray(value)
    bounds = np.iinfo(dtype)
    return known.dtype.kind in "iu" and known.size > 0 and bool(known.min() < bounds.min or known.max() > bounds.max)


def _assign(into: Values, key: object, value: object) -> None:
    """``into[key] = value``, with NumPy's warning about integers at the line that the value is from."""
    if not _beyond(value, into.dtype):
        into[key] = value
        return
    with _WARNING, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        into[key] = value
    for text in dict.fromkeys((str(warning.message), warning.category) for warning in caught):
        warn(text[0], text[1])


def can_cast(values: Any, dtype: DType, casting: Any) -> bool:
    """Whether a rule allows a cast: of a single number by its value, as in NumPy 1, of an array by its dtype."""
    if values.ndim or values.dtype.kind not in "biufc":
        return np.can_cast(values.dtype, dtype, casting)
    least = [np.min_scalar_type(values[()])]
    if values.dtype.kind in "iu" and values >= 0:
        least.append(np.min_scalar_type(-int(values) - 1))  # which 7 fits into, too
    return any(np.can_cast(one, dtype, casting) for one in least)


def padding_named(value: object, dtype: DType) -> Any:
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


def stored(value: object, dtype: DType, shape: tuple[int, ...], element: bool) -> Values:
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


def with_dropped(picked: _tessera.Picked, values: Values) -> Values:
    """Values for a pick, with a dimension for each of the array's: 1 where an integer picked."""
    key: list[Union[int, slice]] = [0 if axis < 0 else slice(None) for axis in picked.axes]
    kept = values[(*key, ...)]  # an array, even of one element
    full = tuple(slice(None) if d in picked.axes else None for d in range(len(picked.full_shape)))
    spread: Values = kept[full]
    return spread


def _block(array: "Indexable") -> tuple[int, ...]:
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


def _in_batches(array: "Indexable", places: Values) -> Iterator[Union[slice, Values]]:
    """Rows of places in batches, those of one chunk together."""
    if len(places) <= _POINTS:
        yield slice(None)
        return
    chunks = places // np.asarray(_block(array))
    order = np.lexsort(chunks.T[::-1])
    for first in range(0, len(order), _POINTS):
        yield order[first:first + _POINTS]


def _read_points(array: "Indexable", places: Values, out: Values) -> None:
    handle = array._handle
    if handle.is_chunked and not handle.is_variable:
        handle.read_points(places, out, array._brief)  # which puts those of one chunk together
        return
    for batch in _in_batches(array, places):
        part = out if isinstance(batch, slice) else np.empty(len(batch), out.dtype)
        handle.read_points(places[batch], part, array._brief)
        if part is not out:
            out[batch] = part


def _write_points(array: "Indexable", places: Values, values: Values) -> None:
    for batch in _in_batches(array, places):
        array._handle.write_points(places[batch], values[batch], array._brief)


def _read_boxes(array: "Indexable", picks: Picks, out: Values) -> None:
    waiting: list[tuple[Box, Values]] = []
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


def read_picks(array: "Indexable", picks: Picks) -> Values:
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


def _assigner(box: Box, fields: Any, part: Values) -> Callable[[Values], None]:
    def assign(elements: Values) -> None:
        view, local = box.of_box(elements if fields is None else elements[fields])
        view[local] = part

    return assign


def write_picks(array: "Indexable", picks: Picks, value: object, fields: Any = None) -> None:
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


def _picked(array: "Indexable", key: tuple[slice, ...]) -> _tessera.Picked:
    picked = array._handle.pick(key)
    assert picked is not None
    return picked


def read_mask(array: "Indexable", mask: Values) -> Values:
    """The elements where a mask of all dimensions is true, in C order."""
    out = np.empty(int(np.count_nonzero(mask)), array._dtype)
    for box in masked(mask, _block(array)):
        dense, rest = ([], box.part) if out.dtype == object else box.divided(_block(array), 1, 32)
        places = box.places(rest)
        found: Values = np.empty(len(places), out.dtype)
        _read_points(array, places, found)
        if dense:
            elements = np.empty(box.part.shape, out.dtype)
            array._handle.read_boxes([([item.start for item in box.moved(part)], elements[part]) for part in dense],
                                     array._brief)
            elements[rest] = found
            found = elements[box.part]
        out[box.positions] = found
    return out


def _where(mask: Values, values: Values) -> Callable[[Values], None]:
    def assign(elements: Values) -> None:
        elements[mask] = values

    return assign


def write_mask(array: "Indexable", mask: Values, value: object) -> None:
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


def read_key(array: "Indexable", key: object, first: bool = False) -> Any:
    """``array[key]`` for a key that is not basic. With `first`, as vindex orders the result."""
    mask = is_full_mask(key, array.shape)
    if mask is not None:
        return read_mask(array, mask)
    return read_picks(array, Picks.of(key, array.shape, first))


def write_key(array: "Indexable", key: object, value: object, fields: Any = None, first: bool = False) -> None:
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

    def __init__(self, array: "Indexable"):
        self._array = array

    def __getitem__(self, key: object) -> Any:
        fields, rest = split_fields(key)
        if fields is not None:
            require_fields(self._array, fields)
            return self[rest][fields]
        picked = self._array._handle.pick(key)
        return self._array[key] if picked is not None else read_key(self._array, key, first=True)

    def __setitem__(self, key: object, value: object) -> None:
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

    def __init__(self, array: "Indexable"):
        self._array = array

    def __getitem__(self, key: object) -> Any:
        fields, rest = split_fields(key)
        if fields is not None:
            require_fields(self._array, fields)
            return self[rest][fields]
        return read_picks(self._array, Picks.orthogonal(key, self._array.shape))[()]

    def __setitem__(self, key: object, value: object) -> None:
        self._array._require_writable()
        fields, rest = split_fields(key)
        write_picks(self._array, Picks.orthogonal(rest, self._array.shape), value, fields)


class Blocks:
    """Chunks by their indices; see :attr:`Array.blocks`.

    Examples
    --------
    >>> a = tessera.create("grid.zarr", shape=(3, 5), dtype="<i4", chunks=(2, 2), overwrite=True)
    >>> a.blocks[0, 1:] = 7
    >>> a.blocks[:, -1], a.blocks.shape
    (array([[7],
           [7],
           [0]], dtype=int32), (2, 3))
    """

    def __init__(self, array: "Indexable"):
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of chunks along each dimension."""
        return tuple(map(len, self._array.chunk_lengths))

    def _key(self, key: object) -> tuple[slice, ...]:
        """The elements of chunks."""
        indices = list(key) if isinstance(key, tuple) else [key]
        ndim = self._array.ndim
        if sum(index is Ellipsis for index in indices) == 1:
            at = indices.index(Ellipsis)
            indices[at:at + 1] = [slice(None)] * (ndim - len(indices) + 1)
        if len(indices) > ndim:
            raise IndexError(f"too many indices for an array: {len(indices)} for {ndim} dimensions")
        indices += [slice(None)] * (ndim - len(indices))
        return tuple(map(self._along, indices, self._array.chunk_lengths))

    def _along(self, index: Any, lengths: tuple[int, ...]) -> slice:
        ends = [0, *itertools.accumulate(lengths)]
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise IndexError(f"chunks are taken one after the other, found {index}")
            first, end, _ = index.indices(len(lengths))
            return slice(ends[first], ends[max(first, end)])
        if not hasattr(index, "__index__") or isinstance(index, (bool, np.bool_)):
            raise IndexError(f"only integers, slices (`:`) and ellipsis (`...`) are valid indices of chunks, found {index!r}")
        number = operator.index(index)
        if not -len(lengths) <= number < len(lengths):
            raise IndexError(f"chunk {number} is out of bounds for {len(lengths)} chunks")
        number %= len(lengths)
        return slice(ends[number], ends[number + 1])

    def __getitem__(self, key: object) -> Any:
        return self._array[self._key(key)]

    def __setitem__(self, key: object, value: object) -> None:
        self._array[self._key(key)] = value


def require_copy(copy: Optional[bool]) -> None:
    """Raises where NumPy 2 asks for an array's own memory: elements in chunks have none."""
    if copy is False:
        raise ValueError("elements are read into new memory, so that copy=False is impossible")


class Converted(Columns):
    """An array with its elements converted when they are read; see :meth:`Array.astype`."""

    def __init__(self, array: Any, dtype: DTypeLike):
        self._array = array  # or a view
        self.dtype = np.dtype(dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the array."""
        shape: tuple[int, ...] = self._array.shape
        return shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, key: object) -> Any:
        return self._array._astype(self._array[key], self.dtype)

    def __array__(self, dtype: DTypeLike = None, copy: Optional[bool] = None) -> Values:
        require_copy(copy)
        return np.asarray(self[...], dtype=dtype)

    def __repr__(self) -> str:
        return f"<{self._array!r} as {self.dtype}>"


class Decoded(Converted):
    """An array by what its elements stand for; see :attr:`Array.decoded`."""

    def __init__(self, array: Any):
        self._decoded = _tessera.decoded_type(array._handle)
        super().__init__(array, array.dtype if self._decoded is None else self._decoded)

    def __getitem__(self, key: object) -> Any:
        codes = self._array[key]
        if self._decoded is None:
            return codes
        values, missing = _tessera.decoded_codes(self._array._handle, np.asarray(codes))
        if missing is not None:
            return _MA.masked_array(values, np.reshape(missing, values.shape))[()]
        return values[()] if np.ndim(codes) == 0 else values

    def __setitem__(self, key: object, value: object) -> None:
        if self._decoded is None:
            self._array[key] = value
            return
        present = np.asarray(self._array[key])
        self._array[key] = self._codes(value, present)

    def _codes(self, value: Any, present: Values) -> Values:
        """The codes of values in place of those present, whose marks stay where elements are missing."""
        marked = isinstance(value, _MA.MaskedArray) and self.dtype.kind == "i" and value.dtype.kind == "i"
        given = self._given(_MA.filled(value.astype("i8"), np.iinfo("i8").min) if marked else value)
        values = np.ascontiguousarray(np.broadcast_to(given, present.shape)).reshape(present.shape)
        return _tessera.encoded_values(self._array._handle, values, present, marked)

    def _given(self, value: Any) -> Values:
        """Values in memory, with NaN for those of floats that are masked."""
        if isinstance(value, _MA.MaskedArray) and value.dtype.kind != "M":
            value = _MA.filled(value.astype("f8"), np.nan)
        return np.asarray(value, dtype="M8" if self.dtype.kind == "M" and np.asarray(value).dtype.kind == "U" else None)

    def __repr__(self) -> str:
        return f"<{self._array!r} decoded as {self.dtype}>"


class Indexable(Described, Columns):
    """An array whose elements are read and written by keys."""

    def __getitem__(self, key: object) -> Any:
        handle = self._handle
        picked = handle.pick(key)
        if picked is None:
            fields, rest = split_fields(key)
            if fields is not None:
                require_fields(self, fields)
                return self[rest][fields]
            return self._as_shown(read_key(self, key))
        out = np.empty(picked.shape, self._dtype)
        handle.read(picked, out, self._brief)
        out = self._as_shown(out)
        return out[()] if picked.element else out

    def read(self, sel: object = ..., out: Optional[Values] = None, *, threads: int = 0,
             max_memory: Union[int, str] = 0, progress: ProgressCallback = None) -> Any:
        """Read a basic selection, optionally into existing memory.

        Parameters
        ----------
        sel : basic index
            Integers, slices, ``...`` and None, as in ``a[sel]``.
        out : numpy.ndarray, optional
            Memory for the result, of its shape and of this dtype (in either byte order); of text also NumPy's
            ``StringDType``. Chunks are decoded straight into it if its strides allow; it is not copied.
        threads : int
            The largest number of threads; 0 for all cores.
        max_memory : int or str
            Bytes that block-by-block work may hold, such as ``"256M"``.
        progress : callable or True
            Called as ``progress(done, total)`` with bytes; True draws a bar if tqdm is installed.

        Returns
        -------
        numpy.ndarray or scalar
            `out`, if it was given.
        """
        picked = self._handle.pick(sel)
        if picked is None:
            raise not_basic(sel)
        given = out is not None
        if out is None:
            out = np.empty(picked.shape, self._dtype)
        elif out.shape != picked.shape:
            raise ValueError(f"out has shape {out.shape}, what is picked has {picked.shape}")
        elif (self._shown is not None and out.dtype == self._shown) or self._is_text(out.dtype):
            out[...] = self.read(sel, threads=threads, max_memory=max_memory, progress=progress)
            return out
        elif out.dtype.kind == "T" or out.dtype.newbyteorder("=") != self._dtype.newbyteorder("="):
            raise TypeError(f"out has dtype {out.dtype}, the array {self.dtype}")
        self._handle.read(picked, out, self._work(threads, max_memory, progress))
        if given:
            return out
        values = self._as_shown(out)
        return values[()] if picked.element else values

    def _is_text(self, dtype: DType) -> bool:
        """Whether it is NumPy 2's dtype of text, and this an array of text."""
        return dtype.kind == "T" and (self._dtype.kind == "U" or self._handle.dtype_text == "string")

    def __array__(self, dtype: DTypeLike = None, copy: Optional[bool] = None) -> Values:
        require_copy(copy)
        values = np.asarray(self[...])
        return values if dtype is None else np.asarray(self._astype(values, dtype))

    def __dlpack__(self, **options: Any) -> Any:
        """The elements, read into memory of the machine's byte order, for ``torch.from_dlpack`` and its like."""
        if options.get("copy") is False:
            raise BufferError("elements are read into new memory, so that copy=False is impossible")
        values = np.asarray(self[...])
        return values.astype(values.dtype.newbyteorder("="), copy=False).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the processor's memory

    def _arrow_source(self) -> Any:
        return Decoded(self)

    def _astype(self, values: Values, dtype: DTypeLike) -> Any:
        """What was read, as another dtype: bfloat16 by its value."""
        return _bfloat16.astype(values, self._bfloat16 if self._shown is None else None, dtype)

    def astype(self, dtype: DTypeLike) -> Converted:
        """The same array with its elements converted when they are read.

        Examples
        --------
        >>> a = tessera.create("small.zarr", shape=3, dtype="<i2", fill_value=5)
        >>> a.astype("float32")[:2]
        array([5., 5.], dtype=float32)
        """
        return Converted(self, dtype)

    @property
    def vindex(self) -> VIndex:
        """Elements at many places: ``a.vindex[rows, columns]``, or selected by a mask of the array's shape.

        The index is NumPy's, as in ``a[rows, columns]``. Among slices, the dimensions of lists and arrays always come
        first in the result: ``a.vindex[:, rows, columns]`` has shape ``(len(rows), a.shape[0])``.
        """
        return VIndex(self)

    @property
    def blocks(self) -> Blocks:
        """Chunks by their indices, for reading and assigning: ``a.blocks[0, 2:]``. All dimensions are kept.

        Within shards they are still chunks, not shards.
        """
        return Blocks(self)

    @property
    def oindex(self) -> OIndex:
        """An independent index for each dimension: ``a.oindex[[0, 5], 2:4]`` has shape ``(2, 2)``.

        The index of a dimension is an integer, a slice, a list of integers or a mask, as in
        ``numpy_array[numpy.ix_(...)]``. Assigning changes each chunk in one step.
        """
        return OIndex(self)

    def __setitem__(self, key: object, value: object) -> None:
        self._require_writable()
        picked = self._handle.pick(key)
        if picked is None:
            self._assign_otherwise(key, value)
            return
        self._handle.write(picked, self._values(value, picked.shape, picked.element), self._brief)

    def write(self, sel: object, values: object, casting: str = "same_kind", *, threads: int = 0,
              max_memory: Union[int, str] = 0, progress: ProgressCallback = None) -> None:
        """Assign as ``a[sel] = values`` does, but refuse conversions that `casting` does not allow.

        Parameters
        ----------
        sel : basic index
            Integers, slices, ``...`` and None.
        values : array_like
            Broadcast to the selection. An array of this dtype is not copied.
        casting : {'no', 'equiv', 'safe', 'same_kind', 'unsafe'}
            The conversions that are allowed, as in :func:`numpy.can_cast`.

        Raises
        ------
        TypeError
            If the rule does not allow the conversion. Nothing is written.
        """
        self._require_writable()
        picked = self._handle.pick(sel)
        if picked is None:
            raise not_basic(sel)
        values = self._castable(values, casting)
        self._handle.write(picked, self._values(values, picked.shape, picked.element),
                           self._work(threads, max_memory, progress))

    def update(self, sel: object, function: Callable[..., object], *, where: bool = False, threads: int = 0,
               progress: ProgressCallback = None) -> None:
        """Compute new values from the present ones, so that no other writer's change is lost.

        Each chunk's part of the selection is read, changed by the function and written under that chunk's lock:
        increments from many threads and processes all count. Chunks are changed one by one, not all at once.

        Parameters
        ----------
        sel : basic index
            Integers, slices, ``...`` and None.
        function : callable
            Called as ``function(values)`` with one chunk's part, an array that it may change in place. If it returns
            anything but None, that is written instead. Types that NumPy lacks are as without ml_dtypes. The part has all dimensions of the array; those picked by an
            integer have length 1. The function runs in any thread. It must not write to this array, and gets an error
            if it does. If two functions of `update` write to each other's arrays and would wait for each other for
            ever, one of them gets an error; in two processes they wait until Ctrl-C.
        where : bool
            Call ``function(values, place)`` with the place of `values` in the selection, as slices.

        Raises
        ------
        Exception
            Whatever the function raises. Its chunk is then unchanged; chunks that were changed before stay changed.

        Examples
        --------
        >>> a = tessera.create("counts.zarr", shape=6, dtype="<i8", chunks=4)
        >>> a.update(slice(2, 6), lambda values: values + 1)
        >>> a[:]
        array([0, 0, 1, 1, 1, 1])
        """
        self._require_writable()
        picked = self._handle.pick(sel)
        if picked is None:
            raise not_basic(sel)
        self._handle.update(picked, function, where, self._work(threads, 0, progress))

    def _castable(self, values: Any, casting: str) -> Any:
        """The values, if the rule allows converting them to this array's dtype; else raises TypeError."""
        if isinstance(values, (Indexable, Converted)):
            values = values[...]
        if casting == "unsafe" or self._bfloat16 is not None or self._dtype == object:
            return np.asanyarray(values)
        values = padding_named(np.asanyarray(values), self._dtype)
        texts = {values.dtype.kind, self._dtype.kind} == {"U", "S"} and casting == "same_kind"  # what is not ASCII raises
        if not texts and not can_cast(values, self._dtype, casting):
            raise TypeError(f"Cannot cast array data from {values.dtype!r} to {self._dtype!r} "
                            f"according to the rule '{casting}'")
        return values

    def _values(self, value: object, shape: tuple[int, ...], element: bool) -> Values:
        """The value as NumPy would store it, broadcast to the shape."""
        if isinstance(value, (Indexable, Converted)):
            value = value[...]
        if self._bfloat16 is not None:
            value = _bfloat16.encode(value, self._bfloat16)
        return stored(value, self._dtype, shape, element)

    def _assign_otherwise(self, key: object, value: object) -> None:
        fields, rest = split_fields(key)
        picked = None if fields is None else self._handle.pick(rest)
        if picked is None:
            write_key(self, rest, value, fields)
            return
        part = np.empty(0, self._dtype)[fields]  # the errors of unknown names
        shape = picked.shape + part.shape[1:]
        values = stored(value, part.dtype, shape, False)
        whole = with_dropped(picked, values)

        def assign(elements: Values, place: tuple[slice, ...]) -> None:
            elements[fields] = whole[place]

        self._handle.update(picked, assign, True, self._brief)
