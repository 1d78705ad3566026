"""Arrays whose chunks differ in length (rectilinear_*), and their cases in manifest.json.

zarr-python 3.4.2 writes them. The documents of some were edited: to run lengths, to a single length, to lengths that go
on beyond the array.
"""
import json
import pathlib

import numpy as np
import zarr

from extensions import case_of

HERE = pathlib.Path(__file__).parent
RNG = np.random.default_rng(3)


def cases():
    """Name, array, chunks, chunk_shapes where the document is edited, and what is given to create_array."""
    big = RNG.integers(-999, 999, (23, 17)).astype("<i4")
    yield "two", big, ((10, 10, 3), (4, 13)), None, {}
    yield "runs", big, ((5, 5, 5, 5, 3), (1,) * 17), [[[5, 4], 3], [[1, 17]]], {}
    yield "length", big, ((5, 5, 5, 5, 3), (10, 7)), [[[5, 4], 3], [10, 7, [4, 1000000000000]]], {}
    yield "strings", np.array([f"text {n}" * (n % 4) for n in range(9)], dtype="T"), ((2, 3, 4),), None, {"fill_value": "?"}
    even = (np.arange(432) % 101).astype("<i4").reshape(24, 18)
    yield "shards", even, (4, 3), None, {"shards": ((8, 4, 12), (3, 15))}
    yield "float", RNG.standard_normal((6, 5, 4)).astype(">f8"), ((1, 5), (5,), (3, 1)), None, {
        "filters": zarr.codecs.TransposeCodec(order=(2, 0, 1)), "fill_value": np.nan}


def make():
    made = []
    zarr.config.set({"array.rectilinear_chunks": True})
    for name, a, chunks, edited, options in cases():
        path = HERE / f"rectilinear_{name}"
        options = {"fill_value": 3} | options
        z = zarr.create_array(str(path), shape=a.shape, chunks=chunks, dtype=a.dtype, overwrite=True, **options)
        along = options.get("shards", chunks)[0]
        z[: along[0]] = a[: along[0]]  # the middle stays the fill
        z[-along[-1]:] = a[-along[-1]:]
        expected = z[...]
        if edited:
            document = json.loads((path / "zarr.json").read_text())
            document["chunk_grid"]["configuration"]["chunk_shapes"] = edited
            (path / "zarr.json").write_text(json.dumps(document, indent=2))
        if expected.dtype.kind == "T":
            expected = np.array(expected.tolist(), dtype="U")
        made.append(case(path.name, expected))
    manifest = json.loads((HERE / "manifest.json").read_text())
    manifest["cases"] = [c for c in manifest["cases"] if not c["name"].startswith("rectilinear_")] + made
    (HERE / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def case(name, expected):
    document = json.loads((HERE / name / "zarr.json").read_text())
    shapes = document["chunk_grid"]["configuration"]["chunk_shapes"]
    document["chunk_grid"]["configuration"]["chunk_shape"] = shapes
    text = (HERE / name / "zarr.json").read_text()
    (HERE / name / "zarr.json").write_text(json.dumps(document))
    made = case_of(name, "zarr", expected) | {"chunks": {"rectilinear": shapes}}
    (HERE / name / "zarr.json").write_text(text)
    return made


if __name__ == "__main__":
    make()
