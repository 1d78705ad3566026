#!/usr/bin/env python3
"""Writes the seeds of some fuzz targets, from the descriptions of the formats and not by Tessera: `make_corpora.py` in this
folder. The same every time."""

import base64
import gzip
import hashlib
import itertools
import json
import pathlib
import random
import struct
import zlib

import numpy as np
from numcodecs import Zstd

CORPUS = pathlib.Path(__file__).parent / "corpus"
ABSENT = 2**64 - 1


def write(folder, name, data):
    (CORPUS / folder).mkdir(parents=True, exist_ok=True)
    (CORPUS / folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


# ---- shards, for the configurations in fuzz_shard.cpp: the first byte says which

def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


def pieces(array, chunk):
    counts = [n // c for n, c in zip(array.shape, chunk)]
    for place in itertools.product(*map(range, counts)):
        yield array[tuple(slice(i * c, (i + 1) * c) for i, c in zip(place, chunk))]


def shard(array, chunk, encode=bytes, index_of=lambda pairs: pairs.astype("<u8").tobytes(), at_start=False,
          draw=None, order=None):
    """A shard of inner chunks, some left out and in any order where `draw` says so."""
    counts = [n // c for n, c in zip(array.shape, chunk)]
    encoded = [encode(np.ascontiguousarray(part).tobytes()) for part in pieces(array, chunk)]
    pairs = np.full((len(encoded), 2), ABSENT, dtype="u8")
    turn = list(range(len(encoded)))
    if draw is not None:
        draw.shuffle(turn)
        turn = turn[:draw.randint(0, len(turn))]
    header = len(index_of(pairs.reshape(*counts, 2))) if at_start else 0
    body = b""
    for n in turn:
        pairs[n] = header + len(body), len(encoded[n])
        body += encoded[n]
    if order is not None:
        order(pairs)
    index = index_of(pairs.reshape(*counts, 2))
    return index + body if at_start else body + index


def one_shard(configuration, array, draw, order=None):
    if configuration == 0:
        return shard(array, (2, 3), draw=draw, order=order)
    if configuration == 1:
        return shard(array, (4, 2), Zstd(3).encode, lambda p: p.astype(">u8").tobytes(), True, draw, order)
    if configuration == 2:
        return shard(array, (2, 2), lambda data: gzip.compress(data, mtime=0),
                     lambda p: p.astype("<u8").tobytes() + crc32c(p.astype("<u8").tobytes()), False, draw, order)
    if configuration == 3:
        inner = lambda data: shard(np.frombuffer(data, "<i2").reshape(4, 6), (2, 2), at_start=True, draw=draw)
        return shard(array, (4, 6), inner, order=order)
    if configuration == 4:
        return shard(np.ascontiguousarray(array.T), (6, 2), index_of=lambda p: p.transpose(2, 0, 1).astype("<u8").tobytes(),
                     draw=draw, order=order)
    return gzip.compress(shard(array, (2, 3), draw=draw, order=order), mtime=0)


def wrong(draw):
    """Something to do to an index."""
    def change(pairs):
        n, k = draw.randrange(len(pairs)), draw.randrange(2)
        pairs[n, k] = draw.choice([0, 1, 7, 2**31, 2**32, 2**63, ABSENT - 1, ABSENT, int(pairs[0, 0]), 48])
    return change


def mutated(data, draw):
    data = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(data) or 1)
        kind = draw.randrange(4)
        if kind == 0 and data:
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del data[at:at + draw.randint(1, 9)]
        elif kind == 2:
            data[at:at] = bytes(draw.randrange(256) for _ in range(draw.randint(1, 9)))
        else:
            data = data[:at]
    return bytes(data)


def shards():
    for old in (CORPUS / "shard").glob("c*"):
        old.unlink()
    for configuration in range(6):
        for n in range(17):
            draw = random.Random(100 * configuration + n)
            array = np.array([draw.randrange(-300, 300) for _ in range(24)], "<i2").reshape(4, 6)
            if n < 6:
                data, what = one_shard(configuration, array, draw if n else None), "whole"
            elif n < 12:
                data, what = one_shard(configuration, array, None, wrong(draw)), "index"
            else:
                data, what = mutated(one_shard(configuration, array, draw if n % 2 else None), draw), "mutated"
            write("shard", f"c{configuration}-{n:02}-{what}", bytes([configuration]) + data)


# ---- records of batches, without their last line, which the target adds, and whole ones

def journal(entries, **header):
    lines = [{"tessera_changes": 1, "id": "0000000000000001", "keeps_old": True, "what": "", **header}]
    for kind, n, size, key in entries:
        value = {"size": size, "modified": 0, "inode": 0} if kind == "put" else {}
        lines.append({"array": True, "key": key} if kind == "array" else {"n": n, **value, "old": True, "key": key})
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()


def committed(data, count=None):
    count = data.count(b"\n") - 1 if count is None else count
    return data + b'{"committed":%d,"sha256":"%s"}\n' % (count, hashlib.sha256(data).hexdigest().encode())


def journals():
    put, erase, array = "put", "erase", "array"
    one = journal([(put, 0, 16, "0.0")])
    made = {
        "empty": journal([]), "one": one, "out": journal([(put, 0, 16, "9.9")]),
        "erases": journal([(put, 0, 16, "1.1"), (erase, 1, 0, "0.1")]), "document": journal([(put, 0, 16, ".zarray")]),
        "attributes": journal([(put, 0, 16, ".zattrs")]), "metadata-erased": journal([(erase, 0, 0, ".zarray")]),
        "above": journal([(put, 0, 1, "../victim")]), "root": journal([(put, 0, 1, "/etc/passwd")]),
        "own": journal([(put, 0, 16, ".tessera/lock")]), "linked": journal([(put, 0, 1, "x/.bashrc")]),
        "twice": journal([(put, 0, 16, "0.0"), (put, 1, 16, "0.0")]), "size": journal([(put, 0, 2**63, "0.0")]),
        "missing": journal([(put, 7, 16, "0.0")]), "kind": journal([(array, 0, 0, "0.0")]), "nul": journal([(put, 0, 16, "0\0")]),
        "many": committed(one, 2**60), "newer": journal([], tessera_changes=2), "minor": journal([], more=[9]),
        "second": journal([(put, 0, 16, "0.0"), (erase, 0, 0, "0.1")]), "unknown": journal([], tessera_changes=0),
        "group": journal([(array, 0, 0, "x")], of_group=True), "part": journal([(put, 0, 16, "0.0")], group_above=2),
        "no-undo": journal([(put, 0, 16, "2.1")], keeps_old=False), "cut": one[:100], "nothing": b"",
        "content": one.replace(b'"modified":0,"inode":0', b'"content":"0123456789abcdef"'),
        "bytes": one.replace(b'"key":"0.0"', b'"key64":"MC4w"'), "command": one.replace(b'"keeps_old":true', b'"boot":"","writer":""'),
        "binary": b"\x89TSJ\r\n\x1a\n" + struct.pack("<HHIQQQI", 2, 0, 64, 1, 0, 0, 1) + bytes(20 + 32),
    }
    for name, data in made.items():
        write("journal", name, data)
    for name in "one", "erases":
        write("journal", name + "-whole", committed(made[name]))


def changes():
    header = {"tessera_changes": 1, "id": "0000000000000001", "boot": "", "writer": ".tessera-tmp-1-1", "what": "tessera set a 0 1"}
    put = {"n": 0, "size": 16, "modified": 0, "inode": 1, "old": True, "key": "0.1"}
    gone, end = {"n": 0, "old": True, "key": "0.0"}, {"end": 1}
    for name, lines in {
        "put": [header, put, end], "gone": [header, gone, end], "again": [header, gone, {**put, "n": 1}, {"end": 2}],
        "interrupted": [header, gone], "lost": [header, gone, {"lost": "no hard links"}], "count": [header, gone, {"end": 2}],
        "above": [header, {**gone, "key": "../victim"}, end], "other": [header, {**gone, "key": "notes"}, end],
        "own": [header, {**gone, "key": ".tessera/lock"}, end], "document": [header, {**put, "key": ".zarray"}, end],
        "metadata-erased": [header, {"n": 0, "old": False, "key": ".zarray"}, end], "missing": [header, {**gone, "n": 7}, end],
        "number": [header, {**gone, "n": -1}, end], "size": [header, {**put, "size": 2**64}, end], "newer": [{**header, "tessera_changes": 2}],
        "id": [{**header, "id": "../../x"}, end], "header": [header], "list": [[]], "nothing": [],
    }.items():
        write("changes", name, "".join(json.dumps(line) + "\n" for line in lines))
    write("changes", "cut", json.dumps(header) + "\n" + json.dumps(gone))


# ---- texts

def texts():
    record = ('{"about": "a snapshot by tessera; a plain Zarr store", "version": 1, "node": "a/b", '
              '"made": "2026-01-02T03:04:05Z", "arrays": 1, "files": 3, "bytes": 209, "reflinked": 0, "linked": 2, '
              '"copied": 1}')
    for name, text in {
        "whole": record, "newer": record.replace('"version": 1', '"version": 2'), "negative": record.replace("209", "-1"),
        "large": record.replace("209", "18446744073709551616"), "text": record.replace("209", '"209"'), "cut": record[:80],
        "list": "[]", "deep": "[" * 3000, "missing": record.replace('"node": "a/b", ', ""), "nothing": "",
        "above": record.replace("a/b", "../../victim"), "nul": record.replace("a/b", "\\u0000"),
    }.items():
        write("snapshot", name, text)
    for name, text in {
        "whole": "5 0 0.0\n5 0 c/0\n", "changed": "6 0 0.0\n", "gone": "5 0 1.1\n", "escaped": "5 0 a\\nb\\\\c\n",
        "above": "5 0 ../victim\n", "root": "5 0 /etc/passwd\n", "cut": "5 0 0.0\n5 0 c", "no-time": "5 0.0\n",
        "large": "99999999999999999999 0 0.0\n", "early": "5 -9223372036854775808 0.0\n", "nul": "5 0 a\0b\n",
        "empty-name": "5 0 \n", "end": "5 0 a\\\n", "nothing": "", "lines": "\n\n",
    }.items():
        write("snapshot_files", name, text)
    value = hashlib.sha256(b"value").hexdigest()
    for name, text in {
        "whole": f"{value}  .zarray\n{value}  0.0\n{value}  c/0\n", "changed": f"{'0' * 64}  0.0\n", "gone": f"{value}  1.1\n",
        "escaped": f"\\{value}  a\\nb\\\\c\n", "bad-escape": f"\\{value}  a\\x\n", "above": f"{value}  ../victim\n",
        "root": f"{value}  /etc/passwd\n", "twice": f"{value}  0.0\n" * 2, "cut": f"{value}  0.0\n{value}  c", "short": "ab  0.0\n",
        "upper": f"{value.upper()}  0.0\n", "binary": f"{value} *0.0\n", "no-hex": f"{'g' * 64}  0.0\n", "nothing": "",
        "return": f"{value}  0.0\r\n", "nul": f"{value}  a\0b\n",
    }.items():
        write("manifest", name, text)
    for name, text in {
        "whole": "# edits\nset '0:2, :' 7\nset 5,3 -1\nappend more.npy 1\nresize 8,4\nattr units '\"m\"'\nunattr units\n",
        "quotes": "set \"0, 0\" '3'\nset '0,0' \"a\\\"b\"\n", "open": "set '0\n", "verb": "get 0\n", "words": "set 0\n",
        "steps": "set '::2, ::-1' 5\n", "large": "resize 9223372036854775807,1\nset ... 1\n", "shrink": "resize 0,0\nresize 6,4\n",
        "axis": "append x 9\n", "json": "attr k {\"a\": [1, NaN]}\n", "deep": "attr k " + "[" * 3000 + "\n", "blank": "\t \r\n\n#\n",
        "back": "set 0 \\\n", "rank": "resize 1\n", "negative": "resize -1,4\n", "value": "set 0,0 99999999999\n", "nul": "set 0,0 \0\n",
    }.items():
        write("script", name, text)


# ---- pictures, tables, references

def picture(width, height, depth, kind, rows, interlaced=0, extra=b"", checked=True):
    def chunk(name, data):
        crc = zlib.crc32(name + data) if checked else 0
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def pictures():
    rnd = random.Random(18)

    def rows(height, size):
        return b"".join(bytes([rnd.randrange(5)]) + rnd.randbytes(size) for _ in range(height))

    palette = struct.pack(">I", 6) + b"PLTE" + bytes(range(6)) + struct.pack(">I", zlib.crc32(b"PLTE" + bytes(range(6))))
    alpha = struct.pack(">I", 1) + b"tRNS" + b"\x07" + struct.pack(">I", zlib.crc32(b"tRNS\x07"))
    for name, data in {
        "grey1": picture(9, 3, 1, 0, rows(3, 2)), "grey2": picture(5, 3, 2, 0, rows(3, 2)), "grey4": picture(3, 2, 4, 0, rows(2, 2)),
        "grey8": picture(3, 4, 8, 0, rows(4, 3)), "grey16": picture(3, 4, 16, 0, rows(4, 6)),
        "grey-alpha": picture(2, 2, 8, 4, rows(2, 4)), "colours": picture(4, 2, 8, 2, rows(2, 12)),
        "colours16": picture(2, 2, 16, 2, rows(2, 12)), "rgba": picture(2, 3, 8, 6, rows(3, 8)),
        "palette": picture(8, 2, 1, 3, rows(2, 1), extra=palette), "transparent": picture(8, 2, 1, 3, rows(2, 1), extra=palette + alpha),
        "no-palette": picture(8, 2, 1, 3, rows(2, 1)), "interlaced": picture(1, 1, 8, 0, b"\0\5", interlaced=1),
        "interlaced-short": picture(9, 9, 8, 0, b"\0\5", interlaced=1), "short": picture(30, 40, 8, 0, rows(3, 30)),
        "long": picture(2, 2, 8, 0, rows(50, 30)), "huge": picture(2**31 - 1, 2**31 - 1, 16, 6, b"\0"),
        "wide": picture(2**31 - 1, 1, 8, 0, b"\0" * 99), "empty": picture(0, 5, 8, 0, b""), "depth": picture(2, 2, 3, 0, rows(2, 2)),
        "kind": picture(2, 2, 8, 7, rows(2, 8)), "sum": picture(3, 4, 8, 0, rows(4, 3), checked=False),
        "signature": b"\x89PNG\r\n\x1a\n", "cut": picture(3, 4, 8, 0, rows(4, 3))[:45],
        "long-chunk": picture(3, 4, 8, 0, rows(4, 3))[:33] + b"\xff\xff\xff\xffIDAT",
    }.items():
        write("png", name, data)


def tiffs():
    """Strips of one page and more, in both orders and sizes of words, and the ends of what a directory can say."""
    def tiff(pages, order="<", big=False, extra=(), data=b"\x05\x00\x01"):
        word = "Q" if big else "I"
        out = (b"II" if order == "<" else b"MM") + struct.pack(order + "H", 43 if big else 42)
        out += struct.pack(order + "HH", 8, 0) if big else b""
        at = len(out) + struct.calcsize(word) + len(data)
        out += struct.pack(order + word, at) + data
        strip = len(out) - len(data)
        for n in range(pages):
            tags = {256: 4, 257: 3, 258: 8, 259: 1, 262: 1, 273: strip, 277: 1, 278: 3, 279: len(data), 339: 1}
            tags |= dict(extra)
            body = struct.pack(order + ("Q" if big else "H"), len(tags))
            for tag in sorted(tags):
                body += struct.pack(order + "HH" + word + word, tag, 16 if big else 4, 1, tags[tag])
            at += len(body) + struct.calcsize(word)
            out += body + struct.pack(order + word, at if n + 1 < pages else 0)
        return out

    whole = bytes(range(12))
    packed = zlib.compress(whole)
    for name, data in {
        "little": tiff(1, data=whole), "big-endian": tiff(1, ">", data=whole), "big": tiff(2, big=True, data=whole),
        "pages": tiff(3, data=whole), "deflated": tiff(1, extra={259: 8}, data=packed),
        "predictor": tiff(1, extra={259: 8, 317: 2}, data=packed), "packbits": tiff(1, extra={259: 32773}, data=b"\x0b" + whole),
        "lzw": tiff(1, extra={259: 5}, data=b"\x80\x00\x00"), "bits": tiff(1, extra={258: 4}, data=whole),
        "short": tiff(1, data=b"\1"), "huge": tiff(1, extra={256: 2**31 - 1, 257: 2**31 - 1}, data=whole),
        "zero": tiff(1, extra={256: 0}, data=whole), "overview": tiff(2, extra={254: 1}, data=whole),
        "sub": tiff(1, extra={330: 8}, data=whole), "tiles": tiff(1, extra={322: 16, 323: 16, 324: 8, 325: 12}, data=whole),
        "samples": tiff(1, extra={277: 3}, data=whole * 3), "planes": tiff(1, extra={277: 3, 284: 2}, data=whole * 3),
        "cut": tiff(1, data=whole)[:60], "sparse": tiff(1, extra={279: 0}, data=whole), "jpeg": tiff(1, extra={259: 7}, data=whole),
    }.items():
        write("tiff", name, data)


def hdf5_indices():
    """Every index of chunks, as h5py writes it; the place of the dataset's header follows."""
    import h5py
    for name, libver, chunks, longest in [
            ("tree1", "earliest", (4, 4), None), ("fixed", "latest", (4, 4), None), ("extensible", "latest", (4, 4), (None, 12)),
            ("tree2", "latest", (4, 4), (None, None)), ("single", "latest", (12, 12), None)]:
        file = pathlib.Path("seed.h5")
        with h5py.File(file, "w", libver=libver) as f:
            d = f.create_dataset("d", data=np.arange(144, dtype="<i4").reshape(12, 12), chunks=chunks, maxshape=longest,
                                 compression="gzip")
            header = h5py.h5o.get_info(d.id).addr
        write("hdf5_index", name, file.read_bytes() + struct.pack("<Q", header))
        file.unlink()


def tables():
    for name, text in {
        "integers": "1,2,3\n4,5,6\n", "floats": "1.5,-0.0\nnan,1e-300\ninf,-inf\n", "header": "a,b\n1,x\n2,y\n", "dates": "2006-09-16T12:00:00\nNaT\n",
        "quotes": '"a,b","c""d"\n"two\nlines",e\n', "open": '"a,b\n', "short": "1,2\n3\n", "long": "1\n2,3\n", "return": "1,2\r\n3,4\r\n",
        "empty": "", "blank": "\n\n", "commas": ",,\n,,\n", "one": "5", "wide": "1" + ",1" * 5000 + "\n", "digits": "9" * 4000 + "\n",
        "beyond": "9223372036854775808\n-9223372036854775809\n", "bool": "true,false\nFalse,True\n", "hex": "0x6162\n0x\n0xg\n",
        "utf": "é,日本\n\ud83d\n".encode("utf-8", "surrogatepass"), "latin": b"\xe9,\xff\n", "nul": b"a\0b,c\n", "bom": b"\xef\xbb\xbf1,2\n",
        "late": "1\n" * 300 + "x\n", "names": "a,a\n1,2\n", "nested": "a.b,a.c,d[0],d[1]\n1,2,3,4\n", "space": " 1 , 2 \n",
    }.items():
        write("csv", name, text)


def references():
    zarray = '{"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "<i2", "order": "C", "compressor": null, ' \
             '"filters": null, "fill_value": 0}'
    good = {".zarray": zarray, ".zattrs": "{}", "0": "base64:AAECAwQF"}
    for name, document in {
        "inline": {"version": 1, "refs": good}, "file": {"version": 1, "refs": {"0": ["data"], "1": ["data", 0, 5]}},
        "above": {"version": 1, "refs": {"0": ["../../etc/passwd"]}}, "root": {"version": 1, "refs": {"0": ["/etc/passwd", 0, 9]}},
        "self": {"version": 1, "refs": {"0": ["0"], "1": ["1", 0, 1], "2": ["2", 2**64 - 1, 1]}},
        "url": {"version": 1, "refs": {"0": ["https://example.org/"]}}, "template": {"version": 1, "templates": {"u": "x"}, "refs": {}},
        "gen": {"version": 1, "gen": [{"key": "a"}], "refs": {}}, "version": {"version": 2, "refs": {}}, "none": {"version": 1},
        "keys": {"version": 1, "refs": {"../a": "b", "": "c", "a//b": "d", "a\0": "e"}}, "negative": {"version": 1, "refs": {"0": ["a", -1, 2]}},
        "folder": {"version": 1, "refs": {"a": "1", "a/b": "2", "a.b": "3", "a/b/c": "4"}}, "own": {"version": 1, "refs": {".tessera/log": "x"}},
        "base64": {"version": 1, "refs": {"0": "base64:A", "1": "base64:====", "2": "base64:"}}, "list": [1, 2],
        "wrong": {"version": 1, "refs": {"0": 5, "1": [], "2": [1, 2, 3], "3": None, "4": {}}},
    }.items():
        write("references", name, json.dumps(document))
    write("references", "deep", '{"version": 1, "refs": ' * 300)
    write("references", "cut", json.dumps({"version": 1, "refs": good})[:80])


# ---- parity: indices and roots as tools/docs/parity.md has them, without the SHA-256, which the target adds

def parity_index(block=512, rows=2, parity=2, groups=1, blocks=2, names=(b"0.0", b".zarray"), pieces=None, sizes=(512, 100)):
    pieces = [(0, 0, 0, 512, 0, 1), (1, 1, 0, 100, 0, 2)] if pieces is None else pieces
    text = b"".join(names)
    text += bytes(-len(text) % 8)
    head = b"\x89TSP\r\n\x1a\n" + struct.pack("<HHIQ8IQ", 1, 0, 64, 0, block, rows, parity, groups, blocks, len(names),
                                                len(pieces), 0, len(text))
    files, at = b"", 0
    for name, size in zip(names, sizes):
        files += struct.pack("<QqIIQ32s", size, 0, 0o644, len(name), at, b"s" * 32)
        at += len(name)
    crcs = bytes(min(parity * groups, 64) * 4)
    return head + files + b"".join(struct.pack("<IIQIIII", *p, 0) for p in pieces) + crcs + bytes(-len(crcs) % 8) + text


def parity():
    for name, data in {
        "index": parity_index(), "empty": parity_index(rows=1, blocks=0, names=(), pieces=()),
        "above": parity_index(names=(b"../victim", b"a")), "own": parity_index(names=(b"a/.tessera/lock", b"a")),
        "twice": parity_index(names=(b"a", b"a")), "rows": parity_index(rows=200, parity=100),
        "blocks": parity_index(blocks=3), "groups": parity_index(groups=1 << 31), "beyond": parity_index(sizes=(511, 100)),
        "overlap": parity_index(pieces=[(0, 0, 0, 512, 0, 1), (1, 0, 0, 100, 8, 2)]),
        "unsorted": parity_index(pieces=[(1, 1, 0, 100, 0, 2), (0, 0, 0, 512, 0, 1)]),
        "place": parity_index(pieces=[(0, 0, 0, 512, 8, 1)]), "far": parity_index(pieces=[(0, 0, 2**64 - 8, 16, 0, 1)]),
        "cut": parity_index()[:100],
        "root": b"\x89TSR\r\n\x1a\n" + struct.pack("<HHIQIIIIQQq32s32s", 1, 0, 128, 0, 1, 1, 50000, 0, 2, 612, 0, b"m" * 32, b"")
                + struct.pack("<32sQII", b"i" * 32, 300, 2, 0),
        "root-many": b"\x89TSR\r\n\x1a\n" + struct.pack("<HHIQIIIIQQq32s32s", 1, 0, 128, 0, 2**32 - 1, 1, 5, 0, 2, 6, 0, b"", b""),
    }.items():
        write("parity", name, data)


# ---- chunks of the registered codecs, for the chains in fuzz_codecs.cpp: the first byte says which

# 15 elements by pcodec 1.1.0: each delta encoding and mode.
PCO_CHUNKS = [
    (52, "consecutive", "1070e000071001002010000400001000100000e00010000"),
    (53, "lookback", "1030e0000200340002000000040a00100e0ffffff010d00000008c0df000020000500008007aaa4aaaaaa0a00"),
    (53, "conv1", "1030e0000301cb70218b76e4b0130140a95bd411a18824200e0ffffff0f00000000800100008000"),
    (54, "float_mult", "1050e0000d2ccccdc1b01018000000040000200ffffff7f0100000080ff5d00"),
    (55, "float_quant", "1060e0000d31142020002000010f0ffffff0b2900000000000000200002000000000000000000000000000004000000000080"
                         "fe01000000b4bd0500000000000000f7070000ef0f0000df1f00"),
    (55, "dict", "1060e00003400000000000000000002c0000000000000f8bf000000d088c300c200010000000000016118862100"),
]

# 3 × 5 elements by libzfp 1.0.0: each mode, with a header and without.
ZFP_CHUNKS = [
    (47, "0771488844702213912844042200000000000000e0a0251444212851894a142202110000000000000000"),
    (48, "05f00e2002b140fd08bec52a81a1c05138c751a76243b21cb0e9a0aeb3e8d39dc08ce38d7047b0d023cba0aad012716241e711cf61b4"
         "e297d3d0014dd120f20e43da93e1318d92590234a05f630fe0e421ce401db3bd12e071afc35103b33325402351370373f202e3826186"
         "82ff43b51440db0688002002110000042000800840000200880004221000000400001100000020108108000002010840002210000044"
         "000000804004220000000000001008400002000100440002118800"),
    (49, "8b21311a51814e30201094884c288c4254a0120028042522"),
    (50, "00000000000e09d10048402002984040270810004a502003906044070241890a548000040000000000b084800800252050014800a012"
         "000800242850014810220285a044052a40000200"),
    (51, "7a667005460000200000c0ca0771488844702213912844042200000000000000e0a0251444212851894a142202110000000000000000"),
]


def registered_codecs():
    """15 elements, and what lies in wait: a block cut at the edge, one too long, a mask with a bit too many."""
    n = np.arange(15)
    base64_chunk = base64.b64encode(zlib.compress(n.astype("<i4").tobytes()))
    bits = sum((int(v) & 127) << 7 * i for i, v in enumerate(n * 5 - 30))
    whole, cut, long = (struct.pack(">HHII", 0, 2, 5, 3), struct.pack(">HHII", 0, 2, 4, 2),
                        struct.pack(">HHII", 0, 2, 2**32 - 1, 2**32 - 1))
    floats = n.reshape(3, 5).T.astype(">f4")
    shuffled = n.astype("<i4").view("u1").reshape(15, 4).T.tobytes()
    inner = b"\x01\x00" + gzip.compress(shuffled, mtime=0)
    seeds = [(34, "", n.astype("u1").tobytes()), (35, "", n.astype("<f4").tobytes()), (36, "", n.astype("<i4").tobytes()),
             (37, "", (n + 1j).astype("<c8").tobytes()), (38, "", bits.to_bytes(14, "little") + b"\x07"),
             (39, "", whole + gzip.compress(floats.tobytes(), mtime=0)),
             (39, "_cut", cut + gzip.compress(np.ascontiguousarray(floats[:4, :2]).tobytes(), mtime=0)),
             (39, "_long", long + gzip.compress(bytes(10**6), mtime=0)),
             (40, "", gzip.compress(b"\x05" + inner, mtime=0)), (40, "_none", gzip.compress(b"\0" + shuffled, mtime=0)),
             (40, "_bit", gzip.compress(b"\x08" + inner, mtime=0)), (41, "", base64_chunk),
             (42, "", b"\x95" + 3 * (b"\x95" + 4 * b"\xa1t" + b"\xc0") + b"\xa2|O\x92\x03\x05"),
             (42, "_long", b"\xdd\xff\xff\xff\xff" + b"\xdf\xff\xff\xff\xff"),
             (43, "", json.dumps([["t", "u", None, {"v": 1.5}, ""]] * 3 + ["|O"]).encode()),
             (44, "", Zstd().encode(bytes(range(115, 130)))), (45, "", b"\x04" + bytes(range(240, 248))),
             (46, "", n.astype(">f2").repeat(2).tobytes())]
    mask = sum(int(v % 3 != 0) << int(v) for v in n).to_bytes(2, "little")
    present = n[n % 3 != 0]
    packed = Zstd().encode(np.array([1.5, -2, 1e9]).tobytes())
    inner = struct.pack("<QQ", 10, len(packed)) + bytes([1, 0, 0, 1] + [0] * 5 + [1]) + packed
    gzipped = gzip.compress(mask, mtime=0)
    seeds += [(57, "", struct.pack("<QQ", 2, 20) + mask + present.astype("<i2").tobytes()),
              (57, "_none", struct.pack("<QQ", 2, 0) + bytes(2)), (57, "_long", struct.pack("<QQ", 2**64 - 1, 23) + bytes(22)),
              (58, "", struct.pack("<QQ", len(gzipped), len(inner)) + gzipped + inner)]
    seeds += [(chain, "_" + name, bytes.fromhex("70636f210300c303040" + chunk)) for chain, name, chunk in PCO_CHUNKS]
    for chain, text in ZFP_CHUNKS:
        chunk = bytes.fromhex(text)
        seeds += [(chain, "", chunk), (chain, "_cut", chunk[:len(chunk) // 2])]
    seeds += [(51, "_long", chunk[:4] + b"\xff" * 6 + chunk[10:]), (51, "_magic", b"zfp\x06" + chunk[4:])]
    for chain, suffix, chunk in seeds:
        write("codecs", f"chain_{chain}{suffix}", bytes([chain]) + chunk)


if __name__ == "__main__":
    shards()
    journals()
    changes()
    parity()
    registered_codecs()
    texts()
    pictures()
    tiffs()
    hdf5_indices()
    tables()
    references()
