"""What numcodecs 0.11 makes of small arrays, for numcodecs_test.cpp; and the check of what Tessera makes of them.

    make.py                 writes cases.json beside this file (python3-numcodecs and the program zstd are needed)
    make.py msgpack2        appends what numcodecs 0.17.1 with msgpack 1.2.4 makes, which Debian's lacks
    make.py pcodec FOLDER   appends what pcodec 1.1.0 makes as numcodecs calls it, with every mode and delta encoding; and
                            what its older versions made, from FOLDER, pco/assets in its repository (Apache 2.0)
    make.py check FOLDER    decodes every NAME.frame there by the codec in NAME.json and compares with NAME.raw
"""
import gzip
import json
import pathlib
import subprocess
import sys
import warnings

import numcodecs
import numpy as np

warnings.simplefilter("ignore")
np.seterr(all="ignore")
numcodecs.blosc.use_threads = False
LZMA1, LZMA2 = 0x4000000000000001, 0x21


def arrays():
    rng = np.random.default_rng(4)
    for dtype in ["|i1", "<i2", ">i2", "<i4", ">i4", "<i8", "|u1", "<u2", ">u4", "<u8"]:
        info = np.iinfo(dtype)
        for n in (1, 7):
            a = rng.integers(info.min, info.max, n, dtype=dtype[1:], endpoint=True).astype(dtype)
            a[-1] = info.max
            yield a
        yield np.arange(12, dtype=dtype).reshape(3, 4)
    for dtype in ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]:
        yield (rng.standard_normal(11) * 30).astype(dtype)
        yield np.array([0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 1e-7, 65000.0, np.nan, np.inf, -np.inf], dtype)
        yield np.array([[1.25]], dtype)


def is_float(a):
    return a.dtype.kind == "f"


def filters():
    """Pairs of a codec and an array."""
    for a in arrays():
        t = a.dtype.str
        yield {"id": "delta", "dtype": t}, a
        yield {"id": "delta", "dtype": t, "astype": ">f8" if is_float(a) else "<i8" if a.dtype.itemsize < 8 else t}, a
        for other in ["|i1", "<i4", ">i8", "<u2", "<u8", "<f2", ">f4", "<f8", "<c8", "|b1"]:
            # What casting makes of floats beyond an integer's range is up to the processor.
            if is_float(a) and np.dtype(other).kind in "iu":
                a = np.where(np.isfinite(a), np.clip(a, 0, 100), 0).astype(t)
            yield {"id": "astype", "encode_dtype": other, "decode_dtype": t}, a
    for a in arrays():
        t = a.dtype.str
        if not is_float(a):
            yield {"id": "fixedscaleoffset", "offset": 3, "scale": 2, "dtype": t, "astype": t}, a
            yield {"id": "fixedscaleoffset", "offset": 0.5, "scale": 0.25, "dtype": t, "astype": "<i4"}, a % 100
            continue
        yield {"id": "fixedscaleoffset", "offset": 1000.25, "scale": 10, "dtype": t, "astype": "<f4"}, a
        yield {"id": "fixedscaleoffset", "offset": -5, "scale": 0.125, "dtype": t, "astype": t}, a
        yield {"id": "fixedscaleoffset", "offset": 100000.5, "scale": 1e-3, "dtype": t, "astype": "<f8"}, a
        finite = np.where(np.isfinite(a), np.clip(a, -100, 100), 0).astype(t)
        yield {"id": "fixedscaleoffset", "offset": -200, "scale": 100, "dtype": t, "astype": ">u4"}, finite
        for digits in (-2, 0, 1, 3, 10):
            yield {"id": "quantize", "digits": digits, "dtype": t, "astype": t}, a
        yield {"id": "quantize", "digits": 2, "dtype": t, "astype": "<f2"}, a
        bits = {2: 10, 4: 23, 8: 52}[a.dtype.itemsize]
        for keep in (0, 1, 5, bits) if a.dtype.isnative else ():  # it knows no others
            yield {"id": "bitround", "keepbits": keep}, a
    # The bytes of one type taken as another's of the same size.
    times = np.array(["2020-01-01", "2021-06-01", "NaT"], "<M8[D]")
    yield {"id": "delta", "dtype": "<i8", "astype": "<i8"}, times
    yield {"id": "delta", "dtype": ">u4", "astype": "<u4"}, np.arange(5, dtype="<f4")
    for n in (1, 7, 8, 9, 17):
        yield {"id": "packbits"}, np.arange(n) % 3 == 0
    yield {"id": "packbits"}, np.ones((3, 5), bool)
    labels = ["red", "gr\u00fcn", "long label", "red2"]
    for t in ("<U6", ">U4"):
        a = np.array(["red", "gr\u00fcn", "", "blue", "long l", "red"], t)
        yield {"id": "categorize", "labels": labels, "dtype": t, "astype": "|u1"}, a
        yield {"id": "categorize", "labels": labels, "dtype": t, "astype": ">i4"}, a.reshape(2, 3)
    a = np.array(["red", "gr\u00fcn", "", "blue", "long label", "red"], object)
    yield {"id": "categorize", "labels": labels, "dtype": "|O", "astype": "<u2"}, a
    texts = np.array(["", "a", "gr\u00fcn \U0001f600", "x" * 300, "\"quoted\"\n", "\u0000"], object)
    blobs = np.array([b"", b"\0\xff", b"abc", b"y" * 5], object)
    for shape in ((6,), (2, 3), (1, 3, 2)):
        yield {"id": "vlen-utf8"}, texts.reshape(shape)
        yield {"id": "json2"}, texts.reshape(shape)
    yield {"id": "json2", "ensure_ascii": False, "separators": [", ", ": "]}, texts
    yield {"id": "vlen-bytes"}, blobs
    yield {"id": "vlen-bytes"}, blobs.reshape(2, 2)
    whole = np.empty(3, object)
    whole[:] = [np.array([1, 2, 3], ">i2"), np.array([], ">i2"), np.array([4], ">i2")]
    yield {"id": "vlen-array", "dtype": ">i2"}, whole
    for data in samples():
        for codec in ({"id": "crc32"}, {"id": "adler32"}):
            yield codec, data
        for size in (1, 2, 4, 7):
            yield {"id": "shuffle", "elementsize": size}, data[: len(data) // size * size]


def msgpack2():
    texts = np.array(["", "a", "gr\u00fcn \U0001f600", "x" * 31, "x" * 32, "y" * 300, "z" * 70000, "\u0000"], object)
    for shape in ((8,), (2, 4), (2, 1, 4)):
        yield {"id": "msgpack2", "raw": False, "use_single_float": False, "use_bin_type": True}, texts.reshape(shape)
    yield {"id": "msgpack2"}, np.array(["t"] * 20, object)


def append(name, made):
    file = pathlib.Path(__file__).parent / "cases.json"
    cases = [c for c in json.loads(file.read_text()) if c["codec"]["name"] != f"numcodecs.{name}"] + made
    text = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    file.write_text(f"[\n{text}\n]\n")


def append_msgpack2():
    made = []
    for config, a in msgpack2():
        codec = numcodecs.get_codec(dict(config))
        encoded = codec.encode(a)
        made.append(case(config, a, encoded, np.asarray(codec.decode(encoded)), True))
    append("msgpack2", made)


def pcodec_arrays():
    """Settings of pcodec, and arrays on which it uses them."""
    from pcodec import DeltaSpec, ModeSpec

    rng = np.random.default_rng(7)
    steps = rng.integers(0, 30, 300).cumsum()
    yield {}, steps.astype("<u2")
    yield {"delta_spec": DeltaSpec.no_op()}, rng.integers(-128, 128, 60, dtype="|i1")
    yield {"delta_spec": DeltaSpec.no_op()}, rng.integers(0, 256, 60, dtype="|u1")
    yield {"delta_spec": DeltaSpec.no_op()}, rng.integers(0, 1 << 64, 40, dtype="<u8")
    yield {"delta_spec": DeltaSpec.no_op()}, rng.integers(-1 << 63, 1 << 63, (4, 9), dtype="<i8")
    yield {"delta_spec": DeltaSpec.no_op()}, np.where(rng.random(300) < 0.9, 3, rng.integers(0, 1000, 300)).astype("<i4")
    yield {"delta_spec": DeltaSpec.no_op()}, np.full((3, 100), -7, "<i2")
    for order in (1, 2, 7):
        yield {"delta_spec": DeltaSpec.try_consecutive(order)}, (steps ** 2 // 7).astype("<i4")
    yield {"delta_spec": DeltaSpec.try_consecutive(3)}, np.array([5, -9], "<i2")
    yield {"delta_spec": DeltaSpec.try_lookback()}, np.tile(rng.integers(0, 1 << 16, 23, dtype="<u2"), 14)[:300]
    for dtype, size in (("|i1", 60), ("<i2", 300), ("<u4", 300)):
        wave = (100 * np.sin(np.arange(size) / 9)).astype(dtype.replace("u", "i")).astype(dtype)
        for order in (2, 6):
            yield {"delta_spec": DeltaSpec.try_conv1(order)}, wave
    yield {"mode_spec": ModeSpec.try_int_mult(1000)}, (rng.integers(-9, 9, 270) * 1000 + 17).astype("<i4")
    yield ({"mode_spec": ModeSpec.try_int_mult(77), "delta_spec": DeltaSpec.try_lookback()},
           (np.arange(270) % 40 * 77 + rng.integers(0, 3, 270)).astype("<u2"))
    special = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-7, -6e4]
    for dtype, most in (("<f2", 150), ("<f4", 280), ("<f8", 60)):
        tenths = (np.arange(most) / 10 - 3).astype(dtype)
        tenths[3:10] = special
        yield {"mode_spec": ModeSpec.try_float_mult(0.1)}, tenths
        yield {"mode_spec": ModeSpec.try_float_quant(5)}, tenths
        yield {"mode_spec": ModeSpec.classic(), "delta_spec": DeltaSpec.no_op()}, tenths
    yield {"mode_spec": ModeSpec.try_float_quant(29)}, rng.standard_normal(150).astype("<f4").astype("<f8")
    threes = rng.integers(-1 << 50, 1 << 50, 150) * 3.0
    threes[:3] = [3e17, -6e200, np.inf]
    yield {"mode_spec": ModeSpec.try_float_mult(3.0)}, threes
    yield {"mode_spec": ModeSpec.try_dict()}, rng.choice(rng.standard_normal(9), 280).astype("<f4")
    yield {"mode_spec": ModeSpec.try_dict()}, rng.choice(rng.integers(-99, 99, 9), 60).astype("<i8")
    yield {"mode_spec": ModeSpec.try_dict(), "delta_spec": DeltaSpec.try_consecutive(1)}, np.repeat([5, 7, 4], 30).astype("|u1")


def append_pcodec(folder):
    from pcodec import ChunkConfig, PagingSpec, standalone

    made = []
    for i, (settings, a) in enumerate(pcodec_arrays()):
        config = {"id": "pcodec", "level": i % 13, "equal_pages_up_to": 200 if i % 3 == 2 else 1 << 18}
        paging = PagingSpec.equal_pages_up_to(config["equal_pages_up_to"])
        encoded = standalone.simple_compress(a.reshape(-1), ChunkConfig(compression_level=config["level"],
                                                                        paging_spec=paging, enable_8_bit=True, **settings))
        made.append(case(config, a, encoded, standalone.simple_decompress(encoded).reshape(a.shape), False))
    for name in ("v0_0_0_delta_float_mult", "v0_1_0_delta_int_mult", "v0_4_0_lookback_delta", "v0_4_5_uniform_type",
                 "v0_4_8_minor_version", "v1_0_0_i8"):
        encoded = (folder / f"{name}.pco").read_bytes()
        a = standalone.simple_decompress(encoded)
        made.append(case({"id": "pcodec"}, a, encoded, a, False))
    append("pcodec", made)


def samples():
    rng = np.random.default_rng(5)
    yield np.frombuffer(b"", "|u1")
    yield np.array([7], "|u1")
    yield np.arange(50, dtype="<i2").view("|u1")[:99]
    yield rng.integers(0, 256, 41, dtype="|u1")
    yield np.zeros(501, "|u1")


def compressors():
    for level in (0, 1, 9):
        yield {"id": "zlib", "level": level}
        yield {"id": "gzip", "level": level}
    for level in (-5, 0, 1, 22):
        yield {"id": "zstd", "level": level}
    yield {"id": "lz4", "acceleration": 1}
    yield {"id": "lz4", "acceleration": 50}
    yield {"id": "bz2", "level": 1}
    yield {"id": "bz2", "level": 9}
    for check in (-1, 0, 1, 4, 10):
        yield {"id": "lzma", "format": 1, "check": check, "preset": None, "filters": None}
    yield {"id": "lzma", "format": 1, "check": -1, "preset": 1 | 1 << 31, "filters": None}
    yield {"id": "lzma", "format": 2, "check": -1, "preset": 0, "filters": None}
    yield {"id": "lzma", "format": 2, "check": 0, "preset": None, "filters": [{"id": LZMA1, "lc": 0, "lp": 2, "pb": 1}]}
    for chain in ([{"id": LZMA2, "preset": 1}],
                  [{"id": LZMA1, "dict_size": 65536, "mode": 1, "nice_len": 50, "mf": 3, "depth": 4}],
                  [{"id": 3, "dist": 4}, {"id": LZMA2, "preset": 1}],
                  [{"id": 3}, {"id": 4}, {"id": LZMA2, "dict_size": 4096, "lc": 2, "lp": 1, "mf": 20}],
                  [{"id": 9, "start_offset": 16}, {"id": LZMA2}]):
        yield {"id": "lzma", "format": 3, "check": -1, "preset": None, "filters": chain}
    yield {"id": "blosc", "cname": "zstd", "clevel": 5, "shuffle": -1, "blocksize": 0}


def v3(codec):
    native = ("gzip", "zstd", "vlen-utf8", "vlen-bytes")
    name = codec["id"] if codec["id"] in native else "numcodecs." + codec["id"]
    return {"name": name, "configuration": {k: v for k, v in codec.items() if k != "id"}}


def item_bytes(item):
    if isinstance(item, str):
        return item.encode()
    return bytes(item) if isinstance(item, bytes) else item.tobytes()


def content(a):
    """The elements: the hexadecimal bytes of all, or of each where they have no fixed size."""
    if isinstance(a, np.ndarray) and a.dtype == object:
        return [item_bytes(item).hex() for item in a.reshape(-1)]
    return np.ascontiguousarray(a).tobytes().hex() if isinstance(a, np.ndarray) else bytes(a).hex()


def dtype_of(a):
    if a.dtype != object:
        return a.dtype.str
    return "string" if isinstance(a.reshape(-1)[0], str) else "bytes"


def case(codec, a, encoded, decoded, exact):
    c = {"codec": v3(codec), "dtype": dtype_of(a), "shape": list(a.shape), "in": content(a), "encoded": content(encoded),
         "exact": exact}
    if content(decoded) != c["in"]:
        c["decoded"] = content(decoded)
    return c


def make():
    cases = []
    for config, a in filters():
        codec = numcodecs.get_codec(dict(config))
        encoded = codec.encode(a.copy())
        if isinstance(encoded, str):
            encoded = encoded.encode()
        decoded = np.asarray(codec.decode(encoded))
        cases.append(case(config, a, encoded, decoded, True))
    for config in compressors():
        codec = numcodecs.get_codec(dict(config))
        for data in samples():
            cases.append(case(config, data, codec.encode(data), data, False))
    for data in list(samples())[1:]:
        half = len(data) // 2
        parts = bytes(data[:half]), bytes(data[half:])

        def add(config, encoded):
            cases.append(case(config, data, encoded, data, False))

        add({"id": "gzip"}, b"".join(gzip.compress(p, mtime=0) for p in parts) + b"\0" * 8)
        add({"id": "zstd"}, b"".join(numcodecs.Zstd().encode(p) for p in parts if p))
        # From a pipe, so that the content's size is not known when the frame begins.
        pipe = subprocess.run(["zstd", "-q", "-c", "--no-check"], input=bytes(data), capture_output=True, check=True)
        add({"id": "zstd"}, pipe.stdout)
        add({"id": "bz2"}, b"".join(numcodecs.BZ2().encode(p) for p in parts))
        add({"id": "lzma"}, b"".join(numcodecs.LZMA().encode(p) for p in parts))
    text = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    (pathlib.Path(__file__).parent / "cases.json").write_text(f"[\n{text}\n]\n")


def check(folder):
    count = 0
    for frame in sorted(folder.glob("*.frame")):
        config = json.loads(frame.with_suffix(".json").read_text())
        config = {"id": config["name"].removeprefix("numcodecs."), **config.get("configuration", {})}
        if config["id"] == "zstd":
            config.pop("checksum", None)  # newer than 0.11
        raw = frame.with_suffix(".raw").read_bytes()
        decoded = bytes(numcodecs.get_codec(config).decode(frame.read_bytes()))
        assert decoded == raw, f"{frame.name} decodes to other bytes"
        count += 1
    print(count)


if __name__ == "__main__":
    if sys.argv[1:2] == ["check"]:
        check(pathlib.Path(sys.argv[2]))
    elif sys.argv[1:2] == ["msgpack2"]:
        append_msgpack2()
    elif sys.argv[1:2] == ["pcodec"]:
        append_pcodec(pathlib.Path(sys.argv[2]))
    else:
        make()
