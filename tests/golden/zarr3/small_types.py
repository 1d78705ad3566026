"""Arrays of the small data types of v3 (small_*), and their cases in manifest.json.

TensorStore 0.1.86 writes them with ml_dtypes 0.6.0. It has no uint2, uint4, float6 and float8_e4m3.
"""
import hashlib
import json
import pathlib
import shutil

import ml_dtypes
import numpy as np
import tensorstore as ts

HERE = pathlib.Path(__file__).parent
INTEGERS = ("int2", "int4")
FLOATS = ("float4_e2m1fn", "float8_e3m4", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
          "float8_e5m2fnuz", "float8_e8m0fnu")
GZIP = [{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes"},
        {"name": "gzip", "configuration": {"level": 5}}]
SHARDS = [{"name": "sharding_indexed", "configuration": {
    "chunk_shape": [4, 8], "codecs": [{"name": "bytes"}, {"name": "crc32c"}],
    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
    "index_location": "end"}}]


def written(name, kind, fill, codecs):
    folder = HERE / f"small_{name}"
    shutil.rmtree(folder, ignore_errors=True)
    dtype = np.dtype(getattr(ml_dtypes, kind))
    # Every code of a float once; integers in order. The last rows stay the fill.
    if kind in INTEGERS:
        most = 2**(int(kind[-1]) - 1)
        values = (np.arange(256) % (2 * most) - most).astype("i1").astype(dtype)
    else:
        values = (np.arange(256, dtype="u1") & (15 if kind.startswith("float4") else 255)).view(dtype)
    store = ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": str(folder)}, "metadata": {
        "data_type": kind, "shape": [20, 16], "fill_value": fill, "codecs": codecs,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 16]}}}}, create=True).result()
    store[:16].write(values.reshape(16, 16)).result()
    if kind == "float8_e8m0fnu":  # whose fill TensorStore does not read as it writes it
        store[16:].write(values[:64].reshape(4, 16)).result()
    found = store.read().result()
    # As members of other programs stand, which Tessera writes back byte for byte.
    document = json.loads((folder / "zarr.json").read_text())
    expected = found.astype("i1" if kind in INTEGERS else "<f4")
    np.save(HERE / f"small_{name}.expected.npy", expected)
    return {"name": f"small_{name}", "path": f"small_{name}", "expected": f"small_{name}.expected.npy",
            "shape": [20, 16], "dtype": expected.dtype.str, "sha256": hashlib.sha256(expected.tobytes()).hexdigest(),
            "chunks": [8, 16], "zarr_dtype": kind, "fill_value": document["fill_value"], "codec": document["codecs"],
            "chunk_key_encoding": document["chunk_key_encoding"], "order": None, "attrs": {},
            "writer": "TensorStore 0.1.86 with ml_dtypes 0.6.0, edited (attributes and storage_transformers)",
            "files": sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())}


def make():
    made = [written(kind, kind, -1, [{"name": "bytes"}]) for kind in INTEGERS]
    for kind in FLOATS:
        fills = {"float8_e4m3fn": "NaN", "float8_e5m2": "0xff", "float8_e8m0fnu": "NaN"}
        made.append(written(kind, kind, fills.get(kind, 2.0), [{"name": "bytes"}]))
    made.append(written("gzip", "float8_e5m2", 0.0, GZIP))
    made.append(written("shards", "int4", 3, SHARDS))
    for case in made:
        path = HERE / case["path"] / "zarr.json"
        document = json.loads(path.read_text()) | {"attributes": {}, "storage_transformers": []}
        document["chunk_key_encoding"] = {"name": "default", "configuration": {"separator": "/"}}
        path.write_text(json.dumps(document, indent=2))
    manifest = json.loads((HERE / "manifest.json").read_text())
    manifest["cases"] = [c for c in manifest["cases"] if not c["name"].startswith("small_")] + made
    (HERE / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    make()
