"""PNG pictures: written ones decoded by a reader of our own (zlib), read ones encoded by a writer of our own."""
import struct
import subprocess
import zlib

import numpy as np

from program import ProgramTest, main

TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # channels to colour type
ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def decode(data):
    """The elements of a PNG without interlacing, of 8 or 16 bits."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            width, height, bits, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
            assert interlace == 0
        elif kind == b"IDAT":
            packed += body
        at += 12 + size
    channels = {c: n for n, c in TYPES.items()}[colour]
    step, row = channels * bits // 8, width * channels * bits // 8
    raw, above, rows = zlib.decompress(packed), bytearray(row), []
    for y in range(height):
        method, line = raw[y * (row + 1)], bytearray(raw[y * (row + 1) + 1:(y + 1) * (row + 1)])
        for i in range(row):
            a, b = (line[i - step] if i >= step else 0), above[i]
            c = above[i - step] if i >= step else 0
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line[i] = line[i] + [0, a, b, (a + b) // 2, paeth][method] & 255
        rows.append(bytes(line))
        above = line
    shape = (height, width) if channels == 1 else (height, width, channels)
    return np.frombuffer(b"".join(rows), f">u{bits // 8}").reshape(shape)


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def encode(values, bits=None, colour=None, more=b"", interlace=False):
    values = values if values.ndim == 3 else values[..., None]
    height, width, channels = values.shape
    bits = bits or values.dtype.itemsize * 8

    def lines(part):
        out = b""
        for line in part:
            if bits >= 8:
                out += b"\0" + line.astype(f">u{bits // 8}").tobytes()
            else:
                text = "".join(f"{v:0{bits}b}" for v in line.ravel())
                text += "0" * (-len(text) % 8)
                out += b"\0" + int(text, 2).to_bytes(len(text) // 8, "big")
        return out

    parts = [values[y::dy, x::dx] for y, x, dy, dx in ADAM7] if interlace else [values]
    data = b"".join(lines(part) for part in parts if part.size)
    head = struct.pack(">IIBBBBB", width, height, bits, TYPES[channels] if colour is None else colour, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + more + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))


class Png(ProgramTest):
    def setUp(self):
        super().setUp()
        self.save("probe.npy", np.zeros((1, 1), "u1"))
        probe = self.run_program("export", "probe.npy", "probe.png", "--quiet")
        if "libpng" in probe.stderr:
            self.assertEqual(probe.returncode, 2)
            self.skipTest("built without libpng")

    def test_what_is_written(self):
        rng = np.random.default_rng(9)
        for dtype in "u1", "<u2", ">u2":
            for shape in (1, 1), (37, 53), (20, 31, 1), (20, 31, 2), (20, 31, 3), (5, 8, 4):
                values = rng.integers(0, np.iinfo(dtype).max, shape).astype(dtype)
                self.save("a.npy", values)
                for order in "C", "F":
                    with self.subTest(dtype=dtype, shape=shape, order=order):
                        self.tessera("import", "a.npy", "a.zarr", "--overwrite", "--quiet", "--order", order, "--format", "v2",
                                     "--chunks", ",".join(str(max(1, n // 3)) for n in shape))
                        self.tessera("export", "a.zarr", "a.png", "--overwrite", "--quiet")
                        np.testing.assert_array_equal(decode((self.folder / "a.png").read_bytes()), np.squeeze(values, 2) if shape[2:] == (1,) else values)
                        self.tessera("import", "a.png", "b.zarr", "--overwrite", "--quiet")
                        np.testing.assert_array_equal(self.exported("b.zarr").reshape(shape), values)

    def test_bands_make_one_stream_whatever_the_threads(self):
        y, x = np.mgrid[:700, :900]
        smooth = (np.sin(x / 50) * 100 + y / 7 + np.random.default_rng(3).integers(0, 5, (700, 900)) + 110).astype("u1")
        for values in smooth, np.stack([smooth, smooth.T[:700, :700].repeat(2, 1)[:, :900], smooth[::-1]], 2), \
                (smooth.astype("<u2") * 257):
            self.save("large.npy", values)
            written = []
            for threads in "1", "2", "7":
                self.tessera("export", "large.npy", "large.png", "--overwrite", "--quiet", "--threads", threads)
                written.append((self.folder / "large.png").read_bytes())
            self.assertEqual(written[0], written[1])
            self.assertEqual(written[0], written[2])
            np.testing.assert_array_equal(decode(written[0]), values)
            self.assertLess(len(written[0]), values.nbytes * 0.8, "rows are filtered and deflated")
            self.tessera("copy", "large.png", "back.npy", "--overwrite", "--quiet")  # by libpng
            np.testing.assert_array_equal(np.load(self.folder / "back.npy"), values)

    def test_what_is_read(self):
        rng = np.random.default_rng(10)
        for interlace in False, True:
            for bits in 1, 2, 4, 8, 16:
                with self.subTest(interlace=interlace, bits=bits):
                    raw = rng.integers(0, 1 << bits, (11, 13)).astype("u2")
                    (self.folder / "g.png").write_bytes(encode(raw, bits, interlace=interlace))
                    self.tessera("copy", "g.png", "g.npy", "--overwrite", "--quiet")
                    spread = raw * (255 // ((1 << bits) - 1)) if bits < 8 else raw
                    np.testing.assert_array_equal(np.load(self.folder / "g.npy"), spread)
                    self.assertEqual(self.tessera_json("get", "g.png", "7:2:-2, 3:9"), spread[7:2:-2, 3:9].tolist())
            for channels in 2, 3, 4:
                raw = rng.integers(0, 65536, (9, 10, channels)).astype("u2")
                (self.folder / "c.png").write_bytes(encode(raw, interlace=interlace))
                self.tessera("copy", "c.png", "c.npy", "--overwrite", "--quiet")
                np.testing.assert_array_equal(np.load(self.folder / "c.npy"), raw)
        colours = rng.integers(0, 256, (16, 3)).astype("u1")
        raw = rng.integers(0, 16, (6, 7)).astype("u1")
        (self.folder / "p.png").write_bytes(encode(raw, 4, 3, chunk(b"PLTE", colours.tobytes())))
        self.tessera("copy", "p.png", "p.npy", "--quiet")
        np.testing.assert_array_equal(np.load(self.folder / "p.npy"), colours[raw])

    def test_stacks_of_pictures(self):
        frames = np.random.default_rng(11).integers(0, 256, (12, 9, 14, 3)).astype("u1")
        self.save("movie.npy", frames)
        self.tessera("unstack", "movie.npy", "frames/f-{}.png", "--quiet")
        np.testing.assert_array_equal(decode((self.folder / "frames/f-07.png").read_bytes()), frames[7])
        self.tessera("stack", "frames/*.png", "movie.zarr", "--chunks", "5,9,14,3", "--quiet")
        np.testing.assert_array_equal(self.exported("movie.zarr"), frames)

    def test_the_densest_picture(self):
        self.save("zeros.npy", np.zeros((3000, 4000), "u1"))
        self.tessera("export", "zeros.npy", "zeros.png", "--quiet")
        (self.folder / "denser.png").write_bytes(encode(np.zeros((3000, 4000), "u1")))
        for name in "zeros.png", "denser.png":
            self.assertLess((self.folder / name).stat().st_size, 40_000)
            self.assertIn("3000×4000", self.tessera("info", name))

    def test_what_is_refused(self):
        before = None
        for array, says in [(np.zeros((3, 4)), ["u1 or u2", "<f8"]), (np.zeros((3, 4), "i2"), ["u1 or u2"]),
                            (np.zeros((3, 4, 5), "u1"), ["(3, 4, 5)", "--sel"]), (np.zeros(3, "u1"), ["(3,)"]),
                            (np.zeros((0, 3), "u1"), ["(0, 3)"])]:
            self.save("a.npy", array)
            before = before or sorted(p.name for p in self.folder.iterdir())
            self.refused("export", "a.npy", "out.png", says=says)
            self.assertEqual(sorted(p.name for p in self.folder.iterdir()), before)
        good = encode(np.arange(200, dtype="u1").reshape(10, 20))
        for name, bad in [("short", good[:-40]), ("flipped", good[:50] + bytes([good[50] ^ 255]) + good[51:]),
                          ("header", good[:20]), ("huge", good[:16] + b"\x7f\xff\xff\xff\x7f\xff\xff\xff" + good[24:])]:
            (self.folder / "bad.png").write_bytes(bad)
            with self.subTest(name=name):
                self.refused("copy", "bad.png", "out.npy", says="bad.png")
                self.refused("import", "bad.png", "out.zarr", says="bad.png")
                self.assertFalse((self.folder / "out.npy").exists() or (self.folder / "out.zarr").exists())
        # Right down to its checksums, and no file of this size could hold the rows that it announces.
        for width, height in [(0x7FFFFFFF, 1), (1, 0x7FFFFFFF), (0x7FFFFFFF, 0x7FFFFFFF), (10_000, 1_000)]:
            header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 6, 0, 0, 0))
            (self.folder / "bad.png").write_bytes(good[:8] + header + good[33:])
            self.refused("info", "bad.png", says=["bad.png", f"{height} rows of {8 * width} bytes", "cannot hold them"])
        (self.folder / "bad.png").write_bytes(b"no picture at all")
        self.refused("copy", "bad.png", "out.npy", says=["bad.png", ".png"])


if __name__ == "__main__":
    main()
