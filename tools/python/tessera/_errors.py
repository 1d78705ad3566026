"""The exceptions of tessera: one class for each cause, each derived from the matching built-in exception."""


class Error(Exception):
    """The base class of all errors of the library.

    The message names the array, the chunk, what was expected and what was found.
    """


class InvalidArgument(Error, ValueError):
    """The caller asked for something that makes no sense: a bad shape, a dtype that does not fit."""


class OutOfBounds(Error, IndexError):
    """An index or a region outside the array."""


class NotFound(Error, FileNotFoundError, KeyError):
    """A path, a member or a node that does not exist."""

    __str__ = Exception.__str__


class AlreadyExists(Error, FileExistsError):
    """The path of a new array or group is taken."""


class Corrupt(Error, OSError):
    """Bytes that violate their format."""


class Unsupported(Error, NotImplementedError):
    """Valid, but not something that Tessera or the chosen format can do."""


class IoError(Error, OSError):
    """A system call failed; the message names the file and the system's reason."""


class OverBudget(Error, MemoryError):
    """Impossible within the memory budget; the message names the smallest budget that works."""


class Cancelled(Error, InterruptedError):
    """Stopped on request."""


class Recorded(Error, RuntimeError):
    """A batch is recorded and will take effect, but is not in place yet: do not repeat it."""


class Unfinished(Error, RuntimeError):
    """Units of a job are missing; `state` is what :meth:`Job.state` tells."""

    def __init__(self, message: str, state: object = None):
        super().__init__(message, state)
        self.state = state

    def __str__(self) -> str:
        return str(self.args[0])


class Sealed(Error, PermissionError):
    """A change to a sealed array or group; opening it with ``break_seal=True`` allows the change."""
