// The bits of a file of pco, and arithmetic of latents. Private to the codecs module.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include <tessera/buffer.h>
#include <tessera/error.h>
#include <tessera/error_text.h>

namespace tessera {

template <class L>
inline constexpr int pco_bits = std::numeric_limits<L>::digits;
template <class L>
inline constexpr L pco_middle = static_cast<L>(L{1} << (pco_bits<L> - 1));

template <class L>
L pco_add(L a, L b) {
    return static_cast<L>(std::uint64_t{a} + b);
}

/// Bits of a file. Reads 0 beyond its end: require_inside() follows what was read, or precedes it.
class PcoBits {
public:
    explicit PcoBits(ByteSpan in) : in_(in) {}

    [[nodiscard]] std::uint64_t peek(std::size_t bit, int count) const {
        const std::size_t byte = bit / 8;
        const int shift = static_cast<int>(bit % 8);
        std::uint64_t v = word(byte) >> shift;
        if (shift + count > 64) v |= word(byte + 8) << (64 - shift);
        return count == 64 ? v : v & ((std::uint64_t{1} << count) - 1);
    }
    std::uint64_t take(int count) {
        const std::uint64_t v = peek(bit_, count);
        bit_ += static_cast<std::size_t>(count);
        return v;
    }
    template <class L>
    L take_latent() {
        return static_cast<L>(take(pco_bits<L>));
    }
    /// 57 bits or more.
    [[nodiscard]] std::uint64_t some(std::size_t bit) const { return word(bit / 8) >> bit % 8; }

    [[nodiscard]] std::size_t bit() const { return bit_; }
    void go_to(std::size_t bit) { bit_ = bit; }
    void require_inside(std::uint64_t more = 0) const {
        const std::uint64_t all = 8 * std::uint64_t{in_.size()};
        if (bit_ > all || more > all - bit_) throw corrupt("the data end too early, after {} bytes", in_.size());
    }
    /// Skips the rest of a byte.
    void align() {
        require_inside();
        const int rest = static_cast<int>((8 - bit_ % 8) % 8);
        if (take(rest) != 0) throw corrupt("bits that fill byte {} are not 0", bit_ / 8 - 1);
    }
    [[nodiscard]] bool at_end() const { return bit_ == 8 * in_.size(); }

private:
    [[nodiscard]] std::uint64_t word(std::size_t byte) const {
        if (byte + 8 <= in_.size() && std::endian::native == std::endian::little) {
            std::uint64_t v = 0;
            std::memcpy(&v, in_.data() + byte, sizeof v);
            return v;
        }
        std::uint64_t v = 0;
        for (std::size_t i = 0; i < 8 && byte + i < in_.size(); ++i) {
            v |= std::to_integer<std::uint64_t>(in_[byte + i]) << 8 * i;
        }
        return v;
    }

    ByteSpan in_;
    std::size_t bit_ = 0;
};

}  // namespace tessera
