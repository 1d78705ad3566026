"""GeoZarr's conventions: written by pyramid --geo and import x.tif, shown by info, checked by verify --geo."""

import json
import shutil
import subprocess
import unittest

import numpy as np

import program
from program import ProgramTest

UUIDS = {"multiscales": "d35379db-88df-4056-af3a-620245f8e347", "proj": "f17cb550-5864-4468-aeb7-f3180cfb622f",
         "spatial": "689b58e2-cf7b-45e0-9fff-9cfc0883d6b4"}


class GeoZarr(ProgramTest):
    def attributes(self, path):
        return json.loads((self.folder / path / "zarr.json").read_text())["attributes"]

    def change(self, path, change):
        file = self.folder / path / "zarr.json"
        document = json.loads(file.read_text())
        change(document["attributes"])
        file.write_text(json.dumps(document))

    def pyramid(self, name="p.zarr", *words, shape=(21, 30)):
        self.save("a.npy", np.arange(np.prod(shape), dtype="<i2").reshape(shape))
        self.tessera("pyramid", "a.npy", name, "--levels", "2", "--geo", "--crs", "EPSG:32633", "--transform",
                     "10,0,500000,0,-10,5000000", "--quiet", *words)

    def listed(self, attributes):
        for entry in attributes["zarr_conventions"]:
            self.assertEqual(entry["uuid"], UUIDS[entry["name"]])
            self.assertIn(f"/{entry['name']}/refs/tags/v0.1/schema.json", entry["schema_url"])
        return [entry["name"] for entry in attributes["zarr_conventions"]]

    def findings(self, name, code=1):
        report = json.loads(self.tessera("verify", "--geo", "--json", name, code=code))
        return [(f["kind"], f["key"] or f["node"], f.get("rule"), f["text"]) for f in report["findings"]]

    def test_group_and_levels(self):
        self.pyramid()
        group = self.attributes("p.zarr")
        self.assertEqual(self.listed(group), ["multiscales", "spatial", "proj"])
        self.assertEqual({name: value for name, value in group.items() if name != "zarr_conventions"}, {
            "multiscales": {"layout": [
                {"asset": "0", "transform": {"scale": [1.0, 1.0], "translation": [0.0, 0.0]}, "spatial:shape": [21, 30],
                 "spatial:transform": [10.0, 0.0, 500000.0, 0.0, -10.0, 5000000.0]},
                {"asset": "1", "derived_from": "0", "transform": {"scale": [2.0, 2.0], "translation": [0.0, 0.0]},
                 "spatial:shape": [11, 15], "spatial:transform": [20.0, 0.0, 500000.0, 0.0, -20.0, 5000000.0]}],
                "resampling_method": "average"},
            "proj:code": "EPSG:32633", "spatial:dimensions": ["y", "x"], "spatial:shape": [21, 30],
            "spatial:transform": [10.0, 0.0, 500000.0, 0.0, -10.0, 5000000.0],
            "spatial:bbox": [500000.0, 4999790.0, 500300.0, 5000000.0]})
        level = self.attributes("p.zarr/1")
        self.assertEqual(self.listed(level), ["spatial", "proj"])
        self.assertEqual(level["spatial:transform"], [20.0, 0.0, 500000.0, 0.0, -20.0, 5000000.0])
        self.assertEqual(level["spatial:shape"], [11, 15])
        self.assertEqual(json.loads((self.folder / "p.zarr/1/zarr.json").read_text())["dimension_names"], ["y", "x"])
        self.assertIn("EPSG:32633; x 500000 to 500300, y 4999790 to 5000000; 10 × 10 each",
                      self.tessera("info", "p.zarr"))
        self.assertIn("EPSG:32633; x 500000 to 500300, y 4999780 to 5000000; 20 × 20 each",
                      self.tessera("info", "p.zarr/1"))
        self.assertEqual(self.findings("p.zarr", code=0), [])
        self.assertEqual(self.findings("p.zarr/1", code=0), [])

    def test_other_dimensions_names_and_registration(self):
        self.save("a.npy", np.arange(3 * 9 * 8, dtype="<f4").reshape(3, 9, 8))
        self.tessera("import", "a.npy", "a.zarr", "--format", "v3", "--dims", "time,lat,lon", "--quiet")
        self.tessera("attrs", "a.zarr", "set", "spatial:dimensions", '["lat", "lon"]')
        self.tessera("attrs", "a.zarr", "set", "spatial:transform", "[0.5, 0, 10, 0, -0.25, 50]")
        self.tessera("attrs", "a.zarr", "set", "spatial:registration", "node")
        self.tessera("attrs", "a.zarr", "set", "proj:code", "EPSG:4326")
        self.tessera("pyramid", "a.zarr", "p.zarr", "--levels", "3", "--geo", "--quiet")
        self.assertEqual(self.tessera_json("info", "p.zarr/2")["shape"], [3, 3, 2])
        # An element stands for the middle of its block, or with nearest for the first element.
        self.assertEqual(self.attributes("p.zarr/2")["spatial:transform"], [2.0, 0.0, 10.75, 0.0, -1.0, 49.625])
        self.assertEqual(self.attributes("p.zarr")["spatial:bbox"], [10.0, 48.0, 13.5, 50.0])
        self.assertNotIn("translation", self.attributes("p.zarr")["multiscales"]["layout"][1]["transform"])
        self.assertEqual(self.findings("p.zarr", code=0), [])
        self.tessera("pyramid", "a.zarr", "n.zarr", "--levels", "3", "--geo", "--with", "nearest", "--quiet")
        self.assertEqual(self.attributes("n.zarr/2")["spatial:transform"], [2.0, 0.0, 10.0, 0.0, -1.0, 50.0])
        self.tessera("coarsen", "a.zarr", "c.zarr", "--by", "1,4,2", "--format", "v3", "--quiet")
        self.assertEqual(self.attributes("c.zarr")["spatial:transform"], [1.0, 0.0, 10.25, 0.0, -1.0, 49.625])
        self.assertEqual(self.attributes("c.zarr")["spatial:shape"], [3, 4])

    def test_beside_ome(self):
        self.pyramid("p.zarr", "--ome", "0.5", "--scale", "10,10")
        self.assertEqual(self.attributes("p.zarr")["ome"]["version"], "0.5")
        self.assertEqual(self.tessera("verify", "--ome", "--geo", "p.zarr"), "p.zarr: sound (2 arrays, 1 group)\n")
        self.tessera("pyramid", "p.zarr", "--upgrade", "--ome", "0.6", "--quiet")
        self.assertEqual(self.findings("p.zarr", code=0), [])

    def test_what_is_refused(self):
        self.save("a.npy", np.zeros((20, 30), "<i2"))
        self.save("v.npy", np.zeros(20))
        transform = ["--transform", "10,0,0,0,-10,0"]
        for words, says in (([], ["--transform", "spatial:transform"]),
                            ([*transform, "--format", "v2"], ["--format", "v3"]),
                            ([*transform, "--ome", "0.4"], ["--ome", "0.4"]),
                            ([*transform, "--scale", "1,1"], ["--scale"]),
                            ([*transform, "--crs", "4326"], ["--crs", "EPSG:4326"]),
                            (["--transform", "1,2,3"], ["--transform", "six"]),
                            (["--transform", "1,0,0,0,x,0"], ["--transform", "numbers"]),
                            (["--transform", "1,1,0,1,1,0"], ["--transform", "one direction"])):
            self.refused("pyramid", "a.npy", "p.zarr", "--geo", *words, says=says)
        self.refused("pyramid", "v.npy", "p.zarr", "--geo", *transform, says=["v.npy", "two dimensions"])
        self.refused("pyramid", "a.npy", "p.zarr", "--crs", "EPSG:4326", says=["--crs", "--geo"])
        self.assertFalse((self.folder / "p.zarr").exists())
        wkt = 'GEOGCRS["Moon", BODY["Moon"]]'
        self.tessera("pyramid", "a.npy", "m.zarr", "--geo", *transform, "--crs", wkt, "--quiet")
        self.assertEqual(self.attributes("m.zarr")["proj:wkt2"], wkt)
        self.assertIn("Moon; x 0 to 300", self.tessera("info", "m.zarr"))

    def test_a_job_makes_the_same(self):
        self.pyramid()
        self.tessera("plan", "pyramid", "a.npy", "q.zarr", "--levels", "2", "--geo", "--crs", "EPSG:32633", "--transform",
                     "10,0,500000,0,-10,5000000", "--out", "job.json", "--quiet")
        self.tessera("work", "job.json", "--quiet")
        self.tessera("finish", "job.json", "--quiet")
        for node in "", "0", "1":
            self.assertEqual(self.attributes(f"q.zarr/{node}"), self.attributes(f"p.zarr/{node}"))

    def test_faults_are_found(self):
        def level(n):
            return lambda a: a["multiscales"]["layout"][n]

        def put(name, value, of=lambda a: a):
            return lambda a: of(a).update({name: value})

        cases = (  # node, change, (rule, words)
            ("", lambda a: a.pop("zarr_conventions"), ("geo/schema", "expected an entry of \"multiscales\"")),
            ("", put("proj:code", "4326"), ("geo/schema", "proj:code: expected an authority")),
            ("1", lambda a: a.pop("spatial:dimensions"), ("geo/schema", "expected \"spatial:dimensions\"")),
            ("", put("spatial:bbox", [1, 2, 3]), ("geo/schema", "spatial:bbox: expected 4 items, found 3")),
            ("", put("spatial:bbox", [500000, 4999790, 500400, 5000000]), ("geo/text", "as transform and shape say")),
            ("", put("spatial:bbox", [5, 0, 1, 9]), ("geo/text", "expected [xmin")),
            ("", put("spatial:registration", "corner"), ("geo/schema", "\"pixel\" or \"node\"")),
            ("1", put("spatial:shape", [11, 16]), ("geo/tree", "expected 11 × 15, as the array is")),
            ("1", put("spatial:dimensions", ["lat", "x"]), ("geo/tree", "no dimension \"lat\"")),
            ("", lambda a: level(1)(a).pop("transform"), ("geo/schema", "multiscales.layout[1]: expected \"transform\"")),
            ("", put("asset", "../q", level(1)), ("geo/schema", "multiscales.layout[1].asset: expected a path")),
            ("", put("asset", "7", level(1)), ("geo/tree", "no array or group is here")),
            ("", put("spatial:transform", [30, 0, 500000, 0, -20, 5000000], level(1)), ("geo/text", "2.0 times")),
            ("", put("spatial:shape", [1, 1], level(1)), ("geo/tree", "multiscales.layout[1].spatial:shape")),
            ("1", put("spatial:transform", [20, 0, 7, 0, -20, 7]), ("geo/tree", "its spatial:transform is")),
            ("1", lambda a: a["zarr_conventions"][0].update(name="spatial:"), ("geo/schema", "name: expected \"spatial\"")),
        )
        for node, change, (rule, words) in cases:
            with self.subTest(words):
                self.pyramid()
                self.change(f"p.zarr/{node}", change)
                found = self.findings("p.zarr")
                self.assertTrue(any(r == rule and words in text for _, _, r, text in found), found)
                self.tessera("rm", "p.zarr", "--recursive", "--quiet")
        self.tessera("group", "g.zarr")
        self.assertEqual(self.findings("g.zarr"),
                         [("damage", "", "geo/schema", "no array and no group here has metadata of GeoZarr")])

    def test_from_geotiff_and_back(self):
        if shutil.which("gdal_translate") is None:
            self.skipTest("gdal-bin is not installed")

        def info(file):
            return json.loads(subprocess.run(["gdalinfo", "-json", file], cwd=self.folder, capture_output=True,
                                             text=True, check=True).stdout)

        np.arange(301 * 401, dtype="<i2").tofile(self.folder / "in.img")
        (self.folder / "in.hdr").write_text("ENVI\nsamples = 401\nlines = 301\nbands = 1\ndata type = 2\n"
                                            "interleave = bsq\nbyte order = 0\n")
        subprocess.run(["gdal_translate", "-q", "-a_srs", "EPSG:32633", "-a_ullr", "500000", "5000000", "504010",
                        "4996990", "in.img", "g.tif"], cwd=self.folder, check=True)
        self.tessera("import", "g.tif", "g.zarr", "--format", "v3", "--quiet")
        self.assertEqual(self.listed(self.attributes("g.zarr")), ["spatial", "proj"])
        self.assertEqual(self.findings("g.zarr", code=0), [])
        self.tessera("pyramid", "g.tif", "p.zarr", "--geo", "--levels", "3", "--quiet")
        self.assertEqual(self.findings("p.zarr", code=0), [])
        self.tessera("copy", "p.zarr/2", "two.tif", "--quiet")
        two = info("two.tif")
        self.assertEqual(two["geoTransform"], [500000, 40, 0, 5000000, 0, -40])
        self.assertEqual(two["coordinateSystem"], info("g.tif")["coordinateSystem"])
        self.tessera("copy", "p.zarr", "all.tif", "--quiet")
        everything = info("all.tif")
        self.assertEqual(everything["geoTransform"], info("g.tif")["geoTransform"])
        self.assertEqual([one["size"] for one in everything["bands"][0]["overviews"]], [[201, 151], [101, 76]])


if __name__ == "__main__":
    program.main()
