"""Arrays through pipes: "-", /dev/stdin, /dev/stdout and <(…); several paths in one command."""

import hashlib
import io
import json
import os
import subprocess

import numpy as np

from program import PROGRAM, ProgramTest, main

VALUES = np.arange(600, dtype="<i4").reshape(20, 30)


def npy(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


class Pipes(ProgramTest):
    def pipe(self, *words, given=b"", code=0):
        """Runs a command with bytes on a pipe; returns what it writes to another."""
        result = subprocess.run([PROGRAM, *words], input=given, capture_output=True, cwd=self.folder, timeout=300)
        self.assertEqual(result.returncode, code, result.stderr)
        if code == 0:
            self.assertEqual(result.stderr, b"")
        return result.stdout if code == 0 else result.stderr.decode()

    def shell(self, command):
        """By bash, which has <(…)."""
        result = subprocess.run(["bash", "-c", command.replace("tessera", PROGRAM)], capture_output=True,
                                cwd=self.folder, timeout=300)
        self.assertEqual((result.returncode, result.stderr), (0, b""), command)
        return result.stdout

    def test_npy_in_and_out(self):
        for name in ("-", "/dev/stdin"):
            self.pipe("import", name, "x.zarr", "--chunks", "7,7", "--quiet", "--overwrite", given=npy(VALUES))
            np.testing.assert_array_equal(self.exported("x.zarr"), VALUES)
        for name in ("-", "/dev/stdout"):
            self.assertEqual(self.pipe("export", "x.zarr", name), npy(VALUES), "byte for byte as NumPy")
            self.assertEqual(self.pipe("export", "x.zarr", name, "--order", "F"), npy(np.asfortranarray(VALUES)))
            self.assertEqual(self.pipe("get", "x.zarr", "2:4, ::-3", "--out", name), npy(VALUES[2:4, ::-3]))
            self.assertEqual(self.pipe("copy", "-", name, "--sel", "5", "--dtype", "f8", given=npy(VALUES)),
                             npy(VALUES[5].astype("f8")))
        self.assertFalse((self.folder / "-").exists())

    def test_processes_of_the_shell(self):
        self.save("x.npy", VALUES)
        self.shell("tessera import <(cat x.npy) x.zarr --quiet")
        self.assertEqual(self.shell("tessera export x.zarr - | tessera get - 3,4"), b"94\n")
        self.assertEqual(self.shell("tessera get /dev/stdin 3,4 < x.npy"), b"94\n")
        self.shell("tessera export x.zarr /dev/stdout > out.npy")
        np.testing.assert_array_equal(np.load(self.folder / "out.npy"), VALUES)
        self.shell("tessera set x.zarr 0:2 <(tessera export x.zarr - --sel 2:4) --quiet")
        np.testing.assert_array_equal(self.exported("x.zarr")[:2], VALUES[2:4])

    def test_text(self):
        text = b"1,2,3\n4,5,6\n"
        self.pipe("import", "-", "x.zarr", "--as", "csv", "--quiet", given=text)
        np.testing.assert_array_equal(self.exported("x.zarr"), [[1, 2, 3], [4, 5, 6]])
        self.assertEqual(self.pipe("export", "x.zarr", "-", "--as", "csv"), text)
        self.assertEqual(self.pipe("get", "-", "1", "--as", "csv", given=text), b"[4 5 6]\n")
        self.pipe("import", "-", "y.zarr", "--as", "csv", "--dtype", "f4", "--header", "no", "--quiet", given=text)
        self.assertEqual(self.exported("y.zarr").dtype, np.dtype("f4"))
        self.pipe("set", "x.zarr", "0", "-", "--as", "csv", "--quiet", given=b"7\n8\n9\n")
        np.testing.assert_array_equal(self.exported("x.zarr"), [[7, 8, 9], [4, 5, 6]])
        self.assertIn("--as csv reads them as text", self.pipe("import", "-", "z.zarr", given=text, code=2))
        self.assertFalse((self.folder / "z.zarr").exists())

    def test_set_and_append(self):
        self.pipe("import", "-", "x.zarr", "--quiet", given=npy(VALUES))
        self.pipe("set", "x.zarr", "1:3", "-", "--quiet", given=npy(VALUES[:2]))
        self.pipe("append", "x.zarr", "-", "--quiet", given=npy(VALUES[:1]))
        np.testing.assert_array_equal(self.exported("x.zarr"), np.r_[VALUES[:1], VALUES[:2], VALUES[3:], VALUES[:1]])
        names = np.array(["a", "b"])
        self.save("names.npy", names)
        self.tessera("import", "names.npy", "names.zarr", "--quiet")
        self.tessera("set", "names.zarr", "0", "-", "--quiet")  # a text, as any other
        self.assertEqual(list(self.exported("names.zarr")), ["-", "b"])
        self.pipe("set", "names.zarr", "...", "@-", "--quiet", given=npy(names))
        self.assertEqual(list(self.exported("names.zarr")), ["a", "b"])

    def test_objects_of_strings(self):
        words = np.array(["one", "three"], dtype=object)
        self.assertIn("one", self.pipe("get", "-", given=npy(words, allow_pickle=True)).decode())

    def test_refusals(self):
        self.save("x.npy", VALUES)
        self.tessera("import", "x.npy", "x.zarr", "--quiet")
        self.assertIn("standard output or a pipe", self.pipe("import", "x.npy", "-", code=2))
        self.assertIn("only npy and csv", self.pipe("export", "x.zarr", "-", "--as", "npz", code=2))
        self.assertIn("is no format", self.pipe("export", "x.zarr", "-", "--as", "nothing", code=2))
        self.assertIn("--as: only for", self.pipe("import", "x.npy", "y.zarr", "--as", "csv", code=2))
        self.assertIn("cannot be read again", self.pipe("import", "-", "y.zarr", "--resume", given=npy(VALUES), code=2))
        self.assertIn("--json", self.pipe("export", "x.zarr", "-", "--json", code=2))
        for given in (b"", b"\x93NUMPY", npy(VALUES)[:200], npy(VALUES)[:-1], b"\0" * 1000):
            self.pipe("import", "-", "y.zarr", given=given, code=2)
            self.assertFalse((self.folder / "y.zarr").exists())
        self.assertEqual(sorted(os.listdir(self.folder)), ["x.npy", "x.zarr"])

    def test_a_reader_that_goes_ends_it_quietly(self):
        self.save("large.npy", np.zeros((1000, 1000)))
        self.assertEqual(self.shell("tessera export large.npy - 2>&1 | head -c 6"), b"\x93NUMPY")

    def test_a_pipe_larger_than_memory_allows(self):
        large = np.arange(4_000_000, dtype="<f8").reshape(2000, 2000)
        self.pipe("import", "-", "x.zarr", "--max-memory", "8M", "--chunks", "200,200", "--quiet", given=npy(large))
        self.assertEqual(hashlib.sha256(self.pipe("export", "x.zarr", "-", "--max-memory", "8M")).hexdigest(),
                         hashlib.sha256(npy(large)).hexdigest())


class SeveralPaths(ProgramTest):
    def setUp(self):
        super().setUp()
        for name, values in (("a", VALUES), ("b", VALUES + 1)):
            self.save(f"{name}.npy", values)
            self.tessera("import", f"{name}.npy", f"{name}.zarr", "--format", "v3", "--quiet")

    def run_all(self, *words, code=0):
        result = self.run_program(*words)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def test_each_command_takes_several(self):
        for command in ("verify", "stats", "info", "digest"):
            with self.subTest(command):
                alone = [self.tessera_json(command, name) for name in ("a.zarr", "b.zarr")]
                if command == "digest":
                    alone = [one[0] for one in alone]
                self.assertEqual(self.tessera_json(command, "a.zarr", "b.zarr"), alone)
                shown = self.tessera(command, "a.zarr", "b.zarr")
                self.assertLess(shown.index("a.zarr"), shown.index("b.zarr"))

    def test_one_failure_does_not_stop_the_rest(self):
        for command in ("verify", "stats", "info", "digest"):
            with self.subTest(command):
                found = self.run_all(command, "a.zarr", "none.zarr", "b.zarr", "--json", code=2)
                self.assertEqual([one["path"] for one in json.loads(found.stdout)], ["a.zarr", "b.zarr"])
                self.assertEqual(json.loads(found.stderr)["code"], "not_found")
                shown = self.run_all(command, "none.zarr", "b.zarr", code=2)
                self.assertIn("b.zarr", shown.stdout)
                self.assertRegex(shown.stderr, "^tessera: .*none.zarr.*\n$")

    def test_the_worst_code_counts(self):
        (self.folder / "a.zarr/c/0/0").write_bytes(b"damaged")
        self.run_all("verify", "a.zarr", "b.zarr", code=1)
        self.run_all("verify", "b.zarr", "a.zarr", "b.zarr", code=1)
        self.run_all("verify", "none.zarr", "a.zarr", code=2)
        self.assertEqual(json.loads(self.run_all("verify", "none", "nothing", "--json", code=2).stdout), [])

    def test_the_digest_of_a_group(self):
        self.tessera("group", "g.zarr", "--quiet")
        self.tessera("copy", "a.zarr", "g.zarr/one", "--quiet")
        self.tessera("copy", "b.zarr", "g.zarr/sub/two", "--quiet")
        found = self.tessera_json("digest", "g.zarr")[0]
        sums = {name: self.tessera("digest", f"g.zarr/{name}").split()[0] for name in ("one", "sub/two")}
        self.assertEqual({one["path"]: one["digest"] for one in found["arrays"]}, sums)
        lines = "".join(f"{name} {sums[name]}\n" for name in sorted(sums))
        self.assertEqual(found["digest"], "tessera1-group:" + hashlib.sha256(lines.encode()).hexdigest())
        self.tessera("copy", "g.zarr", "h.zarr", "--chunks", "5,5", "--codec", "none", "--format", "v2", "--quiet")
        self.assertEqual(self.tessera_json("digest", "h.zarr")[0]["digest"], found["digest"])
        self.tessera("set", "h.zarr/one", "0,0", "77", "--quiet")
        self.assertNotEqual(self.tessera_json("digest", "h.zarr")[0]["digest"], found["digest"])
        np.savez(self.folder / "both.npz", one=VALUES, two=VALUES + 1)
        self.assertEqual([one["path"] for one in self.tessera_json("digest", "both.npz")[0]["arrays"]], ["one", "two"])
        self.assertIsNone(self.tessera_json("digest", "a.zarr")[0]["arrays"])
        next(p for p in (self.folder / "h.zarr/sub/two").rglob("*") if p.name[0] in "0123456789" and p.is_file()).write_bytes(b"x")
        self.assertIn("sub/two", self.refused("digest", "h.zarr"))


if __name__ == "__main__":
    main()
