#!/usr/bin/env python3
"""Writes the .mldf files that attack, and errors.json with what a check must find: good files of ../../mldf, changed."""
import json
import struct
from pathlib import Path

here = Path(__file__).parent
good = here.parent.parent / "mldf"
errors = {}

METADATA, ROW, ALLOC = 1792, 128, 3593  # of other_fields


def descriptor(field):
    return 73 + 208 * field


def bad(name, words, *changes, of="other_fields"):
    data = bytearray((good / f"{of}.mldf").read_bytes())
    for form, at, value in changes:
        struct.pack_into(form, data, at, value)
    (here / f"{name}.mldf").write_bytes(data)
    errors[f"{name}.mldf"] = words


bad("samples_beyond_file", "metadata table", ("<Q", 9 + 8, 1 << 30))
bad("samples_times_row_overflows", "samples", ("<Q", 9 + 8, 1 << 63))
bad("samples_without_fields", "samples", ("<Q", 9 + 8, (1 << 64) - 1), of="zero_fields")
bad("fields_beyond_file", "field descriptors", ("<H", 9 + 16, 0xFFFF))
bad("fields_over_header", "overlaps the header", ("<Q", 9 + 24, 8))
bad("data_after_allocations", "lies before the data", ("<Q", 9 + 40, 4000))
bad("allocations_beyond_file", "does not lie in the file", ("<Q", 9 + 48, 1 << 40))
bad("no_data_far_beyond_file", "does not lie in the file", ("<Q", 9 + 40, 1 << 60), ("<Q", 9 + 48, 1 << 60), of="one_field_label")
bad("allocation_wraps", "does not lie in the data region", ("<Q", ALLOC, (1 << 64) - 8))
bad("allocation_too_long", "does not lie in the data region", ("<I", ALLOC + 8, 0xFFFFFFFF))
bad("allocations_overlap", "overlaps the one before", ("<I", ALLOC + 8, 106))
bad("allocations_equal", "not sorted", ("<Q", ALLOC + 16, 2560))
bad("pointer_wraps", "outside the data region", ("<Q", METADATA, (1 << 64) - 8))
bad("pointer_into_a_payload", "where the allocation table has nothing", ("<Q", METADATA, 2561))
bad("size_beyond_allocation", "the allocation table has 105", ("<I", METADATA + 8, 120))
bad("image_of_lying_shape", "needs 12884508675 bytes", ("<H", METADATA + 12, 0xFFFF), ("<H", METADATA + 14, 0xFFFF))
bad("ndarray_of_exabytes", "say no dtype and shape", ("<Q", descriptor(4) + 76 + 24, 1 << 60))
bad("ndarray_of_many_dimensions", "say no dtype and shape", ("<Q", descriptor(4) + 76 + 16, 1 << 40))
bad("record_of_3_gib", "records of", ("<H", descriptor(0) + 64, 999), ("<I", descriptor(0) + 68, 3 << 30), of="zero_samples")
bad("record_of_nothing", "records of 0 bytes", ("<H", descriptor(0) + 64, 999), ("<I", descriptor(0) + 68, 0), of="zero_samples")
bad("records_too_short", "records of 8 bytes", ("<I", descriptor(0) + 68, 8))
bad("checksum_wrong", "CRC-32", ("<I", 9 + 4, 5), ("<I", 9 + 56, 1))
bad("sections_overlap", "overlap", ("<Q", 9 + 32, 73), of="one_field_label")

(here / "errors.json").write_text(json.dumps(errors, indent=1) + "\n")
