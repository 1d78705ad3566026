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
#include <map>
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

/// The file of a chunk to memory that has room for it; returns its size.
std::size_t read_file(const Layout& a, const Point& chunk, std::byte* to) {
    const std::string path = path_of(a, chunk);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (fd < 0 || ::fstat(fd, &status) != 0) fail(path);
    const auto size = static_cast<std::size_t>(status.st_size);
    if (::read(fd, to, size) != status.st_size) fail(path);
    ::close(fd);
    return size;
}

void load(const Layout& a, const Point& chunk, Scratch& s) {
    if (a.compressor == Compressor::none) {
        read_file(a, chunk, s.chunk.data());
        return;
    }
    const std::size_t size = read_file(a, chunk, s.file.data());
    if (a.compressor == Compressor::zstd) {
        ZSTD_decompressDCtx(s.decoder.get(), s.chunk.data(), s.chunk.size(), s.file.data(), size);
    } else {
        blosc_decompress_ctx(s.file.data(), s.chunk.data(), s.chunk.size(), 1);
    }
}

void save(const Layout& a, const Point& chunk, Scratch& s) {
    const std::byte* from = s.file.data();
    std::size_t size = s.chunk.size();
    if (a.compressor == Compressor::none) {
        from = s.chunk.data();
    } else if (a.compressor == Compressor::zstd) {
        size = ZSTD_compressCCtx(s.encoder.get(), s.file.data(), s.file.size(), s.chunk.data(), s.chunk.size(), 3);
    } else {
        size = static_cast<std::size_t>(blosc_compress_ctx(5, 1, a.item, s.chunk.size(), s.chunk.data(), s.file.data(),
                                                           s.file.size(), "lz4", 0, 1));
    }
    const std::string path = path_of(a, chunk);
    const std::string written = a.renames ? path + ".tmp" : path;
    const int fd = ::open(written.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || ::write(fd, from, size) != static_cast<ssize_t>(size)) fail(written);
    ::close(fd);
    if (a.renames && ::rename(written.c_str(), path.c_str()) != 0) fail(path);
}

/// What a box takes of a chunk.
struct Part {
    Point start;  ///< in the chunk
    Point extent;
    Point in_box;       ///< where it begins in the box
    bool all = true;    ///< of the chunk that lies in the array
    bool edge = false;  ///< the chunk ends beyond the array
};

Part part_of(const Layout& a, const Box& box, const Point& chunk) {
    Part part{};
    for (int d = 0; d < 3; ++d) {
        const std::int64_t begin = chunk[d] * a.chunks[d];
        const std::int64_t inside = std::min(a.chunks[d], a.shape[d] - begin);
        const std::int64_t first = std::max(box.start[d], begin);
        const std::int64_t end = std::min(box.start[d] + box.extent[d], begin + a.chunks[d]);
        part.start[d] = first - begin;
        part.extent[d] = end - first;
        part.in_box[d] = first - box.start[d];
        part.all = part.all && part.extent[d] == inside;
        part.edge = part.edge || inside < a.chunks[d];
    }
    return part;
}

template <class T>
void copy_turned(std::byte* to, const std::byte* from, std::size_t n) {
    for (std::size_t i = 0; i < n; i += sizeof(T)) {
        T v;
        std::memcpy(&v, from + i, sizeof v);
        if constexpr (sizeof(T) == 2) v = __builtin_bswap16(v);
        if constexpr (sizeof(T) == 4) v = __builtin_bswap32(v);
        if constexpr (sizeof(T) == 8) v = __builtin_bswap64(v);
        std::memcpy(to + i, &v, sizeof v);
    }
}

/// A row, or a single element without a call.
void copy_row(const Layout& a, std::byte* to, const std::byte* from, std::size_t n) {
    if (a.big_endian && a.item == 2) return copy_turned<std::uint16_t>(to, from, n);
    if (a.big_endian && a.item == 4) return copy_turned<std::uint32_t>(to, from, n);
    if (a.big_endian && a.item == 8) return copy_turned<std::uint64_t>(to, from, n);
    if (n == 4) {
        std::memcpy(to, from, 4);
    } else {
        std::memcpy(to, from, n);
    }
}

/// Rows between memory with these strides and a packed chunk.
template <class Copy>
void each_row(const Layout& a, const Part& part, std::size_t plane, std::size_t row, const Copy& copy) {
    for (std::int64_t i = 0; i < part.extent[0]; ++i) {
        for (std::int64_t j = 0; j < part.extent[1]; ++j) {
            const auto in_chunk = ((part.start[0] + i) * a.chunks[1] + part.start[1] + j) * a.chunks[2] + part.start[2];
            copy(static_cast<std::size_t>(i) * plane + static_cast<std::size_t>(j) * row,
                 static_cast<std::size_t>(in_chunk) * a.item, static_cast<std::size_t>(part.extent[2]) * a.item);
        }
    }
}

struct Touched {
    Touched(const Layout& a, const Box& box) {
        for (int d = 0; d < 3; ++d) {
            low[d] = box.start[d] / a.chunks[d];
            count[d] = (box.start[d] + box.extent[d] - 1) / a.chunks[d] - low[d] + 1;
        }
    }
    [[nodiscard]] std::int64_t total() const { return count[0] * count[1] * count[2]; }
    [[nodiscard]] Point at(std::int64_t n) const {
        return {low[0] + n / (count[1] * count[2]), low[1] + n / count[2] % count[1], low[2] + n % count[2]};
    }
    Point low{};
    Point count{};
};

Scratch& scratch_for(const Layout& a) {
    static thread_local Scratch scratch;
    scratch.fit(a);
    return scratch;
}

/// Calls body(chunk, scratch) for every chunk that a box touches, from so many threads.
template <class Body>
void each_chunk(const Layout& a, const Box& box, int threads, const Body& body) {
    const Touched touched(a, box);
    std::atomic<std::int64_t> next{0};
    const auto work = [&] {
        Scratch& scratch = scratch_for(a);
        for (std::int64_t n = next++; n < touched.total(); n = next++) body(touched.at(n), scratch);
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work);
    work();
    for (auto& t : others) t.join();
}

std::size_t offset_of(const Box& box, const Point& p, std::size_t item) {
    return static_cast<std::size_t>((p[0] * box.extent[1] + p[1]) * box.extent[2] + p[2]) * item;
}

/// Out of a chunk that is decoded.
void copy_out(const Layout& a, const Box& box, const Point& chunk, const Scratch& s, std::byte* out) {
    const Part part = part_of(a, box, chunk);
    const std::size_t row = static_cast<std::size_t>(box.extent[2]) * a.item;
    std::byte* to = out + offset_of(box, part.in_box, a.item);
    each_row(
        a, part, row * static_cast<std::size_t>(box.extent[1]), row,
        [&](std::size_t there, std::size_t here, std::size_t n) { copy_row(a, to + there, s.chunk.data() + here, n); });
}

}  // namespace

std::size_t Layout::bytes() const {
    return static_cast<std::size_t>(shape[0] * shape[1] * shape[2]) * item;
}

std::size_t Layout::chunk_bytes() const {
    return static_cast<std::size_t>(chunks[0] * chunks[1] * chunks[2]) * item;
}

void read_box(const Layout& a, const Box& box, std::byte* out, int threads) {
    each_chunk(a, box, threads, [&](const Point& chunk, Scratch& s) {
        load(a, chunk, s);
        copy_out(a, box, chunk, s, out);
    });
}

void write_box(const Layout& a, const Box& box, const std::byte* in, int threads) {
    const std::size_t row = static_cast<std::size_t>(box.extent[2]) * a.item;
    const std::size_t plane = row * static_cast<std::size_t>(box.extent[1]);
    each_chunk(a, box, threads, [&](const Point& chunk, Scratch& s) {
        const Part part = part_of(a, box, chunk);
        if (!part.all) {
            load(a, chunk, s);
        } else if (part.edge) {
            std::ranges::fill(s.chunk, std::byte{0xff});  // not what the chunk before it had there
        }
        const std::byte* from = in + offset_of(box, part.in_box, a.item);
        each_row(a, part, plane, row, [&](std::size_t there, std::size_t here, std::size_t n) {
            copy_row(a, s.chunk.data() + here, from + there, n);
        });
        save(a, chunk, s);
    });
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

void read_item(const Layout& a, const Point& place, std::byte* out) {
    const Part part = part_of(a, {place, {1, 1, 1}}, Touched(a, {place, {1, 1, 1}}).low);
    const Point chunk = Touched(a, {place, {1, 1, 1}}).low;
    const std::int64_t item = (part.start[0] * a.chunks[1] + part.start[1]) * a.chunks[2] + part.start[2];
    std::byte element[16];
    if (a.compressor == Compressor::none) {
        const std::string path = path_of(a, chunk);
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        const auto size = static_cast<ssize_t>(a.item);
        if (fd < 0 || ::pread(fd, element, a.item, item * size) != size) fail(path);
        ::close(fd);
    } else {
        Scratch& s = scratch_for(a);
        read_file(a, chunk, s.file.data());
        if (blosc_getitem(s.file.data(), static_cast<int>(item), 1, element) < 0) fail(path_of(a, chunk));
    }
    copy_row(a, out, element, a.item);
}

void read_many(const Layout& a, const std::vector<Box>& boxes, std::byte* out) {
    std::map<Point, std::vector<std::size_t>> by_chunk;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        const Touched touched(a, boxes[i]);
        for (std::int64_t n = 0; n < touched.total(); ++n) by_chunk[touched.at(n)].push_back(i);
    }
    Scratch& s = scratch_for(a);
    for (const auto& [chunk, which] : by_chunk) {
        load(a, chunk, s);
        for (const std::size_t i : which) {
            const Point& n = boxes[i].extent;
            copy_out(a, boxes[i], chunk, s, out + i * static_cast<std::size_t>(n[0] * n[1] * n[2]) * a.item);
        }
    }
}

void rechunk(Layout from, Layout to, int threads) {
    from.big_endian = to.big_endian = false;  // the bytes stay as they are
    Point thick{};
    int along = 0;
    for (int d = 0; d < 3; ++d) {
        thick[d] = std::max(from.chunks[d], to.chunks[d]);
        if (thick[d] * from.shape[along] < thick[along] * from.shape[d]) along = d;
    }
    Box slab{{}, from.shape};
    slab.extent[along] = thick[along];
    std::vector<std::byte> memory(from.bytes() / static_cast<std::size_t>(from.shape[along]) *
                                  static_cast<std::size_t>(thick[along]));
    for (; slab.start[along] < from.shape[along]; slab.start[along] += thick[along]) {
        slab.extent[along] = std::min(thick[along], from.shape[along] - slab.start[along]);
        read_box(from, slab, memory.data(), threads);
        write_box(to, slab, memory.data(), threads);
    }
}

}  // namespace plain
