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
#include <memory>
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

/// What a thread keeps from chunk to chunk.
struct Scratch {
    void fit(const Layout& a) {
        file.resize(a.chunk_bytes() + a.chunk_bytes() / 64 + 1024);
        chunk.resize(a.chunk_bytes());
    }
    std::vector<std::byte> file;
    std::vector<std::byte> chunk;
    std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> decoder{ZSTD_createDCtx(), ZSTD_freeDCtx};
    std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> encoder{ZSTD_createCCtx(), ZSTD_freeCCtx};
};

void load(const Layout& a, const Point& chunk, Scratch& s) {
    const std::string path = path_of(a, chunk);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (fd < 0 || ::fstat(fd, &status) != 0) fail(path);
    const auto size = static_cast<std::size_t>(status.st_size);
    if (::read(fd, s.file.data(), size) != status.st_size) fail(path);
    ::close(fd);
    if (a.compressor == Compressor::none) {
        s.chunk.assign(s.file.begin(), s.file.begin() + static_cast<std::ptrdiff_t>(size));
    } else if (a.compressor == Compressor::zstd) {
        ZSTD_decompressDCtx(s.decoder.get(), s.chunk.data(), s.chunk.size(), s.file.data(), size);
    } else {
        blosc_decompress_ctx(s.file.data(), s.chunk.data(), s.chunk.size(), 1);
    }
}

void save(const Layout& a, const Point& chunk, Scratch& s) {
    const std::size_t size =
        a.compressor == Compressor::zstd
            ? ZSTD_compressCCtx(s.encoder.get(), s.file.data(), s.file.size(), s.chunk.data(), s.chunk.size(), 3)
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

/// Calls body(chunk, where its part starts in the chunk, the part's extent, where it starts in the box, scratch) for
/// every chunk that a box touches, from so many threads.
template <class Body>
void each_chunk(const Layout& a, const Box& box, int threads, const Body& body) {
    Point low{};
    Point count{};
    for (int d = 0; d < 3; ++d) {
        low[d] = box.start[d] / a.chunks[d];
        count[d] = (box.start[d] + box.extent[d] - 1) / a.chunks[d] - low[d] + 1;
    }
    std::atomic<std::int64_t> next{0};
    const auto work = [&] {
        static thread_local Scratch scratch;
        scratch.fit(a);
        for (std::int64_t n = next++; n < count[0] * count[1] * count[2]; n = next++) {
            const Point chunk{low[0] + n / (count[1] * count[2]), low[1] + n / count[2] % count[1],
                              low[2] + n % count[2]};
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
            body(chunk, start, extent, in_box, scratch);
        }
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work);
    work();
    for (auto& t : others) t.join();
}

/// A row, or a single element without a call.
void copy_row(std::byte* to, const std::byte* from, std::size_t n) {
    if (n == 4) {
        std::memcpy(to, from, 4);
    } else {
        std::memcpy(to, from, n);
    }
}

std::size_t offset_of(const Box& box, const Point& p, std::size_t item) {
    return static_cast<std::size_t>((p[0] * box.extent[1] + p[1]) * box.extent[2] + p[2]) * item;
}

void read_box(const Layout& a, const Box& box, std::byte* out, int threads) {
    const std::size_t row = static_cast<std::size_t>(box.extent[2]) * a.item;
    const std::size_t plane = row * static_cast<std::size_t>(box.extent[1]);
    each_chunk(a, box, threads,
               [&](const Point& chunk, const Point& start, const Point& extent, const Point& in_box, Scratch& s) {
                   load(a, chunk, s);
                   std::byte* to = out + offset_of(box, in_box, a.item);
                   each_row(a, start, extent, plane, row, [&](std::size_t there, std::size_t here, std::size_t n) {
                       copy_row(to + there, s.chunk.data() + here, n);
                   });
               });
}

void write_box(const Layout& a, const Box& box, const std::byte* in, int threads) {
    const std::size_t row = static_cast<std::size_t>(box.extent[2]) * a.item;
    const std::size_t plane = row * static_cast<std::size_t>(box.extent[1]);
    each_chunk(a, box, threads,
               [&](const Point& chunk, const Point& start, const Point& extent, const Point& in_box, Scratch& s) {
                   if (extent != a.chunks) load(a, chunk, s);
                   const std::byte* from = in + offset_of(box, in_box, a.item);
                   each_row(a, start, extent, plane, row, [&](std::size_t there, std::size_t here, std::size_t n) {
                       copy_row(s.chunk.data() + here, from + there, n);
                   });
                   save(a, chunk, s);
               });
}

}  // namespace

std::size_t Layout::bytes() const {
    return static_cast<std::size_t>(shape[0] * shape[1] * shape[2]) * item;
}

std::size_t Layout::chunk_bytes() const {
    return static_cast<std::size_t>(chunks[0] * chunks[1] * chunks[2]) * item;
}

void read_all(const Layout& a, std::byte* out, int threads) {
    read_box(a, {{}, a.shape}, out, threads);
}

void write_all(const Layout& a, const std::byte* in, int threads) {
    write_box(a, {{}, a.shape}, in, threads);
}

void read_box(const Layout& a, const Box& box, std::byte* out) {
    read_box(a, box, out, 1);
}

void write_box(const Layout& a, const Box& box, const std::byte* in) {
    write_box(a, box, in, 1);
}

void rechunk(const Layout& from, const Layout& to, int threads) {
    Point thick{};
    int along = 0;
    for (int d = 0; d < 3; ++d) {
        thick[d] = std::max(from.chunks[d], to.chunks[d]);
        if (thick[d] * from.shape[along] < thick[along] * from.shape[d]) along = d;
    }
    Box slab{{}, from.shape};
    slab.extent[along] = thick[along];
    std::vector<std::byte> memory(from.bytes() / static_cast<std::size_t>(from.shape[along] / thick[along]));
    for (; slab.start[along] < from.shape[along]; slab.start[along] += thick[along]) {
        read_box(from, slab, memory.data(), threads);
        write_box(to, slab, memory.data(), threads);
    }
}

}  // namespace plain
