"""Pictures of arrays, as notebooks show them."""

from __future__ import annotations

import base64
import operator
import os
from typing import Any, Union

from ._errors import Error

_thumbnails = False


def selection_text(selection: object) -> str:
    """A key of basic indexing as the text that the library reads: ``(5, slice(None, None, 2))`` is ``"5, ::2"``."""
    if isinstance(selection, str):
        return selection
    words = []
    for key in selection if isinstance(selection, tuple) else (selection,):
        if key is Ellipsis:
            words.append("...")
        elif isinstance(key, slice):
            parts = ["" if part is None else str(int(part)) for part in (key.start, key.stop, key.step)]
            words.append(":".join(parts if key.step is not None else parts[:2]))
        else:
            words.append(str(operator.index(key)))
    return ", ".join(words)


class Picture:
    """A PNG picture; a notebook shows it. See :meth:`tessera.Array.view`."""

    def __init__(self, data: bytes):
        self.data = data
        """The bytes of the PNG file."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return int.from_bytes(self.data[16:20], "big"), int.from_bytes(self.data[20:24], "big")

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Write it to a file, which must not exist yet."""
        with open(os.fsdecode(path), "xb") as file:
            file.write(self.data)

    def _repr_png_(self) -> bytes:
        return self.data

    def __repr__(self) -> str:
        width, height = self.size
        return f"<tessera.Picture {width}×{height}>"


def thumbnails(show: bool = True) -> None:
    """Whether notebooks show a small picture below the facts of an array that is the last word of a cell.

    It decodes at most 16 MiB of each array. At first they show facts alone.
    """
    global _thumbnails
    _thumbnails = bool(show)


def thumbnail_html(array: Any) -> str:
    """An array's picture as HTML; "" where none is wanted, or can be drawn."""
    if not _thumbnails:
        return ""
    try:
        data = array.view(size=(480, 360), limit="16M").data
    except Error:
        return ""
    return f'<img alt="A slice of the array" src="data:image/png;base64,{base64.b64encode(data).decode()}">'
