#include "unshuffle.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tessera {

namespace {

/// Elements [first, first + n) of planes that lie `plane` bytes apart.
void unshuffle_portable(const std::byte* planes, std::size_t plane, std::size_t typesize, std::size_t first,
                        std::size_t n, std::byte* to) {
    const auto gather = [&](std::size_t size) {
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < size; ++j) to[i * size + j] = planes[j * plane + first + i];
        }
    };
    switch (typesize) {  // constant sizes, so that the inner loop is unrolled
        case 2:
            return gather(2);
        case 4:
            return gather(4);
        case 8:
            return gather(8);
        default:
            return gather(typesize);
    }
}

#if defined(__x86_64__)

bool has_avx2() {
    static const bool has = __builtin_cpu_supports("avx2") != 0;
    return has;
}

constexpr std::size_t lanes = 32;  // elements at a time

/// 32 elements of `Size` bytes, a power of two. Interleaving the first half of the planes with the second half, log2
/// of Size times, puts the bytes of each element side by side.
template <std::size_t Size, bool AroundCaches>
__attribute__((target("avx2"))) void unshuffle_32(const std::byte* planes, std::size_t plane, std::byte* to) {
    __m256i r[Size];
    __m256i next[Size];
    for (std::size_t j = 0; j < Size; ++j) {
        r[j] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(planes + j * plane));
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

/// Fewer than 32 elements: 32 that they are among, by way of memory that stays in cache.
template <std::size_t Size>
__attribute__((target("avx2"))) void unshuffle_few(const std::byte* planes, std::size_t plane, std::size_t first,
                                                   std::size_t n, std::byte* to) {
    if (n == 0) return;
    if (plane < lanes) return unshuffle_portable(planes, plane, Size, first, n, to);
    const std::size_t begin = std::min(first, plane - lanes);
    std::array<std::byte, lanes * Size> elements;
    unshuffle_32<Size, false>(planes + begin, plane, elements.data());
    std::memcpy(to, &elements[(first - begin) * Size], n * Size);
}

template <std::size_t Size>
__attribute__((target("avx2"))) void unshuffle_avx2(const std::byte* planes, std::size_t plane, std::size_t first,
                                                    std::size_t n, std::byte* to, bool around_caches) {
    const auto past = reinterpret_cast<std::uintptr_t>(to) % lanes;
    if (around_caches && past % Size == 0) {  // such stores need alignment
        const std::size_t head = past == 0 ? 0 : std::min(n, (lanes - past) / Size);
        unshuffle_few<Size>(planes, plane, first, head, to);
        first += head;
        to += head * Size;
        for (n -= head; n >= lanes; n -= lanes, first += lanes, to += lanes * Size) {
            unshuffle_32<Size, true>(planes + first, plane, to);
        }
    } else {
        for (; n >= lanes; n -= lanes, first += lanes, to += lanes * Size) {
            unshuffle_32<Size, false>(planes + first, plane, to);
        }
    }
    unshuffle_few<Size>(planes, plane, first, n, to);
}

__attribute__((target("avx2"))) void copy_avx2(std::byte* to, const std::byte* from, std::size_t n) {
    const std::size_t head = std::min(n, (lanes - reinterpret_cast<std::uintptr_t>(to) % lanes) % lanes);
    std::memcpy(to, from, head);
    std::size_t i = head;
    for (; i + lanes <= n; i += lanes) {
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
    }
    std::memcpy(to + i, from + i, n - i);
}

void unshuffle_elements(const std::byte* planes, std::size_t plane, std::size_t typesize, std::size_t first,
                        std::size_t n, std::byte* to, bool around_caches) {
    if (!has_avx2()) return unshuffle_portable(planes, plane, typesize, first, n, to);
    switch (typesize) {
        case 2:
            return unshuffle_avx2<2>(planes, plane, first, n, to, around_caches);
        case 4:
            return unshuffle_avx2<4>(planes, plane, first, n, to, around_caches);
        case 8:
            return unshuffle_avx2<8>(planes, plane, first, n, to, around_caches);
        case 16:
            return unshuffle_avx2<16>(planes, plane, first, n, to, around_caches);
        default:
            return unshuffle_portable(planes, plane, typesize, first, n, to);
    }
}

#else

void unshuffle_elements(const std::byte* planes, std::size_t plane, std::size_t typesize, std::size_t first,
                        std::size_t n, std::byte* to, bool /*around_caches*/) {
    unshuffle_portable(planes, plane, typesize, first, n, to);
}

#endif

}  // namespace

void unshuffle(const ShuffledBlock& block, std::size_t first, std::size_t n, std::byte* to, bool around_caches) {
    const std::size_t size = block.typesize;
    const std::byte* planes = block.bytes.data();
    const std::size_t plane = block.bytes.size() / size;
    const auto byte_at = [&](std::size_t i) {
        const bool whole = i < plane * size;
        return whole ? planes[i % size * plane + i / size] : planes[i];
    };
    // Bytes up to the next element, whole elements, the rest byte by byte.
    const std::size_t end = first + n;
    while (first < end && first % size != 0) *to++ = byte_at(first++);
    if (first < plane * size) {
        const std::size_t elements = std::min(end / size, plane) - first / size;
        unshuffle_elements(planes, plane, size, first / size, elements, to, around_caches);
        first += elements * size;
        to += elements * size;
    }
    while (first < end) *to++ = byte_at(first++);
}

void copy_around_caches(std::byte* to, const std::byte* from, std::size_t n) {
#if defined(__x86_64__)
    if (has_avx2()) return copy_avx2(to, from, n);
#endif
    std::memcpy(to, from, n);
}

void finish_stores() {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

}  // namespace tessera
