"""Fails when a test file under tests/ belongs to no test of the build: it would never run and nobody would notice.

    tests_registered.py BUILD_DIR

A *_test.cpp has to be compiled there, by itself or jointly, and a test_*.py has to be the command of a CTest test, or be
named by tests/peers/run, whose environments are not the build's.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    known = {entry["file"] for entry in json.loads((build / "compile_commands.json").read_text())}
    for joined in [pathlib.Path(name) for name in known if "/joined/" in name]:
        known.update(str(ROOT / name) for name in re.findall('#include "(.*)"', joined.read_text()))
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    for test in json.loads(listing.stdout)["tests"]:
        known.update(test.get("command", []))
    peers = ROOT / "tests" / "peers"
    known.update(str(peers / name) for name in re.findall(r'"(test_\w+[.]py)"', (peers / "run").read_text()))
    files = [*(ROOT / "tests").rglob("*_test.cpp"), *(ROOT / "tests").rglob("test_*.py")]
    missing = sorted(str(f.relative_to(ROOT)) for f in files if str(f) not in known)
    for name in missing:
        print(f"{name}: belongs to no test; see tests/README.md for where test files go")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
