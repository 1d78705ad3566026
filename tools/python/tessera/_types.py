"""Types that several files name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional

import numpy as np

Values = np.ndarray[Any, Any]  # in memory, of any shape and dtype
DType = np.dtype[Any]
Document = dict[str, Any]  # an object of JSON, or options by name as the library takes them
Attrs = Optional[Mapping[str, object]]
Remote = Optional[Mapping[str, object]]  # storage_options: how places over the network are reached

if TYPE_CHECKING:
    from numpy.typing import DTypeLike as DTypeLike
else:
    DTypeLike = object  # NumPy says what is no dtype
