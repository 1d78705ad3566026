#include "plain_grid.h"

#include <blosc.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <type_traits>

namespace plain {

namespace {

[[noreturn]] void fail(const std::string& what) {
    std::perror(what.c_str());
    std::exit(2);
}

std::string path_of(const Grid& a, const Dims& chunk) {
    std::string path = a.folder + "/";
    for (std::size_t d = 0; d < chunk.size(); ++d) path += (d > 0 ? "." : "") + std::to_string(chunk[d]);
    return path;
}

struct Scratch {
    std::vector<std::byte> file;
    std::vector<std::byte> chunk;
};

std::size_t chunk_bytes(const Grid& a) {
    std::size_t n = a.item;
    for (const auto c : a.chunks) n *= static_cast<std::size_t>(c);
    return n;
}

template <class T>
T swapped(T v) {
    if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(v));
    if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(v));
    if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(v));
    return v;
}

/// Calls body(T{}) with an unsigned integer of this size; 16 bytes are a complex number, swapped in halves.
template <class Body>
void with_bits(std::size_t item, const Body& body) {
    if (item == 1) body(std::uint8_t{});
    if (item == 2) body(std::uint16_t{});
    if (item == 4) body(std::uint32_t{});
    if (item == 8) body(std::uint64_t{});
    if (item == 16) body(std::array<std::uint64_t, 2>{});
}

template <class T>
void each_delta(std::byte* bytes, std::size_t size, bool big, bool undo) {
    using Bits =
        std::conditional_t<sizeof(T) == 1, std::uint8_t,
                           std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                              std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
    const auto load = [&](std::byte* p) {
        Bits bits;
        std::memcpy(&bits, p, sizeof bits);
        if (big) bits = swapped(bits);
        T v;
        std::memcpy(&v, &bits, sizeof v);
        return v;
    };
    T before{};
    for (std::byte* p = bytes; p < bytes + size; p += sizeof(T)) {
        const T v = load(p);
        T now = static_cast<T>(undo ? before + v : v - before);
        before = undo ? now : v;
        Bits bits;
        std::memcpy(&bits, &now, sizeof bits);
        if (big) bits = swapped(bits);
        std::memcpy(p, &bits, sizeof bits);
    }
}

void delta(const Grid& a, std::vector<std::byte>& chunk, bool undo) {
    const auto run = [&](auto type) { each_delta<decltype(type)>(chunk.data(), chunk.size(), a.big_endian, undo); };
    if (a.kind == 'f') return a.item == 4 ? run(float{}) : run(double{});
    if (a.item == 1) return run(std::uint8_t{});
    if (a.item == 2) return run(std::uint16_t{});
    if (a.item == 4) return run(std::uint32_t{});
    run(std::uint64_t{});
}

void load(const Grid& a, const Dims& chunk, Scratch& s) {
    const std::string path = path_of(a, chunk);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (fd < 0 || ::fstat(fd, &status) != 0) fail(path);
    const auto size = static_cast<std::size_t>(status.st_size);
    std::byte* const to = a.codec == "none" ? s.chunk.data() : s.file.data();
    if (::read(fd, to, size) != status.st_size) fail(path);
    ::close(fd);
    if (a.codec == "zstd") {
        ZSTD_decompress(s.chunk.data(), s.chunk.size(), s.file.data(), size);
    } else if (a.codec != "none") {
        blosc_decompress_ctx(s.file.data(), s.chunk.data(), s.chunk.size(), 1);
    }
    if (a.delta) delta(a, s.chunk, true);
}

void save(const Grid& a, const Dims& chunk, Scratch& s) {
    if (a.delta) delta(a, s.chunk, false);
    const std::byte* from = s.file.data();
    std::size_t size = 0;
    if (a.codec == "none") {
        from = s.chunk.data();
        size = s.chunk.size();
    } else if (a.codec == "zstd") {
        size = ZSTD_compress(s.file.data(), s.file.size(), s.chunk.data(), s.chunk.size(), 1);
    } else {
        size =
            static_cast<std::size_t>(blosc_compress_ctx(5, a.shuffle, a.item, s.chunk.size(), s.chunk.data(),
                                                        s.file.data(), s.file.size(), a.codec.substr(6).c_str(), 0, 1));
    }
    const std::string path = path_of(a, chunk);
    const std::string written = a.renames ? path + ".tmp" : path;
    const int fd = ::open(written.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || ::write(fd, from, size) != static_cast<ssize_t>(size)) fail(written);
    ::close(fd);
    if (a.renames && ::rename(written.c_str(), path.c_str()) != 0) fail(path);
}

struct Loop {
    std::int64_t n;
    std::int64_t memory;
    std::int64_t chunk;
};

template <class T, bool Into>
void rows(const std::vector<Loop>& loops, std::size_t depth, std::byte* memory, std::byte* chunk, bool swap) {
    const Loop l = loops[depth];
    if (depth + 1 < loops.size()) {
        for (std::int64_t i = 0; i < l.n; ++i) {
            rows<T, Into>(loops, depth + 1, memory + i * l.memory, chunk + i * l.chunk, swap);
        }
        return;
    }
    std::byte* to = Into ? memory : chunk;
    const std::byte* from = Into ? chunk : memory;
    const std::int64_t to_step = Into ? l.memory : l.chunk;
    const std::int64_t from_step = Into ? l.chunk : l.memory;
    constexpr auto item = static_cast<std::int64_t>(sizeof(T));
    if (to_step == item && from_step == item && !swap) {
        std::memcpy(to, from, static_cast<std::size_t>(l.n * item));
        return;
    }
    const auto one = [&](std::byte* t, const std::byte* f) {
        T v;
        std::memcpy(&v, f, sizeof v);
        if (swap) {
            if constexpr (sizeof(T) == 16) {
                v = {swapped(v[0]), swapped(v[1])};
            } else {
                v = swapped(v);
            }
        }
        std::memcpy(t, &v, sizeof v);
    };
    if (to_step == item && from_step == item) {
        for (std::int64_t i = 0; i < l.n; ++i) one(to + i * item, from + i * item);
    } else {
        for (std::int64_t i = 0; i < l.n; ++i) one(to + i * to_step, from + i * from_step);
    }
}

/// Of what is picked, the first and how many lie in [begin, end), in the order of memory.
std::pair<std::int64_t, std::int64_t> within(const Axis& x, std::int64_t begin, std::int64_t end) {
    const auto below = [&](std::int64_t place) {  // how many of start, start + |step|, … are below a place
        const std::int64_t step = std::abs(x.step);
        const std::int64_t low = x.step > 0 ? x.start : x.start + (x.count - 1) * x.step;
        return std::clamp<std::int64_t>(place <= low ? 0 : (place - low + step - 1) / step, 0, x.count);
    };
    const std::int64_t first = below(begin);
    const std::int64_t n = below(end) - first;
    return {x.step > 0 ? first : x.count - first - n, n};
}

/// Of what is picked, what lies in one chunk.
struct Part {
    bool all = true;    ///< of the chunk, inside the array
    bool edge = false;  ///< the chunk ends beyond the array
    bool none = false;
    std::int64_t to = 0;    ///< bytes from the memory's start
    std::int64_t from = 0;  ///< bytes from the chunk's start
    std::vector<Loop> loops;
};

Part part_of(const Grid& a, const std::vector<Axis>& axes, const Dims& chunk) {
    const std::size_t rank = a.shape.size();
    Part part;
    part.loops.resize(rank);
    auto step = static_cast<std::int64_t>(a.item);  // of dimension d in the chunk
    for (std::size_t i = 0; i < rank; ++i) {
        const std::size_t d = a.fortran ? i : rank - 1 - i;
        const std::int64_t begin = chunk[d] * a.chunks[d];
        const std::int64_t end = std::min(begin + a.chunks[d], a.shape[d]);
        const auto [first, n] = within(axes[d], begin, end);
        part.all = part.all && n == end - begin;
        part.none = part.none || n == 0;
        part.edge = part.edge || end - begin < a.chunks[d];
        part.to += first * axes[d].stride;
        part.from += (axes[d].start + first * axes[d].step - begin) * step;
        part.loops[d] = {n, axes[d].stride, step * axes[d].step};
        step *= a.chunks[d];
    }
    return part;
}

template <bool Into>
void copy_part(const Grid& a, Part& part, std::byte* memory, Scratch& s, bool swap) {
    // The smallest steps of what is written innermost.
    std::stable_sort(part.loops.begin(), part.loops.end(), [](const Loop& x, const Loop& y) {
        return Into ? std::abs(x.memory) > std::abs(y.memory) : std::abs(x.chunk) > std::abs(y.chunk);
    });
    with_bits(a.item, [&](auto type) {
        rows<decltype(type), Into>(part.loops, 0, memory + part.to, s.chunk.data() + part.from, swap);
    });
}

/// The chunks that something is picked from.
struct Touched {
    Touched(const Grid& a, const std::vector<Axis>& axes) : low(axes.size()), count(axes.size()) {
        for (std::size_t d = 0; d < axes.size(); ++d) {
            const Axis& x = axes[d];
            const std::int64_t last = x.start + (x.count - 1) * x.step;
            low[d] = std::min(x.start, last) / a.chunks[d];
            count[d] = std::max(x.start, last) / a.chunks[d] - low[d] + 1;
            total *= count[d];
        }
    }
    [[nodiscard]] Dims at(std::int64_t n) const {
        Dims chunk(low);
        for (std::size_t d = low.size(); d-- > 0; n /= count[d]) chunk[d] += n % count[d];
        return chunk;
    }
    Dims low;
    Dims count;
    std::int64_t total = 1;
};

Scratch& scratch_for(const Grid& a) {
    static thread_local Scratch s;
    s.chunk.resize(chunk_bytes(a));
    s.file.resize(std::max(ZSTD_compressBound(s.chunk.size()), s.chunk.size() + BLOSC_MAX_OVERHEAD));
    return s;
}

template <bool Into>
void each_chunk(const Grid& a, const std::vector<Axis>& axes, std::byte* memory, bool swap, int threads) {
    const Touched touched(a, axes);
    std::atomic<std::int64_t> next{0};
    const auto work = [&] {
        Scratch& s = scratch_for(a);
        for (std::int64_t n = next++; n < touched.total; n = next++) {
            const Dims chunk = touched.at(n);
            Part part = part_of(a, axes, chunk);
            if (part.none) continue;
            if (Into || !part.all) {
                load(a, chunk, s);
            } else if (part.edge) {
                // Not what the chunk before it had there, and nothing beside which a difference of floats is lost.
                std::ranges::fill(s.chunk, std::byte{0});
            }
            copy_part<Into>(a, part, memory, s, swap);
            if (!Into) save(a, chunk, s);
        }
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work);
    work();
    for (auto& t : others) t.join();
}

}  // namespace

void read(const Grid& a, const std::vector<Axis>& axes, std::byte* out, bool swap, int threads) {
    each_chunk<true>(a, axes, out, swap, threads);
}

void write(const Grid& a, const std::vector<Axis>& axes, const std::byte* in, bool swap, int threads) {
    each_chunk<false>(a, axes, const_cast<std::byte*>(in), swap, threads);
}

void read_many(const Grid& a, const std::vector<std::vector<Axis>>& boxes, const std::vector<std::byte*>& out,
               bool swap) {
    std::map<Dims, std::vector<std::size_t>> by_chunk;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        const Touched touched(a, boxes[i]);
        for (std::int64_t n = 0; n < touched.total; ++n) by_chunk[touched.at(n)].push_back(i);
    }
    Scratch& s = scratch_for(a);
    for (const auto& [chunk, which] : by_chunk) {
        load(a, chunk, s);
        for (const std::size_t i : which) {
            Part part = part_of(a, boxes[i], chunk);
            copy_part<true>(a, part, out[i], s, swap);
        }
    }
}

}  // namespace plain
