"""What Zarr sees of a node: keys, and the bytes behind them."""

from __future__ import annotations

import json
import re
from typing import Any, Iterator, Optional

from . import _tessera
from ._describe import Described
from ._errors import Error, NotFound
from ._types import Document
from ._types import Document

# What a chunk is called in the formats of Zarr: "0.1", "c/0/1", "c".
_CHUNK = re.compile(r"c([./]\d+)*|\d+([./]\d+)*")

# A part of a value: where it begins and ends, and a negative number is from the end.
Part = tuple[int, Optional[int]]


def encode(document: object) -> bytes:
    """A document of JSON as Zarr stores it."""
    return json.dumps(document, indent=4, ensure_ascii=True).encode("ascii")


class NodeKeys:
    """The keys of a node and of all below it, as a read-only hierarchy of Zarr v2 or v3."""

    def __init__(self, node: Any, zarr_format: int):
        self.node = node
        self.format = zarr_format
        self._arrays: dict[str, _tessera.ZarrKeys] = {}

    def _child(self, path: str) -> Any:
        if path and isinstance(self.node, Described):
            raise NotFound(path)
        return self.node[path] if path else self.node

    def array(self, path: str) -> Optional[_tessera.ZarrKeys]:
        """Of the array at a path; None where there is a group. Raises NotFound where there is nothing."""
        if path not in self._arrays:
            node = self._child(path)
            if not isinstance(node, Described):
                return None
            self._arrays[path] = _tessera.ZarrKeys(node._handle, self.format)
        return self._arrays[path]

    def children(self, path: str) -> list[str]:
        """The names of the nodes below a group."""
        try:
            node = self._child(path)
        except (NotFound, TypeError):
            return []
        return [] if isinstance(node, Described) else list(node)

    def documents(self, path: str) -> list[str]:
        """The names of the documents at a path."""
        try:
            keys = self.array(path)
        except Error as error:
            # What cannot be opened is there, and says so when its document is read.
            return [] if isinstance(error, NotFound) else [".zarray" if self.format == 2 else "zarr.json"]
        if self.format == 3:
            return ["zarr.json"]
        if keys is not None:
            return [".zarray", ".zattrs"]
        return [".zgroup", ".zattrs", ".zmetadata"] if path == "" else [".zgroup", ".zattrs"]

    def walk(self, path: str = "", chunks: bool = False) -> Iterator[str]:
        """All keys from a path on; chunks only if they are asked for."""
        prefix = f"{path}/" if path else ""
        for name in self.documents(path):
            yield prefix + name
        if chunks:
            try:
                keys = self.array(path)
            except Error:
                keys = None
            if keys is not None:
                yield from (prefix + key for key in keys.stored())
        for child in self.children(path):
            yield from self.walk(prefix + child, chunks)

    def _document(self, path: str, name: str) -> Optional[Document]:
        """None if there is no such document."""
        keys = self.array(path)
        if keys is not None:
            if name in (".zarray", "zarr.json"):
                return keys.document()
            return keys.attributes() if name == ".zattrs" else None
        node = self._child(path)
        attributes = node.attrs.asdict() if isinstance(node._handle, _tessera.GroupHandle) else {}
        if name == "zarr.json":
            return {"zarr_format": 3, "node_type": "group", "attributes": attributes}
        if name == ".zmetadata":
            return self._consolidated() if path == "" else None
        return {".zgroup": {"zarr_format": 2}, ".zattrs": attributes}.get(name)

    def _consolidated(self) -> Document:
        documents = {}
        for key in self.walk():
            path, _, name = key.rpartition("/")
            if name != ".zmetadata":
                try:
                    documents[key] = self._document(path, name)
                except Error:
                    continue  # named when it is asked for by itself
        return {"zarr_consolidated_format": 1, "metadata": documents}

    def chunk(self, key: str) -> Optional[tuple[_tessera.ZarrKeys, str]]:
        """The array that a key leads to, and the name of the chunk in it."""
        parts = key.split("/")
        for n in range(len(parts) - 1, -1, -1):
            name = "/".join(parts[n:])
            if not _CHUNK.fullmatch(name):
                if not _CHUNK.fullmatch(parts[n]):
                    return None
                continue
            try:
                keys = self.array("/".join(parts[:n]))
            except NotFound:
                continue
            if keys is not None and keys.is_chunk(name):
                return keys, name
        return None

    def get(self, key: str, range: Optional[Part] = None) -> Optional[bytes]:
        """A value, or a part of it (start, stop); None if there is none."""
        path, _, name = key.rpartition("/")
        if name in ((".zarray", ".zgroup", ".zattrs", ".zmetadata") if self.format == 2 else ("zarr.json",)):
            try:
                document = self._document(path, name)
            except NotFound:
                return None
            value = None if document is None else encode(document)
            return value if value is None or range is None else value[range[0]:range[1]]
        found = self.chunk(key)
        if found is None:
            return None
        try:
            return found[0].get(found[1], range)
        except Error as error:
            # Not a KeyError, which zarr would take for a chunk that is absent.
            raise OSError(str(error)) from error

    def contains(self, key: str) -> bool:
        """Whether there is a value; decodes nothing."""
        path, _, name = key.rpartition("/")
        if name in self.documents(path):
            return True
        try:
            found = self.chunk(key)
        except Error:
            return False
        return found is not None and found[0].contains(found[1])
