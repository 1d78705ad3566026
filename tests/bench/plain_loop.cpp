#include "plain_loop.h"

#include <blosc.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace plain {

namespace {

[[noreturn]] void fail(const std::string& what) {
    std::perror(what.c_str());
    std::exit(2);
}

std::string path_of(const Layout& a, const Point& chunk) {
    std::string path = a.folder + "/";
    for (int d = 3 - a.rank; d < 3; ++d) {
        path += std::to_string(chunk[d]);
        if (d < 2) path += '.';
    }
    return path;
}

/// What a loop keeps from chunk to chunk.
struct Scratch {
    explicit Scratch(const Layout& a) : file(a.chunk_bytes() + a.chunk_bytes() / 64 + 1024), chunk(a.chunk_bytes()) {}
    std::vector<std::byte> file;
    std::vector<std::byte> chunk;
};

void load(const Layout& a, const Point& chunk, Scratch& s) {
    const std::string path = path_of(a, chunk);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (fd < 0 || ::fstat(fd, &status) != 0) fail(path);
    const auto size = static_cast<std::size_t>(status.st_size);
    if (::read(fd, s.file.data(), size) != status.st_size) fail(path);
    ::close(fd);
    if (a.compressor == Compressor::zstd) {
        ZSTD_decompress(s.chunk.data(), s.chunk.size(), s.file.data(), size);
    } else {
        blosc_decompress_ctx(s.file.data(), s.chunk.data(), s.chunk.size(), 1);
    }
}

void save(const Layout& a, const Point& chunk, Scratch& s) {
    const std::size_t size =
        a.compressor == Compressor::zstd
            ? ZSTD_compress(s.file.data(), s.file.size(), s.chunk.data(), s.chunk.size(), 3)
            : static_cast<std::size_t>(blosc_compress_ctx(5, 1, a.item, s.chunk.size(), s.chunk.data(), s.file.data(),
                                                          s.file.size(), "lz4", 0, 1));
    const std::string path = path_of(a, chunk);
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || ::write(fd, s.file.data(), size) != static_cast<ssize_t>(size)) fail(path);
    ::close(fd);
}

/// Rows between memory with these strides and a packed chunk; the part of the chunk is [start, start + extent).
template <class Copy>
void each_row(const Layout& a, const Point& start, const Point& extent, std::size_t plane, std::size_t row,
              const Copy& copy) {
    for (std::int64_t i = 0; i < extent[0]; ++i) {
        for (std::int64_t j = 0; j < extent[1]; ++j) {
            const auto in_chunk = ((start[0] + i) * a.chunks[1] + start[1] + j) * a.chunks[2] + start[2];
            copy(static_cast<std::size_t>(i) * plane + static_cast<std::size_t>(j) * row,
                 static_cast<std::size_t>(in_chunk) * a.item, static_cast<std::size_t>(extent[2]) * a.item);
        }
    }
}

/// Calls body(chunk, scratch) for every chunk, from so many threads.
template <class Body>
void each_chunk(const Layout& a, int threads, const Body& body) {
    const Point grid{a.shape[0] / a.chunks[0], a.shape[1] / a.chunks[1], a.shape[2] / a.chunks[2]};
    std::atomic<std::int64_t> next{0};
    const auto work = [&] {
        Scratch scratch(a);
        for (std::int64_t n = next++; n < grid[0] * grid[1] * grid[2]; n = next++) {
            body(Point{n / (grid[1] * grid[2]), n / grid[2] % grid[1], n % grid[2]}, scratch);
        }
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work);
    work();
    for (auto& t : others) t.join();
}

std::size_t offset_of(const Layout& a, const Point& p) {
    return static_cast<std::size_t>((p[0] * a.shape[1] + p[1]) * a.shape[2] + p[2]) * a.item;
}

Point first_of(const Layout& a, const Point& chunk) {
    return {chunk[0] * a.chunks[0], chunk[1] * a.chunks[1], chunk[2] * a.chunks[2]};
}

/// Calls body(chunk, where its part starts in the chunk, the part's extent, where it starts in the box).
template <class Body>
void each_touched(const Layout& a, const Box& box, const Body& body) {
    Point low{};
    Point high{};
    for (int d = 0; d < 3; ++d) {
        low[d] = box.start[d] / a.chunks[d];
        high[d] = (box.start[d] + box.extent[d] - 1) / a.chunks[d];
    }
    for (std::int64_t i = low[0]; i <= high[0]; ++i) {
        for (std::int64_t j = low[1]; j <= high[1]; ++j) {
            for (std::int64_t k = low[2]; k <= high[2]; ++k) {
                const Point chunk{i, j, k};
                Point start{};
                Point extent{};
                Point in_box{};
                for (int d = 0; d < 3; ++d) {
                    const std::int64_t first = std::max(box.start[d], chunk[d] * a.chunks[d]);
                    const std::int64_t end = std::min(box.start[d] + box.extent[d], (chunk[d] + 1) * a.chunks[d]);
                    start[d] = first - chunk[d] * a.chunks[d];
                    extent[d] = end - first;
                    in_box[d] = first - box.start[d];
                }
                body(chunk, start, extent, in_box);
            }
        }
    }
}

}  // namespace

std::size_t Layout::bytes() const {
    return static_cast<std::size_t>(shape[0] * shape[1] * shape[2]) * item;
}

std::size_t Layout::chunk_bytes() const {
    return static_cast<std::size_t>(chunks[0] * chunks[1] * chunks[2]) * item;
}

void read_all(const Layout& a, std::byte* out, int threads) {
    const std::size_t row = static_cast<std::size_t>(a.shape[2]) * a.item;
    each_chunk(a, threads, [&](const Point& chunk, Scratch& s) {
        load(a, chunk, s);
        std::byte* to = out + offset_of(a, first_of(a, chunk));
        each_row(a, {}, a.chunks, row * static_cast<std::size_t>(a.shape[1]), row,
                 [&](std::size_t there, std::size_t here, std::size_t n) {
                     std::memcpy(to + there, s.chunk.data() + here, n);
                 });
    });
}

void write_all(const Layout& a, const std::byte* in, int threads) {
    const std::size_t row = static_cast<std::size_t>(a.shape[2]) * a.item;
    each_chunk(a, threads, [&](const Point& chunk, Scratch& s) {
        const std::byte* from = in + offset_of(a, first_of(a, chunk));
        each_row(a, {}, a.chunks, row * static_cast<std::size_t>(a.shape[1]), row,
                 [&](std::size_t there, std::size_t here, std::size_t n) {
                     std::memcpy(s.chunk.data() + here, from + there, n);
                 });
        save(a, chunk, s);
    });
}

void read_box(const Layout& a, const Box& box, std::byte* out) {
    static thread_local Scratch s(a);  // two threads read two arrays of one layout
    if (s.chunk.size() != a.chunk_bytes()) s = Scratch(a);
    const std::size_t row = static_cast<std::size_t>(box.extent[2]) * a.item;
    const std::size_t plane = row * static_cast<std::size_t>(box.extent[1]);
    each_touched(a, box, [&](const Point& chunk, const Point& start, const Point& extent, const Point& in_box) {
        load(a, chunk, s);
        std::byte* to = out + static_cast<std::size_t>(in_box[0]) * plane + static_cast<std::size_t>(in_box[1]) * row +
                        static_cast<std::size_t>(in_box[2]) * a.item;
        each_row(a, start, extent, plane, row, [&](std::size_t there, std::size_t here, std::size_t n) {
            std::memcpy(to + there, s.chunk.data() + here, n);
        });
    });
}

void write_box(const Layout& a, const Box& box, const std::byte* in) {
    static thread_local Scratch s(a);
    if (s.chunk.size() != a.chunk_bytes()) s = Scratch(a);
    const std::size_t row = static_cast<std::size_t>(box.extent[2]) * a.item;
    const std::size_t plane = row * static_cast<std::size_t>(box.extent[1]);
    each_touched(a, box, [&](const Point& chunk, const Point& start, const Point& extent, const Point& in_box) {
        if (extent != a.chunks) load(a, chunk, s);
        const std::byte* from = in + static_cast<std::size_t>(in_box[0]) * plane +
                                static_cast<std::size_t>(in_box[1]) * row +
                                static_cast<std::size_t>(in_box[2]) * a.item;
        each_row(a, start, extent, plane, row, [&](std::size_t there, std::size_t here, std::size_t n) {
            std::memcpy(s.chunk.data() + here, from + there, n);
        });
        save(a, chunk, s);
    });
}

void rechunk(const Layout& from, const Layout& to) {
    const std::int64_t thick = std::max(from.chunks[0], to.chunks[0]);
    Layout slab = to;
    slab.shape[0] = thick;
    std::vector<std::byte> memory(slab.bytes());
    for (std::int64_t first = 0; first < from.shape[0]; first += thick) {
        read_box(from, {{first, 0, 0}, {thick, from.shape[1], from.shape[2]}}, memory.data());
        write_box(to, {{first, 0, 0}, {thick, to.shape[1], to.shape[2]}}, memory.data());
    }
}

}  // namespace plain
