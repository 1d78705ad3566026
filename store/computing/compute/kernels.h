// Functions of NumPy over rows of packed elements: a loop for each C type, found by name. Private to the store module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <tessera/dtype.h>

namespace tessera {

/// The dtypes of computations, in host order.
enum class Number : std::uint8_t { b1, i1, i2, i4, i8, u1, u2, u4, u8, f2, f4, f8, c8, c16 };

/// bfloat16 is computed as f4; nullopt for elements that are not numbers.
[[nodiscard]] std::optional<Number> number_of(const DType& dtype);
[[nodiscard]] DType dtype_of(Number number);
/// "int16", as NumPy calls it.
[[nodiscard]] std::string_view number_name(Number number);

/// The common dtype, as numpy.promote_types. nullopt for int64 with uint64, where NumPy gives float64.
[[nodiscard]] std::optional<Number> promoted(Number a, Number b);

/// Computes n elements at `out` from n of each operand at `in`; they must not overlap. Throws invalid_argument for an
/// integer to a negative power.
using Kernel = void (*)(const std::byte* const* in, std::byte* out, std::int64_t n);

struct Function {
    /// The dtype in which a function computes, given the promoted dtype of its operands.
    enum class Operands : std::uint8_t {
        same,      ///< that
        integers,  ///< that, Booleans as int8
        inexact,   ///< integers as a sufficient float: float16, float32 or float64
        divide,    ///< integers as float64
        where,     ///< as same, except for the first operand, a Boolean
    };
    enum class Result : std::uint8_t { same, boolean, real };  ///< real: of complex numbers, their parts' dtype

    std::string_view name;
    int arguments;
    Operands operands;
    Result result;
    Kernel (*find)(Number number);  ///< nullptr if the function is undefined
};

[[nodiscard]] std::span<const Function> functions();
[[nodiscard]] const Function* find_function(std::string_view name);

}  // namespace tessera
