"""tessera mount: files that other programs open, beside what export writes."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import unittest

import numpy as np

import program
import remote


def can_mount():
    """Whether this machine lets this user mount at all."""
    version = subprocess.run([program.PROGRAM, "--version"], capture_output=True, text=True).stdout
    return "tessera mount" not in version and os.access("/dev/fuse", os.R_OK | os.W_OK)


class Mount:
    """`tessera mount` in a process of its own."""

    def __init__(self, test, *words, env=None):
        self.folder = test.folder / f"mnt{random.randrange(1 << 40)}"
        self.folder.mkdir()
        self.process = subprocess.Popen([program.PROGRAM, "mount", *map(str, words), str(self.folder), "--json"],
                                        cwd=test.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        line = self.process.stdout.readline()
        if not line:
            error = self.process.communicate()[1]
            if "mounting" in error:
                raise unittest.SkipTest(f"this machine does not mount: {error}")
            raise AssertionError(error)
        test.assertEqual(json.loads(line)["folder"], str(self.folder))

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=300)
        return self.process.returncode, errors


@unittest.skipUnless(can_mount(), "no /dev/fuse, or a build without libfuse")
class MountTest(program.ProgramTest):
    @contextlib.contextmanager
    def mounted(self, *words):
        mount = Mount(self, *words)
        try:
            yield mount.folder
        finally:
            code, errors = mount.end()
            self.assertEqual((code, errors), (0, ""))
            self.assertFalse(os.path.ismount(mount.folder))

    def survey(self):
        """A group with coordinates, packed numbers, structures, text, and an array of no dimension."""
        rng = np.random.default_rng(3)
        self.tessera("group", "survey", "--format", "v3", "--quiet")
        arrays = {"depth": rng.normal(size=(30, 41)).astype("<f8"), "time": np.arange(30, dtype="<i4"),
                  "packed": rng.integers(-99, 99, (30, 41)).astype("<i2"), "scalar": np.array(7.5),
                  "flags": rng.integers(0, 2, (30,)).astype(bool), "odd": rng.integers(-99, 99, (3, 5, 7)).astype("i1")}
        for name, values in arrays.items():
            self.save(f"{name}.npy", values)
            chunks = ["--chunks", ",".join(str(max(1, n // 4)) for n in values.shape)] if values.shape else []
            names = {2: ["--dims", "time,x"], 1: ["--dims", "time"]}.get(values.ndim, [])
            self.tessera("copy", f"{name}.npy", f"survey/{name}", "--format", "v3", *chunks, *names, "--quiet")
        self.tessera("attrs", "survey/packed", "set", "scale_factor", "0.1", "--quiet")
        self.tessera("attrs", "survey", "set", "title", '"a survey"', "--quiet")
        return arrays

    def test_what_is_shown_is_what_export_writes(self):
        arrays = self.survey()
        self.tessera("export", "survey", "whole.nc", "--quiet")
        with self.mounted("survey") as folder:
            names = sorted(path.name for path in folder.iterdir())
            self.assertEqual(names, sorted([".tessera-errors", "README.txt", "survey.nc", "survey.zarr"] +
                                           [name + end for name in arrays for end in (".npy", ".zarr")]))
            for name, values in arrays.items():
                np.testing.assert_array_equal(np.load(folder / f"{name}.npy"), values)
                np.testing.assert_array_equal(np.load(folder / f"{name}.npy", mmap_mode="r"), values)
                self.assertEqual((folder / f"{name}.npy").read_bytes(), (self.folder / f"{name}.npy").read_bytes())
            self.assertEqual((folder / "survey.nc").read_bytes(), (self.folder / "whole.nc").read_bytes())
            self.assertEqual((folder / ".tessera-errors").read_text(), "")

    def test_random_reads(self):
        arrays = self.survey()
        self.tessera("export", "survey", "whole.nc", "--quiet")
        rng = random.Random(5)
        with self.mounted("survey", "--max-memory", "16M") as folder:
            pairs = [(folder / "survey.nc", self.folder / "whole.nc")]
            pairs += [(folder / f"{name}.npy", self.folder / f"{name}.npy") for name in arrays]
            for shown, stored in pairs:
                expected = stored.read_bytes()
                with open(shown, "rb", buffering=0) as file:
                    for _ in range(100):
                        at, size = rng.randrange(len(expected) + 9), rng.randrange(1, 5000)
                        self.assertEqual(os.pread(file.fileno(), size, at), expected[at:at + size])

    def test_fortran_order(self):
        arrays = self.survey()
        with self.mounted("survey", "--order", "F") as folder:
            for name in ("depth", "odd"):
                shown = np.load(folder / f"{name}.npy", mmap_mode="r")
                self.assertTrue(shown.flags.f_contiguous)
                np.testing.assert_array_equal(shown, arrays[name])

    def test_netcdf_and_zarr_by_others(self):
        arrays = self.survey()
        xarray = self.imported("xarray")
        with self.mounted("survey") as folder:
            with xarray.open_dataset(folder / "survey.nc", engine="scipy", mmap=False) as data:
                np.testing.assert_allclose(data["packed"].values, arrays["packed"] * 0.1)
                self.assertEqual(data["depth"].dims, ("time", "x"))
                self.assertEqual(data.attrs["title"], "a survey")
            netcdf = self.imported("netCDF4")
            with netcdf.Dataset(folder / "survey.nc") as data:
                np.testing.assert_array_equal(data["flags"][:], arrays["flags"])
                np.testing.assert_array_equal(data["odd"][1:, 2], arrays["odd"][1:, 2])
            if shutil.which("ncdump"):
                header = subprocess.run(["ncdump", "-h", str(folder / "survey.nc")], capture_output=True, text=True, check=True)
                self.assertIn("packed:scale_factor = 0.1", header.stdout)
        zarr = self.imported("zarr")
        with self.mounted("survey", "--as", "v2") as folder:
            for name in ("depth", "odd", "scalar"):
                np.testing.assert_array_equal(zarr.open(str(folder / f"{name}.zarr"), mode="r")[...], arrays[name])
            self.assertEqual(sorted(zarr.open(str(folder / "survey.zarr"), mode="r").array_keys()), sorted(arrays))

    def imported(self, name):
        try:
            return __import__(name)
        except ImportError:
            self.skipTest(f"without {name}")

    def by_program(self, *words):
        """What another program prints; skips if it is not there, or lacks what it needs for that."""
        if not shutil.which(words[0]):
            self.skipTest(f"without {words[0]}")
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
        if "there is no package called" in done.stderr:
            self.skipTest(f"{words[0]} has not what it takes to read netCDF")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_gdal_reads_netcdf_and_zarr(self):
        arrays = self.survey()
        with self.mounted("survey") as folder:
            self.by_program("gdal_translate", "-q", "-of", "XYZ", f"NETCDF:{folder / 'survey.nc'}:packed", self.folder / "out.xyz")
            table = np.loadtxt(self.folder / "out.xyz")
            told = json.loads(self.by_program("gdalinfo", "-json", f"NETCDF:{folder / 'survey.nc'}:packed"))
        self.assertEqual(sorted(table[:, 2]), sorted(arrays["packed"].ravel()))
        self.assertEqual(told["bands"][0]["scale"], 0.1)

    def test_octave_reads_elements(self):
        arrays = self.survey()
        with self.mounted("survey", "--order", "F") as folder:
            code = f"f = fopen('{folder / 'depth.npy'}'); fseek(f, 128, 'bof'); a = fread(f, [30, 41], 'double'); printf('%.17g ', a(8, :))"
            row = self.by_program("octave", "--quiet", "--no-gui", "--eval", code)
        np.testing.assert_array_equal(np.array(row.split(), float), arrays["depth"][7])

    def test_r_reads_netcdf(self):
        arrays = self.survey()
        with self.mounted("survey") as folder:
            code = f"library(ncdf4); f <- nc_open('{folder / 'survey.nc'}'); cat(format(ncvar_get(f, 'packed')[, 8], digits = 15))"
            row = self.by_program("Rscript", "-e", code)
        np.testing.assert_allclose(np.array(row.split(), float), arrays["packed"][7] * 0.1)

    def test_many_arrays_are_listed_without_their_elements(self):
        top = self.folder / "many"
        document = {"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int32", "fill_value": 0,
                    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}}, "attributes": {},
                    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 1}}]}
        for n in range(2000):
            (top / f"a{n}" / "c").mkdir(parents=True)
            (top / f"a{n}" / "zarr.json").write_text(json.dumps(document))
            (top / f"a{n}" / "c" / "0").write_bytes(b"whoever decodes this fails")
        (top / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
        with self.mounted("many") as folder:
            sizes = {entry.name: entry.stat().st_size for entry in os.scandir(folder)}
            self.assertEqual(len(sizes), 2 * 2000 + 4)
            self.assertEqual({sizes[f"a{n}.npy"] for n in range(2000)}, {128 + 16})
            for shown in (folder / "a7.zarr", folder / "many.zarr" / "a8"):
                found = [os.path.join(at, name) for at, _, names in os.walk(shown) for name in names]
                self.assertEqual(len(found), 2)
                self.assertIn(26, [os.stat(name).st_size for name in found])
            self.assertEqual((folder / ".tessera-errors").read_text(), "")
            with self.assertRaises(OSError):
                (folder / "a7.npy").read_bytes()

    def test_groups_in_hdf5(self):
        h5py = self.imported("h5py")
        with h5py.File(self.folder / "f.h5", "w") as file:
            file["top"] = np.arange(6).reshape(2, 3)
            file["in/one"] = np.arange(4.0)
            file["in/deep/two"] = np.arange(5, dtype="i2")
            file["in"].attrs["title"] = "inner"
        with self.mounted("f.h5", "--as", "v2") as folder:
            names = {os.path.relpath(at, folder) for at, _, _ in os.walk(folder)}
            self.assertLessEqual({"in", "in/deep", "f.zarr/in", "f.zarr/in/deep/two", "in/one.zarr", "in/deep/two.zarr"}, names)
            self.assertEqual(json.loads((folder / "f.zarr/in/.zattrs").read_text()), {"title": "inner"})
            np.testing.assert_array_equal(np.load(folder / "in/deep/two.npy"), np.arange(5, dtype="i2"))
            self.assertIn(b"inner", (folder / "in.nc").read_bytes())
            zarr = self.imported("zarr")
            group = zarr.open(str(folder / "f.zarr"), mode="r")
            np.testing.assert_array_equal(group["in/deep/two"][:], np.arange(5))
            np.testing.assert_array_equal(group["in"]["one"][:], np.arange(4.0))

    def test_zarr_copied_out_is_the_array(self):
        arrays = self.survey()
        for format in ("v3", "v2"):
            with self.subTest(format), self.mounted("survey", "--as", format) as folder:
                shutil.copytree(folder / "survey.zarr", self.folder / format)
            for name, values in arrays.items():
                np.testing.assert_array_equal(self.exported(f"{format}/{name}"), values)
            self.tessera("verify", format, "--quiet")

    def test_an_array_by_itself_and_array_files(self):
        values = np.arange(24, dtype=">i4").reshape(4, 6)
        self.save("one.npy", values)
        np.savez(self.folder / "two.npz", a=values, b=values * 2)
        with self.mounted("one.npy") as folder:
            self.assertEqual(sorted(os.listdir(folder)),
                             [".tessera-errors", "README.txt", "one.nc", "one.npy", "one.zarr"])
            np.testing.assert_array_equal(np.load(folder / "one.npy"), values)
        with self.mounted("two.npz") as folder:
            np.testing.assert_array_equal(np.load(folder / "b.npy"), values * 2)
            self.assertTrue((folder / "two.nc").read_bytes().startswith(b"CDF"))
        (self.folder / "all").mkdir()
        for name in ("one.npy", "two.npz"):
            os.rename(self.folder / name, self.folder / "all" / name)
        with self.mounted("all") as folder:
            np.testing.assert_array_equal(np.load(folder / "one.npy"), values)
            np.testing.assert_array_equal(np.load(folder / "two.npz" / "a.npy"), values)

    def test_what_has_no_place_is_told(self):
        self.tessera("group", "g", "--format", "v3", "--quiet")
        self.tessera("create", "g/text", "--shape", "3", "--dtype", "string", "--quiet")
        self.tessera("create", "g/empty", "--shape", "0,4", "--dtype", "f4", "--quiet")
        self.tessera("create", "g/complex", "--shape", "4", "--dtype", "c8", "--quiet")
        with self.mounted("g") as folder:
            with self.assertRaises(OSError):
                (folder / "text.npy").read_bytes()
            self.assertEqual(np.load(folder / "empty.npy").shape, (0, 4))
            self.assertEqual(np.load(folder / "complex.npy").dtype, "c8")
            with self.assertRaises(OSError):
                (folder / "g.nc").read_bytes()
            told = (folder / "README.txt").read_text()
            for name in ("text", "empty", "complex"):
                self.assertIn(f"{name} in its .nc", told)
            self.assertIn("text.npy", (folder / ".tessera-errors").read_text())

    def test_a_damaged_chunk_is_an_error(self):
        values = np.arange(4000, dtype="<i4").reshape(40, 100)
        self.save("a.npy", values)
        self.tessera("copy", "a.npy", "a", "--format", "v2", "--chunks", "10,100", "--codec", "zlib", "--quiet")
        (self.folder / "a" / "2.0").write_bytes(b"not what was stored")
        with self.mounted("a") as folder:
            with open(folder / "a.npy", "rb", buffering=0) as file:
                self.assertEqual(os.pread(file.fileno(), 3900, 128), values.tobytes()[:3900])
                with self.assertRaises(OSError) as raised:
                    os.pread(file.fileno(), 4000, 128 + 9000)
            self.assertEqual(raised.exception.errno, 5)
            self.assertIn("2.0", (folder / ".tessera-errors").read_text())

    def test_nothing_outside_is_shown(self):
        self.save("secret.npy", np.arange(3))
        (self.folder / "box").mkdir()
        self.save("box/own.npy", np.arange(4))
        os.symlink(self.folder / "secret.npy", self.folder / "box" / "link.npy")
        self.save("box/.hidden.npy", np.arange(5))
        with self.mounted("box") as folder:
            self.assertEqual(sorted(os.listdir(folder)), [".tessera-errors", "README.txt", "box.nc", "box.zarr", "own.npy",
                                                          "own.zarr"])
            for name in ("link.npy", ".hidden.npy", "secret.npy"):
                self.assertFalse((folder / name).exists())

    def test_read_only_unless_asked(self):
        self.survey()
        with self.mounted("survey") as folder:
            for mode in ("r+b", "wb", "ab"):
                with self.assertRaises(OSError):
                    open(folder / "depth.npy", mode)
            with self.assertRaises(OSError):
                (folder / "new").write_text("x")
            with self.assertRaises(OSError):
                os.unlink(folder / "depth.npy")

    def test_writing(self):
        arrays = self.survey()
        expected = arrays["depth"].copy()
        rng = np.random.default_rng(8)
        with self.mounted("survey", "--write") as folder:
            shown = np.load(folder / "depth.npy", mmap_mode="r+")
            for _ in range(50):
                i, j = rng.integers(30), rng.integers(41)
                value = rng.normal()
                expected[i, j] = shown[i, j] = value
            shown.flush()
            del shown
            np.testing.assert_array_equal(self.exported("survey/depth"), expected)
            with open(folder / "odd.npy", "r+b", buffering=0) as file:
                os.pwrite(file.fileno(), b"\x05\x06\x07", 128 + 11)
                with self.assertRaises(OSError):
                    os.pwrite(file.fileno(), b"XX", 0)
                os.fsync(file.fileno())
                # Another reader sees it before the file is closed.
                self.assertEqual(np.load(folder / "odd.npy").ravel()[11:14].tolist(), [5, 6, 7])
                self.assertEqual(self.exported("survey/odd").ravel()[11:14].tolist(), [5, 6, 7])
            for path in ("survey.nc", "depth.zarr/zarr.json"):
                with self.assertRaises(OSError):
                    open(folder / path, "r+b")
        self.tessera("verify", "survey", "--quiet")

    def test_the_end_stores_what_mapped_files_hold(self):
        arrays = self.survey()
        mount = Mount(self, "survey", "--write")
        shown = np.load(mount.folder / "depth.npy", mmap_mode="r+")
        shown[7, 9] = arrays["depth"][7, 9] = 77
        self.assertEqual(mount.end(signal.SIGINT)[0], 0)
        np.testing.assert_array_equal(self.exported("survey/depth"), arrays["depth"])

    def test_changes_by_others_are_seen(self):
        self.survey()
        with self.mounted("survey") as folder:
            for value in (1, 2, 3):
                self.tessera("set", "survey/time", ":", str(value), "--quiet")
                self.assertEqual(set(np.load(folder / "time.npy").tolist()), {value})

    def test_a_reader_beside_a_writer_sees_whole_chunks(self):
        self.save("a.npy", np.zeros((2, 900), "<i2"))
        self.tessera("copy", "a.npy", "a", "--format", "v3", "--chunks", "1,900", "--quiet")
        script = self.folder / "sets"
        script.write_text("".join(f"set a 1 {n % 100}\n" for n in range(300)))
        with self.mounted("a") as folder:
            writer = subprocess.Popen(f"while read -r line; do '{program.PROGRAM}' $line --quiet; done < sets", shell=True,
                                      cwd=self.folder)
            seen = set()
            while writer.poll() is None:
                values = np.load(folder / "a.npy")
                self.assertEqual(len(set(values[1].tolist())), 1)
                seen.add(int(values[1, 0]))
            self.assertGreater(len(seen), 2)
            self.assertEqual(set(np.load(folder / "a.npy")[1].tolist()), {99})

    def test_names_that_meet(self):
        self.tessera("group", "g", "--format", "v3", "--quiet")
        for name in ("one", "One", "b"):
            self.tessera("create", f"g/{name}", "--shape", "3", "--dtype", "i4", "--quiet")
        self.tessera("group", "g/b.npy", "--format", "v3", "--quiet")
        with self.mounted("g") as folder:
            names = os.listdir(folder)
            self.assertEqual(len(names), len(set(names)))
            self.assertTrue((folder / "b.npy").is_dir())
            told = (folder / "README.txt").read_text()
            self.assertIn("differs in case alone", told)
            self.assertIn("b.npy of b: a group has this name", told)

    def test_kill_and_mount_again(self):
        self.survey()
        for _ in range(3):
            mount = Mount(self, "survey")
            self.assertTrue((mount.folder / "depth.npy").exists())
            mount.process.kill()
            mount.process.communicate()
            subprocess.run(["fusermount3", "-u", str(mount.folder)], check=True)
            self.assertEqual(os.listdir(mount.folder), [])
        mount = Mount(self, "survey")
        subprocess.run(["fusermount3", "-u", str(mount.folder)], check=True)
        mount.process.communicate(timeout=300)
        self.assertEqual(mount.process.returncode, 0)

    def test_refusals(self):
        self.survey()
        self.refused("mount", "survey", "absent", says="mkdir")
        self.refused("mount", "survey", ".", says="must be empty")
        (self.folder / "free").mkdir()
        self.refused("mount", "nothing", "free", says="nothing")
        # Whoever listed it would wait for it, and it for what it shows.
        (self.folder / "survey" / "inside").mkdir()
        for path, folder in (".", "free"), ("survey", "survey/inside"), ("./survey/../survey", "survey/inside"):
            self.refused("mount", path, folder, says="choose a folder elsewhere")
        (self.folder / "survey" / "inside").rmdir()


@unittest.skipUnless(can_mount(), "no /dev/fuse, or a build without libfuse")
class FarMountTest(remote.InBucket, program.ProgramTest):
    def test_an_array_in_s3(self):
        values = np.arange(2000, dtype="<f4").reshape(40, 50)
        self.save("a.npy", values)
        self.tessera("copy", "a.npy", "s3://bucket/g/a", "--format", "v3", "--chunks", "10,10", "--quiet")
        mount = Mount(self, "s3://bucket/g", env={**self.environment, **self.double.environment})
        try:
            np.testing.assert_array_equal(np.load(mount.folder / "a.npy", mmap_mode="r"), values)
            # A stamp is asked for by one byte.
            asked = [path for command, path, part in self.double.requests
                     if command == "GET" and "/a/c/" in path and part is None]
            self.assertEqual(len(asked), len(set(asked)), "a chunk was read twice")
        finally:
            self.assertEqual(mount.end(), (0, ""))


if __name__ == "__main__":
    program.main()
