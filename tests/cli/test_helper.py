"""libhdf5 and libtiff in helpers: a filter and a libtiff that crash, find no end, or take all memory, on purpose."""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import unittest
from pathlib import Path

import numpy as np

import program
from program import PROGRAM, ProgramTest

try:
    import h5py
except ImportError:
    h5py = None

MODULE = os.environ.get("TESSERA_MODULE")
HELPER = (Path(PROGRAM).parent / "../libexec/tessera/tessera-hdf5").resolve()
FILTER = r"""
#include <H5PLextern.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static size_t bad(unsigned flags, size_t n, const unsigned values[], size_t bytes, size_t* size, void** buffer) {
    if (!(flags & H5Z_FLAG_REVERSE)) return bytes;
    const char* how = ((const char*)*buffer);
    if (how[0] == 'c') abort();
    if (how[0] == 'l') {
        fclose(fopen("looping", "w"));
        for (;;) sleep(1);
    }
    if (how[0] == 'x') _exit(7);
    if (how[0] == 'm') {
        char* p = malloc((size_t)1 << 33);
        if (p == NULL) return 0;
        memset(p, 1, (size_t)1 << 33);
    }
    return bytes;
}
static const H5Z_class2_t row = {H5Z_CLASS_T_VERS, 0x7f01, 1, 1, "bad", NULL, NULL, bad};
H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_FILTER; }
const void* H5PLget_plugin_info(void) { return &row; }
"""
DECODER = r"""
#include <signal.h>
long TIFFReadEncodedStrip(void* tiff, unsigned strip, void* out, long size) { raise(SIGSEGV); return -1; }
long TIFFReadEncodedTile(void* tiff, unsigned tile, void* out, long size) { raise(SIGSEGV); return -1; }
"""


def compiled(source, out):
    """A shared library; the test is skipped where none can be compiled."""
    if shutil.which("cc") is None or shutil.which("pkg-config") is None:
        raise unittest.SkipTest("no C compiler")
    flags = subprocess.run(["pkg-config", "--cflags", "hdf5"], capture_output=True, text=True).stdout.split()
    done = subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", out, *flags], input=source, text=True,
                          capture_output=True)
    if done.returncode != 0:
        raise unittest.SkipTest("the library does not compile: " + done.stderr)


def readers(parent):
    """The children of a process in which files are read."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "comm").read_text() == "tessera-helper\n":
                status = (folder / "status").read_text()
                if f"PPid:\t{parent}\n" in status and "State:\tZ" not in status:
                    found.append(int(folder.name))
        except OSError:
            pass
    return found


@unittest.skipIf(program.FEWER > 1, "what a sanitizer watches reads in its own process")
@unittest.skipIf(h5py is None, "h5py is not installed")
class Helpers(ProgramTest):
    def bad_file(self):
        """good and, for each misbehaviour, an array whose filter does it."""
        (self.folder / "plugins").mkdir()
        compiled(FILTER, str(self.folder / "plugins" / "libbad.so"))
        script = textwrap.dedent("""
            import h5py, numpy as np
            with h5py.File("x.h5", "w") as f:
                f["good"] = np.arange(6)
                for name in ("crash", "loop", "xit", "memory"):
                    f.create_dataset(name, data=np.frombuffer(name[0].encode() * 24, "u1"), chunks=(24,), compression=0x7f01)
            """)
        self.environment = {**os.environ, "HDF5_PLUGIN_PATH": str(self.folder / "plugins")}
        subprocess.run([sys.executable, "-c", script], cwd=self.folder, env=self.environment, check=True)

    def test_a_crash_is_an_error(self):
        self.bad_file()
        self.refused("get", "x.h5::crash", env=self.environment, says=["x.h5::crash", "libhdf5 crashed", "signal 6"])
        self.refused("get", "x.h5::xit", env=self.environment, says=["x.h5::xit", "libhdf5", "exit code 7"])
        self.refused("get", "x.h5::memory", "--max-memory", "32M", env=self.environment, says="x.h5::memory")
        self.assertEqual(self.tessera("get", "x.h5::good", env=self.environment).split()[-1].strip("[]"), "5")
        done = self.run_program("get", "x.h5::crash", "--in-process", env=self.environment)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--in-process does nothing", done.stderr)

    def test_a_crash_leaves_the_rest(self):
        self.bad_file()
        with h5py.File(self.folder / "x.h5", "a") as f:
            del f["loop"]
        done = self.run_program("verify", "x.h5", "--max-memory", "32M", env=self.environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        for name in ("crash", "xit", "memory"):
            self.assertIn(name, done.stdout)
        self.assertNotIn("good", done.stdout)

    def test_a_stop_ends_what_has_no_end(self):
        self.bad_file()
        running = subprocess.Popen([PROGRAM, "get", "x.h5::loop"], cwd=self.folder, env=self.environment,
                                   stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        children = self.sleeping(running)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130)
        for child in children:
            self.assertFalse(Path(f"/proc/{child}").exists())

    def sleeping(self, running):
        """The children of a program, once one of them is in the filter that finds no end."""
        while not (self.folder / "looping").exists():
            self.assertIsNone(running.poll())
            time.sleep(0.01)
        return readers(running.pid)

    def test_children_end_with_their_parent(self):
        self.bad_file()
        running = subprocess.Popen([PROGRAM, "get", "x.h5::loop"], cwd=self.folder, env=self.environment)
        children = self.sleeping(running)
        running.kill()
        running.wait()
        for child in children:
            for _ in range(3000):
                if not Path(f"/proc/{child}").exists() or "State:\tZ" in Path(f"/proc/{child}/status").read_text():
                    break
                time.sleep(0.01)
            else:
                self.fail("a child outlives the program")

    def test_a_child_that_somebody_ends(self):
        self.bad_file()
        running = subprocess.Popen([PROGRAM, "get", "x.h5::loop"], cwd=self.folder, env=self.environment,
                                   stderr=subprocess.PIPE, text=True)
        os.kill(self.sleeping(running)[0], signal.SIGTERM)
        said = running.communicate(timeout=60)[1]
        self.assertEqual(running.returncode, 2)
        self.assertIn("ended by signal 15", said)

    def test_what_a_helper_gets(self):
        self.bad_file()
        environment = {**self.environment, "AWS_SECRET_ACCESS_KEY": "hidden", "LC_TIME": "C"}
        with open(self.folder / "x.h5", "rb") as held:
            running = subprocess.Popen([PROGRAM, "get", "x.h5::loop"], cwd=self.folder, env=environment,
                                       pass_fds=[held.fileno()])
            helper = self.sleeping(running)[0]
            given = Path(f"/proc/{helper}/environ").read_bytes()
            files = {int(file): os.readlink(f"/proc/{helper}/fd/{file}") for file in os.listdir(f"/proc/{helper}/fd")}
            session = os.getsid(helper)
            # It cannot make the memory that it shares shorter.
            with self.assertRaises(PermissionError):
                os.truncate(f"/proc/{helper}/fd/4", 0)
            running.kill()
            running.wait()
        self.assertNotIn(b"hidden", given)
        self.assertIn(b"LC_TIME=C", given)
        self.assertEqual(session, helper)
        for file in 0, 1, 2:
            self.assertEqual(files.pop(file), "/dev/null")
        self.assertTrue(files.pop(3).startswith("socket:"), files)
        self.assertIn("memfd:tessera-helper", files.pop(4))
        # The plug-in's own and that of the file which is read.
        self.assertTrue(all(path.endswith("x.h5") for path in files.values()), files)
        self.assertLessEqual(len(files), 1)

    def test_a_helper_of_another_build(self):
        self.bad_file()
        (self.folder / "other").mkdir()
        other = self.folder / "other/tessera-hdf5"
        other.write_text("#!/usr/bin/python3\nimport os, struct\n"
                         "os.write(3, struct.pack('7Q', 0, 5, 0, 0, 0, 0, 0) + b'other')\nos.read(3, 1)\n")
        other.chmod(0o755)
        self.refused("get", "x.h5::good", env={**self.environment, "TESSERA_HELPERS": str(other.parent)},
                     says=["x.h5", str(other), "another build (other)"])

    def test_without_a_helper(self):
        self.bad_file()
        shutil.copy(PROGRAM, self.folder / "alone")
        done = subprocess.run([self.folder / "alone", "get", "x.h5::good"], cwd=self.folder, capture_output=True, text=True)
        if done.returncode == 0:
            self.skipTest("Tessera is installed")
        for part in "x.h5", str(self.folder / "tessera-hdf5"), "libexec/tessera/tessera-hdf5 (No such file", "TESSERA_HELPERS":
            self.assertIn(part, done.stderr)

    def in_namespace(self, mount, *words, **options):
        """A program among mounts of its own; the test is skipped where there can be none."""
        unshare = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
        if shutil.which("unshare") is None or subprocess.run([*unshare, "sh", "-c", mount], capture_output=True).returncode != 0:
            self.skipTest("nothing can be mounted")
        return subprocess.run([*unshare, "sh", "-c", mount + ' && exec "$@"', "sh", *words], capture_output=True, text=True,
                              cwd=self.folder, timeout=300, **options)

    def test_a_helper_in_a_folder_that_runs_nothing(self):
        self.bad_file()
        place = self.folder / "noexec"
        place.mkdir()
        done = self.in_namespace(f"mount -t tmpfs -o noexec none {place} && cp {HELPER} {place}", PROGRAM, "get", "x.h5::good",
                                 env={**self.environment, "TESSERA_HELPERS": str(place)})
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"tried {place}/tessera-hdf5 (Permission denied)", done.stderr)
        place = self.folder / "unset"
        place.mkdir()
        shutil.copyfile(HELPER, place / "tessera-hdf5")
        self.refused("get", "x.h5::good", env={**self.environment, "TESSERA_HELPERS": str(place)},
                     says=["x.h5", f"tried {place}/tessera-hdf5 (Permission denied)"])

    def test_a_program_that_is_its_own_helper(self):
        """Under another name elsewhere, and where /proc is not mounted."""
        own = Path(os.environ["TESSERA_OWN_HELPER"])
        self.bad_file()
        (self.folder / "elsewhere").mkdir()
        moved = shutil.copy(own, self.folder / "elsewhere/other")
        environment = {**self.environment, "TESSERA_HELPERS": "/no/such"}

        def reads(done, says="6\n"):
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, says, ""))

        reads(subprocess.run([moved, "x.h5::good"], cwd=self.folder, env=environment, capture_output=True, text=True))
        reads(subprocess.run(["elsewhere/other", "x.h5::good"], cwd=self.folder, env=environment, capture_output=True, text=True))
        done = subprocess.run([moved, "x.h5::crash"], cwd=self.folder, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("libhdf5 crashed", done.stderr)
        hidden = "mount -t tmpfs none /proc"
        reads(self.in_namespace(hidden, moved, "x.h5::good", env=environment))
        done = self.in_namespace(hidden, "elsewhere/other", "x.h5::good", env=environment)
        self.assertEqual(done.returncode, 2)
        self.assertIn("tried /proc/self/exe (No such file or directory)", done.stderr)

    def test_what_a_helper_wrote_that_ended_appears_under_no_name(self):
        """At every call that writes: the error names the file, and the old one stays."""
        self.save("a.npy", np.arange(64.0 * 64).reshape(64, 64))
        self.tessera("export", "a.npy", "old.h5", "--quiet")
        old = (self.folder / "old.h5").read_bytes()
        for call in "H5Fcreate", "H5Dcreate2", "H5Dwrite", "H5Dwrite_chunk", "H5Dclose", "H5Fflush", "H5Fclose":
            compiled(f"#include <signal.h>\nint {call}() {{ raise(SIGSEGV); return -1; }}", str(self.folder / "bad.so"))
            environment = {**os.environ, "LD_PRELOAD": str(self.folder / "bad.so")}
            for name, deflate in ("new.h5", "0" if call == "H5Dwrite" else "1"), ("old.h5", "9"):
                if call == "H5Dwrite" and deflate != "0":
                    continue
                with self.subTest(call=call, name=name):
                    self.refused("export", "a.npy", name, "--overwrite", "--deflate", deflate, env=environment,
                                 says=[name, "libhdf5 crashed", "signal 11"])
            self.assertEqual((self.folder / "old.h5").read_bytes(), old)
            self.assertEqual(sorted(os.listdir(self.folder)), ["a.npy", "bad.so", "old.h5"])

    def test_a_full_disk(self):
        """Wherever it is full: in the header, in the elements, when the file is closed, or when the parent moves it."""
        self.save("a.npy", np.random.default_rng(1).random((300, 300)))
        place = self.folder / "full"
        place.mkdir()
        for size, deflate in itertools.product((4, 8, 16, 64, 200, 700, 708, 720, 1000), (0, 1)):
            with self.subTest(size=size, deflate=deflate):
                done = self.in_namespace(f"mount -t tmpfs -o size={size}k none {place}", "sh", "-c",
                                         f'"$0" export a.npy full/new.h5 --deflate {deflate} --quiet; echo $?; ls -A full', PROGRAM)
                self.assertEqual(done.stdout, "2\n", done.stderr)
                self.assertIn("full/new.h5", done.stderr)
                self.assertIn("No space left on device", done.stderr)

    def test_no_room(self):
        self.save("a.npy", np.random.default_rng(1).random((300, 300)))
        (self.folder / "small").mkdir()
        small = self.folder / "small/tessera-hdf5"
        small.write_text(f"#!/bin/sh\nulimit -f 100\nexec {HELPER} \"$@\"\n")
        small.chmod(0o755)
        for deflate in "0", "1":
            self.refused("export", "a.npy", "new.h5", "--deflate", deflate, says=["new.h5", "File too large"],
                         env={**os.environ, "TESSERA_HELPERS": str(small.parent)})
            self.assertEqual(sorted(os.listdir(self.folder)), ["a.npy", "small"])

    @unittest.skipIf(MODULE is None, "the module is not built")
    def test_many_opens_take_no_more(self):
        with h5py.File(self.folder / "s.h5", "w") as f:
            f.create_dataset("d", data=np.arange(100), chunks=(10,), scaleoffset=0)
        script = textwrap.dedent("""
            import os, sys, tessera
            seen = []
            for i in range(int(sys.argv[1])):
                a = tessera.open("s.h5::d")
                assert a[i % 100] == i % 100
                a.close()
                if i % 100 == 50:
                    children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
                    seen.append((len(os.listdir("/proc/self/fd")), len(children), [len(os.listdir(f"/proc/{c}/fd")) for c in children]))
            assert all(s == seen[0] for s in seen), seen
            """)
        done = subprocess.run([sys.executable, "-c", script, os.environ.get("TESSERA_OPENS", "400")], cwd=self.folder,
                              capture_output=True, text=True, env={**os.environ, "PYTHONPATH": MODULE})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_libtiff_crashes(self):
        compiled(DECODER, str(self.folder / "bad.so"))
        self.save("a.npy", np.arange(64, dtype="u1").reshape(8, 8))
        self.tessera("export", "a.npy", "a.tif", "--deflate", "6")
        self.assertEqual(self.tessera("get", "a.tif::image", "0").count(" "), 7)
        environment = {**os.environ, "LD_PRELOAD": str(self.folder / "bad.so")}
        done = self.run_program("verify", "a.tif", env=environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("libtiff crashed", done.stdout + done.stderr)

    @unittest.skipIf(MODULE is None, "the module is not built")
    def test_python(self):
        self.bad_file()
        script = textwrap.dedent("""
            import os, signal, socket, time
            import h5py, numpy as np, tessera
            for name, word in (("crash", "signal 6"), ("xit", "exit code 7")):
                a = tessera.open(f"x.h5::{name}")
                for _ in range(2):
                    try:
                        a[...]
                        raise SystemExit("read")
                    except tessera.Corrupt as e:
                        assert word in str(e) and f"x.h5::{name}" in str(e), e
            good = tessera.open("x.h5::good")
            assert good[...].tolist() == [0, 1, 2, 3, 4, 5]
            # A child keeps none of this process's files open.
            near, far = socket.socketpair()
            with h5py.File("s.h5", "w") as f:
                f.create_dataset("d", data=np.arange(10000), chunks=(100,), scaleoffset=0)
            scaled = tessera.open("s.h5::d")
            assert (scaled[...] == np.arange(10000)).all()
            far.close()
            assert near.recv(1) == b""
            # Forks have children of their own.
            for _ in range(3):
                child = os.fork()
                if child == 0:
                    os._exit(0 if (tessera.open("s.h5::d")[...] == np.arange(10000)).all() else 1)
                assert (scaled[5:50] == np.arange(5, 50)).all()
                assert os.waitpid(child, 0)[1] == 0
            # A closed array keeps no lock on the file.
            scaled.close()
            with h5py.File("s.h5", "a") as f:
                f["d"][0] = 7
            again = tessera.open("s.h5::d")
            assert again[0] == 7
            time.sleep(1.5)  # by now the file is closed
            with h5py.File("s.h5", "a") as f:
                f["e"] = np.zeros(5000)
            try:
                again[0]
                raise SystemExit("read")
            except tessera.IoError as e:
                assert "changed" in str(e)
            """)
        done = subprocess.run([sys.executable, "-c", script], cwd=self.folder, capture_output=True, text=True,
                              env={**self.environment, "PYTHONPATH": MODULE})
        self.assertEqual(done.returncode, 0, done.stderr)

    @unittest.skipIf(MODULE is None, "the module is not built")
    def test_mutated_files_are_errors(self):
        with h5py.File(self.folder / "good.h5", "w", libver="latest") as f:
            f.create_dataset("s", data=np.arange(900).reshape(30, 30), chunks=(7, 8), scaleoffset=0)
            f.create_dataset("z", data=np.arange(900.0), chunks=(70,), compression="gzip", maxshape=(None,))
            f["g/t"] = np.array(["a", "bß", "c" * 100], dtype=h5py.string_dtype())
            f["g/c"] = np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", ">f8")])
            f["g/t"].attrs["units"] = "m"
        with h5py.File(self.folder / "old.h5", "w", libver="earliest") as f:
            f.create_dataset("s", data=np.arange(900).reshape(30, 30), chunks=(7, 8), scaleoffset=0)
            f["g/t"] = np.array(["a", "bß", "c" * 100], dtype=h5py.string_dtype())
        script = textwrap.dedent("""
            import random, sys, tessera
            damaged, crashed = 0, 0
            draw = random.Random(7)
            for i in range(int(sys.argv[1])):
                content = bytearray(open(draw.choice(["good.h5", "old.h5"]), "rb").read())
                for _ in range(draw.randint(1, 6)):
                    at = draw.randrange(8, min(len(content), 6000))
                    content[at] = draw.choice([0, 1, 127, 128, 255, content[at] ^ 1 << draw.randrange(8)])
                open("bad.h5", "wb").write(content)
                try:
                    members = tessera.open("bad.h5", max_memory="64M")
                    for name in members:
                        try:
                            a = members[name]
                            if a.size < 10**6: a[...]
                        except tessera.Error as e:
                            damaged += 1
                            crashed += "crashed" in str(e)
                except tessera.Error as e:
                    damaged += 1
                    crashed += "crashed" in str(e)
            print(damaged, crashed)
            assert damaged > 0
            """)
        count = os.environ.get("TESSERA_MUTATIONS", "120")
        done = subprocess.run([sys.executable, "-c", script, count], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": MODULE})
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    program.main()
