#include "scaling.h"

#include <bit>
#include <cmath>
#include <limits>

namespace tessera {

namespace {

/// The smallest type that holds `number`. For integers >= 0, `with_sign` chooses a signed or an unsigned type.
DType least_dtype(const Value& number, bool with_sign) {
    if (!number.is_integer()) {
        const double size = std::abs(number.as_double());
        const bool any = std::isinf(size) || std::isnan(size);
        return DType::scalar(Kind::real, any || size < 65000 ? 2 : size < 3.4e38 ? 4 : 8);
    }
    const bool negative = number.as_double() < 0;
    const std::uint64_t size = negative ? ~static_cast<std::uint64_t>(number.as_int64()) : number.as_uint64();
    const auto bytes = [&](int bits) { return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8; };
    const int bits = std::bit_width(size);
    if (negative || (with_sign && bytes(bits + 1) == bytes(bits) && bits < 64)) {
        return DType::scalar(Kind::integer, bytes(bits + 1));
    }
    return DType::scalar(Kind::unsigned_integer, bytes(bits));
}

/// The dtype that NumPy 1 computes in.
DType result_dtype(const DType& dtype, Operation operation, const Value& number) {
    if (dtype.kind() != Kind::real && (!number.is_integer() || operation == Operation::divide)) {
        return DType::scalar(Kind::real, 8);
    }
    return promoted(dtype, least_dtype(number, dtype.kind() == Kind::integer));
}

template <class T>
T number_as(const Value& number) {
    if constexpr (std::integral<T>) {
        return static_cast<T>(number.as_double() < 0 ? static_cast<std::uint64_t>(number.as_int64())
                                                     : number.as_uint64());
    } else {
        return T(number.as_double());
    }
}

template <class T>
void compute_all(std::span<T> v, Operation operation, T number) {
    const auto each = [&](auto&& body) {
        for (T& x : v) x = body(x);
    };
    switch (operation) {
        case Operation::add:
            return each([&](T x) { return plus(x, number); });
        case Operation::subtract:
            return each([&](T x) { return minus(x, number); });
        case Operation::multiply:
            return each([&](T x) { return times(x, number); });
        case Operation::divide:
            if constexpr (!std::integral<T>) each([&](T x) { return T(x / number); });
    }
}

/// with_number for the kinds that require_numbers accepts.
template <class Body>
void with_real_number(const DType& dtype, Body&& body) {
    with_number(dtype, [&](auto type) {
        if constexpr (std::convertible_to<decltype(type), double>) body(type);
    });
}

}  // namespace

NDArray compute(NDArray a, Operation operation, const Value& number) {
    const DType result = result_dtype(a.dtype(), operation, number);  // before the move: arguments come in any order
    a = cast_numbers(std::move(a), result);
    with_real_number(a.dtype(), [&](auto type) {
        using T = decltype(type);
        compute_all(elements<T>(a), operation, number_as<T>(number));
    });
    return a;
}

NDArray rounded(NDArray a) {
    with_real_number(a.dtype(), [&](auto type) {
        using T = decltype(type);
        if constexpr (!std::integral<T>) {
            for (T& x : elements<T>(a)) x = T(std::nearbyint(x));
        }
    });
    return a;
}

}  // namespace tessera
