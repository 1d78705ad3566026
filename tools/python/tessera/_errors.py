"""The exceptions of tessera: one class for each thing that can be wrong, each also the obvious built-in one."""


class Error(Exception):
    """What every error of the library derives from.

    The message names the array, the chunk, what was expected and what was found.
    """


class InvalidArgument(Error, ValueError):
    """The caller asked for something that makes no sense: a bad shape, a dtype that does not fit."""


class OutOfBounds(Error, IndexError):
    """An index or a region outside the array."""


class NotFound(Error, FileNotFoundError, KeyError):
    """A path, a member or a node that is not there."""

    __str__ = Exception.__str__


class AlreadyExists(Error, FileExistsError):
    """Something lies where an array or group is to be made."""


class Corrupt(Error, OSError):
    """Bytes that are not what their format says they must be."""


class Unsupported(Error, NotImplementedError):
    """Valid, but not something that Tessera or the chosen format can do."""


class IoError(Error, OSError):
    """A call of the system failed; the message names the file and the system's reason."""


class OverBudget(Error, MemoryError):
    """Cannot be done within the memory budget; the message names the least that works."""


class Cancelled(Error, InterruptedError):
    """Stopped on request."""


class Recorded(Error, RuntimeError):
    """A batch is recorded and takes effect by itself, though it is not in place yet: do not make it again."""


class Sealed(Error, PermissionError):
    """A change to what is sealed; ``break_seal=True`` where it is opened allows it."""
