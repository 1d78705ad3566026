"""A plugin of pytest: xarray's own tests of Zarr with what is Tessera's in place of what is zarr's.

TESSERA_XARRAY is "pipeline" (the codec pipeline; zarr is told so by its own variable), "store" (tessera.zarr.Store wherever a
path is opened or written) or "engine" (engine="tessera" reads what lies at a path), or "plain" to see what zarr itself does.
"""
import functools
import os

import pytest
import xarray
from xarray.backends import zarr as backend

WAY = os.environ.get("TESSERA_XARRAY", "plain")

# Why a test is left out, by words in its name: of all ways, and of each.
IN_MEMORY = {name: "lies in memory, where nothing is Tessera's" for name in
             ("TestZarrDictStore", "TestInstrumentedZarrStore", "MemoryStore", "_fsspec")}
ALL = {
    "TestZarrNoConsolidatedMetadataSupport": "repeats TestZarrDictStore",
}
REASONS = {
    "plain": {},
    "pipeline": {
        "to_zarr_compute_false [zarr_format=2]": "with the fill null a chunk of zeros is stored: not every reader takes null for 0",
    },
    "store": IN_MEMORY,
    "engine": {
        **IN_MEMORY,
        "non_consolidated_warning": "nothing is slow without consolidated metadata, so that nobody is warned",
        "to_zarr_not_consolidated": "looks for the same warning",
        "test_non_existent_store": "looks for zarr's words; ours are: no such file or directory",
        "fill_value_setting [2-": "asks not to mask the fill, which xarray's engine forgets when it opens",
        "raises_key_error_on_invalid_zarr_store": "arrays without names of dimensions open, with names that are made for them",
    },
}


def _as_store(function):
    def call(store, *args, **options):
        import tessera.zarr

        if isinstance(store, (str, os.PathLike)) and "://" not in str(store):
            mode = args[0] if args else options.get("mode", "r")
            store = tessera.zarr.Store(store, durability="none", **({} if mode == "r" else {"read_only": False}))
        return function(store, *args, **options)
    return call


def _as_engine(name):
    from tessera._xarray import TesseraBackend

    function = getattr(backend.ZarrBackendEntrypoint, name)
    ours = getattr(TesseraBackend, name)

    @functools.wraps(function)  # xarray looks at the parameters
    def call(self, filename_or_obj, **options):
        if not isinstance(filename_or_obj, (str, os.PathLike)) or "://" in str(filename_or_obj):
            return function(self, filename_or_obj, **options)
        for zarrs in ("mode", "consolidated", "zarr_format", "store", "engine", "cache_members"):
            options.pop(zarrs, None)
        return ours(TesseraBackend(), filename_or_obj, **options)
    return call


def _without_locks(walk):
    """For tests that list an array's files: the pipeline's lock is one of them."""
    def call(*args, **options):
        for root, folders, files in walk(*args, **options):
            folders[:] = [name for name in folders if name != ".tessera"]
            yield root, folders, files
    return call


if WAY == "pipeline":
    os.walk = _without_locks(os.walk)
elif WAY == "store":
    backend._get_open_params = _as_store(backend._get_open_params)
elif WAY == "engine":
    for each in "open_dataset", "open_datatree", "open_groups_as_dict":
        setattr(backend.ZarrBackendEntrypoint, each, _as_engine(each))


def pytest_configure(config):
    config.addinivalue_line("markers", "skip_if_param: xarray's own")


def _is_out_of_place(item):
    """As xarray's conftest says, which is not installed."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    for mark in item.iter_markers("skip_if_param"):
        wanted = {name: value for name, value in mark.kwargs.items() if name not in ("reason", "condition")}
        if mark.kwargs.get("condition", True) and any(parameters.get(name) == value for name, value in wanted.items()):
            return True
    return False


def pytest_collection_modifyitems(config, items):
    kept, left = [], []
    reasons = {**ALL, **REASONS[WAY]}
    for item in items:
        known = next((reason for part, reason in reasons.items() if all(word in item.nodeid for word in part.split())), None)
        repeats = "TestZarrWriteEmpty" in item.nodeid and "empty" not in item.name  # those of TestZarrDirectoryStore
        if known is not None or repeats or "zarr" not in item.nodeid.lower():
            left.append(item)
            continue
        if _is_out_of_place(item):
            item.add_marker(pytest.mark.skip(reason="of the other format"))
        kept.append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


assert xarray.__version__
