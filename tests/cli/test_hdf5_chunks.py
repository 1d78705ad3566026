"""HDF5's chunks without libhdf5: every index of chunks, moved undecoded, referenced, and left to libhdf5 where they must."""

import itertools
import json
import random
import unittest

import numpy as np

import program
from program import FEWER, ProgramTest, zarr

try:
    import h5py
except ImportError:
    h5py = None
try:
    import numcodecs
except ImportError:
    numcodecs = None
try:
    import fsspec
except ImportError:
    fsspec = None


@unittest.skipIf(h5py is None, "h5py is not installed")
class Chunks(ProgramTest):
    def file(self, name="x.h5", **options):
        return h5py.File(self.folder / name, "w", **options)

    def read(self, path):
        self.tessera("copy", path, "got.npy", "--overwrite", "--quiet")
        return np.load(self.folder / "got.npy")

    def references(self, path):
        return json.loads(self.tessera("refs", path))["refs"]

    def check(self, array, chunks, maxshape, libver, **filters):
        with self.file(libver=libver) as f:
            f.create_dataset("d", data=array, chunks=chunks, maxshape=maxshape, **filters)
        with h5py.File(self.folder / "x.h5") as f:
            refs = self.references("x.h5::d")
            stored = {key: at for key, at in refs.items() if not key.startswith(".z")}
            grid = [-(-n // c) for n, c in zip(array.shape, f["d"].chunks)]
            self.assertEqual(len(stored), np.prod(grid))
            raw = (self.folder / "x.h5").read_bytes()
            for key, (_, offset, size) in stored.items():
                at = tuple(int(i) * c for i, c in zip(key.split("."), f["d"].chunks))
                mask, chunk = f["d"].id.read_direct_chunk(at)
                self.assertEqual((mask, chunk), (0, raw[offset:offset + size]), key)
        np.testing.assert_array_equal(self.read("x.h5::d"), array)

    def test_every_index_of_chunks(self):
        rng = np.random.default_rng(1)
        cases = [("earliest", (40, 30), (7, 8), None),           # B-tree, version 1
                 ("latest", (5, 6), (5, 6), None),               # a single chunk
                 ("latest", (40, 30), (7, 8), None),             # fixed array
                 ("latest", (40, 30), (7, 8), (90, 35)),         # with a larger shape to come
                 ("latest", (3000,), (1,), (5000,)),             # in pages
                 ("latest", (40, 30), (7, 8), (None, 30)),       # extensible array
                 ("latest", (40, 30), (7, 8), (40, None)),       # along another dimension
                 ("latest", (9000, 2), (1, 2), (None, 4)),       # with super blocks and pages
                 ("latest", (40, 30), (3, 4), (None, None)),     # B-tree, version 2
                 ("latest", (80, 90), (1, 2), (None, None)),     # of several levels
                 ("earliest", (90, 80), (1, 2), None)]
        for libver, shape, chunks, maxshape in cases:
            for filters in {"compression": "gzip"}, {"shuffle": True, "compression": 4, "fletcher32": True}:
                if len(shape) == 1 and filters.get("fletcher32"):
                    continue
                with self.subTest(libver=libver, shape=shape, maxshape=maxshape, filters=filters):
                    self.check(rng.integers(0, 99, shape).astype("<i4"), chunks, maxshape, libver, **filters)

    def test_without_filters(self):
        for libver, maxshape in ("earliest", None), ("latest", None), ("latest", (None, 30)), ("latest", (None, None)):
            with self.subTest(libver=libver, maxshape=maxshape):
                self.check(np.arange(1200, dtype=">u2").reshape(40, 30), (7, 8), maxshape, libver)

    def test_random_ones(self):
        rng = random.Random(38)
        for _ in range(60 // FEWER):
            rank = rng.randint(1, 4)
            shape = [rng.randint(1, 14) for _ in range(rank)]
            maxshape = tuple(rng.choice([n, n + 3, None]) for n in shape) if rng.random() < 0.7 else None
            chunks = tuple(rng.randint(1, n) for n in shape)
            kind = rng.choice(["<f4", ">f8", "i1", ">i2", "<u8", "<c8", "?"])
            filters = rng.choice([{"compression": "gzip"}, {"shuffle": True}, {"fletcher32": True, "compression": 1}])
            with self.subTest(shape=shape, maxshape=maxshape, chunks=chunks, kind=kind, filters=filters):
                array = np.random.default_rng(rng.randint(0, 999)).integers(0, 2, shape).astype(kind)
                self.check(array, chunks, maxshape, rng.choice(["earliest", "latest"]), **filters)

    def test_copied_undecoded(self):
        array = np.arange(4000, dtype="<f4").reshape(50, 80)
        with self.file() as f:
            d = f.create_dataset("d", data=array, chunks=(20, 30), compression=7, shuffle=True)
            expected = {f"{y}.{x}": d.id.read_direct_chunk((y * 20, x * 30))[1] for y in range(3) for x in range(3)}
        self.tessera("copy", "x.h5::d", "d.zarr", "--quiet")
        for key, raw in expected.items():
            self.assertEqual((self.folder / "d.zarr" / key).read_bytes(), raw)
        np.testing.assert_array_equal(self.exported("d.zarr"), array)
        self.tessera("copy", "x.h5::d", "e.zarr", "--quiet", "--format", "v3", "--codec", "zstd:3")
        np.testing.assert_array_equal(self.exported("e.zarr"), array)

    def test_what_only_libhdf5_reads(self):
        array = np.arange(400, dtype="<i4").reshape(20, 20)
        with self.file() as f:
            d = f.create_dataset("mask", data=array, chunks=(10, 10), compression="gzip")
            d.id.write_direct_chunk((0, 0), array[:10, :10].tobytes(), filter_mask=1)
            f.create_dataset("lzf", data=array, chunks=(10, 10), compression="lzf")
            hole = f.create_dataset("hole", (20, 20), "<i4", chunks=(10, 10), compression="gzip", fillvalue=7)
            hole[:10] = 1
            text = f.create_dataset("text", (4,), h5py.string_dtype(), chunks=(2,), compression="gzip")
            text[:] = ["a", "bc", "", "d"]
        self.refused("refs", "x.h5::mask", says="without one of the filters")
        self.refused("refs", "x.h5::lzf", says="32000")
        self.refused("refs", "x.h5::hole", says="_FillValue")
        self.refused("refs", "x.h5::text", says="only HDF5 reads")
        np.testing.assert_array_equal(self.read("x.h5::mask"), array)
        expected = np.full((20, 20), 7, "<i4")
        expected[:10] = 1
        np.testing.assert_array_equal(self.read("x.h5::hole"), expected)

    def damaged(self, change, index, libver, maxshape=None, shape=(40, 30), chunks=(10, 10)):
        """A file in which `change` was done to the bytes from `index` on, and its elements."""
        array = np.arange(1, 1 + np.prod(shape), dtype="<i4").reshape(shape)
        with self.file(libver=libver) as f:
            f.create_dataset("d", data=array, chunks=chunks, maxshape=maxshape, compression="gzip")
        raw = bytearray((self.folder / "x.h5").read_bytes())
        at = [i for i in range(len(raw)) if raw[i:i + 4] == index and (index != b"TREE" or raw[i + 4] == 1)][0]
        change(raw, at)
        (self.folder / "x.h5").write_bytes(raw)
        return array

    def test_filters_in_any_order(self):
        """HDF5's shuffle takes chunks that are no whole elements, as they are after a checksum; Zarr's does not."""
        others = not isinstance(zarr, program.Absent) and "fletcher32" in numcodecs.registry.codec_registry
        for dtype in "u1", "<u2", "<f4", "<f8", ">i8", "S5":
            values = np.arange(70).astype(dtype)
            for order in itertools.permutations(("fletcher32", "shuffle", "deflate")):
                chain = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                chain.set_chunk((7,))
                for name in order:
                    getattr(chain, "set_" + name)(*((4,) if name == "deflate" else ()))
                with self.file() as f:
                    made = h5py.h5d.create(f.id, b"d", h5py.h5t.py_create(values.dtype), h5py.h5s.create_simple((70,)), chain)
                    made.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
                with self.subTest(dtype=dtype, order=order):
                    np.testing.assert_array_equal(self.read("x.h5::d"), values)
                    self.tessera("copy", "x.h5::d", "d.zarr", "--format", "v2", "--overwrite", "--quiet")
                    np.testing.assert_array_equal(self.read("d.zarr"), values)
                    if others:
                        np.testing.assert_array_equal(zarr.open_array(self.path("d.zarr"), mode="r")[...], values)

    def test_a_damaged_index_is_no_fill(self):
        def flip(offset, bit):
            return lambda raw, at: raw.__setitem__(at + offset, raw[at + offset] ^ bit)

        def swap(first, second, size):
            def change(raw, at):
                one, two = raw[at + first:at + first + size], raw[at + second:at + second + size]
                raw[at + first:at + first + size], raw[at + second:at + second + size] = two, one
            return change

        new, old = ("v110", "v110"), ("earliest", "v108")
        record = 8 + 2 + 4 + 16  # address, size, mask, place
        cases = {"bt2dup": (flip(6 + record - 8, 1), b"BTLF", new, (None, None)),
                 "bt2swap": (swap(6 + record - 16, 6 + 2 * record - 16, 16), b"BTLF", new, (None, None)),
                 "bt2head": (flip(20, 1), b"BTHD", new, (None, None)),
                 "faswap": (swap(14, 14 + 14, 14), b"FADB", new),
                 "fadup": (flip(14, 1), b"FADB", new),
                 "fahead": (flip(8, 1), b"FAHD", new),
                 "easwap": (swap(14, 14 + 14, 14), b"EAIB", new, (None, 30)),
                 "fapage": (flip(14, 0x80), b"FADB", new, None, (4096,), (2,)),
                 "bt1dup": (flip(24 + 16, 10), b"TREE", old),
                 "bt1odd": (flip(24 + 8, 1), b"TREE", old),
                 "bt1swap": (swap(24 + 8, 24 + 40 + 8, 16), b"TREE", old)}
        for name, case in cases.items():
            with self.subTest(name=name):
                self.damaged(*case)
                for words in ["get", "x.h5::d"], ["digest", "x.h5::d"], ["stats", "x.h5::d"], ["refs", "x.h5::d"]:
                    self.assertRegex(self.refused(*words), "its (index|header)")
                self.refused("copy", "x.h5::d", "d.zarr", "--quiet")
                self.assertFalse((self.folder / "d.zarr").exists())
        array = self.damaged(lambda raw, at: None, b"BTLF", new, (None, None), (90, 80), (2, 3))
        np.testing.assert_array_equal(self.read("x.h5::d"), array)

    def test_after_a_user_block(self):
        array = np.arange(4000, dtype="<i4").reshape(50, 80)
        for size, libver in (512, "earliest"), (4096, "earliest"), (512, "latest"):
            with self.file(libver=libver, userblock_size=size) as f:
                f["plain"] = array
                f["plain"].attrs["units"] = "m"
                f.create_dataset("d", data=array, chunks=(20, 30), compression=7, shuffle=True)
                f.create_dataset("left", data=array, chunks=(20, 30), scaleoffset=0)  # only libhdf5 reads it
            raw = bytearray((self.folder / "x.h5").read_bytes())
            raw[:10] = b"MATLAB 7.3"
            (self.folder / "x.mat").write_bytes(raw)
            for name in "plain", "d", "left":
                with self.subTest(size=size, libver=libver, name=name):
                    self.tessera("copy", f"x.mat::{name}", "got.npy", "--overwrite", "--quiet")
                    np.testing.assert_array_equal(np.load(self.folder / "got.npy"), array)
            self.assertIn("left", self.tessera("tree", "x.mat"))
            self.assertIn("units", self.tessera("info", "x.mat::plain"))
            for name in "plain", "d":
                (self.folder / "r.refs.json").write_text(self.tessera("refs", f"x.mat::{name}"))
                np.testing.assert_array_equal(self.exported("r.refs.json"), array)
        # What h5jam makes: the addresses are those before it put the block there.
        with self.file() as f:
            f.create_dataset("d", data=array, chunks=(20, 30), compression=7)
        (self.folder / "jam.h5").write_bytes(b"#" * 1024 + (self.folder / "x.h5").read_bytes())
        np.testing.assert_array_equal(self.read("jam.h5::d"), array)

    def test_text_that_was_never_written(self):
        said = self.tessera("get", f"{program.GOLDEN / 'hdf5/never-written.nc'}::s")
        self.assertEqual(said.split(), ['[[""', '""]', '["x"', '""]]'])

    def test_chunks_that_are_not_stored_cost_no_look_each(self):
        """2^40 chunks, of which two are stored, where only libhdf5 has the filter."""
        with self.file() as f:
            d = f.create_dataset("d", (1 << 21, 1 << 21), "<i2", chunks=(2, 2), scaleoffset=0, fillvalue=7)
            d[0, 0], d[-1, -1] = 3, 4
        for rows, columns in ("0:2", "0:3"), ("1000:1100", "::1000"), ("-3:", "-2:"), ("5:6", ":"):
            self.tessera("copy", "x.h5::d", "got.npy", "--overwrite", "--quiet", "--sel", f"{rows},{columns}")
            got = np.load(self.folder / "got.npy")
            with h5py.File(self.folder / "x.h5") as f:
                d = f["d"]
                self.assertEqual((got[0, 0], got[-1, -1]),
                                 {"0:2": (3, 7), "1000:1100": (7, 7), "-3:": (7, 4), "5:6": (7, 7)}[rows])
            self.assertEqual((got != 7).sum(), {"0:2": 1, "-3:": 1}.get(rows, 0))

    def test_files_of_hdf5_2(self):
        self.refused("get", f"{program.GOLDEN / 'hdf5/hdf5-2.h5'}::d",
                     says=["newer HDF5", "h5repack --high=v110", 'libver=("earliest", "v110")'])

    def test_kerchunks_own_files(self):
        """Its tables, for each array that Zarr can say; others are refused by name."""
        folder = program.GOLDEN / "kerchunk"
        refused = {"hdf5_compression_bitshuffle.h5": "32008", "hdf5_compression_lz4.h5": "32004",
                   "hdf5_mini_lz4.h5": "32004", "hdf5_mali_chunk.h5": "without one of the filters",
                   "hdf5_mali_chunk2.h5": "without one of the filters"}
        for name, table in json.loads((folder / "tables.json").read_text()).items():
            with self.subTest(name):
                if name in refused:
                    self.refused("refs", folder / name, says=refused[name])
                    continue
                refs = json.loads(self.tessera("refs", folder / name))["refs"]
                self.assertEqual({key: refs[key][1:] for key in table if key in refs}, table)
                with h5py.File(folder / name) as f:
                    for key in {key.rsplit("/", 1)[0] for key in table}:
                        try:
                            values = f[key][...]
                        except OSError:  # h5py has no such plug-in
                            continue
                        np.testing.assert_array_equal(self.read(f"{folder / name}::{key}"), values)

    def test_missing_chunks_read_as_the_fill(self):
        with self.file() as f:
            d = f.create_dataset("d", (20, 20), "<i2", chunks=(10, 10), compression="gzip", fillvalue=-9)
            d.attrs.create("_FillValue", np.int16(-9))
            d[:10] = 1
        refs = self.references("x.h5::d")
        self.assertEqual((json.loads(refs[".zarray"])["fill_value"], "1.0" in refs), (-9, False))
        expected = np.full((20, 20), -9, "<i2")
        expected[:10] = 1
        np.testing.assert_array_equal(self.read("x.h5::d"), expected)

    @unittest.skipIf(fsspec is None, "fsspec or zarr is not installed")
    def test_others_follow_the_references(self):
        array = np.arange(600, dtype="<f8").reshape(20, 30)
        with self.file() as f:
            f.create_dataset("g/d", data=array, chunks=(6, 7), compression=3, shuffle=True)
            f.create_dataset("plain", data=array)
        (self.folder / "r.json").write_text(self.tessera("refs", "x.h5"))
        group = zarr.open_group(fsspec.filesystem("reference", fo=self.path("r.json")).get_mapper(""), "r")
        np.testing.assert_array_equal(group["g/d"][:], array)
        np.testing.assert_array_equal(group["plain"][:], array)

    def test_files_stacked_in_place(self):
        parts = [np.arange(60, dtype="<f4").reshape(10, 6) + 100 * n for n in range(3)]
        for n, part in enumerate(parts):
            with self.file(f"{n}.h5") as f:
                f.create_dataset("d", data=part, chunks=(5, 3), compression="gzip")
        names = [f"{n}.h5::d" for n in range(3)]
        self.tessera("stack", *names, "s.json", "--virtual", "--quiet")
        np.testing.assert_array_equal(self.read("s.json"), np.stack(parts))
        self.tessera("concat", *names, "c.json", "--virtual", "--quiet")
        np.testing.assert_array_equal(self.read("c.json"), np.concatenate(parts))
        with self.file("other.h5") as f:
            f.create_dataset("d", data=parts[0], chunks=(5, 2), compression="gzip")
        self.refused("stack", "0.h5::d", "other.h5::d", "o.json", "--virtual", says=["other.h5", "chunk shape"])

    def test_damaged_indices_are_errors(self):
        array = np.arange(30 * 30, dtype="<i4").reshape(30, 30)
        for libver, maxshape in ("earliest", None), ("latest", None), ("latest", (None, 30)), ("latest", (None, None)):
            with self.file(libver=libver) as f:
                f.create_dataset("d", data=array, chunks=(4, 4), maxshape=maxshape, compression="gzip")
            whole = (self.folder / "x.h5").read_bytes()
            marks = [at for mark in (b"TREE", b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EADB", b"BTHD", b"BTIN", b"BTLF")
                     for at in [whole.rfind(mark)] if at >= 0]
            rng = random.Random(1)
            for _ in range(20 // FEWER):
                damaged = bytearray(whole)
                at = rng.choice(marks) + rng.randint(0, 60)
                damaged[at:at + 8] = rng.randbytes(8)
                (self.folder / "y.h5").write_bytes(damaged)
                done = self.run_program("refs", "y.h5::d")
                self.assertIn(done.returncode, (0, 2), done.stderr)
                if done.returncode:
                    self.assertIn("y.h5", done.stderr)


if __name__ == "__main__":
    program.main()
