// Which packed elements are the same, byte for byte. One loop is chosen for a whole array. Private to the store module.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

/// How many of `n` packed elements of `size` bytes equal the one at `element`, byte for byte.
using CountEqual = std::int64_t (*)(const std::byte* elements, std::int64_t n, std::int64_t size,
                                    const std::byte* element);
[[nodiscard]] CountEqual count_equal(std::int64_t size);

/// Sets flags[i] to 1 where the i-th of two rows of `n` packed elements of `size` bytes differ, else to 0.
using FlagDifferent = void (*)(const std::byte* a, const std::byte* b, std::int64_t n, std::int64_t size,
                               std::uint8_t* flags);
[[nodiscard]] FlagDifferent flag_different(std::int64_t size);

}  // namespace tessera
