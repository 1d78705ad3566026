"""Names and values by which users of zarr and NumPy say the options of new arrays, as the library takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np

from ._calls import shown
from ._errors import InvalidArgument
from ._types import Document

_SAME = {"attributes": "attrs", "dimension_names": "dims"}
_CODECS = ("filters", "serializer", "compressors", "compressor")
# What a new array has if only its filters are said.
_USUAL = {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"}}
_PLAIN = ("blosc", "zstd", "gzip", "crc32c")  # those of numcodecs that v3 has under the same name
_SHUFFLES = {0: "noshuffle", 1: "shuffle", 2: "bitshuffle"}


def _of_numcodecs(config: Mapping[str, Any]) -> Document:
    """A codec as numcodecs configures it, as v3 does."""
    name = str(config["id"]).removeprefix("numcodecs.")
    rest = {key: value for key, value in config.items() if key != "id"}
    if name == "blosc":
        if rest.get("shuffle") not in _SHUFFLES:  # -1 depends on the elements: numcodecs' own codec knows
            return {"name": "numcodecs.blosc", "configuration": rest}
        rest["shuffle"] = _SHUFFLES[rest["shuffle"]]
    return {"name": name if name in _PLAIN else f"numcodecs.{name}", "configuration": rest}


def _codec(given: Any) -> Document:
    """One codec of v3's list: a codec of zarr or numcodecs, or its document."""
    if hasattr(given, "get_config"):
        given = given.get_config()
    elif hasattr(given, "to_dict"):
        given = given.to_dict()
    if not isinstance(given, Mapping) or not {"id", "name"} & set(given):
        raise TypeError(f"expected codecs of zarr or numcodecs, or their documents, found {shown(given)}")
    if "name" not in given:
        return _of_numcodecs(given)
    rest = given.get("configuration") or {}
    return {"name": given["name"], "configuration": {key: getattr(value, "value", value) for key, value in rest.items() if value is not None}}


def _codecs(given: Any) -> list[Document]:
    if given is None:
        return []
    if isinstance(given, str):
        raise TypeError(f"expected codecs of zarr or numcodecs, or their documents, found {shown(given)}; codec takes text")
    return [_codec(one) for one in ([given] if isinstance(given, Mapping) or not isinstance(given, Sequence) else given)]


def _unless_usual(given: Any) -> Any:
    return None if isinstance(given, str) and given == "auto" else given


def _codec_text(options: Mapping[str, Any]) -> Optional[str]:
    """The `codec` that filters and compressors make; None for the usual one."""
    given = {name: options[name] for name in _CODECS if name in options}
    if "compressor" in given and "compressors" in given:
        raise InvalidArgument("compressor, compressors: say one of them")
    if options.get("codec") is not None:
        raise InvalidArgument(f"codec, {next(iter(given))}: say one of them")
    first = [codec for name in ("filters", "serializer") for codec in _codecs(_unless_usual(given.pop(name, None)))]
    packed = next(iter(given.values()), "auto")
    if isinstance(packed, str) and packed == "auto":
        return json.dumps([*first, _USUAL]) if first else None
    return json.dumps([*first, *_codecs(packed)])


def translated(options: Mapping[str, Any]) -> Document:
    """Options by the names that the library knows."""
    made = {name: value for name, value in options.items() if name not in _SAME and name not in _CODECS}
    for name, own in _SAME.items():
        if name in options:
            if made.get(own) is not None:
                raise InvalidArgument(f"{own}, {name}: say one of them")
            made[own] = options[name]
    if set(_CODECS) & set(options):
        made["codec"] = _codec_text(options)
    return made


def _is_whole(length: object) -> bool:
    """Whether the whole dimension is meant."""
    return length is None or (isinstance(length, (int, np.integer)) and length == -1)


def _by_names(name: str, given: Mapping[Any, Any], dims: Optional[Sequence[Optional[str]]]) -> list[Any]:
    if dims is None:
        raise InvalidArgument(f"{name}: names of dimensions take dims, which names them")
    unknown = [dim for dim in given if dim not in dims]
    if unknown:
        raise InvalidArgument(f"{name}: {unknown[0]!r} is none of the dimensions {', '.join(map(str, dims))}")
    return [given.get(dim) for dim in dims]


def lengths(name: str, given: Any, shape: Sequence[int], dims: Optional[Sequence[Optional[str]]], unit: Any = None) -> Any:
    """The lengths of chunks or shards: of one number, of names, or with -1 and None for whole dimensions.

    `unit`: the lengths of the chunks, of which a whole dimension is a multiple.
    """
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, str):
        return None if given == "auto" and name == "chunks" else given
    if isinstance(given, Mapping):
        given = _by_names(name, given, dims)
    elif isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        given = [given] * len(shape)
    if not isinstance(given, (list, tuple)) or len(given) != len(shape) or not any(map(_is_whole, given)):
        return given
    units = unit if isinstance(unit, (list, tuple)) and len(unit) == len(shape) else [1] * len(shape)
    steps = [step if isinstance(step, int) else 1 for step in units]
    return [max(1, -(-size // step)) * step if _is_whole(length) else length
            for length, size, step in zip(given, shape, steps)]
