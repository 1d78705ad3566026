// Elements of any dtype as numbers. Loops by C type over packed elements; one loop is chosen for a whole array. Private
// to the store module.
#pragma once

#include <tessera/dtype.h>

#include <cstddef>
#include <cstdint>

namespace tessera {

/// Number of elements for the kernels below at a time. As doubles they fill a quarter of the L1 cache.
constexpr std::int64_t piece = 1024;

/// Whether elements are numbers for arithmetic: Boolean, integer, real, complex, bfloat16.
[[nodiscard]] bool is_number(const DType& dtype);
[[nodiscard]] bool is_time(const DType& dtype);

/// `n` packed elements in host order, of any alignment, as doubles: 64-bit integers rounded, NaT as NaN. Complex ones
/// give two each.
using ToDoubles = void (*)(const std::byte* elements, std::int64_t n, double* to);
/// For numbers and times.
[[nodiscard]] ToDoubles to_doubles(const DType& dtype);

/// `n` packed integers in host order, negative ones as two's complement of 64 bits.
using ToIntegers = void (*)(const std::byte* elements, std::int64_t n, std::uint64_t* to);
/// For integers with and without sign.
[[nodiscard]] ToIntegers to_integers(const DType& dtype);

/// How many of `n` packed elements of `size` bytes equal the one at `element`, byte for byte.
using CountEqual = std::int64_t (*)(const std::byte* elements, std::int64_t n, std::int64_t size,
                                    const std::byte* element);
[[nodiscard]] CountEqual count_equal(std::int64_t size);

/// Sets flags[i] to 1 where the i-th of two rows of `n` packed elements of `size` bytes differ, else to 0.
using FlagDifferent = void (*)(const std::byte* a, const std::byte* b, std::int64_t n, std::int64_t size,
                               std::uint8_t* flags);
[[nodiscard]] FlagDifferent flag_different(std::int64_t size);

}  // namespace tessera
