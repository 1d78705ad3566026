"""`seal --ro-crate`: ro-crate-metadata.json from attributes, a CITATION.cff and the log."""

import importlib.util
import json
import shutil
import sys

import numpy as np

from program import ProgramTest, main, module_folder

CITATION = """\
cff-version: 1.2.0
message: 'It''s as below'   # a comment
title: "A survey: \\u00e9t\\u00e9"
abstract: >-
  Heights of a
  small place.
authors:
  - family-names: Lovelace
    given-names: Ada
    orcid: https://orcid.org/0000-0000-0000-0001
    affiliation: An Institute
  - name: "The Survey"
license: CC-BY-4.0
doi: 10.1234/survey
date-released: 2026-01-02
keywords:
- heights
- 'a: b'
references:
  - type: article
    authors:
      - family-names: Other
"""


class CrateTest(ProgramTest):
    def make(self):
        self.tessera("group", "g.zarr", "--format", "v3", "--quiet")
        for name, values, units in (("lat", np.linspace(40, 50, 5), "degrees_north"), ("lon", np.linspace(-3, 4, 8), "degrees_east"),
                                    ("time", np.arange(3, dtype="<i4"), "days since 2020-01-31")):
            self.save("v.npy", values)
            self.tessera("import", "v.npy", f"g.zarr/{name}", "--format", "v3", "--quiet")
            self.tessera("attrs", f"g.zarr/{name}", "set", "units", f'"{units}"', "--quiet")
        self.save("v.npy", np.zeros((3, 5, 8), dtype="<f4"))
        self.tessera("import", "v.npy", "g.zarr/t2m", "--format", "v3", "--quiet")
        for name, value in ("units", "K"), ("long_name", "Temperature"), ("standard_name", "air_temperature"):
            self.tessera("attrs", "g.zarr/t2m", "set", name, f'"{value}"', "--quiet")

    def attribute(self, name, value, path="g.zarr"):
        self.tessera("attrs", path, "set", name, json.dumps(value), "--quiet")

    def entities(self, path="g.zarr"):
        crate = json.loads((self.folder / path / "ro-crate-metadata.json").read_text())
        self.assertEqual(crate["@context"], "https://w3id.org/ro/crate/1.2/context")
        found = {entity["@id"]: entity for entity in crate["@graph"]}
        self.assertEqual(len(found), len(crate["@graph"]))

        def check(value):
            """Every reference leads to an entity, or out of the crate."""
            if isinstance(value, list):
                for each in value:
                    check(each)
            elif isinstance(value, dict):
                self.assertEqual(list(value), ["@id"])
                if not value["@id"].startswith("https://w3id.org/"):
                    self.assertIn(value["@id"], found)

        for entity in crate["@graph"]:
            for value in entity.values():
                check(value)
        return found


class Written(CrateTest):
    def test_from_attributes(self):
        self.make()
        for name, value in (("title", "Reanalysis"), ("summary", "Temperatures"), ("license", "All may read it."),
                            ("creator_name", "A. Lovelace, C. Babbage"), ("institution", "An Institute"), ("keywords", "a, b"),
                            ("date_created", "2025-05-06"), ("history", "made\ncut"), ("publisher_name", "A Press")):
            self.attribute(name, value)
        self.tessera("seal", "g.zarr", "--ro-crate", "--quiet")
        found = self.entities()
        root = found["./"]
        self.assertEqual((root["name"], root["description"], root["datePublished"], root["keywords"]),
                         ("Reanalysis", "Temperatures", "2025-05-06", ["a", "b"]))
        self.assertEqual(found[root["license"]["@id"]]["description"], "All may read it.")
        self.assertEqual([found[a["@id"]]["name"] for a in root["author"]], ["A. Lovelace", "C. Babbage"])
        self.assertEqual(found[found[root["author"][0]["@id"]]["affiliation"]["@id"]]["name"], "An Institute")
        self.assertEqual(found[found[root["spatialCoverage"]["@id"]]["geo"]["@id"]]["box"], "40.0 -3.0 50.0 4.0")
        self.assertRegex(root["temporalCoverage"], r"^2020-01-31[^/]*/2020-02-02")
        variable = found["#variable-t2m"]
        self.assertEqual((variable["unitText"], variable["description"]), ("K", "Temperature"))
        self.assertIn("air_temperature", variable["propertyID"])
        self.assertIn("3×5×8", found["t2m/"]["description"])
        self.assertEqual({p["@id"] for p in root["hasPart"]}, {"lat/", "lon/", "time/", "t2m/"})
        changes = [found[c["@id"]] for c in root["mentions"]]
        self.assertEqual([c["name"] for c in changes[:2]], ["made", "cut"])
        self.assertIn("group g.zarr", changes[2]["name"])
        self.assertEqual(changes[2]["instrument"], {"@id": "#tessera"})
        # The seal covers it, and nobody calls it a stray; a second one follows the log.
        report = self.tessera_json("verify", "g.zarr")
        self.assertEqual((report["sound"], report["leftover"], report["seals"]), (True, 0, 1))
        self.assertIn("ro-crate-metadata.json", (self.folder / "g.zarr/.tessera/sha256sums.txt").read_text())
        self.tessera("seal", "g.zarr", "--ro-crate", "--quiet")
        self.assertTrue(self.tessera_json("verify", "g.zarr")["sound"])
        self.tessera("rm", "g.zarr", "--recursive", "--break-seal")

    def test_from_a_citation(self):
        self.save("v.npy", np.zeros((4, 4), dtype="<i2"))
        self.tessera("import", "v.npy", "a.zarr", "--format", "v3", "--quiet")
        (self.folder / "CITATION.cff").write_text(CITATION)
        self.refused("seal", "a.zarr", "--ro-crate", says=["licence", "CITATION.cff"])
        self.assertFalse((self.folder / "a.zarr/ro-crate-metadata.json").exists())
        self.tessera("seal", "a.zarr", "--ro-crate", "--citation", "CITATION.cff", "--quiet")
        found = self.entities("a.zarr")
        root = found["./"]
        self.assertEqual((root["name"], root["description"], root["datePublished"], root["identifier"], root["keywords"]),
                         ("A survey: été", "Heights of a small place.", "2026-01-02", "https://doi.org/10.1234/survey",
                          ["heights", "a: b"]))
        self.assertEqual(root["license"], {"@id": "https://spdx.org/licenses/CC-BY-4.0"})
        self.assertEqual([found[a["@id"]]["name"] for a in root["author"]], ["Ada Lovelace", "The Survey"])
        self.assertEqual(root["author"][0], {"@id": "https://orcid.org/0000-0000-0000-0001"})

    def test_what_is_refused(self):
        self.make()
        self.attribute("license", "MIT")
        crate = self.folder / "g.zarr/ro-crate-metadata.json"
        crate.write_text('{"@graph": []}')
        self.refused("seal", "g.zarr", "--ro-crate", says="another program wrote it")
        crate.unlink()
        for text, says in (("title: [a, b]\n", "line 1"), ("title: a\nnothing\n", "line 2"), ('title: "\\q"\n', "bad.cff"),
                           ("- a\n", "line 1"), ("\0: \n", "")):
            (self.folder / "bad.cff").write_text(text)
            result = self.run_program("seal", "g.zarr", "--ro-crate", "--citation", "bad.cff", "--quiet")
            if says:
                self.assertEqual(result.returncode, 2)
                self.assertIn(says, result.stderr)
            crate.unlink(missing_ok=True)
        self.refused("seal", "g.zarr", "--citation", "bad.cff", says="--ro-crate")
        self.refused("seal", "g.zarr", "--ro-crate", "--bagit", "bag", says="--ro-crate")
        self.tessera("copy", "g.zarr", "g.zip", "--quiet")
        self.refused("seal", "g.zip", "--ro-crate", says="--ro-crate")

    def test_a_link_to_another_citation_is_not_read(self):
        self.make()
        self.attribute("license", "MIT")
        (self.folder / "secret.cff").write_text("mine alone\n")
        (self.folder / "g.zarr/CITATION.cff").symlink_to(self.folder / "secret.cff")
        found = self.run_program("seal", "g.zarr", "--ro-crate", "--unchecked")
        self.assertNotIn("mine", found.stderr + found.stdout)
        (self.folder / "g.zarr/CITATION.cff").unlink()
        (self.folder / "g.zarr/CITATION.cff").write_text("title: Ours\n")
        self.tessera("seal", "g.zarr", "--ro-crate", "--unchecked", "--overwrite", "--quiet")
        self.assertEqual(self.entities()["./"]["name"], "Ours")

    def test_a_seal_that_is_refused_or_has_nothing_to_do_writes_none(self):
        self.make()
        self.attribute("license", "MIT")
        self.attribute("date_created", "2025-05-06")
        crate = self.folder / "g.zarr/ro-crate-metadata.json"
        self.tessera("seal", "g.zarr", "--ro-crate", "--quiet")
        before = crate.read_bytes()
        self.assertFalse(self.tessera_json("seal", "g.zarr", "--ro-crate")["written"])
        document = self.folder / "g.zarr/lat/zarr.json"
        old = document.read_bytes()
        document.write_bytes(old.replace(b"degrees_north", b"degrees_south"))
        self.attribute_by_hand("title", "Other")
        self.refused("seal", "g.zarr", "--ro-crate", says="sealed before")
        self.assertEqual(crate.read_bytes(), before)
        self.tessera("seal", "g.zarr", "--ro-crate", "--accept", "zarr.json", "lat/zarr.json", "--quiet")
        self.assertNotEqual(crate.read_bytes(), before)
        self.assertTrue(self.tessera_json("verify", "g.zarr")["sound"])

    def attribute_by_hand(self, name, value):
        """As another program writes it, which knows nothing of seals."""
        file = self.folder / "g.zarr/zarr.json"
        document = json.loads(file.read_text())
        document["attributes"][name] = value
        file.write_text(json.dumps(document))

    def test_the_reference_program_reads_it(self):
        if importlib.util.find_spec("rocrate") is None:
            self.skipTest("rocrate is not installed")
        from rocrate.rocrate import ROCrate

        self.make()
        self.attribute("license", "MIT")
        self.tessera("seal", "g.zarr", "--ro-crate", "--quiet")
        crate = ROCrate(str(self.folder / "g.zarr"))
        self.assertEqual(crate.root_dataset["license"].id, "https://spdx.org/licenses/MIT")
        self.assertEqual({e.id for e in crate.data_entities}, {"lat/", "lon/", "time/", "t2m/"})
        self.assertEqual(crate.get("#variable-t2m")["unitText"], "K")

    def test_killed_between_the_crate_and_the_seal(self):
        self.make()
        self.attribute("license", "MIT")
        for words in ([], ["--parity", "1"]):
            with self.subTest(words=words):
                self.tessera("seal", "g.zarr", *words, "--quiet")
                shutil.copytree(self.folder / "g.zarr", self.folder / "other.zarr")
                self.tessera("seal", "other.zarr", "--ro-crate", *words, "--quiet")
                shutil.copy(self.folder / "other.zarr/ro-crate-metadata.json", self.folder / "g.zarr")
                self.tessera("verify", "g.zarr", code=1)
                self.tessera("seal", "g.zarr", "--ro-crate", *words, "--quiet")
                self.assertTrue(self.tessera_json("verify", "g.zarr")["sound"])
                (self.folder / "g.zarr/ro-crate-metadata.json").unlink()
                self.tessera("seal", "g.zarr", "--overwrite", "--quiet")
                shutil.rmtree(self.folder / "other.zarr")

    def test_from_python(self):
        sys.path.insert(0, str(module_folder()))
        import tessera

        self.make()
        (self.folder / "c.cff").write_text(CITATION)
        tessera.seal(self.folder / "g.zarr", ro_crate=self.folder / "c.cff")
        self.assertEqual(self.entities()["./"]["name"], "A survey: été")
        tessera.seal(self.folder / "g.zarr", ro_crate=self.folder / "c.cff")
        self.assertTrue(tessera.verify(self.folder / "g.zarr").sound)


if __name__ == "__main__":
    main()
