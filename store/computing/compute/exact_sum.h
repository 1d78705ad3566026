// The exact sum of doubles, so that a sum does not depend on what is added first. Private to the store module.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera {

/// A sum of up to 2^63 doubles, without any rounding until it is asked for. Thread rule: one thread at a time.
///
/// A fixed-point number that holds all doubles, in digits of 32 bits that lie in 64, so that carries can wait. Numbers
/// are not added one by one: pieces are split into layers of equal exponents, whose sums in doubles are exact (Rump,
/// Ogita and Oishi, "Accurate floating-point summation").
class ExactSum {
public:
    /// Any numbers: NaN and infinities make the sum what they make of any sum.
    void add(const double* v, std::int64_t n);
    /// The same number several times.
    void add(double v, std::int64_t times);
    /// A mark of an infinity among the numbers.
    void add_infinite(bool negative) { (negative ? down_ : up_) = true; }
    void merge(const ExactSum& other);
    void clear() { *this = ExactSum(); }

    /// Rounded once, to even; NaN is the usual one, and the sum of nothing 0.
    [[nodiscard]] double rounded() const;
    /// The sum of whole numbers, modulo 2^64.
    [[nodiscard]] std::uint64_t modulo() const;

    /// The finite numbers' sum: digits of 32 bits from a first one on, the last of which has the sign; none of 0.
    struct Digits {
        std::size_t first = 0;
        std::vector<std::int64_t> digits;
    };
    [[nodiscard]] Digits digits() const;
    /// Adds such digits. False, and nothing is added, if they cannot be digits of a sum.
    [[nodiscard]] bool add(const Digits& saved);

    static constexpr std::size_t size = 69;

private:
    void add_one(double v, unsigned shift = 0);
    void add_piece(const double* v, std::int64_t n);
    void add_each(const double* v, std::int64_t n);
    void carry();

    std::array<std::int64_t, size> digits_{};  ///< the first is of 2^-1074
    std::int64_t added_ = 0;                   ///< to each digit at most, since carry()
    bool nan_ = false, up_ = false, down_ = false;
};

/// A sum or mean of `count` elements, as reductions have them: of missing elements alone it is missing, and the sum of
/// nothing is 0. `lacking`: whether missing ones were left out.
[[nodiscard]] double sum_result(const ExactSum& sum, std::int64_t count, bool lacking, bool mean);

}  // namespace tessera
