"""Descriptions of arrays and groups."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from ._results import ArrayInfo

if TYPE_CHECKING:
    from ._array import Array

# Sizes of chunks beyond these are estimated, as in the program.
_EXACT_SIZES = 50_000


def array_facts(array: "Array") -> ArrayInfo:
    """The members of ``tessera info --json``."""
    handle = array._handle
    layout = handle.layout()
    facts = ArrayInfo(path=array.path, kind="array")
    if not handle.is_chunked:
        facts.update(format=None, dtype=handle.dtype_text, shape=array.shape, order=layout["order"],
                     logical_bytes=array.nbytes, attributes=array.attrs.asdict())
        return facts
    described = handle.described()
    facts.update(format=described.pop("format"), dtype=described.pop("dtype"), fields=described.pop("fields"),
                 shape=array.shape, chunks=layout["chunks"])
    if layout["shards"] is not None:
        facts["shards"] = layout["shards"]
    remarks = described.pop("remarks")
    described.pop("about")
    facts.update(described)
    if array.dims is not None:
        facts["dimension_names"] = list(array.dims)
    facts["fill_value"] = array.fill_value
    facts.update(handle.stored(_EXACT_SIZES))
    facts["logical_bytes"] = array.nbytes
    stored = facts["stored_bytes"]
    facts["ratio"] = None if stored is None else array.nbytes / stored if stored else 0.0
    facts["attributes"] = array.attrs.asdict()
    facts["remarks"] = remarks
    return facts


def size_text(size: int) -> str:
    """ "270.8 KiB" """
    number = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if number < 1023.95 or unit == "PiB":
            return f"{size} bytes" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1024
    return ""


def html_table(facts: dict[str, Any]) -> str:
    """Facts as a table for notebooks."""
    rows = []
    for name, value in facts.items():
        if name in ("kind", "fields") or (isinstance(value, (list, dict)) and not value):
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
