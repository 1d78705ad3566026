// The functions of kernels.cpp on C++ numbers. Included only there.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <tessera/error.h>
#include <tessera/numbers.h>

namespace tessera::operations {

template <class C>
constexpr bool is_complex = std::is_same_v<C, std::complex<float>> || std::is_same_v<C, std::complex<double>>;

enum Takes : unsigned { booleans = 1, integers = 2, reals = 4, complexes = 8 };

template <class C>
constexpr unsigned class_of() {
    if (std::is_same_v<C, bool>) return booleans;
    if (std::is_integral_v<C>) return integers;
    return is_complex<C> ? complexes : reals;
}

// ---- arithmetic

struct Add {
    static constexpr unsigned takes = booleans | integers | reals | complexes;
    template <class C>
    static C of(C a, C b) {
        if constexpr (std::is_same_v<C, bool>) {
            return a || b;
        } else {
            return plus(a, b);
        }
    }
};

struct Subtract {
    static constexpr unsigned takes = integers | reals | complexes;
    template <class C>
    static C of(C a, C b) {
        return minus(a, b);
    }
};

struct Multiply {
    static constexpr unsigned takes = booleans | integers | reals | complexes;
    template <class C>
    static C of(C a, C b) {
        if constexpr (std::is_same_v<C, bool>) {
            return a && b;
        } else if constexpr (is_complex<C>) {
            return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
        } else {
            return times(a, b);
        }
    }
};

struct Divide {
    static constexpr unsigned takes = reals | complexes;
    template <class C>
    static C of(C a, C b) {
        if constexpr (is_complex<C>) {
            return smith(a, b);
        } else {
            return a / b;
        }
    }
    /// NumPy's division of complex numbers.
    template <class C>
    static C smith(C a, C b) {
        const auto abs_real = std::abs(b.real());
        const auto abs_imag = std::abs(b.imag());
        if (abs_real >= abs_imag) {
            if (abs_real == 0 && abs_imag == 0) return {a.real() / abs_real, a.imag() / abs_real};
            const auto ratio = b.imag() / b.real();
            const auto scale = 1 / (b.real() + b.imag() * ratio);
            return {(a.real() + a.imag() * ratio) * scale, (a.imag() - a.real() * ratio) * scale};
        }
        const auto ratio = b.real() / b.imag();
        const auto scale = 1 / (b.imag() + b.real() * ratio);
        return {(a.real() * ratio + a.imag()) * scale, (a.imag() * ratio - a.real()) * scale};
    }
};

struct FloorDivide {
    static constexpr unsigned takes = integers | reals;
    template <class C>
    static C of(C a, C b) {
        if constexpr (std::is_integral_v<C>) {
            return floor_quotient(a, b);
        } else {
            if (b == 0) return a / b;
            C rest = std::fmod(a, b);
            C quotient = (a - rest) / b;
            if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
            if (quotient == 0) return std::copysign(C{0}, a / b);
            const C floor = std::floor(quotient);
            return quotient - floor > C{0.5} ? floor + 1 : floor;
        }
    }
};

struct Remainder {
    static constexpr unsigned takes = integers | reals;
    template <class C>
    static C of(C a, C b) {
        if constexpr (std::is_integral_v<C>) {
            if (b == 0) return 0;
            if constexpr (std::is_signed_v<C>) {
                if (b == -1) return 0;
                const auto rest = static_cast<C>(a % b);
                return rest != 0 && (rest < 0) != (b < 0) ? static_cast<C>(rest + b) : rest;
            }
            return static_cast<C>(a % b);
        } else {
            C rest = std::fmod(a, b);
            if (b == 0) return rest;
            if (rest == 0) return std::copysign(C{0}, b);
            return (b < 0) != (rest < 0) ? rest + b : rest;
        }
    }
};

struct Power {
    static constexpr unsigned takes = integers | reals;
    template <class C>
    static C of(C a, C b) {
        if constexpr (std::is_integral_v<C>) {
            if constexpr (std::is_signed_v<C>) {
                if (b < 0)
                    throw invalid_argument("an integer to a negative power is no integer: write float64(a) ** b");
            }
            C result = 1;
            for (; b != 0; b = static_cast<C>(b / 2), a = Multiply::of(a, a)) {
                if (b % 2 != 0) result = Multiply::of(result, a);
            }
            return result;
        } else {
            return std::pow(a, b);
        }
    }
};

template <bool largest, bool numbers_win>
struct Extreme {
    static constexpr unsigned takes = booleans | integers | reals;
    template <class C>
    static C of(C a, C b) {
        if constexpr (std::is_floating_point_v<C>) {
            if constexpr (numbers_win) {
                return a != a ? b : b != b ? a : (largest ? (a >= b ? a : b) : (a <= b ? a : b));
            }
            return (largest ? a >= b : a <= b) || a != a ? a : b;
        } else {
            return (largest ? a >= b : a <= b) ? a : b;
        }
    }
};

// ---- comparisons

#define TESSERA_COMPARISON(Name, expression, kinds) \
    struct Name {                                   \
        static constexpr unsigned takes = kinds;    \
        template <class C>                          \
        static bool of(C a, C b) {                  \
            return expression;                      \
        }                                           \
    };
TESSERA_COMPARISON(Equal, a == b, booleans | integers | reals | complexes)
TESSERA_COMPARISON(NotEqual, a != b, booleans | integers | reals | complexes)
TESSERA_COMPARISON(Less, a < b, booleans | integers | reals)
TESSERA_COMPARISON(LessEqual, a <= b, booleans | integers | reals)
TESSERA_COMPARISON(Greater, a > b, booleans | integers | reals)
TESSERA_COMPARISON(GreaterEqual, a >= b, booleans | integers | reals)
#undef TESSERA_COMPARISON

// ---- bits

struct And {
    static constexpr unsigned takes = booleans | integers;
    template <class C>
    static C of(C a, C b) {
        return static_cast<C>(a & b);
    }
};
struct Or {
    static constexpr unsigned takes = booleans | integers;
    template <class C>
    static C of(C a, C b) {
        return static_cast<C>(a | b);
    }
};
struct Xor {
    static constexpr unsigned takes = booleans | integers;
    template <class C>
    static C of(C a, C b) {
        return static_cast<C>(a ^ b);
    }
};
struct Invert {
    static constexpr unsigned takes = booleans | integers;
    template <class C>
    static C of(C a) {
        if constexpr (std::is_same_v<C, bool>) {
            return !a;
        } else {
            return static_cast<C>(~a);
        }
    }
};
struct LeftShift {
    static constexpr unsigned takes = integers;
    template <class C>
    static C of(C a, C b) {
        using U = std::make_unsigned_t<C>;
        if (static_cast<U>(b) >= 8 * sizeof(C)) return 0;
        return static_cast<C>(static_cast<Modular<C>>(a) << static_cast<unsigned>(b));
    }
};
struct RightShift {
    static constexpr unsigned takes = integers;
    template <class C>
    static C of(C a, C b) {
        using U = std::make_unsigned_t<C>;
        if (static_cast<U>(b) >= 8 * sizeof(C))
            return static_cast<C>(std::is_signed_v<C> && a < C{1} && a != C{0} ? -1 : 0);
        return static_cast<C>(a >> static_cast<unsigned>(b));
    }
};

// ---- functions of one number

struct Negative {
    static constexpr unsigned takes = integers | reals | complexes;
    template <class C>
    static C of(C a) {
        if constexpr (std::is_integral_v<C>) {
            return Subtract::of(C{0}, a);
        } else {
            return -a;
        }
    }
};
struct Positive {
    static constexpr unsigned takes = integers | reals | complexes;
    template <class C>
    static C of(C a) {
        return a;
    }
};
struct Absolute {
    static constexpr unsigned takes = booleans | integers | reals | complexes;
    template <class C>
    static auto of(C a) {
        if constexpr (is_complex<C>) {
            return std::hypot(a.real(), a.imag());
        } else if constexpr (std::is_floating_point_v<C>) {
            return std::abs(a);
        } else if constexpr (std::is_signed_v<C>) {
            return a < 0 ? Negative::of(a) : a;
        } else {
            return a;
        }
    }
};
struct Square {
    static constexpr unsigned takes = integers | reals | complexes;
    template <class C>
    static C of(C a) {
        return Multiply::of(a, a);
    }
};
struct Sign {
    static constexpr unsigned takes = integers | reals;
    template <class C>
    static C of(C a) {
        if constexpr (std::is_unsigned_v<C>) {
            return a == 0 ? 0 : 1;
        } else {
            return a > 0 ? C(1) : a < 0 ? C(-1) : a == 0 ? C(0) : a;
        }
    }
};

template <class C>
bool is_nan(C a) {
    if constexpr (is_complex<C>) return is_nan(a.real()) || is_nan(a.imag());
    if constexpr (std::is_floating_point_v<C>) return a != a;
    return false;
}
template <class C>
bool is_infinite(C a) {
    if constexpr (is_complex<C>) return is_infinite(a.real()) || is_infinite(a.imag());
    if constexpr (std::is_floating_point_v<C>) return std::abs(a) == std::numeric_limits<C>::infinity();
    return false;
}
struct IsNan {
    static constexpr unsigned takes = booleans | integers | reals | complexes;
    template <class C>
    static bool of(C a) {
        return is_nan(a);
    }
};
struct IsInf {
    static constexpr unsigned takes = booleans | integers | reals | complexes;
    template <class C>
    static bool of(C a) {
        return is_infinite(a);
    }
};
struct IsFinite {
    static constexpr unsigned takes = booleans | integers | reals | complexes;
    template <class C>
    static bool of(C a) {
        return !is_nan(a) && !is_infinite(a);
    }
};
struct Real {
    static constexpr unsigned takes = booleans | integers | reals | complexes;
    template <class C>
    static auto of(C a) {
        if constexpr (is_complex<C>) {
            return a.real();
        } else {
            return a;
        }
    }
};
struct Imaginary {
    static constexpr unsigned takes = booleans | integers | reals | complexes;
    template <class C>
    static auto of(C a) {
        if constexpr (is_complex<C>) {
            return a.imag();
        } else {
            return C{};
        }
    }
};
struct Conjugate {
    static constexpr unsigned takes = integers | reals | complexes;
    template <class C>
    static C of(C a) {
        if constexpr (is_complex<C>) {
            return std::conj(a);
        } else {
            return a;
        }
    }
};

#define TESSERA_REAL_FUNCTION(Name, function)    \
    struct Name {                                \
        static constexpr unsigned takes = reals; \
        template <class C>                       \
        static C of(C a) {                       \
            return std::function(a);             \
        }                                        \
    };
TESSERA_REAL_FUNCTION(Sqrt, sqrt)
TESSERA_REAL_FUNCTION(Cbrt, cbrt)
TESSERA_REAL_FUNCTION(Exp, exp)
TESSERA_REAL_FUNCTION(Exp2, exp2)
TESSERA_REAL_FUNCTION(Expm1, expm1)
TESSERA_REAL_FUNCTION(Log, log)
TESSERA_REAL_FUNCTION(Log2, log2)
TESSERA_REAL_FUNCTION(Log10, log10)
TESSERA_REAL_FUNCTION(Log1p, log1p)
TESSERA_REAL_FUNCTION(Sin, sin)
TESSERA_REAL_FUNCTION(Cos, cos)
TESSERA_REAL_FUNCTION(Tan, tan)
TESSERA_REAL_FUNCTION(Arctan, atan)
TESSERA_REAL_FUNCTION(Tanh, tanh)
TESSERA_REAL_FUNCTION(Floor, floor)
TESSERA_REAL_FUNCTION(Ceil, ceil)
TESSERA_REAL_FUNCTION(Trunc, trunc)
TESSERA_REAL_FUNCTION(Rint, nearbyint)
#undef TESSERA_REAL_FUNCTION

struct Arctan2 {
    static constexpr unsigned takes = reals;
    template <class C>
    static C of(C a, C b) {
        return std::atan2(a, b);
    }
};
struct Hypot {
    static constexpr unsigned takes = reals;
    template <class C>
    static C of(C a, C b) {
        return std::hypot(a, b);
    }
};

}  // namespace tessera::operations
