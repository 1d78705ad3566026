"""Arrays as files of a folder, for programs that read files."""

from __future__ import annotations

import atexit
import json
import os
import pathlib
import subprocess
import weakref
from typing import Any, Literal, Union

from . import _errors
from ._closing import Closing
from ._errors import Error, InvalidArgument, Unsupported
from ._node import Node
from ._options import absolute
from ._program import MISSING, find_program

_mounted: "weakref.WeakSet[Mount]" = weakref.WeakSet()


class Mount(Closing):
    """A folder that shows arrays as files, from :func:`tessera.mount`. It ends with a ``with`` statement, with :meth:`close`,
    when nothing refers to it any more, or with the process.
    """

    def __init__(self, process: "subprocess.Popen[str]", folder: pathlib.Path):
        self.folder = folder
        """The folder."""
        self._end = weakref.finalize(self, _close, process, os.getpid())
        _mounted.add(self)

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return not self._end.alive

    def close(self) -> None:
        """Store what was written, and unmount the folder. May be called twice."""
        self._end()

    def __fspath__(self) -> str:
        return str(self.folder)

    def __truediv__(self, name: str) -> pathlib.Path:
        return self.folder / name

    def __repr__(self) -> str:
        return f"<tessera.Mount {str(self.folder)!r}{', closed' if self.closed else ''}>"


def _close(process: "subprocess.Popen[str]", owner: int) -> None:
    if os.getpid() != owner:  # a forked child has no part in it
        return
    process.terminate()
    _, errors = process.communicate()
    if process.returncode > 0 and errors:
        raise _error_of(errors)


def _error_of(text: str) -> Error:
    """The exception that the program's last line of JSON tells of."""
    try:
        told = json.loads(text.strip().splitlines()[-1])
        code, message = told["code"], told["message"]
    except (IndexError, KeyError, TypeError, ValueError):
        return Error(text.strip() or "mount: the program ended")
    names = {"io": "IoError", "budget": "OverBudget"}
    kind = getattr(_errors, names.get(code, "".join(word.title() for word in code.split("_"))), Error)
    made: Error = kind(message)
    return made


def mount(path: Any, folder: Any, *, write: bool = False, zarr: Literal["v3", "v2"] = "v3", order: Literal["C", "F"] = "C",
          allow_other: bool = False, follow_links: bool = False, threads: int = 0, max_memory: Union[int, str] = 0) -> Mount:
    """Show arrays as files in an empty folder, as ``tessera mount``, which this runs: as ``.npy``, ``.nc`` and Zarr.

    Takes Linux with ``/dev/fuse``. The folder is shown by a process of its own, so that this one may map its files.

    Parameters
    ----------
    path : path, Array or Group
        Anything that :func:`tessera.open` takes.
    folder : path
        An empty folder.
    write : bool
        Whether elements of ``.npy`` files can be changed in place.
    zarr : str
        The format below ``NAME.zarr``.
    order : str
        Of the elements in ``.npy`` files.
    allow_other : bool
        Whether other users of this machine may read.
    follow_links : bool
        Whether symbolic links may lead out of the path.
    threads : int
        Threads of one read; 0: all cores.
    max_memory : int or str
        Memory for decoded chunks and all reads together, such as ``"512M"``; 0: the program's own choice.

    Returns
    -------
    Mount
        Keep it: the folder is unmounted when nothing refers to it.
    """
    found = find_program()
    if found is None:
        raise Unsupported(f"mount: {MISSING}")
    if order not in ("C", "F") or zarr not in ("v2", "v3"):
        raise InvalidArgument(f"mount: order is 'C' or 'F', zarr 'v3' or 'v2', found {order!r} and {zarr!r}")
    program, environment = found
    at = pathlib.Path(absolute(folder))
    words = ["--as", zarr, "--order", order]
    flags = {"--write": write, "--allow-other": allow_other, "--follow-links": follow_links}
    words += [word for word, wanted in flags.items() if wanted]
    for word, number in (("--threads", threads), ("--max-memory", max_memory)):
        words += [word, str(number)] if number else []
    process = subprocess.Popen([program, "mount", "--json", *words, "--", absolute(path.path if isinstance(path, Node) else path), str(at)],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                               start_new_session=True)  # Ctrl-C is for this process, which may still read
    assert process.stdout is not None
    if not process.stdout.readline():
        raise _error_of(process.communicate()[1])
    return Mount(process, at)


@atexit.register
def _close_all() -> None:
    for one in list(_mounted):
        one.close()
