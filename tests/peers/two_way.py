#!/usr/bin/env python3
"""Random arrays that Tessera writes and each peer of an environment reads, and the other way.

    two_way.py [--seed N] [--count N] [--peer NAME] [--only N] [--results FILE]

The same seed draws the same arrays. Each array is made empty and then written in boxes; NumPy has the same boxes written to
it. A peer may refuse an array only for a feature that it `lacks`; anything else that it refuses or reads differently is
WRONG. `--count` arrays are wanted that pass, each way for each peer. tests/peers/run starts this with the module that
belongs to the Python, and writes tools/docs/conformance.md from the results.
"""
import argparse
import collections
import importlib
import importlib.metadata
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings

import numpy as np
import tessera

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

NUMBERS = ["b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
NAMES = {"b1": "bool", "i1": "int8", "u1": "uint8", "i2": "int16", "u2": "uint16", "i4": "int32", "u4": "uint32", "i8": "int64",
         "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128",
         "text": "string", "V3": "r24", "bytes": "variable_length_bytes"}
STRUCTURE = [("a", "<i4"), ("b", "<f8"), ("c", "S3")]
OTHERS = ["M8[s]", "m8[10ms]", "S5", "U4", "V3", "structure", "text", "bytes"]
OBJECTS = ("text", "bytes")


class Refused(Exception):
    """The peer is not asked: it has no such thing, or there is no way to say it."""


def same(expected, got):
    import peers
    return peers.same(expected, got)


class Case:
    """One array: its configuration, the boxes that are written, and what it then holds (`values`)."""

    def __init__(self, seed, number, formats):
        self.rng = np.random.default_rng([seed, number])
        self.number = number
        self.format = self.one(formats)
        self.kind = self.one(NUMBERS * 2 + OTHERS)
        self.big = self.kind not in OBJECTS and self.kind != "structure" and self.chance(0.3)
        rank = int(self.one([0, 1, 1, 2, 2, 2, 3, 3, 4]))
        self.shape = tuple(int(n) for n in self.rng.integers(1, [1, 40, 20, 9, 6][rank] + 1, rank))
        if rank and self.chance(0.05):
            self.shape = (0, *self.shape[1:])
        self.chunks = tuple(int(self.rng.integers(1, max(n, 1) + 1 + 2 * self.chance(0.2))) for n in self.shape)
        self.shards = None
        if self.format == "v3" and rank and self.chance(0.4):
            self.shards = tuple(n * int(self.rng.integers(1, 4)) for n in self.chunks)
        self.index_start = self.chance(0.2)
        self.order = None
        if rank > 1 and self.chance(0.3):
            self.order = tuple(range(rank))[::-1] if self.format == "v2" else tuple(map(int, self.rng.permutation(rank)))
        self.filters, self.codecs = self.draw_v2() if self.format == "v2" else ([], self.draw_v3())
        self.fill = self.draw_fill()
        self.dims = tuple("tzyx"[4 - rank:]) if rank and self.chance(0.5) else None
        self.edges = self.draw_edges(np.random.default_rng([seed, number, 39]))
        self.separator = self.one("./")
        self.consolidated = self.chance(0.3)
        self.draw_steps()

    def one(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, p):
        return bool(self.rng.random() < p)

    @property
    def dtype(self):
        if self.kind in OBJECTS:
            return np.dtype(object)
        if self.kind == "structure":
            return np.dtype(STRUCTURE)
        return np.dtype(("|" if self.kind[0] in "SVb" or self.kind in ("i1", "u1") else ">" if self.big else "<") + self.kind)

    def draw_edges(self, rng):
        """The lengths of chunks, or of shards, where they differ; None: they have one shape."""
        if self.format != "v3" or not self.shape or 0 in self.shape or rng.random() > 0.3:
            return None
        units = self.chunks if self.shards else (1,) * len(self.shape)
        if any(n % unit for n, unit in zip(self.shape, units)):
            return None  # zarr-python makes no last shard that the edge cuts
        edges = []
        for n, unit in zip(self.shape, units):
            cuts = sorted({int(cut) * unit for cut in rng.integers(1, n // unit + 1, 3)} | {n})
            edges.append([end - begin for begin, end in zip([0, *cuts], cuts)])
        return edges

    def draw_v3(self):
        level, size = int(self.rng.integers(1, 6)), 1 if self.kind in OBJECTS else self.dtype.itemsize
        blosc = {"cname": self.one(["lz4", "lz4hc", "zstd", "zlib", "blosclz"]), "clevel": level,
                 "shuffle": self.one(["noshuffle", "shuffle", "bitshuffle"]), "typesize": size, "blocksize": 0}
        chains = [[], [("blosc", blosc)], [("gzip", {"level": level})], [("zstd", {"level": level, "checksum": self.chance(0.5)})]]
        chain = self.one([*chains, *chains, [("numcodecs.zlib", {"level": level})], [("numcodecs.bz2", {"level": level})]])
        return chain + ([("crc32c", {})] if self.chance(0.2) else [])

    def draw_v2(self):
        level, filters = int(self.rng.integers(1, 6)), []
        if self.kind in OBJECTS:
            filters = [{"id": "vlen-utf8" if self.kind == "text" else "vlen-bytes"}]
        elif self.kind[0] in "iu" and self.chance(0.3):
            filters = [{"id": "delta", "dtype": self.dtype.str, "astype": self.dtype.str}]
        elif self.kind == "b1" and self.chance(0.3):
            filters = [{"id": "packbits"}]
        elif self.chance(0.15):
            filters = [{"id": "shuffle", "elementsize": self.dtype.itemsize}]
        blosc = {"id": "blosc", "cname": self.one(["lz4", "lz4hc", "zstd", "zlib", "blosclz"]), "clevel": level,
                 "shuffle": self.one([0, 1, 2]), "blocksize": 0}
        return filters, [self.one([None, blosc, blosc, {"id": "zlib", "level": level}, {"id": "zstd", "level": level},
                                   {"id": "gzip", "level": level}, {"id": "bz2", "level": level}, {"id": "lz4", "acceleration": 1},
                                   {"id": "lzma", "format": 1, "check": -1, "preset": 1, "filters": None}])]

    def draw_fill(self):
        """A fill value, an element; None: whatever is the format's null."""
        zero = {"text": "", "bytes": b""}.get(self.kind, np.zeros((), self.dtype)[()])
        if self.chance(0.5):
            return zero
        if self.kind == "text":
            return self.one(["gefüllt", ""])
        kind = self.dtype.kind
        choices = {"b": [True], "i": [-3, 100], "u": [200], "f": [-1.5, np.nan, -np.inf, 0.1], "c": [1.5 - 2j],
                   "M": [1234567, np.iinfo("i8").min], "m": [-12], "S": [b"ab"], "U": ["é"]}.get(kind)
        if choices is None:
            return zero
        value = self.one(choices)
        return np.array(value, "i8").astype(self.dtype)[()] if kind in "mM" else np.array(value, self.dtype)[()]

    def elements(self, shape):
        count = int(np.prod(shape))
        if self.kind in OBJECTS or self.kind[0] in "SU":
            words = np.array(["", "a", "xyz", "five" if self.kind[0] in "Sb" else "fünf", "x" * 5], dtype=object)
            flat = words[self.rng.integers(0, len(words), count)]
            if self.kind == "bytes":
                flat = np.array([w.encode() + b"\0" * (len(w) % 2) for w in flat] + [None], dtype=object)[:-1]
            return flat.reshape(shape).astype(self.dtype)
        if self.kind == "b1":
            return self.rng.integers(0, 2, shape).astype(bool)
        if self.kind == "structure":
            array = np.zeros(count, self.dtype)
            array["a"], array["b"] = self.rng.integers(-9, 9, count), self.rng.normal(size=count)
            array["c"] = np.array([b"", b"x", b"yz"])[self.rng.integers(0, 3, count)]
            return array.reshape(shape)
        array = np.frombuffer(self.rng.bytes(count * self.dtype.itemsize), self.dtype).copy()
        if self.chance(0.5):
            array[self.rng.random(count) < 0.7] = np.zeros((), self.dtype)
        if self.dtype.kind in "fc":  # signalling NaNs do not survive every processor and language
            array = np.array(self.rng.normal(size=count) * 100, self.dtype)
            # zarr-python takes a complex -0 for 0, and leaves chunks out that hold nothing else.
            array[:4] = [np.nan, np.inf, -0.0 if self.dtype.kind == "f" else 0, 0.1][:count]
        return array.reshape(shape)

    def draw_steps(self):
        self.values = np.empty(self.shape, self.dtype)
        self.values[...] = self.fill
        self.steps = []
        whole = tuple(slice(0, n) for n in self.shape)
        for n in range(int(self.rng.integers(1, 5))):
            where = whole
            if n or self.chance(0.4):
                low = [int(self.rng.integers(0, n + 1)) for n in self.shape]
                where = tuple(slice(a, int(self.rng.integers(a, n + 1))) for a, n in zip(low, self.shape))
            part = self.elements(self.values[where].shape if self.shape else ())
            if part.size:
                self.steps.append((where, part))
                self.values[where] = part if self.shape else part[()]

    def lengths(self):
        """The options chunks and shards."""
        if not self.edges:
            return self.chunks, self.shards
        return (self.chunks, self.edges) if self.shards else (self.edges, None)

    # ---- descriptions

    def features(self):
        """What a peer may lack, by name."""
        found = {self.format, self.kind, f"{self.format} {self.kind}", "rank 0" if not self.shape else "",
                 "empty" if 0 in self.shape else "", "shards" if self.shards else "",
                 "shards with their index first" if self.shards and self.index_start else "",
                 f"{self.format} order" if self.order else "", "big-endian" if self.big and self.dtype.itemsize > 1 else ""}
        found |= {name for name, _ in self.codecs} if self.format == "v3" else {c["id"] for c in [*self.filters, *self.codecs] if c}
        if not self.shape and self.kind in OBJECTS:
            found.add(f"{self.kind} of rank 0")
        if self.order and self.kind in OBJECTS:
            found.add("transposed text")
        if self.shards and self.kind in OBJECTS + ("V3",):
            found.add(f"{self.kind} in shards")
        if self.filters and self.big:
            found.add("filters over big-endian")
        if self.dims:
            found.add("names")
        if self.edges:
            found.add("chunks that differ in length")
        return found - {""}

    def chain(self):
        """The codecs of an inner chunk, or of a chunk, as documents of Zarr v3."""
        chain = [("transpose", {"order": list(self.order)})] if self.order else []
        if self.kind in OBJECTS:
            chain.append(("vlen-utf8" if self.kind == "text" else "vlen-bytes", {}))
        else:
            chain.append(("bytes", {"endian": "big" if self.big else "little"} if self.dtype.itemsize > 1 else {}))
        return [{"name": name, "configuration": c} if c else {"name": name} for name, c in chain + self.codecs]

    def json_fill(self):
        if self.kind == "bytes":
            return ""
        value = self.fill.tolist() if isinstance(self.fill, np.generic) else self.fill

        def number(v):
            return v if not isinstance(v, float) or np.isfinite(v) else "NaN" if v != v else "Infinity" if v > 0 else "-Infinity"

        if isinstance(value, complex):
            return [number(value.real), number(value.imag)]
        if self.kind == "V3":
            return [0, 0, 0]
        return number(value)

    def document(self):
        """zarr.json or .zarray."""
        if self.kind not in NAMES or self.format == "v2" and self.kind not in NUMBERS:
            raise Refused("it is described by a class of zarr-python")
        if self.format == "v2":
            return {"zarr_format": 2, "shape": self.shape, "chunks": self.chunks, "dtype": self.dtype.str, "fill_value":
                    self.json_fill(), "order": "F" if self.order else "C", "filters": self.filters or None,
                    "compressor": self.codecs[0], "dimension_separator": self.separator}
        codecs, index = self.chain(), [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
        if self.shards:
            codecs = [{"name": "sharding_indexed", "configuration": {
                "chunk_shape": self.chunks, "codecs": codecs, "index_codecs": index,
                "index_location": "start" if self.index_start else "end"}}]
        found = {"zarr_format": 3, "node_type": "array", "shape": self.shape, "data_type": NAMES[self.kind],
                 "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.shards or self.chunks}}
                 if not self.edges else
                 {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": self.edges}},
                 "chunk_key_encoding": {"name": "default", "configuration": {"separator": self.separator}},
                 "fill_value": self.json_fill(), "codecs": codecs, "attributes": {"case": self.number}}
        return {**found, "dimension_names": self.dims} if self.dims else found


# ---- Tessera

def write_ours(root, case):
    group = tessera.create_group(root, format=case.format)
    if case.format == "v2":
        codecs = [{"name": f"numcodecs.{c['id']}" if not c["id"].startswith("vlen") else c["id"],
                    "configuration": {k: v for k, v in c.items() if k != "id"}} for c in [*case.filters, *case.codecs] if c]
        more = {"order": "F" if case.order else "C"}
    else:
        codecs, more = case.chain(), {}
        if case.kind in OBJECTS:
            codecs = [c for c in codecs if not c["name"].startswith("vlen")]
    dtype = {"text": str, "bytes": bytes}.get(case.kind, case.dtype)
    chunks, shards = case.lengths()
    array = tessera.create(pathlib.Path(root) / "a", case.shape, dtype, chunks or None, shards=shards,
                           codec=json.dumps(codecs) if codecs else "none", format=case.format, separator=case.separator,
                           fill_value=case.fill, dims=case.dims, durability="none", attrs={"case": case.number}, **more)
    for where, part in case.steps:
        array[where] = part
    if case.consolidated:
        group.consolidate()
    return group


# ---- peers

class Peer:
    formats = ("v2", "v3")
    lacks = frozenset()
    differ = False  # whether it knows chunks that differ in length
    writes = True

    def skips(self, case):
        return False


class Zarr3(Peer):
    """zarr-python 3 with its own codec pipeline."""

    def __init__(self):
        self.zarr = importlib.import_module("zarr")
        if self.zarr.__version__.startswith("2."):
            raise ImportError("zarr-python 3")
        self.name, self.version = "zarr-python", self.zarr.__version__
        old = self.version.startswith("3.1")
        self.differ = not old
        if self.differ:
            self.zarr.config.set({"array.rectilinear_chunks": True})
        # 3.1 scrambles text that is transposed, and has no structures named `struct`.
        self.lacks = {"V3 in shards", "v3 structure", "transposed text"} if old else {"transposed text"}

    def read(self, root, case):
        group = self.zarr.open_group(root, mode="r", use_consolidated=case.consolidated or None)
        return group["a"][...]

    def write(self, root, case):
        self.fill(self.zarr.open_group(root, mode="w", zarr_format=int(case.format[1])), case)
        if case.consolidated:
            self.zarr.consolidate_metadata(root)

    def fill(self, group, case):
        dtype = {"text": str, "bytes": self.zarr.dtype.VariableLengthBytes()}.get(case.kind, case.dtype)
        if "bytes of rank 0" in case.features():
            raise Refused("bytes of rank 0")  # 3.4 raises, and a single bytes loses its zeros
        chunks, shards = case.lengths()
        options = {"shape": case.shape, "chunks": chunks, "dtype": dtype, "fill_value": case.fill,
                   "attributes": {"case": case.number}}
        if case.format == "v2":
            import numcodecs
            filters = [numcodecs.get_codec(c) for c in case.filters if not c["id"].startswith("vlen")]
            options |= {"filters": filters or None if case.kind not in OBJECTS else "auto", "order": "F" if case.order else "C",
                        "compressors": numcodecs.get_codec(case.codecs[0]) if case.codecs[0] else None,
                        "chunk_key_encoding": {"name": "v2", "separator": case.separator}}
        else:
            chain = case.chain()
            separator = "/" if "icechunk" in self.name else case.separator  # which has no other
            options |= {"filters": [c for c in chain if c["name"] == "transpose"], "shards": shards,
                        "serializer": next(c for c in chain if c["name"] in ("bytes", "vlen-utf8", "vlen-bytes")),
                        "compressors": chain[len(chain) - len(case.codecs):] or None, "dimension_names": case.dims,
                        "chunk_key_encoding": {"name": "default", "separator": separator}}
        array = group.create_array("a", **options)
        for where, part in case.steps:
            array[where if case.shape else ...] = part


class Zarr2(Peer):
    formats = ("v2",)

    def __init__(self):
        self.zarr = importlib.import_module("zarr")
        if not self.zarr.__version__.startswith("2."):
            raise ImportError("zarr-python 3")
        self.name, self.version = "zarr-python", self.zarr.__version__

    def read(self, root, case):
        opened = self.zarr.open_consolidated if case.consolidated else self.zarr.open
        got = np.asarray(opened(root, mode="r")["a"][...])
        if case.kind == "bytes":  # of which it has the fill as text
            got = np.array([v or b"" for v in got.flat] + [None], dtype=object)[:-1].reshape(got.shape)
        return got

    def write(self, root, case):
        import numcodecs
        group = self.zarr.open_group(root, mode="w")
        filters = [numcodecs.get_codec(c) for c in case.filters if not c["id"].startswith("vlen")]
        objects = {"text": {"object_codec": numcodecs.VLenUTF8()}, "bytes": {"object_codec": numcodecs.VLenBytes()}}
        array = group.create_dataset("a", shape=case.shape, chunks=case.chunks or True, dtype=case.dtype,
                                     fill_value=None if case.kind in ("structure", "V3", "bytes") else case.fill,
                                     filters=filters or None, order="F" if case.order else "C",
                                     compressor=numcodecs.get_codec(case.codecs[0]) if case.codecs[0] else None,
                                     dimension_separator=case.separator, **objects.get(case.kind, {}))
        if case.kind in ("structure", "V3", "bytes"):
            array[...] = np.broadcast_to(np.array(case.fill, case.dtype), case.shape) if case.shape else case.fill
        for where, part in case.steps:
            array[where] = part if case.shape else part[()]
        if case.consolidated:
            self.zarr.consolidate_metadata(root)


class Stored(Zarr3):
    """zarr-python 3 with Tessera's pipeline over another kind of store on one side, and with its own on the other."""

    def __init__(self, name, module, make, formats=("v2", "v3")):
        super().__init__()
        self.formats = formats
        self.make, (self.name, self.version) = make, (f"{name} (store)", importlib.import_module(module).__version__)

    def through(self, root, ours, work):
        with self.zarr.config.set({"codec_pipeline.path": "tessera.zarr.CodecPipeline" if ours else
                                   "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
            return self.make(root, work)

    def read(self, root, case):
        """`root` holds what the module wrote; written to the store by Tessera's pipeline, read by zarr's."""
        self.through(root, True, lambda store: self.fill(self.zarr.group(store, zarr_format=int(case.format[1])), case))
        return self.through(root, False, lambda store: self.zarr.open_group(store, mode="r")["a"][...])

    def write(self, root, case):
        """Written by zarr's own pipeline, read by Tessera's; and left where Tessera reads it."""
        self.through(root, False, lambda store: self.fill(self.zarr.group(store, zarr_format=int(case.format[1])), case))
        case.got = self.through(root, True, lambda store: self.zarr.open_group(store, mode="r")["a"][...])


def in_obstore(root, work):
    from obstore.store import LocalStore
    from zarr.storage import ObjectStore
    return work(ObjectStore(LocalStore(f"{root}.obstore", mkdir=True)))


def in_fsspec(root, work):
    from zarr.storage import FsspecStore
    return work(FsspecStore.from_url(f"memory://{root}.fsspec"))


def in_icechunk(root, work):
    os.environ["ICECHUNK_LOG"] = "error"
    import icechunk
    place = icechunk.local_filesystem_storage(f"{root}.icechunk")
    if not os.path.exists(f"{root}.icechunk"):
        session = icechunk.Repository.create(place).writable_session("main")
        done = work(session.store)
        session.commit("written")
        return done
    return work(icechunk.Repository.open(place).readonly_session("main").store)


class TensorStore(Peer):
    lacks = {*OTHERS, "numcodecs.zlib", "numcodecs.bz2", "delta", "packbits", "shuffle", "lzma", "lz4", "filters"}

    def __init__(self):
        self.ts = importlib.import_module("tensorstore")
        self.name, self.version = "TensorStore", importlib.metadata.version("tensorstore")

    def spec(self, root, case):
        return {"driver": "zarr3" if case.format == "v3" else "zarr", "kvstore": {"driver": "file", "path": f"{root}/a"},
                "context": {"file_io_sync": False}}

    def read(self, root, case):
        if case.kind == "V3":
            raise Refused("V3")  # it gives elements of no bytes
        return self.ts.open(self.spec(root, case), open=True).result().read().result()

    def write(self, root, case):
        array = self.ts.open({**self.spec(root, case), "metadata": case.document()}, create=True).result()
        for where, part in case.steps:
            array[where].write(part).result()


class Zarrs(Peer):
    """zarrs in Rust: tests/peers/zarrs."""
    # Raw bits are "r24" to it, and "raw_bytes" to zarr-python.
    lacks = {"U4", "S5", "V3", "structure", "transposed text", "v2 M8[s]", "v2 m8[10ms]", "lzma", "delta", "packbits", "shuffle", "lz4", "numcodecs.bz2", "numcodecs.zlib", "bz2", "zlib"}

    def __init__(self):
        program = os.environ.get("TESSERA_PEER_ZARRS")
        if not program:
            raise ImportError("no program of zarrs")
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.name, self.version = "zarrs", self.ask(do="version")["version"]

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def read(self, root, case):
        answer = self.ask(do="read", path=f"{root}/a", start=[0] * len(case.shape), shape=case.shape, data=f"{root}.bin")
        data = pathlib.Path(f"{root}.bin").read_bytes()
        if "offsets" in answer:
            texts = [data[a:b] for a, b in itertools.pairwise(answer["offsets"])]
            texts = [t.decode() for t in texts] if case.kind == "text" else texts
            return np.array([*texts, None], dtype=object)[:-1].reshape(case.shape)
        return np.frombuffer(data, case.dtype.newbyteorder("=")).reshape(case.shape)

    def write(self, root, case):
        if "transposed text" in case.features():
            raise Refused("transposed text")  # it scrambles it
        self.ask(do="create", path=f"{root}/a", metadata=case.document())
        for where, part in case.steps:
            more, data = {}, part.astype(case.dtype.newbyteorder("=")).tobytes()
            if case.kind in OBJECTS:
                texts = [t.encode() if case.kind == "text" else t for t in part.flat]
                more, data = {"offsets": [0, *itertools.accumulate(map(len, texts))]}, b"".join(texts)
            pathlib.Path(f"{root}.bin").write_bytes(data)
            self.ask(do="write", path=f"{root}/a", start=[w.start for w in where], shape=part.shape, data=f"{root}.bin", **more)


class Zarrita(Peer):
    """zarrita under Node, whole arrays only."""
    lacks = {*OTHERS, "rank 0", "empty", "f2", "c8", "c16", "numcodecs.bz2", "bz2", "lzma", "packbits"}
    writing = {"v2", "b1", "i8", "u8", "shards", "gzip", "crc32c", "numcodecs.zlib"}

    def __init__(self):
        import peers
        if not peers.installed("zarrita"):
            raise ImportError("zarrita is not installed")
        self.bridge = peers.Zarrita()
        self.name, self.version = "zarrita", self.bridge.version

    def read(self, root, case):
        if "transposed text" in case.features():
            raise Refused("transposed text")
        if case.kind == "S5" and case.fill:
            raise Refused("S5 fills")  # it shows them in base64
        got = self.bridge.read(f"{root}/a")
        return np.array([v.encode() for v in got.flat], case.dtype).reshape(case.shape) if case.kind == "S5" else got

    def write(self, root, case):
        if case.features() & self.writing:
            raise Refused("it does not write these")
        case.document()
        fill = case.json_fill()
        self.bridge.write(f"{root}/a", case.values, case.chunks, case.chain(), fill, case.separator)


class Numcodecs(Peer):
    """Chunks of Zarr v2, encoded and decoded by numcodecs itself."""
    formats = ("v2",)
    lacks = {"V3", "structure", "empty"}

    def __init__(self):
        self.numcodecs = importlib.import_module("numcodecs")
        self.name, self.version = "numcodecs", self.numcodecs.__version__

    def chunks(self, case):
        for index in np.ndindex(*[-(-n // c) for n, c in zip(case.shape, case.chunks)]):
            yield case.separator.join(map(str, index)) or "0", tuple(
                slice(i * c, min((i + 1) * c, n)) for i, c, n in zip(index, case.chunks, case.shape))

    def read(self, root, case):
        folder = pathlib.Path(root) / "a"
        document = json.loads((folder / ".zarray").read_text())
        codecs = [self.numcodecs.get_codec(c) for c in [*(document["filters"] or []), document["compressor"]] if c]
        values = np.empty(case.shape, case.dtype)
        values[...] = case.fill
        for key, where in self.chunks(case):
            if (folder / key).exists():
                data = (folder / key).read_bytes()
                for codec in reversed(codecs):
                    data = codec.decode(data)
                whole = data if case.kind in OBJECTS else np.frombuffer(data, case.dtype)
                whole = whole.reshape(case.chunks, order=document["order"])
                values[where] = whole[tuple(slice(0, w.stop - w.start) for w in where)]
        return values

    def write(self, root, case):
        folder = pathlib.Path(root) / "a"
        folder.mkdir(parents=True)
        fill = case.fill if case.kind == "text" else None if case.kind in ("bytes", "S5", "U4", "V3", "M8[s]", "m8[10ms]") else case.json_fill()
        (folder / ".zarray").write_text(json.dumps({
            "zarr_format": 2, "shape": case.shape, "chunks": case.chunks, "dtype": case.dtype.str, "fill_value": fill,
            "order": "F" if case.order else "C", "filters": case.filters or None, "compressor": case.codecs[0],
            "dimension_separator": case.separator}))
        for key, where in self.chunks(case):
            whole = np.empty(case.chunks, case.dtype)
            whole[...] = case.fill
            whole[tuple(slice(0, w.stop - w.start) for w in where)] = case.values[where]
            data = np.ascontiguousarray(whole.ravel("F" if case.order else "C"))
            data = data.view("i8") if case.dtype.kind in "mM" else data
            for codec in [self.numcodecs.get_codec(c) for c in [*case.filters, *case.codecs] if c]:
                data = codec.encode(data)
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).write_bytes(bytes(np.ascontiguousarray(data).data) if isinstance(data, np.ndarray) else bytes(data))


class XArray(Peer):
    """xarray with dask, over zarr-python 3: named arrays."""
    formats = ("v3",)
    lacks = {"bytes", "structure", "V3", "transposed text"}

    def __init__(self):
        self.xarray = importlib.import_module("xarray")
        self.dask = importlib.import_module("dask")
        self.zarr = Zarr3()
        self.name, self.version = "xarray, dask", f"{self.xarray.__version__}, {self.dask.__version__}"

    def skips(self, case):
        return not case.dims or case.kind[0] in "mM" or case.kind == "U4" or 0 in case.shape

    def read(self, root, case):
        found = self.xarray.open_zarr(root, consolidated=case.consolidated, chunks={}, mask_and_scale=False, decode_times=False)
        assert found["a"].dims == case.dims and found["a"].chunks is not None
        return found["a"].values

    def write(self, root, case):
        if case.kind == "bytes":
            raise Refused("bytes")  # it makes them bytes of one length
        if "transposed text" in case.features():
            raise Refused("transposed text")  # zarr-python 3.1 scrambles it
        import dask.array
        chain = case.chain()
        coding = {"chunks": case.chunks, "shards": case.shards, "filters": [c for c in chain if c["name"] == "transpose"],
                  "compressors": chain[len(chain) - len(case.codecs):] if case.codecs else None}
        values = case.values if case.kind == "text" else dask.array.from_array(case.values, chunks=case.shards or case.chunks)
        data = self.xarray.Dataset({"a": (case.dims, values)})
        data.to_zarr(root, encoding={"a": coding}, zarr_format=3, consolidated=case.consolidated)


class References(Peer):
    """`tessera refs` read through kerchunk's format, and references that the peer makes of an HDF5 file read by Tessera."""
    formats = ("v2",)
    lacks = {*OTHERS, "rank 0", "empty", "c8", "c16", "b1", "f2", "delta", "packbits", "v2 order", "shuffle"}

    def skips(self, case):
        return bool(case.features() & References.lacks) or not case.dims

    def hdf5(self, root, case):
        import h5py
        with h5py.File(f"{root}.h5", "w") as file:
            chunks = tuple(min(c, n) for c, n in zip(case.chunks, case.shape))
            file.create_dataset("a", data=case.values, chunks=chunks, fillvalue=case.fill,
                                **({"compression": "gzip", "shuffle": case.chance(0.5)} if case.chance(0.7) else {}))
        return f"{root}.h5"


class Kerchunk(References):
    def __init__(self):
        self.hdf = importlib.import_module("kerchunk.hdf")
        self.name, self.version = "kerchunk", importlib.metadata.version("kerchunk")

    def read(self, root, case):
        import fsspec
        import fsspec.implementations.reference
        import zarr
        tessera.refs(root, f"{root}.json")
        file_system = fsspec.filesystem("reference", fo=f"{root}.json", asynchronous=True)
        return zarr.open_group(zarr.storage.FsspecStore(file_system, read_only=True), mode="r")["a"][...]

    def write(self, root, case):
        pathlib.Path(f"{root}.json").write_text(json.dumps(self.hdf.SingleHdf5ToZarr(self.hdf5(root, case), inline_threshold=0)
                                                           .translate()))
        case.place = f"{root}.json"


class VirtualiZarr(References):
    lacks = References.lacks | {"blosc", "zlib", "gzip", "zstd", "lz4", "lzma", "bz2"}  # in references that it reads

    def __init__(self):
        self.module = importlib.import_module("virtualizarr")
        importlib.import_module("virtualizarr.parsers")
        self.name, self.version = "VirtualiZarr", importlib.metadata.version("virtualizarr")

    def opened(self, root, parser, url):
        from obspec_utils.registry import ObjectStoreRegistry
        from obstore.store import LocalStore
        return parser(url=f"file://{url}", registry=ObjectStoreRegistry({"file://": LocalStore()}))

    def read(self, root, case):
        import xarray
        tessera.refs(root, f"{root}.json")
        chunks = int(np.prod([-(-n // c) for n, c in zip(case.shape, case.chunks)]))
        if sum(isinstance(one, list) for one in json.loads(pathlib.Path(f"{root}.json").read_text())["refs"].values()) < chunks:
            raise Refused("absent chunks")  # its manifests then lack a row
        store = self.opened(root, self.module.parsers.KerchunkJSONParser(), f"{root}.json")
        return xarray.open_zarr(store, consolidated=False, zarr_format=3, mask_and_scale=False)["a"].values

    def write(self, root, case):
        store = self.opened(root, self.module.parsers.HDFParser(), self.hdf5(root, case))
        store.to_virtual_dataset().vz.to_kerchunk(f"{root}.json", format="json")
        case.place = f"{root}.json"


PEERS = [Zarr2, Zarr3, Numcodecs, TensorStore, Zarrs, Zarrita, XArray, Kerchunk, VirtualiZarr,
         lambda: Stored("fsspec", "fsspec", in_fsspec), lambda: Stored("obstore", "obstore", in_obstore),
         lambda: Stored("icechunk", "icechunk", in_icechunk, ("v3",))]


# ---- the test

class Run:
    def __init__(self, folder, options):
        self.folder, self.options, self.wrong = folder, options, 0

    def one_way(self, peer, direction, number):
        """True: passed; a text: refused for that; None: not a case for this peer."""
        case = Case(self.options.seed, number, peer.formats)
        case.place = None
        root = str(self.folder / f"{direction}{number}")
        if peer.skips(case):
            return None
        try:
            try:
                if direction == "reads":
                    write_ours(root, case)
                    got = peer.read(root, case)
                else:
                    case.got = None
                    peer.write(root, case)
                    got = case.got
            except Exception as error:
                lacks = set(peer.lacks) | (set() if peer.differ else {"chunks that differ in length"})
                lacking = sorted(case.features() & lacks | (case.features() & getattr(peer, "writing", set())
                                                                     if direction == "writes" else set()))
                if lacking or isinstance(error, Refused):
                    return lacking[0] if lacking else str(error)
                raise
            if direction == "writes" and got is None:
                got = tessera.open(case.place or root)["a"][...]
            got = np.asarray(got, dtype=object) if case.kind in OBJECTS else np.asarray(got)
            if not same(case.values, got):
                raise AssertionError(f"{got.dtype} {got!r}, and not {case.dtype} {case.values!r}")
        except Exception as error:
            self.wrong += 1
            print(f"WRONG: {peer.name} {direction} case {number} (--seed {self.options.seed} --peer {peer.name!r} --only {number}): "
                  f"{sorted(case.features())}: {type(error).__name__}: {str(error)[:600]}", flush=True)
            if self.options.only is not None:
                traceback.print_exc()
        finally:
            for left in self.folder.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        return True

    def peer(self, peer):
        found = {"version": peer.version}
        for direction in ("reads", "writes"):
            passed, refused = 0, collections.Counter()
            numbers = itertools.count() if self.options.only is None else [self.options.only]
            for number in numbers:
                if passed >= self.options.count or number >= 25 * self.options.count:
                    break
                before = self.wrong
                done = self.one_way(peer, direction, number)
                passed += done is True and self.wrong == before
                if isinstance(done, str):
                    refused[done] += 1
            found[direction], found[f"refused, {direction}"] = passed, sorted(refused)
            print(f"{peer.name} {peer.version} {direction}: {passed} equal, refused: {dict(refused)}", flush=True)
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--only", type=int)
    parser.add_argument("--peer")
    parser.add_argument("--results", type=pathlib.Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results, absent = {}, []
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        run = Run(pathlib.Path(folder).resolve(), options)
        for make in PEERS:
            try:
                peer = make()
            except ImportError as error:
                absent.append(str(error))
                continue
            if options.peer in (None, peer.name):
                results[peer.name] = run.peer(peer)
    for why in absent:
        print(f"left out: {why}")
    if options.results:
        options.results.write_text(json.dumps(results, indent=1))
    print(f"{len(results)} peers, {run.wrong} wrong")
    return run.wrong > 0 or not results


if __name__ == "__main__":
    sys.exit(main())
