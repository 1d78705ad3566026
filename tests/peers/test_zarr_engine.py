"""tessera._zarr_engine in a zarr-python that has external engines (the prototype #4064); skipped in those that have none."""
import importlib.util
import json
import random
import threading

import numpy as np
import pytest
import tessera
import zarr
from zarr.storage import LocalStore, MemoryStore

THERE = importlib.util.find_spec("zarr.abc.engine") is not None
if THERE:
    from tessera._zarr_engine import Engine, with_engine
    from zarr.abc.engine import ArrayEngine
pytestmark = pytest.mark.skipif(not THERE, reason="this zarr has no engines")
KINDS = ["local", "memory", "v2", "shards", "empty chunks"]


def made(kind, folder, shape, dtype):
    store = MemoryStore() if kind == "memory" else LocalStore(folder)
    options = {"shards": tuple(6 for _ in shape)} if kind == "shards" else {}
    return zarr.create_array(store, shape=shape, chunks=tuple(3 for _ in shape), dtype=dtype, fill_value=1, zarr_format=2 if kind == "v2" else 3,
                             config={"write_empty_chunks": kind == "empty chunks"}, **options)


def basic(rng, shape):
    key = []
    for length in shape:
        start = rng.randrange(length)
        key.append(rng.choice([start, start - length, slice(None), slice(start, rng.randint(start, length)), slice(start, None, rng.randint(1, 3))]))
    return tuple(key[:rng.randint(0, len(key))]) + (Ellipsis,) if rng.random() < 0.3 else tuple(key)


def same(found, wanted):
    assert np.array_equal(found, wanted) and (np.ndim(wanted) == 0 or found.dtype == wanted.dtype)


@pytest.mark.parametrize("dtype", ["<i4", ">f8", "bool", "S3"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_selections(kind, dtype, tmp_path):
    rng = random.Random(f"{kind} {dtype}")
    for number in range(12):
        shape = tuple(rng.randint(1, 14) for _ in range(rng.randint(1, 3)))
        plain = made(kind, tmp_path / str(number), shape, dtype)
        array, mirror = with_engine(plain), np.full(shape, 1).astype(dtype)
        if dtype == "S3":
            mirror[...] = array[...]
        for _ in range(8):
            key = basic(rng, shape)
            shape_of = mirror[key].shape
            values = (np.frombuffer(rng.randbytes(mirror[key].size), "u1") % 100).reshape(shape_of).astype(dtype)
            value = rng.choice([values, np.array(7).astype(dtype)[()], np.asfortranarray(values).reshape(shape_of)])
            array[key] = value
            mirror[key] = value
            key = basic(rng, shape)
            same(array[key], mirror[key])
        same(plain[...], mirror)
        grid = tuple(np.array(sorted(rng.sample(range(n), rng.randint(1, n)))) for n in shape)
        same(array.oindex[grid], mirror[np.ix_(*grid)])
        points = tuple(np.array([rng.randrange(n) for _ in range(5)]) for n in shape)
        same(array.vindex[points], mirror[points])
        mask = np.array([rng.random() < 0.4 for _ in range(mirror.size)]).reshape(shape)
        same(array.vindex[mask], mirror[mask])
        array.oindex[grid] = mirror[np.ix_(*grid)][::-1]
        mirror[np.ix_(*grid)] = mirror[np.ix_(*grid)][::-1]
        array.vindex[mask] = mirror[mask][::-1]
        mirror[mask] = mirror[mask][::-1]
        same(array[...], mirror)
        if kind not in ("memory",):
            assert np.array_equal(tessera.open(tmp_path / str(number))[...], mirror)


def test_no_event_loop(tmp_path, monkeypatch):
    """What the library reads and writes waits for no other thread."""
    array = with_engine(made("local", tmp_path / "a", (20, 20), "f4"))
    assert isinstance(array.engine, Engine) and isinstance(array.engine, ArrayEngine)

    def fail(*_, **__):
        raise AssertionError("zarr's event loop was asked")

    for module in ("zarr.core.sync", "zarr.core.array", "zarr.core.engine._default"):
        monkeypatch.setattr(f"{module}.sync", fail)
    array[2:9, ::3] = 5
    array[4] = np.arange(20, dtype="f4")
    assert array[4, 7] == 7 and array[2, 3] == 5 and array[0, 0] == 1
    assert array[2:5, 6].tolist() == [5, 5, 6] and array[...].shape == (20, 20)
    with pytest.raises(AssertionError, match="event loop"):
        array.oindex[[1, 2], [3, 4]]


def test_single_elements_are_what_they_are_to_zarr(tmp_path):
    own = made("local", tmp_path / "a", (4, 6), "i4")
    array = with_engine(own)
    for take in (lambda a: a[1, 2], lambda a: a[1, 2, ...], lambda a: a.oindex[1, 2], lambda a: a.get_basic_selection((1, 2)), lambda a: a[1],
                 lambda a: a.get_basic_selection((slice(2), 3)), lambda a: a.blocks[0, 1], lambda a: a.vindex[1, 2]):
        assert type(take(array)) is type(take(own)) and take(array).shape == take(own).shape


def test_refusals_and_changes_are_zarrs(tmp_path):
    array = with_engine(made("local", tmp_path / "a", (4, 6), "i4"))
    own = made("local", tmp_path / "b", (4, 6), "i4")
    for key in ((9, 0), (slice(None, None, -1),), (0, 0, 0), ("a",)):
        with pytest.raises(Exception) as wanted:
            own[key]
        with pytest.raises(type(wanted.value)):
            array[key]
    read_only = with_engine(zarr.open_array(LocalStore(tmp_path / "a", read_only=True), mode="r"))
    with pytest.raises(ValueError, match="read-only"):
        read_only[0] = 3
    array[...] = 7
    array.resize((5, 8))
    array[4, 6:] = 2
    assert array[...].tolist() == [[7] * 6 + [1] * 2] * 4 + [[1] * 6 + [2, 2]]
    array.append(np.full((1, 8), 3, "i4"))
    assert array[5].tolist() == [3] * 8 and array.shape == (6, 8)
    assert json.loads((tmp_path / "a" / "zarr.json").read_text())["shape"] == [6, 8]


def test_threads(tmp_path):
    array = with_engine(made("shards", tmp_path / "a", (48,), "i4"))
    threads = [threading.Thread(target=lambda first=n: [array.__setitem__(at, at) for at in range(first, 48, 4)]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert array[...].tolist() == list(range(48))
