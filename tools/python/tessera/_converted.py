"""tessera.Converted: an array seen in another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import numpy as np

if TYPE_CHECKING:
    from ._array import Array


def require_copy(copy: Optional[bool]) -> None:
    """Raises where NumPy 2 asks for an array's own memory: elements in chunks have none."""
    if copy is False:
        raise ValueError("elements are read into new memory, so that copy=False is impossible")


class Converted:
    """An array with its elements converted when they are read; see :meth:`Array.astype`."""

    def __init__(self, array: "Array", dtype: Any):
        self._array = array
        self.dtype = np.dtype(dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the array."""
        return self._array.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, key: Any) -> Any:
        return self._array._astype(self._array[key], self.dtype)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray[Any, Any]:
        require_copy(copy)
        return np.asarray(self[...], dtype=dtype)

    def __repr__(self) -> str:
        return f"<{self._array!r} as {self.dtype}>"
