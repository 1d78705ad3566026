"""What the end of a ``with`` statement does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class Closing:
    """Something that is closed then."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.close()


class Committing(Closing):
    """A batch of changes, which take effect then, unless an error ended the statement."""

    def commit(self) -> int:
        raise NotImplementedError

    def discard(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """As :meth:`discard`."""
        self.discard()

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()
