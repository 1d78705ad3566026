"""Arrays of elements that may be missing (optional*), and their cases in manifest.json: zarrs 85b26a34's test data
(zarrs/tests/data/v3 in its repository), whose folder is the argument. What is missing is expected as the fill value, 0.
"""
import hashlib
import json
import pathlib
import shutil
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
ELEMENTS = {"optional": [[0, 0, 2, 3], [0, 5, 0, 7], [8, 9, 0, 0], [12, 0, 0, 0]],
            "optional_nested": [[0, 0, 2, 3], [0, 5, 0, 7], [0, 0, 0, 0], [0, 0, 0, 0]]}
MEMBERS = ["shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs", "attributes",
           "dimension_names"]

made = []
for name, elements in ELEMENTS.items():
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(pathlib.Path(sys.argv[1]) / f"array_{name}.zarr" / "array", folder)
    expected = np.array(elements, "|u1")
    np.save(HERE / f"{name}.expected.npy", expected)
    document = json.loads((folder / "zarr.json").read_text())
    document = {**{member: document[member] for member in MEMBERS}, "zarr_format": 3, "node_type": "array",
                "storage_transformers": []}
    (folder / "zarr.json").write_text(json.dumps(document, indent=2))
    made.append({"name": name, "path": name, "expected": f"{name}.expected.npy", "shape": [4, 4], "dtype": "|u1",
                 "sha256": hashlib.sha256(expected.tobytes()).hexdigest(), "chunks": [2, 2],
                 "zarr_dtype": document["data_type"], "fill_value": document["fill_value"], "codec": document["codecs"],
                 "chunk_key_encoding": document["chunk_key_encoding"], "order": None, "attrs": document["attributes"],
                 "writer": "zarrs 85b26a34, edited (members as other programs write them)", "files": sorted(
                     str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())})
path = HERE / "manifest.json"
manifest = json.loads(path.read_text())
manifest["cases"] = [c for c in manifest["cases"] if c["name"] not in ELEMENTS] + made
path.write_text(json.dumps(manifest, indent=1) + "\n")
