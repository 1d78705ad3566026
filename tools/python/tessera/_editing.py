"""Handles made from an array: a batch of edits, and a cache of chunks."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Iterator, Optional

from . import _tessera
from ._array import Array
from ._closing import Committing
from ._results import ArrayInfo

if TYPE_CHECKING:
    from ._group import Group


class Changed(Array):
    """An array in a batch."""

    def __reduce__(self) -> Any:
        raise TypeError("a batch of edits cannot be pickled; pickle the array")

    def __dask_tokenize__(self) -> Any:
        return uuid.uuid4().hex


class Edit(Committing, Changed):
    """A batch of changes to an array; see :meth:`Array.edit`."""

    def __init__(self, array: Array, keep_old: bool):
        self._batch = _tessera.EditHandle(array._handle, keep_old=keep_old)
        super().__init__(self._batch.array(), array._path, "r+", array._options)
        self._array = array

    def commit(self) -> int:
        """Make all changes take effect. Returns the number of values that changed."""
        try:
            changed = self._batch.commit()
        finally:
            self.discard()
        self._array.refresh()
        return changed

    def discard(self) -> None:
        """End the batch. Changes that were not committed are dropped."""
        _tessera.close(self._handle)
        self._batch.close()


class GroupEdit(Committing, Mapping[str, Array]):
    """A batch of changes to several arrays of a group; see :meth:`Group.edit`."""

    def __init__(self, group: "Group", keep_old: bool):
        self._group = group
        self._batch = _tessera.EditHandle(group._handle, keep_old=keep_old)
        self._arrays: dict[str, Changed] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._arrays:
            place = self._group._place(name)
            handle = self._batch.array_at(name.strip("/"))
            self._arrays[name] = Changed(handle, place, "r+", self._group._options)
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return (path for path, kind, _ in self._group.walk() if kind == "array")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def commit(self) -> int:
        """Make all changes of all arrays take effect. Returns the number of values that changed."""
        try:
            return self._batch.commit()
        finally:
            self.discard()

    def discard(self) -> None:
        """End the batch. Changes that were not committed are dropped."""
        for array in self._arrays.values():
            _tessera.close(array._handle)
        self._arrays.clear()
        self._batch.close()

    def __reduce__(self) -> Any:
        raise TypeError("a batch of edits cannot be pickled; pickle the group")


class Cached(Array):
    """An array with its chunks kept decoded; see :meth:`Array.cached`."""

    def __init__(self, array: Array, budget: int):
        super().__init__(_tessera.open_cache(array._handle, budget), array._path, array._mode,
                         {**array._options, "max_memory": budget + _tessera.usual_memory()})
        self._array = array

    def flush(self) -> None:
        """Write all cached changes to the array."""
        _tessera.flush(self._handle, self._brief)

    def close(self) -> None:
        """Flush, and drop the chunks."""
        self.flush()
        _tessera.close(self._handle)
        self._array.refresh()

    @property
    def chunks(self) -> Optional[tuple[int, ...]]:
        return self._array.chunks

    @property
    def fill_value(self) -> Any:
        return self._array.fill_value

    @property
    def format(self) -> Optional[str]:
        return self._array.format

    @property
    def info(self) -> ArrayInfo:
        return self._array.info

    def __reduce__(self) -> Any:
        raise TypeError("a cache cannot be pickled; pickle the array")

    def __dask_tokenize__(self) -> Any:
        return uuid.uuid4().hex
