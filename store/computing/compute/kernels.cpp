#include "kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <utility>

#include <tessera/number_names.h>

#include "operations.h"

namespace tessera {

namespace {

using namespace operations;  // NOLINT(google-build-using-namespace): written for this file

/// The element type of an operation on T that yields R on C++ numbers.
template <class T, class R>
using Stored = std::conditional_t<std::is_same_v<R, bool>, Boolean,
                                  std::conditional_t<std::is_same_v<R, decltype(up(T{}))>, T, R>>;

template <class Op, class T>
void run_one(const std::byte* const* in, std::byte* out, std::int64_t n) {
    const T* a = reinterpret_cast<const T*>(in[0]);
    using To = Stored<T, decltype(Op::of(up(T{})))>;
    To* to = reinterpret_cast<To*>(out);
    for (std::int64_t i = 0; i < n; ++i) to[i] = down<To>(Op::of(up(a[i])));
}

template <class Op, class T>
void run_two(const std::byte* const* in, std::byte* out, std::int64_t n) {
    const T* a = reinterpret_cast<const T*>(in[0]);
    const T* b = reinterpret_cast<const T*>(in[1]);
    using To = Stored<T, decltype(Op::of(up(T{}), up(T{})))>;
    To* to = reinterpret_cast<To*>(out);
    for (std::int64_t i = 0; i < n; ++i) to[i] = down<To>(Op::of(up(a[i]), up(b[i])));
}

template <class Op>
Kernel one(Number number) {
    return with_number(dtype_of(number), [](auto v) -> Kernel {
        using T = decltype(v);
        if constexpr ((Op::takes & class_of<decltype(up(T{}))>()) != 0) {
            return run_one<Op, T>;
        } else {
            return nullptr;
        }
    });
}

template <class Op>
Kernel two(Number number) {
    return with_number(dtype_of(number), [](auto v) -> Kernel {
        using T = decltype(v);
        if constexpr ((Op::takes & class_of<decltype(up(T{}))>()) != 0) {
            return run_two<Op, T>;
        } else {
            return nullptr;
        }
    });
}

template <class T>
void run_where(const std::byte* const* in, std::byte* out, std::int64_t n) {
    const auto* condition = reinterpret_cast<const Boolean*>(in[0]);
    const T* a = reinterpret_cast<const T*>(in[1]);
    const T* b = reinterpret_cast<const T*>(in[2]);
    T* to = reinterpret_cast<T*>(out);
    for (std::int64_t i = 0; i < n; ++i) to[i] = up(condition[i]) ? a[i] : b[i];
}

Kernel where(Number number) {
    return with_number(dtype_of(number), [](auto v) -> Kernel { return run_where<decltype(v)>; });
}

Kernel of_times_only(Number /*number*/) {
    return nullptr;
}

using Operands = Function::Operands;
using Result = Function::Result;

constexpr std::array<Function, 58> table{{
    {"add", 2, Operands::same, Result::same, two<Add>},
    {"subtract", 2, Operands::same, Result::same, two<Subtract>},
    {"multiply", 2, Operands::same, Result::same, two<Multiply>},
    {"divide", 2, Operands::divide, Result::same, two<Divide>},
    {"floor_divide", 2, Operands::integers, Result::same, two<FloorDivide>},
    {"remainder", 2, Operands::integers, Result::same, two<Remainder>},
    {"mod", 2, Operands::integers, Result::same, two<Remainder>},
    {"power", 2, Operands::integers, Result::same, two<Power>},
    {"minimum", 2, Operands::same, Result::same, two<Extreme<false, false>>},
    {"maximum", 2, Operands::same, Result::same, two<Extreme<true, false>>},
    {"fmin", 2, Operands::same, Result::same, two<Extreme<false, true>>},
    {"fmax", 2, Operands::same, Result::same, two<Extreme<true, true>>},
    {"equal", 2, Operands::same, Result::boolean, two<Equal>},
    {"not_equal", 2, Operands::same, Result::boolean, two<NotEqual>},
    {"less", 2, Operands::same, Result::boolean, two<Less>},
    {"less_equal", 2, Operands::same, Result::boolean, two<LessEqual>},
    {"greater", 2, Operands::same, Result::boolean, two<Greater>},
    {"greater_equal", 2, Operands::same, Result::boolean, two<GreaterEqual>},
    {"bitwise_and", 2, Operands::same, Result::same, two<And>},
    {"bitwise_or", 2, Operands::same, Result::same, two<Or>},
    {"bitwise_xor", 2, Operands::same, Result::same, two<Xor>},
    {"invert", 1, Operands::same, Result::same, one<Invert>},
    {"left_shift", 2, Operands::integers, Result::same, two<LeftShift>},
    {"right_shift", 2, Operands::integers, Result::same, two<RightShift>},
    {"negative", 1, Operands::same, Result::same, one<Negative>},
    {"positive", 1, Operands::same, Result::same, one<Positive>},
    {"abs", 1, Operands::same, Result::real, one<Absolute>},
    {"absolute", 1, Operands::same, Result::real, one<Absolute>},
    {"square", 1, Operands::integers, Result::same, one<Square>},
    {"sign", 1, Operands::same, Result::same, one<Sign>},
    {"isnan", 1, Operands::same, Result::boolean, one<IsNan>},
    {"isinf", 1, Operands::same, Result::boolean, one<IsInf>},
    {"isfinite", 1, Operands::same, Result::boolean, one<IsFinite>},
    {"isnat", 1, Operands::same, Result::boolean, of_times_only},
    {"real", 1, Operands::same, Result::real, one<Real>},
    {"imag", 1, Operands::same, Result::real, one<Imaginary>},
    {"conj", 1, Operands::same, Result::same, one<Conjugate>},
    {"sqrt", 1, Operands::inexact, Result::same, one<Sqrt>},
    {"cbrt", 1, Operands::inexact, Result::same, one<Cbrt>},
    {"exp", 1, Operands::inexact, Result::same, one<Exp>},
    {"exp2", 1, Operands::inexact, Result::same, one<Exp2>},
    {"expm1", 1, Operands::inexact, Result::same, one<Expm1>},
    {"log", 1, Operands::inexact, Result::same, one<Log>},
    {"log2", 1, Operands::inexact, Result::same, one<Log2>},
    {"log10", 1, Operands::inexact, Result::same, one<Log10>},
    {"log1p", 1, Operands::inexact, Result::same, one<Log1p>},
    {"sin", 1, Operands::inexact, Result::same, one<Sin>},
    {"cos", 1, Operands::inexact, Result::same, one<Cos>},
    {"tan", 1, Operands::inexact, Result::same, one<Tan>},
    {"arctan", 1, Operands::inexact, Result::same, one<Arctan>},
    {"arctan2", 2, Operands::inexact, Result::same, two<Arctan2>},
    {"tanh", 1, Operands::inexact, Result::same, one<Tanh>},
    {"hypot", 2, Operands::inexact, Result::same, two<Hypot>},
    {"floor", 1, Operands::inexact, Result::same, one<Floor>},
    {"ceil", 1, Operands::inexact, Result::same, one<Ceil>},
    {"trunc", 1, Operands::inexact, Result::same, one<Trunc>},
    {"rint", 1, Operands::inexact, Result::same, one<Rint>},
    {"where", 3, Operands::where, Result::same, where},
}};

const NumberName& row_of(Number number) {
    static_assert(number_names.at(static_cast<std::size_t>(Number::c16)).name == "complex128");
    return number_names.at(static_cast<std::size_t>(number));
}

}  // namespace

std::optional<Number> number_of(const DType& dtype) {
    if (dtype.kind() == Kind::bfloat16) return Number::f4;
    const NumberName* const row = number_name_of(dtype);
    if (row == nullptr) return std::nullopt;
    return static_cast<Number>(row - number_names.data());
}

DType dtype_of(Number number) {
    return DType::scalar(row_of(number).kind, row_of(number).size);
}

std::string_view number_name(Number number) {
    return row_of(number).name;
}

std::optional<Number> promoted(Number a, Number b) {
    if ((a == Number::i8 && b == Number::u8) || (a == Number::u8 && b == Number::i8)) return std::nullopt;
    return number_of(promoted(dtype_of(a), dtype_of(b)));
}

std::span<const Function> functions() {
    return table;
}

const Function* find_function(std::string_view name) {
    const auto found = std::ranges::find(table, name, &Function::name);
    return found == table.end() ? nullptr : &*found;
}

}  // namespace tessera
