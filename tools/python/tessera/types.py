"""What functions report: dicts whose members are attributes, too."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Protocol, runtime_checkable

import numpy as np

from ._types import DType, DTypeLike, Document, Values

__all__ = ["Advice", "AnyArray", "ArrayInfo", "ChunkStatistics", "Difference", "FileInfo", "Finding", "GroupInfo", "Indexed", "JobState", "Repair", "Result", "Seal",
           "SetDifference", "Statistics", "Unit", "UnitDone", "Verification"]


@runtime_checkable
class AnyArray(Protocol):
    """What an :class:`tessera.Array` and a :class:`tessera.View` of it have in common, for functions that take either."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def chunks(self) -> Optional[tuple[int, ...]]: ...
    @property
    def dims(self) -> Optional[tuple[Optional[str], ...]]: ...
    @property
    def attrs(self) -> Any: ...
    @property
    def fill_value(self) -> Any: ...
    @property
    def decoded(self) -> Any: ...
    @property
    def lazy(self) -> Any: ...
    @property
    def T(self) -> "AnyArray": ...
    def astype(self, dtype: DTypeLike) -> Any: ...
    def to_dask(self) -> Any: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: object) -> Any: ...
    def __setitem__(self, key: object, value: object) -> None: ...
    def __array__(self, dtype: DTypeLike = None, copy: Optional[bool] = None) -> Values: ...


@dataclass(init=False, repr=False, eq=False)
class Result(Document):
    """A dict whose members are attributes, too: ``report["sound"]`` and ``report.sound``.

    A member that a report leaves out is None as an attribute.
    """

    if not TYPE_CHECKING:  # a checker of types knows only the members that there are

        def __getattr__(self, name: str) -> Any:
            if name in self:
                return self[name]
            known = [field.name for field in dataclasses.fields(self)]
            if name not in known:
                raise AttributeError(f"{type(self).__name__} has no member {name!r}; there are: {', '.join(known)}")
            return None


@dataclass(init=False, repr=False, eq=False)
class ArrayInfo(Result):
    """The properties of an array; see :attr:`Array.info`. Of an array file only the first six are known."""

    path: str
    kind: str
    format: Optional[str]
    dtype: str
    shape: tuple[int, ...]
    logical_bytes: int
    attributes: Document
    order: Optional[str]
    fields: Optional[list[Any]]
    chunks: Optional[tuple[int, ...]]
    shards: Optional[tuple[int, ...]]
    codec: Optional[str]
    codecs: Optional[list[Document]]
    separator: Optional[str]
    dimension_names: Optional[list[Optional[str]]]
    fill_value: object
    fill_spelling: Optional[str]
    unknown_members: Optional[Document]
    chunks_stored: Optional[int]
    chunks_possible: Optional[int]
    shards_stored: Optional[int]
    shards_possible: Optional[int]
    stored_bytes: Optional[int]
    stored_bytes_about: Optional[int]
    stray_files: Optional[int]
    range: Optional[list[Any]]      # least and greatest, where an index of chunks knows them
    ratio: Optional[float]
    set_aside_files: Optional[int]  # by `repair`
    set_aside_bytes: Optional[int]
    undo_values: Optional[int]      # kept for `undo`
    undo_bytes: Optional[int]
    remarks: Optional[list[str]]


@dataclass(init=False, repr=False, eq=False)
class GroupInfo(Result):
    """The properties of a group; see :attr:`Group.info`."""

    path: str
    kind: str
    format: Optional[str]
    attributes: Document
    children: int
    arrays: int
    links: int     # not entered
    too_deep: int  # folders, not entered
    consolidated: str
    set_aside_files: int  # by `repair`, here and below
    set_aside_bytes: int
    undo_values: int      # kept for `undo`, here and below
    undo_bytes: int


@dataclass(init=False, repr=False, eq=False)
class FileInfo(Result):
    """The arrays of a file that holds several."""

    path: str
    kind: str
    members: dict[str, ArrayInfo]


@dataclass(init=False, repr=False, eq=False)
class Finding(Result):
    """Something that :func:`verify` found.

    Attributes
    ----------
    kind : {"damage", "changed", "lost", "absent", "added", "unchecked", "leftover", "note"}
        "changed", "lost" and "added" are files that differ from a seal. All but leftovers and notes make an array unsound.
    node, key : str
        The array or group, and the file, below the path that was verified; may be empty.
    chunk, inner : tuple of int or None
        The index of the chunk (with shards: of the shard), and of the chunk in the shard.
    text : str
        What is wrong, and what to do.
    rule : str or None
        Of a convention, which is broken: ``"ome/schema"``.
    repairable : bool
        Whether :func:`repair` can do something about it.
    done, outcome : bool, str
        Only from :func:`repair`: whether it did that, and what it did or why not.
    """

    kind: str
    node: str
    key: str
    chunk: Optional[tuple[int, ...]]
    inner: Optional[tuple[int, ...]]
    text: str
    rule: Optional[str]      # of a convention, which is broken
    repairable: bool
    done: Optional[bool]     # by `repair`
    outcome: Optional[str]   # of `repair`


@dataclass(init=False, repr=False, eq=False)
class Verification(Result):
    """What :func:`verify` found.

    Attributes
    ----------
    path : str
    sound : bool
        Whether there are only leftovers and notes.
    findings : list of Finding
    absent : int
        Chunks that are not stored, though they were, or have to be.
    arrays, groups, chunks : int
        What was checked; of shards, `chunks` counts the inner chunks.
    missing : int
        Chunks that are not stored, and read as the fill value.
    bytes : int
        Of the chunks, as stored.
    seals, files_as_sealed : int
        Seals that were checked, and files that match them.
    recorded : str
        With ``record=True``: the hash of the line in the fixity log.
    """

    path: str
    sound: bool
    recorded: str
    absent: int   # chunks that are not stored, though they were, or have to be
    arrays: int
    groups: int
    chunks: int
    missing: int
    bytes: int
    seals: int
    files_as_sealed: int
    findings: list[Finding]


@dataclass(init=False, repr=False, eq=False)
class Repair(Result):
    """What :func:`repair` did, or would do."""

    path: str
    dry_run: bool
    mended: bool
    done: int
    lost_elements: int
    actions: list[Finding]
    remaining: list[Finding]
    set_aside: dict[str, int]
    dropped: dict[str, int]


@dataclass(init=False, repr=False, eq=False)
class Seal(Result):
    """What :func:`seal` wrote."""

    path: str
    manifest: str
    files: int
    bytes: int
    written: bool
    parity_bytes: int
    outside: list[str]


@dataclass(init=False, repr=False, eq=False)
class Advice(Result):
    """What :func:`advise` found.

    Attributes
    ----------
    path : str
        The array.
    part : dict
        Where the part that was tried begins, and its `shape`.
    reads : list of dict
        The ways of reading: `text` and `shape`.
    layouts : list of dict
        The best one first: `chunks`, `shards`, `codec`, whether it is the `present` one, `stored_bytes_about`, `values` (files or
        objects, if all are stored), `read_seconds` for each way of reading, `write_seconds`, `cost`, and `options` of ``tessera copy``.
    """

    path: str
    part: Document
    reads: list[Document]
    layouts: list[Document]


@dataclass(init=False, repr=False, eq=False)
class Indexed(Result):
    """What :func:`index` came to, in stored chunks; with shards in shards.

    Attributes
    ----------
    path : str
        The array.
    chunks : int
        All that are stored.
    kept, read : int
        Those whose entries still counted, and the others.
    unsettled : int
        Of these, chunks that changed a moment ago and have no entry yet.
    bytes : int
        Of the index.
    """

    path: str
    chunks: int
    kept: int
    read: int
    unsettled: int
    bytes: int


@dataclass(frozen=True, eq=False)
class ChunkStatistics:
    """What each chunk amounts to, see :meth:`tessera.Array.chunk_stats`: NumPy arrays with as many elements along each
    dimension as there are chunks (with shards, inner chunks).

    All but `stored` and `stored_bytes` are None where elements are neither real numbers nor times.

    Attributes
    ----------
    stored : array of bool
        Whether the chunk is stored. Elements of one that is not are the fill value, and counted as such.
    stored_bytes : array of int
        Its bytes as stored; 0 if it is not.
    count, missing : array of int
        Elements with a value; and those that are missing, NaN or NaT.
    min, max : array
        Of these values, in their dtype: NaN or NaT where there is none; masked arrays where integers may be missing.
    mean : array of float
        NaN where there is no value.
    """

    stored: Values
    stored_bytes: Values
    count: Optional[Values] = None
    missing: Optional[Values] = None
    min: Optional[Values] = None
    max: Optional[Values] = None
    mean: Optional[Values] = None

    @property
    def sum(self) -> Optional[Values]:
        """The mean times the count, in float64; 0 where there is no value."""
        if self.mean is None or self.count is None:
            return None
        total: Values = np.where(self.count > 0, self.mean * self.count, 0.0)
        return total


@dataclass(init=False, repr=False, eq=False)
class Difference(Result):
    """How two arrays differ; see :func:`diff`.

    Attributes
    ----------
    equal : bool
        Whether nothing differs.
    structure : list of str
        Differences other than elements: ``"shape (3,) is not (4,)"``.
    elements, different : int
        How many elements were compared, and how many of them differ.
    first : list of dict
        The first that differ, each with `index`, `a` and `b`.
    largest : float or None
        The largest difference; None if elements are not numbers.
    largest_at : tuple of int or None
        Its index.
    codes : str or None
        How the stored codes differ where all elements are equal.
    """

    equal: bool
    structure: list[str]
    elements: int
    different: int
    first: list[Document]
    largest: Optional[float]
    largest_at: Optional[tuple[int, ...]]
    codes: Optional[str]


@dataclass(init=False, repr=False, eq=False)
class SetDifference(Result):
    """How two groups, or files of several arrays, differ; see :func:`diff`.

    Attributes
    ----------
    equal : bool
        Whether nothing differs.
    same : int
        How many arrays and groups are equal.
    only_in_a, only_in_b : list of str
        The paths of those that only one has.
    attributes : list of str
        The paths of those whose attributes or names of dimensions differ.
    only_codes : list of dict
        Arrays whose elements are equal and whose stored codes are not: `path` and `codes`.
    different : list of dict
        Arrays that differ: the members of :class:`Difference`, and `path`.
    """

    equal: bool
    same: int
    only_in_a: list[str]
    only_in_b: list[str]
    attributes: list[str]
    only_codes: list[Document]
    different: list[Document]


@dataclass(init=False, repr=False, eq=False)
class Statistics(Result):
    """The numbers of :func:`stats`; of a structure, each of `fields` has them for a field.

    Attributes
    ----------
    path, field, dtype : str
        What they are of.
    count : int
        All elements. All else but `nan`, `missing` and `fill` leaves out missing ones, NaN and NaT.
    nan, missing, fill : int
        Elements that are NaN or NaT, that are so or marked as missing, and that equal the fill value.
    stored_dtype : str
        Of the codes.
    outside_valid : int or None
        Elements outside of `valid_range`, `valid_min` and `valid_max`, where there are any of these.
    min, max, mean : number, text or None
        None where there is none.
    deviation : float or None
        The standard deviation, with the number of elements as divisor.
    histogram : dict or None
        `start`, `width` and `counts`.
    further : dict
        The values of ``how=``, by their names.
    fields : list of Statistics
    """

    path: Optional[str]
    field: Optional[str]
    dtype: str
    count: int
    nan: Optional[int]
    missing: Optional[int]
    fill: Optional[int]
    stored_dtype: str
    outside_valid: Optional[int]
    min: Any
    max: Any
    mean: Any
    deviation: Optional[float]
    histogram: Optional[Document]
    further: Document
    fields: list["Statistics"]


@dataclass(init=False, repr=False, eq=False)
class JobState(Result):
    """How far a job is; see :meth:`Job.state` and :meth:`Job.finish`.

    Attributes
    ----------
    path, target : str
        The file of the job, and what it makes.
    finished : bool
        Whether the target is open.
    units, units_done : int
    missing_units, missing_parts : str
        Ranges of numbers: ``"0,4-7"``; no parts where the job was planned without.
    failures : list of dict
        Each with `unit` and `message`.
    bytes, bytes_done, stored_bytes : int
        Of elements, of those that are done, and as these are stored.
    bytes_a_second, seconds_left : float or None
        None until something is known.
    """

    path: str
    target: str
    finished: bool
    units: int
    units_done: int
    missing_units: str
    missing_parts: Optional[str]
    failures: list[Document]
    bytes: int
    bytes_done: int
    stored_bytes: int
    bytes_a_second: Optional[float]
    seconds_left: Optional[float]


class Unit(NamedTuple):
    """A unit of a job: what it is of, and its number. It can be sent to any machine that sees the same folders."""

    job: str
    number: int


class UnitDone(NamedTuple):
    """The result of :meth:`Job.run`."""

    unit: int
    before: bool  #: it had been done already
    files: int  #: chunks or shards that hold more than the fill value
    bytes: int  #: stored
    seconds: float
