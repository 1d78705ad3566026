"""Prints a digest of everything that decides how a check in a build folder ends: equal digests, equal ends.

    inputs.py BUILD_DIR

It covers every file of the checkout but those that git ignores, what was built in BUILD_DIR and how it was configured,
the packages that are installed, the interpreters, the machine, and the environment as far as programs listen to it.
"""
import hashlib
import importlib.metadata
import os
import pathlib
import platform
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, **options).stdout


def checkout(root):
    """Every file of the checkout that is there, new ones too."""
    names = output("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=root).split(b"\0")
    return [path for path in (root / os.fsdecode(name) for name in sorted(set(names)) if name) if path.is_file()]


def built(build):
    """Programs and shared libraries, and the settings that they and the tests were made by."""
    return [path for path in sorted(build.rglob("*")) if path.is_file() and "CMakeFiles" not in path.parts and
            (path.name == "CMakeCache.txt" or path.suffix == ".so" or os.access(path, os.X_OK))]


def surroundings(environment):
    """Lines that tell what the programs run on."""
    yield from platform.uname()._replace(node="")
    with open("/proc/cpuinfo") as info:
        yield next((line for line in info if line.startswith("flags")), "")
    yield os.fsdecode(output("dpkg-query", "-W"))
    yield sys.version
    yield from sorted(f"{found.name} {found.version}" for found in importlib.metadata.distributions())
    yield os.fsdecode(output("node", "--version")) if shutil.which("node") else "no node"
    yield from sorted(f"{name}={value}" for name, value in environment.items()
                      if name.startswith(("TESSERA_", "GTEST_", "LD_", "PYTHON", "PATH")) or name.endswith("SAN_OPTIONS"))


def digest(root, build, environment):
    total = hashlib.sha256()
    for path in checkout(root) + built(build):
        total.update(f"{path} {path.stat().st_mode:o} ".encode(errors="surrogateescape"))
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    for line in surroundings(environment):
        total.update(line.encode(errors="surrogateescape") + b"\n")
    return total.hexdigest()


if __name__ == "__main__":
    print(digest(ROOT, pathlib.Path(sys.argv[1]).resolve(), os.environ))
