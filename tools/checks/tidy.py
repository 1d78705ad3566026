"""Runs clang-tidy over the sources of the library and the program, one per core at a time, and again only where
something changed.

    tidy.py BUILD_DIR

A source passes once for a given content of itself, of the project's headers that it includes (as Ninja recorded them),
of its compile command, of .clang-tidy and of clang-tidy's version; a stamp named by that content is then left in
BUILD_DIR/tidy/.

Most of the time goes into the headers of the standard library, which every source includes. So the sources of one
target are looked at a batch at a time, one after the other as one text. Where a batch does not pass, be it for names
that clash only side by side or for a finding, those sources in which something was found are taken out of it, and both
parts are looked at again; what a person reads was said of a source by itself. In a batch the compiler does not warn of shadowed names: a source's
own would shadow its neighbour's. The build warns of them.
"""
import bisect
import concurrent.futures
import hashlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = ("core", "codecs", "store", "tools")
BATCH = 16


class Job(typing.NamedTuple):
    """One source: how it is compiled, with neither its own name nor its object's, and the stamp that says it passed."""

    source: pathlib.Path
    directory: str
    flags: str
    stamp: pathlib.Path


def headers_of_objects(build):
    """{object: [paths]} as `ninja -t deps` tells it."""
    deps, current = {}, None
    for line in subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, capture_output=True, text=True).stdout.splitlines():
        if line.startswith("    "):
            path = (build / line.strip()).resolve()
            if path.is_relative_to(ROOT):
                current.append(path)
        elif ":" in line:
            current = deps.setdefault(line.split(":")[0], [])
    return deps


def batches(work):
    """The jobs in lists of up to BATCH; those of one list are compiled alike."""
    alike = {}
    for job in work:
        alike.setdefault((job.directory, job.flags), []).append(job)
    return [jobs[i : i + BATCH] for jobs in alike.values() for i in range(0, len(jobs), BATCH)]


def tidy(batch, folder):
    """(how clang-tidy ended, the parts of the batch to look at again); `folder` is made for the joined sources."""
    folder.mkdir()
    source, flags, starts = batch[0].source, batch[0].flags, []
    if len(batch) > 1:
        source, text = folder / "batch.cpp", ""
        for job in batch:
            starts.append(text.count("\n") + 1)
            text += job.source.read_text() + "\n"
        source.write_text(text)
        flags += "".join(f" -iquote {place}" for place in sorted({job.source.parent for job in batch}))
        flags += " -Wno-shadow -ferror-limit=0"
    entry = {"directory": batch[0].directory, "command": f"{flags} -c {source}", "file": str(source)}
    (folder / "compile_commands.json").write_text(json.dumps([entry]))
    command = ["clang-tidy", "-p", folder, "--quiet", "--warnings-as-errors=*", f"--config-file={ROOT / '.clang-tidy'}", source]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode == 0 or len(batch) == 1:
        return ended, []
    lines = {int(line) for line in re.findall(rf"^{re.escape(str(source))}:(\d+):\d+: error:", ended.stdout, re.M)}
    found = {bisect.bisect(starts, line) - 1 for line in lines}
    parts = [job for i, job in enumerate(batch) if i in found], [job for i, job in enumerate(batch) if i not in found]
    return ended, parts if all(parts) else (batch[: len(batch) // 2], batch[len(batch) // 2 :])


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    stamps = build / "tidy"
    stamps.mkdir(exist_ok=True)
    deps = headers_of_objects(build)
    config = (ROOT / ".clang-tidy").read_bytes()
    config += subprocess.run(["clang-tidy", "--version"], check=True, capture_output=True).stdout
    work, keep = [], set()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if not source.is_relative_to(ROOT) or source.relative_to(ROOT).parts[0] not in MODULES:
            continue  # made by CMake: the one-line files that verify headers
        digest = hashlib.sha256(config + entry["command"].encode())
        flags, target = re.fullmatch(r"(.*) -o (\S+) -c \S+", entry["command"]).groups()
        # GCC's precompiled headers are none for Clang; and a source includes what it uses.
        flags = re.sub(r" -Winvalid-pch| -include \S+/cmake_pch\.hxx", "", flags)
        for path in sorted({source, *deps.get(target, [])}):
            digest.update(path.read_bytes())
        stamp = stamps / digest.hexdigest()
        keep.add(stamp.name)
        if not stamp.exists():
            work.append(Job(source, entry["directory"], flags, stamp))

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool, tempfile.TemporaryDirectory() as folder:
        numbers = itertools.count()

        def start(batch):
            return pool.submit(tidy, batch, pathlib.Path(folder) / str(next(numbers)))

        running = {start(batch): batch for batch in batches(work)}
        while running:
            for one in concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED).done:
                batch = running.pop(one)
                ended, parts = one.result()
                running.update((start(part), part) for part in parts)
                if ended.returncode == 0:
                    for job in batch:
                        job.stamp.touch()
                elif not parts:
                    failed += 1
                    print(f"clang-tidy: {batch[0].source.relative_to(ROOT)}\n{ended.stdout}{ended.stderr}", flush=True)
    for stamp in stamps.iterdir():
        if stamp.name not in keep:
            stamp.unlink()
    print(f"clang-tidy: {len(work)} of {len(keep)} sources looked at, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
