"""`seal --sign` and `verify --signers`, by ssh-keygen and minisign where these are installed."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import unittest

import numpy as np

from program import PROGRAM, ProgramTest, main, module_folder


def installed(name):
    return unittest.skipUnless(shutil.which(name), f"{name} is not installed")


class Signed(ProgramTest):
    def setUp(self):
        super().setUp()
        self.save("values.npy", np.arange(600, dtype="<i4").reshape(20, 30))
        self.tessera("import", "values.npy", "a.zarr", "--chunks", "10,10", "--format", "v3", "--codec", "none", "--quiet")

    def call(self, *words, **options):
        subprocess.run(words, cwd=self.folder, check=True, capture_output=True, **options)

    def ssh_key(self, name, passphrase=""):
        self.call("ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", name, "-f", name)
        public = (self.folder / f"{name}.pub").read_text()
        (self.folder / f"{name}.signers").write_text(f"{name}@example.org,*@old.example.org {public}")
        return name

    def texts(self, *words, code):
        """What verify found of the signature."""
        found = json.loads(self.run_program("verify", *words, "--json").stdout)
        self.assertEqual(found["sound"], code == 0)
        self.assertEqual(self.run_program("verify", *words).returncode, code)
        return [f["text"] for f in found["findings"] if f["key"] == ".tessera/sha256sums.txt"]

    def forge(self):
        """Changes an element and the list of sums, as somebody would who may write there and has no key."""
        chunk = self.folder / "a.zarr/c/0/0"
        old = hashlib.sha256(chunk.read_bytes()).hexdigest()
        chunk.write_bytes(b"\1" + chunk.read_bytes()[1:])
        manifest = self.folder / "a.zarr/.tessera/sha256sums.txt"
        manifest.write_text(manifest.read_text().replace(old, hashlib.sha256(chunk.read_bytes()).hexdigest()))


class Asked(Signed):
    def test_a_password_is_asked_for_where_it_is_seen(self):
        import pty

        (self.folder / "alice.key").write_text("untrusted comment: a key\n")
        program = self.folder / "bin/minisign"
        program.parent.mkdir()
        program.write_text('#!/bin/sh\nprintf "Password: " >&2\nread word\necho "$word" > "$7"\n')
        program.chmod(0o755)
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        child = subprocess.Popen([PROGRAM, "seal", "a.zarr", "--sign", "alice.key", "--quiet"], cwd=self.folder, stdin=end,
                                 stderr=subprocess.PIPE, env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"})
        os.close(end)
        self.addCleanup(lambda: (child.kill(), child.communicate()))
        asked = b""
        while not asked.endswith(b"Password: "):
            piece = child.stderr.read1(100)
            self.assertTrue(piece, asked)
            asked += piece
        os.write(terminal, b"secret\n")
        self.assertEqual(child.wait(), 0)
        self.assertEqual((self.folder / "a.zarr/.tessera/sha256sums.txt.minisig").read_text(), "secret\n")


@installed("ssh-keygen")
class BySsh(Signed):
    def test_what_is_not_signed_is_due(self):
        self.ssh_key("alice")
        self.tessera("verify", "a.zarr", "--record", "--quiet")
        checked = ("verify", "a.zarr", "--due", "90d", "--signers", "alice.signers")
        self.assertIn("nothing is signed", self.tessera(*checked, code=1))
        self.tessera("seal", "a.zarr", "--sign", "alice", "--quiet")
        self.tessera("verify", "a.zarr", "--record", "--quiet")
        self.assertIn("not due", self.tessera(*checked))

    def test_a_signature_that_goes_is_told(self):
        self.ssh_key("alice")
        self.tessera("seal", "a.zarr", "--sign", "alice", "--quiet")
        self.tessera("set", "a.zarr", "0,0", "7", "--break-seal", "--quiet")
        signature = self.folder / "a.zarr/.tessera/sha256sums.txt.sig"
        self.refused("seal", "a.zarr", "--sign", "nobody", says="nobody: no such file")
        self.assertTrue(signature.exists())  # nothing was sealed
        self.assertIn("--sign", self.run_program("seal", "a.zarr").stderr)
        self.assertFalse(signature.exists())

    def test_who_sealed_it(self):
        self.ssh_key("alice")
        self.ssh_key("mallory")
        self.assertIn("signed", self.tessera("seal", "a.zarr", "--sign", "alice"))
        self.assertRegex(self.texts("a.zarr", "--signers", "alice.signers", code=0)[0], 'Good "tessera-seal" signature for alice@')
        self.assertIn("is not signed by anybody in mallory.signers", self.texts("a.zarr", "--signers", "mallory.signers", code=1)[0])
        # As anybody checks it, without Tessera.
        self.call("ssh-keygen", "-Y", "verify", "-f", "alice.signers", "-I", "alice@example.org", "-n", "tessera-seal", "-s",
                  "a.zarr/.tessera/sha256sums.txt.sig", stdin=(self.folder / "a.zarr/.tessera/sha256sums.txt").open())
        self.forge()
        self.tessera("verify", "a.zarr")  # the sums agree with the files
        self.assertIn("is not signed", self.texts("a.zarr", "--signers", "alice.signers", code=1)[0])
        self.tessera("seal", "a.zarr", "--overwrite", "--quiet")  # another seal, and so no signature
        self.assertIn("has no signature by ssh-keygen", self.texts("a.zarr", "--signers", "alice.signers", code=1)[0])
        self.tessera("seal", "a.zarr", "--quiet", "--sign", "mallory")
        self.texts("a.zarr", "--signers", "mallory.signers", code=0)

    def test_without_a_seal_a_key_or_the_program(self):
        self.ssh_key("alice")
        self.assertIn("nothing is sealed", self.texts("a.zarr", "--signers", "alice.signers", code=1)[0])
        self.refused("seal", "a.zarr", "--sign", "nobody", says="nobody: no such file")
        self.refused("seal", "a.zarr", "--sign", "$(touch made)", says="no such file")
        self.assertFalse((self.folder / "made").exists())
        self.refused("verify", "a.zarr", "--signers", "nobody", says="nobody: no such file")
        self.refused("seal", "a.zarr", "--sign", "values.npy", says=("sealed, but not signed", "ssh-keygen says"), start_new_session=True)
        self.refused("seal", "a.zarr", "--sign", "alice", says="ssh-keygen is not installed", env={**os.environ, "PATH": "/nowhere"})
        self.ssh_key("locked", "secret words")
        self.refused("seal", "a.zarr", "--sign", "locked", says="sealed, but not signed", stdin=subprocess.DEVNULL,
                     start_new_session=True, env={k: v for k, v in os.environ.items() if k != "DISPLAY"})
        self.assertFalse((self.folder / "a.zarr/.tessera/sha256sums.txt.sig").exists())
        self.tessera("verify", "a.zarr")

    def test_names_that_a_shell_would_take_apart(self):
        name = "a key; touch made"
        self.ssh_key("alice")
        shutil.copy(self.folder / "alice", self.folder / name)
        os.chmod(self.folder / name, 0o600)
        shutil.copy(self.folder / "alice.signers", self.folder / "-I")
        self.tessera("seal", "a.zarr", "--sign", name, "--quiet")
        self.tessera("verify", "a.zarr", "--signers=-I", "--quiet")
        self.assertFalse((self.folder / "made").exists())

    def test_files_parity_and_groups(self):
        self.ssh_key("alice")
        self.tessera("copy", "a.zarr", "b.zip", "--quiet")
        self.tessera("copy", "a.zarr", "g.zarr/sub/a", "--quiet")
        for path in ("b.zip", "values.npy", "g.zarr"):
            with self.subTest(path):
                self.tessera("seal", path, "--sign", "alice", "--quiet")
                self.texts(path, "--signers", "alice.signers", code=0)
        # A list of sums that parity restores is taken as it was.
        self.tessera("seal", "a.zarr", "--parity", "20%", "--sign", "alice", "--quiet")
        manifest = self.folder / "a.zarr/.tessera/sha256sums.txt"
        manifest.write_text(manifest.read_text()[:-70])
        found = self.run_program("verify", "a.zarr", "--signers", "alice.signers", "--json")
        self.assertIn("Good", found.stdout)
        self.tessera("repair", "a.zarr", "--quiet")
        self.tessera("verify", "a.zarr", "--signers", "alice.signers", "--quiet")

    def test_the_module_does_the_same(self):
        self.ssh_key("alice")
        self.ssh_key("mallory")
        text = ("import pathlib, tessera\n"
                "tessera.seal('a.zarr', sign=pathlib.Path('alice'))\n"
                "assert tessera.verify('a.zarr', signers='alice.signers').sound\n"
                "assert not tessera.verify('a.zarr', signers='mallory.signers').sound\n"
                "try: tessera.seal('a.zarr', sign='nobody')\n"
                "except tessera.NotFound as e: assert 'nobody' in str(e)\n"
                "tessera.open('a.zarr', 'r+', break_seal=True)[0, 0] = 77\n"
                "import warnings\n"
                "with warnings.catch_warnings(record=True) as seen:\n"
                "    warnings.simplefilter('always')\n"
                "    tessera.seal('a.zarr')\n"
                "assert len(seen) == 1 and 'sign=' in str(seen[0].message), seen\n"
                "(pathlib.Path('a.zarr') / 'c/0/0').write_bytes(b'cut')\n"
                "try: tessera.seal('a.zarr', overwrite=True)\n"
                "except tessera.Corrupt as e: assert 'not sealed' in str(e) and 'unchecked=True' in str(e), e\n"
                "else: raise AssertionError\n")
        done = subprocess.run([sys.executable, "-B", "-c", text], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": module_folder()})
        self.assertEqual(done.returncode, 0, done.stderr)


@installed("minisign")
class ByMinisign(Signed):
    def test_who_sealed_it(self):
        for name in ("alice", "mallory"):
            self.call("minisign", "-G", "-W", "-p", f"{name}.pub", "-s", f"{name}.key")
        self.tessera("seal", "a.zarr", "--sign", "alice.key", "--quiet")
        self.assertIn("verified", self.texts("a.zarr", "--signers", "alice.pub", code=0)[0])
        self.texts("a.zarr", "--signers", "mallory.pub", code=1)
        self.call("minisign", "-V", "-p", "alice.pub", "-m", "a.zarr/.tessera/sha256sums.txt")
        self.forge()
        self.texts("a.zarr", "--signers", "alice.pub", code=1)
        self.refused("verify", "a.zarr", "--signers", "alice.pub", says="minisign is not installed",
                     env={**os.environ, "PATH": "/nowhere"})


if __name__ == "__main__":
    main()
