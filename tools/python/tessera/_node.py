"""What lies at a path: the base of arrays, groups and the members of a file, and how one is opened."""

from __future__ import annotations

import functools
from typing import Any, Callable, Union

from . import _tessera
from ._closing import Closing
from ._errors import InvalidArgument
from ._options import ProgressCallback, place_options, work
from ._types import Document


class Node(Closing):
    """A handle of the library, with the path, the mode and the options that it was opened with."""

    def __init__(self, handle: Any, path: str, mode: str, options: Document):
        self._handle = handle
        self._path = path
        self._mode = mode
        self._options = options

    @property
    def path(self) -> str:
        """Where it lies: a path, ``file.npz::member``, or a place in a zip."""
        return self._path

    @property
    def _display(self) -> str:
        return _tessera.without_secrets(self._path)

    @property
    def mode(self) -> str:
        """``"r"`` for reading, ``"r+"`` for reading and writing."""
        return self._mode

    def _work(self, threads: int = 0, max_memory: Union[int, str] = 0, progress: ProgressCallback = None) -> _tessera.WorkOptions:
        """How one call works: within the memory that it names, or else the one that open() was given."""
        return work(threads, max_memory or self._options.get("max_memory", 0), progress)

    def __reduce__(self) -> tuple[object, ...]:
        return functools.partial(open_node, **self._options), (self._path, self._mode)

    def __eq__(self, other: object) -> Any:
        return (self._path, self._mode) == (other._path, other._mode) if isinstance(other, Node) else NotImplemented

    def __hash__(self) -> int:
        return hash((self._path, self._mode))

    def _require_writable(self) -> None:
        if self._mode == "r":
            raise InvalidArgument(f'{self._display}: was opened for reading; tessera.open(path, "r+") can change it')


# The class for each kind of handle. They stand in files above this one, and _commands.py enters them.
KINDS: dict[type, Callable[[Any, str, str, Document], Node]] = {}


def open_node(path: str, mode: str = "r", **options: Any) -> Any:
    """As :func:`tessera.open`, which documents the options, for an absolute path. Nodes open others by it."""
    within = work(max_memory=options.get("max_memory", 0))
    handle = _tessera.open_path(path, _tessera.PlaceOptions(mode == "r", **place_options(options)), within)
    return KINDS[type(handle)](handle, path, mode, options)
