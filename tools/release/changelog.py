#!/usr/bin/python3
"""The changelog, and the files of tools/release/changes/ that the next release puts into it.

    changelog.py check                  fails if one of these files does not fit into the changelog
    changelog.py notes [VERSION]        what is new: of that version, or of the next one
    changelog.py join VERSION DATE      makes VERSION of what is unreleased and of these files, which go

TESSERA_SOURCE names another folder than the checkout that this lies in.
"""

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(os.environ.get("TESSERA_SOURCE") or pathlib.Path(__file__).resolve().parents[2])
CHANGELOG, CHANGES = ROOT / "CHANGELOG.md", ROOT / "tools/release/changes"
UNRELEASED = "Unreleased"


def fail(why):
    sys.exit(f"changelog.py: {why}")


def versions(text):
    """What stands before the first version, and {version: [heading with its date, text]} in the file's order."""
    before, *parts = re.split(r"(?m)^(?=## )", text)
    found = {}
    for part in parts:
        heading, _, body = part.partition("\n")
        if not (named := re.fullmatch(r"## \[([^]]+)\]( - \d{4}-\d\d-\d\d)?", heading)):
            fail(f"CHANGELOG.md: expected '## [VERSION] - DATE', found {heading!r}")
        if named[1] in found:
            fail(f"CHANGELOG.md: {named[1]} stands there twice")
        found[named[1]] = [heading, body]
    return before, found


def subjects(text):
    """What stands before the first subject, and {subject: its list}."""
    before, *parts = re.split(r"(?m)^### ", text)
    found = {}
    for part in parts:
        heading, _, body = part.partition("\n")
        found[heading.strip()] = "\n".join(filter(None, [found.get(heading.strip()), body.strip("\n")]))
    return before.strip("\n"), found


def fragments():
    """{subject: list} of each of these files, by name."""
    known = set(re.findall(r"(?m)^### (.*)$", CHANGELOG.read_text()))
    for file in sorted(CHANGES.glob("*.md")):
        if file.name == "README.md":
            continue
        before, found = subjects(file.read_text())
        if before or not found:
            fail(f"{CHANGES.name}/{file.name}: a heading '### SUBJECT' has to be first")
        for subject, body in found.items():
            if subject not in known:
                fail(f"{CHANGES.name}/{file.name}: the changelog has no subject {subject!r}, but {', '.join(sorted(known))}")
            if not re.fullmatch(r"(?:- \S.*(?:\n  \S.*)*\n?)+", body):
                fail(f"{CHANGES.name}/{file.name}: below {subject!r} has to stand a list: '- ' and two spaces before further lines")
        yield file, found


def unreleased(text):
    """The text of the next version: what is unreleased, with the lists of these files behind those of the same subject."""
    before, lists = subjects(text)
    for _, found in fragments():
        for subject, body in found.items():
            lists[subject] = "\n".join(filter(None, [lists.get(subject), body]))
    return "\n\n".join([*filter(None, [before]), *(f"### {subject}\n\n{body.strip()}" for subject, body in lists.items())])


def notes(version=UNRELEASED):
    """What is new in a version. One that has no section yet is the next one."""
    _, found = versions(CHANGELOG.read_text())
    if version in found and version != UNRELEASED:
        return found[version][1].strip("\n")
    return unreleased(found[UNRELEASED][1] if UNRELEASED in found else "")


def join(version, date):
    if not re.fullmatch(r"\d+\.\d+\.\d+", version) or not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        fail("expected a version such as 0.1.0, and a date such as 2026-01-31")
    before, found = versions(CHANGELOG.read_text())
    if version in found:
        fail(f"CHANGELOG.md has {version} already")
    told = notes()
    if not told:
        fail(f"nothing is new: '{UNRELEASED}' and changes/ are empty")
    files = [file for file, _ in fragments()]
    others = [f"{heading}\n\n{body.strip(chr(10))}\n" for name, (heading, body) in found.items() if name != UNRELEASED]
    parts = [f"## [{UNRELEASED}]\n", f"## [{version}] - {date}\n\n{told}\n", *others]
    CHANGELOG.write_text(before + "\n".join(parts))
    for file in files:
        file.unlink()


def main(words):
    match words:
        case ["check"]:
            list(fragments())
        case ["notes"]:
            print(notes())
        case ["notes", version]:
            print(notes(version) or fail(f"nothing is new in {version}: changes/ is empty, too"))
        case ["join", version, date]:
            join(version, date)
        case _:
            sys.exit(__doc__.strip())


if __name__ == "__main__":
    main(sys.argv[1:])
