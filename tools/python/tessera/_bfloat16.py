"""bfloat16, which NumPy lacks: arrays show it as V2, and convert it on request."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from ._types import DTypeLike, Values


def order(dtype_text: str) -> Optional[str]:
    """The byte order of bfloat16 elements; None for any other dtype."""
    return dtype_text[0] if dtype_text in ("<bfloat16", ">bfloat16") else None


def astype(values: Values, byte_order: Optional[str], dtype: DTypeLike) -> Any:
    """NumPy's astype, and bfloat16 by its value."""
    if byte_order is None:
        return values.astype(dtype)
    # Neither ``view`` nor ``<<`` keeps elements apart from arrays without dimensions.
    bits = np.asarray(values).view(byte_order + "u2").astype("u4") << np.uint32(16)
    return np.asarray(bits, "u4").view("f4").astype(dtype)[()]


def encode(values: object, byte_order: str) -> Values:
    """Numbers rounded to the nearest bfloat16, ties to even; V2 elements stay as they are."""
    values = np.asarray(values)
    if values.dtype == np.dtype("V2"):
        return values
    with np.errstate(over="ignore"):
        bits = np.asarray(np.asarray(values, "f4").view("u4"), "u4")
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.asarray(np.where(nan, quiet, rounded)).astype(byte_order + "u2").view("V2")
