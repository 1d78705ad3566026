"""One copy or computation in units, for dask and any other engine: :func:`plan`, and :class:`Job` for what it makes."""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any, Iterator, Literal, Optional, Union, get_args, overload

import numpy as np

from . import _tessera
from ._compute import Operand
from ._errors import InvalidArgument, Unfinished
from ._lazy import View
from ._making import Path, json_fill, new_place
from ._options import ProgressCallback, absolute, work
from ._types import Document
from .types import JobState, Unit, UnitDone

_local = threading.local()


class _Units(Sequence[Unit]):
    """All units of a job, or those of a part, without a list of them in memory."""

    def __init__(self, job: str, numbers: range):
        self._job = job
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Unit: ...
    @overload
    def __getitem__(self, index: slice) -> "_Units": ...
    def __getitem__(self, index: Union[int, slice]) -> Union[Unit, "_Units"]:
        if isinstance(index, slice):
            return _Units(self._job, self._numbers[index])
        return Unit(self._job, self._numbers[index])

    def __iter__(self) -> Iterator[Unit]:
        return (Unit(self._job, number) for number in self._numbers)


def _worker(path: str) -> _tessera.JobWorker:
    """The worker of this thread for a job. Kept from unit to unit, because it knows what is done."""
    status = os.stat(path)
    key = (os.getpid(), path, status.st_ino, status.st_mtime_ns)
    if getattr(_local, "key", None) != key:
        _local.key, _local.worker = None, None
        place = _tessera.PlaceOptions(read_only=False)
        _local.worker = _tessera.JobWorker(path, place)
        _local.key = key
    worker: _tessera.JobWorker = _local.worker
    return worker


def _share_of_dask() -> tuple[int, int]:
    """The threads and the memory of one task of the dask worker that this is; (0, 0) elsewhere."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return 0, 0
    try:
        worker = distributed.get_worker()
    except ValueError:
        return 0, 0
    threads = max(1, worker.state.nthreads)
    limit = worker.memory_manager.memory_limit or 0
    return 1, limit // (2 * threads)


class Job:
    """A job that :func:`plan` or ``tessera plan`` wrote; see tools/docs/many_machines.md.

    It pickles as its path. Any number of processes and threads may run units at once.

    Parameters
    ----------
    path : path
        The file of the job.
    """

    def __init__(self, path: Path):
        self.path = absolute(path)
        self.target, self._count, parts = _tessera.job_facts(self.path)
        self.parts: Optional[int] = parts or None

    def __reduce__(self) -> tuple[object, ...]:
        return Job, (self.path,)

    def __repr__(self) -> str:
        return f"<tessera.Job {self.path!r}: {self._count} units → {self.target!r}>"

    def units(self, part: Optional[int] = None, of: Optional[int] = None) -> Sequence[Unit]:
        """All units, or those of part number `part`, of as many as planned unless `of` is given."""
        if part is None:
            return _Units(self.path, range(self._count))
        count = of or self.parts
        if count is None:
            raise InvalidArgument("of: the job was planned without parts, so that it must be said how many there are")
        return _Units(self.path, range(*_tessera.job_part(self.path, part, count)))

    def run(self, unit: Union[Unit, int], *, threads: int = 0, max_memory: Union[int, str] = 0) -> UnitDone:
        """Do a unit, unless it is done. Repeating one is harmless.

        In a task of dask, threads and memory are by default this task's share of its worker.
        """
        number = unit.number if isinstance(unit, Unit) else int(unit)
        if isinstance(unit, Unit) and unit.job != self.path:
            raise InvalidArgument(f"a unit of {unit.job} is none of {self.path}")
        if not threads and not max_memory:
            threads, max_memory = _share_of_dask()
        return UnitDone(number, *_worker(self.path).run(number, work(threads, max_memory, None)))

    def state(self) -> JobState:
        """How far it is, as ``tessera job --json`` says."""
        return JobState(json.loads(_tessera.job_state(self.path)))

    def finish(self, *, read: bool = False, threads: int = 0, max_memory: Union[int, str] = 0) -> JobState:
        """Compare every unit with its record, and open the target.

        With `read`, all that is stored is read again.

        Raises
        ------
        Unfinished
            Units are missing. Its `state` says which, and how those that ran failed; :meth:`run` does them.
        """
        place = _tessera.PlaceOptions(read_only=False)
        found = JobState(json.loads(_tessera.finish_job(self.path, read, place, work(threads, max_memory, None))))
        if not found.finished:
            parts = f" (parts {found.missing_parts})" if found.missing_parts else ""
            failures = f"; unit {found.failures[0]['unit']} failed: {found.failures[0]['message']}" if found.failures else ""
            raise Unfinished(f"{self.path}: {found.units - found.units_done} of {found.units} units are missing: "
                             f"{found.missing_units}{parts}{failures}", found)
        return found


_RECIPES = {"stack": "join", "concat": "join", "rechunk": "copy"}
Command = Literal["copy", "rechunk", "stack", "concat", "calc", "reduce", "coarsen", "regrid", "pyramid"]
_COMMANDS = get_args(Command)


def plan(command: Command, source: Union[Operand, Sequence[Operand]], target: Path, *, out: Path, parts: int = 0,
         sel: Optional[str] = None, overwrite: bool = False, threads: int = 0, max_memory: Union[int, str] = 0,
         progress: ProgressCallback = None, **options: object) -> Job:
    """Divide a copy or computation into units for many processes, and begin its target.

    Parameters
    ----------
    command : {"copy", "rechunk", "stack", "concat", "calc", "reduce", "coarsen", "regrid", "pyramid"}
    source : path or Array
        A list of them for "stack" and "concat"; the expression for "calc", whose arrays are `operands`.
    target : path
        A directory, or a place in S3 or Google Cloud Storage, for which each process finds credentials by itself. It opens
        once :meth:`Job.finish` has found every unit.
    out : path
        The file of the job.
    parts : int
        Into how many parts the units are divided, for :meth:`Job.units`.
    sel : str, optional
        The part of the source of "copy" and "rechunk": ``"10:20, ::2"``.
    max_memory : int or str
        That of each process.
    **options
        Those of the function of that name, and of the new array: see :func:`copy`, :func:`calc`, :func:`reduce`.

    Examples
    --------
    >>> tessera.save("a.zarr", np.arange(1000).reshape(10, 100), chunks=(1, 100), overwrite=True)
    >>> job = tessera.plan("rechunk", "a.zarr", "by_column.zarr", out="job.json", chunks=(10, 10))
    >>> for unit in job.units():
    ...     done = job.run(unit)
    >>> job.finish().finished
    True
    """
    if command not in _COMMANDS:
        raise InvalidArgument(f"command: expected {', '.join(_COMMANDS[:-1])} or {_COMMANDS[-1]}, found {command}")
    if any(isinstance(one, np.ndarray) for one in (source if isinstance(source, (list, tuple)) else [source])):
        raise InvalidArgument("source: an array in memory, which other processes do not see: save it first")
    if isinstance(source, View):
        if sel is not None or command == "pyramid":
            raise InvalidArgument("source: the view names a part, " + ("and a pyramid is of a whole array: copy the view first"
                                  if command == "pyramid" else "and sel another one: view.lazy[…] takes it of the view"))
        source, sel = source._selection()
    name = _RECIPES.get(command, command)
    member = "expression" if command == "calc" else "arrays" if name == "join" else "array"
    asked: Document = {"do": name, member: source, "sel": sel, "overwrite": overwrite, **options}
    if name == "join":
        asked["new_axis"] = command == "stack"
    if name == "pyramid" and asked.pop("sel") is not None:
        raise InvalidArgument("sel: a pyramid is of a whole array")
    if "fill_value" in asked:
        fill = asked["fill_value"]
        asked["fill_value"] = json_fill(fill, asked.get("dtype") or np.asarray(fill).dtype)
    place = _tessera.PlaceOptions(read_only=False)
    _tessera.plan_job(asked, new_place(target), absolute(out), parts, place, work(threads, max_memory, progress))
    return Job(out)


def dask_run(job: Job, client: Any, *, retries: int = 3, progress: bool = False, **map_options: object) -> JobState:
    """Run all units of a job on the workers of a dask client, and finish it.

    Parameters
    ----------
    job : Job
    client : distributed.Client
        Its workers must see the files of the job under the same names.
    retries : int
        How often a unit that failed is tried again.
    progress : bool
        Whether dask shows a bar.
    **map_options
        For ``client.map``: ``resources``, ``batch_size``, ``priority`` …

    Returns
    -------
    JobState
        As of :meth:`Job.finish`. The error of a unit is raised once all others have ended.
    """
    distributed = importlib.import_module("distributed")

    futures = client.map(job.run, job.units(), retries=retries, pure=False, **map_options)
    if progress:
        distributed.progress(futures)
    distributed.wait(futures)
    for future in futures:
        if future.status == "error":
            future.result()
    return job.finish()
