"""`serve` of arrays in S3 and behind HTTP: a proxy that signs, hands chunks on as they are stored, and keeps secrets."""

import json
import os
import unittest

import numpy as np

import program
import remote
import serving


class RemoteServe(serving.ServeTest):
    def setUp(self):
        super().setUp()
        self.values = np.arange(40 * 30, dtype="<f4").reshape(40, 30)
        self.save("a.npy", self.values)
        (self.folder / "bucket").mkdir()
        for name, words in ("g/v2", ["--format", "v2"]), ("g/v3", ["--format", "v3"]), ("g/shards", ["--format", "v3", "--shard", "20,30"]):
            self.tessera("import", "a.npy", f"bucket/{name}", "--chunks", "10,15", "--quiet", *words)
        self.tessera("group", "bucket/g", "--format", "v3", "--quiet")
        context = remote.serving(self.folder / "bucket")
        self.double = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.environment = {**os.environ, **self.double.environment}

    def test_chunks_go_on_as_they_are_stored(self):
        server = self.serve("s3://bucket/g", "--no-token", env=self.environment)
        stored = (self.folder / "bucket/g/v2/1/1")
        stored = stored if stored.exists() else self.folder / "bucket/g/v2/1.1"
        self.assertEqual(server.get("v2/v2/1.1").body, stored.read_bytes())
        self.assertEqual(server.get("v3/v3/c/1/1").body, (self.folder / "bucket/g/v3/c/1/1").read_bytes())
        self.assertEqual(server.get("v3/shards/zarr.json").json()["shape"], [40, 30])
        self.assertEqual(server.get("v2/v2/9.9").status, 404)
        self.assertEqual(sorted(child["name"] for child in server.get("api/tree?path=").json()["children"]),
                         ["shards", "v2", "v3"])
        for name in "v2", "v3", "shards":  # by our own reading of what is served, in both formats
            for form in "v2", "v3":
                self.tessera("copy", f"{server.url}{form}/{name}", "got.npy", "--overwrite", "--quiet")
                np.testing.assert_array_equal(np.load(self.folder / "got.npy"), self.values)

    def test_changes_are_seen_and_nothing_is_written(self):
        server = self.serve("s3://bucket/g/v2", "--no-token", env=self.environment)
        before = server.get("v2/0.0")
        self.assertEqual(server.get("v2/0.0", If_None_Match=before.headers["ETag"]).status, 304)
        self.tessera("set", "bucket/g/v2", "0, 0", "7", "--quiet")
        after = server.get("v2/0.0", If_None_Match=before.headers["ETag"])
        self.assertEqual(after.status, 200)
        self.assertNotEqual(after.body, before.body)
        self.assertFalse([line for line in self.double.requests if "PUT" in str(line) or "DELETE" in str(line)])

    def test_secrets_stay_here(self):
        server = self.serve("s3://bucket/g", env=self.environment)
        self.double.faults.busy = 1
        texts = [server.get(path).body for path in ("v2/v2/.zarray", "v2/v2/0.0", "api/info?path=v3", "api/tree?path=")]
        self.double.faults.busy = 0
        texts.append(server.stop()[1].encode())
        for text in texts:
            self.assertNotIn(remote.SECRET.encode(), text)
            self.assertNotIn(remote.KEY_ID.encode(), text)

    def test_behind_http_and_what_is_refused(self):
        server = self.serve(self.double.origin + "/files/g/v3", "--no-token")
        self.assertEqual(server.get("v3/c/0/0").body, (self.folder / "bucket/g/v3/c/0/0").read_bytes())
        self.save("bucket/x.npy", self.values)
        self.refused("serve", self.double.origin + "/files/x.npy", says="only arrays and groups of chunks")
        self.refused("serve", self.double.origin + "/files/none?sig=hush", says="/files/none")
        self.refused("serve", "s3://bucket/none", env=self.environment, says="s3://bucket/none")


if __name__ == "__main__":
    program.main()
