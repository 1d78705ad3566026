"""Chunks in S3 are listed by few requests, several at once, whatever folders their names have, and never wrongly."""

import json
import unittest

import numpy as np

import program
import remote


class RemoteListingTest(remote.InBucket, program.ProgramTest):
    SHAPES = {"v3": ((200, 2), "1,2"), "v2": ((200, 2), "1,2"), "cube": ((10, 6, 5), "2,1,1"), "few": ((9_000, 2), "1,2")}

    def make(self, name):
        """In v3 each chunk lies in a folder of its own."""
        shape, chunks = self.SHAPES[name]
        values = np.arange(np.prod(shape), dtype="<i4").reshape(shape) + 1
        if name == "few":  # most are absent, others lie together
            values[1:] = 0
            values[4_000:4_100] = 5
            values[-1] = 9
        self.save("a.npy", values)
        self.tessera("import", "a.npy", self.bucket / name, "--quiet", "--chunks", chunks,
                     "--format", "v2" if name == "v2" else "v3")
        return self.bucket / name

    def setUp(self):
        super().setUp()
        self.double.page = 20

    def listings(self, *words):
        """What a command says, and how many pages of listings it takes."""
        self.double.reset()
        text = self.tessera(*words)
        return text, sum("list-type" in path for _, path, _ in self.double.requests)

    def counts(self, place):
        stored = json.loads(self.tessera("info", place, "--json"))
        return {key: value for key, value in stored.items() if "stored" in key or "chunks" in key}

    def test_a_page_for_many_folders(self):
        self.double.faults.delay = 0.01
        for name, chunks in (("v3", 200), ("v2", 200), ("cube", 150), ("few", 102)):
            local = self.counts(self.make(name))
            text, pages = self.listings("info", f"s3://bucket/{name}", "--json")
            self.assertEqual({key: json.loads(text)[key] for key in local}, local, name)
            self.assertLess(pages, 1.7 * chunks / self.double.page + 12, name)
            self.assertGreater(self.double.most_in_flight, 2, name)
            text, pages = self.listings("copy", f"s3://bucket/{name}", f"{name}.copy", "--quiet")
            self.assertLess(pages, 1.7 * chunks / self.double.page + 12, name)
            self.tessera("diff", self.bucket / name, f"{name}.copy")
            self.tessera("verify", f"s3://bucket/{name}")

    def test_servers_that_know_less(self):
        local = self.counts(self.make("few"))
        flat = self.counts(self.make("v2"))
        self.double.faults.ignore_start = True
        self.assertEqual(self.counts("s3://bucket/few"), local)
        self.assertEqual(self.counts("s3://bucket/v2"), flat)
        self.double.faults.ignore_start = False

        def folders_unasked(request):  # lists folders whether or not this is wanted
            if "list-type" not in request.path or "delimiter" in request.path:
                return False
            query = dict(remote.urllib.parse.parse_qsl(request.path.partition("?")[2]))
            request.list("bucket", {**query, "delimiter": "/"})

        def no_start(request):
            return request.error(501, "NotImplemented") if "start-after" in request.path else False

        cube = self.counts(self.make("cube"))
        for answer in (folders_unasked, no_start):
            self.double.faults.answer = answer
            self.assertEqual(self.counts("s3://bucket/cube"), cube)

    def test_what_lies_among_chunks(self):
        self.make("v3")
        (self.bucket / "v3/c/3/0").unlink()
        for key in ("v3/c/note.txt", "v3/c/3/0/deeper", "v3/c/4/0x", "v3/c/700/0", "v3/c/5/6/7/8"):
            (self.bucket / key).parent.mkdir(parents=True, exist_ok=True)
            (self.bucket / key).write_bytes(b"1")
        result = self.run_program("verify", "s3://bucket/v3", "--json")
        # What was stored once is noted in folders of this machine alone.
        here = self.run_program("verify", self.bucket / "v3", "--json")
        found, here = (sorted((each["key"], each["kind"]) for each in json.loads(each.stdout)["findings"]
                              if each["kind"] != "absent") for each in (result, here))
        self.assertEqual(found, here)

    def test_many_are_checked_at_once(self):
        self.make("v3")
        self.tessera("copy", self.bucket / "v3", self.bucket / "shards", "--shard", "50,2", "--quiet")
        self.double.faults.delay = 0.02
        for name, most in (("v3", 200), ("shards", 40)):
            self.double.reset()
            self.tessera("verify", f"s3://bucket/{name}")
            chunks = [path for method, path, _ in self.double.requests if "/c/" in path]
            self.assertLessEqual(len(chunks), most, name)
            if name == "v3":
                self.assertGreater(self.double.most_in_flight, 16)

    def test_versions_are_listed(self):
        """What tells dask whether an array is still the same costs a listing, not a request for each chunk."""
        self.make("v3")
        script = f"""
import sys
sys.path.insert(0, {program.module_folder()!r})
import tessera
print(tessera.open("s3://bucket/v3").__dask_tokenize__())
"""
        def token():
            self.double.reset()
            done = program.subprocess.run([program.sys.executable, "-c", script], env=self.environment, capture_output=True,
                                          text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        first = token()
        self.assertLess(len(self.double.requests), 1.7 * 200 / self.double.page + 20)
        self.assertEqual(token(), first)
        self.tessera("set", "s3://bucket/v3", "70,1", "5", "--quiet")
        self.assertNotEqual(token(), first)

    def test_removing(self):
        for name in "v3", "cube":
            self.make(name)
            _, pages = self.listings("rm", f"s3://bucket/{name}")
            self.assertLess(pages, 40, name)
            self.assertEqual([file for file in (self.bucket / name).rglob("*") if file.is_file()], [])

    def test_three_changed_chunks(self):
        """`sync` costs the listings and as many writes as there are changes."""
        self.make("v3")
        self.tessera("copy", "s3://bucket/v3", "s3://bucket/b", "--quiet")
        self.tessera("set", "s3://bucket/v3", "3:200:80", "--quiet", "--", "-1")
        self.double.reset()
        done = json.loads(self.tessera("sync", "s3://bucket/v3", "s3://bucket/b", "--json"))
        self.assertEqual((done["carried"], done["same"], done["erased"]), (3, 197, 0))
        chunks = [method for method, path, _ in self.double.requests if "/c/" in path]
        self.assertEqual(sorted(chunks), ["GET"] * 3 + ["PUT"] * 3)
        self.assertLess(len(self.double.requests), 2 * 1.7 * 200 / self.double.page + 50)
        self.tessera("diff", "s3://bucket/v3", "s3://bucket/b")


if __name__ == "__main__":
    unittest.main()
