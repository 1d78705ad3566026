"""Runs clang-tidy over the sources of the library and the program, one per core at a time, and again only where
something changed.

    tidy.py BUILD_DIR

A source passes once for a given content of itself, of the project's headers that it includes (as Ninja recorded them),
of its compile command, of .clang-tidy and of clang-tidy's version; a stamp named by that content is then left in
BUILD_DIR/tidy/.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = ("core", "codecs", "store", "tools")


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
        target = re.search(r" -o (\S+) -c ", entry["command"])[1]
        for path in sorted({source, *deps.get(target, [])}):
            digest.update(path.read_bytes())
        stamp = stamps / digest.hexdigest()
        keep.add(stamp.name)
        if not stamp.exists():
            work.append((source, stamp))

    def tidy(item):
        source, stamp = item
        done = subprocess.run(["clang-tidy", "-p", build, "--quiet", "--warnings-as-errors=*", source],
                              capture_output=True, text=True)
        if done.returncode == 0:
            stamp.touch()
        return source, done

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, done in pool.map(tidy, work):
            if done.returncode != 0:
                failed += 1
                print(f"clang-tidy: {source.relative_to(ROOT)}\n{done.stdout}{done.stderr}", flush=True)
    for stamp in stamps.iterdir():
        if stamp.name not in keep:
            stamp.unlink()
    print(f"clang-tidy: {len(work)} of {len(keep)} sources looked at, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
