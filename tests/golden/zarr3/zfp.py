"""Arrays compressed by zfp (zfp_*), and their cases in manifest.json, here and in ../zarr2.

Of the registered zfp, zfpy 1.0.1 compresses the chunks and NumPy widens small integers as the registry says; no program
for Python writes the metadata, which are as in the registry's examples. numcodecs' zfpy is written by zarr-python 3.4.2
with numcodecs 0.17.1, in v2 with the shape of a chunk in its header, or a flat one.
"""
import hashlib
import itertools
import json
import pathlib
import shutil
import warnings

import numcodecs
import numpy as np
import zarr
import zarr.codecs.numcodecs
import zfpy

HERE = pathlib.Path(__file__).parent
MODES = {"rate": ({"mode": "fixed_rate", "rate": 10.5}, {"rate": 10.5}),
         "precision": ({"mode": "fixed_precision", "precision": 19}, {"precision": 19}),
         "accuracy": ({"mode": "fixed_accuracy", "tolerance": 0.05}, {"tolerance": 0.05}),
         "reversible": ({"mode": "reversible"}, {})}
V3_NAMES = {"f4": "float32", "f8": "float64", "i4": "int32", "i8": "int64", "u1": "uint8", "i1": "int8", "u2": "uint16",
            "i2": "int16"}


def smooth(shape, dtype):
    return (50 + 40 * np.sin(np.arange(np.prod(shape)) / 7)).reshape(shape).astype(dtype)


def widened(a):
    bits = 8 * a.dtype.itemsize
    if a.dtype.kind == "f" or bits >= 32:
        return a
    return ((a.astype("i4") - ((1 << (bits - 1)) if a.dtype.kind == "u" else 0)) << (31 - bits)).astype("i4")


def narrowed(a, dtype):
    bits = 8 * dtype.itemsize
    if dtype.kind == "f" or bits >= 32:
        return a
    return ((a >> (31 - bits)) + ((1 << (bits - 1)) if dtype.kind == "u" else 0)).astype(dtype)


def case(folder, name, expected, chunks, writer, document):
    np.save(folder / f"{name}.expected.npy", expected)
    files = sorted(str(p.relative_to(folder / name)) for p in (folder / name).rglob("*") if p.is_file())
    return {"name": name, "path": name, "expected": f"{name}.expected.npy", "shape": list(expected.shape),
            "dtype": expected.dtype.str, "sha256": hashlib.sha256(expected.tobytes()).hexdigest(),
            "chunks": list(chunks), "zarr_dtype": document.get("data_type", document.get("dtype")),
            "fill_value": document["fill_value"], "codec": document.get("codecs", document.get("compressor")),
            "chunk_key_encoding": document.get("chunk_key_encoding"), "order": document.get("order"), "attrs": {},
            "writer": writer, "files": files}


def registered(name, a, chunks, configuration, arguments):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    expected = np.zeros_like(a)
    for index in itertools.product(*(range(-(-n // c)) for n, c in zip(a.shape, chunks))):
        box = tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, chunks))
        chunk = np.zeros(chunks, a.dtype)
        inside = tuple(slice(0, n) for n in a[box].shape)
        chunk[inside] = a[box]
        wide = widened(chunk)
        data = zfpy.compress_numpy(wide, write_header=False, **arguments)
        path = folder / "c" / "/".join(map(str, index))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        back = zfpy.decompress_numpy(zfpy.compress_numpy(wide, write_header=True, **arguments))
        expected[box] = narrowed(back, a.dtype)[inside]
    document = {
        "shape": list(a.shape), "data_type": V3_NAMES[a.dtype.str[1:]],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0.0 if a.dtype.kind == "f" else 0, "codecs": [{"name": "zfp", "configuration": configuration}],
        "attributes": {}, "zarr_format": 3, "node_type": "array", "storage_transformers": []}
    (folder / "zarr.json").write_text(json.dumps(document, indent=2))
    return case(HERE, name, expected, chunks, "zfpy 1.0.1, metadata of zarr-extensions, edited", document)


def of_numcodecs(folder, name, a, chunks, **options):
    z = zarr.create_array(str(folder / name), shape=a.shape, chunks=chunks, dtype=a.dtype, fill_value=0, overwrite=True,
                          **options)
    z[...] = a
    document = json.loads((folder / name / ("zarr.json" if folder == HERE else ".zarray")).read_text())
    return case(folder, name, z[...], chunks, "zarr-python 3.4.2, numcodecs 0.17.1, zfpy 1.0.1", document)


def keep(folder, made):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["cases"] = [c for c in manifest["cases"] if not c["name"].startswith("zfp_")] + made
    path.write_text(json.dumps(manifest, indent=1) + "\n")


def make():
    made = [registered(f"zfp_{name}", smooth((9, 10), "<f4"), (4, 5), *modes) for name, modes in MODES.items()]
    for dtype, shape in (("<f8", (9, 5, 4)), ("<i4", (20,)), ("<i8", (6, 5)), ("|u1", (6, 7)), ("|i1", (9,)),
                         ("<i2", (3, 4, 5, 2)), ("<u2", (8,))):
        made.append(registered(f"zfp_{dtype[1:]}", smooth(shape, dtype), tuple(max(1, n // 2) for n in shape),
                               *MODES["reversible"]))
    a = smooth((9, 10), "<f4")
    made.append(of_numcodecs(HERE, "zfp_numcodecs", a, (4, 5), compressors=None,
                             serializer=zarr.codecs.numcodecs.ZFPY(mode=zfpy.mode_fixed_accuracy, tolerance=0.05)))
    keep(HERE, made)
    v2 = HERE.parent / "zarr2"
    keep(v2, [of_numcodecs(v2, f"zfp_{name}", smooth((9, 10), dtype), (4, 5), zarr_format=2, filters=None,
                           compressors=numcodecs.ZFPY(**options))
              for name, dtype, options in (("accuracy", "<f8", {"mode": zfpy.mode_fixed_accuracy, "tolerance": 0.05}),
                                           ("rate", "<f4", {"mode": zfpy.mode_fixed_rate, "rate": 12}),
                                           ("precision", "<i8", {"mode": zfpy.mode_fixed_precision, "precision": 50}),
                                           ("default", "<i4", {}))])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    make()
