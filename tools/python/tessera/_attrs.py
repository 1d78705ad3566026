"""Attributes: a mapping that reads and writes the stored document on each access."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from typing import Any, Callable, Iterator

from ._types import Document


class Attributes(MutableMapping[str, Any]):
    """The attributes of an array or a group: JSON values by name.

    Examples
    --------
    >>> a = tessera.create("small.zarr", shape=3, dtype="<i2", overwrite=True)
    >>> a.attrs["units"] = "m"
    >>> a.attrs
    {'units': 'm'}
    """

    def __init__(self, handle: Any, require_writable: Callable[[], None]):
        self._handle = handle
        self._require_writable = require_writable

    def asdict(self) -> Document:
        """All of them at this moment."""
        return dict(self._handle.attributes())

    def put(self, attributes: Document) -> None:
        """Replace all of them in one step."""
        self._require_writable()
        self._handle.replace_attributes(dict(attributes))

    def __getitem__(self, name: str) -> Any:
        return self._handle.attributes()[name]

    def __setitem__(self, name: str, value: object) -> None:
        self._require_writable()
        if not isinstance(name, str):
            raise TypeError(f"the name of an attribute is a str; found {name!r}")
        self._handle.set_attribute(name, value)

    def __delitem__(self, name: str) -> None:
        self._require_writable()
        if not isinstance(name, str) or not self._handle.erase_attribute(name):
            raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._handle.attributes())

    def __len__(self) -> int:
        return len(self._handle.attributes())

    def __repr__(self) -> str:
        return repr(self._handle.attributes())

    def _repr_json_(self) -> object:
        return json.loads(json.dumps(self._handle.attributes()))
