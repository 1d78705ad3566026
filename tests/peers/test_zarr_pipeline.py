"""tessera.zarr.CodecPipeline beside zarr's own: the same elements, and files that the other reads."""
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import time

import numcodecs
import numcodecs.abc
import numcodecs.compat
import numpy as np
import pytest
import tessera
import tessera.zarr
import zarr
from zarr.storage import LocalStore, MemoryStore

OURS = "tessera.zarr.CodecPipeline"
OWN = "zarr.core.codec_pipeline.BatchedCodecPipeline"
ROUNDS = int(os.environ.get("TESSERA_PEERS_ROUNDS", "60"))
NUMPY2 = int(np.__version__.partition(".")[0]) >= 2


@pytest.fixture(autouse=True)
def _ours():
    with zarr.config.set({"codec_pipeline.path": OURS}):
        yield


def random_values(rng, dtype, shape):
    dtype = np.dtype(dtype) if isinstance(dtype, str) and dtype not in ("text", "bytes") else dtype
    if isinstance(dtype, str):
        words = ["", "a", "größer", "x" * 40] if dtype == "text" else [b"", b"a", b"\0\xff"]
        return np.array([rng.choice(words) for _ in range(int(np.prod(shape)))], dtype=object).reshape(shape)
    if dtype.kind == "U":
        return np.array([rng.choice(["", "ab", "é"]) for _ in range(int(np.prod(shape)))], dtype).reshape(shape)
    raw = np.frombuffer(rng.randbytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    if dtype.kind == "b":
        return np.array(np.frombuffer(rng.randbytes(raw.size), "u1") > 127).reshape(shape)
    if dtype.kind in "fc":
        return np.array(np.frombuffer(rng.randbytes(raw.size * 2), "i2").reshape(shape) / 4, dtype)
    return raw.copy()


DTYPES = ["i1", "<u2", ">i4", "<i8", ">f4", "<f8", "?", "<c8", "S3", "<U2", "V5", "<M8[s]", "<m8[ms]", "text"]


def random_array(rng, store):
    rank = rng.choice([0, 1, 2, 2, 3])
    shape = tuple(rng.randint(1, 13) for _ in range(rank))
    chunks = tuple(rng.randint(1, n + 2) for n in shape)
    zarr_format = rng.choice([2, 3, 3])
    dtype = rng.choice(DTYPES)
    if zarr_format == 2 and dtype == "V5":
        dtype = "<i4"
    options = {"shape": shape, "chunks": chunks, "dtype": str if dtype == "text" else dtype, "zarr_format": zarr_format}
    if zarr_format == 3:
        codecs = [None, zarr.codecs.GzipCodec(), zarr.codecs.ZstdCodec(), zarr.codecs.BloscCodec(cname="lz4"),
                  [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]]
        options["compressors"] = rng.choice(codecs)
        if rank and rng.random() < 0.4 and dtype != "V5":
            options["shards"] = tuple(c * rng.randint(1, 3) for c in chunks)
        # zarr 3.1 scrambles text that is transposed.
        if rank > 1 and rng.random() < 0.3 and "shards" not in options and dtype != "text":
            options["filters"] = [zarr.codecs.TransposeCodec(order=tuple(rng.sample(range(rank), rank)))]
        options["chunk_key_encoding"] = rng.choice([{"name": "default", "separator": "/"}, {"name": "v2", "separator": "."}])
    else:
        options["order"] = rng.choice("CF")
        options["chunk_key_encoding"] = {"name": "v2", "separator": rng.choice("./")}
    name = rng.choice([None, "deep/er"])
    # zarr 3.1 scrambles text in Fortran order, too.
    options["config"] = {"order": "C" if dtype == "text" else rng.choice("CF"), "write_empty_chunks": rng.random() < 0.3}
    return zarr.create_array(store, name=name, overwrite=True, **options), dtype


def random_key(rng, shape):
    return tuple(
        rng.randrange(n) if rng.random() < 0.2 else slice(a := rng.randrange(n), rng.randint(a, n), rng.choice([None, None, 2, 3]))
        for n in shape)


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if not a.shape:  # scalars of text have their own lengths
        return a.shape == b.shape and (a[()] == b[()] or a.tobytes() == b.tobytes())
    if a.dtype.kind in "OT" or b.dtype.kind in "OT":
        return a.shape == b.shape and a.astype(object).tolist() == b.astype(object).tolist()
    return a.shape == b.shape and a.dtype.newbyteorder("=") == b.dtype.newbyteorder("=") and a.tobytes() == b.astype(
        a.dtype).tobytes()


def edit(rng, array, mirror, dtype, ours):
    """One write, of any kind, to an array and to NumPy's."""
    shape = mirror.shape
    way = rng.choice(["basic", "basic", "scalar", "ortho", "points", "mask"]) if shape else "basic"
    if not ours and array.shards is not None:
        way = "basic"  # zarr 3.1 fails otherwise
    if way in ("basic", "scalar"):
        key = random_key(rng, shape)
        part = mirror[key]
        if isinstance(part, np.ndarray) and part.size == 0:
            return
        values = random_values(rng, dtype, np.shape(part) if way == "basic" else ())
        value = values if way == "basic" and np.shape(part) else values[()]
        array[key] = value
        mirror[key] = value
    elif way == "ortho":
        key = tuple(np.array(sorted(rng.sample(range(n), rng.randint(1, n)))) for n in shape)
        values = random_values(rng, dtype, tuple(map(len, key)))
        array.oindex[key] = values
        mirror[np.ix_(*key)] = values
    elif way == "points":
        count = rng.randint(1, 9)
        places = list({tuple(rng.randrange(n) for n in shape) for _ in range(count)})
        key = tuple(np.array(axis) for axis in zip(*places))
        values = random_values(rng, dtype, (len(places),))
        array.vindex[key] = values
        mirror[key] = values
    else:
        mask = np.frombuffer(rng.randbytes(int(np.prod(shape))), "u1").reshape(shape) > 180
        if mask.any():
            values = random_values(rng, dtype, (int(mask.sum()),))
            array.vindex[mask] = values
            mirror[mask] = values


def look(rng, array, mirror):
    shape = mirror.shape
    assert same(array[...], mirror)
    if shape:
        key = random_key(rng, shape)
        assert same(array[key], mirror[key]), key
        key = tuple(np.array(sorted(rng.sample(range(n), rng.randint(1, n)))) for n in shape)
        assert same(array.oindex[key], mirror[np.ix_(*key)])
        key = (rng.randrange(shape[0]), *key[1:])
        assert same(array.oindex[key], mirror[np.ix_([key[0]], *key[1:])][0])
        places = tuple(np.array([rng.randrange(n) for _ in range(5)]) for n in shape)
        assert same(array.vindex[places], mirror[places])


@pytest.mark.parametrize("kind", ["local", "ours", "memory"])
@pytest.mark.parametrize("writer,reader", [(OURS, OWN), (OWN, OURS), (OURS, OURS)])
def test_random_arrays(tmp_path, kind, writer, reader):
    for number in range(ROUNDS):
        rng = random.Random(f"{kind} {writer} {number}")
        folder = tmp_path / str(number)
        store = {"local": lambda: LocalStore(folder), "memory": MemoryStore,
                 "ours": lambda: tessera.zarr.Store(folder, durability="none")}[kind]()
        with zarr.config.set({"codec_pipeline.path": writer}):
            array, dtype = random_array(rng, store)
            assert array._async_array.codec_pipeline.__class__.__name__ == writer.rpartition(".")[2]
            mirror = np.empty(array.shape, object if dtype == "text" else dtype)
            mirror[...] = array[...]
            for _ in range(4):
                edit(rng, array, mirror, dtype, writer == OURS)
        with zarr.config.set({"codec_pipeline.path": reader}):
            again = zarr.open_array(store, path=array.path, mode="r")
            try:
                look(rng, again, mirror)
            except AssertionError as error:
                raise AssertionError(f"{kind} {number}: {array.metadata}") from error
        if kind == "local":
            read = tessera.open(folder / array.path)[...]
            assert same(read if dtype != "V5" else np.asarray(read), mirror), (number, array.metadata)
            left = [p.name for p in folder.rglob(".tessera/*")]
            assert left == ["lock"] * len(left), left


def test_no_chunk_of_a_local_store_passes_through_python(tmp_path, monkeypatch):
    array = zarr.create_array(tmp_path / "a", shape=(40, 40), chunks=(10, 10), dtype=">f4", config={"order": "F"})

    def fail(*_):
        raise AssertionError("zarr's own pipeline was used")

    monkeypatch.setattr("zarr.core.codec_pipeline.BatchedCodecPipeline.read", fail)
    monkeypatch.setattr("zarr.core.codec_pipeline.BatchedCodecPipeline.write", fail)
    monkeypatch.setattr("zarr.storage.LocalStore.get", fail)
    monkeypatch.setattr("zarr.storage.LocalStore.set", fail)
    values = np.arange(1600, dtype=">f4").reshape(40, 40)
    array[...] = values
    array[3:30:7, 2] = -1
    values[3:30:7, 2] = -1
    array.oindex[[1, 20], 5:9] = 4
    values[1, 5:9] = values[20, 5:9] = 4
    out = array[...]
    assert out.flags.f_contiguous and out.dtype == np.dtype(">f4") and np.array_equal(out, values)
    mask = values > 800
    assert np.array_equal(array.vindex[mask], values[mask])
    assert np.array_equal(array.oindex[[3, 7, 39], ::2], values[[3, 7, 39], ::2])


def test_memory_that_is_not_contiguous(tmp_path):
    array = zarr.create_array(tmp_path / "a", shape=(20, 20), chunks=(7, 7), shards=(14, 14), dtype="i4")
    values = np.arange(800, dtype="i4").reshape(40, 20)[::2].T.copy().T
    array[...] = np.repeat(values, 2, axis=1)[:, ::2]
    buffer = zarr.core.buffer.cpu.NDBuffer.from_numpy_array(np.zeros((40, 60), "i4")[::2, ::3])
    array.get_basic_selection(out=buffer)
    assert np.array_equal(buffer.as_ndarray_like(), values)


def test_structures(tmp_path):
    dtype = np.dtype([("a", "<i2"), ("b", ">f8"), ("c", "S3")])
    values = np.zeros(30, dtype)
    values["a"] = np.arange(30)
    values["c"] = b"xy"
    array = zarr.create_array(tmp_path / "a", shape=(30,), chunks=(7,), dtype=dtype, zarr_format=2)
    array[...] = values
    array[3:5] = np.array([(1, 2.0, b"q"), (3, 4.0, b"r")], dtype)
    values[3:5] = [(1, 2.0, b"q"), (3, 4.0, b"r")]
    assert np.array_equal(array[...], values)
    assert np.array_equal(tessera.open(tmp_path / "a")[...], values)
    with zarr.config.set({"codec_pipeline.path": OWN}):
        assert np.array_equal(zarr.open_array(tmp_path / "a", mode="r")[...], values)


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_resizing_and_appending(tmp_path, kind):
    array = zarr.create_array(LocalStore(tmp_path / "a") if kind == "local" else MemoryStore(), shape=(4, 4), chunks=(3, 3), dtype="i4", fill_value=7)
    array[...] = 1
    array.resize((9, 5))
    array[8] = 2
    array.append(np.full((2, 5), 3, "i4"))
    wanted = np.full((11, 5), 7, "i4")
    wanted[:4, :4], wanted[8], wanted[9:] = 1, 2, 3
    assert np.array_equal(array[...], wanted)
    array.resize((2, 2))
    assert np.array_equal(array[...], wanted[:2, :2])


class Odd(numcodecs.abc.Codec):
    """A codec that the library lacks."""

    codec_id = "odd_for_tessera"

    def encode(self, buf):
        return bytes(numcodecs.compat.ensure_bytes(buf))[::-1]

    def decode(self, buf, out=None):
        return numcodecs.compat.ndarray_copy(bytes(numcodecs.compat.ensure_bytes(buf))[::-1], out)


numcodecs.register_codec(Odd)


def test_codecs_that_are_lacking_go_to_zarr(tmp_path):
    array = zarr.create_array(tmp_path / "a", shape=10, chunks=4, dtype="i4", zarr_format=2, compressors=Odd())
    array[2:9] = np.arange(7)
    assert array[...].tolist() == [0, 0, 0, 1, 2, 3, 4, 5, 6, 0]


def test_pickling_and_threads(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    array = zarr.create_array(tmp_path / "a", shape=(64, 64), chunks=(16, 16), dtype="i4")
    array[...] = 5
    again = pickle.loads(pickle.dumps(array))
    assert type(again._async_array.codec_pipeline).__name__ == "CodecPipeline"
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda n: (again[n] == 5).all(), range(64)))


def test_missing_chunks_are_reported(tmp_path):
    if "read_missing_chunks" not in zarr.config.get("array"):
        pytest.skip("zarr before 3.2 has no such setting")
    array = zarr.create_array(tmp_path / "a", shape=10, chunks=5, dtype="i4", config={"read_missing_chunks": False})
    array[:5] = 1
    with pytest.raises(Exception, match="not found"):
        array[...]


def test_refuses_what_may_not_be_written(tmp_path):
    zarr.create_array(tmp_path / "a", shape=10, chunks=5, dtype="i4")[...] = 1
    array = zarr.open_array(LocalStore(tmp_path / "a", read_only=True), mode="r")
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 2
    assert array[...].tolist() == [1] * 10


def _write_elements(path, first, step, go):
    zarr.config.set({"codec_pipeline.path": OURS})
    array = zarr.open_array(path, mode="r+")
    go.wait()
    for n in range(first, array.shape[0], step):
        array[n] = n + 1


@pytest.mark.parametrize("options", [{}, {"shards": (40,)}, {"zarr_format": 2, "compressors": Odd()}],
                         ids=["chunks", "shards", "a codec that is lacking"])
def test_two_processes_that_write_to_one_chunk_lose_nothing(tmp_path, options):
    array = zarr.create_array(tmp_path / "a", shape=(120,), chunks=(20,), dtype="i4", **options)
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        go = manager.Event()
        workers = [context.Process(target=_write_elements, args=(str(tmp_path / "a"), n, 2, go)) for n in range(2)]
        for worker in workers:
            worker.start()
        go.set()
        for worker in workers:
            worker.join()
            assert worker.exitcode == 0
    assert array[...].tolist() == list(range(1, 121))


class _Counting(MemoryStore):
    """Keeps what is asked for."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def with_read_only(self, read_only=False):
        return self

    async def get(self, key, prototype, byte_range=None):
        found = await super().get(key, prototype, byte_range)
        if "/c/" in f"/{key}" and found is not None:
            self.asked.append((type(byte_range).__name__, len(found)))
        return found


@pytest.mark.parametrize("location", ["start", "end"])
def test_parts_of_shards_come_by_ranges(location, monkeypatch):
    """In stores that only Python reaches: the index and the chunks that are needed, decoded by Tessera."""
    async def none(*_):
        raise AssertionError("zarr's own pipeline was asked")

    joins = "array.sharding_coalesce_max_bytes" in zarr.config
    store, values = _Counting(), np.arange(60 * 64, dtype="i4").reshape(60, 64)
    with zarr.config.set({"array.sharding_coalesce_max_bytes": 1} if joins else {}):
        array = zarr.create_array(store, shape=(60, 64), shards={"shape": (30, 32), "index_location": location},
                                  chunks=(10, 8), dtype="i4", compressors=None)
    array[...] = values
    array[:10, :8] = 0  # an absent chunk
    values[:10, :8] = 0
    monkeypatch.setattr(zarr.core.codec_pipeline.BatchedCodecPipeline, "read", none)
    index, chunk, whole = 12 * 16 + 4, 10 * 8 * 4, 30 * 32 * 4 + 12 * 16 + 4
    for key, numbers in ((np.s_[12, 9], [1]), (np.s_[0, 0], [0]), (np.s_[5:15, 8:20], [4]), (np.s_[::25, 40], [2, 1]),
                         (np.s_[25:35, 30:34], [1, 1, 1, 1]), (np.s_[1:2], [3, 4])):
        store.asked.clear()
        assert (array[key] == values[key]).all(), key
        assert sorted(size for _, size in store.asked) == sorted([index] * len(numbers) + [chunk] * sum(numbers)), (key, store.asked)
        assert all(kind != "NoneType" for kind, _ in store.asked)
    store.asked.clear()
    assert (array.vindex[[1, 12, 59], [9, 9, 63]] == values[[1, 12, 59], [9, 9, 63]]).all()
    assert sorted(size for _, size in store.asked) == [index] * 2 + [chunk] * 3
    assert (array.oindex[[3, 50], [1, 60]] == values[np.ix_([3, 50], [1, 60])]).all()
    store.asked.clear()
    assert (array[:30, 1:] == values[:30, 1:]).all() and [size for _, size in store.asked].count(whole - chunk) == 1
    if joins:  # what lies close together comes as one range
        store.asked.clear()
        assert (zarr.open_array(store)[25:35, 8:20] == values[25:35, 8:20]).all()
        assert sorted(kind for kind, size in store.asked if size > index) == ["RangeByteRequest"] * 2 and len(store.asked) == 4
    # A damaged index is zarr's to tell.
    key = "c/1/1"
    damaged = bytearray(store._store_dict[key].to_bytes())
    damaged[3 if location == "start" else -8] ^= 1
    store._store_dict[key] = zarr.core.buffer.cpu.Buffer.from_bytes(bytes(damaged))
    with pytest.raises(AssertionError, match="was asked"):
        array[59, 63]


@pytest.mark.parametrize("kind", ["local", "memory"])
@pytest.mark.skipif("array.rectilinear_chunks" not in zarr.config, reason="no such chunks in this zarr")
def test_chunks_that_differ_in_length(kind, tmp_path):
    """The first chunk has the longest lengths, so that it looks like one of a regular grid."""
    values = np.arange(11 * 9, dtype="<i4").reshape(11, 9)
    store = LocalStore(tmp_path / "a") if kind == "local" else MemoryStore()
    with zarr.config.set({"array.rectilinear_chunks": True}):
        array = zarr.create_array(store, shape=values.shape, chunks=[[5, 2, 4], [4, 3, 2]], dtype="i4")
        array[...] = values
        array[3:8, 2:6] = values[3:8, 2:6] = -7
        for pipeline in (OURS, OWN):
            with zarr.config.set({"codec_pipeline.path": pipeline}):
                again = zarr.open_array(store, mode="r")
                for key in (..., (6, slice(None)), (slice(1, 10, 3), slice(2, 9)), (slice(5, 7), slice(4, 7))):
                    assert np.array_equal(again[key], values[key]), (pipeline, key)
                assert np.array_equal(again.vindex[[0, 6, 10], [0, 5, 8]], values[[0, 6, 10], [0, 5, 8]])
    if kind == "local":
        assert np.array_equal(tessera.open(tmp_path / "a")[...], values)


@pytest.mark.skipif("array.rectilinear_chunks" not in zarr.config, reason="no such chunks in this zarr")
def test_chunks_that_differ_in_length_have_the_library_s_locks(tmp_path):
    place = tmp_path / "a"
    with zarr.config.set({"array.rectilinear_chunks": True}):
        zarr.create_array(place, shape=(11, 9), chunks=[[5, 2, 4], [4, 3, 2]], dtype="i4", fill_value=0)
    script = f"""
import zarr
zarr.config.set({{"array.rectilinear_chunks": True, "codec_pipeline.path": {OURS!r}}})
array = zarr.open_array({str(place)!r}, mode="r+")
array[6, 8] = 7
print("beside it", flush=True)
array[6, 5] = 5
"""
    children = []

    def changed(values):
        child = subprocess.Popen([sys.executable, "-W", "ignore", "-c", script], stdout=subprocess.PIPE, text=True)
        children.append(child)
        assert child.stdout.readline() == "beside it\n"  # another chunk is free
        time.sleep(0.5)  # in which the write of this chunk would come through, and be lost
        return values + 1

    tessera.open(place, "r+").update((slice(5, 7), slice(4, 7)), changed)
    assert children[0].wait() == 0
    children[0].stdout.close()
    wanted = np.zeros((11, 9), "i4")
    wanted[5:7, 4:7] = 1
    wanted[6, 8], wanted[6, 5] = 7, 5
    assert np.array_equal(tessera.open(place)[...], wanted)
