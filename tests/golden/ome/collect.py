#!/usr/bin/env python3
"""Writes ngff-spec.jsonl from a clone of https://github.com/ome/ngff-spec: `collect.py CLONE [COMMIT]`."""

import json
import pathlib
import subprocess
import sys

clone, *rest = sys.argv[1:]
commit = rest[0] if rest else "277f209d805803bb153da5868985b07602d9108b"


def git(*words):
    return subprocess.run(["git", "-C", clone, *words], capture_output=True, text=True, check=True).stdout


def listed(folder, end):
    names = git("ls-tree", "-r", "-z", "--name-only", commit, folder).split("\0")
    for name in sorted(name for name in names if name.endswith(end)):
        yield name[len(folder) + 1:-len(end)], git("show", f"{commit}:{name}")


def parsed(text):
    try:
        return json.loads(text)
    except ValueError:  # two of the documents are none
        return text


found = [(f"0.6rc0/attributes/{name}", parsed(text)) for name, text in listed("tests/attributes", ".json")]
found += [(f"0.6rc0/zarr/{name}", parsed(text)) for name, text in listed("tests/zarr", ".ome.zarr/zarr.json")]
for version in ("0.4", "0.5"):  # branches
    for strict in ("spec", "strict"):
        for kind in ("image", "label", "plate", "well"):
            prefix = "strict_" if strict == "strict" else ""
            for test in json.loads(git("show", f"{version}:tests/{prefix}{kind}_suite.json"))["tests"]:
                name = test["formerly"].split("/")[-1].removesuffix(".json")
                valid = "valid" if test["valid"] else "invalid"
                found.append((f"{version}/attributes/{strict}/{valid}/{kind}/{name}", test["data"]))
with open(pathlib.Path(__file__).with_name("ngff-spec.jsonl"), "w", encoding="utf-8") as out:
    for name, document in found:
        out.write(json.dumps({"name": name, "document": document}, separators=(",", ":"), ensure_ascii=False) + "\n")
