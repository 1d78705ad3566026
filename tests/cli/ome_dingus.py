"""`verify --ome` behind the interface of ngff-spec's conformance tool, which calls it a dingus.

    ome_zarr_conformance.py attributes -- python3 tests/cli/ome_dingus.py attributes
    ome_zarr_conformance.py zarr -- python3 tests/cli/ome_dingus.py zarr

It needs TESSERA_PROGRAM. Documents below a folder `strict` are held against the strict schemas, as their names say.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile


def judge(group, strict):
    """What the program says of the metadata of one group. Nodes that are not there are no fault of the metadata."""
    done = subprocess.run([os.environ["TESSERA_PROGRAM"], "verify", "--ome", "--json", os.fspath(group)],
                          capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    kinds = {"damage", "unchecked"}
    rules = {"ome/schema", "ome/version", None} | ({"ome/advice"} if strict else set())
    wrong = [finding["text"] for finding in json.loads(done.stdout)["findings"]
             if finding.get("rule") in rules and (finding["kind"] in kinds or finding.get("rule") == "ome/advice")]
    return {"valid": not wrong, "message": "; ".join(wrong)}


def judge_path(mode, path):
    strict = "strict" in pathlib.Path(path).parts
    if mode == "zarr":
        return judge(path, strict)
    with tempfile.TemporaryDirectory() as folder:
        group = {"zarr_format": 3, "node_type": "group", "attributes": json.loads(pathlib.Path(path).read_text())}
        (pathlib.Path(folder) / "zarr.json").write_text(json.dumps(group))
        return judge(folder, strict)


if __name__ == "__main__":
    print(json.dumps(judge_path(*sys.argv[1:])))
