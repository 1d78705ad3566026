#include "exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tessera {

namespace {

/// The compiler's vector types, which it maps to the machine's registers.
typedef double Doubles __attribute__((vector_size(32)));      // NOLINT(modernize-use-using)
typedef std::int64_t Masks __attribute__((vector_size(32)));  // NOLINT(modernize-use-using)
constexpr std::int64_t lanes = 4;
constexpr std::int64_t vectors = 4;  // independent of each other
constexpr std::int64_t step = lanes * vectors;
constexpr std::int64_t piece = 1024;
constexpr int piece_bits = 11;  // of piece + 2
constexpr std::int64_t no_sign = std::numeric_limits<std::int64_t>::max();

__extension__ using Bits128 = unsigned __int128;

constexpr unsigned digit_bits = 32;
constexpr int least_exponent = -1074;  // that of the first digit

/// What is known of a piece before it is split.
struct Look {
    double most = 0;  ///< the largest magnitude
    bool finite = true;
};

/// The sums of a piece's layers.
struct Layers {
    std::array<double, 3> sums{};
    bool whole = true;  ///< whether nothing was left below the last
};

// The kernels are compiled twice, for any x86-64 and for AVX2; both are exact.

[[gnu::always_inline]] inline Look look_in(const double* v, std::int64_t n) {
    Doubles most[vectors];
    Masks odd[vectors];
    for (std::int64_t k = 0; k < vectors; ++k) {
        most[k] = Doubles{};
        odd[k] = Masks{};
    }
    for (std::int64_t i = 0; i < n; i += step) {
        for (std::int64_t k = 0; k < vectors; ++k) {
            Doubles x;
            std::memcpy(&x, v + i + k * lanes, sizeof x);
            odd[k] |= x - x != Doubles{};  // infinity − infinity is NaN
            const Doubles size = reinterpret_cast<Doubles>(reinterpret_cast<Masks>(x) & no_sign);
            most[k] = size > most[k] ? size : most[k];
        }
    }
    Look look;
    for (std::int64_t k = 0; k < vectors; ++k) {
        for (std::int64_t j = 0; j < lanes; ++j) {
            look.most = std::max(look.most, most[k][j]);
            look.finite = look.finite && odd[k][j] == 0;
        }
    }
    return look;
}

/// `top` is a power of two of at least 2^piece_bits times the largest magnitude.
[[gnu::always_inline]] inline Layers split_in(const double* v, std::int64_t n, double top) {
    constexpr double down = 0x1p-42;  // what is left of a layer is 2^-53 of its top
    const Doubles first = Doubles{} + top;
    const Doubles second = first * down;
    const Doubles third = second * down;
    Doubles sums[3][vectors];
    Masks rest[vectors];
    for (std::int64_t k = 0; k < vectors; ++k) {
        sums[0][k] = sums[1][k] = sums[2][k] = Doubles{};
        rest[k] = Masks{};
    }
    for (std::int64_t i = 0; i < n; i += step) {
        for (std::int64_t k = 0; k < vectors; ++k) {
            Doubles x;
            std::memcpy(&x, v + i + k * lanes, sizeof x);
            Doubles part = (first + x) - first;
            sums[0][k] += part;
            x -= part;
            part = (second + x) - second;
            sums[1][k] += part;
            x -= part;
            part = (third + x) - third;
            sums[2][k] += part;
            rest[k] |= reinterpret_cast<Masks>(x - part);
        }
    }
    Layers layers;
    for (std::int64_t k = 0; k < vectors; ++k) {
        for (std::int64_t j = 0; j < lanes; ++j) {
            for (std::size_t layer = 0; layer < 3; ++layer) layers.sums[layer] += sums[layer][k][j];
            layers.whole = layers.whole && (rest[k][j] & no_sign) == 0;
        }
    }
    return layers;
}

Look look_portable(const double* v, std::int64_t n) {
    return look_in(v, n);
}
Layers split_portable(const double* v, std::int64_t n, double top) {
    return split_in(v, n, top);
}

struct Kernels {
    Look (*look)(const double*, std::int64_t);
    Layers (*split)(const double*, std::int64_t, double);
};

constexpr Kernels portable{look_portable, split_portable};

#if defined(__x86_64__)

[[gnu::target("avx2")]] Look look_avx2(const double* v, std::int64_t n) {
    return look_in(v, n);
}
[[gnu::target("avx2")]] Layers split_avx2(const double* v, std::int64_t n, double top) {
    return split_in(v, n, top);
}

const Kernels kernels = __builtin_cpu_supports("avx2") != 0 ? Kernels{look_avx2, split_avx2} : portable;

#else

constexpr const Kernels& kernels = portable;

#endif

/// Pieces of larger numbers are added one by one, because the sum of a layer could leave the range of double.
constexpr double most_split = 0x1p1000;

}  // namespace

void ExactSum::add(const double* v, std::int64_t n) {
    while (n >= step) {
        const std::int64_t some = std::min(n, piece) / step * step;
        add_piece(v, some);
        v += some;
        n -= some;
    }
    add_each(v, n);
}

/// At most a piece, of whole steps.
void ExactSum::add_piece(const double* v, std::int64_t n) {
    const Look look = kernels.look(v, n);
    if (!look.finite || look.most >= most_split) return add_each(v, n);
    if (look.most == 0) return;
    const Layers layers = kernels.split(v, n, std::ldexp(1.0, std::ilogb(look.most) + 1 + piece_bits));
    if (!layers.whole) return add_each(v, n);
    for (const double sum : layers.sums) add_one(sum);
}

void ExactSum::add_each(const double* v, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
        if (std::isfinite(v[i])) {
            add_one(v[i]);
        } else {
            nan_ = nan_ || std::isnan(v[i]);
            up_ = up_ || v[i] > 0;
            down_ = down_ || v[i] < 0;
        }
    }
}

/// Adds v · 2^shift, which is finite.
void ExactSum::add_one(double v, unsigned shift) {
    constexpr unsigned fraction = 52;
    const auto bits = std::bit_cast<std::uint64_t>(v);
    const auto exponent = static_cast<unsigned>(bits >> fraction & 0x7ffU);
    std::uint64_t number = bits & ((std::uint64_t{1} << fraction) - 1);
    if (number == 0 && exponent == 0) return;
    if (exponent != 0) number |= std::uint64_t{1} << fraction;
    const unsigned place = (exponent == 0 ? 0 : exponent - 1) + shift;
    const std::size_t first = place / digit_bits;
    const Bits128 wide = static_cast<Bits128>(number) << (place % digit_bits);
    const std::int64_t sign = std::signbit(v) ? -1 : 1;
    for (std::size_t d = 0; d < 3; ++d) {
        const auto digit = static_cast<std::int64_t>(static_cast<std::uint32_t>(wide >> (digit_bits * d)));
        if (digit != 0) digits_[first + d] += sign * digit;
    }
    constexpr std::int64_t enough = std::int64_t{1} << 30U;
    if (++added_ >= enough) carry();
}

void ExactSum::add(double v, std::int64_t times) {
    if (times <= 0) return;
    if (!std::isfinite(v)) return add_each(&v, 1);
    for (unsigned shift = 0; times >> shift != 0; ++shift) {
        if ((times >> shift & 1) != 0) add_one(v, shift);
    }
}

/// Leaves 32 bits in each digit but the last, which keeps the sign.
void ExactSum::carry() {
    for (std::size_t d = 0; d + 1 < size; ++d) {
        const auto low = static_cast<std::int64_t>(static_cast<std::uint32_t>(digits_[d]));
        digits_[d + 1] += digits_[d] >> digit_bits;  // rounded down
        digits_[d] = low;
    }
    added_ = 1;
}

void ExactSum::merge(const ExactSum& other) {
    ExactSum theirs = other;
    theirs.carry();
    carry();
    for (std::size_t d = 0; d < size; ++d) digits_[d] += theirs.digits_[d];
    added_ = 2;
    nan_ = nan_ || theirs.nan_;
    up_ = up_ || theirs.up_;
    down_ = down_ || theirs.down_;
}

double ExactSum::rounded() const {
    if (nan_ || (up_ && down_)) return std::numeric_limits<double>::quiet_NaN();
    if (up_ || down_) return up_ ? HUGE_VAL : -HUGE_VAL;
    ExactSum s = *this;
    s.carry();
    const bool negative = s.digits_.back() < 0;
    if (negative) {
        for (std::int64_t& digit : s.digits_) digit = -digit;
        s.carry();
    }
    std::size_t top = size - 1;
    while (top > 0 && s.digits_[top] == 0) --top;
    // 64 bits from the highest one on. What lies below them shows in the lowest, so that halves are rounded right.
    Bits128 wide = 0;
    for (std::size_t n = 0; n < 4; ++n) {
        wide = wide << digit_bits | static_cast<std::uint64_t>(n <= top ? s.digits_[top - n] : 0);
    }
    if (wide == 0) return 0;
    int exponent = least_exponent + static_cast<int>(digit_bits) * (static_cast<int>(top) - 3);
    const int room = std::countl_zero(static_cast<std::uint64_t>(wide >> 64U));
    wide <<= static_cast<unsigned>(room);
    exponent += 64 - room;
    auto bits = static_cast<std::uint64_t>(wide >> 64U);
    const auto below = s.digits_.begin() + static_cast<std::ptrdiff_t>(top >= 4 ? top - 3 : 0);
    const bool more = static_cast<std::uint64_t>(wide) != 0 ||
                      std::any_of(s.digits_.begin(), below, [](std::int64_t digit) { return digit != 0; });
    if (more) bits |= 1U;
    const double magnitude = std::ldexp(static_cast<double>(bits), exponent);
    return negative ? -magnitude : magnitude;
}

std::uint64_t ExactSum::modulo() const {
    ExactSum s = *this;
    s.carry();
    constexpr std::size_t place = -least_exponent;
    constexpr std::size_t first = place / digit_bits;
    constexpr unsigned within = place % digit_bits;
    std::uint64_t sum = static_cast<std::uint64_t>(s.digits_[first]) >> within;
    sum |= static_cast<std::uint64_t>(s.digits_[first + 1]) << (digit_bits - within);
    sum |= static_cast<std::uint64_t>(s.digits_[first + 2]) << (2 * digit_bits - within);
    return sum;
}

ExactSum::Digits ExactSum::digits() const {
    ExactSum s = *this;
    s.carry();
    // The sign stands in the highest digit, so that those above it, which say only that, need not be kept.
    std::size_t end = size;
    while (end > 1 && (s.digits_[end - 1] == 0 || s.digits_[end - 1] == -1)) {
        const std::int64_t below = s.digits_[end - 2] + (s.digits_[end - 1] << digit_bits);
        s.digits_[end - 1] = 0;
        s.digits_[end - 2] = below;
        --end;
        if (below != 0 && below != -1) break;
    }
    Digits saved;
    while (saved.first < end && s.digits_[saved.first] == 0) ++saved.first;
    saved.digits.assign(s.digits_.begin() + static_cast<std::ptrdiff_t>(saved.first),
                        s.digits_.begin() + static_cast<std::ptrdiff_t>(end));
    if (saved.digits.empty()) saved.first = 0;
    return saved;
}

bool ExactSum::add(const Digits& saved) {
    if (saved.first > size || saved.digits.size() > size - saved.first) return false;
    constexpr std::int64_t most = std::int64_t{1} << 33U;
    if (std::ranges::any_of(saved.digits, [](std::int64_t digit) { return digit < -most || digit > most; })) {
        return false;
    }
    carry();
    for (std::size_t d = 0; d < saved.digits.size(); ++d) digits_[saved.first + d] += saved.digits[d];
    added_ = 4;
    return true;
}

double sum_result(const ExactSum& sum, std::int64_t count, bool lacking, bool mean) {
    const double total = count == 0 && lacking ? std::numeric_limits<double>::quiet_NaN() : sum.rounded();
    if (!mean) return total;
    return count == 0 ? std::numeric_limits<double>::quiet_NaN() : total / static_cast<double>(count);
}

}  // namespace tessera
