#include <tessera/numbers.h>

#include <algorithm>
#include <limits>

#include <tessera/error_text.h>

namespace tessera {

namespace {

struct Time {
    std::int64_t count;
};

template <class T>
void all_to_doubles(const std::byte* elements, std::int64_t n, double* to) {
    for (std::int64_t i = 0; i < n; ++i) {
        const T v = load_number<T>(elements, i);
        if constexpr (std::is_same_v<T, Time>) {
            const bool nat = v.count == std::numeric_limits<std::int64_t>::min();
            to[i] = nat ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(v.count);
        } else {
            to[i] = static_cast<double>(up(v));
        }
    }
}

template <class T>
void pairs_to_doubles(const std::byte* elements, std::int64_t n, double* to) {
    all_to_doubles<T>(elements, 2 * n, to);
}

template <class T>
void all_to_integers(const std::byte* elements, std::int64_t n, std::uint64_t* to) {
    // Sign extension of small integers is intended. NOLINTNEXTLINE(bugprone-signed-char-misuse)
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<std::uint64_t>(up(load_number<T>(elements, i)));
}

/// The size of the smallest float that NumPy takes for a number; of a complex one, its parts'.
std::int64_t float_size(const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::boolean:
            return 0;
        case Kind::complex:
            return dtype.size() / 2;
        case Kind::bfloat16:
            return 4;
        case Kind::real:
            return dtype.size();
        default:
            return std::min<std::int64_t>(2 * dtype.size(), 8);
    }
}

}  // namespace

bool is_number(const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::boolean:
        case Kind::integer:
        case Kind::unsigned_integer:
        case Kind::real:
        case Kind::complex:
        case Kind::bfloat16:
            return true;
        default:
            return false;
    }
}

bool is_time(const DType& dtype) {
    return dtype.kind() == Kind::datetime || dtype.kind() == Kind::timedelta;
}

void not_computed_with(const DType& dtype) {
    throw unsupported("{} is no type of number that is computed with", dtype.to_string());
}

DType promoted(const DType& a, const DType& b) {
    const auto either = [&](Kind kind) { return a.kind() == kind || b.kind() == kind; };
    if (a.kind() == b.kind()) return DType::scalar(a.kind(), std::max(a.size(), b.size()));
    if (either(Kind::boolean)) {
        const DType& other = a.kind() == Kind::boolean ? b : a;
        return DType::scalar(other.kind(), other.size());
    }
    if (either(Kind::bfloat16) && std::min(a.size(), b.size()) == 1) return DType::scalar(Kind::bfloat16, 2);
    const std::int64_t size = std::max(float_size(a), float_size(b));
    if (either(Kind::complex)) return DType::scalar(Kind::complex, 2 * std::max<std::int64_t>(size, 4));
    if (either(Kind::real) || either(Kind::bfloat16)) return DType::scalar(Kind::real, size);
    const DType& with_sign = a.kind() == Kind::integer ? a : b;
    const DType& without = a.kind() == Kind::integer ? b : a;
    if (with_sign.size() > without.size()) return DType::scalar(Kind::integer, with_sign.size());
    if (without.size() == 8) return DType::scalar(Kind::real, 8);
    return DType::scalar(Kind::integer, 2 * without.size());
}

ToDoubles to_doubles(const DType& dtype) {
    if (is_time(dtype)) return all_to_doubles<Time>;
    if (dtype.kind() == Kind::complex) return dtype.size() == 8 ? pairs_to_doubles<float> : pairs_to_doubles<double>;
    return with_part(dtype, [](auto v) -> ToDoubles { return all_to_doubles<decltype(v)>; });
}

ToIntegers to_integers(const DType& dtype) {
    if (dtype.kind() == Kind::boolean) return all_to_integers<Boolean>;
    return with_integer(dtype, [](auto v) -> ToIntegers { return all_to_integers<decltype(v)>; });
}

}  // namespace tessera
