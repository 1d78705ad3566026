// A latent variable of pco: its bins, and the table of tANS that codes which bin comes next. Private to the codecs
// module.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <tessera/counted.h>
#include <tessera/error_text.h>

#include "pco_bits.h"

namespace tessera {

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
struct PcoBin {
    L lower;
    std::uint32_t weight;
    std::uint8_t offset_bits;
};

/// The bins of a variable whose table has `size` states; one that is always taken where none is written.
template <class L>
CountedVector<PcoBin<L>> read_pco_bins(PcoBits& bits, const PcoVariable<L>& v, std::size_t size) {
    constexpr int of_offset_bits = std::bit_width(static_cast<unsigned>(pco_bits<L>));
    bits.require_inside(std::uint64_t{v.bins} * static_cast<unsigned>(v.log + pco_bits<L> + of_offset_bits));
    CountedVector<PcoBin<L>> bins(std::max<std::size_t>(v.bins, 1), PcoBin<L>{0, 1, 0});
    std::size_t weights = v.bins == 0 ? 1 : 0;
    for (std::size_t i = 0; i < v.bins; ++i) {
        PcoBin<L>& bin = bins[i];
        bin.weight = static_cast<std::uint32_t>(1 + bits.take(v.log));
        bin.lower = bits.template take_latent<L>();
        bin.offset_bits = static_cast<std::uint8_t>(bits.take(of_offset_bits));
        if (bin.offset_bits > pco_bits<L>) {
            throw corrupt("an offset of {} bits in a bin of numbers of {}", bin.offset_bits, pco_bits<L>);
        }
        weights += bin.weight;
    }
    if (weights != size) throw corrupt("the weights of the bins sum to {}, expected {}", weights, size);
    return bins;
}

/// The number of each state's bin. The bins are spread over the states in steps that are odd, so that each state is met
/// once.
template <class L>
CountedVector<std::uint16_t> pco_bins_of_states(const CountedVector<PcoBin<L>>& bins, std::size_t states) {
    CountedVector<std::uint16_t> bin_of(states);
    const std::size_t step = (3 * states / 5) | 1;
    std::size_t at = 0;
    for (std::size_t i = 0; i < bins.size(); ++i) {
        for (std::uint32_t k = 0; k < bins[i].weight; ++k, at = (at + step) & (states - 1)) {
            bin_of[at] = static_cast<std::uint16_t>(i);
        }
    }
    return bin_of;
}

template <class L>
PcoVariable<L> read_pco_variable(PcoBits& bits) {
    PcoVariable<L> v;
    v.log = static_cast<int>(bits.take(4));
    v.bins = bits.take(15);
    const std::size_t size = std::size_t{1} << v.log;
    constexpr int most = 14;
    if (v.log > most || v.bins > size || (v.bins == 1 && v.log > 0)) {
        throw corrupt("{} bins in a table of 2^{} states, at most 2^{}", v.bins, v.log, most);
    }
    CountedVector<PcoBin<L>> bins = read_pco_bins(bits, v, size);
    const CountedVector<std::uint16_t> bin_of = pco_bins_of_states(bins, size);
    v.states.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
        PcoBin<L>& bin = bins[bin_of[i]];
        const std::uint32_t x = bin.weight++;
        const int read = v.log + 1 - std::bit_width(x);
        v.states[i] = {bin.lower, static_cast<std::uint16_t>((x << read) - size), static_cast<std::uint8_t>(read),
                       bin.offset_bits};
    }
    return v;
}

}  // namespace tessera
