"""verify --ome: the suite of the specification, and hierarchies that contradict their metadata."""

import json
import unittest

import numpy as np

import ome_dingus
import program
from program import GOLDEN, ProgramTest

# These write the input and output of a level's transformation as strings. The documents call that wrong, in
# invalid_multiscale_transform_input_output, and so do the schemas.
OUTDATED = {"spec/valid/image/" + name for name in ("custom_type_axes", "invalid_axis_units", "mismatch_axes_units",
                                                   "missing_name", "untyped_axes")}
OUTDATED |= {"strict/valid/image/" + name for name in ("image", "image_metadata", "image_omero", "multiscales_example",
                                                      "multiscales_transformations")}


def suite(folder):
    with open(GOLDEN / "ome" / "ngff-spec.jsonl", encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            if entry["name"].startswith(folder):
                yield entry["name"][len(folder):], entry["document"]


class Suite(ProgramTest):
    """Every document by the program, as ngff-spec's tool calls it."""

    def write(self, name, document):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    def test_documents(self):
        count = 0
        for name, document in suite("0.6rc0/attributes/"):
            path = self.write(f"{name}.json", document)
            found = ome_dingus.judge_path("attributes", path)
            self.assertEqual(found["valid"], name.split("/")[1] == "valid", f"{name}: {found['message']}")
            count += 1
        self.assertEqual(count, 143)

    def test_hierarchies(self):
        count = 0
        for name, document in suite("0.6rc0/zarr/"):
            group = self.write(f"{name}.ome.zarr/zarr.json", document).parent
            found = ome_dingus.judge_path("zarr", group)
            valid = name.split("/")[1] == "valid" and name not in OUTDATED
            self.assertEqual(found["valid"], valid, f"{name}: {found['message']}")
            if name in OUTDATED:
                self.assertRegex(found["message"], "input: expected an object, found \"")
            count += 1
        self.assertEqual(count, 85)


class Hierarchies(ProgramTest):
    def setUp(self):
        super().setUp()
        self.save("a.npy", np.arange(2 * 40 * 50, dtype="<u2").reshape(2, 40, 50))

    def pyramid(self, name, *words):
        self.tessera("pyramid", "a.npy", name, "--levels", "2", "--axes", "c,y,x", "--quiet", *words)

    def change(self, file, change):
        path = self.folder / file
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))

    def findings(self, name, code=1):
        report = json.loads(self.tessera("verify", "--ome", "--json", name, code=code))
        self.assertEqual(report["sound"], code == 0)
        return [(f["kind"], f["key"] or f["node"], f.get("rule"), f["text"]) for f in report["findings"]]

    def found(self, name, kind, at, rule, *says, code=1):
        """The one finding, which says all of that."""
        [(found_kind, found_at, found_rule, text)] = self.findings(name, code)
        self.assertEqual((found_kind, found_at, found_rule), (kind, at, rule), text)
        for word in says:
            self.assertIn(word, text)

    def test_what_pyramid_writes_is_right(self):
        for version in ("0.4", "0.5", "0.6"):
            self.pyramid("p.zarr", "--ome", version)
            self.assertEqual(self.findings("p.zarr", code=0), [], version)
            self.assertIn("p.zarr: sound (2 arrays, 1 group", self.tessera("verify", "--ome", "p.zarr"))
            self.tessera("rm", "p.zarr", "--recursive", "--quiet")

    def test_levels_that_are_not_as_the_metadata_say(self):
        self.pyramid("p.zarr")
        self.change("p.zarr/zarr.json", lambda d: d["attributes"]["ome"]["multiscales"][0]["datasets"][1].update(path="7"))
        self.found("p.zarr", "damage", "7", "ome/tree", "no array", "ome.multiscales[0].datasets[1].path", "zarr.json")
        self.change("p.zarr/zarr.json", lambda d: d["attributes"]["ome"]["multiscales"][0]["datasets"][1].update(path="../p"))
        self.found("p.zarr", "unchecked", "zarr.json", "ome/tree", "../p", "leads out")
        self.tessera("group", "p.zarr/8")
        self.change("p.zarr/zarr.json", lambda d: d["attributes"]["ome"]["multiscales"][0]["datasets"][1].update(path="8"))
        self.found("p.zarr", "damage", "8", "ome/tree", "expected an array", "found a group")

        self.pyramid("q.zarr")
        self.tessera("rm", "q.zarr/1", "--quiet")
        self.save("b.npy", np.zeros((20, 25), "<u2"))
        self.tessera("import", "b.npy", "q.zarr/1", "--quiet")
        texts = [text for _, at, _, text in self.findings("q.zarr") if at == "1"]
        self.assertTrue(any("has 2 dimensions" in text and "3 axes" in text for text in texts), texts)

        self.pyramid("r.zarr")
        self.tessera("rm", "r.zarr/1", "--quiet")
        self.save("c.npy", np.zeros((2, 60, 25), "<u4"))
        self.tessera("import", "c.npy", "r.zarr/1", "--quiet", "--dims", "c,y,x")
        texts = [text for _, at, _, text in self.findings("r.zarr") if at == "1"]
        self.assertEqual(len(texts), 2)
        self.assertIn("is of <u4, and the first level of <u2", texts[0])
        self.assertIn("longer than the level before, (2, 60, 25) and (2, 40, 50)", texts[1])

        self.pyramid("s.zarr")
        self.change("s.zarr/1/zarr.json", lambda d: d.update(dimension_names=["c", "y", "z"]))
        self.found("s.zarr", "damage", "1", "ome/text", "dimension 2 z", "axis is x")

    def test_a_plate_with_labels(self):
        def group(path, ome):
            self.tessera("group", path, "--format", "v3")
            self.tessera("attrs", path, "set", "ome", json.dumps({"version": "0.5", **ome}))

        plate = {"name": "n", "columns": [{"name": "1"}], "rows": [{"name": "A"}],
                 "acquisitions": [{"id": 1, "name": "a", "maximumfieldcount": 1}],
                 "wells": [{"path": "A/1", "rowIndex": 0, "columnIndex": 0}]}
        group("p.zarr", {"plate": plate})
        self.found("p.zarr", "damage", "A/1", "ome/tree", "no group", "ome.plate.wells[0].path")
        group("p.zarr/A/1", {"well": {"images": [{"path": "0", "acquisition": 1}]}})
        self.found("p.zarr", "damage", "A/1/0", "ome/tree", "no group", "ome.well.images[0].path", "A/1/zarr.json")
        self.pyramid("p.zarr/A/1/0")
        self.assertEqual(self.findings("p.zarr", code=0), [])

        group("p.zarr/A/1/0/labels", {"labels": ["cells"]})
        self.found("p.zarr", "damage", "A/1/0/labels/cells", "ome/tree", "no group", "ome.labels[0]")
        self.save("f.npy", np.zeros((2, 40, 50), "<f4"))
        self.tessera("pyramid", "f.npy", "p.zarr/A/1/0/labels/cells", "--levels", "1", "--axes", "c,y,x", "--quiet")
        found = self.findings("p.zarr")
        self.assertEqual([(kind, at) for kind, at, _, _ in found],
                         [("damage", "A/1/0/labels/cells/0"), ("damage", "A/1/0/labels/cells/zarr.json")])
        self.assertIn("<f4, and labels are integers", found[0][3])
        self.assertIn("expected 2 levels", found[1][3])

        self.change("p.zarr/A/1/zarr.json", lambda d: d["attributes"]["ome"]["well"]["images"][0].update(acquisition=2))
        self.change("p.zarr/A/1/0/labels/zarr.json", lambda d: d["attributes"]["ome"].update(labels=[]))
        found = self.findings("p.zarr")
        self.assertEqual([(kind, at) for kind, at, _, _ in found],
                         [("damage", "A/1/zarr.json"), ("note", "A/1/0/labels/cells")])
        self.assertIn("well.images[0].acquisition", found[0][3])
        self.change("p.zarr/A/1/zarr.json", lambda d: d["attributes"]["ome"].update(version="0.6rc0"))
        self.assertIn("of 0.6rc0, and those in zarr.json of 0.5", str(self.findings("p.zarr")))

    def test_what_has_no_such_metadata(self):
        self.tessera("group", "g.zarr")
        self.found("g.zarr", "damage", "", "ome/schema", "no group here has metadata of OME-Zarr")
        self.tessera("import", "a.npy", "a.zarr", "--quiet")
        self.refused("verify", "--ome", "a.zarr", says=["a.zarr", "array"])
        self.refused("verify", "--ome", "a.npy", says=["a.npy"])
        self.refused("verify", "--ome", "nothing", says=["nothing"])
        self.refused("verify", "--ome", "--complete", "g.zarr", says=["--ome", "--complete"])
        self.tessera("attrs", "g.zarr", "set", "ome", '{"version": "0.7"}')
        self.found("g.zarr", "unchecked", "zarr.json", "ome/version", "0.7", "0.6rc0")
        (self.folder / "g.zarr" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {')
        self.found("g.zarr", "damage", "zarr.json", None, "line 1")


if __name__ == "__main__":
    program.main()
