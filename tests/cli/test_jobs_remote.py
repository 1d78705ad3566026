"""plan, work, finish and job with a target in S3: a server of our own that holds conditions as S3 does, and that loses,
delays and refuses answers when a test says so."""

import json
import random
import signal
import subprocess
import time
import unittest

import numpy as np

import remote
from program import PROGRAM, main
from test_jobs import KILLS, JobTest

OUT = "s3://bucket/out"


class RemoteJobs(remote.InBucket, JobTest):
    def setUp(self):
        super().setUp()
        self.values = self.cube()
        self.tessera("rechunk", "cube.zarr", "plain.zarr", "--chunks", "20,25,30", "--quiet")

    def begin(self, *words, **options):
        return subprocess.Popen([PROGRAM, *words], cwd=self.folder, env=self.environment, **options)

    def planned(self, *words, parts=4):
        return super().planned(*(words or ("rechunk", "cube.zarr", OUT, "--chunks", "20,25,30")), parts=parts)

    def keys(self, below="out"):
        return sorted(str(p.relative_to(self.bucket / below)) for p in (self.bucket / below).rglob("*") if p.is_file())

    def is_right(self, killed=False):
        """With what it has to hold, and nothing more; a killed run leaves its lease, which ends by itself."""
        digests = self.tessera("digest", "plain.zarr", OUT).split()
        self.assertEqual(digests[0], digests[2])
        plain = sorted(str(p.relative_to(self.folder / "plain.zarr")) for p in (self.folder / "plain.zarr").rglob("*")
                       if p.is_file() and ".tessera" not in p.parts)
        keys = [key for key in self.keys() if not (killed and key == ".tessera/lease")]
        self.assertEqual(keys, sorted([*plain, ".tessera/job"]))

    def test_parts(self):
        plan = self.planned()
        self.assertGreaterEqual(plan["units"], 4)
        self.refused("get", OUT, says="unfinished")
        self.assertEqual(self.state(code=1)["missing_parts"], "0-3")
        self.works("--part", "0/4")
        self.works("--part", "2/4")
        self.assertEqual(self.state(code=1)["missing_parts"], "1,3")
        self.refused("get", OUT, says="unfinished")
        self.works("--part", "1/2")  # another division: what is done is skipped
        again = json.loads(self.works("--json").stdout)
        self.assertLess(0, again["done_before"])
        self.assertTrue(self.state()["finished"])
        self.is_right()
        self.assertTrue(self.state()["finished"])  # again
        self.refused("work", "job.json", says="finished")
        self.assertEqual(self.state("job")["units_done"], plan["units"])

    def test_all_that_can_be_planned(self):
        for number, words in enumerate((
                ["copy", "cube.zarr", "OUT", "--format", "v2", "--chunks", "7,50,45"],
                ["calc", "OUT", "a * 2", "a=cube.zarr"],
                ["reduce", "cube.zarr", "OUT", "--with", "mean", "--axis", "0"],
                ["coarsen", "cube.zarr", "OUT", "--by", "1,2,2"],
                ["copy", "cube.zarr", "OUT", "--format", "v3", "--chunks", "5,25,30", "--shard", "10,100,90"],
                ["pyramid", "cube.zarr", "OUT", "--levels", "2"])):
            with self.subTest(words[0]):
                plain, out = f"s3://bucket/plain{number}", f"s3://bucket/out{number}"
                self.tessera("plan", *[out if word == "OUT" else word for word in words], "--out", f"{number}.json", "--quiet")
                self.tessera("work", f"{number}.json", "--claim", "--quiet")
                self.tessera("finish", f"{number}.json")
                self.tessera(*[plain if word == "OUT" else word for word in words], "--quiet")
                self.assertIn("equal", self.tessera("diff", plain, out))
                self.assertEqual([key for key in self.keys(f"out{number}") if ".tessera" not in key],
                                 self.keys(f"plain{number}"))
                self.tessera("rm", out, "--recursive", "--quiet")
                self.assertEqual(self.keys(f"out{number}"), [])

    def test_claims_beside_faults(self):
        """Answers are lost, refused and delayed: nothing is lost, and each unit is done."""
        faults = self.double.faults
        count = self.planned(parts=20)["units"]
        faults.lose = faults.busy = faults.reset = 0.05
        runs = [self.begin("work", "job.json", "--claim", "--json", text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE) for _ in range(3)]
        done = 0
        for run in runs:
            out, err = run.communicate(timeout=240)
            self.assertEqual(run.returncode, 0, err)
            done += json.loads(out)["done"]
        faults.lose = faults.busy = faults.reset = 0
        self.assertGreaterEqual(done, count)
        self.assertEqual([key for key in self.keys() if "claims" in key], [])
        self.assertTrue(self.state()["finished"])
        self.is_right()

    def test_servers_without_conditions(self):
        self.double.faults.ignore_conditions = True
        self.planned()
        runs = [self.begin("work", "job.json", "--claim", "--quiet") for _ in range(2)]
        for run in runs:
            self.assertEqual(run.wait(120), 0)
        self.assertTrue(self.state()["finished"])
        self.is_right()

    def test_lost_and_changed_objects_of_the_target(self):
        self.planned()
        self.works()
        chunk = next(p for p in sorted((self.bucket / "out" / "c").rglob("*")) if p.is_file())
        original = chunk.read_bytes()
        for damage in (chunk.unlink, lambda: chunk.write_bytes(original[:-1] + b"?")):
            damage()
            found = self.state(code=1)
            self.assertFalse(found["finished"])
            self.assertRegex(found["missing_units"], r"^\d+$")
        chunk.write_bytes(original)
        self.assertTrue(self.state()["finished"])
        self.is_right()

    def test_lost_units_are_done_again(self):
        count = self.planned()["units"]
        self.works()
        chunk = next(p for p in sorted((self.bucket / "out" / "c").rglob("*")) if p.is_file())
        chunk.unlink()
        self.assertRegex(self.state(code=1)["missing_units"], r"^\d+$")
        again = json.loads(self.works("--json").stdout)
        self.assertEqual((again["done"], again["done_before"]), (1, count - 1))
        self.assertTrue(self.state()["finished"])
        self.is_right()

    def test_wakes_after_the_end(self):
        """A worker that sleeps while others finish the job writes nothing any more, neither chunks nor records."""
        self.planned("rechunk", "cube.zarr", OUT, "--chunks", "20,20,30", parts=6)
        self.double.faults.delay = 0.03
        run = self.begin("work", "job.json", "--threads", "1", "--json", "--claim", "--lease", "300ms", text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        run.stderr.readline()  # a unit is done
        run.send_signal(signal.SIGSTOP)
        time.sleep(0.5)  # what was being sent arrives
        self.double.faults.delay = 0
        self.works("--claim", "--lease", "300ms", "--quiet")
        self.assertTrue(self.state()["finished"])
        self.tessera("set", OUT, "...", "7", "--quiet")
        before = self.keys()
        time.sleep(1)  # it looks once in a second
        run.send_signal(signal.SIGCONT)
        _, err = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 2, err)
        self.assertIn("the job is finished", err)
        self.assertEqual(self.keys(), before)
        self.tessera("copy", OUT, "after.npy", "--quiet")
        self.assertTrue((np.load(self.folder / "after.npy") == 7).all())

    def test_another_target_in_its_place(self):
        """Also one with the same metadata."""
        self.planned()
        self.tessera("rm", OUT, "--quiet")
        self.refused("work", "job.json", says="gone, or was replaced")
        self.refused("finish", "job.json", says="gone, or was replaced")
        info = json.loads(self.tessera("info", "plain.zarr", "--json"))
        self.tessera("create", OUT, "--shape", "20,200,180", "--dtype", info["dtype"], "--format", info["format"], "--chunks",
                     "20,25,30", "--quiet")
        self.refused("work", "job.json", says="gone, or was replaced")
        self.refused("finish", "job.json", says="gone, or was replaced")
        self.assertEqual(self.tessera("get", OUT, "0,0,0").strip(), "0")

    def test_changed_sources(self):
        self.tessera("copy", "cube.zarr", "s3://bucket/in", "--quiet")
        chunk = next(p for p in sorted((self.bucket / "in" / "c").rglob("*")) if p.is_file())
        original = chunk.read_bytes()
        for name, change in (("deleted", chunk.unlink), ("changed", lambda: chunk.write_bytes(original[::-1])),
                             ("made", lambda: (chunk.parent / "99").write_bytes(original))):
            with self.subTest(name):
                self.planned("rechunk", "s3://bucket/in", OUT, "--chunks", "20,25,30")
                self.works()
                change()
                self.refused("finish", "job.json", says=["s3://bucket/in", "after the job was planned"])
                (chunk.parent / "99").unlink(missing_ok=True)
                chunk.write_bytes(original)
                self.assertTrue(self.state()["finished"])
                self.tessera("rm", OUT, "--quiet")
                (self.folder / "job.json").unlink()

    def test_work_sees_changed_chunks(self):
        """By the server's Last-Modified, which tells seconds."""
        self.tessera("copy", "cube.zarr", "s3://bucket/in", "--quiet")
        chunks = [p for p in sorted((self.bucket / "in" / "c").rglob("*")) if p.is_file()]
        self.planned("rechunk", "s3://bucket/in", OUT, "--chunks", "20,25,30")
        key = str(chunks[-1].relative_to(self.bucket))
        self.double.objects[key] = (time.time() + 5, self.double.objects[key][1])
        refused = self.works("--part", "0/1", code=2)
        self.assertIn(f"s3://bucket/{key} changed after the job was planned", refused.stderr)

    def lease(self, number=0, **other):
        """A lease as another process would have made it."""
        folder = self.bucket / "out" / ".tessera" / "units" / "claims"
        folder.mkdir(exist_ok=True, parents=True)
        text = {"host": "elsewhere", "place": "another machine", "process": 1, "started": "1", "lease_ms": 700, "once": "x"}
        (folder / str(number)).write_text(json.dumps({**text, **other}))
        return folder / str(number)

    def test_leases(self):
        """One that is renewed is respected, and one that is not renewed any more taken over."""
        self.planned()
        self.lease(0)
        run = self.begin("work", "job.json", "--claim", "--lease", "1s", "--quiet")
        for number in range(12):
            self.lease(0, renewed=number)
            time.sleep(0.2)
        self.assertIsNone(run.poll())
        self.assertEqual(self.state("job", 1)["missing_units"], "0")
        self.assertEqual(run.wait(60), 0)  # no sign of life any more
        self.assertTrue(self.state()["finished"])
        self.is_right()

    def test_own_lease_is_renewed(self):
        self.planned(parts=1)
        self.double.faults.delay = 0.1
        run = self.begin("work", "job.json", "--claim", "--lease", "300ms", "--threads", "1", "--quiet")
        seen = set()
        while run.poll() is None:
            for file in (self.bucket / "out" / ".tessera" / "units" / "claims").glob("[0-9]*"):
                try:
                    seen.add(json.loads(file.read_text()).get("renewed"))
                except (OSError, ValueError):
                    pass
            time.sleep(0.01)
        self.assertEqual(run.wait(), 0)
        self.assertGreater(len(seen), 1)

    def test_requests(self):
        """What a unit costs beside its chunks: one look at each of them, and at the marker."""
        self.planned()
        self.works("--units", "0", "--threads", "1")
        before = len(self.double.requests)
        self.works("--units", "2-11", "--threads", "1")
        asked = [(method, path.split("?")[0]) for method, path, _ in self.double.requests[before:]]
        puts = sorted(path for method, path in asked if method == "PUT" and "/c/" in path)
        self.assertGreater(len(puts), 10)
        self.assertEqual(len(set(puts)), len(puts))
        looked = [path for method, path in asked if method != "PUT" and path in puts]
        self.assertEqual(sorted(looked), puts)
        marker = [path for _, path in asked if path.endswith("unfinished.json")]
        self.assertLessEqual(len(marker), 30)

    def test_killed(self):
        """Whenever a worker or finish is killed: nothing is lost, and nothing incomplete is finished."""
        chance = random.Random(5)
        self.planned(parts=20)
        finished = False
        for attempt in range(20 * KILLS):
            word = "finish" if attempt % 4 == 3 else "work"
            # Leases of the killed have ended for some of them, so that these go on; the others wait, and are killed.
            self.double.faults.age = chance.choice([0, 61])
            more = [] if word == "finish" else chance.choice([["--claim"], ["--claim", "--lease", "1s"], []])
            run = self.begin(word, "job.json", "--quiet", *more, stderr=subprocess.PIPE)
            try:
                run.wait(chance.uniform(0, 0.5 if word == "finish" else 0.15))
            except subprocess.TimeoutExpired:
                pass
            run.send_signal(signal.SIGKILL)
            run.communicate()
            state = json.loads(self.run_program("job", "job.json", "--json").stdout)
            if (self.bucket / "out" / "zarr.json").exists():
                digests = self.tessera("digest", "plain.zarr", OUT).split()
                self.assertEqual(digests[0], digests[2])
            if state["finished"]:
                finished = True
                break
        self.double.faults.age = 61
        if not finished:
            self.works("--quiet")
            self.assertTrue(self.state()["finished"])
        self.is_right(killed=True)


if __name__ == "__main__":
    main()
