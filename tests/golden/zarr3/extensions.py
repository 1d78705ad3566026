"""Arrays with the registered codecs of 2026 (ext_*), and their cases in manifest.json.

zarr-python 3.4.2 with cast-value-rs 0.5.1 writes scale_offset and cast_value; zarrs 0.2.3, through its codec pipeline
for zarr-python, writes packbits and reshape; bitround is the sample data of zarr-extensions 4da7b37
(codecs/bitround/sample_data), whose folder is the argument. Run it by a Python 3.12 that has those packages.
"""
import hashlib
import json
import pathlib
import shutil
import sys

import numpy as np
import zarr
import zarrs  # noqa: F401: its pipeline is found by name
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec
from zarr.codecs import CastValue, ScaleOffset
from zarr.registry import register_codec

HERE = pathlib.Path(__file__).parent
WRITERS = {"zarr": "zarr-python 3.4.2, cast-value-rs 0.5.1", "zarrs": "zarrs-python 0.2.3 with zarr-python 3.4.2",
           "sample": "zarr-extensions 4da7b37, sample data, edited (members as other programs write them)"}


def named(name, base):
    """A codec that only names itself: zarrs does the work."""
    class Named(base):
        is_fixed_size = True

        def __init__(self, **configuration):
            self.configuration = configuration

        @classmethod
        def from_dict(cls, data):
            return cls(**data.get("configuration", {}))

        def to_dict(self):
            return {"name": name, "configuration": self.configuration}

        def compute_encoded_size(self, size, spec):
            return size

        def resolve_metadata(self, spec):
            return spec

    register_codec(name, Named)
    return Named


Reshape = named("reshape", ArrayArrayCodec)
PackBits = named("packbits", ArrayBytesCodec)
RNG = np.random.default_rng(39)
BITS = RNG.integers(0, 2, (5, 7)).astype(bool)


def cases():
    """Name, writer, array, chunks, fill, and what is given to create_array."""
    temperatures = np.round(RNG.uniform(-40, 40, (6, 5)), 2).astype("f8")
    temperatures[1, 2] = np.nan
    packed = [ScaleOffset(offset=-50, scale=100.0),
              CastValue(data_type="int16", scalar_map={"encode": [["NaN", -32768]], "decode": [[-32768, "NaN"]]})]
    yield "cf_packing", "zarr", temperatures, (3, 5), np.nan, {"filters": packed}
    yield "cf_packing_shards", "zarr", temperatures, (2, 5), np.nan, {"filters": packed, "shards": None}
    yield "scale_offset_u2", "zarr", RNG.integers(1000, 1255, 9).astype("u2"), (4,), 1000, {
        "filters": [ScaleOffset(offset=1000), CastValue(data_type="uint8")]}
    yield "scale_offset_i4", "zarr", RNG.integers(-99, 99, 9).astype("i4"), (4,), 0, {
        "filters": [ScaleOffset(offset=-7, scale=3)]}
    halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.25, 7, 300, -300, -0.0], "f4")
    for rounding in ("nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"):
        for outside in ("clamp", "wrap"):
            yield f"cast_{rounding}_{outside}", "zarr", halves, (11,), 0, {
                "filters": [CastValue(data_type="int8", rounding=rounding, out_of_range=outside)]}
        integers = np.array([2**24 + 1, 2**24 + 3, -2**24 - 1, 2**63 - 1, -2**62 - 2**38, 5], "i8")
        doubles = np.array([1 + 2**-24, 1 + 2**-23 + 2**-24, -0.1, 1e-42, 65519, 3.4e38, -0.0, np.inf, np.nan], "f8")
        yield f"cast_f4_{rounding}", "zarr", doubles, (9,), 0, {
            "filters": [CastValue(data_type="float32", rounding=rounding, out_of_range="clamp")]}
        yield f"cast_f2_{rounding}", "zarr", doubles[:5], (5,), 0, {
            "filters": [CastValue(data_type="float16", rounding=rounding, out_of_range="clamp")]}
        yield f"cast_i8_{rounding}", "zarr", integers[:3], (3,), 0, {
            "filters": [CastValue(data_type="float32", rounding=rounding)]}
    yield "packbits_b1", "zarrs", BITS, (3, 4), False, {"serializer": PackBits()}
    yield "packbits_b1_first", "zarrs", BITS, (3, 7), False, {"serializer": PackBits(padding_encoding="first_byte")}
    yield "packbits_i2", "zarrs", RNG.integers(-16, 16, (3, 7)).astype("i2"), (3, 7), 0, {
        "serializer": PackBits(first_bit=0, last_bit=4)}
    yield "packbits_u1_last", "zarrs", 2 * RNG.integers(0, 32, 5).astype("u1"), (5,), 0, {
        "serializer": PackBits(first_bit=1, last_bit=5, padding_encoding="last_byte")}
    yield "packbits_f4", "zarrs", RNG.standard_normal(5).astype("f4"), (5,), 0, {
        "serializer": PackBits(first_bit=8, last_bit=31)}
    yield "packbits_i8", "zarrs", RNG.integers(-2**40, 2**40, 5), (5,), 0, {
        "serializer": PackBits(first_bit=0, last_bit=63)}
    yield "reshape", "zarrs", RNG.integers(0, 99, (4, 6)).astype("i4"), (4, 6), 0, {
        "filters": [Reshape(shape=[[0], 2, 3])]}
    yield "reshape_merged", "zarrs", RNG.integers(0, 99, (4, 6, 5)).astype("i4"), (2, 3, 5), 0, {
        "filters": [Reshape(shape=[[0, 1], -1])]}


def case_of(name, writer, expected):
    folder = HERE / name
    np.save(HERE / f"{name}.expected.npy", expected)
    meta = json.loads((folder / "zarr.json").read_text())
    return {"name": name, "path": name, "expected": f"{name}.expected.npy", "shape": list(expected.shape),
            "dtype": expected.dtype.str, "sha256": hashlib.sha256(expected.tobytes()).hexdigest(),
            "chunks": meta["chunk_grid"]["configuration"]["chunk_shape"], "zarr_dtype": meta["data_type"],
            "fill_value": meta["fill_value"], "codec": meta["codecs"],
            "chunk_key_encoding": meta["chunk_key_encoding"], "order": None, "attrs": {}, "writer": WRITERS[writer],
            "files": sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())}


def make(samples):
    made = []
    for name, writer, a, chunks, fill, options in cases():
        name = f"ext_{name.replace('-', '_')}"
        pipeline = {"zarr": "zarr.core.codec_pipeline.BatchedCodecPipeline", "zarrs": "zarrs.ZarrsCodecPipeline"}[writer]
        with zarr.config.set({"codec_pipeline.path": pipeline}):
            if "shards" in options:
                options["shards"] = (6, 5)
            z = zarr.create_array(str(HERE / name), shape=a.shape, chunks=chunks, dtype=a.dtype, fill_value=fill,
                                  compressors=None, overwrite=True, **options)
            # Of sharded arrays the middle chunk is left out.
            if "shards" in options:
                z[:2], z[4:] = a[:2], a[4:]
            else:
                z[...] = a
            # zarrs 0.2.3 reads negative numbers of less than 8 bits wrongly: it extends their sign to 8 bits.
            made.append(case_of(name, writer, a if name == "ext_packbits_i2" else z[...]))
    for kind, dtype in (("float32", "<f4"), ("uint8", "|u1")):
        name = f"ext_bitround_{kind}"
        shutil.copytree(samples / f"bitround_{kind}.zarr", HERE / name, dirs_exist_ok=True)
        document = json.loads((HERE / name / "zarr.json").read_text())
        document |= {"attributes": {}, "storage_transformers": []}
        if np.dtype(dtype).itemsize == 1:
            document["codecs"][1] = {"name": "bytes"}
        (HERE / name / "zarr.json").write_text(json.dumps(document, indent=2))
        made.append(case_of(name, "sample", np.frombuffer((HERE / name / "c" / "0").read_bytes(), dtype)))
    manifest = json.loads((HERE / "manifest.json").read_text())
    manifest["cases"] = [c for c in manifest["cases"] if not c["name"].startswith("ext_")] + made
    (HERE / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]))
