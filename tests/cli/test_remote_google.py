"""Arrays in Google Cloud Storage, by its XML API: signed with HMAC keys, or with a token that gcloud's file, a service account
or the machine gives; written on conditions that name generations. The server is our own.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import numpy as np

import program
import remote

WRITER = """
import sys
sys.path.insert(0, {module!r})
import tessera
array = tessera.open("gs://bucket/shared", "r+")
for i in range(int(sys.argv[1])):
    def change(part):
        part += 1
    array.update(slice(0, 12), change)
"""


class RemoteGoogleTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.values = np.arange(100 * 90, dtype="<i4").reshape(100, 90)
        self.save("a.npy", self.values)
        (self.folder / "bucket").mkdir()
        self.tessera("import", "a.npy", "bucket/v2", "--format", "v2", "--chunks", "10,9", "--quiet")
        self.right = self.tessera("digest", "bucket/v2").split()[0]
        context = remote.serving(self.folder / "bucket")
        self.double = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.double.google = True
        self.services = self.double.services
        self.home = self.folder / "home"
        self.home.mkdir()
        self.seen = {"STORAGE_EMULATOR_HOST": self.double.origin, "HOME": str(self.home), "no_proxy": "*",
                     "XDG_CACHE_HOME": self.double.cache.name, "NO_GCE_CHECK": "true"}
        self.hmac = {"GS_ACCESS_KEY_ID": remote.KEY_ID, "GS_SECRET_ACCESS_KEY": remote.SECRET}

    def run_program(self, *words, env=None, **options):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("AWS_ACCESS", "AWS_SECRET", "GOOGLE_", "CLOUDSDK_", "GS_"))}
        seen = self.seen if hasattr(self, "seen") else {}
        return super().run_program(*words, env={**clean, **seen, **(env or {})}, **options)

    def reads(self, way, **environment):
        self.services.given.clear()
        self.assertEqual(self.tessera("digest", "gs://bucket/v2", env=environment).split()[0], self.right)
        self.assertEqual(self.services.given, [way] if way else [])

    def file_of(self, name="adc.json", **members):
        file = self.folder / name
        file.write_text(json.dumps({"token_uri": self.double.origin + "/services/google/token", **members}))
        return str(file)

    # ---- who asks

    def test_hmac(self):
        self.reads(None, **self.hmac)
        line = self.refused("digest", "gs://bucket/v2", env={**self.hmac, "GS_SECRET_ACCESS_KEY": "hush"},
                            says=["gs://bucket/v2", "SignatureDoesNotMatch"])
        self.assertNotIn("hush", line)
        # A host without a scheme, as Google's libraries take it.
        self.reads(None, **self.hmac, STORAGE_EMULATOR_HOST=self.double.origin.removeprefix("http://"))

    def test_tokens(self):
        self.double.tokens.add("ya29.mine")
        self.reads(None, GOOGLE_OAUTH_ACCESS_TOKEN="ya29.mine")
        line = self.refused("digest", "gs://bucket/v2", env={"GOOGLE_OAUTH_ACCESS_TOKEN": "ya29.hush"},
                            says=["the keys have expired", "GOOGLE_OAUTH_ACCESS_TOKEN"])
        self.assertNotIn("hush", line)

    def test_the_file_of_gcloud(self):
        user = {"type": "authorized_user", "client_id": "a client", "client_secret": "a/secret", "refresh_token": "1//fresh"}
        file = self.file_of(**user)
        self.reads("user", GOOGLE_APPLICATION_CREDENTIALS=file)
        usual = self.home / ".config" / "gcloud"
        usual.mkdir(parents=True)
        os.rename(file, usual / "application_default_credentials.json")
        self.reads("user")
        self.reads("user", HOME="/nowhere", CLOUDSDK_CONFIG=str(usual))
        line = self.refused("digest", "gs://bucket/v2", says=["invalid_grant", "gcloud auth application-default login"], env={
            "GOOGLE_APPLICATION_CREDENTIALS": self.file_of(**{**user, "refresh_token": "hush"})})
        self.assertNotIn("hush", line)
        for members, says in (({"type": "external_account"}, "external_account"), ({**user, "client_id": ""}, "lacks client_id"),
                              ({**user, "token_uri": "http://example.org/hush"}, "token_uri is not of https")):
            self.refused("digest", "gs://bucket/v2", says=says,
                         env={"GOOGLE_APPLICATION_CREDENTIALS": self.file_of(**members)})
        self.refused("digest", "gs://bucket/v2", says="nothing.json",
                     env={"GOOGLE_APPLICATION_CREDENTIALS": self.path("nothing.json")})

    def test_service_accounts(self):
        key = self.path("key.pem")
        subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", key],
                       check=True, capture_output=True)
        shown = subprocess.run(["openssl", "rsa", "-in", key, "-noout", "-modulus"], check=True, capture_output=True, text=True)
        self.services.modulus = int(shown.stdout.split("=")[1], 16)
        account = {"type": "service_account", "client_email": "tests@project", "private_key": pathlib.Path(key).read_text()}
        self.reads("service", GOOGLE_APPLICATION_CREDENTIALS=self.file_of(**account))
        self.refused("digest", "gs://bucket/v2", says="invalid_grant", env={
            "GOOGLE_APPLICATION_CREDENTIALS": self.file_of(**{**account, "client_email": "other@project"})})
        line = self.refused("digest", "gs://bucket/v2", says="private_key", env={
            "GOOGLE_APPLICATION_CREDENTIALS": self.file_of(**{**account, "private_key": "hush"})})
        self.assertNotIn("hush", line)

    def test_machines_and_public_data(self):
        host = self.double.origin.removeprefix("http://")
        self.reads("machine", NO_GCE_CHECK="", GCE_METADATA_HOST=host)
        self.refused("digest", "gs://bucket/v2", says=["no credentials were found", "GOOGLE_APPLICATION_CREDENTIALS"])
        self.double.faults.public = True
        self.double.reset()
        self.reads(None, NO_GCE_CHECK="", GCE_METADATA_HOST=host)
        self.assertFalse([path for _, path, *_ in self.double.requests if "computeMetadata" in path])
        self.reads(None)
        digest = self.tessera("digest", "gs+anon://bucket/v2", env=self.hmac).split()[0]
        self.assertEqual(digest, self.right)

    def test_expired_tokens_are_renewed(self):
        self.services.given.clear()
        file = self.file_of(type="authorized_user", client_id="a client", client_secret="a/secret", refresh_token="1//fresh")
        given = self.services.google_token

        def first_is_worth_nothing(*asked):
            given(*asked)
            self.double.tokens.discard("ya29.0")

        self.services.google_token = first_is_worth_nothing
        self.assertEqual(self.tessera("digest", "gs://bucket/v2", env={"GOOGLE_APPLICATION_CREDENTIALS": file}).split()[0],
                         self.right)
        self.assertEqual(self.services.given, ["user", "user"])

    def test_what_is_wrong(self):
        self.refused("info", "gs://", says="expected gs://BUCKET/KEY", env=self.hmac)
        self.refused("info", "gs://other/a", says="gs://other: there is no bucket of this name", env=self.hmac)

    # ---- writing

    def test_writing(self):
        self.tessera("import", "a.npy", "gs://bucket/new", "--chunks", "10,9", "--quiet", env=self.hmac)
        self.tessera("set", "gs://bucket/new", "1:3, 1:3", "7", "--quiet", env=self.hmac)
        self.tessera("attrs", "gs://bucket/new", "set", "unit", "K", env=self.hmac)
        self.tessera("append", "gs://bucket/new", "a.npy", "--quiet", env=self.hmac)
        expected = np.concatenate([self.values, self.values])
        expected[1:3, 1:3] = 7
        np.testing.assert_array_equal(self.exported("bucket/new"), expected)
        self.assertIn("full", self.tessera("info", "gs://bucket/new", env=self.hmac))
        self.assertIn("gs://bucket/new", self.tessera("tree", "gs://bucket/new", env=self.hmac))
        self.assertIn("K", self.tessera("attrs", "gs://bucket/new", "get", "unit", env=self.hmac))
        # Conditions name generations, never ETags, which are ignored there.
        puts = [headers for (method, path, _), headers in zip(self.double.requests, self.double.headers) if method == "PUT"]
        self.assertFalse([headers for headers in puts if "If-Match" in headers or "If-None-Match" in headers])
        self.assertTrue([headers for headers in puts if int(headers.get("x-goog-if-generation-match", 0)) > 1])
        self.assertFalse([name for headers in self.double.headers for name in headers if name.lower().startswith("x-amz-")])
        self.tessera("rm", "gs://bucket/new", env=self.hmac)
        self.assertFalse([file for file in (self.folder / "bucket" / "new").rglob("*") if file.is_file()])

    def test_a_server_that_ignores_conditions(self):
        self.double.faults.ignore_conditions = True
        self.refused("set", "gs://bucket/v2", "1:3, 1:3", "7", says="--no-locks", env=self.hmac)
        self.tessera("set", "gs://bucket/v2", "1:3, 1:3", "7", "--single-writer", "--quiet", env=self.hmac)
        self.assertEqual(self.exported("bucket/v2")[2, 2], 7)

    def test_no_increment_is_lost(self):
        self.tessera("create", "gs://bucket/shared", "--shape", "12", "--dtype", "i4", "--chunks", "12", "--quiet", env=self.hmac)
        faults = self.double.faults
        faults.lose = faults.busy = faults.reset = faults.pause = 0.05
        faults.most = 10 ** 9
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_ACCESS", "AWS_SECRET"))}
        script = WRITER.format(module=program.module_folder())
        writers = [subprocess.Popen([sys.executable, "-c", script, "25"],
                                    env={**clean, **self.seen, **self.hmac}) for _ in range(4)]
        self.assertEqual([writer.wait(timeout=300) for writer in writers], [0] * 4)
        faults.lose = faults.busy = faults.reset = faults.pause = 0
        self.assertEqual(self.exported("bucket/shared").tolist(), [100] * 12)


if __name__ == "__main__":
    program.main()
