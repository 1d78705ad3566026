"""Arrays compressed by numcodecs' pcodec (pco_*), and their cases in manifest.json, here and in ../zarr2. zarr-python
3.1.6 with numcodecs 0.16.6 and pcodec 1.1.0 writes them.
"""
import hashlib
import json
import pathlib
import warnings

import numcodecs
import numpy as np
import zarr
import zarr.codecs.numcodecs

HERE = pathlib.Path(__file__).parent
WRITER = "zarr-python 3.1.6, numcodecs 0.16.6, pcodec 1.1.0"


def written(folder, name, a, chunks, **options):
    z = zarr.create_array(str(folder / name), shape=a.shape, chunks=chunks, dtype=a.dtype, overwrite=True, **options)
    z[...] = a
    document = json.loads((folder / name / ("zarr.json" if folder == HERE else ".zarray")).read_text())
    expected = z[...]
    np.save(folder / f"{name}.expected.npy", expected)
    files = sorted(str(p.relative_to(folder / name)) for p in (folder / name).rglob("*") if p.is_file())
    return {"name": name, "path": name, "expected": f"{name}.expected.npy", "shape": list(a.shape), "dtype": a.dtype.str,
            "sha256": hashlib.sha256(np.ascontiguousarray(expected).tobytes()).hexdigest(), "chunks": list(chunks),
            "zarr_dtype": document.get("data_type", document.get("dtype")), "fill_value": document["fill_value"],
            "codec": document.get("codecs", document.get("compressor")),
            "chunk_key_encoding": document.get("chunk_key_encoding"), "order": document.get("order"), "attrs": {},
            "writer": WRITER, "files": files}


def keep(folder, made):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["cases"] = [c for c in manifest["cases"] if not c["name"].startswith("pco_")] + made
    path.write_text(json.dumps(manifest, indent=1) + "\n")


def make():
    rng = np.random.default_rng(11)
    steps = rng.integers(-3, 9, (20, 30)).cumsum(axis=1)
    tenths = rng.integers(0, 999, (20, 30)) * 0.1
    keep(HERE, [written(HERE, "pco_numcodecs", tenths, (8, 30), compressors=None, fill_value=0,
                        serializer=zarr.codecs.numcodecs.PCodec(level=8)),
                written(HERE, "pco_zstd", steps.astype("<i2"), (20, 8), fill_value=0, serializer=zarr.codecs.numcodecs.PCodec(
                    level=4, delta_spec="try_lookback"), compressors=[zarr.codecs.ZstdCodec(level=1)])])
    v2 = HERE.parent / "zarr2"
    keep(v2, [written(v2, "pco_i4_F", steps.astype("<i4"), (8, 30), zarr_format=2, filters=None, order="F", fill_value=0,
                      compressors=numcodecs.PCodec(level=5)),
              written(v2, "pco_f4", tenths.astype("<f4"), (20, 30), zarr_format=2, filters=None, fill_value=np.nan,
                      compressors=numcodecs.PCodec(mode_spec="auto", equal_pages_up_to=256)),
              written(v2, "pco_delta", steps.astype("<u8"), (20, 7), zarr_format=2, fill_value=5, filters=[
                  numcodecs.Delta("<u8")], compressors=numcodecs.PCodec(
                      delta_spec="try_consecutive", delta_encoding_order=1))])


warnings.simplefilter("ignore")
make()
