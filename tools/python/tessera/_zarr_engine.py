# mypy: ignore-errors
"""An engine for the arrays of zarr-python 4, by the interface of its prototype (zarr-python #4064); not public before that is.

Basic selections of local stores are read and written by the library, without zarr's event loop. All others go through zarr's
own engine with Tessera's codec pipeline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import numpy as np
from zarr.core.array_spec import parse_array_config
from zarr.core.config import config as config_of_zarr
from zarr.core.engine import DefaultHierarchyEngine, adopt_codec_pipeline

from . import _tessera
from ._errors import Error
from ._zarr_pipeline import CodecPipeline, _folder, _knows

if TYPE_CHECKING:
    import zarr
    from zarr.abc.engine import SelectionRequest
    from zarr.abc.store import Store
    from zarr.core.buffer import BufferPrototype, NDBuffer


class Engine:
    """An ``ArrayEngine``. It needs no event loop for what the library does; any thread may use it."""

    def __init__(self, store: Store, path: str, metadata: Any, config: Any = None):
        self._store, self._path, self._metadata = store, path, metadata
        self._config = parse_array_config(None) if config is None else config
        self._dtype = metadata.dtype.to_native_dtype()
        self._order = metadata.order if metadata.zarr_format == 2 else self._config.order
        self._plain = self._dtype.kind not in "OTV" and _knows(metadata) and self._config.read_missing_chunks
        self._handles: dict[object, _tessera.ArrayHandle] = {}
        self._work = _tessera.WorkOptions(config_of_zarr.get("threading.max_workers", None) or 0, 0, None)
        self._other = DefaultHierarchyEngine(store).array_engine(path, metadata, self._config)
        adopt_codec_pipeline(self._other, CodecPipeline.from_array_metadata_and_store(metadata, store))

    def with_metadata(self, metadata: Any) -> "Engine":
        """The engine of the array after a change of its metadata."""
        return Engine(self._store, self._path, metadata, self._config)

    def _handle(self, request: SelectionRequest, write: bool) -> Optional[_tessera.ArrayHandle]:
        """The array in a local store, if it is there as zarr knows it."""
        place = _folder(self._store)
        if place is None or not request.chunk_grid.is_regular:
            return None
        root, options = place
        known = (write, root, options)
        if known not in self._handles:
            try:
                handle = _tessera.open_below(root, self._path, _tessera.PlaceOptions(not write, *options))
            except Error:
                return None
            if write and self._config.write_empty_chunks:
                _tessera.store_fill(handle)
            self._handles[known] = handle
        handle = self._handles[known]
        layout = handle.layout()
        chunks = layout["shards"] or layout["chunks"] or ()
        same = tuple(chunks) == tuple(request.chunk_grid.chunk_shape) and tuple(handle.shape) == tuple(request.shape)
        return handle if same else None

    def _picked(self, request: SelectionRequest, fields: Any, write: bool) -> tuple[Optional[_tessera.ArrayHandle], Any]:
        """The array and what is picked of it; None for what is zarr's to do, or to refuse."""
        parts = request.selection if isinstance(request.selection, tuple) else (request.selection,)
        plain = self._plain and request.kind in ("basic", "orthogonal") and not fields and all(
            part is Ellipsis or isinstance(part, (int, np.integer)) and not isinstance(part, bool)
            or isinstance(part, slice) and (part.step is None or part.step > 0) for part in parts)
        handle = self._handle(request, write) if plain else None
        try:
            return handle, None if handle is None else handle.pick(request.selection)
        except (Error, IndexError, TypeError, ValueError):
            return None, None

    def read_selection(self, request: SelectionRequest, *, prototype: BufferPrototype, out: Optional[NDBuffer] = None,
                       fields: Any = None) -> Any:
        """As in zarr's own engine."""
        handle, picked = self._picked(request, fields, False)
        buffer = out
        if picked is not None and out is None:
            buffer = prototype.nd_buffer.empty(shape=tuple(picked.shape), dtype=self._dtype, order=self._order)
        elements = None if picked is None else buffer.as_ndarray_like()
        if not isinstance(elements, np.ndarray) or elements.shape != tuple(picked.shape) or elements.dtype != self._dtype:
            return self._other.read_selection(request, prototype=prototype, out=out, fields=fields)
        handle.read(picked, elements, self._work)
        # As zarr has it, a single element by a basic selection is a scalar, and by an orthogonal one an array.
        return elements[()] if elements.ndim == 0 and request.kind == "basic" else elements

    def write_selection(self, request: SelectionRequest, value: Any, *, prototype: BufferPrototype, fields: Any = None) -> None:
        """As in zarr's own engine; each chunk under its lock."""
        self._store._check_writable()
        handle, picked = self._picked(request, fields, True)
        if picked is not None and np.isscalar(value):
            value = np.asarray(value, self._dtype)
        fits = picked is not None and isinstance(value, np.ndarray) and value.dtype == self._dtype and value.shape in ((), tuple(picked.shape))
        if not fits:
            self._other.write_selection(request, value, prototype=prototype, fields=fields)
            return
        handle.write(picked, np.broadcast_to(value, tuple(picked.shape)), self._work)


def with_engine(array: zarr.Array) -> zarr.Array:
    """The same array of zarr-python with this engine."""
    return type(array)(array._async_array, engine_spec=Engine(array.store, array.path, array.metadata, array.async_array.config))
