"""Servers that answer what is not so, or without an end: the command says what came, in bounded memory, and ends."""

import gzip
import json
import os
import unittest
import unittest.mock
import urllib.parse

import numpy as np

import program
import remote
import test_memory

PAGE = b"<html>app</html>\n"


def listing(keys=(), prefixes=(), more=""):
    keys = "".join(f"<Contents><Key>{key}</Key><Size>3</Size></Contents>" for key in keys)
    prefixes = "".join(f"<CommonPrefixes><Prefix>{prefix}</Prefix></CommonPrefixes>" for prefix in prefixes)
    more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{more}</NextContinuationToken>" if more else ""
    return f'<?xml version="1.0"?>\n<ListBucketResult xmlns="x"><Name>b</Name>{keys}{prefixes}{more}</ListBucketResult>\n'.encode()


def question(request):
    """The path of a request, and what follows it."""
    url = urllib.parse.urlsplit(request.path)
    return urllib.parse.unquote(url.path), dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))


class HostileTest(remote.InBucket, program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.values = np.arange(100, dtype="<i4").reshape(10, 10)
        self.save("a.npy", self.values)
        for name, words in {"v2": ["--format", "v2"], "v3": ["--format", "v3"]}.items():
            super(remote.InBucket, self).run_program("import", "a.npy", f"bucket/{name}", "--chunks", "5,5", "--fill", "-7",
                                                     "--codec", "none", "--quiet", *words)
        self.http = self.double.origin + "/files"

    def answers(self, function):
        self.double.faults.answer = function

    def lists(self, page):
        """Lets page(prefix, token) answer what asks for a listing."""
        def answer(request):
            _, query = question(request)
            if "list-type" not in query:
                return False
            return request.send(200, page(query["prefix"], query.get("continuation-token", "")), {})

        self.answers(answer)

    # ---- listings of S3

    def test_what_is_no_listing(self):
        whole = listing(["v3/zarr.json"], ["v3/c/"])
        for body in (PAGE, b"", b'{"keys":[]}', b'<?xml version="1.0"?><Error><Code>InternalError</Code></Error>', whole[:-20],
                     whole.replace(b"ListBucketResult", b"ListAllMyBucketsResult"), b"<a>" * 100_000):
            self.lists(lambda prefix, token, body=body: body)
            self.refused("copy", "s3://bucket/v3", "copy", "--quiet", says=["s3://bucket/v3", "no listing"])
            self.refused("info", "s3://bucket/v3", says=["no listing"])
        self.lists(lambda prefix, token: listing(["v3/zarr.json"], more=" ").replace(b"> <", b"><"))
        self.refused("copy", "s3://bucket/v3", "copy", "--quiet", says=["IsTruncated"])
        self.assertFalse((self.folder / "copy").exists())

    def test_a_server_that_knows_no_delimiter(self):
        keys = sorted(str(file.relative_to(self.bucket)) for file in self.bucket.rglob("*") if file.is_file())
        self.lists(lambda prefix, token: listing([key for key in keys if key.startswith(prefix)]))
        self.tessera("copy", "s3://bucket/v3", "copy", "--quiet")
        np.testing.assert_array_equal(self.exported("copy"), self.values)

    def test_pages_without_an_end(self):
        pages = {"the same token": lambda prefix, token: listing([prefix + "a"], more="T"),
                 "tokens in a circle": lambda prefix, token: listing([prefix + f"{token}a"],
                                                                     more={"": "1", "1": "2", "2": "3", "3": "1"}[token]),
                 "the same again": lambda prefix, token: listing([prefix + "a", prefix + "b"], more=str(int(token or 0) + 1))}
        for why, page in pages.items():
            with self.subTest(why):
                self.lists(page)
                self.refused("info", "s3://bucket/v3", says=["s3://bucket/v3", "never ends"])
                self.refused("rm", "s3://bucket/v3", says=["never ends"])
        self.assertTrue((self.bucket / "v3/zarr.json").exists())

    def test_folders_that_contain_themselves(self):
        self.lists(lambda prefix, token: listing([prefix + "note"], [prefix + "a/", prefix + "b/"]))
        for words in (["tree", "s3://bucket/g"], ["copy", "s3://bucket/g", "copy"], ["info", "s3://bucket/g"],
                      ["rm", "s3://bucket/g", "--recursive"]):
            self.refused(*words, says=["contain themselves"])

    # ---- what is not there

    def test_a_page_for_what_is_not_there(self):
        for body, headers, what in ((PAGE, {}, "text/html, 17 bytes"), (PAGE, {"Content-Type": "text/html"}, "text/html, 17 bytes"),
                                    (b"", {}, "0 bytes")):
            def answer(request, body=body, headers=headers):
                path, _ = question(request)
                return False if (self.bucket / path.removeprefix("/files/")).is_file() else request.send(200, body, headers)

            self.answers(answer)
            for words in (["get", self.http + "/v2"], ["digest", self.http + "/v3"], ["info", self.http + "/nothing"],
                          ["tree", self.http]):
                self.refused(*words, says=[self.double.origin, what, "answers 200 for what is not there"])
        # A journal that is damaged, at a server that says what is not there.
        self.double.faults.__init__()
        (self.bucket / "v2/.tessera/batch").mkdir(parents=True)
        (self.bucket / "v2/.tessera/batch/journal").write_bytes(PAGE)
        self.refused("get", self.http + "/v2", says=["journal", "damaged"])

    def test_packed_answers(self):
        def answer(request, wanted=""):
            path, _ = question(request)
            file = self.bucket / path.removeprefix("/files/").removeprefix("/bucket/")
            if not file.is_file() or wanted not in path:
                return False
            return request.send(200, gzip.compress(file.read_bytes()), {"Content-Encoding": "gzip"})

        self.answers(answer)
        for place in (self.http, "s3://bucket"):
            for name in ("v2", "v3"):
                self.refused("get", f"{place}/{name}", says=["Content-Encoding: gzip", f"{place}/{name}/"])
        self.answers(lambda request: answer(request, "/c/"))
        self.refused("get", self.http + "/v3", says=["Content-Encoding: gzip", "/c/"])

    def test_names_that_cannot_be(self):
        array = json.loads((self.bucket / "v3/zarr.json").read_text())
        group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
        named = {name: array for name in ("../x", "good", "a//b", "/etc")}
        (self.bucket / "g").mkdir()
        (self.bucket / "v3").rename(self.bucket / "g/good")
        (self.bucket / "g/zarr.json").write_text(json.dumps(
            {**group, "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": named}}))
        place = self.http + "/g"
        result = self.run_program("tree", place)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("good", result.stdout)
        for name in ("../x", "a//b", "/etc"):
            self.assertRegex(result.stderr, rf"{place}/zarr.json: .*{name}")
        self.tessera("get", place + "/good", "0,0")
        result = self.run_program("copy", place, "copy", "--quiet")
        np.testing.assert_array_equal(self.exported("copy/good"), self.values)

    # ---- where a server leads

    def test_redirections_lead_no_further_inside(self):
        right = self.tessera("get", self.http + "/v2", "0,0")
        with remote.serving(self.folder) as other:
            def moves(to):
                def answer(request):
                    path = urllib.parse.urlsplit(request.path).path
                    request.send(302, b"", {"Location": to + path.removeprefix("/files")})
                other.faults.answer = answer

            moves(self.http)
            self.assertEqual(self.tessera("get", other.origin + "/files/v2", "0,0"), right)
            for to in ("http://169.254.169.254", "http://[fe80::1]", "http://[::ffff:169.254.1.1]"):
                moves(to)
                self.refused("get", other.origin + "/files/v2", says=["is not followed", "link-local"])
            # What is public is reached through a proxy here.
            through = {"http_proxy": other.origin, "no_proxy": "127.0.0.1,localhost,10.0.0.1", "NO_PROXY": ""}
            port = self.double.origin.rsplit(":", 1)[1]
            self.double.reset()
            for to in (self.http, f"http://localhost:{port}/files", f"http://127.1:{port}/files", f"http://[::ffff:7f00:1]:{port}",
                       "http://10.0.0.1"):
                moves(to)
                self.refused("get", "http://example.org/files/v2", env=through, says=["is not followed"])
            self.assertEqual(self.double.requests, [])

    # ---- memory

    def test_documents_without_an_end(self):
        def only(answer, part):
            return lambda request: answer(request) if part in request.path else False

        with unittest.mock.patch.dict(os.environ, self.environment):
            for answer in remote.ENDLESS:
                for place in (self.http, "s3://bucket"):
                    self.answers(answer)
                    self.measure(16, "get", place + "/v3")
                    self.answers(only(answer, "/c/"))
                    self.measure(16, "get", place + "/v3")
                if answer is not remote.endless_header:
                    self.answers(only(answer, "list-type"))
                    self.measure(16, "info", "s3://bucket/v3")

    def measure(self, budget, *words):
        ended = test_memory.Ended([*words, "--max-memory", f"{budget}M"], self.folder)
        self.assertEqual(ended.code, 2, ended.shown)
        if program.FEWER == 1:  # a sanitizer keeps what was freed
            self.assertLess(ended.peak, budget + test_memory.idle() + 16, ended.shown)


if __name__ == "__main__":
    program.main()
