// Functions of NumPy over rows of packed elements: a loop for each C type, found by name. Private to the store module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <tessera/dtype.h>

namespace tessera {

/// The dtypes that are computed with, in host order.
enum class Number : std::uint8_t { b1, i1, i2, i4, i8, u1, u2, u4, u8, f2, f4, f8, c8, c16 };

/// bfloat16 is computed with as f4; nothing for what is no number.
[[nodiscard]] std::optional<Number> number_of(const DType& dtype);
[[nodiscard]] DType dtype_of(Number number);
/// "int16", as NumPy calls it.
[[nodiscard]] std::string_view number_name(Number number);

/// The dtype that holds both, as numpy.promote_types. Nothing where that would be float64 for 64-bit integers with and
/// without sign.
[[nodiscard]] std::optional<Number> promoted(Number a, Number b);

/// n elements of each operand at `in` give n at `out`, which is none of them. Throws invalid_argument for an integer to
/// a negative power.
using Kernel = void (*)(const std::byte* const* in, std::byte* out, std::int64_t n);

struct Function {
    /// What a function computes with, given the promoted dtype of its operands.
    enum class Operands : std::uint8_t {
        same,      ///< that
        integers,  ///< that, Booleans as int8
        inexact,   ///< integers as the float that holds them: float16, float32 or float64
        divide,    ///< integers as float64
        where,     ///< as same, without the first, which is a Boolean
    };
    enum class Result : std::uint8_t { same, boolean, real };  ///< real: of complex numbers, their parts' dtype

    std::string_view name;
    int arguments;
    Operands operands;
    Result result;
    Kernel (*find)(Number number);  ///< nullptr where it has no meaning
};

[[nodiscard]] std::span<const Function> functions();
[[nodiscard]] const Function* find_function(std::string_view name);

}  // namespace tessera
