"""The program among other processes: interrupted, killed, piped, on a terminal, in another locale."""

import fcntl
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import time

import numpy as np

import program
from program import EXAMPLES, PROGRAM, digest

DEM = f"{EXAMPLES / 'jacksboro_fault_dem.npz'}::elevation"


def bytes_read(pid):
    with open(f"/proc/{pid}/io") as counts:
        return int(counts.readline().split()[1])


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("nothing happened")
        time.sleep(0.01)


class Process(program.ProgramTest):
    def large_file(self, mebibytes):
        """A .npy that is not sparse and slow to compress, written fast."""
        block = np.random.default_rng(0).integers(0, 9, 1 << 18, "<i4")
        array = np.lib.format.open_memmap(self.folder / "large.npy", "w+", "<i4", (mebibytes, 1 << 18))
        array[:] = block
        array.flush()
        return "large.npy"

    def interrupted_import(self, number, at, *more, after=2):
        """Sends a signal to an import once it has written chunks; returns its exit code and stderr."""
        def chunks():
            return len(list((self.folder / at).rglob("*.blosc")))

        before = chunks()
        running = subprocess.Popen([PROGRAM, "import", "large.npy", "a", "--codec", "blosc:zlib:9", "--chunks", "1,262144",
                                    *more], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: chunks() > before + after)
        running.send_signal(number)
        out, err = running.communicate(timeout=60)
        self.assertEqual(out, "")
        return running.returncode, err

    def test_interrupted(self):
        self.large_file(400)
        for number in signal.SIGINT, signal.SIGTERM:
            code, message = self.interrupted_import(number, "a")
            self.assertEqual((code, message), (130, "tessera: interrupted; nothing is left at a\n"))
            self.assertEqual(os.listdir(self.folder), ["large.npy"])
        self.refused("info", "a", says="a: no such")

        self.tessera("import", DEM, "a")
        before = digest(self.folder / "a")
        code, message = self.interrupted_import(signal.SIGINT, ".a.tessera-new", "--overwrite")
        self.assertEqual((code, message), (130, "tessera: interrupted; a is as it was before\n"))
        self.assertEqual(digest(self.folder / "a"), before)
        self.assertEqual(sorted(os.listdir(self.folder)), ["a", "large.npy"])

    def test_interrupted_while_another_process_holds_a_lock(self):
        self.tessera("create", "a", "--shape", "8", "--chunks", "4", "--dtype", "<i4", "--format", "v2", "--quiet")
        self.tessera("set", "a", "...", "5", "--quiet", "--no-undo")
        with open(self.folder / "a/.tessera/lock", "r+b") as file:
            for slot in 0, 1:  # the shape, and the first chunk
                def lock(kind):
                    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi", kind, os.SEEK_SET, slot, 1, 0))

                lock(fcntl.F_WRLCK)
                for number in signal.SIGINT, signal.SIGTERM:
                    waiting = subprocess.Popen([PROGRAM, "set", "a", "...", "7"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
                    status = pathlib.Path(f"/proc/{waiting.pid}/status")
                    wait_for(lambda: int(re.search(r"SigBlk:\s+(\S+)", status.read_text())[1], 16) & 2)  # it expects signals
                    waiting.send_signal(number)
                    self.assertIn("interrupted", waiting.communicate(timeout=60)[1])
                    self.assertEqual(waiting.returncode, 130)
                lock(fcntl.F_UNLCK)
        self.tessera("set", "a", "...", "8", "--quiet")

    def test_one_huge_file_is_interrupted(self):
        """Whatever reads the bytes of a file: a sparse one of 1 TiB takes hours."""
        self.tessera("create", "a", "--shape", "8", "--chunks", "4", "--dtype", "<i4", "--format", "v2", "--quiet")
        self.tessera("set", "a", ":", "1", "--quiet")
        (self.folder / "a/notes").touch()
        for name in "b", "c":
            shutil.copytree(self.folder / "a", self.folder / name)
        self.tessera("seal", "a", "--quiet")
        for name in "a/notes", "b/notes", "c/0":
            os.truncate(self.folder / name, 1 << 40)
        for words in (["verify", "a"], ["repair", "a"], ["seal", "a"], ["seal", "b"], ["seal", "b", "--parity", "5%"],
                      ["seal", "b", "--bagit", "d"], ["snapshot", "c", "create", "s", "--sums"]):
            with self.subTest(words=words):
                running = subprocess.Popen([PROGRAM, *words, "--quiet"], cwd=self.folder, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True)
                wait_for(lambda: running.poll() is not None or bytes_read(running.pid) > 64 << 20)
                running.send_signal(signal.SIGTERM)
                out, err = running.communicate(timeout=60)
                self.assertEqual((running.returncode, out), (130, ""), err)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir() if not p.name.endswith(".snapshots")),
                         ["a", "b", "c"])

    def test_killed(self):
        self.large_file(400)
        code, _ = self.interrupted_import(signal.SIGKILL, "a")
        self.assertEqual(code, -signal.SIGKILL)
        self.assertIn("unfinished", self.tessera("info", "a", code=1))
        self.assertIn("unfinished", self.tessera("verify", "a", code=1))
        for words in [["get", "a"], ["export", "a", "b.npy"], ["import", DEM, "a"]]:
            self.refused(*words, says="a")
        self.tessera("import", DEM, "a", "--overwrite")
        self.assertEqual(self.tessera_json("info", "a")["shape"], [344, 403])

        before = digest(self.folder / "a")
        self.interrupted_import(signal.SIGKILL, ".a.tessera-new", "--overwrite")
        self.assertEqual(digest(self.folder / "a"), before)
        self.tessera("import", DEM, "a", "--overwrite")
        self.assertEqual(sorted(os.listdir(self.folder)), ["a", "large.npy"])

    def test_resumed(self):
        self.large_file(200)
        for number, code in (signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130):
            found, message = self.interrupted_import(number, "a", "--resume", after=35)
            self.assertEqual(found, code)
        self.assertIn("stays in", message)
        stored = {path: path.stat().st_mtime_ns for path in (self.folder / "a").rglob("*.blosc")}
        self.assertGreater(len(stored), 2)
        self.assertIn("--resume", self.tessera("info", "a", code=1))
        # Another copy does not go on with it, and nothing is lost by trying, nor by a failure.
        self.refused("import", "large.npy", "a", "--resume", "--chunks", "7,262144", says="another one")
        words = ["import", "large.npy", "a", "--resume", "--codec", "blosc:zlib:9", "--chunks", "1,262144"]
        self.refused(*words, "--max-memory", "100K", says="too small")
        self.tessera(*words)
        kept = sum(path.stat().st_mtime_ns == time_ for path, time_ in stored.items())
        self.assertGreater(kept, 20)  # blocks of chunks that were complete; one that was cut short is copied again
        self.tessera("export", "a", "b.npy")
        self.assertEqual((self.folder / "b.npy").read_bytes(), (self.folder / "large.npy").read_bytes())

    def test_a_changed_source_is_no_resumption(self):
        self.large_file(100)
        self.interrupted_import(signal.SIGKILL, "a", "--resume")
        np.load(self.folder / "large.npy", mmap_mode="r+")[0, 0] += 1
        os.utime(self.folder / "large.npy")
        self.refused("import", "large.npy", "a", "--resume", "--codec", "blosc:zlib:9", "--chunks", "1,262144", says="made_from")

    def test_closed_pipe(self):
        self.save("x.npy", np.arange(1000000))
        for command in "get x.npy --all", "get x.npy --json", "tree", "--help":
            result = subprocess.run(f"{PROGRAM} {command} | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}", shell=True,
                                    executable="/bin/bash", cwd=self.folder, capture_output=True, text=True)
            self.assertEqual((result.stdout, result.stderr), ("0\n", ""), command)

    def on_terminal(self, *words):
        """What a command writes to stderr when that is a terminal."""
        main, side = pty.openpty()
        running = subprocess.Popen([PROGRAM, *words], cwd=self.folder, stdout=subprocess.PIPE, stderr=side)
        os.close(side)
        seen = b""
        while True:
            try:
                part = os.read(main, 4096)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            seen += part
        running.stdout.read()
        running.stdout.close()
        self.assertEqual(running.wait(), 0)
        os.close(main)
        return seen.decode()

    def test_progress_on_a_terminal_only(self):
        words = ["import", self.large_file(400), "a", "--overwrite", "--codec", "blosc:zlib:9"]  # for a second
        seen = self.on_terminal(*words)
        self.assertRegex(seen, r"\[#*\.*\] +\d+%  [\d.]+ \w+ of 400\.0 MiB")
        self.assertTrue(seen.endswith("\r\x1b[K"), "the bar is taken away at the end")
        shares = [int(n) for n in re.findall(r"(\d+)%", seen)]
        self.assertEqual(shares, sorted(shares))
        self.assertEqual(self.on_terminal(*words, "--quiet"), "")
        self.tessera(*words)  # to a pipe: no word on stderr

    def test_locale(self):
        words = ["set", "a", "0", "1.5"]
        for locale in "de_DE.UTF-8", "tr_TR.UTF-8", "C", "nonsense":
            env = {**os.environ, "LC_ALL": locale, "LANG": locale}
            self.tessera("create", "a", "--shape", "3", "--dtype", "f8", "--fill", "0.25", "--overwrite", env=env)
            self.tessera(*words, env=env)
            self.assertEqual(self.tessera("get", "a", env=env), "[ 1.5 0.25 0.25]\n")
            self.assertEqual(self.tessera_json("get", "a", env=env), [1.5, 0.25, 0.25])

    def test_umask(self):
        self.tessera("create", "a", "--shape", "3", "--dtype", "f8", preexec_fn=lambda: os.umask(0o027))
        self.assertEqual((self.folder / "a" / "__zmeta__").stat().st_mode & 0o777, 0o640)
        self.assertEqual((self.folder / "a").stat().st_mode & 0o777, 0o750)

    def test_odd_names(self):
        for name in "größe 1", "-dash", "a\nb", "\x1b[31m\u009b", os.fsdecode(b"\xff"):
            self.tessera("create", "--shape", "3", "--dtype", "f8", "--", name)
            self.tessera("info", "--", name)
            self.assertEqual(len(self.tessera_json("info", "./" + name)["shape"]), 1)
            self.tessera("tree", "--", ".")
            self.tessera("export", "--", name, name + ".npy")
            np.testing.assert_array_equal(np.load(self.folder / (name + ".npy")), np.zeros(3))


if __name__ == "__main__":
    program.main()
