"""Restores an archive that `tessera seal --parity` sealed, with NumPy alone: parity_decoder.py ARCHIVE [SEAL] [--dry-run]

Written from tools/docs/parity.md, for a time in which there is no Tessera. It restores every file that is missing or
not as it was sealed, later edits too: work on a copy. SEAL is the folder of the seal below ARCHIVE: `tessera-seal` of a
bag; `x.npy.tessera-seal` of a file, where ARCHIVE is the folder of the file; else `.tessera`.
"""

import hashlib
import os
import pathlib
import struct
import sys
import zlib

import numpy as np

# GF(256) with the polynomial 0x11D: powers of 2, logarithms, and a table of all products.
EXP = [1]
for _ in range(254):
    EXP.append(EXP[-1] << 1 ^ (0x11D if EXP[-1] & 0x80 else 0))
LOG = {value: power for power, value in enumerate(EXP)}
TIMES = np.array([[EXP[(LOG[a] + LOG[b]) % 255] if a and b else 0 for b in range(256)] for a in range(256)], np.uint8)


def inverse(a):
    return EXP[-LOG[a] % 255]


def invert(matrix):
    """The inverse of a square matrix, by Gauss and Jordan."""
    size = len(matrix)
    work = np.concatenate([np.array(matrix, np.uint8), np.eye(size, dtype=np.uint8)], axis=1)
    for column in range(size):
        pivot = next(row for row in range(column, size) if work[row, column])
        work[[column, pivot]] = work[[pivot, column]]
        work[column] = TIMES[inverse(work[column, column]), work[column]]
        for row in range(size):
            if row != column:
                work[row] ^= TIMES[work[row, column], work[column]]
    return work[:, size:]


def checked(data, magic):
    """The bytes of a root or an index without their SHA-256, or None if they are damaged."""
    if len(data) < 24 or data[:8] != magic or struct.unpack_from("<H", data, 8)[0] != 1:
        return None
    size = struct.unpack_from("<Q", data, 16)[0]
    if not 32 < size <= len(data) or hashlib.sha256(data[:size - 32]).digest() != data[size - 32:size]:
        return None
    return data[:size - 32]


class Segment:
    def __init__(self, archive, parity_folder, sum_, rows):
        self.archive = archive
        names = [parity_folder / f"{sum_.hex()[:16]}.{row:03}" for row in range(rows)]
        self.parity_files = [name.read_bytes() if name.is_file() else b"" for name in names]
        index = next((i for i in (checked(data, b"\x89TSP\r\n\x1a\n") for data in self.parity_files)
                      if i and hashlib.sha256(i).digest() == sum_), None)
        if index is None:
            sys.exit(f"no index of segment {sum_.hex()[:16]} can be read: its files cannot be restored")
        self.b, self.k, self.m, self.groups, _, files, pieces, _, name_bytes = struct.unpack_from("<8IQ", index, 24)
        crcs_at = 64 + 64 * files + 32 * pieces
        names_at = crcs_at + (4 * self.m * self.groups + 7) // 8 * 8
        self.files = []
        for at in range(64, 64 + 64 * files, 64):
            size, time, mode, length, name, digest = struct.unpack_from("<QqIIQ32s", index, at)
            path = os.fsdecode(index[names_at + name:names_at + name + length])  # whatever bytes the file system had
            if os.path.isabs(path) or ".." in path.split("/"):
                sys.exit(f"a name leads out of the archive: {path!r}")
            self.files.append((path, size, time, mode, digest))
        self.pieces = [struct.unpack_from("<IIQIII", index, at) for at in range(64 + 64 * files, crcs_at, 32)]
        crcs = np.frombuffer(index, "<u4", self.m * self.groups, crcs_at).reshape(self.m, self.groups)
        begin = (len(index) + 32 + 63) // 64 * 64
        self.parity = {}  # the good ones, by row and group
        for i, data in enumerate(self.parity_files):
            for g in range(self.groups):
                block = data[begin + g * self.b:begin + (g + 1) * self.b]
                if len(block) == self.b and zlib.crc32(block) == crcs[i, g]:
                    self.parity[i, g] = np.frombuffer(block, np.uint8)

    def coefficient(self, i, j):
        return inverse((self.k + i) ^ j)

    def restore(self, found):
        """Gives found[path], a file's bytes, all of its pieces in this segment that are good or can be computed."""
        by_group = {}
        for file, block, offset, length, place, crc in self.pieces:
            path = self.files[file][0]
            good = zlib.crc32(found[path].old[offset:offset + length]) == crc and offset + length <= len(found[path].old)
            by_group.setdefault(block % self.groups, []).append((path, block // self.groups, offset, length, place, good))
        for g, pieces in by_group.items():
            if any(not piece[5] for piece in pieces):
                self.solve(g, pieces)(found)
            for path, _, offset, length, _, good in pieces:
                if good:
                    found[path].new[offset:offset + length] = found[path].old[offset:offset + length]

    def solve(self, g, pieces):
        def put(found):
            data = np.zeros((self.k, self.b), np.uint8)
            for path, row, offset, length, place, good in pieces:
                if good:
                    data[row, place:place + length] = np.frombuffer(found[path].old[offset:offset + length], np.uint8)
            rows = [i for i in range(self.m) if (i, g) in self.parity]
            syndromes = {i: self.parity[i, g].copy() for i in rows}
            for i in rows:
                for j in range(self.k):
                    syndromes[i] ^= TIMES[self.coefficient(i, j)][data[j]]
            bad = [piece for piece in pieces if not piece[5]]
            cuts = sorted({place for p in bad for place in (p[4], p[4] + p[3])})
            for begin, end in zip(cuts, cuts[1:]):
                erased = sorted({p[1] for p in bad if p[4] < end and begin < p[4] + p[3]})
                if not erased or len(erased) > len(rows):
                    continue  # nothing to do, or lost: the file's SHA-256 tells
                used = rows[:len(erased)]
                matrix = invert([[self.coefficient(i, j) for j in erased] for i in used])
                for j, factors in zip(erased, matrix):
                    for i, factor in zip(used, factors):
                        data[j, begin:end] ^= TIMES[factor][syndromes[i][begin:end]]
            for path, row, offset, length, place, _ in bad:
                found[path].new[offset:offset + length] = data[row, place:place + length].tobytes()
        return put


class File:
    def __init__(self, archive, record):
        self.path = archive / record[0]
        self.record = record
        self.old = self.path.read_bytes() if self.path.is_file() else b""
        self.new = bytearray(record[1])
        self.intact = self.path.is_file() and self.is_sealed(self.old)

    def is_sealed(self, data):
        return len(data) == self.record[1] and hashlib.sha256(data).digest() == self.record[4]


def main():
    sys.stdout.reconfigure(errors="backslashreplace")
    words = [word for word in sys.argv[1:] if word != "--dry-run"]
    archive = pathlib.Path(words[0])
    seal = words[1] if len(words) > 1 else ".tessera"
    folder = archive / seal / "parity"
    roots = [folder / f"root.{i}" for i in range(3)]
    root = next((r for r in (checked(p.read_bytes(), b"\x89TSR\r\n\x1a\n") for p in roots if p.is_file()) if r), None)
    if root is None:
        sys.exit("no root can be read")
    count = struct.unpack_from("<I", root, 24)[0]
    named = [struct.unpack_from("<32sQI", root, 128 + 48 * i) for i in range(count)]
    segments = [Segment(archive, folder, sum_, rows) for sum_, _, rows in named]
    found = {record[0]: File(archive, record) for segment in segments for record in segment.files}
    for segment in segments:
        segment.restore(found)
    lost = 0
    for path, file in sorted(found.items()):
        if file.intact:
            continue
        if not file.is_sealed(bytes(file.new)):
            print(f"lost: {path}")
            lost += 1
            continue
        print(f"restored: {path}")
        if "--dry-run" not in sys.argv:
            file.path.parent.mkdir(parents=True, exist_ok=True)
            temporary = file.path.with_name(".restored")
            temporary.write_bytes(file.new)
            os.utime(temporary, ns=(file.record[2], file.record[2]))
            os.chmod(temporary, file.record[3])
            temporary.replace(file.path)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
