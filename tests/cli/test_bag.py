"""BagIt bags: the public conformance suite, `seal --bagit --info`, SHA-512, holes, and paths that lead out of a bag."""

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import unittest

import numpy as np

from hostile import PUT, journal
from program import GOLDEN, ProgramTest, main, module_folder

DATACITE = {"doi": "10.1234/grid", "creators": [{"name": "Doe, J."}], "titles": [{"title": "A grid"}],
            "publisher": {"name": "An Archive"}, "publicationYear": 2026, "types": {"resourceTypeGeneral": "Dataset"}}


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


class BagTest(ProgramTest):
    def make(self, *words):
        self.save("values.npy", np.arange(24, dtype="<i4").reshape(4, 6))
        self.tessera("import", "values.npy", "a.zarr", "--format", "v3", "--chunks", "2,3", "--overwrite", "--quiet")
        self.tessera("seal", "a.zarr", "--bagit", "bag", *words, "--quiet")
        return self.folder / "bag"

    def write_manifests(self, bag):
        """Those of a bag that another program changed: SHA-512 alone."""
        for old in [*bag.glob("*manifest-*.txt")]:
            old.unlink()

        def list_files(name, files):
            (bag / name).write_text("".join(f"{hashlib.sha512(f.read_bytes()).hexdigest()}  {f.relative_to(bag).as_posix()}\n"
                                            for f in sorted(files)))

        list_files("manifest-sha512.txt", (f for f in (bag / "data").rglob("*") if f.is_file()))
        list_files("tagmanifest-sha512.txt", (f for f in bag.glob("*.txt")))

    def found(self, path="bag", code=1):
        findings = self.tessera_json("verify", path, code=code)["findings"]
        return {(f["kind"], f["key"]): f["text"] for f in findings}


class Suite(BagTest):
    def test_every_bag_of_the_suite(self):
        suite = json.loads((GOLDEN / "bagit/suite.json").read_text())
        counted = {}
        for number, (name, files) in enumerate(suite.items()):
            kind = name.split("/")[1]
            bag = self.folder / f"bag{number}"
            for path, content in files.items():
                (bag / path).parent.mkdir(parents=True, exist_ok=True)
                (bag / path).write_bytes(content.encode("latin-1"))
            good = kind in ("valid", "warning")
            with self.subTest(name=name):
                report = self.tessera_json("verify", bag, code=0 if good else 1)
                self.assertEqual(report["sound"], good)
                kinds = {f["kind"] for f in report["findings"]}
                if kind == "warning":
                    self.assertEqual(kinds, {"note"})
                elif not good:
                    self.assertTrue(kinds & {"damage", "changed", "lost", "added"}, kinds)
                    self.assertTrue(all(f["key"] for f in report["findings"]))
            counted[kind] = counted.get(kind, 0) + 1
        self.assertEqual(counted, {"valid": 27, "invalid": 15, "linux-only": 6, "warning": 6, "windows-only": 6})


class Made(BagTest):
    def test_labels_and_the_record(self):
        record = self.folder / "datacite.json"
        record.write_text(json.dumps(DATACITE))
        (self.folder / "info.txt").write_text("Contact-Name: J. Doe\nExternal-Description: one\n  and two\n")
        bag = self.make("--info", "Source-Organization=An Institute", "--info", "info.txt", "--info", "datacite.json",
                        "--info", "Contact-Name=A. Smith")
        info = [line.split(": ", 1) for line in lines_of(bag / "bag-info.txt")]
        self.assertEqual(info[3:], [["Source-Organization", "An Institute"], ["Contact-Name", "J. Doe"],
                                    ["External-Description", "one and two"], ["Contact-Name", "A. Smith"],
                                    ["External-Identifier", "doi:10.1234/grid"]])
        self.assertEqual((bag / "metadata/datacite.json").read_bytes(), record.read_bytes())
        self.assertEqual(self.found(code=0), {})
        for name in "sha256", "sha512":
            payload = {p.relative_to(bag).as_posix() for p in (bag / "data").rglob("*") if p.is_file()}
            tags = {"bagit.txt", "bag-info.txt", "metadata/datacite.json", "manifest-sha256.txt", "manifest-sha512.txt"}
            for manifest, expected in (f"manifest-{name}.txt", payload), (f"tagmanifest-{name}.txt", tags):
                listed = dict(reversed(line.split("  ", 1)) for line in lines_of(bag / manifest))
                self.assertEqual(set(listed), expected)
                for path, total in listed.items():
                    self.assertEqual(hashlib.new(name, (bag / path).read_bytes()).hexdigest(), total)

    def test_what_no_label_is_and_what_no_record_is(self):
        self.make()
        (self.folder / "bad.txt").write_text("no colon\n")
        (self.folder / "bad.json").write_text(json.dumps({"titles": []}))
        (self.folder / "broken.json").write_text("{")
        for word, says in [("Payload-Oxum=1.1", "is computed"), ("nothing", "neither a file nor LABEL=VALUE"),
                           ("a:b=c", "no label"), ("Label=", "no label"), ("bad.txt", "LABEL: VALUE"),
                           ("bad.json", ["it lacks creators, publisher", "doi"]), ("broken.json", "broken.json")]:
            self.refused("seal", "a.zarr", "--bagit", "new", "--info", word, says=says)
        self.refused("seal", "a.zarr", "--info", "A=b", says="--bagit makes")
        self.assertFalse((self.folder / "new").exists())

    def test_with_parity_and_restored(self):
        bag = self.make("--parity", "1", "--info", "Source-Organization=x")
        self.assertIn("tessera-seal/sha256sums.txt", (bag / "tagmanifest-sha512.txt").read_text())
        self.assertEqual({kind for kind, _ in self.found(code=0)}, {"note"})
        chunk = bag / "data/a.zarr/c/0/0"
        before = chunk.read_bytes()
        chunk.unlink()
        self.tessera("repair", "bag", "--quiet")
        self.assertEqual(chunk.read_bytes(), before)

    def test_the_reference_program_agrees(self):
        if importlib.util.find_spec("bagit") is None:
            self.skipTest("bagit-python is not installed")
        self.make("--info", "Source-Organization=x")
        subprocess.run([sys.executable, "-m", "bagit", "--validate", "--quiet", "bag"], cwd=self.folder, check=True)

    def test_from_python(self):
        sys.path.insert(0, str(module_folder()))
        import tessera

        self.make()
        made = tessera.seal(self.folder / "a.zarr", bag=self.folder / "b",
                            info={"Source-Organization": "An Institute", "Contact-Name": ["J. Doe", "A. Smith"]})
        self.assertGreater(made.files, 0)
        self.assertEqual(lines_of(self.folder / "b/bag-info.txt")[3:],
                         ["Source-Organization: An Institute", "Contact-Name: J. Doe", "Contact-Name: A. Smith"])
        with self.assertRaisesRegex(tessera.InvalidArgument, "bag="):
            tessera.seal(self.folder / "a.zarr", info={"A": "b"})

    def test_the_manifests_count_beside_parity(self):
        bag = self.make("--parity", "1")
        self.refused("seal", "bag", "--parity", "2", says="not sealed again")
        self.assertEqual({kind for kind, _ in self.found(code=0)}, {"note"})
        tags = bag / "tagmanifest-sha256.txt"
        text = tags.read_text()
        tags.write_text("garbage\n")
        self.assertIn(("damage", "tagmanifest-sha256.txt"), self.found())
        tags.write_text(text)
        # Somebody seals what was changed, and takes the manifests of the seal away.
        file = bag / "data/a.zarr/zarr.json"
        old = hashlib.sha256(file.read_bytes()).hexdigest()
        file.write_bytes(file.read_bytes() + b"\n")
        self.assertEqual([key for _, key in self.found()].count("data/a.zarr/zarr.json"), 1)  # not by each list
        sums = bag / "tessera-seal/sha256sums.txt"
        sums.write_text(sums.read_text().replace(old, hashlib.sha256(file.read_bytes()).hexdigest()))
        for each in [*(bag / "tessera-seal/parity").iterdir(), *bag.glob("tagmanifest-*")]:
            each.unlink()
        self.assertIn(("changed", "data/a.zarr/zarr.json"), self.found())

    def test_documents_of_an_array_in_its_folder(self):
        bag = self.make()
        (bag / "zarr.json").write_bytes((self.folder / "a.zarr/zarr.json").read_bytes())
        chunk = bag / "data/a.zarr/c/0/0"
        chunk.write_bytes(chunk.read_bytes()[::-1])
        self.assertIn(("changed", "data/a.zarr/c/0/0"), self.found())

    def test_every_file_of_the_payload_is_listed(self):
        bag = self.make()
        for name in "data/a.zarr/.tessera/lock", "data/a.zarr/c/x.lock":
            (bag / name).parent.mkdir(exist_ok=True)
            (bag / name).touch()
            with self.subTest(name=name):
                self.assertIn(("added", name), self.found())
            (bag / name).unlink()
        info = bag / "bag-info.txt"
        info.write_text(info.read_text().replace("Payload-Oxum: ", "PAYLOAD-OXUM: 1"))
        self.write_manifests(bag)
        self.assertIn("says that the payload has", self.found()[("damage", "bag-info.txt")])


class Sources(BagTest):
    """What must not go into a copy that has sums of its own."""

    def setUp(self):
        super().setUp()
        sys.path.insert(0, str(module_folder()))
        self.tessera("create", "a.zarr", "--shape", "4", "--chunks", "2", "--dtype", "<i4", "--format", "v3", "--codec", "none", "--quiet")
        self.tessera("set", "a.zarr", "...", "7", "--quiet")

    def copies(self, to):
        """Each way to copy the array to a new place: what it is, the words or a call, and the path of the copy."""
        import tessera

        path, new = self.folder / "a.zarr", lambda name: self.folder / f"{to}-{name}"
        return [(("seal", "a.zarr", "--bagit", new("bag")), new("bag") / "data/a.zarr"),
                (("seal", "a.zarr", "--ocfl", new("root"), "--id", "urn:x"), f"ocfl:{new('root')}::urn:x"),
                (("copy", "a.zarr", new("p"), "--package", "1M"), new("p") / "index.json"),
                (lambda: tessera.seal(path, bag=new("pybag")), new("pybag") / "data/a.zarr"),
                (lambda: tessera.seal_ocfl(path, new("pyroot"), "urn:x"), f"ocfl:{new('pyroot')}::urn:x"),
                (lambda: tessera.package(path, new("pyp"), "1M"), new("pyp") / "index.json")]

    def pending(self):
        """Commits two chunks that are not in place."""
        batch = self.folder / "a.zarr/.tessera/batch"
        batch.mkdir(parents=True, exist_ok=True)
        (batch / "journal").write_bytes(journal([(PUT, 0, 8, "c/0")], keeps_old=False).replace(b'"old":true', b'"old":false'))
        (batch / f"{1:016x}.0").write_bytes(np.array([99, 99], "<i4").tobytes())

    def test_committed_edits_are_in_every_copy(self):
        import tessera

        for number in range(6):
            self.tessera("set", "a.zarr", "...", "7", "--quiet")
            self.pending()
            np.testing.assert_array_equal(tessera.open(self.folder / "a.zarr")[...], [99, 99, 7, 7])
            copy, result = self.copies(f"n{number}")[number]
            with self.subTest(number=number):
                self.tessera(*copy, "--quiet") if isinstance(copy, tuple) else copy()
                np.testing.assert_array_equal(tessera.open(result)[...], [99, 99, 7, 7])

    @unittest.skipIf(os.geteuid() == 0, "root may write anywhere")
    def test_where_they_cannot_be_finished_there_is_no_copy(self):
        self.pending()
        for folder in self.folder / "a.zarr", self.folder / "a.zarr/.tessera":
            folder.chmod(0o555)
            self.addCleanup(folder.chmod, 0o755)
        for copy, _ in self.copies("n")[:3]:
            self.refused(*copy, says="a batch of edits is pending")

    def test_what_a_seal_shows_to_be_changed_is_refused(self):
        import tessera

        self.tessera("seal", "a.zarr", "--quiet")
        chunk = self.folder / "a.zarr/c/0"
        good = chunk.read_bytes()
        for content in b"\1" + good[1:], None:
            chunk.unlink() if content is None else chunk.write_bytes(content)
            for number, (copy, result) in enumerate(self.copies("n")):
                with self.subTest(number=number, content=content):
                    if isinstance(copy, tuple):
                        self.assertIn(self.run_program(*copy).returncode, (1, 2, 3))
                    else:
                        self.assertRaises(tessera.Error, copy)
        self.assertEqual(list(self.folder.glob("n-*")), [])
        chunk.write_bytes(good)
        for copy, result in self.copies("n"):
            self.tessera(*copy, "--quiet") if isinstance(copy, tuple) else copy()
            np.testing.assert_array_equal(tessera.open(result)[...], [7] * 4)

    def test_no_copy_lies_in_what_is_copied(self):
        for words in [("seal", "a.zarr", "--bagit", "a.zarr/b"), ("seal", "a.zarr", "--ocfl", "a.zarr/c/r", "--id", "urn:x"),
                      ("copy", "a.zarr", "a.zarr/p", "--package", "1M")]:
            self.refused(*words, says="which is copied; choose another place")
        self.assertEqual({p.name for p in (self.folder / "a.zarr").iterdir()} - {".tessera"}, {"c", "zarr.json"})

    def test_words_that_a_copy_does_not_take(self):
        import tessera

        (self.folder / "info.txt").write_text("A: b\n")
        for words in ("--sign", "key"), ("--readme",), ("--info", "info.txt"):
            self.refused("seal", "a.zarr", "--ocfl", "root", "--id", "urn:x", *words, says="--ocfl")
        self.refused("seal", "a.zarr", "--bagit", "bag", "--accept", "c/0", says="--accept")
        for words in {"ro_crate": True}, {"overwrite": True}, {"accept": ["c/0"]}:
            with self.assertRaisesRegex(tessera.InvalidArgument, "a bag leaves the data as they are"):
                tessera.seal(self.folder / "a.zarr", bag=self.folder / "bag", **words)

    def test_an_absent_chunk_is_told_of(self):
        import tessera

        self.make()
        (self.folder / "a.zarr/c/0/0").unlink()
        with self.assertRaisesRegex(tessera.Corrupt, "not sealed"):
            tessera.seal(self.folder / "a.zarr")


class OfOthers(BagTest):
    def test_each_sum_counts(self):
        bag = self.make()
        chunk = bag / "data/a.zarr/c/0/0"
        manifest = bag / "manifest-sha512.txt"
        total = hashlib.sha512(chunk.read_bytes()).hexdigest()
        manifest.write_text(manifest.read_text().replace(total, "0" * 128))
        self.assertEqual(set(self.found()), {("changed", "data/a.zarr/c/0/0"), ("changed", "manifest-sha512.txt")})
        manifest.write_text("".join(line + "\n" for line in lines_of(manifest) if "c/0/0" not in line))
        self.assertIn("every manifest", self.found()[("damage", "data/a.zarr/c/0/0")])

    def test_a_hole_is_named_and_nothing_is_fetched(self):
        bag = self.make()
        (bag / "fetch.txt").write_text("http://127.0.0.1:9/x 10 data/a.zarr/c/0/0\n")
        self.write_manifests(bag)
        self.assertEqual(self.found(code=0), {})
        (bag / "data/a.zarr/c/0/0").unlink()
        found = self.found()
        self.assertIn("hole", found.pop(("damage", "data/a.zarr/c/0/0")))
        self.assertLessEqual({kind for kind, _ in found}, {"absent", "note"})
        (bag / "fetch.txt").write_text("http://127.0.0.1:9/x 10 data/other\n")
        self.assertIn("no manifest", self.found()[("damage", "data/other")])
        (bag / "fetch.txt").write_text("what\n")
        self.assertIn(("damage", "fetch.txt"), self.found())

    def test_nothing_outside_is_read(self):
        secret = self.folder / "secret"
        secret.write_text("mine")
        bag = self.make()
        total = hashlib.sha512(b"mine").hexdigest()
        for name in "../secret", str(secret), "data/../../secret", "~/secret", "bagit.txt", "data/", "data//x":
            self.write_manifests(bag)
            with (bag / "manifest-sha512.txt").open("a") as manifest:
                manifest.write(f"{total}  {name}\n")
            with self.subTest(name=name):
                self.assertIn("not looked at", self.found()[("damage", "manifest-sha512.txt")])
        # Neither is it through a link, which would show whether the file has the sum.
        (bag / "data/link").symlink_to(secret)
        self.write_manifests(bag)
        self.assertIn(("changed", "data/link"), self.found())

    def test_hostile_lists(self):
        bag = self.make()
        for name, content in [("bagit.txt", b"x" * 100_000), ("manifest-sha512.txt", b"0" * 300_000),
                              ("manifest-sha512.txt", b"\0" * 1000), ("tagmanifest-md5.txt", b"\xff\xfe\n"),
                              ("fetch.txt", b" - \n"), ("bagit.txt", b"BagIt-Version: 1.0\nTag-File-Character-Encoding: EBCDIC\n")]:
            old = (bag / name).read_bytes() if (bag / name).exists() else None
            (bag / name).write_bytes(content)
            with self.subTest(name=name):
                self.assertIn(("damage", name), self.found())
            (bag / name).unlink() if old is None else (bag / name).write_bytes(old)
        self.assertEqual(self.found(code=0), {})


if __name__ == "__main__":
    main()
