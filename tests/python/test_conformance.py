"""What Tessera reads and writes of every format, checked by programs that are not ours, and the page that says so.

Each cell of the page is tried: an array is written by the program and read by every peer that knows the format; the
arrays that the original programs wrote (tests/golden) are read. The page tools/docs/conformance.md must say just what
was found; `test_conformance.py --update` writes it.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import peers

peers.require_zarr2()
PROGRAM = os.environ["TESSERA_PROGRAM"]
GOLDEN = pathlib.Path(os.environ["TESSERA_GOLDEN"])
PEERS = peers.SOURCE / "tests" / "peers"
PAGE = peers.SOURCE / "tools" / "docs" / "conformance.md"
FORMATS = ["zmeta", "v1", "v2", "v3"]
SHAPE, CHUNKS = (7, 5), "3,4"


def tessera(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120)


def samples(dtype):
    """Elements of every bit pattern that a dtype can have, its extremes first."""
    rng = np.random.default_rng(1)
    dtype = np.dtype(dtype)
    count = int(np.prod(SHAPE))
    if dtype.kind in "SU":
        words = ["", "a", "é☃" if dtype.kind == "U" else "xyz", "longest", " b "]
        return np.array([words[i % len(words)] for i in range(count)]).astype(dtype).reshape(SHAPE)
    if dtype.kind == "b":
        return rng.integers(0, 2, SHAPE).astype(bool)
    if dtype.str[1:] in ("f16", "c32"):
        return (np.arange(count) / 7).astype(dtype).reshape(SHAPE)
    array = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy().reshape(SHAPE)
    if dtype.kind in "fc":
        flat = array.reshape(-1)
        flat[:5] = [np.nan, np.inf, -np.inf, -0.0, 0.1]
    return array


STRUCTURE = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "S3")])
NESTED = np.dtype([("a", "<i4"), ("n", [("x", "<f4"), ("y", "<i2")]), ("m", "<f4", (2, 2))])
TEXT = np.array([["", "a", "é☃", "日本語", "x" * 40]] * 7, dtype=object)

# The rows: what it is called, elements, and what kind of file brings them to us.
DTYPES = [(str(np.dtype(d)), samples(d)) for d in
          ["?", "i1", "<i2", "<i4", "<i8", "u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"]]
DTYPES += [("int32, big-endian", samples(">i4")), ("float64, big-endian", samples(">f8")),
           ("long double (f16)", samples("<f16")), ("datetime64[ns]", samples("<M8[ns]")),
           ("timedelta64[10s]", samples("<m8[10s]")), ("fixed bytes (S5)", samples("S5")),
           ("fixed text (U4)", samples("<U4")), ("fixed text, big-endian", samples(">U4")),
           ("raw bytes (V6)", samples("V6")), ("structure", samples(STRUCTURE)),
           ("structure, nested, sub-arrays", samples(NESTED)), ("strings of variable length", TEXT),
           ("bytes of variable length", np.array([[t.encode() for t in row] for row in TEXT], dtype=object))]

GENERAL = samples("<i4")
SMOOTH = (np.arange(35) * 3 - 50).astype("<i4").reshape(SHAPE)
FRACTIONS = (np.arange(35) / 8 - 1).astype("<f8").reshape(SHAPE)
LABELS = np.array(["red", "green", "blue"])[np.arange(35) % 3].reshape(SHAPE)


def codec(name, **configuration):
    return json.dumps([{"name": name, "configuration": configuration}])


# For each codec of the table: the option, and elements that it keeps to the last bit.
CODECS = {
    "bytes": ("none", GENERAL), "transpose": ("zstd:1", GENERAL), "blosc": ("blosc:zstd:3:bitshuffle", GENERAL),
    "gzip": ("gzip:6", GENERAL), "zstd": ("zstd:3", GENERAL), "crc32c": ("zstd:3,crc32c", GENERAL),
    "vlen-utf8": ("zstd:1", TEXT), "vlen-bytes": ("zstd:1", DTYPES[-1][1]),
    "scale_offset": (codec("scale_offset", offset=1.0, scale=8.0), FRACTIONS), "sharding_indexed": ("zstd:1", GENERAL),
    "numcodecs.zlib": ("zlib:6", GENERAL), "numcodecs.lz4": ("lz4", GENERAL), "numcodecs.bz2": ("bz2:5", GENERAL),
    "numcodecs.lzma": ("lzma", GENERAL), "numcodecs.delta": ("delta,zstd:1", SMOOTH),
    "numcodecs.fixedscaleoffset": (codec("numcodecs.fixedscaleoffset", offset=-1, scale=8, dtype="<f8", astype="<i2"),
                                   FRACTIONS),
    "numcodecs.quantize": (codec("numcodecs.quantize", digits=4, dtype="<f8", astype="<f8"), FRACTIONS),
    "numcodecs.bitround": ("bitround:40,zstd:1", FRACTIONS), "numcodecs.packbits": ("packbits,zstd:1", samples("?")),
    "numcodecs.shuffle": ("shuffle,zlib:1", GENERAL),
    "numcodecs.astype": (codec("numcodecs.astype", encode_dtype="<f4", decode_dtype="<f8"), FRACTIONS),
    "numcodecs.categorize": (codec("numcodecs.categorize", labels=["red", "green", "blue"], dtype="<U5", astype="|u1"),
                             LABELS.astype("<U5")),
    "numcodecs.crc32": ("crc32", GENERAL), "numcodecs.adler32": ("adler32", GENERAL),
    "numcodecs.fletcher32": ("fletcher32", GENERAL), "numcodecs.jenkins_lookup3": ("jenkins_lookup3", GENERAL),
    "numcodecs.blosc": (codec("numcodecs.blosc", cname="lz4", clevel=5, shuffle=-1, blocksize=0), GENERAL),
    "numcodecs.zstd": (codec("numcodecs.zstd", level=1), GENERAL),
    "numcodecs.gzip": (codec("numcodecs.gzip", level=1), GENERAL),
    "numcodecs.crc32c": (codec("numcodecs.crc32c"), GENERAL),
    "numcodecs.vlen-array": (codec("numcodecs.vlen-array", dtype="<i4"), np.array(
        [[np.arange(n, dtype="<i4").tobytes() for n in range(5)]] * 7, dtype=object)),
    "numcodecs.json2": (codec("numcodecs.json2"), TEXT),
    "reshape": (codec("reshape", shape=[-1]), GENERAL), "cast_value": (codec("cast_value", data_type="float32"), FRACTIONS),
    "bitround": (codec("bitround", keepbits=40), FRACTIONS), "packbits": (codec("packbits"), samples("?")),
    "n5_default": (codec("n5_default", codecs=[{"name": "transpose", "configuration": {"order": [1, 0]}},
                                               {"name": "bytes", "configuration": {"endian": "big"}}]), GENERAL),
    "conditional": (codec("conditional", codecs=[{"name": "zstd", "configuration": {"level": 1}}]), GENERAL),
    "numcodecs.base64": ("base64", GENERAL), "numcodecs.json": (codec("numcodecs.json"), TEXT),
    "numcodecs.msgpack2": (codec("numcodecs.msgpack2"), TEXT),
    "zfp": (codec("zfp", mode="reversible"), GENERAL),
    "numcodecs.zfpy": (codec("numcodecs.zfpy", mode=4, tolerance=-1), GENERAL),
    "numcodecs.pcodec": (codec("numcodecs.pcodec"), GENERAL),
    "optional": (codec("optional", mask_codecs=["packbits"], data_codecs=["bytes"]), GENERAL),
    "zarrs.optional": (codec("zarrs.optional", mask_codecs=["packbits"], data_codecs=["bytes"]), GENERAL),
    "data_type": ("data_type:float8_e5m2,zstd:1", (FRACTIONS // 1).astype("<f4")),
}


# What programs read that are not among the peers: they were run elsewhere, on arrays that the program wrote.
ELSEWHERE = {("structure", "zmeta"): "(zarr-python 0.4.0)", ("structure", "v1"): "(zarr-python 1.1.0)",
             ("structure", "v3"): "(zarr-python 3.3.0)", ("data_type", "v3"): "(TensorStore 0.1.86)",
             ("numcodecs.zfpy", "v2"): "(zarr-python 3.4.2)", ("numcodecs.zfpy", "v3"): "(zarr-python 3.4.2)"}


class Bench:
    def __init__(self, folder):
        self.folder = folder
        self.readers = [peers.PythonZarr(), peers.Zarrita(), peers.Gdal()]
        self.wrong = []

    def save(self, name, array):
        path = self.folder / f"{name}.npy"
        np.save(path, array, allow_pickle=True)
        return path

    def fail(self, *words):
        self.wrong.append(" ".join(map(str, words)))

    def written(self, label, fmt, array, *options):
        """Writes an array by the program; the cell that says who read it again."""
        path = self.folder / "written"
        shutil.rmtree(path, ignore_errors=True)
        done = tessera("import", self.save("source", array), path, "--format", fmt, "--chunks", CHUNKS, "--quiet",
                       *options)
        if done.returncode != 0:
            if done.returncode != 2 or len(done.stderr.splitlines()) != 1:
                self.fail(label, fmt, "ended with", done.returncode, done.stderr)
            return "–"
        readers = []
        for peer in self.readers:
            if fmt not in peer.formats:
                continue
            try:
                got = peer.read(path)
            except peers.PeerError:
                continue
            if np.asarray(got).dtype.kind == "O" and array.dtype.kind == "O" and isinstance(array.flat[0], bytes):
                got = np.array([bytes(v) for v in np.asarray(got).flat], dtype=object).reshape(array.shape)
            if peer.name == "GDAL" and (array.dtype == "f2" or array.dtype.kind in "bi" and array.dtype.itemsize == 1):
                got = got.astype(array.dtype)  # Boolean and int8 are its Byte, float16 its Float32
            if peers.same(array, got):
                readers.append(peer.name)
            elif not self.knows_better(peer, label):
                self.fail(label, fmt, "reads otherwise with", peer.name, "\n", array, "\n", got)
        back = self.folder / "back.npy"
        done = tessera("export", path, back, "--overwrite", "--quiet", "--object-strings")
        if done.returncode != 0:
            self.fail(label, fmt, "does not come back:", done.stderr)
        elif not peers.same(array, np.load(back, allow_pickle=True)):
            self.fail(label, fmt, "comes back otherwise")
        return ELSEWHERE.get((label, fmt)) or ", ".join(readers) or "itself only"

    @staticmethod
    def knows_better(peer, label):
        """Where a peer is known to give something else than what is stored."""
        # zarrita reads S as text, V and structures as the bytes of what it takes them for, and of json2 only one
        # dimension.
        return ((peer.name == "zarrita" and any(word in label for word in ["bytes", "structure", "json2"])) or
                (peer.name == "GDAL" and "bytes" in label))  # S as text


def matrix(rows, cell):
    lines = ["| | " + " | ".join(FORMATS) + " |", "|---" * (len(FORMATS) + 1) + "|"]
    lines += [f"| {label} | " + " | ".join(cell(label, *row, fmt) for fmt in FORMATS) + " |" for label, *row in rows]
    return "\n".join(lines)


def golden_rows():
    """Which dtypes and codecs the original programs' own arrays cover, all of which the program reads here."""
    for number, fmt in enumerate(FORMATS):
        manifest = json.loads((GOLDEN / f"zarr{number}" / "manifest.json").read_text())
        for case in manifest["cases"]:
            if "expected" in case and not case.get("metadata_is_pickle"):
                yield fmt, case, case.get("writer", manifest.get("writer", "")).split(" (")[0].split(",")[0]


def read_golden(bench):
    """Reads every array of the original programs; (format, writer) → how many."""
    counts = {}
    for fmt, case, writer in golden_rows():
        folder = GOLDEN / f"zarr{FORMATS.index(fmt)}"
        back = bench.folder / "golden.npy"
        done = tessera("export", folder / case["path"], back, "--overwrite", "--quiet")
        if done.returncode != 0:
            bench.fail(fmt, case["name"], done.stderr)
            continue
        expected = np.load(folder / case["expected"])
        got = np.load(back)
        for box in case.get("compare_boxes") or [[[0] * got.ndim, list(got.shape)]]:
            where = tuple(slice(a, b) for a, b in zip(*box))
            if not equal_values(expected[where], got[where]):
                bench.fail(fmt, case["name"], "reads otherwise")
        counts[fmt, writer] = counts.get((fmt, writer), 0) + 1
    return counts


def equal_values(expected, got):
    """As `same`, with every NaN alike: the expected values are given so."""
    if expected.dtype.names:
        return all(equal_values(expected[n], got[n]) for n in expected.dtype.names)
    if expected.dtype.kind in "SU":
        return expected.tolist() == got.tolist()
    if expected.dtype.kind in "fc":
        return expected.shape == got.shape and np.array_equal(expected, got, equal_nan=True)
    return peers.same(expected, got)


def both_ways(bench):
    """What tests/peers/run --report found, as a table; it must be of the versions that are pinned now."""
    rows = {}
    for name, results in sorted(json.loads((PEERS / "results.json").read_text()).items(), reverse=True):
        pins = (PEERS / "environments" / f"{name}.txt").read_text().lower()
        pins += f"zarrita=={peers.Zarrita.version} " + "".join(
            f"zarrs=={version} " for version in re.findall('zarrs = "=(.*)"', (PEERS / "zarrs" / "Cargo.toml").read_text()))
        for peer, one in sorted(results.items()):
            package, version = peer.split()[0].strip(",").lower(), one["version"].split(",")[0]
            if f"{'zarr' if package == 'zarr-python' else package}=={version} " not in pins:
                bench.fail(f"{peer} {version} is in results.json and not pinned: tests/peers/run --report {name}")
            cells = [f"{one[way]}" + (f"; not: {', '.join(one[f'refused, {way}'])}" if one[f"refused, {way}"] else "")
                     for way in ("reads", "writes")]
            rows.setdefault(f"{peer} {one['version']}", f"| {name} | {' | '.join(cells)} |")
    return "\n".join(f"| {peer} {row}" for peer, row in sorted(rows.items()))


def page(bench):
    about = json.loads(tessera("formats", "--json").stdout)
    table = [row["name"] for row in about["codecs"]]
    missing = set(table) ^ set(CODECS)
    if missing:
        bench.fail("codecs that this test or the table lacks:", *sorted(missing))
    if [row["name"] for row in about["formats"]] != FORMATS:
        bench.fail("formats that this test or the table lacks")

    def dtype_cell(label, array, fmt):
        return bench.written(label, fmt, array)

    def codec_cell(label, option, array, fmt):
        extra = {"transpose": ["--order", "F"], "sharding_indexed": ["--shard", "6,8"]}.get(label, [])
        return bench.written(label, fmt, array, "--codec", option, *extra)

    dtypes = matrix(DTYPES, dtype_cell)
    codecs = matrix([(name, *CODECS[name]) for name in table if name in CODECS], codec_cell)
    counts = read_golden(bench)
    read = "\n".join(f"| {fmt} | {writer} | {n} |" for (fmt, writer), n in counts.items())
    return f"""# Conformance

What Tessera writes and who read it again, and what it reads of others. This page is written by
`tests/python/test_conformance.py --update` from the program's own tables (`tessera formats`), and the same test, run by
`tools/test`, fails when a cell is no longer true. “–” means that the format cannot express it, or that Tessera only
reads the codec (pcodec, optional): the program says so and writes nothing. “itself only” means that no peer here knows
it; a version in brackets is one that is not installed here, and read it when it was tried. Every cell was read again
by Tessera as well.
The peers: {", ".join(f"{peer.name} {peer.version}" for peer in bench.readers)}; no living program writes or reads
zmeta and v1.

## Element types written, by format (default codec)

{dtypes}

## Codecs written, by format

{codecs}

## Read: arrays written by the original programs, all equal

| format | writer | arrays |
|---|---|---|
{read}

## Both ways: random arrays beside the newest programs

Arrays of random shape, type, codecs, chunks, shards, order, fill and names, made empty and then written in boxes, some with
consolidated metadata. `tests/peers/run --report` runs [two_way.py](../../tests/peers/two_way.py) in each of the
environments of [tests/peers](../../tests/peers/environments) and keeps the results, from which this table is made. The
numbers are arrays that the peer read equal, and that Tessera read equal. After “not:” stand the features for which an array
was left out because the peer refuses it, misreads even its own or cannot describe it. No other array was read differently.
“(store)” means zarr-python over that store: written with Tessera's codec pipeline and read with zarr's own, and the other
way. kerchunk and VirtualiZarr read what `tessera refs` writes, and their references to an HDF5 file are read by Tessera.

| peer | environment | reads | writes |
|---|---|---|---|
{both_ways(bench)}
"""


def main():
    peers.require("zarrita", "GDAL")
    with tempfile.TemporaryDirectory(prefix="tessera-test-") as folder:
        bench = Bench(pathlib.Path(folder))
        text = page(bench)
        bench.readers[1].close()
    for wrong in bench.wrong:
        print("WRONG:", wrong)
    if "--update" in sys.argv:
        PAGE.write_text(text)
    elif PAGE.read_text() != text:
        print(f"{PAGE.name} is out of date; {sys.argv[0]} --update writes it:")
        subprocess.run(["diff", "-", str(PAGE)], input=text, text=True)
        sys.exit(1)
    sys.exit(bool(bench.wrong))


main()
