# mypy: ignore-errors
"""The engine "tessera" of xarray: ``xarray.open_dataset("grid.zarr", engine="tessera")``."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import struct
import sys
from typing import Iterator, NamedTuple, Optional

import numpy as np
from xarray import Dataset, Variable, conventions
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint
from xarray.backends.store import StoreBackendEntrypoint
from xarray.coding import strings
from xarray.core import indexing

from . import _tessera
from ._array import Array
from ._errors import InvalidArgument, Unsupported
from ._group import Group, Members
from ._commands import open as open_path
from ._node import Node
from ._options import place_options
from ._types import DType, Document, Remote, Values

_NULL_FILL = "_TESSERA_FILL_VALUE"
_NAMES = {"__values__": None}  # of a variable without a name, as xarray writes it
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

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Values:
        """As reading by a key, in a thread: other coroutines go on."""
        async def read(picked: tuple[object, ...]) -> Values:
            return await asyncio.to_thread(self._read, picked)

        return await indexing.async_explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, read)

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


def _numcodecs(configuration: Optional[Document]) -> object:
    try:
        import numcodecs
    except ImportError:
        return configuration
    return None if configuration is None else numcodecs.get_codec(dict(configuration))


def _codec_objects(array: Array, is_v3: bool, modern: bool) -> Document:
    if modern:
        try:
            shown = array.as_zarr()
            names = ("compressors", "filters", "serializer") if is_v3 else ("compressors", "filters")
            return {name: getattr(shown, name) for name in names}
        except (ImportError, KeyError, TypeError, ValueError):  # codecs that zarr lacks
            return {}
    stored = _tessera.ZarrKeys(array._handle, 2).document()
    if stored["compressor"] is None and not stored["filters"] and array.codec != "none":
        return {}  # Zarr v2 lacks a codec
    try:
        # zarr adds the codec of text and bytes by itself: twice, if it is among the filters.
        filters = [_numcodecs(one) for one in stored["filters"] or [] if not one["id"].startswith("vlen-")]
        return {"compressor": _numcodecs(stored["compressor"]), "filters": filters or None}
    except (TypeError, ValueError):  # a codec that is not installed
        return {}


_KNOWN: dict[tuple[object, ...], Document] = {}


def _codecs(array: Array, codecs: str) -> Document:
    """Codecs as xarray's engine for Zarr keeps them. Most arrays of a data set have the same."""
    modern = "zarr" in sys.modules and not sys.modules["zarr"].__version__.startswith("2.")
    is_v3 = array.format == "v3"
    key = (codecs, array._handle.dtype_text, array.ndim, is_v3, modern)
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) >= 256:
            _KNOWN.clear()
        known = _KNOWN[key] = _codec_objects(array, is_v3, modern)
    return {name: list(value) if isinstance(value, list) else value for name, value in known.items()}


class _Member(NamedTuple):
    """An array with what was read together with it."""

    name: str
    array: Array
    attributes: Document
    codecs: str


def _variable(member: _Member, fill_is_mark: Optional[bool]) -> Variable:
    name, array, attributes = member.name, member.array, dict(member.attributes)
    format = array.format
    is_mark = format == "v2" if fill_is_mark is None else fill_is_mark
    stored_fill = array.fill_value
    null = attributes.get(_NULL_FILL) == "null"
    stated = attributes.pop("_FillValue", None)
    fill = stored_fill if is_mark and not null and stored_fill is not None else _stated(stated, array.dtype)
    dims = array.dims or (None,) * array.ndim
    names = [dim if dim is not None else f"{name}_dim_{axis}" for axis, dim in enumerate(dims)]
    for own in _OWN:
        attributes.pop(own, None)
    if fill is not None:
        attributes["_FillValue"] = fill
    encoding: Document = {}
    chunks = array.chunks
    if chunks is not None:
        encoding = {"chunks": chunks, "preferred_chunks": dict(zip(names, chunks)), "shards": array.shards,
                    **_codecs(array, member.codecs)}
        if format == "v3" and not is_mark:
            encoding["fill_value"] = stored_fill
    return Variable(names, indexing.LazilyIndexedArray(_Elements(array)), attributes, encoding)


def _member(name: str, array: Array) -> _Member:
    codecs = array._handle.facts(array.path).get("codecs") if array.chunks is not None else None
    return _Member(name, array, array.attrs.asdict(), json.dumps(codecs))


def _members(node: Node) -> Iterator[_Member]:
    """The arrays of a node, each looked at once."""
    if isinstance(node, Array):
        place, _, member = node.path.partition("::")
        yield _member(member or os.path.splitext(os.path.basename(place))[0], node)
    elif isinstance(node, Group):
        options = _tessera.PlaceOptions(node.mode == "r", **place_options(node._options))
        for name, handle, attributes, codecs in _tessera.open_arrays(node._handle, node._path, options, node._work()):
            yield _Member(name, Array(handle, node._place(name), node.mode, node._options), attributes, codecs)
    else:
        yield from itertools.starmap(_member, node.items())


class _Store(AbstractDataStore):  # type: ignore
    """The arrays of one node as variables."""

    def __init__(self, node: Node, fill_is_mark: Optional[bool]):
        self._node = node
        self._fill_is_mark = fill_is_mark

    def load(self) -> tuple[dict[str, Variable], Document]:
        """Variables, and the attributes of the data set."""
        variables = {_NAMES.get(member.name, member.name): _variable(member, self._fill_is_mark) for member in _members(self._node)}
        attributes = self._node.attrs.asdict() if isinstance(self._node, Group) and self._node.format else {}
        return variables, attributes


def coordinate(group: Group, dim: str) -> Values:
    """The values of a group's coordinate, decoded as xarray does."""
    array = group[dim]
    if not isinstance(array, Array) or array.ndim != 1:
        raise InvalidArgument(f"{array.path}: no coordinate of one dimension")
    return conventions.decode_cf_variable(dim, _variable(_member(dim, array), None)).values


def _node(given: object, group: Optional[str], storage_options: Remote) -> Node:
    """What is opened."""
    node = given if isinstance(given, (Array, Group, Members)) else open_path(os.fspath(given), storage_options=storage_options)
    if group and group.strip("/"):
        if isinstance(node, Array):
            raise Unsupported(f"{node.path}: is an array, and has no group {group!r}")
        node = node[group]
    return node


class TesseraBackend(BackendEntrypoint):  # type: ignore
    """Opens every format that Tessera opens, each array as a lazily read variable."""

    description = "Open arrays and groups of every Zarr format, .npy, .npz, .ra and MLDF, with Tessera"

    supports_groups = True

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
        return StoreBackendEntrypoint().open_dataset(
            _Store(_node(filename_or_obj, group, storage_options), use_zarr_fill_value_as_mask), mask_and_scale=mask_and_scale,
            decode_times=decode_times, concat_characters=concat_characters, decode_coords=decode_coords,
            drop_variables=drop_variables, use_cftime=use_cftime, decode_timedelta=decode_timedelta)

    def open_groups_as_dict(self, filename_or_obj: object, *, group: Optional[str] = None, use_zarr_fill_value_as_mask: Optional[bool] = None,
                            storage_options: Remote = None, **decoding: object) -> dict[str, Dataset]:
        """Open a group (or the one below it that `group` names) and all groups below it as data sets by their paths.

        The options are those of `open_dataset`.
        """
        top = _node(filename_or_obj, group, storage_options)
        nodes = {"/": top}
        if isinstance(top, Group):
            nodes.update((f"/{path}", top[path]) for path, kind, _ in top.walk() if kind == "group")
        return {path: StoreBackendEntrypoint().open_dataset(_Store(node, use_zarr_fill_value_as_mask), **decoding)
                for path, node in nodes.items()}

    def open_datatree(self, filename_or_obj: object, **options: object) -> object:
        """Open a group and all groups below it as a tree. The options are those of `open_dataset`."""
        from xarray.backends.common import datatree_from_dict_with_io_cleanup

        return datatree_from_dict_with_io_cleanup(self.open_groups_as_dict(filename_or_obj, **options))
