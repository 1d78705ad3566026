"""Codecs and kinds of stores that a program adds."""

from __future__ import annotations

from typing import Any, Callable, MutableMapping

from . import _tessera
from ._types import Document


def add_codec(codec: Any) -> None:
    """Add a codec for the bytes of chunks, for the whole process.

    Call it before anything is opened or created: the table of codecs stays as it is afterwards. The codec then works
    like the library's own: in ``codec="crc32c,xor"``, for arrays in formats v2 and v3, in every function. Its methods
    are called with the GIL, from several threads in turn. An exception in one becomes an error that names the array, the
    chunk and the codec.

    Parameters
    ----------
    codec : class or object
        In the manner of numcodecs: ``codec_id`` is a str, and ``encode(data)`` and ``decode(data)`` take and return
        bytes. A class also has ``from_config(config)``, which gets the members of the metadata other than ``id``, or
        takes them as keyword arguments. An object stands for itself, and has no configuration.

    Raises
    ------
    InvalidArgument
        A codec of that name exists, or arrays were opened or created already.

    Examples
    --------
    >>> class Xor:
    ...     codec_id = "xor"
    ...     def __init__(self, key=42):
    ...         self.key = key
    ...     def encode(self, data):
    ...         return bytes(b ^ self.key for b in data)
    ...     decode = encode
    >>> tessera.add_codec(Xor)                                                                # doctest: +SKIP
    >>> a = tessera.create("a.zarr", 100, "i4", codec='{"name": "numcodecs.xor", "configuration": {"key": 7}}',
    ...                    format="v3")                                                       # doctest: +SKIP
    """
    name = codec.codec_id
    if not isinstance(name, str) or not name:
        raise TypeError(f"codec_id: expected a text, found {name!r}")
    for method in ("encode", "decode"):
        if not callable(getattr(codec, method, None)):
            raise TypeError(f"codec {name!r} has no {method}()")

    def own(config: Document) -> object:
        if config:
            raise ValueError(f"it has no configuration, and the metadata say {config}")
        return codec

    make: Callable[[Document], object] = own
    if isinstance(codec, type):
        from_config = getattr(codec, "from_config", None)
        make = from_config or (lambda config: codec(**config))
    about = (codec.__doc__ or "").strip().split("\n")[0] or "a codec in Python"
    _tessera.add_codec(name if "." in name else f"numcodecs.{name}", about, make)


def add_store(scheme: str, open: Callable[[str], MutableMapping[str, bytes]]) -> None:
    """Add a kind of store, for the whole process: paths ``SCHEME:NAME/PREFIX`` then lead to it.

    Call it before anything is opened or created. The mapping is used with the GIL, from several threads in turn. Only
    the threads of this process exclude each other when they write to the same chunk.

    Parameters
    ----------
    scheme : str
        Two or more of a-z, 0-9, ``+``, ``-`` and ``.``, the first a letter.
    open : callable
        Gets NAME, and returns the mapping from keys such as ``"group/array/c/0/1"`` to bytes. It is called for each
        opening, and has to return mappings of the same content for the same name.

    Raises
    ------
    InvalidArgument
        The scheme is taken, or something was opened or created already.

    Examples
    --------
    >>> stores = collections.defaultdict(dict)                                                # doctest: +SKIP
    >>> tessera.add_store("mem", stores.__getitem__)                                          # doctest: +SKIP
    >>> tessera.save("mem:scratch/a", np.arange(10))                                          # doctest: +SKIP
    """
    _tessera.add_store(scheme, f"the stores of {getattr(open, '__qualname__', open)}", open)
