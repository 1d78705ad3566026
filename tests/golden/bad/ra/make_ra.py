"""Writes the .ra files beside this script, each to be refused with the words in errors.json."""

import json
import pathlib
import struct

here = pathlib.Path(__file__).resolve().parent
errors = {}
top = 2**64 - 1


def bad(name, error, words, data=b""):
    (here / f"{name}.ra").write_bytes(b"rawarray" + struct.pack(f"<{len(words)}Q", *words) + data)
    errors[f"{name}.ra"] = error


# flags, eltype, elbyte, size, ndims, dims...
bad("dims_overflow_elements", "", [0, 1, 4, 0, 3, 2**62, 2**62, 8])
bad("dims_overflow_behind_zero", "", [0, 1, 4, 0, 3, 2**62, 8, 0])
bad("dims_overflow_bytes", "", [0, 1, 4, 2**62, 1, 2**62])
bad("dim_negative", "dimension 0", [0, 1, 4, top, 1, top])
bad("elbyte_negative", "an element is said to have", [0, 0, top, top, 1, 1])
bad("elbyte_zero", "0 bytes", [0, 0, 0, 0, 1, 2**62])
bad("ndims_huge", "dimensions are promised", [0, 1, 4, 4, top])
bad("ndims_33", "at most 32", [0, 2, 1, 0, 33], bytes(33 * 8))
bad("size_beyond_file", "only 8 follow", [0, 2, 1, 2**40, 1, 2**40], bytes(8))
bad("lz4_bomb", "cannot hold", [2, 2, 1, 4, 1, 2**40], b"1234")
bad("lz4_offset_before_start", "damaged", [2, 2, 1, 6, 1, 100], b"\x1fA\xff\xff\x50\x00")
bad("lz4_too_long", "damaged", [2, 2, 1, 12, 1, 10], b"\xb0ABCDEFGHIJK")
bad("lz4_too_short", "holds 11 bytes", [2, 2, 1, 12, 1, 20], b"\xb0ABCDEFGHIJK")
bad("leb128_bomb", "at least a byte", [2, 2, 8, 2**43, 1, 2**40], b"1234")
bad("leb128_endless", "does not fit", [2, 2, 8, 8, 1, 1], b"\x80" * 1000)
bad("leb128_too_wide", "does not fit", [2, 2, 1, 1, 1, 1], b"\xff\x03")
bad("leb128_truncated", "ends inside integer 1", [2, 2, 2, 4, 1, 2], b"\x01\x80")
bad("bits_bomb", "only 4 follow", [6, 5, 8, 2**37, 1, 2**40], b"1234")
bad("bits_of_floats", "single bits", [4, 3, 8, 8, 1, 64], bytes(8))
bad("compressed_floats_at_full_size", "neither", [2, 3, 4, 4, 1, 1], b"1234")
(here / "errors.json").write_text(json.dumps(errors, indent=0, sort_keys=True) + "\n")
