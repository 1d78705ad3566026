// The plain loop for any array: what `sweep` compares with. As plain_loop.h, but of any rank, codec and memory.
//
// Per chunk, with T threads: open, read, decompress into a scratch buffer, undo the filter there, copy rows into the
// output, or elements where a side has gaps, swapping bytes on the way; for writing the other way round. No library, no
// checks, no temporary file and rename, no locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace plain {

using Dims = std::vector<std::int64_t>;

struct Grid {
    std::string folder;
    Dims shape;
    Dims chunks;
    std::size_t item = 4;
    char kind = 'f';          ///< of the elements, for the filter: f, i or u (else taken as u)
    std::string codec;        ///< none, zstd, or blosc's "lz4" or "zstd"
    int shuffle = 1;          ///< blosc's
    bool delta = false;       ///< each element less the one before it
    bool big_endian = false;  ///< in the file
    bool fortran = false;     ///< order of the elements in a chunk
    bool renames = false;     ///< writes a temporary file and renames it, as whoever replaces files as a whole has to
};

/// What is picked along a dimension, start, start + step, …, and where it lies in memory.
struct Axis {
    std::int64_t start;
    std::int64_t step;  ///< not 0
    std::int64_t count;
    std::int64_t stride;  ///< bytes of memory from one to the next
};

/// `swap`: the memory has not the byte order of the file.
void read(const Grid& a, const std::vector<Axis>& axes, std::byte* out, bool swap, int threads);
/// In place: each chunk read unless all of it is new, changed in memory, written.
void write(const Grid& a, const std::vector<Axis>& axes, const std::byte* in, bool swap, int threads);

/// Many boxes: for each chunk that any touches, read once, the parts of all.
void read_many(const Grid& a, const std::vector<std::vector<Axis>>& boxes, const std::vector<std::byte*>& out,
               bool swap);

}  // namespace plain
