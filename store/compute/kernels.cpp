#include "kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <utility>

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

/// Calls body with an element of the number's type.
template <class Body>
auto with_type(Number number, const Body& body) {
    switch (number) {
        case Number::b1:
            return body(Boolean{});
        case Number::i1:
            return body(std::int8_t{});
        case Number::i2:
            return body(std::int16_t{});
        case Number::i4:
            return body(std::int32_t{});
        case Number::i8:
            return body(std::int64_t{});
        case Number::u1:
            return body(std::uint8_t{});
        case Number::u2:
            return body(std::uint16_t{});
        case Number::u4:
            return body(std::uint32_t{});
        case Number::u8:
            return body(std::uint64_t{});
        case Number::f2:
            return body(Half{});
        case Number::f4:
            return body(float{});
        case Number::f8:
            return body(double{});
        case Number::c8:
            return body(std::complex<float>{});
        default:
            return body(std::complex<double>{});
    }
}

template <class Op>
Kernel one(Number number) {
    return with_type(number, [](auto v) -> Kernel {
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
    return with_type(number, [](auto v) -> Kernel {
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
    return with_type(number, [](auto v) -> Kernel { return run_where<decltype(v)>; });
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

constexpr std::array<std::string_view, 14> number_names{"bool",    "int8",    "int16",     "int32",     "int64",
                                                        "uint8",   "uint16",  "uint32",    "uint64",    "float16",
                                                        "float32", "float64", "complex64", "complex128"};

struct Parts {
    int kind;  ///< 0 bool, 1 unsigned, 2 signed, 3 real, 4 complex
    int bytes;
};

Parts parts_of(Number number) {
    constexpr std::array<Parts, 14> parts{{{0, 1},
                                           {2, 1},
                                           {2, 2},
                                           {2, 4},
                                           {2, 8},
                                           {1, 1},
                                           {1, 2},
                                           {1, 4},
                                           {1, 8},
                                           {3, 2},
                                           {3, 4},
                                           {3, 8},
                                           {4, 4},
                                           {4, 8}}};
    return parts.at(static_cast<std::size_t>(number));
}

Number number_with(int kind, int bytes) {
    for (std::size_t i = 0; i < number_names.size(); ++i) {
        const Parts parts = parts_of(static_cast<Number>(i));
        if (parts.kind == kind && parts.bytes == bytes) return static_cast<Number>(i);
    }
    return Number::f8;
}

}  // namespace

std::optional<Number> number_of(const DType& dtype) {
    const auto bytes = static_cast<int>(dtype.size());
    switch (dtype.kind()) {
        case Kind::boolean:
            return Number::b1;
        case Kind::unsigned_integer:
            return number_with(1, bytes);
        case Kind::integer:
            return number_with(2, bytes);
        case Kind::real:
            return number_with(3, bytes);
        case Kind::complex:
            return number_with(4, bytes / 2);
        case Kind::bfloat16:
            return Number::f4;
        default:
            return std::nullopt;
    }
}

DType dtype_of(Number number) {
    const Parts parts = parts_of(number);
    constexpr std::array<Kind, 5> kinds{Kind::boolean, Kind::unsigned_integer, Kind::integer, Kind::real,
                                        Kind::complex};
    return DType::scalar(kinds.at(static_cast<std::size_t>(parts.kind)),
                         parts.kind == 4 ? 2 * parts.bytes : parts.bytes);
}

std::string_view number_name(Number number) {
    return number_names.at(static_cast<std::size_t>(number));
}

std::optional<Number> promoted(Number a, Number b) {
    Parts x = parts_of(a);
    Parts y = parts_of(b);
    if (x.kind > y.kind) std::swap(x, y);
    if (x.kind == 0) return number_with(y.kind, y.bytes);
    if (x.kind == y.kind) return number_with(x.kind, std::max(x.bytes, y.bytes));
    if (y.kind == 2) {  // without and with sign
        if (x.bytes < y.bytes) return number_with(2, y.bytes);
        if (x.bytes == 8) return std::nullopt;
        return number_with(2, 2 * x.bytes);
    }
    if (x.kind <= 2)
        return number_with(y.kind, std::max(y.kind == 4 ? std::max(y.bytes, 4) : y.bytes, std::min(8, 2 * x.bytes)));
    return number_with(4, std::max(x.bytes, y.bytes));
}

std::span<const Function> functions() {
    return table;
}

const Function* find_function(std::string_view name) {
    const auto found = std::ranges::find(table, name, &Function::name);
    return found == table.end() ? nullptr : &*found;
}

}  // namespace tessera
