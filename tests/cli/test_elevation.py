"""The main jobs on real grids: in, looked at, edited, grown, and out again, compared with NumPy at each step."""

import json

import numpy as np

import program
from program import EXAMPLES

DEM = EXAMPLES / "jacksboro_fault_dem.npz"
TOPO = EXAMPLES / "topobathy.npz"


class Elevation(program.ProgramTest):
    def test_edited_and_exported(self):
        model = np.load(DEM)["elevation"]
        report = self.tessera("import", f"{DEM}::elevation", "dem.zarr", "--chunks", "64,64")
        self.assertIn("imported 344×403 <i2, 270.8 KiB → dem.zarr (zmeta, 42 chunks of 64×64, ", report)

        info = self.tessera_json("info", "dem.zarr")
        self.assertEqual(info["format"], "zmeta")
        self.assertEqual(info["dtype"], "<i2")
        self.assertEqual(info["shape"], [344, 403])
        self.assertEqual(info["chunks"], [64, 64])
        self.assertEqual(info["codec"], "blosc:lz4:5:shuffle")
        self.assertEqual(info["fill_value"], 0)
        self.assertEqual((info["chunks_stored"], info["chunks_possible"]), (42, 42))
        self.assertEqual(info["logical_bytes"], model.nbytes)
        files = list((self.folder / "dem.zarr" / "__zdata__").iterdir())
        self.assertEqual(info["stored_bytes"], sum(f.stat().st_size for f in files))
        self.assertAlmostEqual(info["ratio"], model.nbytes / info["stored_bytes"])
        self.assertEqual((info["attributes"], info["stray_files"]), ({}, 0))
        for text in "344×403", "<i2", "64×64", "blosc:lz4:5:shuffle", "42 of 42 (100%)", "270.8 KiB (277,264 bytes)":
            self.assertIn(text, self.tessera("info", "dem.zarr"))

        self.tessera("set", "dem.zarr", "100:180, 150:300", "250")
        model[100:180, 150:300] = 250
        self.tessera("set", "dem.zarr", "-1, ::-7", "-3")
        model[-1, ::-7] = -3
        block = np.arange(20 * 31, dtype=">i2").reshape(20, 31)
        self.tessera("set", "dem.zarr", "300:340:2, 400:338:-2", self.save("block.npy", block))
        model[300:340:2, 400:338:-2] = block
        self.tessera("set", "dem.zarr", "7, ...", "@" + self.save("row.npy", np.full(403, 9, "<i2")))
        model[7] = 9
        self.assertEqual(self.tessera_json("get", "dem.zarr", "98:103, 148:153"), model[98:103, 148:153].tolist())
        self.assertEqual(self.tessera("get", "dem.zarr", "0, 0"), f"{model[0, 0]}\n")
        np.testing.assert_array_equal(self.exported("dem.zarr"), model)

        self.tessera("append", "dem.zarr", self.save("more.npy", model[:50]))
        model = np.concatenate([model, model[:50]])
        self.tessera("append", "dem.zarr", self.save("more.npy", model[:, :5]), "--axis", "1")
        model = np.concatenate([model, model[:, :5]], axis=1)
        np.testing.assert_array_equal(self.exported("dem.zarr"), model)
        self.tessera("resize", "dem.zarr", "100,450")
        model = np.pad(model[:100], ((0, 0), (0, 42)))
        np.testing.assert_array_equal(self.exported("dem.zarr"), model)
        self.tessera("resize", "dem.zarr", "394,408")
        self.assertFalse(self.exported("dem.zarr")[100:].any())
        self.tessera("resize", "dem.zarr", "100,408")

        part = self.exported("dem.zarr", "--sel", "10:90:3, -5", "--order", "F")
        np.testing.assert_array_equal(part, model[10:90:3, 403])
        self.assertEqual(self.tessera("export", "dem.zarr", "dem.npz::elevation", "--deflate", "6", "--quiet"), "")
        np.testing.assert_array_equal(np.load(self.folder / "dem.npz")["elevation"], model[:, :408])

    def test_npy_is_what_numpy_saves(self):
        model = np.load(TOPO)["topo"]
        self.tessera("import", f"{TOPO}::topo", "topo.zarr", "--chunks", "50,50")
        np.save(self.folder / "numpy.npy", model)
        self.exported("topo.zarr")
        self.assertEqual((self.folder / "exported.npy").read_bytes(), (self.folder / "numpy.npy").read_bytes())
        np.save(self.folder / "numpy.npy", np.asfortranarray(model))
        self.exported("topo.zarr", "--order", "F")
        self.assertEqual((self.folder / "exported.npy").read_bytes(), (self.folder / "numpy.npy").read_bytes())

    def test_whole_npz(self):
        made = self.tessera_json("import", TOPO, "topo")
        self.assertEqual(sorted(m["path"] for m in made["arrays"]), ["topo/latitude", "topo/longitude", "topo/topo"])
        with np.load(TOPO) as arrays:
            for name in arrays.files:
                np.testing.assert_array_equal(self.exported(f"topo/{name}"), arrays[name])
        self.refused("import", TOPO, "topo", says=["topo/", "--overwrite"])
        self.tessera("import", TOPO, "topo", "--overwrite")
        scalar = self.exported(f"{DEM}::dx")
        self.assertEqual((scalar.shape, scalar), ((), np.load(DEM)["dx"]))

        tree = self.tessera_json("tree", "topo")
        self.assertEqual([(c["name"], c["dtype"], c["shape"]) for c in tree["children"]],
                         [("latitude", "<f4", [91]), ("longitude", "<f4", [120]), ("topo", "<f4", [91, 120])])
        self.assertIn("└── topo       zmeta  91×120  <f4  chunks", self.tessera("tree", "topo"))
        self.assertIn("directory that holds 3 arrays", self.tessera("info", "topo"))
        self.assertEqual([c["name"] for c in self.tessera_json("tree", TOPO)["children"]], np.load(TOPO).files)

    def test_attributes(self):
        self.tessera("create", "a", "--shape", "3", "--dtype", "f8", "--attrs", '{"first": [1, 2.5, null]}')
        self.tessera("attrs", "a", "set", "units", '"m"')
        self.tessera("attrs", "a", "set", "größe", '{"b": NaN, "a": 18446744073709551615}')
        self.assertEqual(self.tessera("attrs", "a", "get", "units"), '"m"\n')
        values = self.tessera_json("attrs", "a")
        self.assertEqual(list(values), ["first", "größe", "units"])
        # What zarr 0.4 would have written: json.dump of Python.
        text = (self.folder / "a" / "__zattr__").read_text()
        self.assertEqual(text, json.dumps(json.loads(text), indent=4, sort_keys=True))
        self.tessera("attrs", "a", "rm", "units")
        self.refused("attrs", "a", "get", "units", says=["units", "a"])
        self.refused("attrs", "a", "rm", "units", says=["units", "a"])
        self.tessera("attrs", "a", "set", "units", "m")
        self.assertEqual(self.tessera_json("attrs", "a", "get", "units"), "m")
        self.refused("attrs", "a", "set", "units", "m", "--json-value", says=["--json-value", "m"])
        self.assertIn("is no JSON", self.run_program("attrs", "a", "set", "range", "[1, 2").stderr)
        self.assertEqual(self.tessera_json("attrs", "a", "get", "range"), "[1, 2")
        self.tessera("attrs", "a", "rm", "range")
        self.tessera("attrs", "a", "rm", "units")
        self.refused("attrs", "a", "set", "units", says="VALUE")
        self.refused("attrs", "a", "show", says=["get, set, rm, mv or copy", "show"])

    def test_create(self):
        words = ["--shape", "1000000,1000", "--dtype", "<i4", "--fill", "42"]
        report = self.tessera("create", "grid", *words)
        self.assertIn("chosen", report)
        info = self.tessera_json("info", "grid")
        self.assertLessEqual(4 * np.prod(info["chunks"]), 2 << 20)
        self.assertEqual((info["chunks_stored"], info["stored_bytes"], info["ratio"]), (0, 0, 0))
        self.assertEqual(self.tessera("get", "grid", "999999, 998:"), "[42 42]\n")
        self.refused("create", "grid", *words, says=["grid", "--overwrite"])
        done = self.run_program("create", "grid", *words, "--chunks", "10000,100", "--overwrite", "--codec",
                                "blosc:zstd:9:noshuffle")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("zarr 0.4 cannot read chunks compressed with zstd", done.stderr)
        self.assertEqual(json.loads((self.folder / "grid" / "__zmeta__").read_text()), {
            "chunks": [10000, 100], "clevel": 9, "cname": "zstd", "dtype": "<i4", "fill_value": 42,
            "shape": [1000000, 1000], "shuffle": 0})
        self.assertIn("0.4", self.tessera("info", "grid").split("remark")[1])

    def test_get_prints_like_numpy(self):
        np.set_printoptions(threshold=1000, linewidth=75)
        for array in [np.arange(24).reshape(2, 3, 4), np.arange(12000).reshape(60, 200), np.arange(1001),
                      np.arange(8 * 9 * 20).reshape(8, 9, 20), np.arange(300), np.arange(6000).reshape(1000, 6),
                      np.int64(7).reshape(()), np.zeros(0, "i8")]:
            self.save("x.npy", array)
            self.assertEqual(self.tessera("get", "x.npy"), str(array) + "\n")
            self.assertEqual(self.tessera_json("get", "x.npy"), array.tolist())
        array = np.arange(40 * 300).reshape(40, 300)
        self.tessera("import", self.save("x.npy", array), "x", "--chunks", "7,50")
        self.assertEqual(self.tessera("get", "x", "5, ::-1"), str(array[5, ::-1]) + "\n")
        self.assertEqual(self.tessera("get", "x", "::-1, ::2"), str(array[::-1, ::2]) + "\n")
        # In parts of a quarter of the budget.
        self.assertEqual(self.tessera_json("get", "x", "::-1, ::3", "--max-memory", "20K"), array[::-1, ::3].tolist())
        everything = self.tessera("get", "x", "--all", "--max-memory", "20K")
        np.testing.assert_array_equal(np.fromstring(everything.replace("[", " ").replace("]", " "), int, sep=" "),
                                      array.ravel())
        self.assertNotIn("...", everything)
        self.tessera("get", "x", "3:5, 7", "--out", "part.npy")
        np.testing.assert_array_equal(np.load(self.folder / "part.npy"), array[3:5, 7])
        self.refused("get", "x", "3:5", "--out", "part.npy", says=["part.npy", "--overwrite"])
        self.save("text.npy", np.array(["a b", 'say "x"', "ü\x1b"]))
        self.assertEqual(self.tessera("get", "text.npy", "1:"), '["say \\"x\\"" "ü\\u001b"]\n')
        self.assertEqual(self.tessera("get", self.save("x.npy", np.array([[True, False]]))), "[[ true false]]\n")

    def test_get_of_elements_that_a_file_lists(self):
        random = np.random.default_rng(5)
        array = random.integers(-1000, 1000, (40, 30, 50)).astype("<i4")
        self.tessera("import", self.save("x.npy", array), "x", "--chunks", "16,16,16")
        places = random.integers(-30, 30, (70000, 3))  # more than are read at once
        expected = array[tuple(places.T)]
        self.save("places.npy", places)
        for source in "x", "x.npy":
            few = self.save("few.npy", places[:9].astype(">i2"))
            self.assertEqual(self.tessera("get", source, "--points", few), str(expected[:9]) + "\n")
        self.assertEqual(self.tessera("get", "x", "--points", "places.npy"), str(expected) + "\n")
        self.assertEqual(self.tessera_json("get", "x", "::7", "--points", "places.npy"), expected[::7].tolist())
        self.tessera("get", "x", "--points", "places.npy", "--out", "out.npy")
        np.testing.assert_array_equal(np.load(self.path("out.npy")), expected)
        line = self.save("line.npy", np.array([3, -1], "i1"))
        self.tessera("import", self.save("row.npy", array[0, 0]), "row", "--chunks", "8")
        self.assertEqual(self.tessera_json("get", "row", "--points", line), [int(array[0, 0, 3]), int(array[0, 0, -1])])

        self.refused("get", "x", "--points", self.save("f.npy", np.zeros((2, 3))), says=["f.npy", "(n, 3)", "<f8"])
        self.refused("get", "x", "--points", self.save("two.npy", np.zeros((4, 2), "i4")), says=["two.npy", "(4, 2)"])
        self.refused("get", "x", "--points", self.save("far.npy", np.array([[0, 0, 0], [0, -31, 0]])),
                     says=["far.npy: row 1 has the index -31 along dimension 1, where x has 30 elements"])

    def test_set_from_file_in_parts(self):
        array = np.arange(500 * 300, dtype="<i4").reshape(500, 300)
        self.tessera("create", "a", "--shape", "600,3,700", "--dtype", "<i4", "--chunks", "64,2,64")
        self.tessera("set", "a", "50:550, 1, 699:99:-2", self.save("x.npy", array), "--max-memory", "100K")
        expected = np.zeros((600, 3, 700), "<i4")
        expected[50:550, 1, 699:99:-2] = array
        np.testing.assert_array_equal(self.exported("a"), expected)
        self.tessera("set", "a", "...", "0")
        self.assertEqual(self.tessera_json("info", "a")["chunks_stored"], 0)

    def test_sizes_of_many_chunks_are_estimated_unless_asked_for(self):
        self.tessera("create", "a", "--format", "v2", "--shape", "60000", "--chunks", "1", "--dtype", "|u1")
        for n in range(59999):
            (self.folder / "a" / str(n)).write_bytes(b"12")
        text = self.tessera("info", "a")
        self.assertIn("59,999 of 60,000", text)
        self.assertIn("about 117.3 KiB, from 50,157 sizes (--exact adds up all)", text)
        info = self.tessera_json("info", "a")
        self.assertEqual((info["chunks_stored"], info["stored_bytes"], info["ratio"]), (59999, None, None))
        self.assertLess(abs(info["stored_bytes_about"] - 119998), 128)
        exact = self.tessera_json("info", "a", "--exact")
        self.assertEqual((exact["stored_bytes"], exact["ratio"]), (119998, 60000 / 119998))

    def test_set_values(self):
        for dtype, text, expected in [("f4", "-1.5", -1.5), ("f8", "NaN", float("nan")), ("b1", "true", True),
                                      ("c8", "[1, -2]", 1 - 2j), ("S4", "abc", b"abc"), ("U3", "ü 3", "ü 3"),
                                      ("u8", "18446744073709551615", 2**64 - 1), ("M8[D]", "2020-02-29", None),
                                      ("i4", "-7", -7), (">i2", "0258", None)]:
            with self.subTest(dtype=dtype, text=text):
                self.tessera("create", "a", "--shape", "2", "--dtype", dtype, "--overwrite")
                if text == "0258":
                    self.refused("set", "a", "1", text, says="0258")
                    continue
                self.tessera("set", "a", "1", text)
                wanted = np.array([expected if expected is not None else text], dtype)
                self.assertEqual(self.exported("a")[1:].tobytes(), wanted.tobytes())

    def test_copy_and_rechunk(self):
        self.tessera("import", f"{DEM}::elevation", "a", "--chunks", "64,64", "--fill", "-1")
        self.tessera("attrs", "a", "set", "units", '"m"')
        self.tessera("rechunk", "a", "b", "--chunks", "344,7")
        info = self.tessera_json("info", "b")
        self.assertEqual((info["chunks"], info["fill_value"], info["attributes"]), ([344, 7], -1, {"units": "m"}))
        np.testing.assert_array_equal(self.exported("b"), np.load(DEM)["elevation"])
        self.tessera("rechunk", "b", "b", "--chunks", "100,100", "--overwrite")
        np.testing.assert_array_equal(self.exported("b"), np.load(DEM)["elevation"])
        self.tessera("copy", "a", "c", "--sel", "::2, 5:", "--codec", "blosc:zlib:3", "--fill", "5")
        np.testing.assert_array_equal(self.exported("c"), np.load(DEM)["elevation"][::2, 5:])
        info = self.tessera_json("info", "c")
        self.assertEqual((info["codec"][:12], info["fill_value"], info["chunks"]), ("blosc:zlib:3", 5, [64, 64]))
        self.tessera("copy", f"{DEM}::elevation", "copied.npy")
        np.testing.assert_array_equal(np.load(self.folder / "copied.npy"), np.load(DEM)["elevation"])


if __name__ == "__main__":
    program.main()
