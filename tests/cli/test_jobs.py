"""plan, work, finish, job: one copy or computation in units, done by many processes, and what may happen to them."""

import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import time
import unittest

import numpy as np

from program import FEWER, PROGRAM, ProgramTest, main

# In tests/soak many more.
KILLS = int(os.environ.get("TESSERA_JOB_KILLS", "25")) // FEWER + 1

SCHEDULERS = ("SLURM_", "OMPI_", "PMI_", "JOB_COMPLETION", "PBS_", "LSB_", "SGE_")


def environment(**given):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(SCHEDULERS)}
    return {**clean, **given}


class JobTest(ProgramTest):
    def cube(self, name="cube.zarr", chunks="1,100,90"):
        """An array with a part that is all fill."""
        values = np.random.default_rng(7).integers(0, 50, (20, 200, 180)).astype("<i4")
        values[:, :100, :90] = 0
        self.save("cube.npy", values)
        self.tessera("import", "cube.npy", name, "--format", "v3", "--chunks", chunks, "--quiet")
        return values

    def planned(self, *words, parts=4):
        self.tessera("plan", *(words or ("rechunk", "cube.zarr", "out.zarr", "--chunks", "20,25,30")), "--out", "job.json",
                     "--parts", parts, "--max-memory", "8M")
        return json.loads((self.folder / "job.json").read_text())

    def works(self, *words, code=0, **options):
        result = self.run_program("work", "job.json", *words, **options)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def state(self, command="finish", code=0):
        return json.loads(self.tessera(command, "job.json", "--json", code=code))

    def same_as(self, *plain):
        """The target is what the plain command makes."""
        self.tessera(*plain, "--quiet")
        digests = self.tessera("digest", "plain.zarr", "out.zarr").split()
        self.assertEqual(digests[0], digests[2])


class Jobs(JobTest):
    def test_parts(self):
        values = self.cube()
        plan = self.planned()
        self.assertGreaterEqual(plan["units"], 4)
        self.assertLess((self.folder / "job.json").stat().st_size, 5000)
        self.refused("get", "out.zarr", says="unfinished")
        found = self.state(code=1)
        self.assertEqual((found["missing_parts"], found["units_done"], found["finished"]), ("0-3", 0, False))
        self.works("--part", "0/4")
        self.works("--part", "2/4")
        self.assertEqual(self.state(code=1)["missing_parts"], "1,3")
        self.refused("get", "out.zarr", says="unfinished")
        self.works("--part", "1/2")  # another division: what is done is skipped
        self.works("--part", "0/2")
        again = json.loads(self.works("--json").stdout)
        self.assertEqual((again["done"], again["done_before"]), (0, plan["units"]))
        self.assertTrue(self.state()["finished"])
        self.assertTrue((self.exported("out.zarr") == values).all())
        self.same_as("rechunk", "cube.zarr", "plain.zarr", "--chunks", "20,25,30")
        names = lambda name: sorted(str(p.relative_to(self.folder / name)) for p in (self.folder / name).rglob("*")
                                    if ".tessera" not in p.parts)
        self.assertEqual(names("out.zarr"), names("plain.zarr"))
        self.assertFalse((self.folder / "out.zarr" / ".tessera" / "units").exists())
        self.assertTrue(self.state()["finished"])  # again
        self.refused("work", "job.json", says="finished")
        self.assertEqual(self.state("job")["units_done"], plan["units"])

    def test_units_and_bad_words(self):
        self.cube()
        count = self.planned()["units"]
        self.works("--units", f"0,2-{count - 1}")
        self.assertEqual(self.state("job", 1)["missing_units"], "1")
        self.refused("work", "job.json", "--units", f"{count}", says=["--units", f"from 0 to {count - 1}"])
        self.refused("work", "job.json", "--units", "3-1", says="3 is after 1")
        self.refused("work", "job.json", "--part", "4/4", says="numbered from 0 to 3")
        self.refused("work", "job.json", "--part", "0/4", "--claim", says="only one")
        self.refused("work", "cube.zarr/zarr.json", says="not the file of a job")
        self.refused("plan", "rechunk", "cube.zarr", "two.zarr", "--chunks", "20,25,30", "--out", "job.json", says="exists")
        self.assertFalse((self.folder / "two.zarr").exists())
        self.refused("plan", "copy", "cube.zarr", "x.npy", "--out", "x.json", says="one file")
        self.refused("plan", "copy", "cube.zarr", "s3://bucket/x.zarr", "--out", "x.json", says="s3")
        self.refused("plan", "copy", "cube.zarr", "cube.zarr", "--overwrite", "--out", "x.json", says="overlap")
        self.assertFalse((self.folder / "x.json").exists())

    def test_what_the_file_may_say(self):
        self.cube()
        plan = self.planned()
        for change, says in (({"tessera_job": 2}, "expected 1"), ({"target": 5}, "string"), ({"arrays": []}, "at least one")):
            (self.folder / "bad.json").write_text(json.dumps({**plan, **change}))
            self.refused("work", "bad.json", says=says)
        for change, says in (({"built": "/etc"}, "built"), ({"block": [1, 1, 1]}, "whole chunks"), ({"node": "../x"}, "below")):
            (self.folder / "bad.json").write_text(json.dumps({**plan, "arrays": [{**plan["arrays"][0], **change}]}))
            self.refused("work", "bad.json", says=says)
        self.assertEqual(self.state("job", 1)["units_done"], 0)

    def test_part_auto(self):
        self.cube()
        self.planned()
        for given, says, missing in (
                ({"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "1"}, "part 3 of 4", "0-2"),
                ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"},
                 "part 0 of 4", "1-2"),
                ({"SGE_TASK_ID": "2", "LSB_JOBINDEX": "0"}, "part 1 of 4", "2"),
                ({"JOB_COMPLETION_INDEX": "1", "PMI_RANK": "0", "PMI_SIZE": "2"}, "part 2 of 8", "2")):
            result = self.works("--part", "auto", env=environment(**given))
            self.assertIn(says, result.stderr)
            self.assertEqual(self.state("job", 1)["missing_parts"], missing)
        result = self.works("--part", "auto", env=environment(LSB_JOBINDEX="3", SGE_TASK_ID="undefined"))
        self.assertIn("part 2 of 4", result.stderr)
        self.assertTrue(self.state()["finished"])
        self.tessera("plan", "copy", "cube.zarr", "more.zarr", "--out", "more.json")
        for given, says in (({}, "no scheduler"), ({"PBS_ARRAY_INDEX": "7"}, "say --parts"),
                            ({"SLURM_ARRAY_TASK_ID": "x"}, "no number")):
            self.refused("work", "more.json", "--part", "auto", env=environment(**given), says=says)
        self.refused("work", "more.json", "--part", "auto", "--parts", "4", env=environment(PBS_ARRAY_INDEX="4"), says="4 parts")

    def test_commands(self):
        self.cube()
        for name, plain in {"stack": ("stack", "cube.npy", "cube.npy", "plain.zarr", "--format", "v3", "--chunks", "1,5,50,50"),
                            "calc": ("calc", "plain.zarr", "a * 2 - b", "a=cube.zarr", "b=cube.npy", "--dtype", "f4"),
                            "reduce": ("reduce", "cube.zarr", "plain.zarr", "--axis", "0", "--with", "mean", "--chunks", "50,50"),
                            "coarsen": ("coarsen", "cube.zarr", "plain.zarr", "--by", "2,4,4", "--chunks", "5,25,20"),
                            "copy": ("copy", "cube.npy", "plain.zarr", "--sel", "3, 10:150, ::-1", "--format", "v2",
                                     "--chunks", "30,40", "--dtype", "i2")}.items():
            with self.subTest(name):
                for old in ("out.zarr", "plain.zarr"):
                    shutil.rmtree(self.folder / old, ignore_errors=True)
                (self.folder / "job.json").unlink(missing_ok=True)
                count = self.planned(*["out.zarr" if word == "plain.zarr" else word for word in plain])["units"]
                self.works("--part", "1/2")
                self.works("--part", "0/2")
                self.assertEqual(self.state()["units_done"], count)
                self.same_as(*plain)

    def test_pyramid(self):
        self.cube()
        plain = ("pyramid", "cube.zarr", "plain.zarr", "--levels", "3", "--axes", "z,y,x", "--chunks", "5,50,50")
        self.planned(*["out.zarr" if word == "plain.zarr" else word for word in plain])
        self.works("--claim")
        self.assertTrue(self.state()["finished"])
        self.tessera(*plain, "--quiet")
        for level in "012":
            digests = self.tessera("digest", f"plain.zarr/{level}", f"out.zarr/{level}").split()
            self.assertEqual(digests[0], digests[2])
        self.assertEqual(json.loads((self.folder / "out.zarr" / "zarr.json").read_text()),
                         json.loads((self.folder / "plain.zarr" / "zarr.json").read_text()))

    def test_replaces(self):
        values = self.cube()
        self.tessera("create", "out.zarr", "--shape", "4", "--dtype", "u1", "--fill", "9", "--quiet")
        self.refused("plan", "rechunk", "cube.zarr", "out.zarr", "--chunks", "20,25,30", "--out", "job.json", says="already")
        self.planned("rechunk", "cube.zarr", "out.zarr", "--chunks", "20,25,30", "--overwrite")
        self.works()
        self.assertIn("[9 9 9 9]", self.tessera("get", "out.zarr"))
        self.state()
        self.assertTrue((self.exported("out.zarr") == values).all())
        self.assertEqual([p.name for p in self.folder.glob(".*")], [])

    def test_lost_and_changed_files_of_the_target(self):
        self.cube()
        self.planned()
        self.works()
        chunk = next(p for p in sorted((self.folder / "out.zarr" / "c").rglob("*")) if p.is_file())
        original = chunk.read_bytes()
        for damage in (lambda: chunk.unlink(), lambda: chunk.write_bytes(original[:-1] + b"?")):
            damage()
            found = self.state(code=1)
            self.assertEqual(found["finished"], False)
            self.assertRegex(found["missing_units"], r"^\d+$")
        chunk.write_bytes(original)  # another time, but the content that was recorded
        self.assertTrue(self.state()["finished"])

    def test_lost_units_are_done_again(self):
        self.cube()
        count = self.planned()["units"]
        self.works()
        chunk = next(p for p in sorted((self.folder / "out.zarr" / "c").rglob("*")) if p.is_file())
        chunk.unlink()
        missing = self.state(code=1)["missing_units"]
        self.assertRegex(missing, r"^\d+$")
        self.assertEqual(self.state("job", 1)["missing_units"], missing)
        again = json.loads(self.works("--json").stdout)
        self.assertEqual((again["done"], again["done_before"]), (1, count - 1))
        self.assertTrue(chunk.exists())
        self.assertTrue(self.state()["finished"])
        self.same_as("rechunk", "cube.zarr", "plain.zarr", "--chunks", "20,25,30")

    def test_what_reading_has_refused_is_not_accepted_later(self):
        """A damaged chunk of the same size and time is found by --read alone."""
        self.cube()
        self.planned()
        self.works()
        chunk = next(p for p in sorted((self.folder / "out.zarr" / "c").rglob("*")) if p.is_file())
        status = chunk.stat()
        with chunk.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))
        os.utime(chunk, ns=(status.st_atime_ns, status.st_mtime_ns))
        found = json.loads(self.tessera("finish", "job.json", "--read", "--json", code=1))
        self.assertRegex(found["missing_units"], r"^\d+$")
        self.assertEqual(self.state(code=1)["missing_units"], found["missing_units"])
        self.works("--claim")
        self.assertTrue(self.state()["finished"])
        self.same_as("rechunk", "cube.zarr", "plain.zarr", "--chunks", "20,25,30")

    def test_changed_sources(self):
        self.cube()
        chunk = self.folder / "cube.zarr" / "c" / "3" / "1" / "1"
        absent = self.folder / "cube.zarr" / "c" / "3" / "0" / "0"
        self.assertFalse(absent.exists())

        def rewrite():
            chunk.write_bytes(chunk.read_bytes())

        def old_time():
            status = chunk.stat()
            chunk.write_bytes(chunk.read_bytes())
            os.utime(chunk, ns=(status.st_atime_ns, status.st_mtime_ns))

        changes = {"rewritten": rewrite, "rewritten with its time": old_time, "deleted": chunk.unlink,
                   "made": lambda: shutil.copy(chunk, absent),
                   "metadata": lambda: self.tessera("attrs", "cube.zarr", "set", "a", "1", "--no-log", "--no-undo")}
        for name, change in changes.items():
            for late in (False, True):
                with self.subTest(name, late=late):
                    for place in ("cube.zarr", "out.zarr"):
                        shutil.rmtree(self.folder / place, ignore_errors=True)
                    (self.folder / "job.json").unlink(missing_ok=True)
                    self.cube()
                    self.planned()
                    if late:
                        self.works()
                    change()
                    if not late:
                        self.refused_by_work()
                    self.refused("finish", "job.json", says=["cube.zarr", "after the job was planned"])

    def test_changed_parts_of_a_join(self):
        for command in "stack", "concat":
            self.cube()
            self.planned(command, "cube.zarr", "cube.zarr", "out.zarr")
            chunk = self.folder / "cube.zarr" / "c" / "3" / "1" / "1"
            chunk.write_bytes(chunk.read_bytes())
            self.refused_by_work()
            self.refused("finish", "job.json", says=["cube.zarr", "after the job was planned"])
            for place in ("cube.zarr", "out.zarr"):
                shutil.rmtree(self.folder / place)
            (self.folder / "job.json").unlink()

    def refused_by_work(self):
        result = self.run_program("work", "job.json")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("after the job was planned", result.stderr)
        self.assertNotIn("after the job was planned", self.tessera("job", "job.json", code=1))

    def test_deleted_chunk_is_no_fill(self):
        self.cube()
        self.planned()
        (self.folder / "cube.zarr" / "c" / "3" / "1" / "1").unlink()
        self.refused_by_work()

    def test_changed_file(self):
        self.save("a.npy", np.arange(1000))
        self.planned("copy", "a.npy", "out.zarr", "--chunks", "100")
        self.save("a.npy", np.arange(1000))
        result = self.run_program("work", "job.json")
        self.assertEqual(result.returncode, 2)
        self.assertIn("a.npy changed after the job was planned", result.stderr)

    def test_failed_units(self):
        self.cube()
        chunk = self.folder / "cube.zarr" / "c" / "3" / "1" / "1"
        chunk.write_bytes(b"damaged")
        self.planned()
        result = self.works(code=2)
        self.assertIn("failed", result.stderr)
        found = self.state(code=2)
        self.assertTrue(found["missing_units"])
        self.assertIn("c/3/1/1", found["failures"][0]["message"])
        self.assertEqual(self.state("job", 2)["failures"], found["failures"])
        self.assertLess(0, found["units_done"])

    def test_leftovers_of_the_killed(self):
        """Of a plan beside the file of the job, of a finish beside the target: the next one removes them."""
        self.cube()
        self.tessera("create", "out.zarr", "--shape", "4", "--dtype", "u1", "--quiet")
        rechunk = ("rechunk", "cube.zarr", "out.zarr", "--chunks", "20,25,30", "--overwrite")
        self.planned(*rechunk)
        self.works()
        beside = self.folder / ".out.zarr.tessera-new"
        records = next((beside / ".tessera" / "units").glob("*.log")).name
        dead = subprocess.Popen(["true"])
        dead.wait()
        temporary = f".tessera-tmp-{dead.pid}-" + records.split("-", 1)[1].rsplit("-", 1)[0]
        for place in (self.folder, beside, beside / ".tessera", beside / "c" / "0"):
            (place / temporary).write_text("half")
        self.tessera("plan", "copy", "cube.npy", "other.zarr", "--out", "other.json")
        self.assertFalse((self.folder / temporary).exists())
        self.assertTrue(self.state()["finished"])
        self.assertEqual([p.name for p in self.folder.rglob(".tessera-tmp*")], [])
        self.assertEqual([p.name for p in self.folder.glob(".*")], [])
        shutil.copytree(self.folder / "cube.zarr", beside)  # as if it had been killed while it removed the old array
        self.assertTrue(self.state()["finished"])
        self.assertFalse(beside.exists())
        (self.folder / "job.json").rename(self.folder / "first.json")
        self.planned(*rechunk)
        self.tessera("finish", "first.json")
        self.assertTrue(beside.exists())  # of the next job, which goes on
        self.works()
        self.assertTrue(self.state()["finished"])

    def test_links_in_the_place_of_records(self):
        self.cube()
        self.planned()
        (self.folder / "elsewhere").mkdir()
        (self.folder / "elsewhere" / "0").write_text("kept")
        (self.folder / "out.zarr" / ".tessera" / "units" / "claims").symlink_to(self.folder / "elsewhere")
        self.refused("work", "job.json", "--claim", "--lease", "300ms", says="found a link")
        self.assertEqual([p.name for p in (self.folder / "elsewhere").iterdir()], ["0"])

    def test_another_target_in_its_place(self):
        self.cube()
        self.planned()
        self.tessera("rm", "out.zarr", "--quiet")
        self.refused("work", "job.json", says="gone, or was replaced")
        self.refused("finish", "job.json", says="gone, or was replaced")
        self.tessera("create", "out.zarr", "--shape", "4", "--dtype", "u1", "--quiet")
        self.refused("finish", "job.json", says="gone, or was replaced")
        self.assertIn("[0 0 0 0]", self.tessera("get", "out.zarr"))

    def test_ten_million_units(self):
        self.tessera("create", "large.zarr", "--shape", "10000000,1024", "--chunks", "1,1024", "--dtype", "f8", "--format",
                     "v3", "--quiet")
        self.tessera("plan", "rechunk", "large.zarr", "out.zarr", "--chunks", "1,1024", "--codec", "zstd:1", "--out",
                     "job.json", "--max-memory", "96K", "--parts", "1000")
        plan = json.loads((self.folder / "job.json").read_text())
        self.assertGreater(plan["units"], 1_000_000)
        self.assertLess((self.folder / "job.json").stat().st_size, 100_000)


class Recipes(JobTest):
    def data(self, kind):
        """Two years of days in a group."""
        days = np.arange(731)
        values = (days[:, None] * 7 % 50 + np.arange(12)).astype("f4")
        for name, array, dims in (("time", days, "time"), ("v", values, "time,x")):
            self.save(f"{name}.npy", array)
            self.tessera("import", f"{name}.npy", f"{kind}/{name}", "--format", kind, "--dims", dims, "--chunks",
                         "100" if name == "time" else "100,12", "--quiet")
        self.tessera("attrs", f"{kind}/time", "set", "units", "days since 2020-01-01", "--no-log", "--no-undo", "--quiet")
        self.save("labels.npy", days % 3)

    def test_all_of_every_format(self):
        """What `plan` accepts, `work` can do, and it is what the plain command makes."""
        for kind in "v3", "v2", "v1", "zmeta":
            self.data(kind)
            v, time_ = f"{kind}/v", f"{kind}/time"
            for plain in (("reduce", v, "OUT", "--by", "month", "--with", "mean"),
                          ("reduce", v, "OUT", "--by", "season", "--axis", "time", "--with", "p90"),
                          ("reduce", v, "OUT", "--by", "labels.npy", "--axis", "time", "--with", "max"),
                          ("reduce", v, "OUT", "--axis", "time", "--with", "std", "--keep-dims"),
                          ("coarsen", v, "OUT", "--by", "time=5,x=2"),
                          ("calc", "OUT", "a * 2 + b", f"a={v}", "b=v.npy", "--dtype", "f8"),
                          ("copy", v, "OUT", "--sel", "time=2020-03:2020-05, x@::-1"),
                          ("copy", v, "OUT", "--sel", "time=2020-03-07", "--dtype", "i2", "--cast", "unsafe"),
                          ("stack", v, v, "OUT"), ("concat", v, v, "OUT", "--axis", "time"),
                          ("concat", time_, time_, "OUT")):
                with self.subTest(kind=kind, plain=plain):
                    for old in ("out.zarr", "plain.zarr"):
                        shutil.rmtree(self.folder / old, ignore_errors=True)
                    (self.folder / "job.json").unlink(missing_ok=True)
                    self.tessera("plan", *["out.zarr" if word == "OUT" else word for word in plain], "--out", "job.json",
                                 "--quiet")
                    self.works("--quiet")
                    self.assertTrue(self.state()["finished"])
                    self.same_as(*["plain.zarr" if word == "OUT" else word for word in plain])

    def test_what_cannot_be_planned(self):
        self.data("v3")
        before = (self.folder / "v3" / "v" / "zarr.json").read_bytes()
        for words, option in ((("copy", "v3/v", "out.zarr", "--verify"), "--verify"),
                              (("concat", "v3/v", "v3/v", "out.zarr", "--resume"), "--resume"),
                              (("calc", "v3/v", "v * 0", "v=v3/v", "--in-place"), "--in-place"),
                              (("stack", "v.npy", "v.npy", "out.json", "--virtual"), "--virtual"),
                              (("pyramid", "v3", "--upgrade"), "--upgrade"),
                              (("pyramid", "v3/v", "out.zarr", "--dry-run"), "--dry-run")):
            self.refused("plan", *words, "--out", "job.json", says=f"{option}: it cannot be planned")
        self.assertEqual(before, (self.folder / "v3" / "v" / "zarr.json").read_bytes())
        self.assertGreater(self.exported("v3/v").max(), 0)
        self.assertFalse((self.folder / "out.zarr").exists() or (self.folder / "job.json").exists())

    def test_killed_before_the_file_of_the_job_was_there(self):
        self.cube()
        words = ["plan", "copy", "cube.npy", "out.zarr", "--format", "v3", "--out", "job.json"]
        self.tessera(*words, "--quiet")
        (self.folder / "job.json").unlink()
        self.assertNotIn("--resume", self.refused(*words, says="an unfinished copy is there; --overwrite starts afresh"))
        self.tessera(*words, "--overwrite", "--quiet")
        self.tessera("work", "job.json", "--quiet")
        self.assertNotIn("before", self.tessera("finish", "job.json"))
        self.assertEqual(self.tessera("digest", "out.zarr").split()[0], self.tessera("digest", "cube.npy").split()[0])
        # What became of it since is not for the job to say.
        next(path for path in (self.folder / "out.zarr/c").rglob("*") if path.is_file()).unlink()
        self.assertIn("before this; `tessera verify` looks at what is there now", self.tessera("finish", "job.json"))
        self.tessera("verify", "out.zarr", code=1)


class Claims(JobTest):
    def leases(self):
        return list((self.folder / "out.zarr" / ".tessera" / "units" / "claims").glob("[0-9]*"))

    def test_shared(self):
        self.cube()
        count = self.planned()["units"]
        runs = [subprocess.Popen([PROGRAM, "work", "job.json", "--claim", "--json"], cwd=self.folder, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
        done = 0
        for run in runs:
            out, err = run.communicate(timeout=120)
            self.assertEqual(run.returncode, 0, err)
            done += json.loads(out)["done"]
        self.assertEqual(done, count)
        self.assertEqual(self.leases(), [])
        self.assertTrue(self.state()["finished"])

    def lease(self, number=0, **other):
        """A lease as another process would have made it."""
        folder = self.folder / "out.zarr" / ".tessera" / "units" / "claims"
        folder.mkdir(exist_ok=True)
        text = {"host": "elsewhere", "place": "another machine", "process": 1, "started": "1", "lease_ms": 700, "once": "x"}
        (folder / str(number)).write_text(json.dumps({**text, **other}))
        return folder / str(number)

    def test_lapsed_whatever_the_clocks_say(self):
        self.cube()
        self.planned()
        for number, minutes in enumerate((-7, 0, 9)):
            lease = self.lease(number)
            then = time.time() + 60 * minutes
            os.utime(lease, (then, then))
        result = self.works("--claim", "--lease", "1s")
        self.assertIn("did", result.stdout)
        self.assertTrue(self.state()["finished"])

    def test_renewed_lease_is_respected(self):
        self.cube()
        self.planned()
        lease = self.lease(0)
        run = subprocess.Popen([PROGRAM, "work", "job.json", "--claim", "--lease", "1s", "--quiet"], cwd=self.folder)
        for _ in range(12):
            os.utime(lease)
            time.sleep(0.2)
        self.assertIsNone(run.poll())
        self.assertEqual(self.state("job", 1)["missing_units"], "0")
        self.assertTrue(lease.exists())
        self.assertEqual(run.wait(60), 0)  # no sign of life any more
        self.assertTrue(self.state()["finished"])

    def test_dead_process_of_this_machine(self):
        self.cube()
        self.planned()
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        dead = subprocess.Popen(["true"])
        dead.wait()
        self.lease(0, place=f"{boot} {os.readlink('/proc/self/ns/pid')}", process=dead.pid, host=socket.gethostname(),
                   lease_ms=3_600_000)
        self.works("--claim")
        self.assertTrue(self.state()["finished"])


class Ends(JobTest):
    def slow(self):
        """A job of many units."""
        values = np.random.default_rng(7).integers(0, 2**30, (64, 256, 256)).astype("<i4")
        self.save("cube.npy", values)
        self.tessera("import", "cube.npy", "cube.zarr", "--format", "v3", "--chunks", "1,256,256", "--quiet")
        self.tessera("plan", "copy", "cube.zarr", "out.zarr", "--chunks", "64,8,8", "--codec", "zstd:9", "--out", "job.json",
                     "--max-memory", "8M", "--parts", "32")
        return values

    def begun(self, *words):
        run = subprocess.Popen([PROGRAM, "work", "job.json", "--threads", "1", "--json", *words], cwd=self.folder, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        run.stderr.readline()  # a unit is done
        return run

    def test_wakes_after_the_end(self):
        """A worker that sleeps while others take over its unit, and finish the job, writes nothing any more."""
        for ways in (["--claim", "--lease", "300ms"], []):
            with self.subTest(ways):
                for place in ("cube.zarr", "out.zarr"):
                    shutil.rmtree(self.folder / place, ignore_errors=True)
                (self.folder / "job.json").unlink(missing_ok=True)
                self.slow()
                run = self.begun(*ways)
                run.send_signal(signal.SIGSTOP)
                self.works("--claim", "--lease", "300ms", "--quiet")
                self.assertTrue(self.state()["finished"])
                self.tessera("calc", "out.zarr", "v * 0 + 7", "v=out.zarr", "--in-place", "--no-undo", "--quiet")
                run.send_signal(signal.SIGCONT)
                _, err = run.communicate(timeout=120)
                self.assertTrue((self.exported("out.zarr") == 7).all())
                self.assertEqual(run.returncode, 2, err)
                self.assertIn("the job is finished", err)
                files = [p for p in (self.folder / "out.zarr").rglob("*") if p.name.startswith(".tessera-tmp")]
                self.assertEqual(files, [])
                self.assertFalse((self.folder / "out.zarr" / ".tessera" / "units").exists())

    def test_wakes_after_others_took_over(self):
        """It goes on with what is left, and that is no failure."""
        values = self.slow()
        run = self.begun("--claim", "--lease", "300ms")
        run.send_signal(signal.SIGSTOP)
        self.works("--claim", "--lease", "300ms", "--quiet")
        self.assertEqual(self.state("job")["missing_units"], "")
        run.send_signal(signal.SIGCONT)
        out, err = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 0, err)
        self.assertEqual(json.loads(out)["failed"], 0)
        self.assertTrue(self.state()["finished"])
        self.assertTrue((self.exported("out.zarr") == values).all())

    def test_asked_to_end(self):
        self.slow()
        for number in (signal.SIGTERM, signal.SIGUSR1):
            run = self.begun()
            run.send_signal(number)
            out, _ = run.communicate(timeout=60)
            self.assertEqual(run.returncode, 75)
            found = json.loads(out)
            self.assertTrue(found["ended_early"])
            self.assertLess(0, found["done"])
        before = self.state("job", 1)["units_done"]
        self.assertLess(1, before)
        run = self.begun("--grace", "0s")
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=60)
        self.assertEqual(run.returncode, 75)
        self.works("--quiet")
        self.assertTrue(self.state()["finished"])

    def test_killed(self):
        """Whenever a worker or finish is killed: nothing is lost, and nothing incomplete is finished."""
        values = self.slow()
        chance = random.Random(11)
        count = json.loads((self.folder / "job.json").read_text())["units"]
        finished = False
        for attempt in range(100 * KILLS):
            word = "finish" if attempt % 5 == 4 else "work"
            more = [] if word == "finish" else chance.choice([["--claim"], ["--claim", "--lease", "1s"], []])
            run = subprocess.Popen([PROGRAM, word, "job.json", "--quiet", *more], cwd=self.folder, stderr=subprocess.PIPE)
            try:
                run.wait(chance.uniform(0, 0.4))
            except subprocess.TimeoutExpired:
                pass
            run.send_signal(signal.SIGKILL)
            run.communicate()
            state = json.loads(self.run_program("job", "job.json", "--json").stdout)
            if state["finished"]:
                finished = True
                break
            if (self.folder / "out.zarr" / "zarr.json").exists():  # finish was killed after it had published: all is there
                self.assertTrue((self.exported("out.zarr") == values).all())
        self.assertTrue(finished or state["units_done"] > 0)
        if not finished:
            self.works("--quiet")
            self.assertTrue(self.state()["finished"])
        self.assertTrue((self.exported("out.zarr") == values).all())
        files = [p for p in (self.folder / "out.zarr").rglob("*") if p.is_file() and ".tessera" not in p.parts]
        self.assertEqual(len(files), 1024 + 1)
        self.assertGreater(count, 8)


if __name__ == "__main__":
    main()
