"""Keys for S3 that services give for a time: roles, web identities, SSO, containers, machines. The services are our own,
on this machine; botocore's variables name them.
"""

import hashlib
import json
import os
import pathlib
import time
import unittest

import numpy as np

import program
import remote


class RemoteKeysTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.save("a.npy", np.arange(100 * 90, dtype="<i4").reshape(100, 90))
        self.tessera("import", "a.npy", "data/v2", "--format", "v2", "--chunks", "10,9", "--quiet")
        self.right = self.tessera("digest", "data/v2").split()[0]
        context = remote.serving(self.folder / "data")
        self.double = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.services = self.double.services
        self.home = self.folder / "home"
        (self.home / ".aws").mkdir(parents=True)
        base = self.double.origin + "/services"
        self.seen = {"HOME": str(self.home), "AWS_CONFIG_FILE": "", "AWS_SHARED_CREDENTIALS_FILE": "",
                     "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_ENDPOINT_URL": "",
                     "AWS_ENDPOINT_URL_S3": self.double.origin, "AWS_ENDPOINT_URL_STS": base + "/sts",
                     "AWS_ENDPOINT_URL_SSO": base + "/sso", "AWS_EC2_METADATA_SERVICE_ENDPOINT": base + "/machine"}

    def run_program(self, *words, env=None, **options):
        seen = {**self.double.environment, **self.seen} if hasattr(self, "seen") else {}
        return super().run_program(*words, env={**os.environ, **seen, **(env or {})}, **options)

    def config(self, text):
        (self.home / ".aws" / "config").write_text(text)

    def reads(self, way, **environment):
        """The keys that were given for reading, once."""
        self.services.given.clear()
        digest = self.tessera("digest", "s3://bucket/v2", env=environment).split()[0]
        self.assertEqual(digest, self.right)
        self.assertEqual(self.services.given, [way] if way else [])

    def test_roles(self):
        keys = f"aws_access_key_id = {remote.KEY_ID}\naws_secret_access_key = {remote.SECRET}\n"
        self.config(f"[profile base]\n{keys}[profile work]\nrole_arn = arn:aws:iam::1:role/w\nsource_profile = base\n"
                    "external_id = x y&z\n[profile own]\nrole_arn = arn:aws:iam::1:role/o\nsource_profile = own\n" + keys +
                    "[profile environment]\nrole_arn = arn:aws:iam::1:role/e\ncredential_source = Environment\n"
                    "[profile a]\nrole_arn = arn:1\nsource_profile = b\n[profile b]\nrole_arn = arn:2\nsource_profile = a\n"
                    "[profile lost]\nrole_arn = arn:1\nsource_profile = nobody\n"
                    "[profile code]\nrole_arn = arn:1\nsource_profile = base\nmfa_serial = 7\n")
        self.reads("role arn:aws:iam::1:role/w x y&z", AWS_PROFILE="work")
        self.reads("role arn:aws:iam::1:role/o", AWS_PROFILE="own")
        self.refused("digest", "s3://bucket/v2", env={"AWS_PROFILE": "a"}, says="leads back")
        self.refused("digest", "s3://bucket/v2", env={"AWS_PROFILE": "lost"}, says="nobody is not there")
        self.refused("digest", "s3://bucket/v2", env={"AWS_PROFILE": "code"}, says="mfa_serial")
        self.refused("digest", "s3://bucket/v2", env={"AWS_PROFILE": "none"}, says='AWS_PROFILE is "none"')
        self.double.keys.pop(remote.KEY_ID)
        line = self.refused("digest", "s3://bucket/v2", env={"AWS_PROFILE": "work"}, says=["403", "InvalidAccessKeyId"])
        self.assertNotIn(remote.SECRET, line)

    def test_chains_of_roles(self):
        self.config("[profile far]\nrole_arn = arn:far\nsource_profile = near\n"
                    "[profile near]\nrole_arn = arn:near\nsource_profile = base\n"
                    f"[profile base]\naws_access_key_id = {remote.KEY_ID}\naws_secret_access_key = {remote.SECRET}\n")
        digest = self.tessera("digest", "s3://bucket/v2", env={"AWS_PROFILE": "far"}).split()[0]
        self.assertEqual(digest, self.right)
        self.assertEqual(self.services.given, ["role arn:near", "role arn:far"])

    def test_web_identities(self):
        token = pathlib.Path(self.path("token"))
        token.write_text("a web token\n")
        self.reads("web arn:web", AWS_WEB_IDENTITY_TOKEN_FILE=str(token), AWS_ROLE_ARN="arn:web")
        self.config(f"[profile web]\nrole_arn = arn:p\nweb_identity_token_file = {token}\n")
        self.reads("web arn:p", AWS_PROFILE="web")
        token.write_text("another")
        line = self.refused("digest", "s3://bucket/v2", env={"AWS_PROFILE": "web"}, says="InvalidIdentityToken")
        self.assertNotIn("another", line)
        token.unlink()
        self.refused("digest", "s3://bucket/v2", env={"AWS_PROFILE": "web"}, says=str(token))

    def test_sso(self):
        self.config("[profile sso]\nsso_session = corp\nsso_account_id = 12\nsso_role_name = read\n"
                    "[sso-session corp]\nsso_region = eu-test-1\nsso_start_url = https://x\n")
        self.refused("digest", "s3://bucket/v2", env={"AWS_PROFILE": "sso"}, says="aws sso login --sso-session corp")
        cache = self.home / ".aws" / "sso" / "cache"
        cache.mkdir(parents=True)

        def write(token, end):
            (cache / (hashlib.sha1(b"corp").hexdigest() + ".json")).write_text(
                json.dumps({"accessToken": token, "expiresAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))}))

        write("an sso token", time.time() + 3600)
        self.reads("sso 12 read", AWS_PROFILE="sso")
        write("an sso token", time.time() - 5)
        self.refused("digest", "s3://bucket/v2", env={"AWS_PROFILE": "sso"}, says="has expired")
        write("hush", time.time() + 3600)
        line = self.refused("digest", "s3://bucket/v2", env={"AWS_PROFILE": "sso"}, says=["401", "aws sso login"])
        self.assertNotIn("hush", line)

    def test_containers(self):
        token = pathlib.Path(self.path("token"))
        token.write_text("a container's token\n")
        address = self.double.origin + "/services/container"
        self.reads("container", AWS_CONTAINER_CREDENTIALS_FULL_URI=address,
                   AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(token))
        self.reads("container", AWS_CONTAINER_CREDENTIALS_FULL_URI=address,
                   AWS_CONTAINER_AUTHORIZATION_TOKEN="a container's token")
        self.refused("digest", "s3://bucket/v2", env={"AWS_CONTAINER_CREDENTIALS_FULL_URI": address}, says="403")
        self.refused("digest", "s3://bucket/v2", env={"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.org/x"},
                     says="by https")

    def test_machines(self):
        self.refused("digest", "s3://bucket/v2", says="no credentials")  # the variable forbids it
        self.reads("machine", AWS_EC2_METADATA_DISABLED="")
        # Public data are read without a question to the machine.
        self.assertTrue([path for _, path, *_ in self.double.requests if "/latest/" in path])
        self.double.faults.public = True
        before = len(self.double.requests)
        self.reads(None, AWS_EC2_METADATA_DISABLED="")
        self.assertGreater(len(self.double.requests), before)
        self.assertFalse([path for _, path, *_ in self.double.requests[before:] if "/latest/" in path])
        # Keys that are configured go before those of the machine.
        self.double.faults.public = False
        self.reads(None, AWS_EC2_METADATA_DISABLED="", AWS_ACCESS_KEY_ID=remote.KEY_ID,
                   AWS_SECRET_ACCESS_KEY=remote.SECRET)
        # A service that is not there costs a second at most, and the error names what is missing.
        self.refused("digest", "s3://bucket/v2", says="no credentials", env={
            "AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9"})

    def test_keys_are_renewed(self):
        self.config("[profile w]\nrole_arn = arn:w\nsource_profile = base\n"
                    f"[profile base]\naws_access_key_id = {remote.KEY_ID}\naws_secret_access_key = {remote.SECRET}\n")
        self.services.life = 200  # less than five minutes: they are fetched again for each request
        digest = self.tessera("digest", "s3://bucket/v2", env={"AWS_PROFILE": "w"}).split()[0]
        self.assertEqual(digest, self.right)
        self.assertGreater(len(self.services.given), 10)

    def test_expired_keys_are_renewed(self):
        # The server says that keys have expired before their time: those that give keys for a time give new ones.
        self.config("[profile role]\nrole_arn = arn:w\nsource_profile = base\n"
                    "[profile sso]\nsso_start_url = https://x\nsso_account_id = 12\nsso_role_name = read\n"
                    f"[profile base]\naws_access_key_id = {remote.KEY_ID}\naws_secret_access_key = {remote.SECRET}\n")
        cache = self.home / ".aws" / "sso" / "cache"
        cache.mkdir(parents=True)
        (cache / (hashlib.sha1(b"https://x").hexdigest() + ".json")).write_text(json.dumps({"accessToken": "an sso token"}))
        token = pathlib.Path(self.path("token"))
        token.write_text("a web token\n")
        ways = {"role arn:w": {"AWS_PROFILE": "role"}, "sso 12 read": {"AWS_PROFILE": "sso"},
                "web arn:web": {"AWS_WEB_IDENTITY_TOKEN_FILE": str(token), "AWS_ROLE_ARN": "arn:web"},
                "container": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": self.double.origin + "/services/container",
                              "AWS_CONTAINER_AUTHORIZATION_TOKEN": "a container's token"},
                "machine": {"AWS_EC2_METADATA_DISABLED": ""}}
        for way, environment in ways.items():
            for code in remote.EXPIRED:
                with self.subTest(way, code=code):
                    self.services.given.clear()
                    self.double.faults.expired = {"ASIA0": code}
                    digest = self.tessera("digest", "s3://bucket/v2", env=environment).split()[0]
                    self.assertEqual(digest, self.right)
                    self.assertEqual(self.services.given, [way, way])
        # New ones that are no better are not asked for again and again.
        self.double.faults.expired = {f"ASIA{i}": "ExpiredToken" for i in range(1000)}
        self.services.given.clear()
        line = self.refused("digest", "s3://bucket/v2", env=ways["role arn:w"],
                            says=["s3://bucket/v2", "ExpiredToken", "the keys have expired"])
        self.assertNotIn("secret/", line)
        self.assertLess(len(self.services.given), 30)

    def test_a_wrong_clock_and_a_wrong_region(self):
        # The server's answer says what is right: the request is signed again for that, and all after it at once.
        own = {"AWS_ACCESS_KEY_ID": remote.KEY_ID, "AWS_SECRET_ACCESS_KEY": remote.SECRET}
        faults = self.double.faults
        for clock, region in (0, "eu-other-2"), (7200, ""), (-7200, "eu-other-2"):
            with self.subTest(clock=clock, region=region):
                self.double.reset()
                self.tessera("digest", "s3://bucket/v2", env=own)
                usual = len(self.double.requests)
                faults.clock, faults.region = clock, region
                self.double.reset()
                self.assertEqual(self.tessera("digest", "s3://bucket/v2", env=own).split()[0], self.right)
                self.assertLess(len(self.double.requests) - usual, 20)
                self.tessera("import", "a.npy", "s3://bucket/off", "--chunks", "50,90", "--overwrite", "--quiet", env=own)
                self.tessera("set", "s3://bucket/off", "0, 0", "7", "--quiet", env=own)
                self.assertEqual(self.tessera_json("get", "s3://bucket/off", "0, :2", env=own), [7, 1])
                faults.clock, faults.region = 0, ""
        # What can be no part of a host's name is no region.
        for faults.region in "eu-other-2/x", "x" * 40:
            self.refused("digest", "s3://bucket/v2", env=own, says=["s3://bucket/v2", "AuthorizationHeaderMalformed"])

    def test_keys_expire_at_work(self):
        self.config("[profile w]\nrole_arn = arn:w\nsource_profile = base\n"
                    f"[profile base]\naws_access_key_id = {remote.KEY_ID}\naws_secret_access_key = {remote.SECRET}\n")
        self.services.lives = 300
        environment = {"AWS_PROFILE": "w"}
        self.tessera("import", "a.npy", "s3://bucket/many", "--chunks", "5,4", "--quiet", env=environment)
        self.assertEqual(self.tessera("digest", "s3://bucket/many", env=environment).split()[0], self.right)
        self.tessera("set", "s3://bucket/many", ":,:", "7", "--quiet", env=environment)
        self.assertEqual(self.tessera_json("get", "s3://bucket/many", "99, 80:", env=environment), [7] * 10)
        self.assertGreater(len(self.services.given), 5)  # four commands, and two of them outlive their keys

    def test_expired_keys_without_new_ones(self):
        self.double.faults.expired = {remote.KEY_ID: "ExpiredToken"}
        own = {"AWS_ACCESS_KEY_ID": remote.KEY_ID, "AWS_SECRET_ACCESS_KEY": remote.SECRET}
        line = self.refused("digest", "s3://bucket/v2", env=own,
                            says=["the keys have expired; set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"])
        self.assertNotIn(remote.SECRET, line)
        keys = f"aws_access_key_id = {remote.KEY_ID}\naws_secret_access_key = {remote.SECRET}\n"
        self.config(f"[profile here]\n{keys}[profile role]\nrole_arn = arn:r\nsource_profile = here\n")
        self.refused("import", "a.npy", "s3://bucket/new", env={"AWS_PROFILE": "here"},
                     says="expired; get new ones for the profile here of AWS")
        self.assertFalse((self.folder / "data" / "new").exists())
        self.refused("digest", "s3://bucket/v2", env={"AWS_PROFILE": "role"},
                     says=["the role arn:r", "ExpiredToken", "get new ones for the profile here of AWS"])

    def test_credential_process_is_asked_again(self):
        process = pathlib.Path(self.path("process"))
        new = json.dumps({"Version": 1, "AccessKeyId": remote.KEY_ID, "SecretAccessKey": remote.SECRET})
        old = json.dumps({"Version": 1, "AccessKeyId": "AKOLD", "SecretAccessKey": "hush"})
        process.write_text(f"#!/bin/sh\necho x >>runs\nif [ $(wc -l <runs) -gt 1 ]; then echo '{new}'; else echo '{old}'; fi\n")
        process.chmod(0o755)
        self.config(f"[default]\ncredential_process = {process}\n")
        self.double.faults.expired = {"AKOLD": "ExpiredToken"}
        self.assertEqual(self.tessera("digest", "s3://bucket/v2").split()[0], self.right)
        self.assertEqual(pathlib.Path(self.path("runs")).read_text(), "x\nx\n")
        process.write_text(f"#!/bin/sh\necho '{old}'\n")
        line = self.refused("digest", "s3://bucket/v2", says=["expired", "credential_process gives no new ones"])
        self.assertNotIn("hush", line)


if __name__ == "__main__":
    program.main()
