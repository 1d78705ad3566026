#include "pco_delta.h"

#include <cmath>

#include <tessera/error_text.h>

namespace tessera {

namespace {

std::uint64_t pco_signed_32(std::uint64_t ordered) {
    return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(ordered ^ pco_middle<std::uint32_t>)});
}

void read_lookback(PcoBits& bits, PcoDeltaEncoding& delta) {
    const auto window_log = static_cast<int>(1 + bits.take(5));
    const auto state_log = static_cast<int>(bits.take(4));
    delta.of_secondary = bits.take(1) != 0;
    constexpr int most = 24;  // a pco chunk has no more numbers
    if (window_log > most || state_log > window_log) {
        throw corrupt("a window of 2^{} latents, of which 2^{} are given; expected at most 2^{}", window_log, state_log,
                      most);
    }
    delta.window = std::uint32_t{1} << window_log;
    delta.state = std::size_t{1} << state_log;
}

}  // namespace

PcoDeltaEncoding read_pco_delta(PcoBits& bits, int version) {
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
        read_lookback(bits, delta);
    } else if (delta.kind == PcoDelta::conv1) {
        delta.quantization = static_cast<int>(bits.take(5));
        delta.bias = bits.take(64) ^ pco_middle<std::uint64_t>;
        delta.state = 1 + bits.take(5);
        for (std::size_t i = 0; i < delta.state; ++i) delta.weights[i] = pco_signed_32(bits.take(32));
    }
    return delta;
}

void require_conv1_fits(const PcoDeltaEncoding& delta, int latent_bits) {
    if (latent_bits == 64) throw corrupt("the delta encoding conv1 of latents of 64 bits");
    const int sum_bits = 2 * latent_bits;
    const auto magnitude = [](std::uint64_t v) { return std::abs(static_cast<double>(static_cast<std::int64_t>(v))); };
    double most = 0;
    for (std::size_t i = 0; i < delta.state; ++i) most += magnitude(delta.weights[i]);
    most = most * static_cast<double>(std::uint64_t{1} << latent_bits) + magnitude(delta.bias);
    if (delta.quantization >= sum_bits || most >= static_cast<double>(std::uint64_t{1} << (sum_bits - 1))) {
        throw corrupt("the weights of the delta encoding conv1 overflow {} bits", sum_bits);
    }
}

}  // namespace tessera
