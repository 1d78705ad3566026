"""Arrays behind HTTP and in S3: what is read is what lies there, or the command fails; through a server of our own that
checks signatures and ranges, and whose answers go wrong when a test says so.
"""

import contextlib
import json
import os
import pathlib
import pty
import re
import subprocess
import unittest

import numpy as np

import program
import remote


class RemoteTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.double = None
        self.values = np.arange(100 * 90, dtype="<i4").reshape(100, 90)
        self.save("a.npy", self.values)
        for name, words in {"v2": ["--format", "v2", "--chunks", "10,9"],
                            "v3": ["--format", "v3", "--chunks", "10,9", "--shard", "50,45"],
                            "z": ["--format", "zmeta", "--chunks", "10,9"]}.items():
            self.tessera("import", "a.npy", f"g/{name}", *words, "--quiet")
        context = remote.serving(self.folder)
        self.double = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.places = {"s3": "s3://bucket", "http": self.double.origin + "/files"}

    def run_program(self, *words, env=None, **options):
        seen = self.double.environment if self.double else {}
        return super().run_program(*words, env={**os.environ, **seen, **(env or {})}, **options)

    def digest(self, path, *words, **options):
        return self.tessera("digest", path, *words, **options).split()[0]

    # ---- what lies there

    def test_every_golden_array(self):
        right = {}
        every = 1 if "TESSERA_REMOTE_ALL" in os.environ else 12
        for document in sorted(program.GOLDEN.rglob("[.zm_]*"))[::every]:
            is_array = document.name in (".zarray", "__zmeta__", "meta") or (
                document.name == "zarr.json" and '"array"' in document.read_text())
            result = is_array and super().run_program("digest", document.parent)
            if result and result.returncode == 0:
                right[document.parent.relative_to(program.GOLDEN)] = result.stdout.split()[0]
        self.assertGreater(len(right), 20)
        with remote.serving(program.GOLDEN) as double:
            for name, digest in program.chosen(right.items()):
                for base in ("s3://bucket", double.origin + "/files"):
                    got = subprocess.run([program.PROGRAM, "digest", f"{base}/{name}"], capture_output=True, text=True,
                                         env={**os.environ, **double.environment})
                    self.assertEqual(got.stdout.split()[:1], [digest], f"{base}/{name}\n{got.stderr}")

    def test_regions(self):
        draws = np.random.default_rng(3)
        for _ in range(12 // program.FEWER + 1):
            rows = sorted(draws.integers(0, 101, 2))
            columns = sorted(draws.integers(0, 91, 2))
            text = f"{rows[0]}:{rows[1]},{columns[0]}:{columns[1]}:{draws.integers(1, 12)}"
            local = self.tessera("get", "g/v2", text)
            for place in self.places.values():
                for name in ("v2", "v3", "z"):
                    self.assertEqual(self.tessera("get", f"{place}/g/{name}", text), local, text)

    def test_copies_and_checks(self):
        for kind, place in self.places.items():
            self.tessera("copy", f"{place}/g/v3", f"{kind}.zarr", "--quiet")
            self.tessera("diff", f"{place}/g/v2", f"{kind}.zarr")
            self.tessera("verify", f"{place}/g/v3")
            self.tessera("export", f"{place}/g/z", f"{kind}.npy", "--quiet")
            np.testing.assert_array_equal(np.load(self.path(f"{kind}.npy")), self.values)

    def test_references_lead_to_urls(self):
        """Whole values and ranges of them; only where a person allows it."""
        own = json.loads(self.tessera("refs", "g/v2"))["refs"]
        npy = json.loads(self.tessera("refs", "a.npy"))["refs"]
        for place in self.places.values():
            refs = {f"v2/{key}": [at[0].replace(str(self.folder), place), *at[1:]] if isinstance(at, list) else at
                    for key, at in own.items()}
            refs |= {f"npy/{key}": [at[0].replace(str(self.folder), place), *at[1:]] if isinstance(at, list) else at
                     for key, at in npy.items()}
            self.assertTrue(any(isinstance(at, list) and at[0].startswith(place) for at in refs.values()), refs)
            (self.folder / "far.refs.json").write_text(json.dumps({"version": 1, "refs": refs}))
            for name in "v2", "npy":
                self.refused("digest", f"far.refs.json/{name}", says="--allow-outside")
                self.double.reset()
                self.assertEqual(self.tessera("digest", f"far.refs.json/{name}", "--allow-outside").split()[0], self.digest("g/v2"))
                self.assertTrue(self.double.requests)
        refs["v2/0.0"] = [place + "/g/v2/gone"]
        (self.folder / "far.refs.json").write_text(json.dumps({"version": 1, "refs": refs}))
        self.refused("digest", "far.refs.json/v2", "--allow-outside", says="it is not there")

    def test_array_files(self):
        large = np.random.default_rng(1).normal(size=(700, 900))
        np.savez(self.path("m.npz"), x=self.values, large=large)
        np.savez_compressed(self.path("d.npz"), x=self.values, large=large)
        flipped = bytearray((self.folder / "m.npz").read_bytes())
        flipped[len(flipped) // 2] ^= 1
        (self.folder / "flipped.npz").write_bytes(flipped)
        (self.folder / "bad.npz").write_bytes((self.folder / "m.npz").read_bytes()[:-30])
        for place in self.places.values():
            self.assertEqual(self.digest(f"{place}/a.npy"), self.digest("a.npy"))
            for name in "m.npz", "d.npz":
                self.assertEqual([m["name"] for m in self.tessera_json("info", f"{place}/{name}")["header"]["members"]],
                                 ["x.npy", "large.npy"])
                for member in "x", "large":
                    self.assertEqual(self.digest(f"{place}/{name}::{member}"), self.digest(f"{name}::{member}"))
                self.tessera("copy", f"{place}/{name}", "all.zarr", "--overwrite", "--quiet")
                np.testing.assert_array_equal(self.exported("all.zarr/large"), large)
                self.refused("info", f"{place}/{name}::y", says="it has: x, large")
                self.assertIn("sound (2 arrays", self.tessera("verify", f"{place}/{name}"))
            self.refused("info", f"{place}/bad.npz", says="bad.npz")
            self.assertIn("sound (1 array", self.tessera("verify", f"{place}/a.npy"))
            self.assertIn("CRC", self.tessera("verify", f"{place}/flipped.npz", code=1))

    def test_a_query_goes_into_no_log(self):
        place = self.places["http"]
        self.assertEqual(self.digest(f"{place}/a.npy?sig=SECRET"), self.digest("a.npy"))
        self.tessera("copy", f"{place}/g/v2?sig=SECRET", "copied", "--quiet")
        for file in (self.folder / "copied").rglob("*"):
            if file.is_file():
                self.assertNotIn(b"SECRET", file.read_bytes(), file)

    def test_a_query_goes_everywhere(self):
        self.double.faults.wants_query = "sig=SECRET"
        place = self.places["http"]
        line = self.refused("digest", f"{place}/g/v2?sig=WRONG", says="403")
        self.assertNotIn("WRONG", line)
        right = self.digest("g/v2")
        for i, (name, words) in enumerate({"g/v2": [], "g/v3": ["--format", "v2"], "g/z": ["--format", "v3"]}.items()):
            self.tessera("copy", f"{place}/{name}?sig=SECRET", f"c{i}", "--quiet", *words)
            self.assertEqual(self.digest(f"c{i}"), right)
        self.tessera("export", f"{place}/g/v2?sig=SECRET", "c.npy", "--quiet")
        self.tessera("import", f"{place}/a.npy?sig=SECRET", "i.zarr", "--quiet")
        self.assertEqual(self.digest("i.zarr"), right)
        self.tessera("verify", f"{place}/g/v2?sig=SECRET")
        self.tessera("diff", f"{place}/g/v2?sig=SECRET", "g/v2")

    def test_secrets_are_shown_and_written_nowhere(self):
        """A signature in a URL, and a password, which is refused: in no output, no file, and no name of a file."""
        place = self.places["http"]
        self.tessera("create", "local.zarr", "--shape", "0,90", "--dtype", "<i4", "--quiet")
        for path in (f"{place}/g/v2?sig=hush", f"{place}/none?sig=hush",
                     place.replace("://", "://me:hush@") + "/g/v2", place.replace("://", "://me:hush@") + "/a.npy?sig=hush"):
            for words in (["info"], ["tree"], ["digest"], ["stats"], ["verify"], ["dims"], ["refs"], ["log"], ["view"], ["repair"],
                          ["reduce", "r.zarr", "--axis", "0", "--with", "mean"], ["pyramid", "p.zarr"], ["copy", "c.zarr"],
                          ["unstack", "u/{}.npy", "--axis", "0"], ["snapshot", "create", "s"], ["set", "0,0", "1"],
                          ["create", "--shape", "3", "--dtype", "i4"], ["attrs"], ["get", "999"], ["diff", "a.npy"]):
                for json_words in [], ["--json"]:
                    result = self.run_program(words[0], path, *words[1:], *json_words)
                    self.assertNotIn("hush", result.stdout + result.stderr, words)
                    if "://me:" in path:
                        self.assertEqual(result.returncode, 2, words)
            for words in (["append", "local.zarr", path, "--axis", "0"], ["calc", "k.zarr", "a + 1", f"a={path}"],
                          ["concat", path, path, "cc.json", "--virtual"], ["copy", "a.npy", path],
                          ["plan", "copy", path, "j.zarr", "--out", "j.json"]):
                result = self.run_program(*words)
                self.assertNotIn("hush", result.stdout + result.stderr, words)
        for file in self.folder.rglob("*"):
            self.assertNotIn("hush", file.name)
            if file.is_file() and file.name != "j.json":
                self.assertNotIn(b"hush", file.read_bytes(), file)
        # Workers need the query, so the job has it, and nobody else may read it.
        self.assertIn("sig=hush", (self.folder / "j.json").read_text())
        self.assertEqual((self.folder / "j.json").stat().st_mode & 0o777, 0o600)
        self.tessera("work", "j.json", "--quiet")
        self.tessera("finish", "j.json", "--quiet")
        self.assertEqual(self.digest("j.zarr"), self.digest("g/v2"))
        result = self.run_program("plan", "copy", f"{place}/g/v2?sig=hush", "again.zarr", "--out", "again.json")
        self.assertIn("again.json holds the query of a URL, which may be a secret", result.stderr)

    def test_absent_and_verbose(self):
        (self.folder / "g" / "v2" / "3.3").unlink()
        right = self.digest("g/v2")
        self.double.faults.forbid_absent = True
        for place in self.places.values():
            self.refused("digest", f"{place}/g/v2", says="403")
            self.assertEqual(self.digest(f"{place}/g/v2", env={"TESSERA_ABSENT": "403"}), right)
            self.assertEqual(self.tessera("digest", f"{place}/g/v2", "--absent", "403").split()[0], right)
        self.refused("digest", "s3://bucket/g/v2", "--absent", "404", says=["--absent", "401 or 403"])
        self.double.faults.forbid_absent = False
        result = self.run_program("digest", self.places["http"] + "/g/v2?sig=SECRET", "--verbose")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"tessera: GET http://\S+/g/v2/5\.5: 200, \d+ bytes in \d+ ms\n")
        self.assertRegex(result.stderr, r"tessera: GET http://\S+/g/v2/3\.3: 404, ")
        self.assertNotIn("SECRET", result.stderr)
        result = self.run_program("verify", "s3://bucket/g/v2", "--verbose")
        self.assertIn("GET s3://bucket/g/v2/5.5", result.stderr)
        for secret in (remote.SECRET, "Signature", "Credential"):
            self.assertNotIn(secret, result.stderr)

    def test_a_damaged_chunk_is_found(self):
        chunk = self.folder / "g" / "v2" / "3.3"
        chunk.write_bytes(chunk.read_bytes()[:-2])
        for place in self.places.values():
            self.assertIn("3.3", self.tessera("verify", f"{place}/g/v2", code=1))

    # ---- what is there

    def test_groups(self):
        self.assertIn("v3", self.tessera("tree", "s3://bucket/g"))
        self.assertEqual(self.tessera_json("info", "s3://bucket/g/v2")["chunks_stored"], 100)

    def test_a_server_of_files_lists_nothing(self):
        place = self.places["http"] + "/g/v2"
        (self.folder / "g" / "v2" / "0.0").unlink()
        self.assertIsNone(self.tessera_json("info", place)["chunks_stored"])
        self.assertIn("not known", self.tessera("info", place))
        self.assertEqual(self.tessera_json("info", place, "--exact")["chunks_stored"], 99)
        self.assertIn("99 of 100 chunks stored", self.tessera("verify", place))

    def test_what_metadata_name_is_found_without_listing(self):
        for format, name in (("v2", ".zarray"), ("v3", "zarr.json")):
            for path in ("named/deep/a", "named/b", "levels/0", "levels/1"):
                self.tessera("import", "a.npy", f"{format}/{path}", "--format", format, "--chunks", "50,50", "--quiet")
            named, levels = self.folder / format / "named", self.folder / format / "levels"
            documents = {str(file.relative_to(named).parent): json.loads(file.read_text()) for file in named.rglob(name)}
            multiscales = [{"datasets": [{"path": "0"}, {"path": "1"}]}]
            if format == "v2":
                for folder in (named, levels):
                    (folder / ".zgroup").write_text('{"zarr_format": 2}')
                (named / ".zmetadata").write_text(json.dumps({"zarr_consolidated_format": 1, "metadata": {
                    ".zgroup": {"zarr_format": 2}, **{f"{path}/.zarray": each for path, each in documents.items()}}}))
                (levels / ".zattrs").write_text(json.dumps({"multiscales": multiscales}))
            else:
                group = {"zarr_format": 3, "node_type": "group"}
                (named / "zarr.json").write_text(json.dumps({**group, "attributes": {}, "consolidated_metadata": {
                    "kind": "inline", "must_understand": False, "metadata": documents}}))
                (levels / "zarr.json").write_text(json.dumps({**group, "attributes": {"ome": {"multiscales": multiscales}}}))
            for folder, arrays in (("named", ["b", "deep/a"]), ("levels", ["0", "1"])):
                place, copied = f"{self.places['http']}/{format}/{folder}", f"copied/{format}/{folder}"
                tree = self.tessera("tree", place)
                self.assertIn("the server lists nothing", tree)
                for array in arrays:
                    self.assertIn(array.split("/")[-1], tree)
                self.assertIs(self.tessera_json("tree", place)["listed"], False)
                result = self.run_program("copy", place, copied)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("the server lists nothing", result.stderr)
                for array in arrays:
                    np.testing.assert_array_equal(self.exported(f"{copied}/{array}"), np.load(self.path("a.npy")))
                self.assertNotIn("listed", self.tessera_json("tree", f"{format}/{folder}"))
            # Below a folder without any of these nothing can be known.
            self.refused("tree", f"{self.places['http']}/{format}", says=["has to be named"])
            (levels / (".zattrs" if format == "v2" else "zarr.json")).write_text(json.dumps({
                "zarr_format": 3, "node_type": "group", "multiscales": [{"datasets": [{"path": "../../x"}]}],
                "attributes": {"ome": {"multiscales": [{"datasets": [{"path": "../../x"}]}]}}}))
            result = self.run_program("tree", f"{self.places['http']}/{format}/levels")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stderr, rf"/{format}/levels/\S+: names what is left out: .*\.\./\.\./x")

    def test_names_that_a_url_encodes(self):
        names = ["a b", "c#d", "e?f", "g%20h", "deep/ü&+"]
        for name in names:
            self.tessera("create", f"odd/{name}", "--shape", "9", "--dtype", "i4", "--format", "v3", "--quiet")
            self.tessera("set", f"odd/{name}", "...", len(name), "--quiet")
        group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
        for above in ("odd", "odd/deep"):
            (self.folder / above / "zarr.json").write_text(json.dumps(group))
        self.tessera("consolidate", "odd", "--quiet")
        right = self.tessera("digest", "odd").replace("odd", "")
        for place in (f"{self.places['s3']}/odd", f"{self.places['http']}/odd", f"{self.places['http']}/odd?sig=SECRET"):
            self.assertEqual(self.digest(place), right.split()[0])

    # ---- refusals

    def test_nothing_is_written_over_http(self):
        before = {file: file.read_bytes() for file in self.folder.rglob("*") if file.is_file()}
        for place in (self.places["http"],):
            for words in (["set", f"{place}/g/v2", "0,0", "1"], ["append", f"{place}/g/v2", "a.npy"],
                          ["resize", f"{place}/g/v2", "5,5"], ["rm", f"{place}/g/v2"],
                          ["import", "a.npy", f"{place}/new"], ["create", f"{place}/new", "--shape", "3"],
                          ["attrs", "set", f"{place}/g/v2", "a", "1"], ["edit", f"{place}/g/v2", "--script", "a.npy"],
                          ["seal", f"{place}/g/v2"], ["snapshot", "create", f"{place}/g/v2", "s"]):
                result = self.run_program(*words)
                self.assertEqual(result.returncode, 2, f"{words}\n{result.stdout}{result.stderr}")
                self.assertNotIn("Traceback", result.stderr)
        after = {file: file.read_bytes() for file in self.folder.rglob("*") if file.is_file()}
        self.assertEqual(before, after)

    def test_reasons(self):
        self.refused("info", "s3://nobucket/x", says="there is no bucket of this name")
        self.refused("info", "s3:///x", says="expected s3://BUCKET/KEY")
        self.refused("info", "s3://bucket/nope", says="no array")
        self.refused("info", "https://", says="expected a host")
        for place in "http:/u:PW@h/x", "https:u:PW@h/x?sig=PW", "s3:/u:PW@b/x", "http:///u:PW@h/x?to=http://v:PW@i", "htp://u:PW@h/x":
            self.assertNotIn("PW", self.refused("get", place))
        self.refused("get", "s3://bucket/g/v2", env={"AWS_ACCESS_KEY_ID": "AKOTHER"}, says="InvalidAccessKeyId")
        line = self.refused("get", "s3://bucket/g/v2", env={"AWS_SECRET_ACCESS_KEY": "hush-hush"}, says="SignatureDoesNotMatch")
        self.assertNotIn("hush", line)
        for words in ("rm", "s3://bucket/g/v2"), ("import", "a.npy", "s3://bucket/new"), ("append", "s3://bucket/g/v2", "a.npy"):
            line = self.refused(*words, env={"AWS_SECRET_ACCESS_KEY": "hush-hush"}, says="the secret is not that of the key")
            self.assertNotIn("absent", line)
        # A wrong key is never a chunk that is not there.
        for wrong in {"AWS_SECRET_ACCESS_KEY": "hush-hush"}, {"AWS_ACCESS_KEY_ID": "AKOTHER"}:
            self.refused("get", "s3://bucket/g/v2", "--absent", "403", env=wrong, says="AWS_SECRET_ACCESS_KEY")
        self.refused("get", "s3+anon://bucket/g/v2", says=["403", "no credentials"])
        self.refused("get", "http://127.0.0.1:9/x", says="127.0.0.1:9")

    def test_public_and_private(self):
        self.double.faults.public = True
        self.assertEqual(self.digest("s3+anon://bucket/g/v2"), self.digest("g/v2"))
        self.double.faults.public = False
        for words in (["credentials", {"AWS_PROFILE": "work"}], ["process", {"AWS_PROFILE": "asks"}]):
            config = self.folder / "aws-config"
            config.write_text("[profile asks]\ncredential_process = " + self.path("keys") + "\n"
                              f"[profile work]\naws_access_key_id = {remote.KEY_ID}\n"
                              f"aws_secret_access_key = {remote.SECRET}\n")
            keys = pathlib.Path(self.path("keys"))
            keys.write_text("#!/bin/sh\n" f"echo '{{\"Version\": 1, \"AccessKeyId\": \"{remote.KEY_ID}\", "
                            f"\"SecretAccessKey\": \"{remote.SECRET}\"}}'\n")
            keys.chmod(0o755)
            environment = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_CONFIG_FILE": str(config), **words[1]}
            self.assertEqual(self.digest("s3://bucket/g/v2", env=environment), self.digest("g/v2"))

    def test_403_is_not_absence(self):
        (self.folder / "g" / "z" / "__zdata__" / "3.3.blosc").unlink()
        self.double.faults.forbid_absent = True
        for place in self.places.values():
            self.refused("get", f"{place}/g/z", says=["403", "--absent 403 takes this for absent"])
            self.tessera("get", f"{place}/g/z", env={"TESSERA_ABSENT": "403"})

    # ---- faults

    def test_faults_give_right_values_or_errors(self):
        faults = self.double.faults
        right = self.digest("g/v2")
        for setting in ({"cut": 0.3}, {"busy": 0.3}, {"reset": 0.2}, {"cut": 0.2, "busy": 0.2, "reset": 0.1}):
            for place in self.places.values():
                for name in ("v2", "v3"):
                    faults.__init__()
                    for switch, value in setting.items():
                        setattr(faults, switch, value)
                    self.assertEqual(self.digest(f"{place}/g/{name}"), right, setting)
        faults.__init__()
        faults.ignore_ranges = True
        self.assertEqual(self.digest("s3://bucket/g/v3"), right)
        faults.__init__()
        faults.wrong_range = True
        self.save("long.npy", np.arange(100_000))
        self.refused("get", self.places["http"] + "/long.npy", "0:3", says="the server answers")
        faults.__init__()
        faults.forget_length = True
        self.refused("digest", "s3://bucket/g/v2", says="does not state how long")

    def test_redirections(self):
        with remote.serving(self.folder) as other:
            other.faults.redirect = self.places["http"] + "/g/v2/.zarray"
            self.refused("digest", f"{other.origin}/files/x", says="")
            for target in ("file:///etc/passwd", "ftp://127.0.0.1/x"):
                other.faults.redirect = target
                self.refused("info", f"{other.origin}/files/x", says="is not followed")

    # ---- costs

    def test_requests(self):
        def requests(*words):
            self.double.reset()
            self.tessera(*words)
            return len(self.double.requests)

        chunks = requests("digest", "s3://bucket/g/v2")
        self.assertLessEqual(chunks, 100 + 12)
        # A copy asks for each chunk once, also where nothing lists them.
        for kind, place in self.places.items():
            requests("copy", f"{place}/g/v2", f"once-{kind}", "--quiet")
            chunks = [path for _, path, _ in self.double.requests if re.search(r"/g/v2/\d+\.\d+$", path)]
            self.assertEqual((len(chunks), len(set(chunks))), (100, 100), kind)
            self.tessera("diff", "g/v2", f"once-{kind}")
        # One element: the documents by which an array is known, and its chunk or shard, since the last bytes of that,
        # which hold its index, are all of it.
        for place in self.places.values():
            for name in "v2", "v3", "z":
                self.assertLessEqual(requests("get", f"{place}/g/{name}", "0,0"), 8, name)

    def large(self, name, *words):
        """An array of 16 MiB in two chunks or shards, and how many bytes these have."""
        if not (self.folder / "large.npy").exists():
            self.save("large.npy", np.random.default_rng(1).integers(0, 16, (4096, 4096), dtype="u1"))
        self.tessera("import", "large.npy", name, "--format", "v3", "--quiet", *words)
        return sum(file.stat().st_size for file in (self.folder / name / "c").rglob("*") if file.is_file())

    def asked(self, name, *words):
        """Requests for chunks, and the bytes of all answers."""
        self.double.reset()
        before = self.double.bytes
        self.tessera(*words)
        return [each for each in self.double.requests if f"/{name}/c/" in each[1]], self.double.bytes - before

    def test_parts_of_a_chunk_are_fetched_once(self):
        for name, words in {"none": ["--chunks", "2048,4096", "--codec", "none"],
                            "blosc": ["--chunks", "2048,4096", "--codec", "blosc"],
                            "shards": ["--chunks", "256,256", "--shard", "2048,4096"]}.items():
            stored = self.large(name, *words)
            right = self.digest(name)
            for place in self.places.values():
                requests, sent = self.asked(name, "digest", f"{place}/{name}", "--max-memory", "24M")
                self.assertEqual(self.digest(f"{place}/{name}", "--max-memory", "24M"), right)
                self.assertLess(sent, 1.2 * stored, name)
                self.assertEqual(len(requests), len(set(requests)), name)
                self.assertLess(len(requests), stored / 2**20 + 6, name)  # of a MiB each
        # Chunks that no longer are where blocks end.
        requests, _ = self.asked("none", "copy", f"{self.places['http']}/none", "other", "--chunks", "768,768",
                                 "--max-memory", "48M", "--quiet")
        self.assertEqual(len(requests), len(set(requests)))
        self.tessera("diff", "none", "other")
        # A part of an array costs no more than that.
        _, sent = self.asked("none", "copy", f"{self.places['http']}/none", "part", "--sel", ":512, :512",
                             "--chunks", "128,128", "--max-memory", "24M", "--quiet")
        self.assertLess(sent, 5 << 20)

    def test_little_of_a_large_chunk(self):
        """Of chunks that are not compressed, or block by block, what is wanted is asked for, however much else there is."""
        kinds = {"none": ["--codec", "none"], "blosc": ["--codec", "blosc:lz4:5:shuffle:65536"], "zstd": ["--codec", "zstd"]}
        self.save("larger.npy", np.random.default_rng(1).integers(0, 16, (5120, 8192), dtype="u1"))
        for name, words in kinds.items():  # in chunks of 20 MiB: that a request takes so long is not believed
            self.tessera("import", "larger.npy", name, "--format", "v3", "--chunks", "2560,8192", "--quiet", *words)
            stored = sum(file.stat().st_size for file in (self.folder / name / "c").rglob("*") if file.is_file())
            for text in ("1000,2000", "5:4000:1000, 7:9", "2559:2562, 8000:8010"):
                right = self.tessera("get", name, text)
                for place in self.places.values():
                    _, sent = self.asked(name, "get", f"{place}/{name}", text)
                    self.assertEqual(self.tessera("get", f"{place}/{name}", text), right)
                    if name == "zstd":  # whole
                        self.assertLess(sent, 1.1 * stored, text)
                    elif text != "5:4000:1000, 7:9":
                        self.assertLess(sent, stored / 5, (name, text))

    def test_chunks_that_are_replaced_between_their_parts(self):
        self.large("old", "--chunks", "2048,4096", "--codec", "blosc:lz4:5:shuffle:65536")
        array = np.load(self.folder / "large.npy")
        self.save("new.npy", array[::-1])
        self.tessera("import", "new.npy", "new", "--format", "v3", "--chunks", "2048,4096", "--codec",
                     "blosc:lz4:5:shuffle:65536", "--quiet")
        chunk = self.folder / "old" / "c" / "0" / "0"
        values = {kind: (self.folder / kind / "c" / "0" / "0").read_bytes() for kind in ("old", "new")}
        self.double.faults.delay = 0.03

        def replace(request):  # before each part but the first
            if request.path.endswith("/c/0/0") and not request.headers.get("Range", "").startswith("bytes=0-"):
                chunk.write_bytes(values["new"])
            return False

        for place in self.places.values():
            chunk.write_bytes(values["old"])
            self.double.faults.answer = replace
            self.assertEqual(self.tessera("get", f"{place}/old", "1000,2000").split(), [str(array[-1001, 2000])])
            self.double.faults.answer = None

    def test_a_copy_of_shards_asks_for_many_inner_chunks_at_once(self):
        self.large("shards", "--chunks", "256,256", "--shard", "2048,4096")
        for kind, place in self.places.items():
            requests, _ = self.asked("shards", "copy", f"{place}/shards", f"copied-{kind}", "--quiet")
            self.assertLessEqual(len(requests), 2 * 2)
            self.tessera("diff", "shards", f"copied-{kind}")
            requests, _ = self.asked("shards", "diff", "shards", f"{place}/shards")
            self.assertLessEqual(len(requests), 2 * 2)

    def test_what_is_recoded_is_asked_for_while_blocks_are_written(self):
        self.large("many", "--chunks", "1024,1024")
        self.double.faults.delay = 0.05
        for words in (["copy", "{}/many", "recoded", "--codec", "zstd:9", "--quiet"], ["digest", "{}/many"],
                      ["diff", "many", "{}/many"]):
            requests, _ = self.asked("many", *(word.format(self.places["http"]) for word in words), "--threads", "1")
            self.assertEqual(len(requests), len(set(requests)), words)
            self.assertEqual(len({path for _, path, _ in requests}), 16, words)
            self.assertGreater(self.double.most_in_flight, 12, words)  # so many are there while it is opened
        self.tessera("diff", "many", "recoded")

    def test_verified_copies_ask_once(self):
        for name, words in {"many": ["--chunks", "1024,1024"], "shards": ["--chunks", "256,256", "--shard", "2048,4096"]}.items():
            stored = self.large(name, *words)
            for place in self.places.values():
                requests, sent = self.asked(name, "copy", f"{place}/{name}", "copied", "--verify", "--quiet", "--overwrite")
                self.assertEqual(len(requests), len(set(requests)), name)
                self.assertLess(sent, 1.1 * stored, name)
                self.tessera("diff", name, "copied")
        requests, sent = self.asked("many", "copy", "s3://bucket/many", "s3://bucket/again", "--verify", "--quiet")
        self.assertLess(sum(method == "GET" for method, _, _ in requests), 16 + 1)
        self.tessera("diff", "many", "again")
        # Damage is found in what is copied.
        file = self.folder / "many" / "c" / "1" / "2"
        file.write_bytes(file.read_bytes()[:-9])
        self.refused("copy", "s3://bucket/many", "damaged", "--verify", "--quiet", says=["chunk (1, 2)", "c/1/2"])

    def test_no_room_for_temporary_files(self):
        self.large("none", "--chunks", "2048,4096", "--codec", "none")
        right = self.digest("none")
        self.assertEqual(self.digest("s3://bucket/none", "--max-memory", "24M", env={"TMPDIR": self.path("nowhere")}), right)

    def test_what_is_waited_for(self):
        self.double.faults.delay = 4.5
        terminal, inside = pty.openpty()
        with subprocess.Popen([program.PROGRAM, "copy", "s3://bucket/g/v3", "c.zarr"], cwd=self.folder, stdin=inside,
                              stdout=subprocess.DEVNULL, stderr=inside,
                              env={**os.environ, **self.double.environment}) as process:
            os.close(inside)
            text = b""
            with contextlib.suppress(OSError):  # its end
                while piece := os.read(terminal, 4096):
                    text += piece
                    if re.search(rb"B in \d+ requests", text):
                        self.double.faults.delay = 0.05
            self.assertEqual(process.wait(), 0)
        os.close(terminal)
        self.assertRegex(text.decode(), r"waiting for s3://bucket/g/v3/\S+")
        self.assertRegex(text.decode(), r"B in \d+ requests")

    def test_many_at_once(self):
        self.save("b.npy", np.arange(1 << 12, dtype="<i8"))
        self.tessera("import", "b.npy", "b", "--format", "v2", "--chunks", "16", "--codec", "none", "--quiet")
        self.double.reset()
        self.double.faults.delay = 0.02
        self.tessera("digest", "s3://bucket/b", "--threads", "1")
        self.assertGreater(self.double.most_in_flight, 16)


if __name__ == "__main__":
    unittest.main()
