// How numbers are spelt in the index of chunks (chunk_index.cpp). Private to the store module.
#pragma once

#include <tessera/byte_io.h>
#include <tessera/error.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

/// Appends to a text of bytes.
class IndexWriter {
public:
    explicit IndexWriter(std::string& to) : to_(to) {}

    /// Seven bits a byte, the lowest first; all but the last have the highest bit set.
    void count(std::uint64_t n) {
        for (; n >= 0x80U; n >>= 7U) to_ += static_cast<char>(n | 0x80U);
        to_ += static_cast<char>(n);
    }
    /// Small numbers of either sign are short.
    void number(std::int64_t n) { count((static_cast<std::uint64_t>(n) << 1U) ^ static_cast<std::uint64_t>(n >> 63)); }
    /// Eight bytes, the lowest first.
    void word(std::uint64_t n) {
        for (unsigned i = 0; i < 64; i += 8) to_ += static_cast<char>(n >> i & 0xffU);
    }
    void real(double v) { word(std::bit_cast<std::uint64_t>(v)); }
    /// Exact where a long double has 64 significant bits, as on x86-64. `v` is finite.
    void real(long double v) {
        int exponent = 0;
        const long double part = std::frexp(std::abs(v), &exponent);
        word(static_cast<std::uint64_t>(std::ldexp(part, 64)));
        number(std::int64_t{2} * exponent + (std::signbit(v) ? 1 : 0));
    }
    void text(std::string_view bytes) {
        count(bytes.size());
        to_ += bytes;
    }

private:
    std::string& to_;
};

/// Reads what IndexWriter wrote. Throws corrupt where it ends too early, or holds what is never written.
class IndexReader {
public:
    explicit IndexReader(std::string_view from) : rest_(from) {}

    [[nodiscard]] std::uint64_t count() {
        std::uint64_t n = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<unsigned char>(take(1).front());
            n |= (byte & std::uint64_t{0x7f}) << shift;
            if (byte < 0x80U) return n;
        }
        throw corrupt("a number of the index of chunks is too long");
    }
    /// A count of things that are at most so many.
    [[nodiscard]] std::int64_t count(std::int64_t most) {
        const std::uint64_t n = count();
        if (n > static_cast<std::uint64_t>(most)) throw corrupt("a count of the index of chunks is too large");
        return static_cast<std::int64_t>(n);
    }
    [[nodiscard]] std::int64_t number() {
        const std::uint64_t n = count();
        return static_cast<std::int64_t>(n >> 1U) ^ -static_cast<std::int64_t>(n & 1U);
    }
    [[nodiscard]] std::uint64_t word() {
        std::uint64_t n = 0;
        unsigned shift = 0;
        for (const char byte : take(8)) {
            n |= std::uint64_t{static_cast<unsigned char>(byte)} << shift;
            shift += 8;
        }
        return n;
    }
    [[nodiscard]] double real() { return std::bit_cast<double>(word()); }
    [[nodiscard]] long double long_real() {
        const auto part = static_cast<long double>(word());
        const std::int64_t exponent = number();
        constexpr std::int64_t most = 40'000;  // of a long double's exponent, twice
        if (exponent < -most || exponent > most) throw corrupt("an exponent of the index of chunks is too large");
        const long double v = std::ldexp(part, static_cast<int>(exponent >> 1) - 64);
        if (!std::isfinite(v)) throw corrupt("a number of the index of chunks is not finite");
        return (exponent & 1) != 0 ? -v : v;
    }
    [[nodiscard]] std::string_view text() { return take(count()); }
    [[nodiscard]] bool ended() const { return rest_.empty(); }

private:
    std::string_view take(std::uint64_t size) {
        if (size > rest_.size()) throw corrupt("the index of chunks ends in its middle");
        const std::string_view bytes = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return bytes;
    }

    std::string_view rest_;
};

}  // namespace tessera
