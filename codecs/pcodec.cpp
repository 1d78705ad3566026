// "numcodecs.pcodec": pco's standalone format (docs/format.md of github.com/pcodec/pcodec), versions 0 to 4.1, only
// read.
//
// A file is a sequence of pco chunks of up to 2^24 numbers, each with its own metadata. A number is put together from
// one or two latents, unsigned integers, as the chunk's mode says. Latents may be differences of earlier ones, as the
// delta encoding says. What remains are latent variables: bins, whose indices are coded by tANS, and offsets in them.
// Both lie in batches of 256. All bits are little-endian: the first one is the lowest of its byte.
#include <fmt/format.h>
#include <tessera/copy_elements.h>
#include <tessera/counted.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "codec_row.h"

namespace tessera {

namespace {

constexpr std::size_t pco_batch = 256;
constexpr std::size_t pco_streams = 4;  ///< interleaved states of tANS

template <class L>
inline constexpr int pco_bits = std::numeric_limits<L>::digits;
template <class L>
inline constexpr L pco_middle = static_cast<L>(L{1} << (pco_bits<L> - 1));

template <class L>
L pco_add(L a, L b) {
    return static_cast<L>(std::uint64_t{a} + b);
}

/// Bits of a file. What lies beyond its end reads as 0: require_inside() follows what was read, or precedes it.
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

// ---- metadata of a pco chunk

enum class PcoMode : std::uint8_t { classic, int_mult, float_mult, float_quant, dict };
enum class PcoDelta : std::uint8_t { none, consecutive, lookback, conv1 };

/// How latents follow from earlier ones. The first `state` ones of a page stand in front of it.
struct PcoDeltaEncoding {
    PcoDelta kind = PcoDelta::none;
    std::size_t state = 0;
    bool of_secondary = false;
    std::uint32_t window = 0;  ///< of lookback
    int quantization = 0;      ///< of conv1, and its bias and weights, as two's complement
    std::uint64_t bias = 0;
    std::array<std::uint64_t, 32> weights{};
};

std::uint64_t pco_signed_32(std::uint64_t ordered) {
    return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(ordered ^ pco_middle<std::uint32_t>)});
}

PcoDeltaEncoding read_delta_encoding(PcoBits& bits, int version) {
    PcoDeltaEncoding delta;
    constexpr int of_orders = 3;
    if (version < 3) {
        delta.state = bits.take(of_orders);
        if (delta.state > 0) delta.kind = PcoDelta::consecutive;
        return delta;
    }
    const std::uint64_t kind = bits.take(4);
    if (kind > 3) throw corrupt("delta encoding {}, expected 0 to 3: damaged, or newer than Tessera", kind);
    delta.kind = static_cast<PcoDelta>(kind);
    if (delta.kind == PcoDelta::consecutive) {
        delta.state = bits.take(of_orders);
        delta.of_secondary = bits.take(1) != 0;
        if (delta.state == 0) throw corrupt("consecutive differences of order 0");
    } else if (delta.kind == PcoDelta::lookback) {
        const auto window_log = static_cast<int>(1 + bits.take(5));
        const auto state_log = static_cast<int>(bits.take(4));
        delta.of_secondary = bits.take(1) != 0;
        constexpr int most = 24;  // a pco chunk has no more numbers
        if (window_log > most || state_log > window_log) {
            throw corrupt("a window of 2^{} latents, of which 2^{} are given; expected at most 2^{}", window_log,
                          state_log, most);
        }
        delta.window = std::uint32_t{1} << window_log;
        delta.state = std::size_t{1} << state_log;
    } else if (delta.kind == PcoDelta::conv1) {
        delta.quantization = static_cast<int>(bits.take(5));
        delta.bias = bits.take(64) ^ pco_middle<std::uint64_t>;
        delta.state = 1 + bits.take(5);
        for (std::size_t i = 0; i < delta.state; ++i) delta.weights[i] = pco_signed_32(bits.take(32));
    }
    return delta;
}

/// No sum of conv1 may leave signed integers of twice the latents' bits.
template <class P>
void require_conv1_fits(const PcoDeltaEncoding& delta) {
    if constexpr (sizeof(P) == 8) {
        throw corrupt("the delta encoding conv1 of latents of 64 bits");
    } else {
        constexpr int sum_bits = 2 * pco_bits<P>;
        const auto magnitude = [](std::uint64_t v) {
            return std::abs(static_cast<double>(static_cast<std::int64_t>(v)));
        };
        double most = 0;
        for (std::size_t i = 0; i < delta.state; ++i) most += magnitude(delta.weights[i]);
        most = most * static_cast<double>(std::uint64_t{1} << pco_bits<P>) + magnitude(delta.bias);
        if (delta.quantization >= sum_bits || most >= static_cast<double>(std::uint64_t{1} << (sum_bits - 1))) {
            throw corrupt("the weights of the delta encoding conv1 overflow {} bits", sum_bits);
        }
    }
}

/// A state of a latent variable's tANS table, with the bin that it stands for.
template <class L>
struct PcoState {
    L lower;
    std::uint16_t next;  ///< the following state, before the bits read are added
    std::uint8_t bits;
    std::uint8_t offset_bits;
};

template <class L>
struct PcoVariable {
    int log = 0;  ///< of the table's size
    std::size_t bins = 0;
    CountedVector<PcoState<L>> states;
};

template <class L>
PcoVariable<L> read_variable(PcoBits& bits) {
    struct Bin {
        L lower;
        std::uint32_t weight;
        std::uint8_t offset_bits;
    };
    constexpr int of_offset_bits = std::bit_width(static_cast<unsigned>(pco_bits<L>));
    PcoVariable<L> v;
    v.log = static_cast<int>(bits.take(4));
    v.bins = bits.take(15);
    const std::size_t size = std::size_t{1} << v.log;
    constexpr int most = 14;
    if (v.log > most || v.bins > size || (v.bins == 1 && v.log > 0)) {
        throw corrupt("{} bins in a table of 2^{} states, at most 2^{}", v.bins, v.log, most);
    }
    bits.require_inside(std::uint64_t{v.bins} * static_cast<unsigned>(v.log + pco_bits<L> + of_offset_bits));
    CountedVector<Bin> bins(std::max<std::size_t>(v.bins, 1), Bin{0, 1, 0});
    std::size_t weights = v.bins == 0 ? 1 : 0;
    for (std::size_t i = 0; i < v.bins; ++i) {
        Bin& bin = bins[i];
        bin.weight = static_cast<std::uint32_t>(1 + bits.take(v.log));
        bin.lower = bits.template take_latent<L>();
        bin.offset_bits = static_cast<std::uint8_t>(bits.take(of_offset_bits));
        if (bin.offset_bits > pco_bits<L>) {
            throw corrupt("an offset of {} bits in a bin of numbers of {}", bin.offset_bits, pco_bits<L>);
        }
        weights += bin.weight;
    }
    if (weights != size) throw corrupt("the weights of the bins sum to {}, expected {}", weights, size);

    // The bins are spread over the states in steps that are odd, so that each state is met once.
    CountedVector<std::uint16_t> bin_of(size);
    const std::size_t step = (3 * size / 5) | 1;
    std::size_t at = 0;
    for (std::size_t i = 0; i < bins.size(); ++i) {
        for (std::uint32_t k = 0; k < bins[i].weight; ++k, at = (at + step) & (size - 1)) {
            bin_of[at] = static_cast<std::uint16_t>(i);
        }
    }
    v.states.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
        Bin& bin = bins[bin_of[i]];
        const std::uint32_t x = bin.weight++;
        const int read = v.log + 1 - std::bit_width(x);
        v.states[i] = {bin.lower, static_cast<std::uint16_t>((x << read) - size), static_cast<std::uint8_t>(read),
                       bin.offset_bits};
    }
    return v;
}

// ---- latents of a page

template <class L>
class PcoLatents {
public:
    /// The variable has to stay. `total` latents come out. Reads the state in front of the page.
    PcoLatents(const PcoVariable<L>& variable, const PcoDeltaEncoding& delta, std::size_t total, PcoBits& bits)
        : variable_(variable), delta_(delta), total_(total), remaining_(total) {
        bits.require_inside(std::uint64_t{delta.state} * pco_bits<L>);
        earlier_.resize(delta.kind == PcoDelta::lookback ? std::max(delta.state, total) : delta.state);
        for (std::size_t i = 0; i < delta.state; ++i) earlier_[i] = bits.template take_latent<L>();
        for (std::uint32_t& state : states_) state = static_cast<std::uint32_t>(bits.take(variable.log));
        if (variable.bins == 0 && total > delta.state) {
            throw corrupt("no bins for {} latents", total - delta.state);
        }
    }

    /// The next batch.
    const L* read(PcoBits& bits, const std::uint32_t* lookbacks) {
        const std::size_t count = std::min(remaining_, pco_batch);
        const std::size_t coded = std::min(remaining_ - std::min(remaining_, delta_.state), pco_batch);
        read_bins(bits, coded);
        // The last latents of a page are the state alone.
        std::fill(batch_.begin() + static_cast<std::ptrdiff_t>(coded), batch_.end(), L{0});
        if (delta_.kind != PcoDelta::none) {
            for (L& l : batch_) l ^= pco_middle<L>;
        }
        if (delta_.kind == PcoDelta::consecutive) sum(count);
        if (delta_.kind == PcoDelta::lookback) look_back(lookbacks, coded, count);
        if (delta_.kind == PcoDelta::conv1) convolve(count);
        remaining_ -= count;
        return batch_.data();
    }

private:
    void read_bins(PcoBits& bits, std::size_t count) {
        if (count == 0) return;
        if (variable_.bins <= 1) {
            const PcoState<L>& only = variable_.states.front();
            batch_.fill(only.lower);
            offset_bits_.fill(only.offset_bits);
        } else {
            const PcoState<L>* const table = variable_.states.data();
            auto states = states_;
            std::size_t bit = bits.bit();
            const auto read_some = [&](std::size_t i, std::size_t these) {
                std::uint64_t some = bits.some(bit);  // enough for four states of 14 bits
                for (std::size_t k = 0; k < these; ++k) {
                    const PcoState<L>& state = table[states[k]];
                    batch_[i + k] = state.lower;
                    offset_bits_[i + k] = state.offset_bits;
                    states[k] = state.next + static_cast<std::uint32_t>(some & ((1U << state.bits) - 1));
                    some >>= state.bits;
                    bit += state.bits;
                }
            };
            const std::size_t whole = count / pco_streams * pco_streams;
            for (std::size_t i = 0; i < whole; i += pco_streams) read_some(i, pco_streams);
            read_some(whole, count - whole);
            states_ = states;
            bits.go_to(bit);
        }
        std::size_t bit = bits.bit();
        for (std::size_t i = 0; i < count; ++i) {
            const int n = offset_bits_[i];
            if constexpr (sizeof(L) < 8) {
                batch_[i] = pco_add(batch_[i], static_cast<L>(bits.some(bit) & ((std::uint64_t{1} << n) - 1)));
            } else {
                batch_[i] = pco_add(batch_[i], static_cast<L>(bits.peek(bit, n)));
            }
            bit += static_cast<std::size_t>(n);
        }
        bits.go_to(bit);
        bits.require_inside();
    }

    /// Sums as often as the order says, each from where the batch before ended.
    void sum(std::size_t count) {
        for (std::size_t k = delta_.state; k-- > 0;) {
            L moment = earlier_[k];
            for (std::size_t i = 0; i < count; ++i) {
                const L difference = std::exchange(batch_[i], moment);
                moment = pco_add(moment, difference);
            }
            earlier_[k] = moment;
        }
    }

    /// Adds the latent so far back. Those before the page are 0.
    void look_back(const std::uint32_t* lookbacks, std::size_t coded, std::size_t count) {
        const std::size_t before = total_ - remaining_;
        const std::size_t coded_before = std::min(before, total_ - std::min(total_, delta_.state));
        L* const to = earlier_.data() + delta_.state + coded_before;
        for (std::size_t i = 0; i < coded; ++i) {
            const std::size_t back = lookbacks[i];
            if (back == 0 || back > delta_.window) {
                throw corrupt("a latent looks back by {}, expected 1 to {}", back, delta_.window);
            }
            const L earlier = back > delta_.state + coded_before + i ? L{0} : to[static_cast<std::ptrdiff_t>(i - back)];
            to[i] = pco_add(batch_[i], earlier);
        }
        std::copy_n(earlier_.data() + before, count, batch_.data());
    }

    /// Adds what the weighted sum of the latents before predicts.
    void convolve(std::size_t count) {
        const std::size_t order = delta_.state;
        std::array<L, 32 + pco_batch> all;
        std::ranges::copy(earlier_, all.begin());
        for (std::size_t i = 0; i < count; ++i) {
            std::uint64_t sum = delta_.bias;
            for (std::size_t k = 0; k < order; ++k) sum += delta_.weights[k] * std::uint64_t{all[i + k]};
            const auto prediction = std::max<std::int64_t>(static_cast<std::int64_t>(sum), 0) >> delta_.quantization;
            all[order + i] = pco_add(batch_[i], static_cast<L>(prediction));
        }
        std::copy_n(all.begin(), count, batch_.begin());
        std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(count), order, earlier_.begin());
    }

    const PcoVariable<L>& variable_;
    const PcoDeltaEncoding& delta_;
    std::size_t total_;
    std::size_t remaining_;
    CountedVector<L> earlier_;  ///< the moments of the sums, the latest latents, or all of them for look_back
    std::array<std::uint32_t, pco_streams> states_{};
    std::array<std::uint8_t, pco_batch> offset_bits_{};
    std::array<L, pco_batch> batch_{};
};

// ---- numbers

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

enum class PcoNumbers : std::uint8_t { unsigned_integers, integers, floats };

template <class L>
class PcoChunk {
public:
    PcoChunk(PcoBits& bits, int version, PcoNumbers numbers) : bits_(bits), numbers_(numbers) {
        read_mode(version);
        delta_ = read_delta_encoding(bits, version);
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
        if (delta_.kind == PcoDelta::conv1) require_conv1_fits<P>(delta_);
        const bool looks_back = delta_.kind == PcoDelta::lookback;
        const bool two = mode_ != PcoMode::classic && mode_ != PcoMode::dict;
        constexpr PcoDeltaEncoding none;
        const auto back_variable = looks_back ? read_variable<std::uint32_t>(bits_) : PcoVariable<std::uint32_t>();
        const auto first_variable = read_variable<P>(bits_);
        const auto second_variable = two ? read_variable<L>(bits_) : PcoVariable<L>();
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
            if (mode_ == PcoMode::float_mult) {
                for (std::size_t i = 0; i < n; ++i) {
                    const L whole = PcoFloat<L>::product(pco_integral_float(static_cast<L>(l0[i])), base_);
                    numbers[i] = static_cast<L>(pco_add(pco_latent_of(whole), l1[i]) ^ pco_middle<L>);
                }
            } else {
                const L most = static_cast<L>((std::uint64_t{1} << quantum_) - 1);
                for (std::size_t i = 0; i < n; ++i) {
                    const bool positive = l0[i] >= pco_middle<L> >> quantum_;
                    const L low = positive ? l1[i] : static_cast<L>(most - l1[i]);
                    numbers[i] = pco_add(static_cast<L>(std::uint64_t{l0[i]} << quantum_), low);
                }
            }
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

// ---- the codec

struct PcoType {
    std::uint8_t byte;
    PcoNumbers numbers;
    std::int64_t size;
};
constexpr std::array<PcoType, 11> pco_types{{{1, PcoNumbers::unsigned_integers, 4},
                                             {2, PcoNumbers::unsigned_integers, 8},
                                             {3, PcoNumbers::integers, 4},
                                             {4, PcoNumbers::integers, 8},
                                             {5, PcoNumbers::floats, 4},
                                             {6, PcoNumbers::floats, 8},
                                             {7, PcoNumbers::unsigned_integers, 2},
                                             {8, PcoNumbers::integers, 2},
                                             {9, PcoNumbers::floats, 2},
                                             {10, PcoNumbers::unsigned_integers, 1},
                                             {11, PcoNumbers::integers, 1}}};

const PcoType& pco_type_of(const DType& dtype) {
    const auto numbers = [&]() -> std::optional<PcoNumbers> {
        switch (dtype.kind()) {
            case Kind::unsigned_integer:
                return PcoNumbers::unsigned_integers;
            case Kind::integer:
            case Kind::datetime:
            case Kind::timedelta:
                return PcoNumbers::integers;
            case Kind::real:
                return PcoNumbers::floats;
            default:
                return std::nullopt;
        }
    }();
    for (const PcoType& type : pco_types) {
        if (numbers == type.numbers && dtype.size() == type.size) return type;
    }
    throw invalid_argument("it is for integers, times and floats up to 8 bytes, not for {}", dtype.to_string());
}

class PcodecCodec final : public ArrayToBytesCodec {
public:
    explicit PcodecCodec(const ChunkSpec& in)
        : dtype_(in.dtype.with_order(native_order)),
          type_(pco_type_of(in.dtype)),
          count_(static_cast<std::size_t>(element_count(in.shape))) {}

    void encode(const ArrayView& /*in*/, Buffer& /*out*/) const override { throw no_encoder(); }

    void decode(ByteSpan in, const MutableArrayView& out) const override {
        if (out.contiguous() && out.dtype == dtype_) return decode_numbers(in, out.data);
        NDArray numbers(dtype_, out.shape);
        decode_numbers(in, numbers.bytes().data());
        copy_elements(numbers, out);
    }

    [[nodiscard]] std::optional<std::uint64_t> encoded_size() const override { return std::nullopt; }

private:
    void decode_numbers(ByteSpan in, std::byte* out) const {
        constexpr std::string_view magic = "pco!";
        PcoBits bits(in);
        if (in.size() < magic.size() || std::memcmp(in.data(), magic.data(), magic.size()) != 0) {
            throw corrupt("it does not begin with \"{}\"", magic);
        }
        bits.go_to(8 * magic.size());
        const int version = read_versions(bits);
        std::size_t done = 0;
        while (const std::uint64_t type = bits.take(8)) {
            if (type != type_.byte) {
                throw corrupt("it has numbers of type {}, expected {} for {}", type, type_.byte, dtype_.to_string());
            }
            const std::size_t count = 1 + bits.take(24);
            bits.require_inside();
            if (count > count_ - done) {
                throw corrupt("it has at least {} numbers, but a chunk has {}", done + count, count_);
            }
            std::byte* const to = out + done * static_cast<std::size_t>(type_.size);
            switch (type_.size) {
                case 1:
                    PcoChunk<std::uint8_t>(bits, version, type_.numbers).decode(count, to);
                    break;
                case 2:
                    PcoChunk<std::uint16_t>(bits, version, type_.numbers).decode(count, to);
                    break;
                case 4:
                    PcoChunk<std::uint32_t>(bits, version, type_.numbers).decode(count, to);
                    break;
                default:
                    PcoChunk<std::uint64_t>(bits, version, type_.numbers).decode(count, to);
            }
            done += count;
        }
        bits.require_inside();
        if (done != count_) throw corrupt("it has {} numbers, but a chunk has {}", done, count_);
        if (!bits.at_end()) throw corrupt("bytes follow the last number");
    }

    /// The headers of both formats. Returns the major version of the wrapped one.
    static int read_versions(PcoBits& bits) {
        constexpr std::uint64_t newest_file = 3;
        constexpr std::uint64_t newest = 4;
        const std::size_t start = bits.bit();
        const std::uint64_t file = bits.take(8);
        if (file > newest_file) {
            throw corrupt("a file of version {}, expected at most {}: damaged, or newer than Tessera", file,
                          newest_file);
        }
        if (file < 2) bits.go_to(start);    // files had no version of their own
        if (file >= 3) (void)bits.take(8);  // the type of all numbers; each pco chunk says it, too
        if (file >= 2) {
            (void)bits.take(static_cast<int>(1 + bits.take(6)));  // how many numbers there may be
            bits.align();
        }
        const std::uint64_t major = bits.take(8);
        if (major > newest) {
            throw corrupt("version {} of the format, expected at most {}: damaged, or newer than Tessera", major,
                          newest);
        }
        if (major >= 4) (void)bits.take(8);  // the minor version: what is unknown in it is refused where it occurs
        bits.require_inside();
        return static_cast<int>(major);
    }

    DType dtype_;
    const PcoType& type_;
    std::size_t count_;
};

std::unique_ptr<ArrayToBytesCodec> make_pcodec_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"level", "mode_spec", "delta_spec", "paging_spec", "delta_encoding_order",
                                          "equal_pages_up_to"});
    return std::make_unique<PcodecCodec>(in);
}

}  // namespace

extern constinit const CodecRow pcodec_codec{
    .name = "numcodecs.pcodec",
    .about = "pco, without loss; only read",
    .array_to_bytes = make_pcodec_codec,
    .short_notation = false,
    .compressor = true,
    .only_decodes = true,
};

}  // namespace tessera
