// byte_runs.cpp explains which stores are used when. Streaming stores must write whole cache lines: a line that is
// written only in part by them goes to memory twice, and takes ten times as long.
#include "unshuffle.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tessera {

namespace {

/// Pointers to the planes (byte j of all elements), in the order in which the bytes come out.
template <std::size_t Size>
struct Planes {
    // The array is not zeroed first: that may become `rep stos`, which waits for all streaming stores.
    explicit Planes(const ShuffledBlock& block) {
        const std::size_t plane = block.bytes.size() / Size;
        const std::size_t turned = block.swapped ? Size - 1 : 0;
        for (std::size_t j = 0; j < Size; ++j) at[j] = block.bytes.data() + (j ^ turned) * plane;
    }
    const std::byte* operator[](std::size_t j) const { return at[j]; }
    std::array<const std::byte*, Size> at;
};

/// Unshuffles n elements from number `first` on.
template <std::size_t Size>
void unshuffle_portable(const Planes<Size>& planes, std::size_t first, std::size_t n, std::byte* to) {
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < Size; ++j) to[i * Size + j] = planes[j][first + i];
    }
}

Machine found_machine() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") == 0) return Machine::portable;
    const bool wide = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512vbmi") != 0;
    return wide ? Machine::avx512 : Machine::avx2;
#else
    return Machine::portable;
#endif
}

std::atomic<Machine>& machine() {
    static std::atomic<Machine> best = found_machine();
    return best;
}

#if defined(__x86_64__)

std::size_t before_line(const std::byte* p) {
    return (cache_line - reinterpret_cast<std::uintptr_t>(p) % cache_line) % cache_line;
}

// ---- AVX2

constexpr std::size_t lanes = 32;  // elements at a time

/// 32 elements of `Size` bytes, a power of two. Interleaving the first half of the planes with the second half, log2
/// of Size times, puts the bytes of each element side by side.
template <std::size_t Size, bool AroundCaches>
__attribute__((target("avx2"))) void unshuffle_32(const Planes<Size>& planes, std::size_t first, std::byte* to) {
    __m256i r[Size];
    __m256i next[Size];
    for (std::size_t j = 0; j < Size; ++j) {
        r[j] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(planes[j] + first));
    }
    for (std::size_t step = 1; step < Size; step *= 2) {
        for (std::size_t j = 0; j < Size / 2; ++j) {
            next[2 * j] = _mm256_unpacklo_epi8(r[j], r[j + Size / 2]);
            next[2 * j + 1] = _mm256_unpackhi_epi8(r[j], r[j + Size / 2]);
        }
        std::copy(next, next + Size, r);
    }
    // Unpacking stays within 128 bits: the low halves hold the first 16 elements, the high halves the others.
    for (std::size_t j = 0; j < Size / 2; ++j) {
        next[j] = _mm256_permute2x128_si256(r[2 * j], r[2 * j + 1], 0x20);
        next[Size / 2 + j] = _mm256_permute2x128_si256(r[2 * j], r[2 * j + 1], 0x31);
    }
    auto* out = reinterpret_cast<__m256i*>(to);
    for (std::size_t j = 0; j < Size; ++j) {
        if constexpr (AroundCaches) {
            _mm256_stream_si256(out + j, next[j]);
        } else {
            _mm256_storeu_si256(out + j, next[j]);
        }
    }
}

__attribute__((target("avx2"))) void copy_lines_avx2(std::byte* to, const std::byte* from, std::size_t n) {
    const std::size_t head = std::min(n, before_line(to));
    std::memcpy(to, from, head);
    std::size_t i = head;
    for (; i + cache_line <= n; i += cache_line) {
        const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
        const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i + lanes));
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i), a);
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i + lanes), b);
    }
    std::memcpy(to + i, from + i, n - i);
}

/// Fewer than 32 elements: unshuffles 32 that include them, into memory that stays in cache.
template <std::size_t Size>
__attribute__((target("avx2"))) void unshuffle_few(const Planes<Size>& planes, std::size_t plane, std::size_t first,
                                                   std::size_t n, std::byte* to, bool streaming) {
    if (n == 0) return;
    if (plane < lanes) return unshuffle_portable<Size>(planes, first, n, to);
    const std::size_t begin = std::min(first, plane - lanes);
    std::array<std::byte, lanes * Size> elements;
    unshuffle_32<Size, false>(planes, begin, elements.data());
    const std::byte* from = &elements[(first - begin) * Size];
    if (streaming) {
        copy_lines_avx2(to, from, n * Size);
    } else {
        std::memcpy(to, from, n * Size);
    }
}

template <std::size_t Size>
__attribute__((target("avx2"))) void unshuffle_avx2(const Planes<Size>& planes, std::size_t plane, std::size_t first,
                                                    std::size_t n, std::byte* to, bool streaming) {
    if (streaming && before_line(to) % Size == 0) {
        const std::size_t head = std::min(n, before_line(to) / Size);
        unshuffle_few<Size>(planes, plane, first, head, to, false);
        first += head;
        to += head * Size;
        for (n -= head; n >= lanes; n -= lanes, first += lanes, to += lanes * Size) {
            unshuffle_32<Size, true>(planes, first, to);
        }
    } else if (n >= lanes) {
        for (; n > lanes; n -= lanes, first += lanes, to += lanes * Size) {
            unshuffle_32<Size, false>(planes, first, to);
        }
        // The last elements; some are written twice.
        unshuffle_32<Size, false>(planes, first + n - lanes, to + n * Size - lanes * Size);
        return;
    }
    unshuffle_few<Size>(planes, plane, first, n, to, streaming);
}

/// Swaps whole pieces of 32 bytes from the front; returns the number of bytes done.
__attribute__((target("avx2"))) std::size_t copy_swapped_avx2(std::byte* to, const std::byte* from, std::size_t n,
                                                              std::size_t number) {
    alignas(lanes) std::array<std::uint8_t, lanes> places;
    for (std::size_t i = 0; i < lanes; ++i) places[i] = static_cast<std::uint8_t>(i % 16 ^ (number - 1));
    const __m256i order = _mm256_load_si256(reinterpret_cast<const __m256i*>(places.data()));
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_shuffle_epi8(v, order));
    }
    return i;
}

// ---- AVX-512

#define TESSERA_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi")))

TESSERA_AVX512 void copy_lines_avx512(std::byte* to, const std::byte* from, std::size_t n) {
    const std::size_t head = std::min(n, before_line(to));
    std::memcpy(to, from, head);
    std::size_t i = head;
    for (; i + cache_line <= n; i += cache_line) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
    }
    std::memcpy(to + i, from + i, n - i);
}

#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // what GCC's own headers leave undefined on purpose
#endif

/// The elements of one line from number `first` on: 64 / Size if All, else n. Loads the same number of bytes from each
/// plane, then puts the bytes of each element side by side.
template <std::size_t Size, bool All>
TESSERA_AVX512 inline __m512i line_of(const Planes<Size>& planes, std::size_t first, std::size_t n) {
    constexpr std::size_t count = cache_line / Size;
    alignas(64) static constexpr auto order = [] {
        std::array<std::uint8_t, 64> from{};
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i % Size * count + i / Size);
        return from;
    }();
    __m512i v = _mm512_setzero_si512();
    if constexpr (Size == 2) {
        __m256i half[2];
        for (std::size_t j = 0; j < 2; ++j) {
            const std::byte* p = planes[j] + first;
            half[j] = All ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
                          : _mm256_maskz_loadu_epi8(static_cast<__mmask32>((std::uint64_t{1} << n) - 1), p);
        }
        v = _mm512_inserti64x4(_mm512_castsi256_si512(half[0]), half[1], 1);
    } else {
        for (std::size_t j = 0; j < Size; ++j) {
            const std::byte* p = planes[j] + first;
            __m128i bytes;
            if constexpr (!All) {
                bytes = _mm_maskz_loadu_epi8(static_cast<__mmask16>((1U << n) - 1), p);
            } else if constexpr (Size == 4) {
                bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
            } else if constexpr (Size == 8) {
                bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
            } else {
                bytes = _mm_loadu_si32(p);
            }
            if constexpr (Size == 4) {
                v = _mm512_mask_broadcast_i32x4(v, static_cast<__mmask16>(0xFU << 4 * j), bytes);
            } else if constexpr (Size == 8) {
                v = _mm512_mask_broadcastq_epi64(v, static_cast<__mmask8>(1U << j), bytes);
            } else {
                v = _mm512_mask_broadcastd_epi32(v, static_cast<__mmask16>(1U << j), bytes);
            }
        }
    }
    return _mm512_permutexvar_epi8(_mm512_load_si512(order.data()), v);
}

/// Fewer elements than a line has. (A masked store would take far longer.)
template <std::size_t Size>
TESSERA_AVX512 inline void unshuffle_part_of_line(const Planes<Size>& planes, std::size_t first, std::size_t n,
                                                  std::byte* to) {
    alignas(cache_line) std::array<std::byte, cache_line> line;
    _mm512_store_si512(line.data(), line_of<Size, false>(planes, first, n));
    std::memcpy(to, line.data(), n * Size);
}

template <std::size_t Size>
TESSERA_AVX512 void unshuffle_avx512(const Planes<Size>& planes, std::size_t first, std::size_t n, std::byte* to,
                                     bool streaming) {
    constexpr std::size_t count = cache_line / Size;
    if (streaming) {
        if (const std::size_t head = std::min(n, before_line(to) / Size); head > 0) {
            unshuffle_part_of_line<Size>(planes, first, head, to);
            first += head;
            to += head * Size;
            n -= head;
        }
        for (; n >= count; n -= count, first += count, to += cache_line) {
            _mm512_stream_si512(reinterpret_cast<__m512i*>(to), line_of<Size, true>(planes, first, count));
        }
    } else if (n >= count) {
        for (; n > count; n -= count, first += count, to += cache_line) {
            _mm512_storeu_si512(to, line_of<Size, true>(planes, first, count));
        }
        // The last elements; some are written twice.
        first -= count - n;
        to -= (count - n) * Size;
        _mm512_storeu_si512(to, line_of<Size, true>(planes, first, count));
        return;
    }
    if (n > 0) unshuffle_part_of_line<Size>(planes, first, n, to);
}

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/// A packed line from the bytes of some lines.
TESSERA_AVX512 void pack_line(std::byte* to, const std::byte* from, const std::uint8_t* order,
                              std::span<const std::uint64_t> masks) {
    const __m512i places = _mm512_loadu_si512(order);
    __m512i v = _mm512_maskz_permutexvar_epi8(masks[0], places, _mm512_loadu_si512(from));
    for (std::size_t j = 1; j < masks.size(); ++j) {
        v = _mm512_mask_permutexvar_epi8(v, masks[j], places, _mm512_loadu_si512(from + j * cache_line));
    }
    _mm512_storeu_si512(to, v);
}

#endif

template <std::size_t Size>
void unshuffle_elements(const Planes<Size>& planes, std::size_t plane, std::size_t first, std::size_t n, std::byte* to,
                        bool streaming) {
#if defined(__x86_64__)
    const Machine best = machine();
    if (best == Machine::portable) return unshuffle_portable<Size>(planes, first, n, to);
    const auto run = [&](std::size_t from, std::size_t count, std::byte* out, bool around) {
        if (best == Machine::avx512) return unshuffle_avx512<Size>(planes, from, count, out, around);
        unshuffle_avx2<Size>(planes, plane, from, count, out, around);
    };
    if (!streaming || before_line(to) % Size == 0) return run(first, n, to, streaming);
    // Elements straddle the ends of lines, so they are assembled in a buffer that stays in cache.
    std::array<std::byte, 1024> row;
    while (n > 0) {
        const std::size_t some = std::min(n, row.size() / Size);
        run(first, some, row.data(), false);
        stream_copy(to, row.data(), some * Size);
        first += some;
        n -= some;
        to += some * Size;
    }
#else
    (void)plane;
    (void)streaming;
    unshuffle_portable<Size>(planes, first, n, to);
#endif
}

/// Gathers the bytes of each element from the planes.
template <std::size_t Size>
void unshuffle_each_of(const ShuffledBlock& block, std::size_t first, std::size_t step, std::size_t n, std::byte* to,
                       std::int64_t to_step) {
    const Planes<Size> planes(block);
    first /= Size;
    step /= Size;
    for (std::size_t i = 0; i < n; ++i, first += step, to += to_step) {
        std::array<std::byte, Size> element;
        for (std::size_t j = 0; j < Size; ++j) element[j] = planes[j][first];
        std::memcpy(to, element.data(), Size);
    }
}

/// Unshuffles elements whose size is large or no power of two.
void unshuffle_odd(const ShuffledBlock& block, std::size_t first, std::size_t n, std::byte* to) {
    const std::size_t plane = block.bytes.size() / block.typesize;
    for (; n > 0; --n, ++first) {
        for (std::size_t j = 0; j < block.typesize; ++j) *to++ = block.bytes[j * plane + first];
    }
}

/// Unshuffles bytes [first, first + n); elements(first, n, to) does whole elements.
template <class Elements>
void unshuffle_bytes(const ShuffledBlock& block, std::size_t size, std::size_t first, std::size_t n, std::byte* to,
                     const Elements& elements) {
    const std::size_t plane = block.bytes.size() / size;
    const auto byte_at = [&](std::size_t i) {
        const bool whole = i < plane * size;
        return whole ? block.bytes[i % size * plane + i / size] : block.bytes[i];
    };
    // Bytes up to the next element, then whole elements, then the remaining bytes.
    const std::size_t end = first + n;
    while (first < end && first % size != 0) *to++ = byte_at(first++);
    if (first < plane * size) {
        const std::size_t some = std::min(end / size, plane) - first / size;
        elements(first / size, some, to);
        first += some * size;
        to += some * size;
    }
    while (first < end) *to++ = byte_at(first++);
}

template <std::size_t Size>
void unshuffle_sized(const ShuffledBlock& block, std::size_t first, std::size_t n, std::byte* to, bool streaming) {
    unshuffle_bytes(block, Size, first, n, to, [&](std::size_t from, std::size_t some, std::byte* out) {
        const Planes<Size> planes(block);
        unshuffle_elements<Size>(planes, block.bytes.size() / Size, from, some, out, streaming);
    });
}

}  // namespace

Machine best_machine() {
    return found_machine();
}

void limit_machine(Machine most) {
    machine() = std::min(most, found_machine());
}

void unshuffle(const ShuffledBlock& block, std::size_t first, std::size_t n, std::byte* to, bool streaming) {
    if (n == block.typesize && n <= 16 && first % n == 0) {  // one element of many that lie apart
        const std::size_t plane = block.bytes.size() / n;
        if (const std::byte* from = block.bytes.data() + first / n; first / n < plane) {
            const std::size_t turned = block.swapped ? n - 1 : 0;
            for (std::size_t j = 0; j < n; ++j) to[j ^ turned] = from[j * plane];
            return;
        }
    }
    switch (block.typesize) {
        case 2:
            return unshuffle_sized<2>(block, first, n, to, streaming);
        case 4:
            return unshuffle_sized<4>(block, first, n, to, streaming);
        case 8:
            return unshuffle_sized<8>(block, first, n, to, streaming);
        case 16:
            return unshuffle_sized<16>(block, first, n, to, streaming);
        default:
            unshuffle_bytes(
                block, block.typesize, first, n, to,
                [&](std::size_t from, std::size_t some, std::byte* out) { unshuffle_odd(block, from, some, out); });
    }
}

void unshuffle_each(const ShuffledBlock& block, std::size_t first, std::size_t step, std::size_t n, std::byte* to,
                    std::int64_t to_step) {
    switch (block.typesize) {
        case 2:
            return unshuffle_each_of<2>(block, first, step, n, to, to_step);
        case 4:
            return unshuffle_each_of<4>(block, first, step, n, to, to_step);
        case 8:
            return unshuffle_each_of<8>(block, first, step, n, to, to_step);
        default:
            for (; n > 0; --n, first += step, to += to_step) unshuffle(block, first, block.typesize, to, false);
    }
}

void copy_swapped(std::byte* to, const std::byte* from, std::size_t n, std::size_t number) {
    std::size_t i = 0;
#if defined(__x86_64__)
    if (machine() != Machine::portable) i = copy_swapped_avx2(to, from, n, number);
#endif
    for (; i < n; ++i) to[i] = from[i ^ (number - 1)];
}

std::optional<ElementPacker> ElementPacker::of(std::size_t size, std::size_t step, bool swapped) {
    const bool number = size != 0 && size <= 16 && std::has_single_bit(size);
    // With larger steps more lines are read than half of the elements that one of them holds.
    const bool near = step > size && step <= std::min(8 * size, cache_line / 2);
    if (machine() != Machine::avx512 || !number || !near) return std::nullopt;
    ElementPacker packer;
    packer.size_ = size;
    packer.step_ = step;
    const std::size_t turned = swapped ? size - 1 : 0;
    for (std::size_t i = 0; i < cache_line; ++i) {
        const std::size_t from = i / size * step + (i % size ^ turned);
        packer.order_[i] = static_cast<std::uint8_t>(from % cache_line);
        packer.masks_[from / cache_line] |= std::uint64_t{1} << i;
        packer.lines_ = std::max(packer.lines_, from / cache_line + 1);
    }
    return packer;
}

std::size_t ElementPacker::copy(std::byte* to, const std::byte* from, std::size_t n) const {
    std::size_t done = 0;
#if defined(__x86_64__)
    const std::size_t some = cache_line / size_;
    // The last line that is read may not end behind the last element.
    const std::size_t read = (lines_ * cache_line - size_ + step_ - 1) / step_ + 1;
    const std::span masks(masks_.data(), lines_);
    for (; done + std::max(some, read) <= n; done += some, to += cache_line, from += some * step_) {
        pack_line(to, from, order_.data(), masks);
    }
#else
    (void)to;
    (void)from;
    (void)n;
#endif
    return done;
}

void stream_copy(std::byte* to, const std::byte* from, std::size_t n) {
#if defined(__x86_64__)
    if (machine() == Machine::avx512) return copy_lines_avx512(to, from, n);
    if (machine() == Machine::avx2) return copy_lines_avx2(to, from, n);
#endif
    std::memcpy(to, from, n);
}

void fetch_line(const std::byte* p) {
#if defined(__x86_64__)
    // Every processor of this kind accepts it, and ignores it if it does not know it.
    asm volatile("prefetchw %0" : : "m"(*p));
#else
    __builtin_prefetch(p, 1);
#endif
}

void finish_stores() {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

}  // namespace tessera
