"""Seals archives with parity, damages them at random, repairs them, and compares every byte: PROGRAM [--rounds 1000] [--files 10000]

Two programs must agree on each round: `tessera repair`, and tools/examples/parity_decoder.py, which shares no code with
it. Whatever the decoder restores, Tessera must restore, bit for bit; whatever is not as it was sealed afterwards must be
named. Damage of up to 4 % of the archive in a row must be restored completely. Legitimate edits in between must stay.
"""

import argparse
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

DECODER = pathlib.Path(__file__).resolve().parents[2] / "tools" / "examples" / "parity_decoder.py"
ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}


def run(*words, codes=(0,)):
    result = subprocess.run([str(w) for w in words], capture_output=True, text=True, env=ENVIRONMENT, timeout=600)
    if result.returncode not in codes:
        raise AssertionError(f"{words}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    return result


class Archive:
    """A sealed archive that is kept, and copies of it that are damaged. `seal` is the folder of its seal below `root`,
    and `named` what the program is given, below it too; `edits` makes an edit that somebody means."""

    def __init__(self, program, folder, name, make, parity, named="", seal=".tessera", edits=None):
        self.program = program
        self.parity = parity
        self.root = folder / name
        self.named = named
        self.seal = seal
        self.edits = edits or edit_by_tessera
        make(program, folder, self.root)
        if not (self.root / seal / "parity").exists():
            run(program, "seal", self.root / named, "--parity", parity, "--quiet")
        lines = (self.root / seal / "sha256sums.txt").read_text().splitlines()
        self.files = {path: (self.root / path).read_bytes() for path in (line.split("  ", 1)[1] for line in lines)}
        self.bytes = sum(map(len, self.files.values()))

    def copy(self, place):
        shutil.rmtree(place, ignore_errors=True)
        run("cp", "-a", self.root, place)
        return place


# ---- makers: each takes the program, a folder for files of its own, and the archive's root

def data(folder, shape):
    values = np.random.default_rng(shape[0]).integers(0, 1 << 20, shape).astype("<i4")
    np.save(folder / "data.npy", values)
    return folder / "data.npy"


def array(shape, *words):
    return lambda program, folder, root: run(program, "copy", data(folder, shape), root, "--quiet", *words)


def group(program, folder, root):
    run(program, "group", root, "--format", "v2", "--quiet")
    for part in "one", "two":
        run(program, "copy", data(folder, (200, 200)), root / part, "--format", "v2", "--chunks", "40,40", "--quiet")
    run(program, "consolidate", root, "--quiet")


def npy(program, folder, root):
    root.mkdir()
    shutil.copyfile(data(folder, (300, 301)), root / "x.npy")


def zip_file(program, folder, root):
    root.mkdir()
    run(program, "copy", data(folder, (200, 300)), root / "x.zip", "--format", "v2", "--chunks", "50,50", "--quiet")


def bag(program, folder, root):
    array((200, 210), "--format", "v2", "--chunks", "50,50")(program, folder, folder / "grid.zarr")
    run(program, "seal", folder / "grid.zarr", "--bagit", root, "--parity", "6%", "--quiet")


# ---- edits: each takes an archive and its copy, and changes chunks as another program does that knows nothing of seals

def edit_by_zarr(archive, root, rng):
    import zarr
    place = next(p.parent for p in sorted(root.rglob(".zarray")))
    grid = zarr.open(str(place), mode="r+")
    for _ in range(rng.randint(1, 3)):
        grid[tuple(rng.randrange(n) for n in grid.shape)] = rng.randrange(1 << 20, 1 << 21)


def edit_by_tessera(archive, root, rng):
    """On a copy without its seal; the files that changed are put in place of the sealed ones."""
    other = root.with_name("elsewhere")
    shutil.rmtree(other, ignore_errors=True)
    shutil.copytree(root, other, ignore=shutil.ignore_patterns(".tessera"))
    run(archive.program, "set", other, "0, 0", rng.randrange(1 << 20, 1 << 21), "--quiet", "--no-log")
    for path in archive.files:
        if (other / path).read_bytes() != archive.files[path]:
            shutil.copyfile(other / path, root / path)


def edit_npy(archive, root, rng):
    grid = np.load(root / archive.named)
    grid[tuple(rng.randrange(n) for n in grid.shape)] ^= 1
    np.save(root / archive.named, grid)


def edit_zip(archive, root, rng):
    with zipfile.ZipFile(root / archive.named, "a") as file:
        file.writestr("note", rng.randbytes(10))


def keep_time(path, change):
    """Changes a file as a disk does: its time stays."""
    before = path.stat()
    change(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def overwrite(root, path, begin, length, rng):
    def change(file):
        data = bytearray(file.read_bytes())
        data[begin:begin + length] = rng.randbytes(len(data[begin:begin + length]))
        file.write_bytes(data)
    keep_time(root / path, change)


# ---- damages: each takes a copy, the archive and a random generator, and returns whether all must be restored

def some_bytes(root, archive, rng):
    for _ in range(rng.randint(1, 2)):
        path = rng.choice([p for p, data in archive.files.items() if data])
        overwrite(root, path, rng.randrange(len(archive.files[path])), 1, rng)
    return True


def run_of_bytes(root, archive, rng, share=0.04, promised=True):
    """A loss in a row, the files in the order of their paths; files within it vanish."""
    left = max(1, int(archive.bytes * share * rng.random()))
    begin = rng.randrange(archive.bytes)
    at = 0
    for path, data in archive.files.items():
        first, last = max(begin - at, 0), min(begin + left - at, len(data))
        at += len(data)
        if first >= last:
            continue
        if first == 0 and last == len(data) and rng.random() < 0.5:
            (root / path).unlink()
        else:
            overwrite(root, path, first, last - first, rng)
    return promised and archive.parity.endswith("%")


def sectors(root, archive, rng):
    for _ in range(rng.randint(1, 6)):
        path = rng.choice([p for p, data in archive.files.items() if data])
        overwrite(root, path, rng.randrange(len(archive.files[path])) // 4096 * 4096, 4096, rng)
    return False


def lost_files(root, archive, rng):
    count = rng.randint(1, 2)
    for path in rng.sample(sorted(archive.files), min(count, len(archive.files))):
        (root / path).unlink()
    return archive.parity == "2"


def lost_metadata(root, archive, rng):
    for path in archive.files:
        if pathlib.PurePath(path).name in ("__zmeta__", "meta", ".zarray", "zarr.json", ".zgroup", ".zmetadata"):
            if rng.random() < 0.7:
                (root / path).unlink()
    return False


def lost_directory(root, archive, rng):
    folders = sorted({str(pathlib.PurePath(p).parent) for p in archive.files} - {"."})
    if folders:
        shutil.rmtree(root / rng.choice(folders))
    return False


def parity_and_bytes(root, archive, rng):
    """A part of the parity, and two bytes of the data."""
    files = sorted((root / archive.seal / "parity").iterdir())
    victim = rng.choice(files)
    if rng.random() < 0.3:
        victim.unlink()
    else:
        overwrite(root, victim.relative_to(root), rng.randrange(victim.stat().st_size), rng.randint(1, 5000), rng)
    path = rng.choice([p for p, data in archive.files.items() if data])
    overwrite(root, path, rng.randrange(len(archive.files[path])), 1, rng)
    return True


def roots_and_manifest(root, archive, rng):
    names = [f"{archive.seal}/parity/root.{i}" for i in range(3)] + [f"{archive.seal}/sha256sums.txt"]
    for name in rng.sample(names, rng.randint(1, 4)):
        if rng.random() < 0.5:
            (root / name).unlink()
        else:
            overwrite(root, name, rng.randrange((root / name).stat().st_size), 3, rng)
    return some_bytes(root, archive, rng)


def truncation(root, archive, rng):
    path = rng.choice([p for p, data in archive.files.items() if data])
    keep_time(root / path, lambda file: os.truncate(file, rng.randrange(len(archive.files[path]))))
    return archive.parity == "2"


def swapped(root, archive, rng):
    if len(archive.files) < 2:
        return False
    a, b = (root / p for p in rng.sample(sorted(archive.files), 2))
    spare = root / "spare"
    a.rename(spare), b.rename(a), spare.rename(b)
    return archive.parity == "2"


def far_too_much(root, archive, rng):
    run_of_bytes(root, archive, rng, 0.6, promised=False)
    return False


DAMAGES = [some_bytes, run_of_bytes, sectors, lost_files, lost_metadata, lost_directory, parity_and_bytes,
           roots_and_manifest, truncation, swapped, far_too_much]


def different(root, files):
    """Paths that are not as they were sealed."""
    return {p for p, data in files.items() if not (root / p).is_file() or (root / p).read_bytes() != data}


def one_round(program, archive, folder, rng):
    damage = rng.choice(DAMAGES)
    work = archive.copy(folder / "work")
    promised = damage(work, archive, rng)
    other = folder / "other"
    shutil.rmtree(other, ignore_errors=True)
    run("cp", "-a", work, other)
    decoded = run(sys.executable, DECODER, other, archive.seal, codes=(0, 1))  # exit 1 also says that no root or index is whole
    refused = "no root" in decoded.stderr or "no index" in decoded.stderr
    still = different(other, archive.files)
    assert refused or still == {l.removeprefix("lost: ") for l in decoded.stdout.splitlines() if l.startswith("lost: ")}
    result = run(program, "repair", work / archive.named, "--to-seal", codes=(0, 1))
    left = different(work, archive.files)
    what = f"{archive.root.name}, {damage.__name__}\n{result.stdout}{decoded.stdout}{decoded.stderr}"
    assert refused or left <= still, f"the decoder restores more: {sorted(left - still)}\n{what}"
    assert not (promised and left), f"within what was promised: {sorted(left)}\n{what}"
    for path in left:
        assert path in result.stdout, f"not named: {path}\n{what}"
    assert left or result.returncode == 0 or "made anew" not in result.stdout or "can do nothing" in result.stdout, what
    if not left and not any("seal again" in line for line in result.stdout.splitlines()):
        check = subprocess.run(["sha256sum", "-c", "--quiet", f"{archive.seal}/sha256sums.txt"], cwd=work, capture_output=True)
        assert check.returncode == 0, what
        assert run(program, "verify", work / archive.named, codes=(0, 1)).returncode == 0, what
    return damage.__name__, not left


def edit_round(program, archive, folder, rng):
    """Damage beside an edit: plain repair restores the one and leaves the other."""
    work = archive.copy(folder / "work")
    archive.edits(archive, work, rng)
    edited = {path: (work / path).read_bytes() for path in different(work, archive.files)}
    assert edited, f"{archive.root.name}: nothing was edited"
    others = [path for path, data in archive.files.items() if data and path not in edited]
    path = rng.choice(others) if others else ""
    if others:
        overwrite(work, path, rng.randrange(len(archive.files[path])), 1, rng)
    result = run(program, "repair", work / archive.named, codes=(0, 1))
    left = different(work, archive.files)
    if path and archive.parity == "2" and len(edited) > 1:  # each edit costs as much as a lost file
        left.discard(path)
    assert left == set(edited), f"{archive.root.name}: {sorted(left)} but edited were {sorted(edited)}\n{result.stdout}"
    for path, data in edited.items():
        assert (work / path).read_bytes() == data, f"{path}: an edit was taken back"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--files", type=int, default=10000, help="of the largest archive, one round in 20; 0: none")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    print(f"seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    restored = {}
    with tempfile.TemporaryDirectory(prefix="tessera-parity-") as name:
        folder = pathlib.Path(name)
        kinds = [("zmeta", array((400, 500), "--format", "zmeta", "--chunks", "50,50"), "5%"),
                 ("v1", array((200, 100), "--format", "v1", "--chunks", "100,10"), "10%"),
                 ("v2", array((300, 300), "--format", "v2", "--chunks", "30,30"), "2", "", ".tessera", edit_by_zarr),
                 ("v3", array((200, 200), "--format", "v3", "--chunks", "25,25"), "5%"),
                 ("shards", array((300, 300), "--format", "v3", "--chunks", "20,20", "--shard", "100,100"), "8%"),
                 ("one", array((500, 500), "--format", "v2", "--chunks", "500,500"), "5%", "", ".tessera", edit_by_zarr),
                 ("group", group, "5%", "", ".tessera", edit_by_zarr),
                 ("npy", npy, "10%", "x.npy", "x.npy.tessera-seal", edit_npy),
                 ("zip", zip_file, "10%", "x.zip", "x.zip.tessera-seal", edit_zip),
                 ("bag", bag, "6%", "", "tessera-seal", edit_by_zarr)]
        archives = [Archive(program, folder, *kind) for kind in kinds]
        many = Archive(program, folder, "many", array((options.files, 10), "--format", "v2", "--chunks", "1,10"), "5%",
                       edits=edit_by_zarr) if options.files else None
        for number in range(options.rounds):
            archive = rng.choice(archives)
            if many and number % 20 == 7:
                archive = many
            if number % 5 == 4:
                edit_round(program, archive, folder, rng)
                continue
            damage, whole = one_round(program, archive, folder, rng)
            counts = restored.setdefault(damage, [0, 0])
            counts[0] += whole
            counts[1] += 1
    for damage, (whole, rounds) in sorted(restored.items()):
        print(f"{damage}: {whole} of {rounds} restored completely")
    print(f"{options.rounds} rounds: nothing wrong")


if __name__ == "__main__":
    main()
