# mypy: ignore-errors
"""The engine "tessera" of xarray: ``xarray.open_dataset("grid.zarr", engine="tessera")``."""

from __future__ import annotations

import base64
import os
import struct
import sys
from typing import Iterable, Optional

import numpy as np
from xarray import Dataset, Variable
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint
from xarray.backends.store import StoreBackendEntrypoint
from xarray.coding import strings
from xarray.core import indexing

from . import _tessera
from ._array import Array
from ._errors import Unsupported
from ._group import Group, Members
from ._commands import open as open_path
from ._node import Node
from ._types import DType, Document, Remote

_NULL_FILL = "_TESSERA_FILL_VALUE"
_OWN = ("_ARRAY_DIMENSIONS", _NULL_FILL)


class _Elements(BackendArray):  # type: ignore
    """An array that is read when its elements are needed."""

    def __init__(self, array: Array):
        self._array = array
        self.shape = array.shape
        text = array._handle.is_variable and array._handle.dtype_text == "string"
        self.dtype = strings.create_vlen_dtype(str) if text else array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Values:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[object, ...]) -> Values:
        if all(isinstance(item, (int, np.integer, slice)) for item in key):
            return self._array[key]
        return self._array.oindex[key]


def _stated(value: object, dtype: DType) -> object:
    """The attribute `_FillValue` as an element; xarray writes floats to v3 as base64."""
    if dtype.kind == "c" and isinstance(value, list) and len(value) == 2:
        return complex(*(_stated(part, np.dtype("f8")) for part in value))
    if dtype.kind == "f" and isinstance(value, str):
        return struct.unpack("<d", base64.standard_b64decode(value))[0]
    return value


def _fill(array: Array, attributes: Document, is_mark: bool) -> object:
    """The value that marks missing elements; None if there is none. `is_mark`: it is the array's fill, if it has one."""
    stated = attributes.pop("_FillValue", None)
    fill = array.fill_value if is_mark and attributes.get(_NULL_FILL) != "null" else None
    return _stated(stated, array.dtype) if fill is None else fill


def _numcodecs(configuration: Optional[Document]) -> object:
    try:
        import numcodecs
    except ImportError:
        return configuration
    return None if configuration is None else numcodecs.get_codec(dict(configuration))


def _codecs(array: Array) -> Document:
    """Codecs and shards as xarray's engine for Zarr keeps them, so that `to_zarr` writes the same.

    zarr-python 3 writes v3 by default, and refuses codecs of v2 there: beside it only arrays of v3 keep their codecs.
    """
    modern = "zarr" in sys.modules and not sys.modules["zarr"].__version__.startswith("2.")
    if modern and array.format == "v3":
        try:
            shown = array.as_zarr()
            return {name: getattr(shown, name) for name in ("compressors", "filters", "serializer", "shards")}
        except (ImportError, KeyError, TypeError, ValueError):  # codecs that zarr lacks
            return {"shards": array.shards}
    stored = _tessera.ZarrKeys(array._handle, 2).document()
    decoded = stored["compressor"] is None and not stored["filters"] and array.codec != "none"  # Zarr v2 lacks a codec
    if decoded or modern:
        return {"shards": array.shards}
    try:
        # zarr adds the codec of text and bytes by itself: twice, if it is among the filters.
        filters = [_numcodecs(one) for one in stored["filters"] or [] if not one["id"].startswith("vlen-")]
        return {"compressor": _numcodecs(stored["compressor"]), "filters": filters or None, "shards": array.shards}
    except (TypeError, ValueError):  # a codec that is not installed
        return {"shards": array.shards}


def _variable(name: str, array: Array, fill_is_mark: Optional[bool]) -> Variable:
    attributes = array.attrs.asdict()
    is_mark = array.format == "v2" if fill_is_mark is None else fill_is_mark
    fill = _fill(array, attributes, is_mark)
    dims = array.dims or (None,) * array.ndim
    names = [dim if dim is not None else f"{name}_dim_{axis}" for axis, dim in enumerate(dims)]
    attributes = {key: value for key, value in attributes.items() if key not in _OWN}
    if fill is not None:
        attributes["_FillValue"] = fill
    encoding: Document = {}
    if array.chunks is not None:
        encoding = {"chunks": array.chunks, "preferred_chunks": dict(zip(names, array.chunks)), **_codecs(array)}
        if array.format == "v3" and not is_mark:
            encoding["fill_value"] = array.fill_value
    return Variable(names, indexing.LazilyIndexedArray(_Elements(array)), attributes, encoding)


class _Store(AbstractDataStore):  # type: ignore
    """The arrays of one node as variables."""

    def __init__(self, node: Node, fill_is_mark: Optional[bool]):
        self._node = node
        self._fill_is_mark = fill_is_mark

    def _arrays(self) -> Iterable[tuple[str, Array]]:
        if isinstance(self._node, Array):
            place, _, member = self._node.path.partition("::")
            yield member or os.path.splitext(os.path.basename(place))[0], self._node
        elif isinstance(self._node, Group):
            yield from self._node.arrays()
        else:
            yield from self._node.items()

    def load(self) -> tuple[dict[str, Variable], Document]:
        """Variables, and the attributes of the data set."""
        variables = {name: _variable(name, array, self._fill_is_mark) for name, array in self._arrays()}
        attributes = self._node.attrs.asdict() if isinstance(self._node, Group) and self._node.format else {}
        return variables, attributes


class TesseraBackend(BackendEntrypoint):  # type: ignore
    """Opens every format that Tessera opens, each array as a lazily read variable."""

    description = "Open arrays and groups of every Zarr format, .npy, .npz, .ra and MLDF, with Tessera"

    def open_dataset(self, filename_or_obj: object, *, drop_variables: object = None, group: Optional[str] = None,
                     mask_and_scale: bool = True, decode_times: bool = True, concat_characters: bool = True,
                     decode_coords: object = True, use_cftime: object = None, decode_timedelta: object = None,
                     use_zarr_fill_value_as_mask: Optional[bool] = None,
                     storage_options: Remote = None) -> Dataset:
        """Open an array, a group (or the one below it that `group` names) or a file as a data set.

        `use_zarr_fill_value_as_mask`: whether the fill value marks missing elements, as in xarray's engine for Zarr.
        By default only that of Zarr v2 does; in every other format the attribute `_FillValue`. `storage_options`: as of
        `tessera.open`.
        """
        node = filename_or_obj
        if not isinstance(node, (Array, Group, Members)):
            node = open_path(os.fspath(node), storage_options=storage_options)
        if group:
            if isinstance(node, Array):
                raise Unsupported(f"{node.path}: is an array, and has no group {group!r}")
            node = node[group]
        return StoreBackendEntrypoint().open_dataset(
            _Store(node, use_zarr_fill_value_as_mask), mask_and_scale=mask_and_scale, decode_times=decode_times,
            concat_characters=concat_characters, decode_coords=decode_coords, drop_variables=drop_variables,
            use_cftime=use_cftime, decode_timedelta=decode_timedelta)
