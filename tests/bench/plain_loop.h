// The yardstick: the shortest honest program that does the same work with c-blosc and system calls alone.
//
// Per chunk, with T threads: open, read, decompress into a scratch buffer, copy it row by row into the output; for
// writing gather, compress, write. No library, no checks, no temporary file and rename, no locks. Every figure of
// tests/bench is a ratio to one of these loops, taken in the same run.
//
// An array has one to three dimensions, and is read into and written from memory in the machine's byte order: that is
// all the workloads need.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plain {

enum class Compressor : std::uint8_t { blosc_lz4, zstd, none };  ///< lz4 level 5 with shuffle; zstd level 3

/// A Zarr v2 array as the loops see it. Fewer than three dimensions: the first ones have length 1.
struct Layout {
    std::string folder;
    std::array<std::int64_t, 3> shape{1, 1, 1};
    std::array<std::int64_t, 3> chunks{1, 1, 1};
    int rank = 3;
    std::size_t item = 4;  ///< bytes of an element
    Compressor compressor = Compressor::blosc_lz4;
    bool big_endian = false;  ///< what is stored
    bool renames = false;     ///< writes a temporary file and renames it, as whoever replaces files as a whole has to

    [[nodiscard]] std::size_t bytes() const;
    [[nodiscard]] std::size_t chunk_bytes() const;
};

using Point = std::array<std::int64_t, 3>;
struct Box {
    Point start;
    Point extent;
};

void read_all(const Layout& a, std::byte* out, int threads);
void write_all(const Layout& a, const std::byte* in, int threads);
/// Packed elements of a box, chunk by chunk.
void read_box(const Layout& a, const Box& box, std::byte* out);
/// In place: each chunk read unless all of it is new, changed in memory, written.
void write_box(const Layout& a, const Box& box, const std::byte* in);
void read_box(const Layout& a, const Box& box, std::byte* out, int threads);
void write_box(const Layout& a, const Box& box, const std::byte* in, int threads);
/// One element by blosc_getitem, or read alone where nothing is compressed.
void read_item(const Layout& a, const Point& place, std::byte* out);
/// Boxes of one extent, one behind the other in memory: each chunk that any touches is read once.
void read_many(const Layout& a, const std::vector<Box>& boxes, std::byte* out);

/// From chunks of one array to those of another, a slab at a time: as thick as the thicker chunk, along the dimension
/// where that is the smallest part of the array.
void rechunk(Layout from, Layout to, int threads);

}  // namespace plain
