#!/usr/bin/python3
"""Plants bugs, one at a time, and shows that the tests notice each of them.

    tests/soak/mutants.py [BUG...] [--tests REGEX] [--folder FOLDER]
    tests/soak/mutants.py --fit           only looks whether every bug fits the sources and has tests

The bugs are in tests/mutants.txt, the promise that each breaks and the tests that must then fail in the table of
tests/README.md. The sources are copied to FOLDER (build/mutants), where all bugs are planted behind a switch,
TESSERA_PLANTED, so that they are compiled once; the tests must pass without it and fail with it. A bug that no longer
fits the sources is reported, and counts as not noticed. With --tests other tests are run for all of them.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGETS = ["tessera_cli", "test_core", "test_codecs", "test_store", "test_faults"]
SWITCH = """#pragma once
#include <cstdlib>
#include <string_view>
inline bool planted(std::string_view bug) {
    static const char* const now = std::getenv("TESSERA_PLANTED");
    return now != nullptr && bug == now;
}
"""


def bugs():
    """{name: [(file, text that is there, text in its place)]} of tests/mutants.txt."""
    found, name, file = {}, None, None
    for line in (ROOT / "tests/mutants.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("["):
            name = line.strip("[]")
            found[name] = []
        elif line[:1] in (" ", "-", "+"):
            text = line[1:].replace("PLANTED", f'planted("{name}")') + "\n"
            there, instead = found[name][-1][1:]
            found[name][-1] = (file, there + text * (line[0] != "+"), instead + text * (line[0] != "-"))
        elif line:
            file = line
            found[name].append((file, "", ""))
    return found


def table():
    """{name: regular expression of tests} of the table in tests/README.md."""
    rows = re.findall(r"^\| `(\w+)` \|.*\| `([^`]*)` \|$", (ROOT / "tests/README.md").read_text(), re.MULTILINE)
    return {name: tests.replace("\\|", "|") for name, tests in rows}


def fitted(planted):
    """The sources with all bugs in them, {file: text}, and the names of those that do not fit."""
    stale, texts = [], {}
    for name, edits in planted.items():
        changed = dict(texts)
        for file, there, instead in edits:
            before = changed.get(file) or (ROOT / file).read_text()
            if before.count(there) != 1:
                stale.append(name)
                break
            changed[file] = before.replace(there, instead)
        else:
            texts = changed
    return texts, stale


def plant(source, texts):
    """Writes the sources with all bugs in them."""
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    source.mkdir(parents=True, exist_ok=True)
    (source / "planted.h").write_text(SWITCH)
    for name in names:
        before, after = ROOT / name, source / name
        if not before.is_file():
            continue
        text = before.read_bytes()
        if name in texts:
            text = f'#include "{source}/planted.h"\n#line 1\n{texts[name]}'.encode()
        # What is as it was keeps its time, so that it is not compiled again.
        if not after.is_file() or after.read_bytes() != text:
            after.parent.mkdir(parents=True, exist_ok=True)
            after.write_bytes(text)
            shutil.copymode(before, after)


def run_tests(source, regex, bug=""):
    environment = {**os.environ, "TESSERA_PLANTED": bug}
    result = subprocess.run(["ctest", "--preset", "dev", "-R", regex, "--timeout", "300"], cwd=source, env=environment,
                            capture_output=True, text=True)
    failed = re.findall(r"^\s+\d+ - (\S+) \((?:Failed|Timeout|SEGFAULT|Subprocess aborted)", result.stdout, re.MULTILINE)
    return result.returncode == 0, failed, result.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bugs", nargs="*")
    parser.add_argument("--tests")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/mutants")
    options = parser.parse_args()
    all_bugs, tests = bugs(), table()
    names = options.bugs or list(all_bugs)
    source = options.folder.resolve()
    os.environ.update(CCACHE_BASEDIR=str(source), CCACHE_NOHASHDIR="1")
    texts, stale = fitted(all_bugs)
    if options.fit:
        untested = [name for name in all_bugs if name not in tests]
        print(f"{len(all_bugs)} bugs; not fitting: {stale}; without tests: {untested}")
        sys.exit(1 if stale or untested else 0)
    plant(source, texts)
    if not (source / "build/dev/build.ninja").exists():
        subprocess.run(["cmake", "--preset", "dev"], cwd=source, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "--preset", "dev", "--target", *TARGETS], cwd=source, check=True)
    unnoticed = []
    regex = {name: options.tests or tests.get(name, "") for name in names}
    passed, failed, text = run_tests(source, "|".join(sorted({r for r in regex.values() if r})))
    if not passed:
        sys.exit(f"the tests fail without a planted bug: {failed}\n{text[-2000:]}")
    for name in names:
        if name in stale:
            said = "does not fit the sources any more"
        elif not regex[name]:
            said = "has no test in tests/README.md"
        else:
            passed, failed, _ = run_tests(source, regex[name], name)
            said = "NOT NOTICED" if passed else f"noticed by {len(failed)}: {', '.join(failed[:3])}"
        if not said.startswith("noticed"):
            unnoticed.append(name)
        print(f"{name}: {said}", flush=True)
    print(f"{len(names) - len(unnoticed)} noticed, {len(unnoticed)} not")
    sys.exit(1 if unnoticed else 0)


if __name__ == "__main__":
    main()
