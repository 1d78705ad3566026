// Statistics of real numbers, over pieces of doubles in the L1 cache: extremes, mean, squares and bins. Private to the
// store module.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace tessera {

struct Histogram;
class IndexReader;
class IndexWriter;

/// Numbers come in multiples of this, padded with NaN at the end.
constexpr std::int64_t number_step = 16;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// A survey of a piece. Infinities count only as extremes; NaNs are ignored.
struct Survey {
    double low = 0;  ///< +infinity if there are only NaNs
    double high = 0;
    double sum = 0;  ///< of finite numbers
    std::int64_t finite = 0;
};
[[nodiscard]] Survey survey(const double* v, std::int64_t n);

/// A survey of a piece of finite numbers, made in one pass.
struct Glance {
    double low = 0;
    double high = 0;
    double about = 0;    ///< a number near the middle of the piece
    double sum = 0;      ///< of distances from it
    double squares = 0;  ///< of distances from it
    /// Whether this result can be used: nothing was infinite or NaN, the squares are in the range of double, and
    /// `about` is near enough to the mean for the squares to be exact.
    [[nodiscard]] bool enough(std::int64_t n) const;
};
/// `n` is a multiple of number_step.
[[nodiscard]] Glance glance(const float* v, std::int64_t n);
[[nodiscard]] Glance glance(const double* v, std::int64_t n);

/// Mean and squares of distances from it, of finite numbers.
///
/// Accuracy: a piece of 1024 numbers is summed in 16 interleaved sums of double. Summed are distances from a number
/// near the mean, and their squares; the mean and the squares about the mean follow from these. If more than 4 bits
/// would cancel, a first pass finds the mean. So the error of a piece's mean is about 2^-46 of the mean distance from
/// it, plus the rounding of a double, and the squares have a relative error of about 2^-42, however far from zero the
/// values lie. Pieces are merged in long double by Chan's formula. Values whose sums or squares would leave the range
/// of double are summed in long double.
class Moments {
public:
    void add(const Glance& g, std::int64_t n);
    /// Adds a piece with the survey `s`; `low` and `high` are the extremes of its finite numbers.
    void add(const double* v, std::int64_t n, const Survey& s, double low, double high);
    void merge(const Moments& part);
    [[nodiscard]] std::int64_t count() const { return count_; }
    [[nodiscard]] double mean() const { return static_cast<double>(mean_); }
    [[nodiscard]] double deviation() const;  ///< with N as divisor
    /// All but the count, which load() is given.
    void save(IndexWriter& to) const;
    void load(IndexReader& from, std::int64_t count);

private:
    std::int64_t count_ = 0;
    long double mean_ = 0;
    long double squares_ = 0;
};

/// Bins whose width doubles whenever a value falls outside. The final width depends only on the extremes, not on the
/// order of values.
class Bins {
public:
    explicit Bins(std::size_t most) : most_(most) {}

    /// Adds the finite numbers of a piece; `low` and `high` are their extremes.
    void add(const double* v, std::int64_t n, double low, double high);
    void add(const float* v, std::int64_t n, double low, double high);
    void merge(const Bins& other);
    [[nodiscard]] std::optional<Histogram> histogram() const;
    void save(IndexWriter& to) const;
    /// Of `count` numbers in all. Throws corrupt if these cannot be such bins.
    void load(IndexReader& from, std::int64_t count);

private:
    template <class T>
    void count(const T* v, std::int64_t n, double low, double high);
    void make_room(double low, double high);
    [[nodiscard]] double cell(double v) const;
    void reach(double v);
    void extend(double at);
    void coarsen();
    void fold();

    std::size_t most_;
    int exponent_ = 0;  ///< bins are 2^exponent_ wide
    double first_ = 0;  ///< the first bin's number: its start is first_ · 2^exponent_
    std::vector<std::int64_t> counts_;
    /// Counts since the last change of the bins. Consecutive values often fall into the same bin, so each has four
    /// counters that the processor can increment in parallel. An extra bin takes numbers that are not finite.
    std::vector<std::int64_t> recent_;
};

}  // namespace tessera
