"""The other side of blosc_test.cpp: numcodecs, which is another program's binding to blosc.

    numcodecs_frames.py check FOLDER   decodes every NAME.frame there and compares it with NAME.raw
    numcodecs_frames.py make FOLDER    writes such pairs, for tessera to decode
"""
import pathlib
import sys

import numpy as np
from numcodecs import blosc

blosc.use_threads = False


def check(folder):
    count = 0
    for frame in sorted(folder.glob("*.frame")):
        decoded = blosc.decompress(frame.read_bytes())
        raw = frame.with_suffix(".raw").read_bytes()
        assert bytes(decoded) == raw, f"{frame.name} decodes to other bytes"
        count += 1
    print(count)


def make(folder):
    rng = np.random.default_rng(7)
    arrays = [
        np.arange(5003, dtype="<i4"),
        np.arange(12000, dtype="<f8") ** 0.5,
        rng.integers(0, 256, 3000).astype("u1"),
        np.repeat(np.array([b"abcde", b"xy"], "S5"), 1000),
        np.arange(7, dtype="<i2"),
        np.full(300, "title", "U75").reshape(3, 100),
    ]
    count = 0
    for cname in ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"]:
        if cname not in blosc.list_compressors():
            continue
        for level in (0, 1, 9):
            for shuffle in (0, 1, 2):
                for i, a in enumerate(arrays):
                    blocksize = 1024 if i == 1 else 0
                    name = f"{cname}-{level}-{shuffle}-{i}"
                    frame = blosc.compress(a, cname.encode(), level, shuffle, blocksize)
                    (folder / (name + ".frame")).write_bytes(frame)
                    (folder / (name + ".raw")).write_bytes(a.tobytes())
                    count += 1
    print(count)


{"check": check, "make": make}[sys.argv[1]](pathlib.Path(sys.argv[2]))
