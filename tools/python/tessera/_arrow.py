"""Elements as Arrow's columns: for pyarrow, polars, pandas, DuckDB and all that take ``__arrow_c_array__``."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from . import _tessera
from ._errors import Unsupported
from ._types import DType, Values

_MA: Any = np.ma  # without types in some versions of NumPy
_NUMBERS = {"i1": "c", "u1": "C", "i2": "s", "u2": "S", "i4": "i", "u4": "I", "i8": "l", "u8": "L", "f2": "e", "f4": "f", "f8": "g"}
_TIMES = {"s": "s", "ms": "m", "us": "u", "ns": "n"}
_Column = tuple[str, str, int, int, list[Optional[Values]], list[Any]]


def capsules(values: Any, variable: str = "string") -> tuple[object, object]:
    """The schema and the array of elements of one dimension, of which those that are masked are null.

    `variable`: what elements of NumPy's object dtype are, ``"string"`` or ``"bytes"``.
    """
    if np.ndim(values) != 1:
        raise Unsupported(f"Arrow has arrays of one dimension, this has {np.ndim(values)}: take one of its rows, as a.lazy[3], or "
                          "its elements as one row, np.ravel(a)")
    return _tessera.arrow_capsules(_column("", values, variable))


def _column(name: str, values: Any, variable: str) -> _Column:
    mask = _MA.getmaskarray(values) if isinstance(values, _MA.MaskedArray) else None
    elements = np.asarray(values)
    if elements.dtype.names is not None:
        children = [_column(field, values[field], variable) for field in elements.dtype.names]
        return "+s", name, len(elements), 0, [None], children
    if elements.dtype.kind in "OT":
        elements = elements.astype(object)
        none = np.array([element is None for element in elements], bool)
        mask = none if mask is None else mask | none
    if elements.dtype.kind in "mM":
        mask = np.isnat(elements) if mask is None else mask | np.isnat(elements)
    form, buffers = _buffers(elements, mask, variable)
    nulls = 0 if mask is None else int(np.count_nonzero(mask))
    valid = np.packbits(~mask, bitorder="little") if nulls and mask is not None else None
    return form, name, len(elements), nulls, [valid, *buffers], []


def _buffers(elements: Values, mask: Optional[Values], variable: str) -> tuple[str, list[Optional[Values]]]:
    """The format of Arrow, and the buffers but the one that tells the nulls."""
    dtype = elements.dtype
    if elements.ndim == 2:
        raise Unsupported(f"a field of {elements.shape[1:]} elements in each record is no column of Arrow")
    if dtype.kind == "b":
        return "b", [np.packbits(elements, bitorder="little")]
    if dtype.kind in "mM":
        return _times(elements)
    if dtype.kind == "V" and dtype.type is np.void:
        return f"w:{dtype.itemsize}", [np.frombuffer(elements.tobytes(), np.uint8)]
    if dtype.kind in "USO":
        return _texts(elements, mask, "Z" if dtype.kind == "S" or (dtype.kind == "O" and variable == "bytes") else "U")
    form = _NUMBERS.get(dtype.newbyteorder("=").str[1:]) if dtype.kind in "iuf" else None
    if form is None:
        way = "their parts are a[:].real and a[:].imag" if dtype.kind == "c" else "a.astype('float64') has"
        raise Unsupported(f"Arrow has no elements of {dtype}: {way}")
    return form, [np.ascontiguousarray(elements, dtype.newbyteorder("="))]


def _times(elements: Values) -> tuple[str, list[Optional[Values]]]:
    kind: str = elements.dtype.kind
    unit, step = np.datetime_data(elements.dtype)
    if kind == "M" and unit in ("Y", "M", "W", "D"):
        days = elements.astype("M8[D]").astype("i8")
        known = days[~np.isnat(elements)]
        if known.size > 0 and (known.min() < np.iinfo("i4").min or known.max() > np.iinfo("i4").max):
            raise Unsupported("Arrow's days lie within 2^31 of 1970, these do not: a.astype('M8[s]') has seconds")
        return "tdD", [np.where(np.isnat(elements), 0, days).astype("i4")]
    if unit in ("Y", "M", "ps", "fs", "as", "generic"):
        raise Unsupported(f"Arrow has no {elements.dtype}: a.astype('{kind}8[ns]'), for instance, has")
    fitting = unit if step == 1 and unit in _TIMES else {"ms": "ms", "us": "us", "ns": "ns"}.get(unit, "s")
    numbers = np.ascontiguousarray(elements.astype(f"{kind}8[{fitting}]")).view("i8")
    return (f"ts{_TIMES[fitting]}:" if kind == "M" else f"tD{_TIMES[fitting]}"), [numbers]


def _texts(elements: Values, mask: Optional[Values], form: str) -> tuple[str, list[Optional[Values]]]:
    pieces = [b"" if mask is not None and mask[n] else _bytes_of(element) for n, element in enumerate(elements)]
    offsets = np.zeros(len(pieces) + 1, "i8")
    np.cumsum([len(piece) for piece in pieces], out=offsets[1:])
    return form, [offsets, np.frombuffer(b"".join(pieces) or b"\0", np.uint8)]


def _bytes_of(element: Any) -> bytes:
    if isinstance(element, str):
        return element.encode()
    if isinstance(element, bytes):
        return bytes(element)
    raise Unsupported(f"Arrow has no Python objects, found one of {type(element).__name__}")


class Columns:
    """An array that Arrow's libraries take as a column, or, where elements are structures, as a table."""

    def _arrow_source(self) -> Any:
        return self

    def _arrow(self, source: Any, values: Any) -> tuple[object, object]:
        array = source if hasattr(source, "_handle") else source._array
        return capsules(values, "bytes" if array._handle.dtype_text == "bytes" else "string")

    def __arrow_c_schema__(self) -> object:
        """The type of the elements, of which none is read."""
        source = self._arrow_source()
        return self._arrow(source, np.empty((0,) * source.ndim, source.dtype))[0]

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The elements by what they stand for, read into memory, for ``pyarrow.array`` and its like: missing ones are null.

        Who asks for another type (`requested_schema`) converts, as the interface leaves it to him.
        """
        source = self._arrow_source()
        values = source[...]
        if getattr(source, "_decoded", None) is not None and values.dtype.kind == "f":
            values = _MA.masked_array(values, np.isnan(values))  # what decoding makes of missing ones
        return self._arrow(source, values)
