# mypy: enable-incomplete-feature=Unpack
"""tessera.Group: a mapping of names to arrays and groups."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Optional, Sequence, Union

from . import _tessera
from ._array import Array, Changed
from ._attrs import Attributes
from ._closing import Committing
from ._errors import AlreadyExists, Error, InvalidArgument, NotFound
from ._making import as_stored, creation_options, new_place
from ._node import Node, open_node
from ._options import CreationOptions, Lengths, place_options
from .types import GroupInfo
from ._types import Attrs, DTypeLike, Document, Format

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _require_name(name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"a group has names, not {name!r}")


def require_same(found: Node, shape: Lengths, dtype: DTypeLike) -> Array:
    """What was found, if it is an array of this shape and dtype; else raises InvalidArgument."""
    wanted = _tessera.numpy_dtype(dtype)
    lengths = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    if not isinstance(found, Array):
        raise InvalidArgument(f"{found.path}: expected an array, found a group")
    kept = "bytes" if dtype in (bytes, "bytes") else "string" if wanted == object else found._handle.dtype_text
    if found.shape != lengths or found.dtype.newbyteorder("=") != wanted.newbyteorder("=") \
            or found._handle.dtype_text != kept:
        raise InvalidArgument(f"{found.path}: is an array of {found._handle.dtype_text} and shape {found.shape}; "
                              f"expected {kept if wanted == object else wanted} and {lengths}")
    return found


class Group(Node, Mapping[str, Any]):
    """A mapping of names to the arrays and groups below a directory or in a zip.

    A group has metadata of a format, or is a plain folder that holds arrays. Names may lead further down:
    ``group["sub/array"]``.

    Examples
    --------
    >>> g = tessera.create_group("model.zarr", format="v3", attrs={"title": "a model"})
    >>> a = g.create_array("fields/height", shape=(2, 3), dtype="<f4", fill_value=1.5)
    >>> list(g), list(g["fields"])
    (['fields'], ['height'])
    >>> g["fields/height"][0]
    array([1.5, 1.5, 1.5], dtype=float32)
    >>> print(g.tree())
    model.zarr/
    └── fields/
        └── height (2, 3) <f4
    """

    _handle: _tessera.GroupHandle

    @property
    def format(self) -> Optional[str]:
        """``"v2"`` or ``"v3"``; None for a plain folder."""
        return self._handle.format()

    @property
    def attrs(self) -> Attributes:
        """The attributes, a mapping that is read and written through at once."""
        return Attributes(self._handle, self._require_writable)

    @property
    def info(self) -> GroupInfo:
        """The output of ``tessera info --json`` for a group: a dict whose members are attributes, too."""
        return GroupInfo(path=self._path, **self._handle.facts())

    # ---- a mapping

    def __getitem__(self, name: str) -> Any:
        _require_name(name)
        place = self._place(name)
        try:
            return open_node(place, self._mode, **self._options)
        except NotFound as error:
            raise NotFound(f"{name}: not in {self._display}; there are: {', '.join(self) or 'no arrays or groups'}") \
                from error

    def __iter__(self) -> Iterator[str]:
        return (path for path, _, _ in self._handle.nodes(False))

    def __len__(self) -> int:
        return len(self._handle.nodes(False))

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        if "/" not in name:
            return name in list(self)
        try:
            self[name]
        except (NotFound, InvalidArgument):
            return False
        except Error:
            return True
        return True

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """The arrays directly below, by name. Omits arrays that cannot be opened; accessing one by name is an error."""
        return self._below("array")

    def groups(self) -> Iterator[tuple[str, "Group"]]:
        """The groups directly below, by name."""
        return self._below("group")

    def array_keys(self) -> list[str]:
        """The names of the arrays directly below. Opens none of them."""
        return [name for name, kind, _ in self._handle.nodes(False) if kind == "array"]

    def group_keys(self) -> list[str]:
        """The names of the groups directly below."""
        return [name for name, kind, _ in self._handle.nodes(False) if kind == "group"]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def walk(self) -> Iterator[tuple[str, str, Optional[str]]]:
        """All nodes below: path, ``"array"`` or ``"group"``, and format. Opens no node, so none is refused."""
        return iter(self._handle.nodes(True))

    def tree(self) -> str:
        """The nodes below, drawn as a tree."""
        lines = [os.path.basename(self._display.rstrip("/")) + "/"]
        below: dict[str, list[tuple[str, str]]] = {}
        for path, kind, _ in self._handle.nodes(True):
            parent, _, name = path.rpartition("/")
            below.setdefault(parent, []).append((name, kind))

        def add(parent: str, indent: str) -> None:
            children = below.get(parent, [])
            for number, (name, kind) in enumerate(children):
                last = number + 1 == len(children)
                path = f"{parent}/{name}" if parent else name
                branch = "└── " if last else "├── "
                lines.append(indent + branch + (self._leaf(name, path) if kind == "array" else name + "/"))
                add(path, indent + ("    " if last else "│   "))

        add("", "")
        return "\n".join(lines)

    # ---- changes

    def create_array(self, name: str, shape: Lengths = None, dtype: DTypeLike = None, *, data: object = None,
                     **options: Unpack[CreationOptions]) -> Array:
        """Make an array below this group, in its format, with any missing groups in between.

        The arguments are those of :func:`tessera.create`; with `data`, `shape` and `dtype` may be left out.
        """
        self._require_writable()
        _require_name(name)
        if data is None:
            if shape is None or dtype is None:
                raise TypeError("create_array() needs shape and dtype, or data")
            self._handle.create_array(name, creation_options(shape, dtype, options))
        else:
            self._save(name, data, shape, dtype, options, False)
        made: Array = self[name]
        return made

    def require_array(self, name: str, shape: Lengths, dtype: DTypeLike, **options: Unpack[CreationOptions]) -> Array:
        """The array of this name, created as by :meth:`create_array` if it does not exist.

        Raises
        ------
        InvalidArgument
            Something else is there, or an array of another shape or dtype. The options are used only to create it.
        """
        found = self._found(name)
        if found is None:
            try:
                return self.create_array(name, shape, dtype, **options)
            except AlreadyExists:  # by another process meanwhile
                found = self[name]
        return require_same(found, shape, dtype)

    def __setitem__(self, name: str, value: object) -> None:
        """``group["x"] = values`` makes an array, as :meth:`create_array` does, or replaces one in one step.

        An :class:`Array` is copied block by block, with its attributes and names of dimensions.
        """
        self._require_writable()
        if isinstance(value, (Group, Members)):
            raise TypeError("a group is copied by tessera.copy; an array or values can be assigned")
        if not isinstance(value, Array):
            self._save(name, value, None, None, {}, True)
            return
        place = self._place(name)
        if os.path.realpath(place) == os.path.realpath(value.path):
            return
        self._make_groups_above(name)
        asked = {"do": "copy", "array": value, "format": self.format, "overwrite": True}
        _tessera.copy(asked, None, self._around(), new_place(place + "/"), self._around(), self._work())

    def create_group(self, name: str, attrs: Attrs = None, format: Format = "v3") -> "Group":
        """Make a group below this group, in its format (`format` is used only below a plain folder)."""
        self._require_writable()
        _require_name(name)
        self._handle.create_group(name, dict(attrs or {}), format)
        made: Group = self[name]
        return made

    def require_group(self, name: str) -> "Group":
        """The group of this name, created if it does not exist."""
        found = self._found(name)
        if found is None:
            try:
                return self.create_group(name)
            except AlreadyExists:  # by another process meanwhile
                found = self[name]
        if not isinstance(found, Group):
            raise InvalidArgument(f"{self._place(name)}: expected a group, found an array")
        return found

    def move(self, old: str, new: str) -> None:
        """Rename an array or group below this one, with everything in it. Never replaces anything."""
        self._require_writable()
        self._handle.move(old, new)

    def remove(self, name: str, recursive: bool = False, *, force: bool = False) -> None:
        """Delete an array, or a group that is empty unless `recursive`. `force`: also one whose metadata are broken."""
        self._require_writable()
        self._handle.remove(name, recursive, force)

    def __delitem__(self, name: str) -> None:
        self.remove(name, recursive=True)

    def edit(self, keep_old: bool = True) -> "GroupEdit":
        """A batch of changes to several arrays below this group: all of them take effect, or none.

        Within ``with``, ``batch[name]`` is an array that can be written, resized and appended to. Nobody else sees the
        changes, and other writers of all arrays below the group wait. At the end of the block the changes take effect
        in all arrays together, whatever fails or is killed, unless an exception leaves it. :func:`tessera.undo` of the
        group takes the batch back, unless `keep_old` is False.

        Examples
        --------
        >>> g = tessera.create_group("series.zarr")
        >>> for name in "time", "level":
        ...     made = g.create_array(name, shape=0, dtype="<f8", chunks=100)
        >>> with g.edit() as batch:
        ...     _ = batch["time"].append(np.array([0.5]))
        ...     _ = batch["level"].append(np.array([7.25]))
        >>> g["time"][:], g["level"][:]
        (array([0.5]), array([7.25]))
        """
        self._require_writable()
        return GroupEdit(self, keep_old)

    def append(self, source: Union[str, os.PathLike[str], "Group", Sequence[Union[str, os.PathLike[str], "Group"]]],
               dimension: str, *, casting: Optional[str] = None, skip_old: bool = False, keep_old: bool = True, threads: int = 0, max_memory: Union[int, str] = 0) -> int:
        """Make the arrays that have a dimension longer by those of another group or file, such as of a new month.

        All of them grow, or none. Arrays without the dimension stay as they are. Times in other units are counted as
        those that are there. :func:`tessera.undo` of the group takes it back, unless `keep_old` is False.

        Parameters
        ----------
        source : path_like or Group, or a list of them
            A group, a folder, or a file of several arrays (netCDF, HDF5, .npz), with an array of the same name for each
            array that has the dimension. The values of its coordinate along the dimension must go on from the last one.
        dimension : str
            The name of the dimension that grows, such as ``"time"``.
        casting : str, optional
            The rule to convert values of another dtype, as in :func:`tessera.copy`. Without it they are an error.

        skip_old : bool
            Leave out what is there already, by the coordinate, so that the same call may be made twice.

        Returns
        -------
        int
            The length of the dimension before, which is the index of the first new element.

        Examples
        --------
        >>> def month(path, times):
        ...     g = tessera.create_group(path)
        ...     _ = g.create_array("time", data=np.array(times), dims=["time"])
        ...     _ = g.create_array("rain", data=np.ones((len(times), 4)), dims=["time", "x"])
        ...     return g
        >>> g = month("january.zarr", [0, 1, 2])
        >>> g.append(month("february.zarr", [3, 4]), "time"), g["rain"].shape
        (3, (5, 4))
        """
        self._require_writable()
        given = [source] if isinstance(source, (str, os.PathLike, Group)) else source
        paths = [os.fspath(one._path if isinstance(one, Group) else one) for one in given]
        return self._handle.append(paths, dimension, casting, skip_old, keep_old, self._work(threads, max_memory))

    def consolidate(self) -> None:
        """Write consolidated metadata, by which other Zarr readers open a hierarchy."""
        self._require_writable()
        self._handle.consolidate()

    # ---- other

    def close(self) -> None:
        """Release what the group holds open, such as a zip. Arrays and groups that it gave stay open."""
        self._handle.close()

    def __repr__(self) -> str:
        if self._handle.closed:
            return f"<tessera.Group {self._display!r}, closed>"
        return f"<tessera.Group {self._display!r} {self.format or 'plain folder'}, {self._mode}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.tree())}</pre>"

    def _found(self, name: str) -> Optional[Node]:
        try:
            found: Node = self[name]
        except NotFound:
            return None
        return found

    def _make_groups_above(self, name: str) -> None:
        above = name.strip("/").rpartition("/")[0]
        if above and self.format is not None:
            self.require_group(above)

    def _save(self, name: str, data: object, shape: Lengths, dtype: DTypeLike, options: Mapping[str, object], overwrite: bool) -> None:
        place = self._place(name)
        values, dtype = as_stored(data, dtype, shape)
        wanted = creation_options(values.shape, dtype, {"format": self.format, **options})
        self._make_groups_above(name)
        _tessera.save(place, values, wanted, self._around(), overwrite, self._work())

    def _around(self) -> _tessera.PlaceOptions:
        """How new arrays are written: as this group was opened."""
        return _tessera.PlaceOptions(False, **place_options(self._options))

    def _place(self, name: str) -> str:
        self._handle.format()  # raises if it is closed
        parts = name.strip("/").split("/")
        if any(part in ("", ".", "..") for part in parts):
            raise NotFound(f"{name!r} is no name of an array or group")
        return _tessera.path_below(self._path, "/".join(parts))

    def _below(self, wanted: str) -> Iterator[tuple[str, Any]]:
        for name, kind, _ in self._handle.nodes(False):
            if kind == wanted:
                try:
                    yield name, self[name]
                except Error:
                    continue

    def _leaf(self, name: str, path: str) -> str:
        try:
            array = self[path]
        except Error as error:
            return f"{name}: {error}"
        return f"{name} {array.shape} {array._handle.dtype_text}"

    def as_zarr(self, zarr_format: Optional[int] = None) -> Any:
        """This group and all below it as a ``zarr.Group``, without a copy; see :meth:`Array.as_zarr`."""
        from ._zarr import as_zarr

        return as_zarr(self, zarr_format)


class Members(Node, Mapping[str, Array]):
    """The arrays of a file that holds several: an ``.npz``, an MLDF file.

    Examples
    --------
    >>> np.savez("both.npz", x=np.arange(3), y=np.zeros((2, 2)))
    >>> f = tessera.open("both.npz")
    >>> list(f), f["y"].shape
    (['x', 'y'], (2, 2))
    """

    _handle: list[str]

    def __init__(self, names: list[str], path: str, mode: str, options: Document):
        super().__init__(list(dict.fromkeys(names)), path, "r", options)

    def as_zarr(self, zarr_format: Optional[int] = None) -> Any:
        """The arrays as members of a ``zarr.Group``, without a copy; see :meth:`Array.as_zarr`."""
        from ._zarr import as_zarr

        return as_zarr(self, zarr_format)

    def __getitem__(self, name: str) -> Array:
        if name not in self._handle:
            raise NotFound(f"{name}: not in {self._display}; there are: {', '.join(self._handle)}")
        member: Array = open_node(f"{self._path}::{name}", **self._options)
        return member

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._handle)

    def __iter__(self) -> Iterator[str]:
        return iter(self._handle)

    def __len__(self) -> int:
        return len(self._handle)

    def close(self) -> None:
        """Does nothing: each member that is asked for opens the file by itself."""

    def __repr__(self) -> str:
        return f"<tessera.Members {self._display!r}: {', '.join(self._handle)}>"


class GroupEdit(Committing, Mapping[str, Array]):
    """A batch of changes to several arrays of a group; see :meth:`Group.edit`."""

    def __init__(self, group: "Group", keep_old: bool):
        self._group = group
        self._batch = _tessera.EditHandle(group._handle, keep_old=keep_old)
        self._arrays: dict[str, Changed] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._arrays:
            place = self._group._place(name)
            handle = self._batch.array_at(name.strip("/"))
            self._arrays[name] = Changed(handle, place, "r+", self._group._options)
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return (path for path, kind, _ in self._group.walk() if kind == "array")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def commit(self) -> int:
        """Make all changes of all arrays take effect. Returns the number of values that changed."""
        try:
            return self._batch.commit()
        finally:
            self.discard()

    def discard(self) -> None:
        """End the batch. Changes that were not committed are dropped."""
        for array in self._arrays.values():
            _tessera.close(array._handle)
        self._arrays.clear()
        self._batch.close()

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a batch of edits cannot be pickled; pickle the group")
