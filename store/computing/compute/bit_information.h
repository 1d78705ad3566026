// How many bits of floats are more than noise. Private to the store module.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include <tessera/array_io.h>

namespace tessera {

/// The bits of the fraction that hold, with sign and exponent, 99 % of the information that elements share with their
/// neighbours, for the dimension that needs most of them. nullopt where a sample shows none: all are the same, or
/// noise, or too few. `counts(element in host order)`: whether an element takes part. `source` has real numbers.
[[nodiscard]] std::optional<int> informative_bits(const ArraySource& source,
                                                  const std::function<bool(const std::byte*)>& counts,
                                                  const IoOptions& io);

}  // namespace tessera
