#!/usr/bin/python3
"""Makes made.tar.xz with the program that it is told: what one commit leaves on the disk, finished and unfinished.

    make.py PROGRAM        from the project's root, with a C++ compiler

Programs are killed at a system call that tests/faults/interpose.cpp counts, so that the same is left each time.
"""
import io
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parents[1]
sys.path.insert(0, str(TESTS / "cli"))
os.environ.update(TESSERA_PROGRAM="", TESSERA_GOLDEN=str(HERE.parent), TESSERA_SOURCE=str(TESTS.parent), TESSERA_CONFIG="")
import remote  # noqa: E402

# The arrays that stay as they were made, and the words that made them of values.npy.
LAYOUTS = {
    "zmeta": ["--format", "zmeta", "--chunks", "5,7"],
    "v1": ["--format", "v1", "--chunks", "5,7"],
    "v2": ["--format", "v2", "--chunks", "5,7", "--codec", "zlib:5"],
    "v2-nested": ["--format", "v2", "--chunks", "5,7", "--separator", "/", "--codec", "blosc:zstd:3:bitshuffle"],
    "v3": ["--format", "v3", "--chunks", "5,7", "--codec", "zstd:3"],
    "sharded": ["--format", "v3", "--chunks", "5,7", "--shard", "10,14"],
    "rectilinear": ["--format", "v3", "--chunks", "[2,8,10],7"],
}
SMALL = ["--format", "v3", "--chunks", "5,7", "--quiet"]
MOST = 300_000  # bytes; more would be a mistake


def of_nobody(info):
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


class Maker:
    def __init__(self, program, folder):
        self.program, self.folder = str(pathlib.Path(program).resolve()), folder
        self.interposer = str(folder / "interpose.so")
        subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", "-O1", TESTS / "faults/interpose.cpp", "-o",
                        self.interposer, "-ldl"], check=True)

    def run(self, *words, code=0, **more):
        done = subprocess.run([self.program, *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, **more})
        assert code is None or done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def killed(self, below, *words, until):
        """Runs the words on a copy of `below`, killed one call later each time, until something holds of it."""
        first = self.folder / "first"
        existed = (self.folder / below).exists()
        if existed:
            shutil.copytree(self.folder / below, first, symlinks=True, copy_function=shutil.copy2)
        for at in itertools.count(1):
            done = self.run(*words, "--threads", 1, "--quiet", code=None, LD_PRELOAD=self.interposer,
                            FAULTS_BELOW=str(self.folder / below), FAULTS_AT=str(at), FAULTS_DO="kill",
                            FAULTS_FIRED="/dev/null", FAULTS_CALLS="rename")
            assert done.returncode == -signal.SIGKILL, f"{words}: it ended before {at} calls\n{done.stderr}"
            if until(self.folder / below):
                break
            shutil.rmtree(self.folder / below, ignore_errors=True)
            if existed:
                shutil.copytree(first, self.folder / below, symlinks=True, copy_function=shutil.copy2)
        shutil.rmtree(first, ignore_errors=True)

    def arrays(self):
        values = np.arange(20 * 21, dtype="<i4").reshape(20, 21) * 37 % 1000
        np.save(self.folder / "values.npy", values)
        np.save(self.folder / "texts.npy", np.array(["chunk", "élan", "", "Zarr 漢字"] * 3, dtype="<U8"))
        table = np.zeros(12, [("id", "<i4"), ("weight", "<f8")])
        table["id"], table["weight"] = np.arange(12), np.arange(12) / 8
        np.save(self.folder / "table.npy", table)
        for name, words in LAYOUTS.items():
            self.run("import", "values.npy", f"arrays/{name}.zarr", *words, "--quiet")
        self.run("import", "texts.npy", "arrays/texts.zarr", "--format", "v2", "--chunks", "5", "--quiet")
        self.run("import", "table.npy", "arrays/table.zarr", "--format", "v2", "--chunks", "5", "--quiet")
        self.run("copy", "arrays/v3.zarr", "arrays/v3.zip", "--quiet")
        self.run("refs", "arrays/v2.zarr", "--out", "arrays/v2.json", "--quiet")
        self.group("group")

    def group(self, name):
        self.run("group", name, "--format", "v3", "--quiet")
        for child in ("heat", "inner/rain"):
            self.run("import", "values.npy", f"{name}/{child}", *SMALL)
        self.run("attrs", name, "set", "title", '"made before"', "--quiet")
        self.run("attrs", f"{name}/heat", "set", "units", '"K"', "--quiet")
        self.run("consolidate", name, "--quiet")

    def kept(self):
        """Seals, snapshots, and the records of undo."""
        for name in ("sealed", "parity", "bagged", "snaps", "undo-set", "undo-batch", "undo-killed"):
            self.run("import", "values.npy", f"{name}.zarr", *SMALL)
        self.run("seal", "sealed.zarr", "--quiet")
        self.run("seal", "parity.zarr", "--parity", "2", "--quiet")
        self.run("seal", "bagged.zarr", "--bagit", "bag", "--quiet")
        for name, words in {"plain": [], "sums": ["--sums"]}.items():
            self.run("snapshot", "snaps.zarr", "create", name, *words, "--quiet")
        self.run("set", "snaps.zarr", "3,4", "-1", "--quiet")
        self.run("set", "undo-set.zarr", "3:12,4", "-1", "--quiet")
        (self.folder / "script").write_text("set 0:7,0 5\nset 19,20 6\nattr note 1\n")
        self.run("edit", "undo-batch.zarr", "--script", "script", "--quiet")
        self.group("undo-group")
        (self.folder / "group-script").write_text("array heat\nset 0,0 5\narray inner/rain\nset 19,20 6\nattr n 1\n")
        self.run("edit", "undo-group", "--script", "group-script", "--quiet")

    def unfinished(self):
        """A command, recorded batches that are partly in place, a copy, and a job."""
        self.killed("undo-killed.zarr", "set", "undo-killed.zarr", "...", "-1",
                    until=lambda root: len((root / ".tessera/undo/changes").read_text().splitlines()) == 5)
        self.run("import", "values.npy", "pending.zarr", *SMALL)
        self.killed("pending.zarr", "edit", "pending.zarr", "--script", "script", until=lambda root: self.partly(root))
        self.group("pending-group")
        self.killed("pending-group", "edit", "pending-group", "--script", "group-script",
                    until=lambda root: (root / ".tessera/batch/journal").exists() and self.partly(root / "heat"))
        self.killed("resumed.zarr", "import", "values.npy", "resumed.zarr", "--format", "v3", "--chunks", "5,7",
                    until=lambda root: len(self.chunks(root)) == 5)
        self.run("plan", "rechunk", "arrays/v3.zarr", "worked.zarr", "--chunks", "4,21", "--out", "job.json", "--parts",
                 "3", "--max-memory", "1M")
        self.run("work", "job.json", "--part", "1/3", "--quiet")

    @staticmethod
    def chunks(root):
        return [path for path in (root / "c").rglob("*") if path.is_file() and not path.name.startswith(".")]

    def partly(self, root):
        """Whether a batch is recorded and its first value in place."""
        staged = root / ".tessera/batch"
        return (staged / "journal").exists() and len(list(staged.iterdir())) == 2

    def cache(self):
        with remote.serving(self.folder / "arrays") as double:
            url = double.origin + "/files/v3.zarr"
            self.run("digest", url, "--cache", self.folder / "cache", "--quiet", **double.environment)
        return url

    def pack(self, url):
        """All of it, with the times and inode numbers that git and tar do not keep."""
        os.unlink(self.interposer)
        stamps = {}
        for path in sorted(self.folder.rglob("*")):
            status = path.lstat()
            stamps[str(path.relative_to(self.folder))] = [status.st_ino, status.st_mtime_ns]
        made = json.dumps({"folder": str(self.folder), "url": url, "stamps": stamps}).encode()
        with tarfile.open(HERE / "made.tar.xz", "w:xz", preset=9) as tar:
            head = tarfile.TarInfo("made.json")
            head.size = len(made)
            tar.addfile(head, io.BytesIO(made))
            for path in sorted(self.folder.rglob("*")):
                tar.add(path, path.relative_to(self.folder), recursive=False, filter=of_nobody)
        size = (HERE / "made.tar.xz").stat().st_size
        print(f"{len(stamps)} names, {size} bytes")
        assert size < MOST


def main():
    with tempfile.TemporaryDirectory(prefix="made-") as folder:
        maker = Maker(sys.argv[1], pathlib.Path(folder))
        maker.arrays()
        maker.kept()
        maker.unfinished()
        maker.pack(maker.cache())


main()
