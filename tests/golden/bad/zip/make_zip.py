"""Writes the zip archives beside this script, each an attack on a reader of .npz files and zip stores.

Each holds the v2 array of four bytes 1, 2, 3, 4 as a zip store has it (`.zarray` and the chunk `0`), and the same as
`a.npy`; the attack is on `0` and `a.npy`. errors.json has the words that the refusal of each must hold, or null where
the array must read as it is in spite of the attack.
"""

import json
import pathlib
import struct
import zlib

here = pathlib.Path(__file__).resolve().parent
errors = {}
STORED, DEFLATE = 0, 8

zarray = json.dumps({"chunks": [4], "compressor": None, "dtype": "|u1", "fill_value": 0, "filters": None, "order": "C",
                     "shape": [4], "zarr_format": 2}).encode()
content = bytes([1, 2, 3, 4])
header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }"
npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117) + b"\n" + content


class Member:
    def __init__(self, name, data, method=STORED, **lies):
        self.name = name.encode()
        deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
        self.stored = data if method == STORED else deflater.compress(data) + deflater.flush()
        self.facts = {"flags": 0, "method": method, "crc": zlib.crc32(data), "packed": len(self.stored), "size": len(data),
                      "offset": None, "extra": b""} | lies

    def fixed(self):
        f = self.facts
        return struct.pack("<HHHHHIIIHH", 45, f["flags"], f["method"], 0, 0x21, f["crc"], f["packed"], f["size"],
                           len(self.name), len(f["extra"]))

    def local(self):
        return b"PK\x03\x04" + self.fixed() + self.name + self.facts["extra"] + self.stored

    def central(self, offset):
        f = self.facts
        place = offset if f["offset"] is None else f["offset"]
        return (b"PK\x01\x02" + struct.pack("<H", 45) + self.fixed() + struct.pack("<HHHII", 0, 0, 0, 0, place) +
                self.name + f["extra"])


def archive(members, count=None, directory_offset=None, directory=None):
    body, central = b"", b""
    for member in members:
        central += member.central(len(body))
        if member.facts["offset"] is None:
            body += member.local()
    if directory is not None:
        central = directory(central)
    count = len(members) if count is None else count
    offset = len(body) if directory_offset is None else directory_offset
    return body + central + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, len(central), offset, 0)


def bad(name, words, data):
    (here / f"{name}.zip").write_bytes(data)
    errors[f"{name}.zip"] = words


def attacked(method=STORED, **lies):
    """The array, with lies about its chunk and about its .npy file."""
    return [Member(".zarray", zarray), Member("0", content, method, **lies), Member("a.npy", npy, method, **lies)]


good = attacked()
zeros = bytes(64 << 20)
bad("bomb", "at most", archive([Member(".zarray", zarray), Member("0", zeros, DEFLATE), Member("a.npy", npy + zeros, DEFLATE)]))
bad("bomb_of_nothing", "cannot come from", archive(attacked(DEFLATE, size=2**31)))
bad("size_too_large", "ends after", archive(attacked(DEFLATE, size=1000)))
bad("size_too_small", "", archive(attacked(DEFLATE, size=2)))
bad("stored_size_differs", "cannot come from", archive(attacked(size=2**20)))
bad("stored_beyond_file", "", archive(attacked(size=2**20, packed=2**20)))
wide = struct.pack("<HHQQ", 1, 16, 2**63, 2**63)
bad("zip64_size", "", archive(attacked(size=2**32 - 1, packed=2**32 - 1, extra=wide)))
bad("crc_wrong", "CRC", archive(attacked(crc=1)))
bad("encrypted", "encrypted", archive(attacked(flags=1)))
bad("method_unknown", "compression method", archive(attacked(97)))
bad("member_offset_beyond_file", "", archive(good[:1] + [Member("0", content, offset=2**30),
                                                         Member("a.npy", npy, offset=2**30)]))
bad("member_offset_inside_another", "", archive(good[:1] + [Member("0", content, offset=10),
                                                            Member("a.npy", npy, offset=10)]))
# Every entry is the same bytes, as of a bomb that unpacks them again and again.
bad("overlapping", None, archive(good + [Member("0", content, offset=len(good[0].local())) for _ in range(1000)]))
bad("outside_root", None, archive([Member(name, content) for name in (
    "../outside", "/outside", "c/../../outside", "./outside", "c//outside", "..")] + good))
bad("duplicate_names", None, archive([Member(".zarray", b"{}"), Member("0", b"old"), Member("a.npy", b"old")] + good))
bad("directory_truncated", "", archive(good, directory=lambda d: d[:60]))
bad("directory_offset_beyond_file", "", archive(good, directory_offset=2**30))
bad("entries_promised", "", archive(good, count=65534))
end_of_nothing = b"PK\x05\x06" + bytes(18)
bad("end_in_comment", "does not count", archive(good)[:-2] + struct.pack("<H", len(end_of_nothing)) + end_of_nothing)
bad("end_missing", "", archive(good)[:-22])
(here / "errors.json").write_text(json.dumps(errors, indent=0, sort_keys=True) + "\n")
