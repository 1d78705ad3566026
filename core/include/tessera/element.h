// Operations on one element of any dtype: to and from JSON and text, default and equality.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/dtype.h>
#include <tessera/value.h>

namespace tessera {

/// The bytes of one element. For variable-length kinds: the content itself, not a slot.
using ElementBytes = std::vector<std::byte>;

/// How a JSON value becomes an element.
enum class Assign : std::uint8_t {
    numpy,  ///< as NumPy 1.24 assigns: 300→u1 is 44, 3.7→i4 is 3, 1e300→f4 is inf, 0→S3 is "0", long text is cut
    exact,  ///< only values that stay the same (floats may round to nearest); else invalid_argument, saying why
};

/// One element from a JSON value. Complex: a number or [real, imaginary]; times: an integer count, ISO 8601 text
/// ("2020-01-31T12:00"), or "NaT"; S: text or bytes as latin-1/ASCII text; V: text of hex digits "0x…"; a structure: a
/// list of its fields' values or an object by name; under Assign::numpy a scalar goes to every field, as NumPy does.
/// Throws invalid_argument, naming dtype and value, if it cannot be assigned (0 to V, NaN to an integer, 1e300 to i4).
[[nodiscard]] ElementBytes element_from_value(const DType& dtype, const Value& value, Assign rule);

/// One element from text that a user typed, by Assign::exact. It is parsed as JSON first ("3", "NaN", "[1, 2]",
/// "\"text\""); for S, U, times and text kinds it may also be plain text.
[[nodiscard]] ElementBytes element_from_text(const DType& dtype, std::string_view text);

/// The element at `p` (any alignment, its dtype's byte order; for variable-length kinds `p` is a slot) as JSON:
/// numbers, [re, im], times as integer counts, S as text by latin-1, U as text, V as "0x…", structures as lists. f2 and
/// f4 become the double of the shortest decimal that reads back, so that 0.1f prints as 0.1.
[[nodiscard]] Value element_to_value(const DType& dtype, const std::byte* p);

/// The element at `p` for a person: like element_to_value, but times as ISO 8601 ("2020-01-31", "NaT", "5 ns"),
/// complex as "1+2j", text without JSON escapes.
[[nodiscard]] std::string element_to_text(const DType& dtype, const std::byte* p);

/// The element at `p` as element_from_value() takes it for arrays of any unit of time: as element_to_value, but times
/// as text.
[[nodiscard]] Value element_to_assign(const DType& dtype, const std::byte* p);

/// An element with all bytes zero; for variable-length kinds, an empty string. Also the default for S, U and V.
[[nodiscard]] ElementBytes zero_element(const DType& dtype);

/// Reverses the bytes of every multi-byte part of `count` consecutive elements, in place.
void swap_elements(const DType& dtype, std::byte* p, std::int64_t count);
/// The same for elements that lie `step` bytes apart.
void swap_elements(const DType& dtype, std::byte* p, std::int64_t step, std::int64_t count);

// IEEE 754 binary16 and bfloat16: exact to float/double, correctly rounded (to nearest even) from them. The conversion
// to float has no branches and is in the header, so that loops over it are vectorised.
[[nodiscard]] inline float half_to_float(std::uint16_t bits) {
    constexpr std::uint32_t rebias = 112U << 23U;  // from an exponent with a bias of 15 to one with 127
    const std::uint32_t exponent = bits & 0x7C00U;
    const std::uint32_t normal = ((bits & 0x7FFFU) << 13U) + rebias;
    const std::uint32_t special = normal + rebias;  // infinities and NaNs
    // For exponent 0: puts the fraction into the last bits of one half, then subtracts one half.
    const float small = std::bit_cast<float>(0x3F000000U | (bits & 0x3FFU)) - 0.5F;
    const std::uint32_t magnitude = exponent == 0        ? std::bit_cast<std::uint32_t>(small)
                                    : exponent == 0x7C00 ? special
                                                         : normal;
    return std::bit_cast<float>(magnitude | (bits & 0x8000U) << 16U);
}
[[nodiscard]] std::uint16_t double_to_half(double v);
[[nodiscard]] inline float bfloat16_to_float(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}
[[nodiscard]] std::uint16_t double_to_bfloat16(double v);

}  // namespace tessera
