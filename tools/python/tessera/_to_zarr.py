# mypy: ignore-errors
"""Writing data sets of xarray."""

from __future__ import annotations

import base64
import importlib
import os
import struct
from typing import TYPE_CHECKING, Mapping, Optional, Union

import numpy as np

from ._array import Array
from ._calls import shown
from ._commands import create_group
from ._commands import open as open_path
from ._dask_store import store
from ._errors import InvalidArgument
from ._group import Group
from ._types import Document, Remote

if TYPE_CHECKING:
    from xarray import Variable

_ENCODED = ("scale_factor", "add_offset", "units", "calendar")


def _plain(value: object) -> object:
    """An attribute as JSON."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return value


def _as_stored(variable: "Variable", array: Array) -> "Variable":
    """The variable, to be encoded as the array's elements are."""
    attributes = array.attrs.asdict()
    encoding = {name: attributes[name] for name in _ENCODED if name in attributes}
    is_time = variable.dtype.kind in "Mm"
    if not is_time:
        encoding.pop("units", None)
    if "_FillValue" in attributes or (array.format == "v2" and array.fill_value is not None):
        encoding["_FillValue"] = array.fill_value
    if is_time or "scale_factor" in encoding or "add_offset" in encoding:
        encoding["dtype"] = array.dtype
    made = variable.copy(deep=False)
    made.encoding = encoding
    return made


def _is_dask(data: object) -> bool:
    return hasattr(data, "to_delayed")


def _write(array: Array, variable: "Variable", region: Optional[tuple[slice, ...]]) -> None:
    data = variable.data
    if _is_dask(data):
        store(data, array, region=region)
    else:
        array[region or ...] = np.asarray(data)


def _make(group: Group, name: str, variable: "Variable", chunks: Mapping[str, int], shards: Mapping[str, int], codec: Optional[str]) -> None:
    data = variable.data
    attributes = {key: _plain(value) for key, value in variable.attrs.items()}
    options: Document = {"dims": list(variable.dims), "codec": codec}
    fill = attributes.pop("_FillValue", None)
    if fill is not None:
        options["fill_value"] = fill
        if group.format == "v3":  # as xarray writes it there
            is_float = np.asarray(fill).dtype.kind == "f" and variable.dtype.kind == "f"
            attributes["_FillValue"] = base64.standard_b64encode(struct.pack("<d", fill)).decode() if is_float else fill
    own = variable.encoding.get("chunks") or (data.chunksize if _is_dask(data) else None)
    if variable.ndim and 0 not in variable.shape and (own or set(chunks) & set(variable.dims) or set(shards) & set(variable.dims)):
        lengths = own or variable.shape
        options["chunks"] = tuple(min(int(chunks.get(dim, n)), size) for dim, n, size in zip(variable.dims, lengths, variable.shape))
        if set(shards) & set(variable.dims):
            options["shards"] = tuple(int(shards.get(dim, n)) for dim, n in zip(variable.dims, options["chunks"]))
    if _is_dask(data):
        array = group.create_array(name, data.shape, data.dtype, attrs=attributes, **options)
        _write(array, variable, None)
    else:
        group.create_array(name, data=np.asarray(data), attrs=attributes, **options)


def to_zarr(dataset: object, path: Union[str, "os.PathLike[str]"], *, format: str = "v3",
            chunks: Optional[Mapping[str, int]] = None, shards: Optional[Mapping[str, int]] = None,
            codec: Optional[str] = None, append_dim: Optional[str] = None,
            region: Optional[Mapping[str, slice]] = None,
            storage_options: Remote = None) -> None:
    """Write a data set of xarray as a group of arrays, or into a group that is there.

    Arrays of dask are written in blocks that end where chunks or shards do (:func:`store`). What other processes write
    to the same chunks at the same time is not lost, because chunks are locked.

    Parameters
    ----------
    dataset : xarray.Dataset
    path : path
        A new group; with `append_dim` or `region` one that is there.
    chunks, shards : dict, optional
        Lengths by the names of dimensions. Chunks are by default those of dask, or of the file that was read; shards
        are as long as chunks where nothing is said.
    codec : str, optional
        As in :func:`create`.
    append_dim : str, optional
        Append along this dimension. Variables without it must be there, and stay as they are.
    region : dict, optional
        Write into this part: slices by the names of dimensions. Every variable must have one of these.
    storage_options : dict, optional
        As in :func:`open`.

    Examples
    --------
    >>> import xarray
    >>> data = xarray.Dataset({"t": ("x", np.arange(6.0))})
    >>> tessera.to_zarr(data, "set.zarr", chunks={"x": 2}, shards={"x": 4})
    >>> tessera.to_zarr(data, "set.zarr", append_dim="x")
    >>> tessera.open("set.zarr")["t"].shape
    (12,)
    """
    xarray = importlib.import_module("xarray")
    if not isinstance(dataset, xarray.Dataset):
        raise TypeError(f"to_zarr(): dataset: expected an xarray.Dataset, found {shown(dataset)}")
    conventions = xarray.conventions
    variables, attributes = conventions.encode_dataset_coordinates(dataset)
    if append_dim is None and region is None:
        group = create_group(path, format, {key: _plain(value) for key, value in attributes.items()},
                             storage_options=storage_options)
        for name, variable in variables.items():
            encoded = conventions.encode_cf_variable(variable, name=name)
            encoded.encoding = variable.encoding
            _make(group, name, encoded, chunks or {}, shards or {}, codec)
        if group.format in ("v2", "v3"):
            group.consolidate()
        return
    if append_dim is not None and region is not None:
        raise InvalidArgument("append_dim, region: only one of them")
    if chunks or shards or codec:
        raise InvalidArgument("chunks, shards, codec: only for a new group")
    group = open_path(path, "r+", storage_options=storage_options)
    if not isinstance(group, Group):
        raise InvalidArgument(f"{os.fspath(path)}: expected a group")
    written = {append_dim} if append_dim is not None else set(region or {})
    ready = []
    for name, variable in variables.items():  # everything is looked at before anything is written
        if name not in group:
            raise InvalidArgument(f"{group.path}: has no array {name!r}")
        array = group[name]
        if not written & set(variable.dims):
            if region is not None:
                raise InvalidArgument(f"{name}: has none of the dimensions {sorted(written)}: leave it out")
            if array.shape != variable.shape:
                raise InvalidArgument(f"{array.path}: has shape {array.shape}, and is {variable.shape} here")
            continue
        for axis, dim in enumerate(variable.dims):
            whole = append_dim == dim or (region is not None and dim in region)
            if array.ndim != variable.ndim or (not whole and array.shape[axis] != variable.shape[axis]):
                raise InvalidArgument(f"{array.path}: shape {array.shape} does not fit {variable.shape}")
        if array.dims is not None and any(given not in (None, dim) for given, dim in zip(array.dims, variable.dims)):
            raise InvalidArgument(f"{array.path}: has the dimensions {array.dims}, and not {variable.dims}")
        encoded = conventions.encode_cf_variable(_as_stored(variable, array), name=name)
        if not np.can_cast(encoded.dtype, array.dtype, "same_kind") and array.dtype.kind != "O":
            raise InvalidArgument(f"{array.path}: {encoded.dtype} would lose values in {array.dtype}")
        ready.append((array, encoded))
    for array, variable in ready:
        if append_dim is not None:
            array.append(np.asarray(variable.data), axis=variable.dims.index(append_dim))
        else:
            _write(array, variable, tuple((region or {}).get(dim, slice(None)) for dim in variable.dims))
    if append_dim is not None and group.format in ("v2", "v3"):
        group.consolidate()
