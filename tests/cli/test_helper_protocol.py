"""Each message between Tessera and a helper, spoilt in each way (helper_proxy.py): the error names the file, the next
request gets a new helper, and nothing hangs, leaks or appears under a name."""

import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import time
import unittest

import numpy as np

import program
from program import PROGRAM, ProgramTest

try:
    import h5py
except ImportError:
    h5py = None

MODULE = os.environ.get("TESSERA_MODULE")
HERE = pathlib.Path(__file__).parent
REAL = (pathlib.Path(PROGRAM).parent / "../libexec/tessera").resolve()
# The names of ForeignTask, by their numbers.
HEADER = (pathlib.Path(os.environ["TESSERA_SOURCE"]) / "core/files/foreign.h").read_text()
TASKS = re.findall(r"^    (\w+),", HEADER.split("enum class ForeignTask", 1)[1].split("};")[0], re.MULTILINE)
# What ends the process that sends it, or what it sends.
SPOILS = ("die", "be_killed", "half_a_head", "half_a_body", "endless", "no_kind", "request", "hello", "read_beyond",
          "read_too_much", "error", "short", "empty", "ones", "zeros", "text")
SOME = "die", "half_a_body", "no_kind", "error", "short", "ones"
# In a process of its own, with the module: each case of one operation. `plan` says which message is spoilt, and how.
CASES = r'''
import os, shutil, sys, time
import numpy as np
import tessera

operation, names, made, spoils = sys.argv[1], sys.argv[2].split(), sys.argv[3], sys.argv[4:]

def write(name, text):
    with open(name + ".new", "w") as file:
        file.write(text)
    os.replace(name + ".new", name)

def run():
    if made:
        shutil.copy("there.h5", "old.h5")
        for name in "new.h5", "out.zarr":
            shutil.rmtree(name, ignore_errors=True)
            if os.path.exists(name): os.remove(name)
    return eval(operation)

def helpers():
    """How many processes there are in this folder beside this one, once those that have ended are gone."""
    for _ in range(600):
        count = 0
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and int(name) != os.getpid() and os.readlink(f"/proc/{name}/cwd") == os.getcwd():
                    count += open(f"/proc/{name}/stat").read().rsplit(")")[1].split()[0] != "Z"
            except OSError:
                pass
        if count <= most: break
        time.sleep(0.01)
    return count

most = 99
write("log", "")
write("plan", "-1 die")
expected = run()
tasks = open("log").read().splitlines()
most, files = helpers(), len(os.listdir("/proc/self/fd"))
count = 0
for spoil in spoils:
    for message in range(len(tasks)):
        write("log", "")
        write("plan", f"{message} {spoil}")
        try:
            got = run()
        except tessera.Error as e:
            text = str(e)
            assert any(name in text for name in names), (spoil, message, tasks[message], text)
            count += 1
            if made:
                assert not os.path.exists("new.h5"), (spoil, message)
                assert open("old.h5", "rb").read() == open("there.h5", "rb").read(), (spoil, message)
                assert not any(name.startswith(".") or "tmp" in name for name in os.listdir(".")), os.listdir(".")
        else:
            # What was said was the same, or no answer was needed.
            spoilt = [line for line in open("log").read().splitlines() if "spoilt" in line]
            bodies = "short", "empty", "ones", "zeros", "text"
            assert not spoilt or spoil in bodies or int(spoilt[0].split()[0]) in CLOSING, (spoil, message, spoilt)
        write("plan", "-1 die")
        again = run()
        assert again == expected, (spoil, message, again, expected)
assert helpers() <= most, "processes are left"
assert len(os.listdir("/proc/self/fd")) <= files, os.listdir("/proc/self/fd")
print(count)
'''.replace("CLOSING", str([TASKS.index("hdf5_close"), TASKS.index("write_close")]))


@unittest.skipIf(program.FEWER > 1, "what a sanitizer watches takes too long to start so often")
@unittest.skipIf(h5py is None, "h5py is not installed")
class Protocol(ProgramTest):
    def setUp(self):
        super().setUp()
        with h5py.File(self.folder / "x.h5", "w") as f:
            f["plain"] = np.arange(6)
            f.create_dataset("g/chunked", data=np.arange(100.0), chunks=(30,), compression="gzip")
            f.create_dataset("g/scaled", data=np.arange(100), chunks=(30,), scaleoffset=0)
            f["t"] = np.array(["a", "b"], dtype=h5py.string_dtype())
            f.create_dataset("sparse", shape=(100,), chunks=(10,), fillvalue=3, dtype="i4")[15:25] = 1
        with h5py.File(self.folder / "there.h5", "w") as f:
            f["before"] = np.arange(5)
        self.save("a.npy", np.arange(1000.0).reshape(10, 100))
        (self.folder / "helpers").mkdir()
        for name in "hdf5", "tiff":
            place = self.folder / "helpers" / f"tessera-{name}"
            place.write_text(f"#!/bin/sh\nexec {sys.executable} -ESs {HERE}/helper_proxy.py {REAL}/tessera-{name} "
                             f"{self.folder} \"$@\"\n")
            place.chmod(0o755)
        self.environment = {**os.environ, "TESSERA_HELPERS": str(self.folder / "helpers"), "TESSERA_THREADS": "1"}
        if MODULE:
            self.environment["PYTHONPATH"] = MODULE

    def spoil(self, operation, names="x.h5", made="", spoils=SPOILS, least=15):
        if MODULE is None:
            self.skipTest("the module is not built")
        done = subprocess.run([sys.executable, "-B", "-c", CASES, operation, names, made, *spoils], cwd=self.folder,
                              env=self.environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(int(done.stdout), least)

    def test_elements(self):
        self.spoil("tessera.open('x.h5::g/scaled')[...].tolist()")

    def test_texts(self):
        self.spoil("tessera.open('x.h5::t')[...].tolist()", spoils=SOME, least=4)

    def test_chunks(self):
        self.spoil("tessera.open('x.h5::g/chunked')[...].tolist()", spoils=SOME, least=4)

    def test_members(self):
        self.spoil("[(n, a.shape, str(a.dtype), dict(a.attrs)) for n, a in sorted(tessera.open('x.h5').items())]",
                   spoils=SOME, least=4)

    def test_stored_chunks(self):
        self.spoil("(tessera.copy('x.h5::sparse', 'out.zarr'), tessera.open('out.zarr')[...].tolist())[1]", made="yes",
                   spoils=SOME, least=8)

    def test_a_picture(self):
        """Whose bytes the helper asks for."""
        strip = bytes([63]) + bytes(range(64)) + bytes([129, 7])  # PackBits: 64 bytes as they are, and 128 times 7
        tags = [(256, 4, 64), (257, 4, 3), (258, 3, 8), (259, 3, 32773), (262, 3, 1), (273, 4, 8), (277, 3, 1), (278, 4, 3),
                (279, 4, len(strip))]
        entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
        (self.folder / "p.tif").write_bytes(struct.pack("<2sHI", b"II", 42, 8 + len(strip)) + strip +
                                            struct.pack("<H", len(tags)) + entries + bytes(4))
        self.assertEqual(self.tessera("get", "p.tif", "2, 60:").strip(), "[7 7 7 7]")
        self.spoil("tessera.open('p.tif')[...].tolist()", names="p.tif", spoils=SOME + ("read_beyond", "read_too_much"))

    def test_writing(self):
        for deflate, spoils in (0, SOME), (1, SPOILS):
            self.spoil(f"tessera.copy('a.npy', 'new.h5', deflate={deflate})", names="new.h5", made="yes", spoils=spoils)

    def test_adding(self):
        self.spoil("tessera.copy('a.npy', 'old.h5::b', overwrite=True)", names="old.h5", made="yes", spoils=SOME)

    def messages(self, *words):
        """How many messages of helpers a command takes."""
        (self.folder / "plan").write_text("-1 die")
        (self.folder / "log").write_text("")
        self.tessera(*words, env=self.environment)
        return len((self.folder / "log").read_text().splitlines())

    def start(self, message, spoil, *words):
        (self.folder / "plan").write_text(f"{message} {spoil}")
        (self.folder / "log").write_text("")
        return subprocess.Popen([PROGRAM, *words], cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def assert_nobody_is_left(self):
        """Processes work in this folder until they end."""
        for _ in range(3000):
            left = []
            for process in pathlib.Path("/proc").iterdir():
                try:
                    if process.name.isdigit() and os.readlink(process / "cwd") == str(self.folder):
                        left.append(process.name)
                except OSError:
                    pass
            if not left:
                return
            time.sleep(0.01)
        self.fail(f"left: {left}")

    def test_one_answer_describes_all_members(self):
        """If the helper ends on it, each member is opened by itself, to find the one to blame."""
        (self.folder / "plan").write_text("-1 die")
        told = self.tessera("tree", "x.h5", env=self.environment)
        self.assertEqual((self.folder / "log").read_text().splitlines(), ["-1 answer", f"{TASKS.index('hdf5_listed')} answer"])
        for spoil in "die", "error", "ones", "short":
            (self.folder / "plan").write_text(f"1 {spoil}")
            (self.folder / "log").write_text("")
            self.assertEqual(self.tessera("tree", "x.h5", env=self.environment), told)
            self.assertIn("answer spoilt", (self.folder / "log").read_text())

    def test_the_parent_is_killed(self):
        there = (self.folder / "there.h5").read_bytes()
        for words in (("get", "x.h5::t"), ("copy", "x.h5::sparse", "out.zarr", "--quiet"),
                      ("export", "a.npy", "new.h5", "--deflate", "1", "--quiet"),
                      ("copy", "a.npy", "there.h5::b", "--overwrite", "--quiet")):
            messages = self.messages(*words)
            for message in range(messages):
                for name in "new.h5", "out.zarr":
                    subprocess.run(["rm", "-rf", self.path(name)], check=True)
                (self.folder / "there.h5").write_bytes(there)
                with self.subTest(words=words, message=message):
                    running = self.start(message, "kill_the_parent", *words)
                    running.communicate(timeout=60)
                    self.assertEqual(running.returncode, -signal.SIGKILL)
                    self.assert_nobody_is_left()
                    self.assertFalse((self.folder / "new.h5").exists())
                    self.assertEqual((self.folder / "there.h5").read_bytes(), there)

    def test_a_helper_that_says_nothing(self):
        """A stop ends it at once; without one it ends after a time."""
        for message in range(1, self.messages("get", "x.h5::t") - 1):
            running = self.start(message, "hang", "get", "x.h5::t")
            while "spoilt" not in (self.folder / "log").read_text():
                self.assertIsNone(running.poll())
                time.sleep(0.01)
            running.send_signal(signal.SIGINT)
            running.communicate(timeout=60)
            self.assertIn(running.returncode, (130, -signal.SIGINT))  # it may not have begun to listen
            self.assert_nobody_is_left()
        self.environment["TESSERA_TEST_IDLE_SECONDS"] = "1"
        said = self.start(1, "hang", "get", "x.h5::t").communicate(timeout=60)[1]
        self.assertIn("x.h5", said)
        self.assertIn("did nothing for 1 s", said)
        self.assert_nobody_is_left()


if __name__ == "__main__":
    program.main()
