"""GRIB 1 and 2 through the program: by a writer of a few lines, golden files, and beside cfgrib where it is installed.

Debian 12's python3-cfgrib cannot stand beside libcurl4-openssl-dev: by hand, with PYTHONPATH of a folder that has cfgrib
and eccodes."""

import itertools
import os
import random
import shutil
import struct
import unittest
from pathlib import Path

import numpy as np

import remote
from program import FEWER, GOLDEN, PROGRAM, ProgramTest, chosen, zarr

try:
    import cfgrib
    import eccodes
except (ImportError, RuntimeError):
    cfgrib = eccodes = None

SAMPLES = Path("/usr/share/eccodes/samples")
GRIB = GOLDEN / "grib"


def section(number, form, *values, more=b""):
    body = struct.pack(">" + form, *values) + more
    return struct.pack(">IB", len(body) + 5, number) + body


def grid(rows=3, columns=4, negative=0, upwards=0, by_columns=0, zigzag=0):
    """Section 3: a latitude-longitude grid that scans in some order."""
    south, north, west, east = 10, 10 + 5 * (rows - 1), 20, 20 + 10 * (columns - 1)
    first, last = (south, north) if upwards else (north, south)
    begin, end = (east, west) if negative else (west, east)
    million = 10**6
    return section(3, "BIBBH BBIBIBI IIII II B IIII B", 0, rows * columns, 0, 0, 0, 6, 255, 2**32 - 1, 255, 2**32 - 1, 255,
                   2**32 - 1, columns, rows, 0, 2**32 - 1, first * million, begin * million, 0x30, last * million,
                   end * million, 10 * million, 5 * million, negative << 7 | upwards << 6 | by_columns << 5 | zigzag << 4)


def message(values, name="t", *, shape=None, level=(1, 0), day=29, hour=6, minute=0, step=0, unit=1, member=None, exact=False,
            **scan):
    """A message of GRIB 2 with halves of integers (or float64s): NaN is missing. `unit` 0 is minutes."""
    values = np.asarray(values, "f8").ravel()
    category, number = {"t": (0, 0), "u": (2, 2), "v": (2, 3)}[name]
    product = struct.pack(">BBBBBHBBIBBIBBI", category, number, 2, 0, 0, 0, 0, unit, step, level[0], 0, level[1], 255, 255,
                          2**32 - 1)
    if member is not None:
        product += struct.pack(">BBB", 3, member, 9)
    there = ~np.isnan(values)
    bitmap = section(6, "B", 255) if there.all() else section(6, "B", 0, more=np.packbits(there).tobytes())
    stored = values[there]
    if exact:
        packing, data = section(5, "IHB", len(stored), 4, 2), stored.astype(">f8").tobytes()
    else:
        packing = section(5, "IHfHHBB", len(stored), 0, 0.0, 0x8001, 0, 16, 0)
        data = (stored * 2).astype(">u2").tobytes()
    body = (section(1, "HHBBBHBBBBBBB", 98, 0, 18, 0, 1, 2024, 2, day, hour, minute, 0, 0, 1)
            + grid(*(shape or (3, 4)), **scan) + section(4, "HH", 0, 0 if member is None else 1, more=product) + packing
            + bitmap + section(7, "", more=data))
    return b"GRIB" + struct.pack(">HBBQ", 0, 0, 2, 20 + len(body)) + body + b"7777"


def sample(name, values=None, **keys):
    """A message of ecCodes' sample with some keys, in this order."""
    handle = eccodes.codes_grib_new_from_samples(name)
    try:
        for key, value in keys.items():
            eccodes.codes_set(handle, key, value)
        if values is not None:
            eccodes.codes_set_values(handle, np.asarray(values, "f8").ravel())
        return eccodes.codes_get_message(handle), len(eccodes.codes_get_values(handle))
    finally:
        eccodes.codes_release(handle)


def fields_of(data):
    """Each message of GRIB 2 as its sections."""
    sections, at = [], 16
    while data[at:at + 4] != b"7777":
        size = struct.unpack(">I", data[at:at + 4])[0]
        sections.append(data[at:at + size])
        at += size
    return sections


def joined(first, *more):
    """One message of several fields, from messages of GRIB 2: the others without sections 1 and 2, and 3 where it is the
    same."""
    head = fields_of(first)
    body, grid = b"".join(head), [s for s in head if s[4] == 3][0]
    for other in more:
        body += b"".join(s for s in fields_of(other) if s[4] > 3 or (s[4] == 3 and s != grid))
    body += b"7777"
    return first[:8] + struct.pack(">Q", 16 + len(body)) + body


class GribTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        helper = (Path(PROGRAM).parent / "../libexec/tessera/tessera-grib").resolve()
        if b"codes_handle_new_from_message" not in helper.read_bytes():
            raise unittest.SkipTest("the build has no ecCodes")

    # Files that several tests take.

    def members(self):
        self.write("members.grib2", *[message(np.arange(12) + 100 * n + step, member=n, step=step)
                                      for n in (3, 1, 2) for step in (0, 24)])

    def fields_of_a_message(self):
        values = np.arange(12.0)
        values[5] = np.nan
        one = [message(values + n, name) for n, name in enumerate("tuv")]
        body = joined(*one)
        bitmap = fields_of(one[0])[-2]
        first = body.index(bitmap) + len(bitmap)
        again = body[:first] + body[first:].replace(bitmap, b"\0\0\0\6\6\xfe")  # as before
        self.write("fields.grib2", body)
        self.write("bitmap.grib2", again[:8] + struct.pack(">Q", len(again)) + again[16:])
        self.assertLess(len(again), len(body))

    def groups(self):
        values = np.arange(12.0)
        self.write("groups.grib2", message(values), message(values, level=(103, 2)), message(values, "u", level=(103, 10)),
                   *[message(values + hpa, level=(100, hpa * 100)) for hpa in (1000, 500)])

    def write(self, name, *messages):
        (self.folder / name).write_bytes(b"".join(messages))
        return name

    def contents(self, name):
        """All arrays of a file by way of a copy: path → (elements, attributes); and the groups' attributes."""
        made = name.rpartition(".")[0] + ".zarr"
        shutil.rmtree(self.folder / made, ignore_errors=True)
        self.tessera("copy", name, made, "--quiet", "--format", "v2")
        arrays, groups = {}, {"": dict(zarr.open_group(self.path(made), "r").attrs)}

        def visit(path, node):
            if isinstance(node, zarr.Array):
                arrays[path] = (node[...], dict(node.attrs))
            else:
                groups[path] = dict(node.attrs)
        zarr.open_group(self.path(made), "r").visititems(visit)
        return arrays, groups

    def assert_same(self, ours, theirs, what):
        self.assertEqual(np.shape(ours), np.shape(theirs), what)
        np.testing.assert_array_equal(ours, theirs, err_msg=what)

    def beside_cfgrib(self, name, strict=True):
        """Compares everything with what cfgrib says; returns the number of variables."""
        arrays, groups = self.contents(name)
        known = 0
        for dataset in self.datasets(name):
            variables = {n: v for n, v in dataset.variables.items() if "GRIB_paramId" in v.attributes}
            for short, theirs in variables.items():
                values = np.asarray(theirs.data[(slice(None),) * len(theirs.dimensions)])
                path = self.find(arrays, short, theirs, values, dataset)
                self.assertIsNotNone(path, f"{name}: {short} {theirs.dimensions} of {sorted(arrays)}")
                ours, attributes = arrays[path]
                self.assert_same(ours.astype("f4"), values, f"{name}: {path}")
                self.assertEqual(attributes["_ARRAY_DIMENSIONS"], list(theirs.dimensions))
                wanted = {k: v for k, v in theirs.attributes.items()
                          if k not in ("GRIB_missingValue", "coordinates") and str(v) not in ("unknown", "undef")}
                self.assertEqual({k: v for k, v in attributes.items() if k in wanted},
                                 {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in wanted.items()}, path)
                folder = path.rpartition("/")[0]
                self.assertLessEqual({k: v for k, v in dataset.attributes.items() if k != "history"}.items(),
                                     groups[folder].items())
                for axis in theirs.attributes["coordinates"].split():
                    mine = arrays[f"{folder}/{axis}".lstrip("/")]
                    coordinate = dataset.variables[axis]
                    self.assert_same(mine[0], coordinate.data, f"{name}: {axis} of {path}")
                    self.assertEqual(mine[1]["_ARRAY_DIMENSIONS"], list(coordinate.dimensions))
                    self.assertEqual({k: v for k, v in mine[1].items() if not k.startswith("_ARR")},
                                     {k: v for k, v in coordinate.attributes.items() if k != "dtype"}, axis)
                known += 1
        self.assertEqual(known, sum("GRIB_paramId" in attributes for _, attributes in arrays.values()))
        return known

    def find(self, arrays, short, theirs, values, dataset):
        """Where our array of that name lies that has the same levels and type of steps."""
        for path, (ours, attributes) in arrays.items():
            if path.rpartition("/")[2] != short or ours.shape != values.shape:
                continue
            if any(attributes.get(k) != v for k, v in theirs.attributes.items()
                   if k in ("GRIB_paramId", "GRIB_typeOfLevel", "GRIB_stepType", "GRIB_dataType")):
                continue
            folder = path.rpartition("/")[0]
            if all(np.array_equal(arrays[f"{folder}/{axis}".lstrip("/")][0], dataset.variables[axis].data)
                   for axis in theirs.attributes["coordinates"].split() if f"{folder}/{axis}".lstrip("/") in arrays):
                return path
        return None

    def datasets(self, name):
        """A data set of cfgrib for each parameter and whatever else tells variables apart."""
        keys = ["paramId", "typeOfLevel", "dataType", "stepType", "edition", "gridType", "numberOfPoints", "level"]
        stream = cfgrib.messages.FileStream(self.path(name))
        index = cfgrib.dataset.open_fileindex(stream, indexpath="")
        of_variable = {}
        for values, _ in index.iter_index():
            said = dict(zip(index.index_keys, values))
            of_variable[tuple(said.get(k) for k in keys[:-1])] = {k: said[k] for k in keys[:-1] if said[k] != "undef"}
        for keys_of_one in of_variable.values():
            yield cfgrib.open_file(self.path(name), indexpath="", filter_by_keys=keys_of_one, errors="raise")


@unittest.skipUnless(cfgrib, "cfgrib and eccodes are not installed")
class BesideCfgrib(GribTest):
    def test_samples(self):
        """ecCodes' own samples, of all kinds of grids but spectral ones."""
        spectral = ("sh_", "lambert_bf", "budg", "BUFR", "diag", "clusters")
        names = sorted(p.name for p in SAMPLES.glob("*.tmpl") if p.read_bytes()[:4] == b"GRIB"
                       and not p.name.startswith(spectral) and not any(c.isdigit() for c in p.name.split("_grib")[0]))
        self.assertGreater(len(names), 20)
        for name in chosen(names):
            with self.subTest(name):
                (self.folder / "x.grib").write_bytes((SAMPLES / name).read_bytes())
                self.assertEqual(self.beside_cfgrib("x.grib"), 1)

    def test_random(self):
        """Random hypercubes with holes, several variables, levels, editions, packings and bitmaps."""
        for seed in range(int(os.environ.get("TESSERA_GRIB_CASES", 6))):
            with self.subTest(seed):
                draw = random.Random(seed)
                messages = self.random_messages(draw)
                draw.shuffle(messages)
                self.write("x.grib", *messages)
                self.assertGreater(self.beside_cfgrib("x.grib"), 0)

    def random_messages(self, draw):
        numbers = np.random.default_rng(draw.randrange(10**6))
        name = draw.choice(["regular_ll_sfc_grib2", "regular_ll_sfc_grib1", "regular_gg_pl_grib2", "reduced_gg_pl_32_grib2",
                            "regular_gg_sfc_grib1", "polar_stereographic_pl_grib2"])
        levels = draw.choice([["isobaricInhPa", 500, 850, 1000], ["heightAboveGround", 2, 10], ["surface", 0]])
        size = sample(name)[1]
        messages = []
        for short, level, day, step in itertools.product(draw.sample(["t", "u", "v", "q"], 2), levels[1:], (1, 2), (0, 6, 12)):
            if draw.random() < 0.2:
                continue
            values, more = numbers.normal(250, 20, size), {}
            if draw.random() < 0.4:
                values[numbers.random(size) < 0.3] = 9999
                more = dict(bitmapPresent=1, missingValue=9999)
            packing = draw.choice(["grid_simple", "grid_ieee"] + (["grid_ccsds", "grid_jpeg"] if "grib2" in name else []))
            messages.append(sample(name, values, typeOfLevel=levels[0], level=level, shortName=short, bitsPerValue=16,
                                   dataDate=20240200 + day, dataTime=1200, endStep=step, packingType=packing, **more)[0])
        return messages

    def test_members_fields_groups(self):
        self.members()
        self.assertEqual(self.beside_cfgrib("members.grib2"), 1)
        self.fields_of_a_message()
        for name in ("fields.grib2", "bitmap.grib2"):
            self.assertEqual(self.beside_cfgrib(name), 3)
        self.groups()
        self.assertEqual(self.beside_cfgrib("groups.grib2"), 4)


class Meaning(GribTest):
    def test_members(self):
        """An ensemble: a dimension number."""
        self.members()
        self.assertEqual(self.tessera_json("info", "members.grib2::t")["shape"], [3, 2, 3, 4])
        np.testing.assert_array_equal(self.exported("members.grib2::t")[:, :, 0, 1], [[101, 125], [201, 225], [301, 325]])
        np.testing.assert_array_equal(self.exported("members.grib2::number"), [1, 2, 3])

    def test_fields_of_a_message(self):
        """Several fields in one message, one with the bitmap of another."""
        self.fields_of_a_message()
        for name in ("fields.grib2", "bitmap.grib2"):
            for n, short in enumerate("tuv"):
                values = np.arange(12.0).reshape(3, 4) + n
                values[1, 1] = np.nan
                np.testing.assert_array_equal(self.exported(f"{name}::{short}"), values)

    def test_groups(self):
        """What is no data set together is in groups by type of level."""
        self.groups()
        arrays, _ = self.contents("groups.grib2")
        self.assertEqual(sorted(path for path, (_, attributes) in arrays.items() if "GRIB_paramId" in attributes),
                         ["heightAboveGround/u10", "heightAboveGround_2/t2m", "isobaricInhPa/t", "surface/t"])
        np.testing.assert_array_equal(arrays["isobaricInhPa/t"][0][:, 0, 0], [1000, 500])
        np.testing.assert_array_equal(arrays["isobaricInhPa/isobaricInhPa"][0], [1000, 500])
        self.assertEqual(arrays["heightAboveGround_2/heightAboveGround"][0], 2)

    def test_scanning(self):
        """All orders of points: what stands at a latitude and longitude is what was put there."""
        for negative, upwards, by_columns, zigzag in chosen(itertools.product((0, 1), repeat=4)):
            with self.subTest(negative=negative, upwards=upwards, by_columns=by_columns, zigzag=zigzag):
                lats = np.array([10, 15, 20.0])[::1 if upwards else -1]
                lons = np.array([20, 30, 40, 50.0])[::-1 if negative else 1]
                field = lats[:, None] * 100 + lons
                lines = field.T.copy() if by_columns else field.copy()
                if zigzag:
                    lines[1::2] = lines[1::2, ::-1]
                self.write("x.grib2", message(lines, negative=negative, upwards=upwards, by_columns=by_columns, zigzag=zigzag))
                arrays, _ = self.contents("x.grib2")
                np.testing.assert_allclose(arrays["latitude"][0], lats)
                np.testing.assert_allclose(arrays["longitude"][0], lons)
                np.testing.assert_array_equal(arrays["t"][0], field)

    def test_missing(self):
        """9999 is a value, and what the bitmap says is missing."""
        values = np.array([9999.0] * 6 + [1.0] * 6)
        self.write("x.grib2", message(values))
        np.testing.assert_array_equal(self.exported("x.grib2::t").ravel(), values)
        values[:3] = np.nan
        self.write("x.grib2", message(values))
        np.testing.assert_array_equal(self.exported("x.grib2::t").ravel(), values)
        self.write("x.grib2", message([np.nan] * 12))
        self.assertTrue(np.isnan(self.exported("x.grib2::t")).all())

    def test_precision(self):
        """float64 where float32 does not hold what is packed."""
        values = np.arange(12) + 1e8 + 0.125
        self.write("x.grib2", message(values, exact=True))
        self.assertEqual(self.tessera_json("info", "x.grib2::t")["dtype"], "<f8")
        np.testing.assert_array_equal(self.exported("x.grib2::t").ravel(), values)

    def test_holes_and_steps(self):
        """What no message has is missing; steps of minutes."""
        self.write("x.grib2", *[message([day * 10 + minutes] * 12, day=day, hour=18, minute=30, unit=0, step=minutes)
                                for day, minutes in ((28, 0), (28, 15), (29, 15))])
        np.testing.assert_array_equal(self.exported("x.grib2::step"), [0, 0.25])
        np.testing.assert_array_equal(self.exported("x.grib2::time").view("M8[s]"),
                                      np.array(["2024-02-28T18:30", "2024-02-29T18:30"], "M8[s]"))
        self.assertEqual(self.exported("x.grib2::valid_time").view("M8[s]")[1, 1], np.datetime64("2024-02-29T18:45"))
        np.testing.assert_array_equal(self.exported("x.grib2::t")[:, :, 0, 0], [[280, 295], [np.nan, 305]])
        self.assertIn("305", self.tessera("get", "x.grib2::t", "1,1,0,0"))

    def test_same_twice(self):
        """Equal messages are one; others that nothing tells apart are refused, and only they."""
        one, other, wind = message([1] * 12), message([2] * 12), message([3] * 12, "u")
        self.write("x.grib2", one, b"between", one, wind)
        np.testing.assert_array_equal(self.exported("x.grib2::t"), np.ones((3, 4)))
        self.write("y.grib2", one, wind, other)
        self.refused("get", "y.grib2::t", "0,0", says=["message 1 ", "message 3 ", "grib_copy"])
        np.testing.assert_array_equal(self.exported("y.grib2::u"), np.full((3, 4), 3))
        self.assertIn("grib_copy", self.tessera("tree", "y.grib2", code=1))

    def test_only_read(self):
        self.save("a.npy", np.zeros(3))
        self.refused("copy", "a.npy", "a.grib2", says=".grib2 files are only read")
        self.members()
        self.refused("copy", "members.grib2", "a.grib2", says="only read")
        self.assertFalse((self.folder / "a.grib2").exists())
        if SAMPLES.exists():
            self.write("x.grib2", (SAMPLES / "sh_ml_grib2.tmpl").read_bytes())
            self.refused("get", "x.grib2::t", "0", says="spectral")

class FarAway(GribTest):
    def test_ranges(self):
        """In S3 and behind HTTP messages are read by their ranges, and say the same."""
        self.members()
        with remote.serving(self.folder) as double:
            seen = {**os.environ, **double.environment}
            near = self.tessera("digest", "members.grib2::t").split()[0]
            for place in "s3://bucket", double.origin + "/files":
                path = f"{place}/members.grib2"
                self.assertEqual(self.tessera("digest", f"{path}::t", env=seen).split()[0], near)
                self.assertIn("valid_time", self.tessera("tree", path, env=seen))


class Golden(GribTest):
    """Files of tests/golden/grib, without ecCodes for Python."""

    def test_values(self):
        for name in ("one.grib1", "two.grib2"):
            with self.subTest(name):
                expected = np.load(GRIB / (name + ".npy"))
                np.testing.assert_array_equal(self.exported(f"{GRIB / name}::t"), expected)
                self.tessera("verify", GRIB / name)

    def test_damaged(self):
        """Each byte changed, and each length cut: an error that names the file, or values; no crash of ours, no hang."""
        data = (GRIB / "two.grib2").read_bytes()
        draw = random.Random(5)
        for case in range(8 if FEWER > 1 else 24):
            damaged = bytearray(data)
            if case % 3 == 0:
                damaged = damaged[:draw.randrange(8, len(data))]
            else:
                for _ in range(draw.randint(1, 3)):
                    damaged[draw.randrange(8, len(data))] = draw.choice([0, 255, draw.randrange(256)])
            self.write("x.grib2", bytes(damaged))
            result = self.run_program("verify", "x.grib2", env=os.environ | {"TESSERA_MAX_MEMORY": "256M"})
            self.assertIn(result.returncode, (0, 1, 2, 3), f"case {case}\n{result.stdout}{result.stderr}")
            if result.returncode > 1:
                self.assertIn("x.grib2", result.stderr + result.stdout)

    def test_lengths(self):
        """Lengths that the file does not have name the message."""
        data = (GRIB / "two.grib2").read_bytes()
        first = struct.unpack(">Q", data[8:16])[0]
        for name, damaged, says in (
                ("cut", data[:-20], "message 2"), ("huge", data[:8] + b"\x7f" + b"\xff" * 7 + data[16:], "message 1"),
                ("section", data[:16] + b"\xff\xff\xff\xff" + data[20:], "section 1"),
                ("edition", data[:first + 7] + b"\3" + data[first + 8:], "edition 3"),
                ("end", data[:first - 4] + b"6666" + data[first:], "message 1")):
            with self.subTest(name):
                self.write(name + ".grib2", damaged)
                self.refused("info", name + ".grib2", says=[name + ".grib2", says], code=2)


if __name__ == "__main__":
    unittest.main()
