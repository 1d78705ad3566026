"""What an array is: its properties, and descriptions of it."""

from __future__ import annotations

import html
from typing import Any, Optional, Sequence

import numpy as np

from . import _bfloat16, _ml_types, _tessera
from ._attrs import Attributes
from ._node import Node
from ._picture import thumbnail_html
from .types import ArrayInfo
from ._types import DType, Document

BRIEF = _tessera.WorkOptions()


def size_text(size: int) -> str:
    """ "270.8 KiB" """
    number = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if number < 1023.95 or unit == "PiB":
            return f"{size} bytes" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1024
    return ""


def html_table(facts: Document) -> str:
    """Facts as a table for notebooks."""
    rows = []
    for name, value in facts.items():
        if name in ("kind", "fields", "codecs") or (isinstance(value, (list, dict)) and not value):
            continue
        if name.endswith("_bytes") and isinstance(value, int):
            value = size_text(value)
        if name == "ratio" and value is not None:
            value = f"{value:.1f}"
        if name == "attributes":
            value = ", ".join(f"{k}: {v}" for k, v in value.items())
        rows.append(f'<tr><th style="text-align:left">{html.escape(name.replace("_", " "))}</th>'
                    f'<td style="text-align:left">{html.escape(str(value))}</td></tr>')
    return f"<table>{''.join(rows)}</table>"


class Described(Node):
    """An array without its elements: what it is."""

    _handle: _tessera.ArrayHandle

    def __init__(self, handle: _tessera.ArrayHandle, path: str, mode: str, options: Document):
        super().__init__(handle, path, mode, options)
        self._brief = self._work() if "max_memory" in options else BRIEF
        self._note_dtype()

    def _note_dtype(self) -> None:
        self._dtype = self._handle.dtype
        self._bfloat16 = _bfloat16.order(self._handle.dtype_text)
        self._shown = _ml_types.shown(self._handle)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths, as last read; :meth:`refresh` shows a resize by others."""
        return self._handle.shape

    @property
    def dtype(self) -> DType:
        """The NumPy dtype: ``object`` for text, bytes and sequences of any length.

        bfloat16, small floats and small integers have the dtypes of ml_dtypes, if that is installed; else ``V2``,
        ``float32`` and ``int8`` or ``uint8``.
        """
        return self._dtype if self._shown is None else self._shown

    def _as_shown(self, values: Any) -> Any:
        """Elements as the library has them in memory, as this array's dtype has them."""
        return values if self._shown is None else _ml_types.as_shown(values, self._bfloat16, self._shown)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._handle.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for length in self._handle.shape:
            size *= length
        return size

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, decoded."""
        return self.size * self._handle.item_size

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self._handle.item_size

    @property
    def chunks(self) -> Optional[tuple[int, ...]]:
        """The lengths of a chunk, which is decoded as a whole; None for a plain file.

        Where chunks differ in length, the longest of each dimension: see :attr:`chunk_lengths`.
        """
        chunks: Optional[tuple[int, ...]] = self._handle.layout()["chunks"]
        return chunks

    @property
    def shards(self) -> Optional[tuple[int, ...]]:
        """The lengths of a shard, which is a file of many chunks; None without shards."""
        shards: Optional[tuple[int, ...]] = self._handle.layout()["shards"]
        return shards

    @property
    def nchunks(self) -> int:
        """The number of chunks that cover the array, stored or not; 1 for a plain file."""
        return self._handle.chunk_count(False)

    @property
    def chunk_lengths(self) -> tuple[tuple[int, ...], ...]:
        """The lengths of all chunks along each dimension, cut at the array's edge: dask's ``chunks``.

        Examples
        --------
        >>> a = tessera.create("uneven.zarr", shape=25, dtype="u1", chunks=[[10, 10, 5]], format="v3")
        >>> a.chunk_lengths
        ((10, 10, 5),)
        """
        return self._handle.chunk_lengths(False)

    @property
    def codec(self) -> Optional[str]:
        """The codecs of a chunk as :func:`tessera.create` takes them: ``"blosc:lz4:5:shuffle"``; None for files."""
        return self._handle.order_and_codec()[1]

    @property
    def order(self) -> str:
        """The order of the elements in a chunk, or in a file: ``"C"`` or ``"F"``."""
        return self._handle.order_and_codec()[0]

    @property
    def fill_value(self) -> Any:
        """The value of elements that were never written; None if it is undefined, and for files."""
        fill = self._handle.fill_value()
        return fill if fill is None or self._shown is None else self._as_shown(np.asarray(fill))[()]

    @property
    def dims(self) -> Optional[tuple[Optional[str], ...]]:
        """The names of the dimensions, from wherever the format keeps them; None if there are none."""
        return self._handle.dims()

    @dims.setter
    def dims(self, names: Optional[Sequence[Optional[str]]]) -> None:
        self._require_writable()
        self._handle.set_dimension_names(None if names is None else list(names))

    @property
    def format(self) -> Optional[str]:
        """``"zmeta"``, ``"v1"``, ``"v2"`` or ``"v3"``; None for an array file."""
        return self._handle.format()

    @property
    def attrs(self) -> Attributes:
        """The attributes: a mapping that reads and writes the stored document on each access."""
        return Attributes(self._handle, self._require_writable)

    @property
    def info(self) -> ArrayInfo:
        """The output of ``tessera info --json``: a dict whose members are attributes, too."""
        facts = ArrayInfo(path=self.path, **self._handle.facts(self.path))
        for name in ("shape", "chunks", "shards"):
            if name in facts:
                facts[name] = tuple(facts[name])
        if self.dims is not None:
            facts["dimension_names"] = list(self.dims)
        if "fill_value" in facts:
            facts["fill_value"] = self.fill_value
        return facts

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        if self._handle.closed:
            return f"<tessera.Array {self._display!r}, closed>"
        layout = self._handle.layout()
        text = f"<tessera.Array {self._display!r} {self.shape} {self._handle.dtype_text}"
        if layout["chunks"] is not None:
            text += f", chunks {layout['chunks']}"
        if layout["shards"] is not None:
            text += f" in shards {layout['shards']}"
        return f"{text}, {self.format or 'file'}, {self._mode}>"

    def _repr_html_(self) -> str:
        return html_table(self.info) + thumbnail_html(self)

    def refresh(self) -> None:
        """Reload the metadata, such as a shape that others changed; open what took the array's place, if any did."""
        self._handle.refresh()
        self._note_dtype()
