# mypy: warn-unused-ignores=False
"""Options that many functions share."""

from __future__ import annotations

import functools
import os
from typing import Any, Callable, Mapping, Optional, Sequence, TypedDict, TypeVar, Union

from . import _tessera
from ._calls import shown
from ._errors import InvalidArgument
from ._types import Attrs, DTypeLike, Document, Format, Remote

ProgressCallback = Union[None, bool, Callable[[int, int], object]]

Lengths = Union[None, int, str, Sequence[Union[int, Sequence[int]]]]
NamedLengths = Union[Lengths, Mapping[str, int]]
# Of new arrays, whose shape is known: -1 and None are whole dimensions.
NewLengths = Union[NamedLengths, Sequence[Union[None, int, Sequence[int]]]]


def absolute(path: Any) -> str:
    """The absolute path: the working directory may change, and workers may have a different one.

    One that leads to another kind of store stays as it is. An address of ZEP 8 becomes the path that it stands for.
    """
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise TypeError(f"expected a path, found {shown(path)}") from None
    text = _tessera.own_path(text)
    return os.path.abspath(text) if _tessera.is_local(text) else text


def remote(storage_options: Any) -> Any:
    """Storage options as dicts, which can be pickled, whatever mappings they are."""
    if not isinstance(storage_options, Mapping):
        return storage_options
    return {name: remote(value) for name, value in storage_options.items()}


def place_options(options: Document) -> Document:
    """Of the options of :func:`tessera.open` those for how a place is opened."""
    return {name: value for name, value in options.items() if name != "max_memory"}


_Function = TypeVar("_Function", bound=Callable[..., object])


def over_network(function: _Function) -> _Function:
    """Opens what a function is given by its path with the function's `storage_options`, which it need not look at."""
    @functools.wraps(function)
    def call(*args: object, **options: Any) -> Any:
        given = options.get("storage_options")
        if given is None:
            return function(*args, **options)
        with _tessera.RemoteScope(given):
            return function(*args, **options)
    return call  # type: ignore[return-value]


def over_network_of_node(function: _Function) -> _Function:
    """As :func:`over_network`, for a function that opens its first argument again by its path: by default with the options
    that this was opened with. Not for a function with further places, which these must not reach."""
    within = over_network(function)
    first = function.__code__.co_varnames[0]  # type: ignore[attr-defined]

    @functools.wraps(function)
    def call(*args: object, **options: object) -> Any:
        if options.get("storage_options") is None:
            node = args[0] if args else options.get(first)
            nodes = node if isinstance(node, (list, tuple)) and node else [node]
            own = [getattr(each, "_options", {}).get("storage_options") for each in nodes]
            if any(each != own[0] for each in own):
                raise InvalidArgument("storage_options: the arrays were opened with different ones: give those for all")
            if own[0] is not None:
                options["storage_options"] = own[0]
        return within(*args, **options)
    return call  # type: ignore[return-value]


class _Layout(TypedDict, total=False):
    codec: Optional[str]
    format: Optional[Format]
    order: Optional[str]
    separator: Optional[str]
    structures: Optional[str]
    dims: Optional[Sequence[Optional[str]]]


class StorageOptions(_Layout, total=False):
    """How new arrays are stored."""

    shards: Lengths
    fill_value: object


class _OfDataSet(TypedDict, total=False):
    only: Union[str, Sequence[str], None]
    exclude: Union[str, Sequence[str], None]


class SynonymOptions(TypedDict, total=False):
    """Options of new arrays under zarr's names; see :func:`tessera.create`."""

    attributes: Attrs
    dimension_names: Optional[Sequence[Optional[str]]]
    filters: object
    serializer: object
    compressors: object
    compressor: object


class _NewOptions(_Layout, SynonymOptions, total=False):
    chunks: NewLengths
    shards: NewLengths
    attrs: Attrs


class CreationOptions(_NewOptions, total=False):
    """Options of new arrays; see :func:`tessera.create`."""

    fill_value: object


class PlacedOptions(_NewOptions, total=False):
    """Options of new arrays of one value, and of their places; see :func:`tessera.create`."""

    overwrite: bool
    durability: Optional[str]
    locks: bool
    storage_options: Remote


class MadeOptions(CreationOptions, total=False):
    """What is made by :func:`tessera.open`; see :func:`tessera.create`."""

    shape: Lengths
    dtype: DTypeLike
    data: object


class ComputedOptions(StorageOptions, _OfDataSet, total=False):
    """Options of arrays that are computed from others; see :func:`tessera.calc`."""

    chunks: NamedLengths
    deflate: int


class _HowToWork(TypedDict, total=False):
    threads: int
    max_memory: Union[int, str]
    progress: ProgressCallback
    storage_options: Remote


class ResultOptions(_HowToWork, total=False):
    """Options of a result that is computed into memory; see :func:`tessera.calc`."""

    dtype: DTypeLike
    cast: str
    sel: object


class DifferenceOptions(_HowToWork, total=False):
    """Options of :func:`tessera.diff`."""

    atol: float
    rtol: float
    places: int
    raw: bool


class SetOptions(ResultOptions, _OfDataSet, total=False):
    """The same of several arrays."""


class NewResultOptions(ResultOptions, ComputedOptions, total=False):
    """Options of a result that is computed into a new array; see :func:`tessera.calc`."""

    overwrite: bool


class _Viewed(TypedDict, total=False):
    header: Optional[bool]
    missing: Union[str, float, None]
    points: object
    coordinates: bool
    cf: Optional[str]
    keep_bits: Union[int, str, None]
    max_error: Optional[float]
    where: Optional[str]


class _HowToJoin(_Viewed, total=False):
    reverse_dims: bool
    as_given: bool


class JoinedOptions(ResultOptions, _HowToJoin, total=False):
    """Options of arrays that are joined into memory; see :func:`tessera.stack` and :func:`tessera.copy`."""


class NewJoinedOptions(NewResultOptions, _HowToJoin, total=False):
    """Options of arrays that are joined into a new one; see :func:`tessera.stack` and :func:`tessera.copy`."""


class JoiningOptions(ComputedOptions, _HowToJoin, total=False):
    """Options of joined arrays beside those that have usual values; see :func:`tessera.stack`."""

    sel: object


class LevelOptions(TypedDict, total=False):
    """Options of the arrays of a pyramid; see :func:`tessera.pyramid`."""

    chunks: Lengths
    codec: Optional[str]
    fill_value: object


class _HowToCopy(_HowToWork, total=False):
    chunks: NamedLengths
    shards: Lengths
    codec: Optional[str]
    order: Optional[str]
    separator: Optional[str]
    structures: Optional[str]
    fill_value: object
    deflate: int
    unlimited: Union[str, Sequence[str], None]
    object_strings: bool
    reverse_dims: bool
    link: bool
    dry_run: bool
    break_seal: bool


class StepOptions(_HowToCopy, _OfDataSet, total=False):
    """Options of each step of :func:`tessera.unstack`; see :func:`tessera.copy`."""

    format: Optional[Format]


class _Copied(_HowToCopy, _Viewed, _OfDataSet, total=False):
    dims: Optional[Sequence[Optional[str]]]
    dtype: DTypeLike
    cast: Optional[str]
    overwrite: bool
    resume: bool
    verify: bool
    drop_attributes: bool
    skip_unreadable: bool


class CopyOptions(_Copied, total=False):
    """Options of :func:`tessera.copy`."""

    format: Optional[Format]


class ConversionOptions(_Copied, total=False):
    """Options of :func:`tessera.convert`; see :func:`tessera.copy`."""

    sel: object


_UNITS = {"K": 10, "M": 20, "G": 30, "T": 40}


def memory(amount: Union[int, str]) -> int:
    """Bytes: a number, or text such as ``"256M"`` or ``"256MiB"`` in units of 1024, ``"256MB"`` in units of 1000."""
    if isinstance(amount, str):
        text = amount.strip().upper()
        thousands = text.endswith("B") and not text.endswith("IB")
        text = text.removesuffix("B").removesuffix("I")
        unit = _UNITS.get(text[-1:], 0)
        try:
            return int(float(text[:-1] if unit else text) * (1000 if thousands else 1024) ** (unit // 10))
        except ValueError:
            raise ValueError(f"{amount!r} is no amount of memory; write such as 256M") from None
    return int(amount)


_usual_memory = _tessera.setting("max_memory")
if _usual_memory:
    try:
        _tessera.set_usual_memory(memory(_usual_memory[0]))
    except ValueError as error:
        raise type(error)(f"{_usual_memory[1]}: {error}") from None


class _Bar:
    """Progress by tqdm."""

    def __init__(self, tqdm: Any):
        self._tqdm = tqdm
        self._bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = self._tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024)
        self._bar.total = total
        self._bar.update(done - self._bar.n)
        if done >= total:
            self._bar.close()


def work(threads: int = 0, max_memory: Union[int, str] = 0, progress: ProgressCallback = None) -> _tessera.WorkOptions:
    """How one call works."""
    if progress is True:
        try:
            from tqdm.auto import tqdm  # type: ignore
        except ImportError:
            progress = None
        else:
            progress = _Bar(tqdm)
    if progress is False:
        progress = None
    return _tessera.WorkOptions(threads, memory(max_memory), progress)


def without_work(options: Document) -> tuple[Document, _tessera.WorkOptions]:
    """Options without those of :class:`_HowToWork`, and these."""
    how = {name: options.pop(name) for name in ("threads", "max_memory", "progress") if name in options}
    options.pop("storage_options", None)
    return options, work(**how)
