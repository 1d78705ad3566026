// The latents of a page of pco, batch by batch: bins and offsets in them, to which earlier latents are added. Private
// to the codecs module.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <tessera/counted.h>
#include <tessera/error_text.h>

#include "pco_delta.h"
#include "pco_variable.h"

namespace tessera {

inline constexpr std::size_t pco_batch = 256;
inline constexpr std::size_t pco_streams = 4;  ///< interleaved states of tANS

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
            read_states(bits, count);
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

    /// The bins of latents, which four interleaved streams of tANS code.
    void read_states(PcoBits& bits, std::size_t count) {
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

}  // namespace tessera
