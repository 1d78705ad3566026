"""What new arrays are made from: their places, options and elements, as the library takes them."""

from __future__ import annotations

import os
from typing import Any, Iterable, Mapping, Union

import numpy as np

from . import _bfloat16, _ml_types, _tessera
from ._calls import shown
from ._errors import InvalidArgument
from ._names import lengths, translated
from ._options import CreationOptions, absolute
from ._types import DTypeLike, Document, Values

Path = Union[str, "os.PathLike[str]"]


def new_place(path: Path, file: bool = True) -> str:
    """Where an array is made, or a file if its name says so; not a directory that is named as a file of another kind."""
    place = absolute(path)
    text = os.fsdecode(path)
    if not file and _tessera.is_array_file(place):
        raise InvalidArgument(f"{text}: named as an array file, and this makes a directory: choose another name; "
                              "tessera.save and tessera.copy write array files")
    # As it was given: a '/' at the end says that a directory is meant.
    _tessera.require_no_other_file(place + "/" if text.endswith("/") else place)
    return place


def json_fill(value: object, dtype: object) -> object:
    """A fill value in JSON, exact for the dtype."""
    if value is None or isinstance(value, str):
        return value
    kind = _tessera.numpy_dtype(dtype)
    if kind == object or kind == np.dtype("V2"):
        return value.decode("latin-1") if isinstance(value, bytes) else value
    try:
        element = np.array(value, kind)[()]
    except (TypeError, ValueError) as error:
        raise type(error)(f"fill_value: expected an element of {kind}, found {shown(value)}") from None
    return _json_element(element, np.array(value))


def _json_element(element: Any, given: Values) -> Any:
    kind = element.dtype.kind
    if kind == "M":
        return str(element)
    if kind == "m":
        return "NaT" if np.isnat(element) else int(element.astype("i8"))
    if kind == "c":
        return [float(element.real), float(element.imag)]
    if kind == "S":
        return bytes(element).decode("latin-1")
    if kind == "U":
        return str(element)
    if kind == "V":
        if element.dtype.names is None:
            return "0x" + bytes(element).hex()
        return [_json_element(element[name], given) if isinstance(element[name], np.generic)
                else element[name].tolist() for name in element.dtype.names]
    # A value that the dtype cannot hold is refused by the library, which sees it as it was given.
    exact = given[()] if given.ndim == 0 and given.dtype.kind in "biuf" else element
    return exact.item()


def creation_options(shape: object, dtype: object, options: Mapping[str, object]) -> Document:
    """The options that the library takes to create an array."""
    options = translated(options)
    known = set(CreationOptions.__annotations__)
    unknown = sorted(set(options) - known)
    if unknown:
        raise TypeError(f"unexpected argument {unknown[0]!r}; there are: {', '.join(sorted(known))}")
    if isinstance(options.get("chunks"), (bool, np.bool_)):  # as in zarr-python
        options["chunks"] = None if options["chunks"] else -1
    if isinstance(shape, np.ndarray):
        shape = shape.tolist()
    if isinstance(options.get("dims"), np.ndarray):
        options["dims"] = list(options["dims"])
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    for name in ("chunks", "shards"):
        if options.get(name) is not None:
            unit = options.get("chunks") if name == "shards" else None
            options[name] = lengths(name, options[name], sizes, options.get("dims"), unit)
    dtype = _ml_types.given(dtype)
    made = {"shape": shape, "dtype": dtype}
    made.update({name: value for name, value in options.items() if value is not None or name == "fill_value"})
    for name, example in (("format", "v3"), ("codec", "zstd:3"), ("separator", "/"), ("structures", "structured")):
        if not isinstance(made.get(name, ""), str):
            raise InvalidArgument(f'{name}: expected a text such as "{example}", found {made[name]!r}')
    if made.get("order") not in (None, "C", "F"):
        raise InvalidArgument(f"order {made['order']!r}: expected \"C\" or \"F\"")
    if "fill_value" in made:
        made["fill_value"] = json_fill(made["fill_value"], dtype)
    return made


class _Default:
    def __repr__(self) -> str:
        return "<the format's default>"


DEFAULT: Any = _Default()


def as_stored(values: object, dtype: DTypeLike, shape: object = None) -> tuple[Values, Any]:
    """Values in memory as they are stored in a new array, broadcast to `shape`, and the dtype that is asked for."""
    array = np.asanyarray(values)
    stored = _ml_types.given(array.dtype if dtype is None else dtype)
    if stored is not array.dtype:
        dtype = stored
    if dtype is not None:
        shown = _tessera.numpy_dtype(dtype)
        if shown == np.dtype("V2") and dtype != shown:
            array = _bfloat16.encode(array, ">" if str(dtype).startswith(">") else "<")
        else:
            array = array.astype(shown, copy=False)
    wanted = array.dtype if dtype is None else dtype
    if array.dtype == object and wanted == object:
        wanted = bytes if array.size and isinstance(array.flat[0], bytes) else str
    if shape is not None:
        lengths = tuple(shape) if isinstance(shape, Iterable) else (shape,)
        try:
            array = np.broadcast_to(array, lengths)
        except ValueError:
            raise InvalidArgument(f"data of shape {array.shape} does not broadcast to shape {lengths}") from None
    return array, wanted
