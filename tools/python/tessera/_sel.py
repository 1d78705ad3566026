"""Selections by names and values, as the text that the library reads."""

from __future__ import annotations

import datetime
from typing import Mapping, Optional

import numpy as np

from ._errors import InvalidArgument


def _quoted(text: str) -> str:
    """The text as one value of a selection, whatever it holds."""
    for quote in "'\"":
        if quote not in text:
            return quote + text + quote
    raise InvalidArgument(f"{text}: a name or value cannot hold quotes of both kinds")


def _value(value: object) -> str:
    if isinstance(value, np.timedelta64):
        unit, count = np.datetime_data(value.dtype)
        return _quoted(f"{value.astype('i8') * count} {unit}")
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (datetime.date, datetime.datetime)) or hasattr(value, "isoformat"):
        return _quoted(value.isoformat())
    if isinstance(value, (str, np.str_, np.datetime64)):
        return _quoted(str(value))
    if isinstance(value, (bytes, np.bytes_)):
        return _quoted(value.decode())
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    raise TypeError(f"{value!r}: expected a value or a slice of values; oindex takes lists of indices")


def sel_text(text: str, method: Optional[str], values: Mapping[str, object]) -> str:
    """The selection of Array.sel."""
    if method not in (None, "nearest"):
        raise InvalidArgument(f"method={method!r}: expected 'nearest' or None")
    items = [text] if text else []
    for name, value in values.items():
        if isinstance(value, slice):
            ends = ["" if end is None else _value(end) for end in (value.start, value.stop)]
            step = "" if value.step is None else f":{int(value.step)}"
            items.append(f"{_quoted(name)}={ends[0]}:{ends[1]}{step}")
        else:
            items.append(f"{_quoted(name)}{'~' if method else '='}{_value(value)}")
    return ", ".join(items)
