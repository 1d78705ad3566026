// A pco chunk: numbers that are put together from latents, as its mode says. Private to the codecs module.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pco_bits.h"

namespace tessera {

enum class PcoNumbers : std::uint8_t { unsigned_integers, integers, floats };

/// Reads a pco chunk, from its mode to its page: `count` numbers of `size` bytes (1, 2, 4 or 8) to `out`. `version` is
/// that of the wrapped format. Throws corrupt.
void decode_pco_chunk(PcoBits& bits, int version, PcoNumbers numbers, std::int64_t size, std::size_t count,
                      std::byte* out);

}  // namespace tessera
