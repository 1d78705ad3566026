// How latents of pco follow from earlier ones. Private to the codecs module.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "pco_bits.h"

namespace tessera {

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

[[nodiscard]] PcoDeltaEncoding read_pco_delta(PcoBits& bits, int version);
/// Throws corrupt if a sum of conv1 may leave signed integers of twice the latents' bits.
void require_conv1_fits(const PcoDeltaEncoding& delta, int latent_bits);

}  // namespace tessera
