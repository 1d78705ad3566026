"""--json: what every command prints is JSON by the standard, of one type for each member, with exact values."""

import json
import os
import subprocess
import unittest

import numpy as np
import program
from program import GOLDEN, PROGRAM, ProgramTest

NOT_FINITE = {"NaN", "Infinity", "-Infinity"}
# Members that hold an element have the type of its dtype; the others belong to the user or to a file format.
OF_THE_DTYPE = {"min", "max", "mean", "fill_value", "a", "b"}
CONTENT = {"attributes", "unknown_members", "fields", "configuration", "header"}

ARRAYS = {
    "i8": np.array([-2**63, 2**63 - 1, 0]),
    "u8": np.array([2**64 - 1, 2**53 + 1], "u8"),
    "f8": np.array([[np.nan, 1.5], [np.inf, -np.inf]]),
    "f4": np.array([0.1, 3e38], ">f4"),
    "b1": np.array([True, False]),
    "c16": np.array([complex(1, np.nan), 2j]),
    "dates": np.array(["2006-09-16", "2006-09-17", "NaT"], "M8[D]"),
    "spans": np.array([3, 5, "NaT"], "m8[ms]"),
    "text": np.array(["a", "\u202eb"]),
    "bytes": np.array([b"a\xff"]),
    "raw": np.array([b"ab"], "V2"),
    "records": np.array([(1, np.nan, "2001-02-03", [[1, 2]])],
                        [("i", "u1"), ("f", "f4"), ("t", "M8[s]"), ("s", "i2", (1, 2))]),
    "empty": np.zeros((0, 3)),
    "zero": np.array(7, "i4"),
}


def strict(text):
    """Parses as the standard has it: no bare NaN, no repeated member, no surrogate alone."""
    def no_constant(name):
        raise ValueError(f"bare {name}")

    def members(pairs):
        assert len(dict(pairs)) == len(pairs), pairs
        return dict(pairs)

    value = json.loads(text, parse_constant=no_constant, object_pairs_hook=members)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def types_of(value, path=()):
    """(path, type) of every member whose type a program relies on; null is any type."""
    if isinstance(value, dict):
        yield path, "object"
        for name, member in value.items():
            if name not in OF_THE_DTYPE | CONTENT:
                yield from types_of(member, (*path, name))
    elif isinstance(value, list):
        yield path, "array"
        for item in value:
            yield from types_of(item, (*path, "[]"))
    elif isinstance(value, str) and value in NOT_FINITE:
        yield path, "float"
    elif value is not None:
        yield path, type(value).__name__


class Json(ProgramTest):
    def run_json(self, *words):
        result = subprocess.run([PROGRAM, *map(str, words), "--json"], capture_output=True, cwd=self.folder, timeout=300)
        for line in result.stderr.splitlines():
            self.assertIn(strict(line)["level"], ("note", "error"))
        return result.returncode, strict(result.stdout.decode()) if result.stdout else None

    def make_arrays(self):
        for name, array in ARRAYS.items():
            self.save(f"{name}.npy", array)
            for form in ("v2", "v3"):
                if not (form == "v3" and name == "raw"):
                    self.run_json("import", f"{name}.npy", f"{form}/{name}", "--format", form)
        self.run_json("create", "v2/nan", "--shape", 3, "--dtype", "f4", "--fill", "NaN", "--format", "v2")
        self.run_json("create", "sharded", "--shape", "64,64", "--dtype", "i2", "--chunks", "8,8", "--shard", "32,32",
                      "--format", "v3")
        np.savez(self.folder / "several.npz", **{n: ARRAYS[n] for n in ("i8", "text")})
        self.tessera("group", "h", "--format", "v2", "--attrs", '{"x": NaN}')
        for name in ("f8", "text"):
            self.tessera("import", f"{name}.npy", f"h/{name}", "--quiet")

    def test_each_member_has_one_type(self):
        self.make_arrays()
        stored = [f"{form}/{name}" for form in ("v2", "v3") for name in ARRAYS if (self.folder / form / name).is_dir()]
        files = [f"{name}.npy" for name in ARRAYS]
        runs = {
            ("info",): [[p] for p in [*stored, *files, "sharded", "h", "v2", "several.npz", "v2/nan",
                                      GOLDEN / "ra" / "trailing_metadata.ra", GOLDEN / "mldf" / "stride_204.mldf"]],
            ("tree",): [["v2"], ["h"], ["several.npz"], ["i8.npy"], ["."]],
            ("stats",): [[p] for p in [*stored, *files]],
            ("view",): [[p, *more] for p in stored if p.split("/")[-1].split(".")[0] in ("i8", "u8", "f8", "f4", "b1", "c16", "dates")
                        for more in ([], ["--hist"], ["--chunks"])],
            ("digest",): [["i8.npy"], ["i8.npy", "f8.npy"]],
            ("diff", "--places", 3): [[f"v2/{a}", f"{b}.npy"] for a in ("i8", "f8", "text", "dates", "records")
                                      for b in ("i8", "f8", "text", "dates", "u8")],
            ("verify",): [["v2/f8"], ["h"], ["i8.npy"], ["sharded"]],
            ("copy", "--overwrite"): [["v2/f8", "a"], ["h", "g"], ["several.npz", "m"], ["h", "g", "--dry-run"],
                                      ["i8.npy", "a", "--dry-run"], ["h", "h.npz"], ["v2/f8", "f8.npz"], ["h", "h.zip"]],
            ("consolidate",): [["h"], ["h", "--check"]],
            ("formats",): [[]],
            ("set",): [["v2/i8", "0", "5"], ["v2/f8", "0", "NaN"]],
            ("append",): [["v2/i8", "i8.npy"]],
            ("resize",): [["v2/i8", "9"], ["sharded", "70,70"]],
            ("snapshot", "h"): [["create", "s"], ["restore", "s"]],
            ("repair",): [["v2/i8"], ["h", "--dry-run"]],
            ("seal",): [["v2/i8"]],
            ("attrs", "h"): [["set", "units", '"m"'], ["rm", "units"]],
        }
        for command, cases in runs.items():
            known = {}
            for words in cases:
                code, value = self.run_json(command[0], *words, *command[1:]) if command[0] not in (
                    "snapshot", "attrs") else self.run_json(*command, *words)
                self.assertIn(code, (0, 1), (command, words))
                for path, kind in types_of(value):
                    with self.subTest(command=command[0], words=words, path=path):
                        self.assertEqual(kind, known.setdefault(path, kind))

    def test_elements_are_exact(self):
        self.make_arrays()
        for name, expected in {
            "i8": [-2**63, 2**63 - 1, 0],
            "u8": [2**64 - 1, 2**53 + 1],
            "f8": [["NaN", 1.5], ["Infinity", "-Infinity"]],
            "f4": [0.1, 3e38],
            "b1": [True, False],
            "c16": [[1.0, "NaN"], [0.0, 2.0]],
            "dates": ["2006-09-16", "2006-09-17", "NaT"],
            "spans": [3, 5, "NaT"],
            "text": ["a", "\u202eb"],
            "bytes": ["a\u00ff"],
            "raw": ["0x6162"],
            "records": [[1, "NaN", "2001-02-03T00:00:00", [[1, 2]]]],
            "empty": [],
            "zero": 7,
        }.items():
            with self.subTest(name):
                code, value = self.run_json("get", f"{name}.npy")
                self.assertEqual((code, repr(value)), (0, repr(expected)))
        self.assertNotIn("\u202e", self.tessera("get", "text.npy", "--json"))
        self.assertEqual(self.run_json("info", "v2/nan")[1]["fill_value"], "NaN")
        self.assertEqual(self.run_json("attrs", "h")[1], {"x": "NaN"})
        self.assertEqual(self.run_json("attrs", "h", "get", "x")[1], "NaN")

    def test_formats(self):
        listed = self.tessera_json("formats")
        self.assertEqual([row["name"] for row in listed["formats"]], ["zmeta", "v1", "v2", "v3"])
        self.assertEqual(listed["generations"], listed["formats"], "the former name, deprecated")
        # The others are there if libcurl was.
        schemes = [row["scheme"] for row in listed["stores"]]
        self.assertIn(schemes, [["", "ocfl", "n5"], ["", "ocfl", "n5", "http", "https", "s3", "s3+anon", "gs", "gs+anon"]])
        text = self.tessera("formats")
        for row in [*listed["formats"], *listed["array_files"], *listed["codecs"], *listed["stores"]]:
            self.assertIn(row["about"], text)

    def test_statistics(self):
        self.make_arrays()
        for name, members in {
            "i8": {"min": -2**63, "max": 2**63 - 1},
            "u8": {"min": 2**53 + 1, "max": 2**64 - 1},
            "f8": {"min": "-Infinity", "max": "Infinity", "mean": "NaN", "deviation": "NaN", "nan": 1},
            "f4": {"min": 0.1, "max": 3e38},
            "b1": {"min": False, "max": True, "mean": 0.5},
            "dates": {"min": "2006-09-16", "max": "2006-09-17", "mean": "2006-09-16T12:00:00", "deviation": 0.5, "nan": 1},
            "spans": {"min": 3, "max": 5, "mean": 4.0},
            "text": {"min": "a", "max": "\u202eb", "mean": None},
            "zero": {"min": 7, "max": 7, "mean": 7.0},
            "empty": {"min": None, "max": None, "mean": None, "histogram": None},
        }.items():
            found = self.run_json("stats", f"{name}.npy")[1]
            for member, expected in members.items():
                with self.subTest(name, member=member):
                    self.assertEqual(repr(found[member]), repr(expected))
            self.assertEqual(found["fields"], [])
        found = self.run_json("stats", "records.npy")[1]
        self.assertEqual([f["field"] for f in found["fields"]], ["i", "f", "t", "s"])
        self.assertEqual(found["fields"][2]["mean"], "2001-02-03T00:00:00.000")
        self.assertIn("2006-09-16T12:00:00", self.tessera("stats", "dates.npy"))
        self.assertIn("0.5 D", self.tessera("stats", "dates.npy"))

    def test_the_mean_of_dates(self):
        for unit, dates, mean in (
                ("Y", ["2000", "2001"], "2000-07-02T00:00:00"), ("M", ["1969-12", "1970-01"], "1969-12-16T12:00:00"),
                ("s", ["2020-01-01T00:00:00", "2020-01-01T00:00:01"], "2020-01-01T00:00:00.500"),
                ("ns", ["2020-01-01", "2020-01-03"], "2020-01-02T00:00:00.000000"),
                ("10us", ["1970-01-01", "1970-01-01T00:00:01"], "1970-01-01T00:00:00.500000000")):
            with self.subTest(unit):
                self.save("a.npy", np.array(dates, f"M8[{unit}]"))
                self.assertEqual(self.run_json("stats", "a.npy")[1]["mean"], mean)

    def test_errors_and_notes_are_objects_on_stderr(self):
        self.save("a.npy", np.arange(4))
        self.tessera("import", "a.npy", "a")
        for words, code in ((["info", "nothing"], "not_found"), (["get", "a", "9"], "out_of_bounds"),
                            (["create", "a", "--shape", "1", "--dtype", "i4"], "already_exists"),
                            (["info"], "invalid_argument"), (["nonsense"], "invalid_argument"),
                            (["info", b"\xff\xe2\x80\xae\n\x1b[1m"], "not_found")):
            with self.subTest(words):
                done = subprocess.run([PROGRAM, *words, "--json"], capture_output=True, cwd=self.folder)
                self.assertEqual((done.returncode, done.stdout), (2, b""))
                self.assertEqual(done.stderr.count(b"\n"), 1)
                error = strict(done.stderr.decode())
                self.assertEqual((error["level"], error["code"], error["exit_code"]), ("error", code, 2))
                self.assertIsInstance(error["message"], str)
                for steering in (b"\x1b", b"\xe2\x80\xae"):
                    self.assertNotIn(steering, done.stderr)
        self.tessera("group", "g", "--format", "v2")
        self.tessera("consolidate", "g")
        done = subprocess.run([PROGRAM, "copy", "a", "g/a", "--json"], capture_output=True, cwd=self.folder)
        notes = [strict(line) for line in done.stderr.decode().splitlines()]
        self.assertEqual({n["level"] for n in notes}, {"note"})

    def test_errors_name_the_path(self):
        self.save("a.npy", np.arange(4))
        self.tessera("import", "a.npy", "grid")
        (self.folder / "bad.ra").write_bytes((GOLDEN / "bad" / "ra" / "lz4_too_long.ra").read_bytes())
        for words in (["get", "grid", "9"], ["set", "grid", "9", "1"], ["export", "grid", "o.npy", "--sel", "9"],
                      ["copy", "grid", "b", "--sel", "0, 0"], ["get", "grid", "x"]):
            self.refused(*words, says="tessera: grid: selection")
        self.tessera("import", "a.npy", "h")  # a name that is in many a word
        self.refused("get", "h", "0, 0", says="tessera: h: selection")
        for command in (["digest", "grid", "bad.ra"], ["diff", "bad.ra", "bad.ra"], ["stats", "bad.ra"]):
            done = self.run_program(*command)
            self.assertEqual(done.returncode, 2)
            self.assertIn("bad.ra: ", done.stderr)

    def test_direction_marks_in_names_are_shown(self):
        marks = "".join(map(chr, [*range(0x202a, 0x202f), *range(0x2066, 0x206a), 0x200e, 0x200f, 0x61c]))
        name = f"x{marks}gpj.y"
        self.save("a.npy", np.zeros(2, [(name, "<i4")]))
        self.tessera("group", "g", "--format", "v2", "--quiet")
        self.tessera("import", "a.npy", f"g/{name}", "--quiet")
        self.tessera("attrs", f"g/{name}", "set", name, '"v"')
        for words in (["tree", "g"], ["info", f"g/{name}"], ["attrs", f"g/{name}"], ["verify", f"g/{name}"],
                      ["stats", f"g/{name}"], ["digest", f"g/{name}"], ["info", f"g/{name}/none"],
                      ["copy", "g", "h", "--dry-run"]):
            for more in ([], ["--json"]):
                done = self.run_program(*words, *more)
                shown = done.stdout + done.stderr
                with self.subTest(words[0], more=more):
                    self.assertFalse(set(shown) & set(marks), ascii(shown))
                    self.assertIn(r"\u202e", shown.replace("\\\\", "\\"))

    def test_names_that_are_no_utf8(self):
        name = os.fsdecode(b"\xed\xa0\x80\xff")
        self.tessera("create", f"h/{name}", "--shape", "1", "--dtype", "i4", "--quiet")
        (child,) = self.run_json("tree", "h")[1]["children"]
        self.assertEqual(child["name"], r"\xed\xa0\x80\xff")


if __name__ == "__main__":
    program.main()
