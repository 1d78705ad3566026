"""tessera.zarr.Store against zarr's own tests of stores, and what it shows of everything that Tessera opens."""
import asyncio
import concurrent.futures
import multiprocessing
import pathlib
import pickle

import numpy as np
import pytest
import tessera
import tessera.zarr
import zarr
from zarr.core.buffer import cpu, default_buffer_prototype
from zarr.testing.stateful import ZarrHierarchyStateMachine, ZarrStoreStateMachine
from zarr.testing.store import StoreTests

try:
    from hypothesis import HealthCheck, assume, settings
    from hypothesis import strategies as st
    from hypothesis.stateful import rule, run_state_machine_as_test
except ImportError:
    pytest.skip("no hypothesis", allow_module_level=True)
from zarr.testing.strategies import keys as zarr_keys  # noqa: E402


class TestStore(StoreTests):
    store_cls = tessera.zarr.Store
    buffer_cls = cpu.Buffer

    async def get(self, store, key):
        return self.buffer_cls.from_bytes((pathlib.Path(store.path) / key).read_bytes())

    async def set(self, store, key, value):
        path = pathlib.Path(store.path) / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value.to_bytes())

    @pytest.fixture
    def store_kwargs(self, tmp_path):
        return {"path": str(tmp_path / "store"), "durability": "none"}

    def test_store_repr(self, store):
        assert repr(store) == f"tessera.zarr.Store({store.path!r})"

    def test_store_supports_writes(self, store):
        assert store.supports_writes and store.supports_deletes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


class InDirectories(ZarrStoreStateMachine):
    """A key that others lie below, "q" beside "q/x", is drawn now and then. A directory cannot have it: zarr leaves its own
    store of files out of this test."""

    @rule(key=zarr_keys(), data=st.binary(min_size=0, max_size=100))
    def set(self, key, data):
        path = pathlib.Path(self.store.store.path)
        assume(".tessera" not in key)  # Hypothesis draws words that it finds in the sources
        assume(not (path / key).is_dir() and not any((path / part).is_file() for part in pathlib.PurePath(key).parents))
        super().set(key, data)


@pytest.mark.parametrize("machine", [ZarrHierarchyStateMachine, InDirectories])
def test_stateful(machine, tmp_path):
    store = tessera.zarr.Store(tmp_path / "store", durability="none")

    def make():
        return machine(store)

    run_state_machine_as_test(make, settings=settings(max_examples=15, deadline=None,
                                                      suppress_health_check=list(HealthCheck)))


def test_own_names_are_no_keys(tmp_path):
    """What no listing shows can be neither written nor removed."""
    store = tessera.zarr.Store(tmp_path / "s", durability="none")
    own = tmp_path / "s" / "a" / ".tessera"
    own.mkdir(parents=True)
    (own / "lock").write_bytes(b"held")
    for key in (".tessera", "a/.tessera/lock", "a/.tessera-tmp-1-x", "a/.tessera/lock/b"):
        with pytest.raises(tessera.InvalidArgument, match="Tessera's own name"):
            asyncio.run(store.set(key, cpu.Buffer.from_bytes(b"x")))
        assert asyncio.run(store.get(key, default_buffer_prototype())) is None
        assert not asyncio.run(store.exists(key))
        asyncio.run(store.delete(key))
    assert (own / "lock").read_bytes() == b"held" and sorted(p.name for p in (tmp_path / "s").rglob("*")) == [".tessera", "a", "lock"]


def _claim(path, number, go):
    store = tessera.zarr.Store(path, durability="none")
    go.wait()
    for n in range(50):
        asyncio.run(store.set_if_not_exists(f"a/{n}", cpu.Buffer.from_bytes(str(number).encode())))
    return None


def test_set_if_not_exists_is_true_between_processes(tmp_path):
    """Nothing is replaced: what a process sees after its own call stays."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        go = manager.Event()
        workers = [context.Process(target=_claim, args=(str(tmp_path / "s"), n, go)) for n in range(3)]
        for worker in workers:
            worker.start()
        go.set()
        for worker in workers:
            worker.join()
            assert worker.exitcode == 0
    store = tessera.zarr.Store(tmp_path / "s")
    before = {n: store.get_sync(f"a/{n}").to_bytes() for n in range(50)}
    asyncio.run(store.set_if_not_exists("a/0", cpu.Buffer.from_bytes(b"other")))
    assert store.get_sync("a/0").to_bytes() == before[0]
    assert all(value in (b"0", b"1", b"2") for value in before.values())
    assert sorted(p.name for p in (tmp_path / "s" / "a").iterdir()) == sorted(map(str, range(50)))


def _places(folder):
    """Every kind of place, with the elements in it."""
    values = np.arange(7 * 5, dtype="<i4").reshape(7, 5)
    np.save(folder / "plain.npy", values)
    np.savez(folder / "both.npz", x=values, y=values[0])
    for name in ("zmeta", "v1", "v2", "v3"):
        tessera.save(folder / f"{name}.zarr", values, chunks=(3, 2), format=name)
    tessera.save(folder / "sharded.zarr", values, chunks=(2, 2), shards=(4, 4), format="v3")
    tessera.copy(folder / "v3.zarr", folder / "v3.zip")
    tessera.copy(folder / "v2.zarr", folder / "v2.zip")
    names = ["plain.npy", "both.npz::x", "zmeta.zarr", "v1.zarr", "v2.zarr", "v3.zarr", "sharded.zarr", "v3.zip", "v2.zip"]
    return {name: values for name in names}


@pytest.mark.parametrize("zarr_format", [None, 2, 3])
def test_everything_opens_in_both_formats(tmp_path, zarr_format):
    for name, values in _places(tmp_path).items():
        store = tessera.zarr.Store(tmp_path / name, zarr_format=zarr_format)
        array = zarr.open(store, mode="r")
        assert isinstance(array, zarr.Array), name
        assert np.array_equal(array[...], values), name
        assert np.array_equal(array[1::2, 3], values[1::2, 3]), name
        if zarr_format:
            assert array.metadata.zarr_format == zarr_format, name
        again = pickle.loads(pickle.dumps(store))
        assert again == store and np.array_equal(zarr.open(again, mode="r")[2:], values[2:]), name
        keys = set(_collect(store.list()))
        assert all(store.get_sync(key) is not None for key in keys), name
        for folder in {key[:n] for key in keys for n, letter in enumerate(key) if letter == "/"} | {"c", "nothing"}:
            below = {key for key in keys if key.startswith(folder + "/")}
            assert set(_collect(store.list_prefix(folder + "/"))) == below, (name, folder)
            assert set(_collect(store.list_dir(folder))) == {key[len(folder) + 1:].partition("/")[0] for key in below}, (name, folder)
        assert np.array_equal(tessera.open(tmp_path / name).as_zarr()[...], values), name


def _collect(keys):
    async def collect():
        return [key async for key in keys]

    return asyncio.run(collect())


def test_hierarchies(tmp_path):
    tessera.save(tmp_path / "g.zarr" / "a", np.arange(4), format="zmeta")
    tessera.save(tmp_path / "g.zarr" / "deep" / "b", np.arange(5.0), format="zmeta")
    group = zarr.open(tessera.zarr.Store(tmp_path / "g.zarr"), mode="r")
    assert sorted(path for path, _ in group.members(max_depth=None)) == ["a", "deep", "deep/b"]
    assert np.array_equal(group["deep/b"][...], np.arange(5.0))
    assert np.array_equal(tessera.open(tmp_path / "g.zarr").as_zarr()["a"][1:], [1, 2, 3])


def test_ranges_of_views(tmp_path):
    from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest

    np.save(tmp_path / "plain.npy", np.arange(8, dtype="u1"))
    store = tessera.zarr.Store(tmp_path / "plain.npy")
    for request, wanted in [(None, range(8)), (RangeByteRequest(2, 4), (2, 3)), (OffsetByteRequest(6), (6, 7)),
                            (SuffixByteRequest(3), (5, 6, 7)), (SuffixByteRequest(0), ()), (RangeByteRequest(6, 99), (6, 7))]:
        assert store.get_sync("c/0", byte_range=request).to_bytes() == bytes(wanted)
    assert store.get_sync("c/1") is None and store.get_sync("none") is None


def test_what_cannot_be_written(tmp_path):
    tessera.save(tmp_path / "z.zarr", np.arange(4), format="zmeta")
    store = tessera.zarr.Store(tmp_path / "z.zarr")
    assert store.read_only and not store.supports_writes
    with pytest.raises(tessera.Unsupported, match="convert"):
        tessera.zarr.Store(tmp_path / "z.zarr", read_only=False)
    with pytest.raises(ValueError, match="read-only mode"):
        asyncio.run(store.set("a", cpu.Buffer.from_bytes(b"1")))


def test_threads_and_loops(tmp_path):
    values = np.arange(64 * 64).reshape(64, 64)
    tessera.save(tmp_path / "z.zarr", values, chunks=(8, 8), format="zmeta")
    store = tessera.zarr.Store(tmp_path / "z.zarr")

    def ask(n):
        value = asyncio.run(store.get("zarr.json", default_buffer_prototype()))
        return value is not None and np.array_equal(zarr.open(store, mode="r")[n], values[n])

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(16)))


def test_written_hierarchy_is_read_by_the_library(tmp_path):
    for zarr_format in (2, 3):
        store = tessera.zarr.Store(tmp_path / f"v{zarr_format}.zarr")
        group = zarr.create_group(store, zarr_format=zarr_format, attributes={"a": 1})
        array = group.create_array("x", shape=(6, 4), chunks=(4, 4), dtype="f8", fill_value=0)
        array[1:5] = 7
        read = tessera.open(tmp_path / f"v{zarr_format}.zarr")
        assert read.attrs["a"] == 1 and read["x"][:, 0].tolist() == [0, 7, 7, 7, 7, 0]
        writable = tessera.open(tmp_path / f"v{zarr_format}.zarr" / "x", "r+").as_zarr()
        writable[0] = 9
        assert read["x"][0, 0] == 9
