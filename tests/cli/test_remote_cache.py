"""The cache on the disk for what is read over the network: what it saves, what it never does, and who may read it."""

import os
import pathlib
import shutil
import stat
import subprocess
import threading
import unittest

import numpy as np

import program
import remote

# A cache is made by another process just after its mark was looked for.
MEANWHILE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
int openat(int at, const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
    va_end(rest);
    int (*real)(int, const char*, int, ...) = dlsym(RTLD_NEXT, "openat");
    int fd = real(at, path, flags, mode);
    if (fd < 0 && errno == ENOENT && strcmp(path, "tessera-cache") == 0) {
        int other = real(at, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        (void)other;
        errno = ENOENT;
    }
    return fd;
}
"""


class RemoteCacheTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.values = np.arange(100 * 90, dtype="<i4").reshape(100, 90)
        self.data = self.folder / "data"
        self.data.mkdir()
        self.save("a.npy", self.values)
        for name, words in {"v2": ["--format", "v2", "--chunks", "10,9"],
                            "v3": ["--format", "v3", "--chunks", "10,9", "--shard", "50,45"]}.items():
            self.tessera("import", "a.npy", f"data/{name}", *words, "--quiet", env=os.environ)
        noise = np.random.default_rng(1).integers(0, 1 << 60, (256, 256))
        self.save("noise.npy", noise)
        self.tessera("import", "noise.npy", "data/long", "--format", "v3", "--chunks", "64,64", "--shard", "256,256",
                     "--codec", "none", "--quiet", env=os.environ)
        context = remote.serving(self.data)
        self.double = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.places = {"s3": "s3://bucket", "http": self.double.origin + "/files"}
        self.cache = self.folder / "cache"

    def run_program(self, *words, env=None, **options):
        seen = self.double.environment if hasattr(self, "double") else {}
        return super().run_program(*words, env={**os.environ, **seen, **(env or {})}, **options)

    def read(self, path, *words, **options):
        """The digest of an array, the requests that it took, and the bytes that came."""
        self.double.reset()
        digest = self.tessera("digest", path, "--cache", self.cache, *words, **options).split()[0]
        return digest, list(self.double.requests), self.double.bytes

    def needed(self, requests):
        """Those for documents that are there. Whether there is one of another format is asked at once, beside the one
        that counts: an answer that comes too late for it is not waited for, and not kept."""
        return [request for request in requests
                if (self.data / request[1].removeprefix("/files/").removeprefix("/bucket/")).is_file()]

    def right(self, name):
        return self.tessera("digest", self.data / name).split()[0]

    def entries(self):
        return [file for file in self.cache.glob("??/*") if file.is_file()]

    def test_nothing_comes_twice(self):
        for kind, place in self.places.items():
            for name in ("v2", "v3", "long"):
                first, requests, size = self.read(f"{place}/{name}")
                self.assertGreater(size, 10_000 if name == "long" else 1_000)
                self.assertEqual(first, self.right(name))
                # Every value is validated, and none sent.
                again, requests, size = self.read(f"{place}/{name}")
                self.assertEqual(again, first)
                self.assertGreater(len(requests), 0)
                self.assertLess(size, 2_000, f"{kind} {name}")  # of answers that say that there is no such document
                # Within the age nobody is asked.
                again, requests, size = self.read(f"{place}/{name}", "--cache-age", "1h")
                self.assertEqual((again, self.needed(requests)), (first, []))

    def test_offline(self):
        place = self.places["s3"]
        self.refused("digest", f"{place}/v3", "--offline", "--cache", self.cache, says=["not in the cache", "offline"])
        self.read(f"{place}/v3")
        self.double.server.shutdown()
        self.assertEqual(self.read(f"{place}/v3", "--offline")[0], self.right("v3"))
        self.assertEqual(self.read(f"{place}/v3", env={"TESSERA_OFFLINE": "1"})[0], self.right("v3"))
        self.refused("digest", f"{place}/v2", "--offline", "--cache", self.cache, says="not in the cache")
        self.refused("set", f"{place}/v3", "0,0", "1", "--offline", "--cache", self.cache, says="offline")
        self.refused("digest", f"{place}/v3", "--offline", says="offline")
        threading.Thread(target=self.double.server.serve_forever, daemon=True).start()  # for the end

    def test_what_changed_is_fetched(self):
        self.read("s3://bucket/v2")
        other = self.values.copy()
        other[33, 33] = -1
        self.save("b.npy", other)
        self.tessera("import", "b.npy", "b", "--format", "v2", "--chunks", "10,9", "--quiet")
        (self.data / "v2" / "3.3").write_bytes(pathlib.Path(self.path("b/3.3")).read_bytes())
        self.assertEqual(self.read("s3://bucket/v2")[0], self.tessera("digest", "b").split()[0])
        # Of a shard that is replaced no range of the old version serves.
        self.read("s3://bucket/long")
        noise = np.load(self.path("noise.npy"))
        noise[200, 200] = 7
        self.save("noise2.npy", noise)
        self.tessera("import", "noise2.npy", "data/long", "--format", "v3", "--chunks", "64,64", "--shard", "256,256",
                     "--codec", "none", "--quiet", "--overwrite")
        self.assertEqual(self.read("s3://bucket/long")[0], self.right("long"))

    def test_own_writes_replace_it(self):
        for name in ("v2", "v3", "long"):
            self.read(f"s3://bucket/{name}", "--cache-age", "1h")
            for value in (-5, 17):
                self.tessera("set", f"s3://bucket/{name}", "33:35,33:50", value, "--cache", self.cache, "--cache-age",
                             "1h", "--quiet")
                digest, requests, _ = self.read(f"s3://bucket/{name}", "--cache-age", "1h")
                self.assertEqual(digest, self.right(name))
                self.assertLess(len(requests), 10)
        self.tessera("append", "s3://bucket/v2", "a.npy", "--cache", self.cache, "--cache-age", "1h", "--quiet")
        self.assertEqual(self.read("s3://bucket/v2", "--cache-age", "1h")[0], self.right("v2"))
        self.tessera("rm", "s3://bucket/v2", "--cache", self.cache, "--cache-age", "1h", "--quiet")
        self.refused("info", "s3://bucket/v2", "--cache", self.cache, "--cache-age", "1h", says="no array")

    def test_writers_lose_nothing(self):
        # Several writers, each with the old values in its cache, all within the age.
        self.read("s3://bucket/v2", "--cache-age", "1h")
        running = [subprocess.Popen([program.PROGRAM, "set", "s3://bucket/v2", f"{i},0:90", str(i), "--quiet", "--cache",
                                     str(self.cache), "--cache-age", "1h"], stderr=subprocess.PIPE, text=True,
                                    env={**os.environ, **self.double.environment}) for i in range(10)]
        for process in running:
            _, errors = process.communicate()
            self.assertEqual((process.returncode, errors), (0, ""))
        right = self.values.copy()
        right[:10] = np.arange(10)[:, None]
        np.testing.assert_array_equal(self.exported(self.data / "v2"), right)

    def test_absent_chunks(self):
        for chunk in ("1.1", "3.4"):
            (self.data / "v2" / chunk).unlink()
        right = self.right("v2")
        _, requests, _ = self.read("s3://bucket/v2")
        digest, requests, _ = self.read("s3://bucket/v2", "--cache-age", "1h")
        self.assertEqual((digest, [path for _, path, _ in requests if path.rpartition("/")[2].replace(".", "").isdigit()]),
                         (right, []))
        # Without an age it is asked each time.
        digest, requests, _ = self.read("s3://bucket/v2")
        self.assertTrue(any(path.endswith("/1.1") for _, path, _ in requests))

    def test_damage_costs_a_fetch(self):
        self.read("s3://bucket/v2")
        right = self.right("v2")
        for how in range(3):
            for i, file in enumerate(self.entries()):
                old = file.read_bytes()
                new = {0: old[:len(old) // 2], 1: b"", 2: old[:-1] + bytes([old[-1] ^ 1])}[(i + how) % 3]
                times = file.stat()
                file.write_bytes(new)
                os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
            digest, requests, _ = self.read("s3://bucket/v2", "--cache-age", "1h")
            self.assertEqual(digest, right)
            self.assertGreater(len(requests), 100)
        self.run_program("cache", "verify", "--cache", self.cache)  # removes documents that nobody has read since
        file = self.entries()[5]
        file.write_bytes(file.read_bytes()[:-1] + b"\xff")
        self.assertIn("1 damaged, and removed", self.tessera("cache", "verify", "--cache", self.cache, code=1))
        self.assertIn("none damaged", self.tessera("cache", "verify", "--cache", self.cache))
        # Entries in each other's places, a link, a pipe and a folder.
        entries = self.entries()
        entries[0].write_bytes(entries[1].read_bytes())
        entries[2].unlink()
        entries[2].symlink_to(entries[3])
        entries[4].unlink()
        os.mkfifo(entries[4])
        entries[5].unlink()
        entries[5].mkdir()
        self.assertEqual(self.read("s3://bucket/v2", "--cache-age", "1h")[0], right)

    def test_a_full_disk_costs_a_fetch(self):
        right = self.right("v2")
        self.read("s3://bucket/v3")
        command = [program.PROGRAM, "digest", "s3://bucket/v2", "--cache", str(self.cache)]
        result = subprocess.run(["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *command], capture_output=True, text=True,
                                env={**os.environ, **self.double.environment})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout.split()[0], right)
        self.assertEqual([file.name for file in self.cache.glob("??/*.t*")], [])

    def test_the_bound(self):
        for _ in range(3):
            for name in ("v2", "long", "v3"):
                self.assertEqual(self.read(f"s3://bucket/{name}", "--cache-size", "200K")[0], self.right(name))
                size = sum(-(-file.stat().st_size // 4096) * 4096 for file in self.entries())
                self.assertLessEqual(size, 200 << 10)
        self.assertGreater(size, 50 << 10)
        # What was used longest ago goes first.
        self.tessera("cache", "rm", "--cache", self.cache, "--quiet")
        for name in ("v2", "v3"):
            self.read(f"s3://bucket/{name}", "--cache-size", "460K")
        self.assertEqual(self.needed(self.read("s3://bucket/v3", "--cache-size", "460K", "--cache-age", "1h")[1]), [])
        self.assertNotEqual(self.needed(self.read("s3://bucket/v2", "--cache-size", "460K", "--cache-age", "1h")[1]), [])

    def test_two_processes_fetch_it_once(self):
        self.double.faults.delay = 0.05
        self.double.reset()
        command = [program.PROGRAM, "digest", "s3://bucket/v2", "--cache", str(self.cache)]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    env={**os.environ, **self.double.environment}) for _ in range(3)]
        digests = set()
        for process in running:
            output, errors = process.communicate()
            self.assertEqual((process.returncode, errors), (0, ""))
            digests.add(output.split()[0])
        self.assertEqual(digests, {self.right("v2")})
        whole = [path for (_, path, _), headers in zip(self.double.requests, self.double.headers)
                 if path.rpartition("/")[2].replace(".", "").isdigit() and "If-None-Match" not in headers]
        self.assertEqual(len(whole), 100)
        self.assertEqual(len(set(whole)), 100)

    def test_another_process_makes_it_meanwhile(self):
        """The mark appears between the first look for it and the look at what the folder holds."""
        library = str(self.folder / "meanwhile.so")
        built = subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=MEANWHILE, text=True,
                               capture_output=True) if shutil.which("cc") else None
        if built is None or built.returncode != 0:
            self.skipTest("no C compiler")
        command = [program.PROGRAM, "digest", "s3://bucket/v2", "--cache", str(self.cache)]
        result = subprocess.run(command, capture_output=True, text=True,
                                env={**os.environ, **self.double.environment, "LD_PRELOAD": library})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout.split()[0], self.right("v2"))

    def test_who_may_read_it(self):
        os.umask(0o022)
        self.read("s3://bucket/v2")
        self.assertEqual(stat.S_IMODE(self.cache.stat().st_mode), 0o700)
        for file in self.entries():
            self.assertEqual(stat.S_IMODE(file.stat().st_mode) & 0o077, 0)
        # A shared folder takes what everybody may read, alone.
        self.cache = self.folder / "shared"
        self.cache.mkdir(mode=0o755)
        self.cache.chmod(0o755)
        self.read("s3://bucket/v2")
        self.read(self.places["http"] + "/v2?sig=SECRET")
        self.assertEqual(self.entries(), [])
        self.read(self.places["http"] + "/v2")
        self.assertGreater(len(self.entries()), 100)
        self.double.faults.public = True
        before = len(self.entries())
        self.read("s3+anon://bucket/v2")
        self.assertGreater(len(self.entries()), before + 100)

    def test_no_secret_lies_there(self):
        self.read(self.places["http"] + "/v2?sig=SECRET")
        self.assertGreater(len(self.entries()), 100)
        for file in self.cache.rglob("*"):
            self.assertNotIn("SECRET", str(file))
            if file.is_file():
                self.assertNotIn(b"SECRET", file.read_bytes())

    def test_what_the_folder_must_be(self):
        mine = self.folder / "mine"
        mine.mkdir()
        (mine / "letter").write_text("dear")
        self.refused("digest", "s3://bucket/v2", "--cache", mine, says=["no cache of Tessera", "not empty"])
        self.assertEqual(os.listdir(mine), ["letter"])
        (self.folder / "file").write_text("x")
        self.refused("digest", "s3://bucket/v2", "--cache", "file", says="file")
        self.refused("cache", "ls", "--cache", mine, says="no cache of Tessera")
        self.refused("cache", "ls", says=["--cache", "TESSERA_CACHE"])
        self.refused("cache", "sl", "--cache", mine, says="expected ls, rm or verify")
        self.refused("digest", "s3://bucket/v2", "--cache-age", "soon", says=["--cache-age", "90s, 15m"])
        self.refused("digest", "s3://bucket/v2", env={"TESSERA_CACHE_SIZE": "much"}, says="TESSERA_CACHE_SIZE")

    def test_a_damaged_mark_costs_a_fetch(self):
        right = self.read("s3://bucket/v2")[0]
        mark = self.cache / "tessera-cache"
        _, requests, size = self.read("s3://bucket/v2")

        def a_folder():
            mark.mkdir()

        def a_link():
            mark.symlink_to("/nowhere")

        for make in (lambda: None, a_folder, a_link, lambda: os.mkfifo(mark), lambda: mark.write_bytes(b""),
                     lambda: mark.write_bytes(b"x" * 8)):
            mark.unlink()
            make()
            for _ in range(2):
                values, again, sent = self.read("s3://bucket/v2")
                self.assertEqual(values, right)
            self.assertEqual((len(again), sent), (len(requests), size))
            self.assertTrue(mark.is_file())
        kept = sum(-(-file.stat().st_size // 4096) * 4096 for file in self.cache.glob("??/*"))
        mark.write_bytes(b"")
        self.read("s3://bucket/v3")
        self.assertGreaterEqual(int.from_bytes(mark.read_bytes(), "little"), kept)

    def test_commands(self):
        self.read("s3://bucket/v2")
        self.read("s3://bucket/v3")
        listed = self.tessera_json("cache", "ls", env={"TESSERA_CACHE": str(self.cache)})
        self.assertEqual(listed["entries"], len(self.entries()))
        self.assertIn("s3://bucket/v2/3.3", [value["name"] for value in listed["values"]])
        below = self.tessera_json("cache", "ls", "s3://bucket/v2", "--cache", self.cache)["entries"]
        self.assertGreaterEqual(below, 101)
        self.assertEqual(self.tessera_json("cache", "rm", "s3://bucket/v2/", "--cache", self.cache)["removed"], below)
        self.assertEqual(self.tessera_json("cache", "ls", "--cache", self.cache)["entries"], listed["entries"] - below)
        keep = self.cache / "letter"
        keep.write_text("dear")
        self.tessera("cache", "rm", "--cache", self.cache, "--quiet")
        self.assertEqual(self.entries(), [])
        self.assertTrue(keep.exists())
        self.assertEqual(self.read("s3://bucket/v2")[0], self.right("v2"))


if __name__ == "__main__":
    program.main()
