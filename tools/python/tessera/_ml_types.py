"""The types that NumPy lacks and ml_dtypes has: bfloat16, and the small floats and integers of Zarr v3.

Where ml_dtypes is installed, arrays show them as its dtypes. Without it bfloat16 is V2, small floats are float32 and small
integers int8 or uint8. The library always has them so: what is read is converted here, and so is what is written.
"""

from __future__ import annotations

import functools
import importlib
import json
from typing import Any, Optional

import numpy as np

from . import _bfloat16, _tessera
from ._types import DType, Values

_SMALL = ("int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
          "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")


@functools.lru_cache(maxsize=None)
def _known() -> dict[str, DType]:
    """The dtypes of ml_dtypes by name; none without it."""
    try:
        ml_dtypes = importlib.import_module("ml_dtypes")
    except ImportError:
        return {}
    return {name: np.dtype(getattr(ml_dtypes, name)) for name in ("bfloat16",) + _SMALL if hasattr(ml_dtypes, name)}


def _small(codec: str) -> Optional[str]:
    """The small type that a chain of codecs, in the notation of :attr:`Array.codec`, stores."""
    if codec.startswith("data_type:"):
        return codec[len("data_type:"):].split(",")[0]
    if not codec.startswith("["):
        return None
    return next((one["configuration"]["name"] for one in json.loads(codec) if one["name"] == "data_type"), None)


def shown(handle: _tessera.ArrayHandle) -> Optional[DType]:
    """The dtype of ml_dtypes that shows an array's elements; None: that of the elements in memory does."""
    known = _known()
    if not known:
        return None
    if _bfloat16.order(handle.dtype_text) is not None:
        return known.get("bfloat16")
    if handle.dtype_text not in ("<f4", "|i1", "|u1"):
        return None
    return known.get(_small(handle.order_and_codec()[1] or "") or "")


def as_shown(values: Values, byte_order: Optional[str], dtype: DType) -> Any:
    """Elements in memory as those of ml_dtypes. `byte_order` is that of bfloat16."""
    if byte_order is None:
        with np.errstate(all="ignore"):  # every value is one of the type; NumPy warns of NaN
            return values.astype(dtype)
    bits = np.asarray(values).view(byte_order + "u2")
    return np.asarray(bits, "=u2").view(dtype)


def given(dtype: object) -> Any:
    """A dtype that was asked for: that of ml_dtypes by the name that the library has for it."""
    if not isinstance(dtype, (np.dtype, type)):
        return dtype
    name = next((name for name, known in _known().items() if dtype in (known, known.type)), None)
    if name is None or name == "bfloat16":
        return name or dtype
    memory = "f4" if name.startswith("float") else "u1" if name.startswith("u") else "i1"
    raise TypeError(f"elements of {name} are made by a codec: give dtype={memory!r} and a codec such as "
                    f"'data_type:{name},zstd'")
