"""Descriptions of arrays and groups."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from ._results import ArrayInfo

if TYPE_CHECKING:
    from ._array import Array


def array_facts(array: "Array") -> ArrayInfo:
    """The members of ``tessera info --json``, with shapes as tuples and the fill value as NumPy has it."""
    facts = ArrayInfo(path=array.path, **array._handle.facts(array.path))
    for name in ("shape", "chunks", "shards"):
        if name in facts:
            facts[name] = tuple(facts[name])
    if array.dims is not None:
        facts["dimension_names"] = list(array.dims)
    if "fill_value" in facts:
        facts["fill_value"] = array.fill_value
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
