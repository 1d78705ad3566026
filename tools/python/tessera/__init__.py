"""Tessera: chunked, compressed N-dimensional arrays that do not fit in memory.

Open an array, index it like a NumPy array, and write to it safely from many processes::

    import tessera

    a = tessera.create("grid.zarr", shape=(100_000, 100_000), dtype="<f4", chunks=(1000, 1000), format="v3")
    a[200:300, ::2] = 1.5
    b = tessera.open("grid.zarr")                 # "r+" to change it
    b[250, :10]
    tessera.verify("grid.zarr")["sound"]

:func:`open` reads every Zarr format (zarr-python 0.4, v1, v2, v3 with shards), zips of these, ``.npy``, ``.npz``,
``.ra`` and MLDF. The result is an :class:`Array`, a :class:`Group`, or the :class:`Members` of a file.

=====================  ==========================================================
opening and making     open, open_array, open_group, create, zeros, full, create_group, save, load
copying                copy, convert, refs
computing              calc, reduce, coarsen, regrid, pyramid, stack, concat, unstack
checking               verify, repair, seal, seal_ocfl, package, fixity, digest, diff, diff_sums, stats, find, index, info
going back             snapshot, snapshots, restore, undo, Array.edit
looking                Array.view, Array.show, thumbnails, serve, mount
writing together       Array.update, Array.append, Array.cached
many machines          plan, Job, dask_run, store, to_zarr
extending              add_codec, add_store
=====================  ==========================================================

Each cause of errors has a class of its own, derived from a built-in exception: :class:`NotFound` is a FileNotFoundError
and a KeyError, :class:`OutOfBounds` an IndexError, :class:`InvalidArgument` a ValueError. Every call releases the GIL
while it works, and Ctrl-C ends long work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._array import Array, Cached, Edit
from ._attrs import Attributes
from ._calls import in_words
from ._compute import calc, coarsen, concat, pyramid, reduce, regrid, stack, unstack
from ._data_set import DataSet
from ._errors import (AlreadyExists, Cancelled, Corrupt, Error, InvalidArgument, IoError, NotFound, OutOfBounds,
                      OverBudget, Recorded, Sealed, Unfinished, Unsupported)
from ._extensions import add_codec, add_store
from ._group import Group, GroupEdit, Members
from ._dask_store import store
from ._indexing import Converted
from ._lazy import View
from ._jobs import Job, dask_run, plan
from ._picture import Picture, thumbnails
from ._mount import Mount, mount
from ._serve import Server, Shown, serve
from ._tessera import version as __version__
from ._to_zarr import to_zarr
from ._safety import (diff_sums, fixity, package, remove_snapshot, repair, restore, seal, seal_ocfl, snapshot, snapshots,
                      undo, verify)
from ._commands import (advise, convert, copy, create, create_group, diff, digest, find, full, index, info, load, open, open_array, open_group,
                     read_in_process, refs, save, stats, zeros)
from . import types
# Where they were before.
from .types import (ArrayInfo as ArrayInfo, Difference as Difference, FileInfo as FileInfo, Finding as Finding,
                    GroupInfo as GroupInfo, Indexed as Indexed, Repair as Repair, Result as Result, Seal as Seal, Statistics as Statistics,
                    Unit as Unit, UnitDone as UnitDone, Verification as Verification)

if TYPE_CHECKING:
    from ._zarr import KeyStore, ZarrView, zarr_view

__all__ = [
    "Array", "Cached", "Converted", "DataSet", "Edit", "Group", "GroupEdit", "Job", "KeyStore", "Members", "Mount", "Picture", "Server", "Shown",
    "View", "ZarrView",
    "Error", "AlreadyExists", "Cancelled", "Corrupt", "InvalidArgument", "IoError", "NotFound", "OutOfBounds",
    "OverBudget", "Recorded", "Sealed", "Unfinished", "Unsupported",
    "add_codec", "add_store", "advise", "calc", "coarsen", "concat", "convert", "copy", "create", "create_group", "dask_run", "diff", "diff_sums", "digest", "find", "fixity",
    "full", "index", "info", "load", "mount", "open", "open_array", "open_group", "package", "plan", "pyramid", "read_in_process", "reduce", "refs", "regrid",
    "remove_snapshot", "repair", "restore", "save", "seal", "seal_ocfl", "serve", "snapshot", "snapshots",
    "stack", "stats", "thumbnails", "store", "to_zarr", "types", "undo", "unstack", "verify", "zarr_view", "zeros",
]


in_words(Attributes)
for _name in sorted(set(globals()) & set(__all__) - {"types"}):
    globals()[_name] = in_words(globals()[_name])


def __getattr__(name: str) -> object:
    """The bridge to zarr is loaded when it is asked for: its classes are stores of zarr, where that is installed."""
    if name in ("KeyStore", "ZarrView", "zarr_view"):
        from . import _zarr

        for each in ("KeyStore", "ZarrView", "zarr_view"):
            globals()[each] = in_words(getattr(_zarr, each))
        return globals()[name]
    if name == "zarr":
        import importlib

        try:
            return importlib.import_module(".zarr", __name__)
        except ImportError as error:  # without zarr-python 3; hasattr() is to be False
            raise AttributeError(str(error)) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
