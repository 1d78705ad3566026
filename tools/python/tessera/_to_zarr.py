# mypy: ignore-errors
"""Writing data sets and trees of xarray."""

from __future__ import annotations

import base64
import contextlib
import errno
import importlib
import itertools
import os
import shutil
import socket
import struct
import uuid
from typing import TYPE_CHECKING, Any, Iterator, Literal, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _tessera
from ._array import Array
from ._calls import shown
from ._commands import create_group
from ._commands import open as open_path
from ._dask_store import Blocks, store
from ._errors import AlreadyExists, Error, InvalidArgument, Unsupported
from ._group import Group
from ._names import lengths, translated
from ._options import absolute
from ._types import Document, Format, Remote

if TYPE_CHECKING:
    from xarray import Variable

_TEMPORARY = ".tessera-tmp-"
_ENCODED = ("scale_factor", "add_offset", "units", "calendar")
# Of an encoding what says how an array is stored; the rest is of the CF conventions, and xarray's.
_STORED = ("filters", "serializer", "compressors", "compressor")
_CF = ("dtype", "_FillValue", "missing_value", "scale_factor", "add_offset", "units", "calendar", "coordinates", "grid_mapping",
       "char_dim_name", "_Unsigned")


def _plain(value: object) -> object:
    """An attribute as JSON."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return value


def _encoded(dataset: Any) -> tuple[dict[str, "Variable"], Document]:
    """The variables of a data set by the names of their arrays, and its attributes."""
    variables, attributes = importlib.import_module("xarray").conventions.encode_dataset_coordinates(dataset)
    return {"__values__" if name is None else name: variable for name, variable in variables.items()}, attributes


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


# ---- new groups


def _codec_of(encoding: Mapping[str, Any], is_given: bool) -> Optional[str]:
    """The codecs that an encoding names; those of another file only if Tessera has them."""
    own = {name: encoding[name] for name in _STORED if name in encoding}
    filters = own.get("filters")
    if isinstance(filters, (list, tuple)):  # text gets its codec by itself
        own["filters"] = [one for one in filters if not str(getattr(one, "codec_id", "")).startswith("vlen-")]
    if type(own.get("serializer")).__name__.startswith("VLen"):
        del own["serializer"]
    try:
        return translated(own).get("codec") if own else None
    except (TypeError, ValueError):
        if is_given:
            raise
        return None


def _chunks(variable: "Variable", given: Document, chunks: Mapping[str, int], shards: Mapping[str, int], is_v3: bool) -> Document:
    """The lengths of chunks and shards of a new array: those given, by names, of the file that was read, or of dask."""
    if not variable.ndim or 0 in variable.shape:
        return {}
    dims, shape, named = variable.dims, variable.shape, set(variable.dims)
    options = {name: lengths(name, given[name], shape, dims, given.get("chunks") if name == "shards" else None)
               for name in ("chunks", "shards") if given.get(name) is not None}
    read = variable.encoding.get("chunks")
    own = read or (variable.data.chunksize if _is_dask(variable.data) else None)
    if "chunks" not in options and (own or named & {*chunks, *shards}):
        usual = own or [shards.get(dim, size) for dim, size in zip(dims, shape)]
        options["chunks"] = tuple(int(shards[dim]) if dim in shards and dim not in chunks and not own else min(int(chunks.get(dim, n)), size)
                                  for dim, n, size in zip(dims, usual, shape))
    if "shards" not in options and named & set(shards):
        if options["chunks"] is None:
            raise InvalidArgument("shards: take chunks of given lengths")
        options["shards"] = tuple(int(shards.get(dim, n)) for dim, n in zip(dims, options["chunks"]))
    elif "shards" not in options and is_v3 and read and options["chunks"] == tuple(read):
        options["shards"] = variable.encoding.get("shards")
    return options


class _Template(NamedTuple):
    """How new arrays of a group are stored."""

    chunks: Mapping[str, int]
    shards: Mapping[str, int]
    codec: Optional[str]
    encoding: Mapping[str, Mapping[str, Any]]
    compute: bool

    def make(self, group: Group, name: str, variable: "Variable") -> Any:
        """An array for a variable, with its elements, or those that dask is to compute later."""
        conventions = importlib.import_module("xarray").conventions
        given = dict(self.encoding.get(name, {}))
        source = variable.copy(deep=False)
        source.encoding = {**{key: value for key, value in variable.encoding.items() if not (given and key in _STORED)}, **given}
        encoded = conventions.encode_cf_variable(source, name=name)
        attributes = {key: _plain(value) for key, value in encoded.attrs.items()}
        encoded.encoding = variable.encoding
        options: Document = {"dims": list(variable.dims), **_chunks(encoded, given, self.chunks, self.shards, group.format == "v3")}
        options["codec"] = self.codec or _codec_of(source.encoding, bool(set(given) & set(_STORED)))
        _give_fill(group, encoded, attributes, given, options)
        data = encoded.data
        if not _is_dask(data):
            group.create_array(name, data=np.asarray(data), attrs=attributes, **options)
            return None
        array = group.create_array(name, data.shape, data.dtype, attrs=attributes, **options)
        if not self.compute:
            return data
        store(data, array)
        return None


def _give_fill(group: Group, variable: "Variable", attributes: Document, given: Document, options: Document) -> None:
    """The fill value of a new array, and the attribute of the value that marks missing elements."""
    fill = attributes.pop("_FillValue", None)
    if fill is not None:
        options["fill_value"] = fill
        if group.format == "v3":  # as xarray writes it there
            is_float = np.asarray(fill).dtype.kind == "f" and variable.dtype.kind == "f"
            attributes["_FillValue"] = base64.standard_b64encode(struct.pack("<d", fill)).decode() if is_float else fill
    if given.get("fill_value") is not None:
        options["fill_value"] = given["fill_value"]


def _require_known(nodes: Mapping[str, Any], encoding: Mapping[str, Any]) -> dict[str, Mapping[str, Mapping[str, Any]]]:
    """The encodings of each node's variables. Raises for names that nothing has."""
    is_tree = list(nodes) != [""]
    by_node = {str(path).strip("/"): each for path, each in encoding.items()} if is_tree else {"": encoding}
    known = {*_STORED, *_CF, "chunks", "shards", "fill_value", "preferred_chunks", "write_empty_chunks"}
    for path, variables in by_node.items():
        if path not in nodes:
            raise InvalidArgument(f"encoding: there is no node {path!r}")
        for name, given in variables.items():
            if name not in nodes[path].variables:
                raise InvalidArgument(f"encoding: there is no variable {name!r}")
            unknown = set(given) - known
            if unknown:
                raise InvalidArgument(f"encoding: {name}: unexpected {', '.join(sorted(unknown))}; there are: {', '.join(sorted(known))}")
    return by_node


def _beside(place: str) -> str:
    """Where a new group is written until it is complete: under a name that no listing shows, and that repair knows.

    What ended processes of this machine left there is removed.
    """
    above = os.path.dirname(place)
    os.makedirs(above, exist_ok=True)
    mine = f"-to_zarr-{socket.gethostname()}-"
    for left in os.listdir(above):
        number, is_mine, _ = left.removeprefix(_TEMPORARY).partition(mine)
        if left.startswith(_TEMPORARY) and is_mine and number.isdigit() and not os.path.exists(f"/proc/{number}"):
            shutil.rmtree(os.path.join(above, left), ignore_errors=True)
    return os.path.join(above, f"{_TEMPORARY}{os.getpid()}{mine}{uuid.uuid4().hex[:8]}")


@contextlib.contextmanager
def _appearing(place: str) -> Iterator[str]:
    """A place to write to, from which a group appears at its own when it is complete."""
    above = os.path.dirname(place)
    is_free = not os.path.lexists(place) or (os.path.isdir(place) and not os.listdir(place))
    if not _tessera.is_local(place) or not is_free or (os.path.exists(above) and not os.path.isdir(above)):
        yield place  # over a network, in a plain folder, or where that raises
        return
    hidden = _beside(place)
    try:
        yield hidden
        os.rename(hidden, place)
        folder = os.open(above, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except Error as error:
        if hidden not in str(error):
            raise
        raise type(error)(str(error).replace(hidden, place)) from None
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise AlreadyExists(f"{place}: was made meanwhile") from None
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def _write_new(nodes: Mapping[str, Any], place: str, format: Format, template: _Template, storage_options: Remote) -> dict[str, Any]:
    """Makes groups and arrays. Returns what is left to compute, by paths."""
    left: dict[str, Any] = {}
    encodings = _require_known(nodes, template.encoding)
    with _appearing(place) as at:
        root: Optional[Group] = None
        for path, dataset in nodes.items():
            variables, attributes = _encoded(dataset)
            attributes = {key: _plain(value) for key, value in attributes.items()}
            if root is None:
                group = root = create_group(at, format, attributes, storage_options=storage_options)
            else:
                group = root.create_group(path, attributes)
            own = template._replace(encoding=encodings.get(path, {}))
            for name, variable in variables.items():
                data = own.make(group, name, variable)
                if data is not None:
                    left[f"{path}/{name}" if path else name] = data
        if root is not None and root.format in ("v2", "v3"):
            root.consolidate()
    return left


# ---- groups that are there


class _Part(NamedTuple):
    """What is written into an array: a part that begins at an index, along one dimension beyond its end if it is appended."""

    name: str
    data: Any
    dims: tuple[str, ...]
    region: Mapping[str, slice]
    append_dim: Optional[str]

    def write(self, array: Array) -> None:
        if self.append_dim is not None:
            axis = self.dims.index(self.append_dim)
            shape = list(array.shape)
            region = [slice(None)] * array.ndim
            region[axis] = slice(shape[axis], shape[axis] + self.data.shape[axis])
            if not _is_dask(self.data):
                array.append(np.asarray(self.data), axis=axis)
                return
            shape[axis] += self.data.shape[axis]
            array.resize(shape)
        else:
            region = [self.region.get(dim, slice(None)) for dim in self.dims]
        if not _is_dask(self.data):
            array[tuple(region)] = np.asarray(self.data)
            return
        blocks = Blocks(self.data, array, tuple(region))
        for index in np.ndindex(blocks.shape):
            blocks.write(index)


def _require_fitting(array: Array, variable: "Variable", written: set[str], append_dim: Optional[str]) -> None:
    for axis, dim in enumerate(variable.dims):
        whole = dim in written
        if array.ndim != variable.ndim or (not whole and array.shape[axis] != variable.shape[axis]):
            raise InvalidArgument(f"{array.path}: shape {array.shape} does not fit {variable.shape}")
    if array.dims is not None and any(given not in (None, dim) for given, dim in zip(array.dims, variable.dims)):
        raise InvalidArgument(f"{array.path}: has the dimensions {array.dims}, and not {variable.dims}")


def _parts(group: Group, path: str, dataset: Any, append_dim: Optional[str], region: Optional[Mapping[str, slice]]) -> Iterator[_Part]:
    """What is written, looked at before anything is."""
    conventions = importlib.import_module("xarray").conventions
    variables, _ = _encoded(dataset)
    written = {append_dim} if append_dim is not None else set(region or {})
    for name, variable in variables.items():
        below = f"{path}/{name}" if path else name
        if below not in group:
            raise InvalidArgument(f"{group.path}: has no array {below!r}")
        array = group[below]
        if not isinstance(array, Array):
            raise InvalidArgument(f"{array.path}: expected an array, found a group")
        if not written & set(variable.dims):
            if region is not None:
                raise InvalidArgument(f"{below}: has none of the dimensions {sorted(written)}: leave it out")
            if array.shape != variable.shape:
                raise InvalidArgument(f"{array.path}: has shape {array.shape}, and is {variable.shape} here")
            continue
        _require_fitting(array, variable, written, append_dim)
        encoded = conventions.encode_cf_variable(_as_stored(variable, array), name=name)
        if not np.can_cast(encoded.dtype, array.dtype, "same_kind") and array.dtype.kind != "O":
            raise InvalidArgument(f"{array.path}: {encoded.dtype} would lose values in {array.dtype}")
        for dim, part in (region or {}).items():
            if dim in variable.dims and len(range(*part.indices(array.shape[variable.dims.index(dim)]))) != variable.sizes[dim]:
                raise InvalidArgument(f"{array.path}: {variable.sizes[dim]} elements do not fit into {dim}={part} of {array.shape}")
        yield _Part(below, encoded.data, variable.dims, region or {}, append_dim)


def _index_of(group: Group, dim: str) -> Any:
    """The values of a group's coordinate."""
    from ._xarray import coordinate

    return importlib.import_module("pandas").Index(coordinate(group, dim))


def _detected(group: Group, dataset: Any, region: Any) -> tuple[Any, dict[str, slice]]:
    """The data set without the coordinates that were compared, and the slices that "auto" stands for, as xarray does."""
    is_auto = isinstance(region, str) and region == "auto"
    if not is_auto and not isinstance(region, Mapping):
        raise TypeError(f'region: expected "auto" or slices by the names of dimensions, found {shown(region)}')
    given = dict.fromkeys(dataset.dims, "auto") if is_auto else dict(region)
    found: dict[str, slice] = {}
    for dim, part in given.items():
        if dim not in dataset.dims:
            raise InvalidArgument(f"region: {dim!r} is none of the dimensions {', '.join(map(str, dataset.dims))}")
        if not (isinstance(part, str) and part == "auto"):
            if not isinstance(part, slice) or part.step not in (None, 1):
                raise InvalidArgument(f'region: {dim}: expected "auto" or a slice with step 1, found {shown(part)}')
            found[dim] = part
        elif dim not in dataset.variables:
            found[dim] = slice(0, dataset.sizes[dim])
        else:
            places = _index_of(group, dim).get_indexer(dataset[dim].data)
            if (places < 0).any():
                raise InvalidArgument(f"region: {group.path}: {dim} lacks {dataset[dim].data[places < 0][0]}; append_dim appends")
            if (np.diff(places) != 1).any():
                raise InvalidArgument(f"region: the values of {dim} lie apart in {group.path}, or in another order")
            found[dim] = slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 0)
    compared = [dim for dim, part in given.items() if isinstance(part, str) and dim in dataset.variables]
    return dataset.drop_vars(compared), found


def _computed(parts: Sequence[_Part]) -> list[_Part]:
    """Parts of dask in memory, if all of them fit: nobody has to wait while they are computed."""
    lazy = [part for part in parts if _is_dask(part.data)]
    if not lazy or sum(part.data.nbytes for part in lazy) > _tessera.usual_memory():
        return list(parts)
    values = iter(importlib.import_module("dask").compute(*(part.data for part in lazy)))
    return [part._replace(data=next(values)) if _is_dask(part.data) else part for part in parts]


def _write_into(group: Group, parts: Sequence[_Part]) -> None:
    """All parts, or none of them."""
    ready = _computed(parts)
    try:
        batch = group.edit()
    except Unsupported:  # a place without batches
        for part in ready:
            part.write(group[part.name])
        return
    with batch:
        for part in ready:
            part.write(batch[part.name])


# ---- templates


class WritingUnit(NamedTuple):
    """A unit of a :class:`Writing`: an array, and a block of it."""

    name: str
    block: tuple[int, ...]


class Writing:
    """What ``to_zarr(compute=False)`` left to write: the arrays of dask, in units.

    The group is there, with everything else. Units may be written in any order, by any process that sees the group, and
    again; no two of them write into one chunk or shard. It pickles.
    """

    def __init__(self, path: str, blocks: Mapping[str, Blocks]):
        self.path = path
        self._blocks = dict(blocks)

    def units(self) -> list[WritingUnit]:
        """All units."""
        return [WritingUnit(name, index) for name, blocks in self._blocks.items() for index in np.ndindex(blocks.shape)]

    def run(self, unit: WritingUnit) -> int:
        """Compute and write a unit. Returns how many elements it has."""
        return self._blocks[unit.name].write(tuple(unit.block))

    def compute(self) -> None:
        """Compute and write all of them, by dask."""
        importlib.import_module("dask").compute(*(blocks.delayed() for blocks in self._blocks.values()))

    def __repr__(self) -> str:
        return f"<tessera.Writing {_tessera.without_secrets(self.path)!r}: {sum(map(int, (np.prod(b.shape) for b in self._blocks.values())))} units>"


def _nodes(dataset: object) -> dict[str, Any]:
    """The data sets to write by their paths."""
    xarray = importlib.import_module("xarray")
    tree = getattr(xarray, "DataTree", None)
    if tree is not None and isinstance(dataset, tree):
        top = dataset.path
        return {node.path[len(top):].strip("/"): node.to_dataset(inherit=False) for node in dataset.subtree}
    if not isinstance(dataset, xarray.Dataset):
        raise TypeError(f"to_zarr(): dataset: expected an xarray.Dataset or DataTree, found {shown(dataset)}")
    return {"": dataset}


def to_zarr(dataset: object, path: Union[str, "os.PathLike[str]"], *, format: Format = "v3",
            chunks: Optional[Mapping[str, int]] = None, shards: Optional[Mapping[str, int]] = None,
            codec: Optional[str] = None, encoding: Optional[Mapping[str, Any]] = None, append_dim: Optional[str] = None,
            region: Union[None, Literal["auto"], Mapping[str, Union[slice, Literal["auto"]]]] = None,
            compute: bool = True, storage_options: Remote = None) -> Optional[Writing]:
    """Write a data set or a tree of xarray as a group of arrays, or into a group that is there.

    The group appears when it is complete, and what is appended or written into it takes effect in all arrays or in none,
    whenever the process ends. Arrays of dask are written in blocks that end where chunks or shards do (:func:`store`).

    Parameters
    ----------
    dataset : xarray.Dataset or xarray.DataTree
    path : path
        A new group; with `append_dim` or `region` one that is there.
    chunks, shards : dict, optional
        Lengths by the names of dimensions. Chunks are by default those of dask, or of the file that was read; shards
        are as long as chunks where nothing is said.
    codec : str, optional
        As in :func:`create`; by default as in the file that was read.
    encoding : dict, optional
        How variables are stored, as xarray takes it: ``{"t": {"dtype": "i2", "scale_factor": 0.1, "chunks": (1, 90)}}``, with
        `chunks`, `shards`, `filters`, `compressors` and `fill_value` as in :func:`create`. Of a tree by the paths of its nodes.
    append_dim : str, optional
        Append along this dimension. Variables without it must be there, and stay as they are.
    region : dict or "auto", optional
        Write into this part: slices by the names of dimensions. Every variable must have one of these. "auto" in place of a
        slice finds it by the dimension's coordinate, which is then not written; in place of the dict for all dimensions.
    compute : bool
        False makes the new group with everything but the elements of dask's arrays, and returns these in units.
    storage_options : dict, optional
        As in :func:`open`.

    Returns
    -------
    Writing or None
        What is left to write, with ``compute=False``.

    Examples
    --------
    >>> import xarray
    >>> data = xarray.Dataset({"t": ("x", np.arange(6.0))}, {"x": np.arange(6)})
    >>> tessera.to_zarr(data, "set.zarr", chunks={"x": 2}, shards={"x": 4})
    >>> tessera.to_zarr(data.assign_coords(x=data.x + 6), "set.zarr", append_dim="x")
    >>> tessera.to_zarr(data.isel(x=slice(2, 4)) * 0, "set.zarr", region="auto")
    >>> tessera.open("set.zarr")["t"][:8]
    array([0., 1., 0., 0., 4., 5., 0., 1.])
    """
    nodes = _nodes(dataset)
    if append_dim is None and region is None:
        template = _Template(chunks or {}, shards or {}, codec, encoding or {}, compute)
        left = _write_new(nodes, absolute(path), format, template, storage_options)
        if compute:
            return None
        group = open_path(path, "r+", storage_options=storage_options)
        return Writing(group.path, {name: Blocks(data, group[name]) for name, data in left.items()})
    if append_dim is not None and region is not None:
        raise InvalidArgument("append_dim, region: only one of them")
    if chunks or shards or codec or encoding:
        raise InvalidArgument("chunks, shards, codec, encoding: only for a new group")
    if not compute:
        raise InvalidArgument("compute=False: only for a new group; a part may be written by region by each worker")
    if region is not None and list(nodes) != [""]:
        raise InvalidArgument("region: is of a data set; write each node of a tree by its path")
    group = open_path(path, "r+", storage_options=storage_options)
    if not isinstance(group, Group):
        raise InvalidArgument(f"{os.fspath(path)}: expected a group")
    if region is not None:
        nodes[""], region = _detected(group, nodes[""], region)
    parts = list(itertools.chain.from_iterable(_parts(group, node, each, append_dim, region) for node, each in nodes.items()))
    if append_dim is not None and not parts:
        raise InvalidArgument(f"append_dim: no variable has the dimension {append_dim!r}")
    _write_into(group, parts)
    if append_dim is not None and group.format in ("v2", "v3"):
        group.consolidate()
    return None
