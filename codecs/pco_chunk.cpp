#include "pco_chunk.h"

#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include <tessera/element.h>
#include <tessera/error_text.h>

#include "pco_latents.h"

namespace tessera {

namespace {

enum class PcoMode : std::uint8_t { classic, int_mult, float_mult, float_quant, dict };

/// Floats by their bits.
template <class L>
struct PcoFloat;
template <>
struct PcoFloat<std::uint16_t> {
    static constexpr int mantissa = 10;
    static std::uint16_t of_integer(std::uint16_t v) { return double_to_half(v); }
    static std::uint16_t product(std::uint16_t a, std::uint16_t b) {
        return double_to_half(half_to_float(a) * half_to_float(b));
    }
};
template <class L, class F, int mantissa_bits>
struct PcoNativeFloat {
    static constexpr int mantissa = mantissa_bits;
    static L of_integer(L v) { return std::bit_cast<L>(static_cast<F>(v)); }
    static L product(L a, L b) { return std::bit_cast<L>(std::bit_cast<F>(a) * std::bit_cast<F>(b)); }
};
template <>
struct PcoFloat<std::uint32_t> : PcoNativeFloat<std::uint32_t, float, 23> {};
template <>
struct PcoFloat<std::uint64_t> : PcoNativeFloat<std::uint64_t, double, 52> {};

/// Latents are in the order of their numbers.
template <class L>
L pco_float_of(L latent) {
    return latent >= pco_middle<L> ? static_cast<L>(latent ^ pco_middle<L>) : static_cast<L>(~latent);
}
template <class L>
L pco_latent_of(L bits) {
    return bits >= pco_middle<L> ? static_cast<L>(~bits) : static_cast<L>(bits ^ pco_middle<L>);
}

/// The latents number the floats that are integers, in their order: from a certain one on, every float is one.
template <class L>
L pco_integral_float(L latent) {
    using F = PcoFloat<L>;
    const bool positive = latent >= pco_middle<L>;
    const auto magnitude = static_cast<L>(positive ? latent - pco_middle<L> : pco_middle<L> - 1 - latent);
    constexpr L first = L{1} << (F::mantissa + 1);
    const auto bits = magnitude < first ? F::of_integer(magnitude)
                                        : static_cast<L>(F::of_integer(first) + static_cast<L>(magnitude - first));
    return positive ? bits : static_cast<L>(bits ^ pco_middle<L>);
}

template <class L>
class PcoChunk {
public:
    PcoChunk(PcoBits& bits, int version, PcoNumbers numbers) : bits_(bits), numbers_(numbers) {
        read_mode(version);
        delta_ = read_pco_delta(bits, version);
        bits.require_inside();
    }

    /// Reads the variables and the page, `count` numbers, to `out`.
    void decode(std::size_t count, std::byte* out) {
        if (mode_ == PcoMode::dict) {
            decode_by<std::uint32_t>(count, out);
        } else {
            decode_by<L>(count, out);
        }
    }

private:
    void read_mode(int version) {
        const std::uint64_t mode = bits_.take(4);
        if (mode > 4) throw corrupt("mode {}, expected 0 to 4: damaged, or newer than Tessera", mode);
        mode_ = static_cast<PcoMode>(mode);
        const bool floats = numbers_ == PcoNumbers::floats;
        if (floats ? mode_ == PcoMode::int_mult : mode_ == PcoMode::float_mult || mode_ == PcoMode::float_quant) {
            throw corrupt("mode {} of {}", mode, floats ? "floats" : "integers");
        }
        if (mode_ == PcoMode::int_mult) {
            if (version == 0) throw corrupt("the mode of multiples in version 0, which was withdrawn");
            base_ = bits_.template take_latent<L>();
            if (base_ == 0) throw corrupt("multiples of 0");
        } else if (mode_ == PcoMode::float_mult) {
            base_ = pco_float_of(bits_.template take_latent<L>());
            require_base();
        } else if (mode_ == PcoMode::float_quant) {
            quantum_ = static_cast<int>(bits_.take(8));
            require_quantum();
        } else if (mode_ == PcoMode::dict) {
            entries_ = bits_.take(25);
            bits_.align();
            bits_.require_inside(std::uint64_t{entries_} * pco_bits<L>);
            dict_ = bits_.bit();
            bits_.go_to(dict_ + entries_ * pco_bits<L>);
        }
    }

    void require_base() const {
        if constexpr (sizeof(L) > 1) {
            constexpr L infinity =
                static_cast<L>((pco_middle<L> - 1) >> PcoFloat<L>::mantissa << PcoFloat<L>::mantissa);
            const auto magnitude = static_cast<L>(base_ & (pco_middle<L> - 1));
            if (magnitude == 0 || magnitude >= infinity) throw corrupt("multiples of a float that is 0 or not finite");
        }
    }

    void require_quantum() const {
        if constexpr (sizeof(L) > 1) {
            if (quantum_ < 1 || quantum_ > PcoFloat<L>::mantissa) {
                throw corrupt("floats whose last {} bits are set apart, expected 1 to {}", quantum_,
                              PcoFloat<L>::mantissa);
            }
        }
    }

    template <class P>
    void decode_by(std::size_t count, std::byte* out) {
        if (delta_.kind == PcoDelta::conv1) require_conv1_fits(delta_, pco_bits<P>);
        const bool looks_back = delta_.kind == PcoDelta::lookback;
        const bool two = mode_ != PcoMode::classic && mode_ != PcoMode::dict;
        constexpr PcoDeltaEncoding none;
        const auto back_variable = looks_back ? read_pco_variable<std::uint32_t>(bits_) : PcoVariable<std::uint32_t>();
        const auto first_variable = read_pco_variable<P>(bits_);
        const auto second_variable = two ? read_pco_variable<L>(bits_) : PcoVariable<L>();
        bits_.align();
        // The page. Nothing looks back for the latents that stand in front.
        const std::size_t coded = count - std::min(count, delta_.state);
        std::optional<PcoLatents<std::uint32_t>> back;
        if (looks_back) back.emplace(back_variable, none, coded, bits_);
        PcoLatents<P> first(first_variable, delta_, count, bits_);
        std::optional<PcoLatents<L>> second;
        if (two) second.emplace(second_variable, delta_.of_secondary ? delta_ : none, count, bits_);
        bits_.align();
        std::array<L, pco_batch> numbers;
        for (std::size_t done = 0; done < count; done += pco_batch) {
            const std::size_t n = std::min(pco_batch, count - done);
            const std::uint32_t* const lookbacks = back ? back->read(bits_, nullptr) : nullptr;
            const P* const l0 = first.read(bits_, lookbacks);
            const L* const l1 = second ? second->read(bits_, lookbacks) : nullptr;
            join(l0, l1, n, numbers.data());
            std::memcpy(out + done * sizeof(L), numbers.data(), n * sizeof(L));
        }
        bits_.align();
    }

    /// Of floats that are multiples of a base, or whose last bits are set apart.
    void join_floats(const L* l0, const L* l1, std::size_t n, L* numbers) const {
        if (mode_ == PcoMode::float_mult) {
            for (std::size_t i = 0; i < n; ++i) {
                const L whole = PcoFloat<L>::product(pco_integral_float(l0[i]), base_);
                numbers[i] = static_cast<L>(pco_add(pco_latent_of(whole), l1[i]) ^ pco_middle<L>);
            }
            return;
        }
        const L most = static_cast<L>((std::uint64_t{1} << quantum_) - 1);
        for (std::size_t i = 0; i < n; ++i) {
            const bool positive = l0[i] >= pco_middle<L> >> quantum_;
            const L low = positive ? l1[i] : static_cast<L>(most - l1[i]);
            numbers[i] = pco_add(static_cast<L>(std::uint64_t{l0[i]} << quantum_), low);
        }
    }

    /// The numbers of latents, by their bits.
    template <class P>
    void join(const P* l0, const L* l1, std::size_t n, L* numbers) const {
        if (mode_ == PcoMode::dict) {
            for (std::size_t i = 0; i < n; ++i) {
                const std::size_t entry = l0[i];
                if (entry >= entries_) throw corrupt("entry {} of a dictionary of {}", entry, entries_);
                numbers[i] = static_cast<L>(bits_.peek(dict_ + entry * pco_bits<L>, pco_bits<L>));
            }
        } else if (mode_ == PcoMode::classic) {
            for (std::size_t i = 0; i < n; ++i) numbers[i] = static_cast<L>(l0[i]);
        } else if (mode_ == PcoMode::int_mult) {
            for (std::size_t i = 0; i < n; ++i) {
                numbers[i] = static_cast<L>(std::uint64_t{l0[i]} * base_ + l1[i]);
            }
        } else if constexpr (sizeof(L) > 1 && sizeof(P) == sizeof(L)) {
            join_floats(l0, l1, n, numbers);
        }
        if (numbers_ == PcoNumbers::integers) {
            for (std::size_t i = 0; i < n; ++i) numbers[i] ^= pco_middle<L>;
        } else if (numbers_ == PcoNumbers::floats) {
            for (std::size_t i = 0; i < n; ++i) numbers[i] = pco_float_of(numbers[i]);
        }
    }

    PcoBits& bits_;
    PcoNumbers numbers_;
    PcoMode mode_ = PcoMode::classic;
    PcoDeltaEncoding delta_;
    L base_ = 0;       ///< of multiples; a float's bits
    int quantum_ = 0;  ///< bits that are set apart
    std::size_t entries_ = 0;
    std::size_t dict_ = 0;  ///< the bit where its entries begin
};

}  // namespace

void decode_pco_chunk(PcoBits& bits, int version, PcoNumbers numbers, std::int64_t size, std::size_t count,
                      std::byte* out) {
    switch (size) {
        case 1:
            return PcoChunk<std::uint8_t>(bits, version, numbers).decode(count, out);
        case 2:
            return PcoChunk<std::uint16_t>(bits, version, numbers).decode(count, out);
        case 4:
            return PcoChunk<std::uint32_t>(bits, version, numbers).decode(count, out);
        default:
            return PcoChunk<std::uint64_t>(bits, version, numbers).decode(count, out);
    }
}

}  // namespace tessera
