"""Two runs that make the same destination: the second waits and says for whom, and what is there at the end is always
what exactly one of them made. `tests/soak/builders` runs the random part in full."""

import fcntl
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import numpy as np

import program
from program import PROGRAM, digest

ROUNDS = int(os.environ.get("TESSERA_BUILDER_ROUNDS", "2"))
SEED = int(os.environ.get("TESSERA_BUILDER_SEED", "1"))
HOST = os.uname().nodename


def lock_file(path):
    return path.with_name(f".{path.name}.tessera-lock")


class Builders(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.save("a.npy", np.arange(60, dtype="<i4").reshape(6, 10))
        self.tessera("import", "a.npy", "a.zarr", "--chunks", "2,5", "--quiet")
        self.tessera("group", "g.zarr", "--quiet")
        self.tessera("copy", "a.npy", "g.zarr/x", "--format", "v3", "--quiet")
        self.tessera("copy", "a.npy", "g.zarr/y", "--format", "v3", "--quiet")
        np.savez(self.folder / "two.npz", x=np.arange(3), y=np.arange(4))

    def start(self, *words, **options):
        return subprocess.Popen([PROGRAM, *map(str, words)], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **options)

    def left_over(self):
        return [str(p) for p in self.folder.rglob("*") if ".tessera-" in p.name or p.name.startswith(".tessera-")]

    # What every command makes, and the path that it locks; what it prepares.
    COMMANDS = {
        "create": (["create", "new/d", "--shape", "3", "--dtype", "f8"], "new/d"),
        "import": (["import", "a.npy", "d"], "d"),
        "import several": (["import", "two.npz", "d"], "d"),
        "overwrite": (["import", "a.npy", "a.zarr", "--overwrite"], "a.zarr"),
        "resume": (["import", "a.npy", "d", "--resume"], "d"),
        "copy": (["copy", "a.zarr", "d", "--format", "v2"], "d"),
        "copy to itself": (["copy", "a.zarr", "a.zarr", "--format", "v2", "--overwrite"], "a.zarr"),
        "copy a group": (["copy", "g.zarr", "d"], "d"),
        "copy a group, node": (["copy", "g.zarr", "d"], "d/y"),
        "copy into a group": (["copy", "a.zarr", "g.zarr/z", "--format", "v3"], "g.zarr/z"),
        "rechunk": (["rechunk", "a.zarr", "d", "--chunks", "3,3"], "d"),
        "zip": (["copy", "a.zarr", "d.zip", "--format", "v2"], "d.zip"),
        "npy": (["export", "a.zarr", "d.npy"], "d.npy"),
        "npz": (["export", "a.zarr", "d.npz::m"], "d.npz"),
        "bundle": (["copy", "g.zarr", "d.npz"], "d.npz"),
        "ra": (["export", "a.zarr", "d.ra"], "d.ra"),
        "mldf": (["export", "a.zarr", "d.mldf"], "d.mldf"),
        "snapshot": (["snapshot", "a.zarr", "create", "s"], "a.zarr.snapshots"),
        "restore": (["snapshot", "a.zarr", "restore", "t"], "a.zarr"),
        "snapshot rm": (["snapshot", "a.zarr", "rm", "t"], "a.zarr.snapshots"),
        "bag": (["seal", "a.zarr", "--bagit", "d"], "d"),
        "group": (["group", "d"], "d"),
        "mv": (["mv", "g.zarr/x", "g.zarr/z"], "g.zarr/z"),
        "rm": (["rm", "a.zarr"], "a.zarr"),
    }

    def test_every_command_waits_and_says_for_whom(self):
        self.tessera("snapshot", "a.zarr", "create", "t", "--quiet")
        first = self.folder.with_name(self.folder.name + "-first")
        shutil.copytree(self.folder, first)
        self.addCleanup(shutil.rmtree, first)
        for name, (words, destination) in self.COMMANDS.items():
            with self.subTest(name):
                for end in "released", "interrupted":
                    shutil.rmtree(self.folder)
                    shutil.copytree(first, self.folder)
                    held = self.folder / destination
                    held.parent.mkdir(exist_ok=True)
                    with open(lock_file(held), "w+") as file:
                        file.write(f"4711 {HOST}\n")
                        file.flush()
                        fcntl.flock(file, fcntl.LOCK_EX)
                        before = digest(self.folder)
                        running = self.start(*words)
                        said = running.stderr.readline()
                        self.assertRegex(said, "^tessera: note: waiting for .*, which process 4711 is creating")
                        self.assertIsNone(running.poll())
                        if end == "interrupted":
                            running.send_signal(signal.SIGINT)
                            out, err = running.communicate(timeout=60)
                            self.assertEqual((running.returncode, out), (130, ""), err)
                            self.assertIn("interrupted", err)
                            if "node" not in name:  # the others have made nothing yet
                                self.assertEqual(digest(self.folder), before)
                        lock_file(held).unlink()
                    if end == "released":
                        out, err = running.communicate(timeout=60)
                        self.assertEqual(running.returncode, 0, err)
                    self.assertEqual(self.left_over(), [])

    def test_after_the_wait_the_destination_is_looked_at_anew(self):
        for words, name, says in ((["import", "a.npy", "d", "--chunks", "2,5"], "d", "already"),
                                  (["copy", "g.zarr", "h"], "h", "already"),
                                  (["copy", "a.zarr", "d.zip", "--format", "v2"], "d.zip", "exists"),
                                  (["export", "a.zarr", "d.npy"], "d.npy", "exists"),
                                  (["seal", "a.zarr", "--bagit", "bag"], "bag", "already"),
                                  (["group", "k"], "k", "already")):
            path = self.folder / name
            with open(lock_file(path), "w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                running = self.start(*words)
                self.assertIn("waiting for", running.stderr.readline())
                # Made beside the lock, as by a run that has it.
                self.tessera(*words, "--no-locks", "--quiet")
                lock_file(path).unlink()
            out, err = running.communicate(timeout=60)
            self.assertEqual((running.returncode, out), (2, ""), words)
            self.assertIn(says, err)
        self.assertEqual(self.left_over(), [])

    # ---- at random

    def sources(self):
        """Arrays of one shape, told apart by their values: each at least 100; a chunk that is missing reads as 0."""
        for number in 1, 2, 3, 4:
            values = np.random.default_rng(number).integers(100 * number, 100 * number + 90, (400, 500), "<i4")
            np.save(self.folder / f"s{number}.npy", values)
            self.tessera("import", f"s{number}.npy", f"s{number}.zarr", "--chunks", "50,50", "--quiet")
            self.tessera("group", f"s{number}.group", "--attrs", json.dumps({"made": number}), "--quiet")
            for name in "x", "y":
                self.tessera("copy", f"s{number}.zarr", f"s{number}.group/{name}", "--format", "v3", "--quiet")
            np.savez(self.folder / f"s{number}.npz", x=values, y=values)

    KINDS = {
        "array": ("d", [["import", "{n}.npy", "d", "--chunks", "50,50", "--overwrite"],
                        ["import", "{n}.npy", "d", "--chunks", "40,50", "--overwrite"],
                        ["copy", "{n}.zarr", "d", "--overwrite"],
                        ["copy", "{n}.zarr", "d", "--format", "v3", "--chunks", "20,50", "--shard", "200,100", "--overwrite"],
                        ["rechunk", "{n}.zarr", "d", "--chunks", "100,50", "--overwrite"],
                        ["create", "d", "--shape", "400,500", "--dtype", "<i4", "--fill", "{c}", "--overwrite"],
                        ["import", "{n}.npy", "d", "--chunks", "50,50"],
                        ["copy", "{n}.zarr", "d", "--resume"]]),
        "restored": ("r", [["snapshot", "r", "restore", "{n}"], ["copy", "{n}.zarr", "r", "--overwrite"],
                           ["import", "{n}.npy", "r", "--overwrite"], ["snapshot", "r", "create", "n{n}"],
                           ["copy", "r", "r", "--format", "v2", "--overwrite"]]),
        "group": ("h", [["copy", "{n}.group", "h", "--overwrite"], ["import", "{n}.npz", "h", "--format", "v3", "--overwrite"],
                        ["copy", "{n}.group", "h"]]),
        "zip": ("d.zip", [["copy", "{n}.zarr", "d.zip", "--format", "v2", "--overwrite"], ["copy", "{n}.zarr", "d.zip"]]),
        "npy": ("d.npy", [["export", "{n}.zarr", "d.npy", "--overwrite"], ["export", "{n}.zarr", "d.npy"]]),
        "npz": ("d.npz", [["export", "{n}.zarr", "d.npz", "--overwrite"], ["copy", "{n}.group", "d.npz", "--overwrite"]]),
        "ra": ("d.ra", [["export", "{n}.zarr", "d.ra", "--overwrite"]]),
        "mldf": ("d.mldf", [["export", "{n}.zarr", "d.mldf", "--overwrite"]]),
        "bag": ("bag", [["seal", "{n}.zarr", "--bagit", "bag"]]),
    }

    def values_at(self, path):
        """All elements of an array, a hierarchy or a file, as one number each that says which source they are of."""
        if path.suffix == ".npz":
            with np.load(path) as members:
                arrays = [members[name] for name in members]
        elif path.name == "bag":
            inner, = (path / "data").iterdir()
            arrays = [self.exported(inner)]
        elif path.name == "h":
            arrays = [self.exported(path / "x"), self.exported(path / "y")]
        else:
            arrays = [self.exported(path)]
        return arrays

    def made_of(self, path):
        """The number of the one source that all of it is of."""
        found = set()
        for array in self.values_at(path):
            number = int(array.flat[0]) // 100
            self.assertIn(number, (1, 2, 3, 4), path)
            if not (array == 100 * number).all():  # what `create` made
                np.testing.assert_array_equal(array, np.load(self.folder / f"s{number}.npy"))
            found.add(number)
        self.assertEqual(len(found), 1, f"{path} mixes what several runs made")
        return found.pop()

    def prepare(self, kind, destination, chance):
        for path in self.folder.iterdir():
            if path.name not in self.kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if kind == "restored":
            for number in 1, 2, 3, 4:
                self.tessera("copy", f"s{number}.zarr", "r", "--overwrite", "--quiet")
                self.tessera("snapshot", "r", "create", f"s{number}", "--quiet")
        elif kind != "bag" and chance.random() < 0.5:
            self.tessera(*[w.format(n="s1", c=100) for w in self.KINDS[kind][1][0]], "--quiet")

    def one_round(self, kind, destination, commands, chance):
        self.prepare(kind, destination, chance)
        path = self.folder / destination
        runs = []
        for number in chance.sample((1, 2, 3, 4), chance.randint(2, 4)):
            words = [w.format(n=f"s{number}", c=100 * number) for w in chance.choice(commands)]
            runs.append((number, words, self.start(*words, "--quiet", "--threads", "1")))
            time.sleep(chance.random() * 0.05)
        killed = None
        if chance.random() < 0.4:
            time.sleep(chance.random() * 0.05)
            killed = chance.choice(runs)[2]
            killed.kill()
        wrote = []
        for number, words, running in runs:
            out, err = running.communicate(timeout=120)  # nobody hangs
            code = running.returncode
            what = f"seed {SEED}: {[r[1] for r in runs]}: {words}: exit {code}: {err}"
            if running is killed and code == -signal.SIGKILL:
                continue
            if code == 2:  # only who may refuse does, and says why
                self.assertFalse({"--overwrite", "snapshot"} & set(words), what)
                self.assertRegex(err, "already|exists|another one|--overwrite", what)
                continue
            self.assertEqual(code, 0, what)
            if "create" not in words or words[0] == "create":
                wrote.append(number)
        if killed is not None and not (kind == "bag" and path.exists()):  # the next one takes over
            number = 1 + chance.randrange(4)
            self.tessera(*[w.format(n=f"s{number}", c=100 * number) for w in commands[0]], "--quiet")
            wrote = [number]
        if wrote:
            self.assertIn(self.made_of(path), wrote)
        elif path.exists():
            self.made_of(path)
        if kind == "bag":
            self.assertLessEqual(len(wrote), 1, "one bag is made once")
        elif path.exists():
            self.tessera("verify", path)
        # A killed run that wrote a file leaves its temporary file: it has no name that says for what it was.
        left = [name for name in self.left_over() if killed is None or not pathlib.Path(name).name.startswith(".tessera-tmp-")]
        self.assertEqual(left, [], [r[1] for r in runs])

    def test_at_random_there_is_one_builder(self):
        self.sources()
        self.kept = set(os.listdir(self.folder)) | {"exported.npy"}
        chance = random.Random(SEED)
        for n in range(ROUNDS):
            for kind, (destination, commands) in self.KINDS.items():
                with self.subTest(kind=kind, round=n, seed=SEED):
                    self.one_round(kind, destination, commands, chance)

    def test_names_like_ours_are_foreign_and_locks_of_the_dead_are_not(self):
        note = self.folder / "a.zarr" / ".tessera-notes"
        note.write_text("mine")
        for words in (["rm", "a.zarr"], ["import", "a.npy", "a.zarr", "--overwrite"]):
            before = digest(self.folder)
            self.refused(*words, says=".tessera-notes, which is not part of it")
            self.assertEqual(digest(self.folder), before, words)
        note.unlink()
        lock = self.folder / "a.zarr" / ".x.tessera-lock"
        for words in (["import", "a.npy", "a.zarr", "--overwrite"], ["rm", "a.zarr"]):
            lock.write_text("")
            with open(lock, "rb+") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                self.refused(*words, says="is writing there")
            self.tessera(*words)
            self.assertFalse(lock.exists(), words)


if __name__ == "__main__":
    program.main()
