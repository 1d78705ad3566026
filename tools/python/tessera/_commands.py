# mypy: enable-incomplete-feature=Unpack
"""The program's commands as functions."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union, overload

import numpy as np

from . import _tessera
from ._array import Array
from ._calls import warn
from ._errors import AlreadyExists, InvalidArgument, NotFound
from ._group import Group, Members, require_same
from ._lazy import View
from ._making import DEFAULT, Path, as_stored, creation_options, json_fill, new_place
from ._names import translated
from ._node import KINDS, Node, open_node
from ._options import (ConversionOptions, CopyOptions, CreationOptions, DifferenceOptions, Lengths, MadeOptions, NewLengths,
                       PlacedOptions, ProgressCallback, SynonymOptions, absolute, over_network, over_network_of_node, place_options, remote, without_work, work)
from .types import Advice, ArrayInfo, Difference, FileInfo, GroupInfo, Indexed, SetDifference, Statistics
from ._types import Attrs, DTypeLike, Document, Format, Mode, Reduction, Remote, Values

if TYPE_CHECKING:
    from typing_extensions import Unpack

Opened = Union[Array, Group, Members]
Place = Union[Path, Opened]

KINDS.update({_tessera.ArrayHandle: Array, _tessera.GroupHandle: Group, list: Members})


def _place(break_seal: bool, storage_options: Remote = None) -> _tessera.PlaceOptions:
    """For functions that change the node at a path."""
    return _tessera.PlaceOptions(False, break_seal=break_seal, storage_options=storage_options)


def _given(**options: tuple[object, object]) -> Document:
    """Of options, each with its usual value, those that differ from it."""
    return {name: value for name, (value, usual) in options.items() if value != usual}


_MADE = ("a", "w", "w-")


def _removed(place: str, opening: Document) -> None:
    """Removes the array or group at a place, if one is there."""
    above, _, name = place.rstrip("/").rpartition("/")
    try:
        open_node(place, "r+", **opening)
    except NotFound:
        return
    above_it: Group = open_node(above, "r+", **opening)
    above_it.remove(name, recursive=True)


def _make(path: Path, mode: str, is_array: bool, overwrite: bool, opening: Document, wanted: Any) -> Node:
    """What the modes "w" and "w-" make, and "a" where nothing is."""
    asked = dict(wanted)
    shape, dtype = asked.pop("shape", None), asked.pop("dtype", None)
    if mode == "w" and not overwrite:
        raise InvalidArgument(f'{os.fspath(path)!r}: mode "w" removes what is there: say so by overwrite=True, or take mode "w-" or "a"')
    own = {name: value for name, value in opening.items() if name in ("durability", "locks", "storage_options")}
    if is_array or shape is not None or asked.get("data") is not None:
        return create(path, shape, dtype, overwrite=mode == "w", **own, **asked)
    attrs = translated(asked).get("attrs")
    unknown = set(asked) - {"attrs", "attributes", "format"}
    if unknown:
        raise TypeError(f"a group has no {sorted(unknown)[0]}; an array takes shape and dtype")
    if mode == "w":
        _removed(absolute(path), opening)
    return create_group(path, asked.get("format") or "v3", attrs, opening.get("storage_options"))


def _opened_or_made(path: Path, mode: str, is_array: bool, overwrite: bool, opening: Document, wanted: Any) -> Any:
    """What the modes of zarr say: "a" opens what is there, and makes what is not."""
    if mode not in ("r", "r+", *_MADE):
        raise InvalidArgument(f'mode {mode!r}: expected "r" to read, "r+" to read and write, "a" to make it where nothing is, '
                              '"w-" to make it, or "w" with overwrite=True to make it anew')
    if mode in ("r", "r+") and (wanted or overwrite):
        raise InvalidArgument(f'{next(iter(wanted), "overwrite")}: only what is made has it: mode "a", "w-" or "w"')
    if mode != "a":
        return _make(path, mode, is_array, overwrite, opening, wanted) if mode in _MADE else \
            open_node(absolute(path), mode, **opening)
    try:
        found = open_node(absolute(path), "r+", **opening)
    except NotFound:
        try:
            return _make(path, mode, is_array, overwrite, opening, wanted)
        except AlreadyExists:  # by another process meanwhile
            found = open_node(absolute(path), "r+", **opening)
    if wanted.get("shape") is not None and wanted.get("dtype") is not None:
        require_same(found, wanted["shape"], wanted["dtype"])
    return found


def open(path: Path, mode: Mode = "r", *, overwrite: bool = False, durability: Optional[str] = None, locks: bool = True,
         follow_links: bool = False, break_seal: bool = False, max_memory: Union[int, str] = 0,
         storage_options: Remote = None, **made: Unpack[MadeOptions]) -> Opened:
    """Open the array, group or file at a path.

    Parameters
    ----------
    path : str or os.PathLike
        An array or group in a directory or a zip (``data.zarr.zip/group/array``), an array file, or
        ``file.npz::member``.
    mode : {"r", "r+", "a", "w-", "w"}
        For reading, or for reading and writing. Of the array files, only ``.npy`` and ``.ra`` can be changed in place.
        "a" also makes what is not there, "w-" makes what must not be there, and "w", which takes `overwrite`, replaces
        what is there.
    overwrite : bool
        With mode "w": that what is there may go.
    **made
        Of what is made: `shape`, `dtype`, `data` and the options of :func:`create`; without shape and data it is a group.
        In mode "a" an array that is there has to have the given shape and dtype.
    durability : {"none", "commit", "each"}
        Which data are on the disk when a write returns; see the program's ``--durability``. By default ``"commit"``, or
        what the settings say (``TESSERA_DURABILITY``).
    locks : bool
        Whether locks keep writers of other processes away. Use False only if the file system has no locks and nobody
        else writes.
    follow_links : bool
        Whether values are written through symbolic links to directories.
    break_seal : bool
        Whether sealed arrays and groups may be changed. The first change marks the seal as broken, until the next seal.
    max_memory : int or str
        Bytes, or text such as ``"1G"``, that a call may take for data whose size a file dictates: chunks that are
        decoded as a whole, texts of any length, documents. What needs more raises :class:`OverBudget`. By default 256
        MiB, or what the settings say (``TESSERA_MAX_MEMORY``). NumPy's own memory does not count.
    storage_options : dict
        For places over the network, by fsspec's names: ``key``, ``secret``, ``token``, ``anon``, ``profile``,
        ``endpoint_url``, ``region_name``, ``requester_pays``, ``client_kwargs`` (``endpoint_url``, ``region_name``,
        ``headers``), ``headers``; and ``cache`` (a folder), ``cache_size`` (``"10G"``), ``cache_age`` (``"6h"``),
        ``offline`` and ``absent`` (403), which are the program's options. They go before the environment.

    Returns
    -------
    Array, Group or Members
        For a file of several arrays: Members, a mapping. :func:`open_array` and :func:`open_group` take only one kind,
        which checkers of types then know.

    Raises
    ------
    NotFound
        Nothing that can be opened is there; the message names what is there instead.

    Examples
    --------
    >>> np.save("plain.npy", np.arange(5))
    >>> tessera.open("plain.npy")[1:3]
    array([1, 2])
    """
    options = _given(durability=(durability, None), locks=(locks, True), follow_links=(follow_links, False),
                     break_seal=(break_seal, False), max_memory=(max_memory, 0),
                     storage_options=(remote(storage_options), None))
    found: Opened = _opened_or_made(path, mode, False, overwrite, options, made)
    return found


def open_array(path: Path, mode: Mode = "r", *, overwrite: bool = False, durability: Optional[str] = None, locks: bool = True,
               follow_links: bool = False, break_seal: bool = False, max_memory: Union[int, str] = 0,
               storage_options: Remote = None, **made: Unpack[MadeOptions]) -> Array:
    """Open or make an array, as :func:`open` does; raises InvalidArgument for a group, and for a file of several arrays."""
    options = _given(durability=(durability, None), locks=(locks, True), follow_links=(follow_links, False),
                     break_seal=(break_seal, False), max_memory=(max_memory, 0),
                     storage_options=(remote(storage_options), None))
    return _array(_opened_or_made(path, mode, True, overwrite, options, made))


def open_group(path: Path, mode: Mode = "r", *, overwrite: bool = False, durability: Optional[str] = None, locks: bool = True,
               follow_links: bool = False, break_seal: bool = False, max_memory: Union[int, str] = 0,
               storage_options: Remote = None, attrs: Attrs = None, format: Optional[Format] = None) -> Group:
    """Open or make a group, as :func:`open` does; raises InvalidArgument for anything else.

    `attrs` and `format`: of a group that is made, as in :func:`create_group`.
    """
    options = _given(durability=(durability, None), locks=(locks, True), follow_links=(follow_links, False),
                     break_seal=(break_seal, False), max_memory=(max_memory, 0),
                     storage_options=(remote(storage_options), None))
    made = _given(attrs=(attrs, None), format=(format, None))
    found = _opened_or_made(path, mode, False, overwrite, options, made)
    if not isinstance(found, Group):
        raise InvalidArgument(f"{found.path}: expected a group, found an array or a file")
    return found


def create(path: Path, shape: Lengths = None, dtype: DTypeLike = None, chunks: NewLengths = None, *, data: object = None,
           fill_value: object = DEFAULT, shards: NewLengths = None, codec: Optional[str] = None, format: Optional[Format] = None, order: Optional[str] = "C",
           separator: Optional[str] = None, structures: Optional[str] = None, dims: Optional[Sequence[Optional[str]]] = None,
           attrs: Attrs = None,
           overwrite: bool = False, durability: Optional[str] = None, locks: bool = True,
           storage_options: Remote = None, **synonyms: Unpack[SynonymOptions]) -> Array:
    """Make a new array.

    Parameters
    ----------
    path : str or os.PathLike
        A directory that does not exist yet. The name of a file (``grid.npy``, ``grid.tif``) is refused.
    shape : int or tuple of int
        By default that of `data`.
    dtype : dtype_like
        By default that of `data`. NumPy's, or one that NumPy lacks: ``"bfloat16"``, or ``str`` or ``bytes`` for elements
        of any length.
    chunks : int, tuple of int, dict or bool, optional
        The lengths of a chunk; by default, and with True or "auto", a chunk has about 1 MiB. False: one chunk. One number
        is that of every dimension, and -1 or None that of a whole dimension: ``(-1, 10)``. A dict has lengths by `dims`;
        other dimensions are whole. v3: where chunks differ in length along a dimension, a list of all lengths:
        ``chunks=[[10, 10, 5] * 4, 32]``, or as a text ``"[10,10,5]*4,32"``.
    data : array_like, optional
        The elements, broadcast to `shape` and converted to `dtype`, if these are given. The array appears together with
        them. :func:`copy` copies an array that does not fit into memory.
    fill_value : optional
        The value of elements that were never written; None leaves it undefined. The default is the format's: 0, or an
        empty text; in v2 with `dims`, None, because xarray takes elements that equal v2's fill for missing ones.
    shards : int, tuple of int or dict, optional
        v3: the lengths of a shard, one file for many chunks, as those of chunks; they may differ as those of chunks.
    codec : str, optional
        ``"blosc:zstd:5:shuffle"``, ``"zstd:3"``, ``"delta,zstd:3"``, ``"none"``; ``tessera formats`` lists them.
    format : {"zmeta", "v1", "v2", "v3"}, optional
        By default the format of the group around it, else the one that the settings name (``TESSERA_FORMAT``), else
        ``"v3"``. Where that one cannot express what is asked, v3 is taken, with a warning.
    order : {"C", "F"}
        Order of the elements in a chunk.
    separator : {".", "/"}, optional
        Separator of the indices in chunk keys.
    structures : {"struct", "structured"}, optional
        v3: the name of structures; zarr-python before 3.3 reads ``"structured"`` only.
    dims : sequence of str, optional
        Names of the dimensions.
    attrs : dict, optional
        Attributes.
    overwrite : bool
        Replace an existing array, in one step.
    durability, locks, storage_options
        As in :func:`open`.
    **synonyms
        zarr's names: `attributes` and `dimension_names`; `filters`, `serializer` and `compressors` (or `compressor`) in place of `codec`:
        codecs of zarr or numcodecs, their documents, lists of these, "auto", or None for none of them.

    Returns
    -------
    Array
        Open for reading and writing.

    Raises
    ------
    AlreadyExists
        The path exists.

    Examples
    --------
    >>> a = tessera.create("t.zarr", (3,), "M8[D]", fill_value=np.datetime64("2020-01-01"), format="v2")
    >>> a[1] = "2021-06-05"
    >>> a[:]
    array(['2020-01-01', '2021-06-05', '2020-01-01'], dtype='datetime64[D]')
    >>> tessera.create("cube.zarr", (365, 180, 360), "f4", codec="zstd:3", dims=("time", "y", "x")).format
    'v3'
    """
    options: Document = {"chunks": chunks, "shards": shards, "codec": codec, "format": format, "order": order,
               "separator": separator, "structures": structures, "dims": dims, "attrs": attrs, **synonyms}
    if fill_value is not DEFAULT:
        options["fill_value"] = fill_value
    if data is None and (shape is None or dtype is None):
        raise TypeError("create() needs shape and dtype, or data")
    place = new_place(path, file=False)
    opening = _given(durability=(durability, None), locks=(locks, True), storage_options=(remote(storage_options), None))
    around = _tessera.PlaceOptions(False, **opening)
    if data is None:
        return Array(_tessera.create_array(place, creation_options(shape, dtype, options), around, overwrite), place,
                     "r+", opening)
    values, dtype = as_stored(data, dtype, shape)
    _tessera.save(place, values, creation_options(values.shape, dtype, options), around, overwrite, work())
    return open_array(place, "r+", **opening)


def zeros(path: Path, shape: Lengths, dtype: DTypeLike = "f8", **options: Unpack[PlacedOptions]) -> Array:
    """Make an array of zeros, as :func:`create` does; nothing is stored but that.

    Examples
    --------
    >>> tessera.zeros("zeros.zarr", (2, 3), chunks=-1)[1]
    array([0., 0., 0.])
    """
    kind = _tessera.numpy_dtype(dtype)
    zero: object = "" if kind == object else 0 if kind == np.dtype("V2") else np.zeros((), kind)[()]  # text; bfloat16
    return create(path, shape, dtype, fill_value=zero, **options)


def full(path: Path, shape: Lengths, fill_value: object, dtype: DTypeLike = None, **options: Unpack[PlacedOptions]) -> Array:
    """Make an array of one value, as :func:`create` does; nothing is stored but that. `dtype`: by default that of the value.

    Examples
    --------
    >>> tessera.full("sevens.zarr", 3, 7)[:]
    array([7, 7, 7])
    """
    return create(path, shape, np.asarray(fill_value).dtype if dtype is None else dtype, fill_value=fill_value, **options)


def create_group(path: Path, format: Format = "v3", attrs: Attrs = None,
                 storage_options: Remote = None) -> Group:
    """Make a group for arrays and further groups. `storage_options` as in :func:`open`.

    Raises
    ------
    AlreadyExists
        An array or a group is there.
    """
    place = absolute(path)
    opening = _given(storage_options=(remote(storage_options), None))
    handle = _tessera.create_group(place, format, dict(attrs or {}), _tessera.PlaceOptions(False, **opening))
    return Group(handle, place, "r+", opening)


def save(path: Path, values: object, *, overwrite: bool = False, dtype: DTypeLike = None, deflate: int = 0,
         object_strings: bool = False, progress: ProgressCallback = None,
         storage_options: Remote = None, **options: Unpack[CreationOptions]) -> None:
    """Write a NumPy array as a new array of chunks, or as an array file by its extension.

    Parameters
    ----------
    path : str or os.PathLike
        ``grid.zarr``; or ``grid.npy``, ``grid.npz::name``, ``grid.ra``, ``data.mldf::name``.
    values : array_like
        Memory is not copied. Objects have to be str, or bytes with ``dtype=bytes``.
    overwrite : bool
        Replace an existing array or file.
    dtype : dtype_like, optional
        ``str`` or ``bytes`` for objects; ``"bfloat16"`` to round numbers to it.
    deflate : int
        For ``.npz``: 0 stores, 1 to 9 compress.
    object_strings : bool
        For ``.npy`` and ``.npz``: text of any length as Python objects, not as ``U``.
    progress : callable or True
        As in :meth:`Array.read`.
    storage_options : dict, optional
        As in :func:`open`.
    **options
        For an array of chunks, the options of :func:`create`: chunks, codec, format, fill_value, …

    Examples
    --------
    >>> tessera.save("ramp.zarr", np.arange(6).reshape(2, 3), chunks=(1, 3), format="v3")
    >>> tessera.load("ramp.zarr")
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    array, wanted = as_stored(values, dtype)
    place = new_place(path)
    running = work(0, 0, progress)
    if _tessera.is_array_file(place):
        fortran = options.pop("order", None) == "F" or (array.flags.f_contiguous and not array.flags.c_contiguous)
        if options:
            raise TypeError(f"an array file has no {sorted(options)[0]}")
        _tessera.save_file(place, array, wanted, fortran, deflate, object_strings, overwrite, running)
        return
    _tessera.save(place, array, creation_options(array.shape, wanted, options), _place(False, storage_options),
                  overwrite, running)


def load(path: Path, progress: ProgressCallback = None,
         storage_options: Remote = None) -> Values:
    """All elements of an array as a NumPy array. `storage_options` as in :func:`open`.

    Examples
    --------
    >>> np.save("plain.npy", np.arange(3))
    >>> tessera.load("plain.npy")
    array([0, 1, 2])
    """
    return np.asarray(_array(path, storage_options).read(..., progress=progress))


def _opened(given: Union[Place, View, Values], storage_options: Remote = None,
            max_memory: Union[int, str] = 0) -> Opened:
    if isinstance(given, (Array, Group, Members)):
        return given
    if isinstance(given, View):
        part: Array = given._as_array()
        return part
    if isinstance(given, np.ndarray):
        return Array(_tessera.memory_array(given), "a NumPy array", "r", {})
    return open(given, max_memory=max_memory, storage_options=storage_options)


def _array(array: Union[Place, View, Values], storage_options: Remote = None,
           max_memory: Union[int, str] = 0) -> Array:
    opened = _opened(array, storage_options, max_memory)
    if not isinstance(opened, Array):
        raise InvalidArgument(f"{opened.path}: expected an array; it holds: {', '.join(opened)}")
    return opened


def _path_of(node: Place) -> str:
    return node.path if isinstance(node, (Array, Group, Members)) else absolute(node)


def copy(source: Union[Place, Values, View], destination: Path, sel: object = None,
         **options: Unpack[CopyOptions]) -> list[str]:
    """Copy an array or a whole hierarchy between any formats: import, export, rechunk, recompress and convert.

    Works block by block within `max_memory`, and keeps dtype, fill, attributes and names of dimensions. Chunks are
    copied undecoded if they stay valid. The new array appears when it is complete.

    Parameters
    ----------
    source : path, Array, View, Group, Members or numpy.ndarray
        For a group, a folder or a zip of arrays, or a file of several arrays, everything in it is copied.
    destination : path
        A directory; or a ``.zip`` or an array file by its extension. The extension of another kind of file, such as
        ``.tif``, is refused, unless ``/`` follows.
    sel : basic index or str, optional
        The part of an array to copy; a text as in :meth:`Array.sel`, also of a group or a file of several arrays.
    overwrite : bool
        Replace an existing array or file.
    chunks, shards, codec, format, order, separator, structures, fill_value, dims
        As in :func:`create`; by default as in the source. `dims` that are names of a table's columns make a group of arrays
        with these coordinates. ``shards=None`` removes shards. ``chunks={"time": 6, "lat": 2}``
        gives lengths along the dimensions of these names alone, of all arrays that have them.
    deflate : int
        For ``.npz``: 0 stores, 1 to 9 compress.
    unlimited : str or sequence of str
        Of netCDF and HDF5: dimensions that may grow later, beside those that may in the source.
    object_strings, reverse_dims, header, missing
        Of array files: text as Python objects in ``.npy`` and ``.npz``; the dimensions of a ``.ra`` in reverse; whether a
        ``.csv`` begins with a line of names, and what stands where it has no number.
    dtype, cast
        Convert the elements, as in :func:`calc`; of a ``.csv`` what it holds.
    points : path or array, optional
        A row of indices for each element wanted: those, in one dimension.
    cf : {"decode", "encode"}, optional
        Apply ``scale_factor``, ``add_offset``, ``_FillValue`` and units of time, as the CF conventions say, or the
        reverse by the attribute ``cf_encoding``, which keeps how an array was encoded.
    keep_bits : int or "auto", optional
        Round floats to so many bits of their fraction, so that they take less room; "auto" finds how many hold 99 % of
        the information. Coordinates, missing elements and the fill value stay. The attribute ``rounded`` keeps the
        bound.
    max_error : float, optional
        Round numbers by at most so much, likewise.
    where : str, optional
        Of a table, only the rows for which this holds, an expression over its fields: ``"(close > 100) & (volume > 0)"``.
        Of any other array an expression in which ``value`` is an element: all others are missing; see :meth:`Array.where`.
    drop_attributes : bool
        Leave out attributes of groups for which `format` has no place, instead of raising `Unsupported`.
    resume : bool
        Keep the unfinished copy if it is interrupted or fails; the next call with the same source and arguments resumes
        it.
    link : bool
        Make chunk files hard links to those of the source, instead of copying them. Tessera never writes into a chunk
        file, but other programs may. Refused if chunks have to be encoded anew.
    dry_run : bool
        Only report what would be done.
    skip_unreadable : bool
        Leave out arrays of a hierarchy that cannot be read, and report them. Otherwise the rest is copied too, but
        beside the destination that `overwrite` would replace, and then `Corrupt` is raised.
    break_seal : bool
        Whether sealed arrays and groups may be changed, as in :func:`open`.
    verify : bool
        Decode every chunk before it is copied as it is, so that damage raises `Corrupt` instead of being copied.
    threads, max_memory, progress
        As in :meth:`Array.read`.
    storage_options : dict, optional
        As in :func:`open`, for source and destination if they are paths. A source that needs others is opened before.

    Returns
    -------
    list of str
        The differences between the metadata in the old and the new format, one sentence each. With `dry_run` the last
        one says whether chunks stay as they are. For several arrays each sentence begins with the array's path.

    Examples
    --------
    >>> np.save("plain.npy", np.arange(10))
    >>> tessera.copy("plain.npy", "plain.zarr", slice(2, 5), format="v2")
    []
    >>> tessera.load("plain.zarr")
    array([2, 3, 4])
    >>> tessera.copy("plain.zarr", "new.zarr", format="v3", dry_run=True)[-1]
    'chunks are copied as they are'
    """
    storage_options = options.get("storage_options")
    if isinstance(source, View):
        view = source if sel is None else source.lazy[sel]
        source, sel = view._source()
        if options.get("resume") and source is not view._array:
            raise InvalidArgument("resume: a copy of a view of fields, or of dimensions in another order, begins anew")
    assert not isinstance(source, View)
    if isinstance(source, (str, os.PathLike)):
        source = _tessera.whole_of_packages(os.fsdecode(source))
    array = _opened(source, storage_options, options.get("max_memory", 0))
    asked, running = without_work({"do": "copy", "array": array, **options})
    place = _place(asked.pop("break_seal", False), storage_options)
    opened = _tessera.PlaceOptions(True, **place_options(array._options))
    picked = None
    if isinstance(array, (Group, Members)):
        asked["array"] = array.path
        if "fill_value" in asked:
            raise InvalidArgument(f"{array.path}: fill_value is of one array, and this holds several")
        if sel is not None and not isinstance(sel, str):
            raise InvalidArgument(f"{array.path}: sel is an index of one array, and this holds several: name the dimensions, "
                                  "as in sel='time=2020-01'")
    if isinstance(sel, str):
        asked["sel"] = sel
    elif sel is not None and not isinstance(array, (Group, Members)):
        picked = array._handle.pick(sel)
        if picked is None or any(axis < 0 for axis in picked.axes):
            raise InvalidArgument(f"sel {sel!r}: expected integers, slices and ...")
    if "fill_value" in asked and isinstance(array, Array):
        asked["fill_value"] = json_fill(asked["fill_value"], asked.get("dtype") or array.decoded.dtype)
    return _tessera.copy(asked, picked, opened, new_place(destination), place, running)


def convert(source: Place, destination: Path, format: Format,
            **options: Unpack[ConversionOptions]) -> list[str]:
    """Copy an array or a hierarchy into another format: ``convert("old.zarr", "new.zarr", "v3")``. Options as in :func:`copy`."""
    return copy(source, destination, format=format, **options)


def read_in_process(trust: bool = True) -> None:
    """Does nothing, and stays for older scripts: libhdf5 and libtiff work in a program of their own, never in this process."""
    if trust:
        warn("tessera.read_in_process() does nothing: libhdf5 and libtiff work in a program of their own")


@over_network_of_node
def refs(path: Place, out: Optional[Path] = None, *, skip_bad: bool = False,
         storage_options: Remote = None) -> Document:
    """Locate the chunks, for programs that read them in place: kerchunk's references, version 1.

    Other programs open the array or group as a Zarr v2 store, without a copy, by fsspec's reference file system:
    ``zarr.open(fsspec.get_mapper("reference://", fo=tessera.refs("elevation.npy")))``.

    Parameters
    ----------
    path : path, Array, Group or Members
        An array or a group in a directory, a ``.npy``, a plain ``.ra``, a ``.npz`` that is not compressed, chunks of
        ``.nc``, ``.h5`` and ``.tif``, a ``.safetensors``; URLs too.
    out : path, optional
        A file to write the references to, as JSON.
    skip_bad : bool
        Leave arrays out that such references cannot say, each with a warning.
    storage_options : dict, optional
        As in :func:`open`.

    Returns
    -------
    dict
        `version` and `refs`: for each key its text, or the file, offset and size of its bytes. After chunks were
        written, added or removed, references have to be made anew.

    Raises
    ------
    Unsupported
        The elements do not lie in byte ranges that Zarr v2 can express.

    Examples
    --------
    >>> np.save("plain.npy", np.arange(5, dtype="u1"))
    >>> found = tessera.refs("plain.npy")["refs"]
    >>> sorted(found), found["0"][1:]
    (['.zarray', '.zattrs', '0'], [128, 5])
    """
    found, skipped = _tessera.references(_path_of(path), bool(skip_bad))
    for array in skipped:
        warn(f"left out: {array}")
    if out is not None:
        # As everything else: the old file or the new one, never a part.
        store = _tessera.KeyStoreHandle(os.path.dirname(absolute(out)), _tessera.PlaceOptions(False))
        store.put(os.path.basename(absolute(out)), json.dumps(found, indent=1).encode())
    return found


@over_network_of_node
def digest(array: Union[Path, Array, View, Group, Values], *, threads: int = 0, max_memory: Union[int, str] = 0,
           progress: ProgressCallback = None, storage_options: Remote = None) -> str:
    """One hash of dtype, shape and content, whatever the chunks, the codecs and the format. That of a group, or of a file of
    several arrays, is a hash of the paths and digests of all arrays below. `storage_options` as in :func:`open`.

    Examples
    --------
    >>> np.save("plain.npy", np.arange(3))
    >>> _ = tessera.copy("plain.npy", "three.zarr")
    >>> tessera.digest("plain.npy") == tessera.digest("three.zarr")
    True
    """
    if isinstance(array, (View, np.ndarray)):
        array = _array(array)
    if isinstance(array, Array):
        return _tessera.digest(array._handle, work(threads, max_memory, progress))
    return _tessera.digest_at(_path_of(array), work(threads, max_memory, progress))


@overload
def diff(a: Union[Group, Members], b: Union[Path, Group, Members], **options: Unpack[DifferenceOptions]) -> SetDifference: ...
@overload
def diff(a: Union[Array, View, Values], b: Union[Path, Array, View, Values], **options: Unpack[DifferenceOptions]) -> Difference: ...
@overload
def diff(a: Path, b: Union[Place, View, Values], **options: Unpack[DifferenceOptions]) -> Any: ...
@over_network
def diff(a: Union[Place, View, Values], b: Union[Place, View, Values], *, atol: float = 0, rtol: float = 0, places: int = 10, raw: bool = False,
         threads: int = 0, max_memory: Union[int, str] = 0, progress: ProgressCallback = None,
         storage_options: Remote = None) -> Union[Difference, SetDifference]:
    """Compare two arrays element by element, by what elements stand for, or all arrays of two groups or files by name.

    Parameters
    ----------
    atol, rtol : float
        The tolerance, as in :func:`numpy.isclose` with ``equal_nan=True``. Both 0: bit for bit, or within rounding where the
        two are packed in different ways.
    places : int
        The largest number of differing elements that are listed, of each array.
    raw : bool
        Compare the stored codes, as :func:`digest` does.
    storage_options : dict, optional
        As in :func:`open`, for those of both that are paths.

    Returns
    -------
    Difference or SetDifference
        A dict, with its members also as attributes: `equal`, `structure` (differences other than elements), `different`, `first`, `largest`, `largest_at`,
        `codes`. Of two groups, or files of several arrays: `equal`, `same`, `only_in_a`, `only_in_b`, `attributes`,
        `only_codes`, `different`.

    Examples
    --------
    >>> np.savez("a.npz", t=np.arange(3), n=np.ones(2))
    >>> np.savez("b.npz", t=np.array([0, 1, 5]), n=np.ones(2))
    >>> [(one["path"], one["largest"]) for one in tessera.diff("a.npz", "b.npz").different]
    [('t', 3.0)]
    """
    running = work(threads, max_memory, progress)
    if not isinstance(a, (Array, View, np.ndarray)) and not isinstance(b, (Array, View, np.ndarray)):
        found = _tessera.tree_difference(_path_of(a), _path_of(b), atol, rtol, places, raw, running)
        if found is not None:
            return SetDifference(found)
    opened = [_opened(each, max_memory=max_memory) for each in (a, b)]  # what is missing is the fault, not the group beside it
    first, second = (_array(each)._handle for each in opened)
    return Difference(_tessera.difference(first, second, atol, rtol, places, raw, running))


@over_network
def find(array: Union[Path, Array, View, Values], condition: str, selection: object = "", *, raw: bool = False, index: bool = True,
         threads: int = 0, max_memory: Union[int, str] = 0, storage_options: Remote = None) -> Values:
    """As :meth:`Array.find`: the indices of the elements that meet a condition, of a view those in it. `storage_options` as in
    :func:`open`."""
    return _array(array, max_memory=max_memory).find(condition, selection, raw=raw, index=index, threads=threads,
                                                     max_memory=max_memory)


def index(array: Union[Path, Array], *, threads: int = 0, max_memory: Union[int, str] = 0,
          progress: ProgressCallback = None) -> Indexed:
    """Note in ``.tessera/index`` what each chunk amounts to, so that :func:`stats` reads only chunks that changed since.

    Only of real numbers and times, in a directory of one's own that is not sealed. Chunks that changed a moment ago come into
    the index the next time.

    Examples
    --------
    >>> a = tessera.create("indexed.zarr", data=np.arange(12.0), chunks=4, overwrite=True)
    >>> tessera.index(a).chunks
    3
    >>> tessera.stats(a).max
    11.0
    """
    opened = _array(array, max_memory=max_memory)
    return Indexed(_tessera.index(opened._handle, opened.path, work(threads, max_memory, progress)))


@over_network
def advise(array: Union[Path, Array, View, Values], reads: str = "", *, threads: int = 0, max_memory: Union[int, str] = 0,
           progress: ProgressCallback = None, storage_options: Remote = None) -> Advice:
    """Try chunks, shards and codecs on a part of an array, and reckon what they take of the whole.

    Parameters
    ----------
    reads : str
        The ways in which it is read, between semicolons: so many indices along dimensions, all of any other, as
        ``"time=1; lat=1,lon=1"``. By default one index along each dimension, and one series along the first.
    storage_options : dict, optional
        As in :func:`open`.

    Returns
    -------
    Advice
        A dict, with the members of ``tessera advise --json`` also as attributes. The first of its `layouts` is the best.

    Examples
    --------
    >>> a = tessera.create("advised.zarr", data=np.arange(60_000.0).reshape(300, 200), overwrite=True)
    >>> advice = tessera.advise(a, "0=1; 1=1")
    >>> [way["shape"] for way in advice.reads]
    [[1, 200], [300, 1]]
    >>> best = advice.layouts[0]
    >>> made = tessera.copy(a, "suited.zarr", chunks=best["chunks"], codec=best["codec"], overwrite=True)
    """
    opened = _opened(array, max_memory=max_memory)
    one = _array(opened)
    return Advice(_tessera.advise(one._handle, one.path, reads, work(threads, max_memory, progress)))


@over_network
def stats(array: Union[Path, Array, View, Values], *, bins: int = 32, how: Union[Reduction, Sequence[Reduction]] = (), raw: bool = False, index: bool = True,
          threads: int = 0, max_memory: Union[int, str] = 0, progress: ProgressCallback = None,
          storage_options: Remote = None) -> Statistics:
    """Minimum, maximum, mean, deviation and histogram in one parallel pass, without missing elements and NaN.

    Parameters
    ----------
    bins : int
        At most so many bins of the histogram, 4 or more; 0: none.
    how : str or sequence of str
        Further statistics, as those of :func:`reduce`: ``("median", "p95")``. They are members of ``further``.
    raw : bool
        Of the stored codes, not of what they stand for.
    index : bool
        Take what an index of the chunks says (:func:`index`); False: read all. The results are the same.
    storage_options : dict, optional
        As in :func:`open`.

    Returns
    -------
    Statistics
        A dict, with the members of ``tessera stats --json`` also as attributes; for structures, `fields` has those of each field.

    Examples
    --------
    >>> np.save("plain.npy", np.arange(5.0))
    >>> tessera.stats("plain.npy").mean
    2.0
    >>> tessera.stats("plain.npy", how="p25").further
    {'p25': 1.0}
    """
    opened = _array(array, max_memory=max_memory)
    found = _tessera.statistics(opened._handle, bins, raw, index, work(threads, max_memory, progress))
    words: list[str] = [how] if isinstance(how, str) else list(how)
    further = _tessera.further_statistics(opened._handle, words, raw, work(threads, max_memory, progress))
    whole: Document = {"path": opened.path, "dtype": opened._handle.dtype_text, "count": opened.size, "further": further,
                             "stored_dtype": opened._handle.dtype_text,
                             "outside_valid": _tessera.outside_valid(opened._handle, work(threads, max_memory, progress))}
    if len(found) == 1 and not found[0]["field"]:
        found[0].pop("field")
        return Statistics({**whole, **found[0]}, fields=[])
    nothing: Document = dict.fromkeys(("nan", "missing", "fill", "min", "max", "mean", "deviation", "histogram"))
    return Statistics({**whole, **nothing}, fields=list(map(Statistics, found)))


@over_network_of_node
def info(path: Place, *, storage_options: Remote = None) -> Union[ArrayInfo, GroupInfo, FileInfo]:
    """The properties of an array, a group or a file, as in ``tessera info --json``. Reads no elements.

    The result is a dict whose members are attributes, too. `storage_options` as in :func:`open`.
    """
    node = path if isinstance(path, (Array, Group, Members)) else open(path)
    if isinstance(node, Members):
        return FileInfo(path=node.path, kind="file", members={name: node[name].info for name in node})
    return node.info
