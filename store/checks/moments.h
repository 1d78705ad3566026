// What statistics need of real numbers, over pieces of doubles that lie in the nearest cache: extremes, mean, squares
// and bins. Private to the store module.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tessera {

struct Histogram;

/// Numbers come in steps of this many; what is missing at the end is NaN.
constexpr std::int64_t number_step = 16;

/// Of a piece. Infinities are among the extremes alone, NaNs nowhere.
struct Survey {
    double low = 0;  ///< +infinity where there are only NaNs
    double high = 0;
    double sum = 0;  ///< of finite numbers
    std::int64_t finite = 0;
};
[[nodiscard]] Survey survey(const double* v, std::int64_t n);

/// Of a piece in which all is finite, found in one pass.
struct Glance {
    double low = 0;
    double high = 0;
    double about = 0;    ///< a number in the middle of those that are there
    double sum = 0;      ///< of distances from it
    double squares = 0;  ///< of distances from it
    /// Whether that is all there is to know: nothing was infinite or NaN, all squares are in the range of double, and
    /// `about` is near enough to the mean for the squares to be exact.
    [[nodiscard]] bool enough(std::int64_t n) const;
};
/// `n` is a multiple of number_step.
[[nodiscard]] Glance glance(const float* v, std::int64_t n);
[[nodiscard]] Glance glance(const double* v, std::int64_t n);

/// Mean and squares of distances from it, of finite numbers.
///
/// How exact: a piece of 1024 numbers is summed in 16 sums of double that take turns: distances from a number near
/// their mean, and the squares of these, with which the mean and the squares about the mean are found. At most 4 bits
/// cancel, or the piece is gone through twice, first for its mean. So the mean of a piece is as exact as a double can
/// be but for some 2^-46 of the mean distance from it, and the squares have a relative error of some 2^-42, however far
/// from zero the values lie. Pieces are put together in long double by Chan's formula. Values whose sums or squares
/// would leave the range of double are summed in long double.
class Moments {
public:
    void add(const Glance& g, std::int64_t n);
    /// A piece, of which `s` is the survey, `low` and `high` the extremes of finite numbers.
    void add(const double* v, std::int64_t n, const Survey& s, double low, double high);
    void merge(const Moments& part);
    [[nodiscard]] std::int64_t count() const { return count_; }
    [[nodiscard]] double mean() const { return static_cast<double>(mean_); }
    [[nodiscard]] double deviation() const;  ///< with N as divisor

private:
    std::int64_t count_ = 0;
    long double mean_ = 0;
    long double squares_ = 0;
};

/// Bins whose width doubles whenever a value falls outside: the last width depends on the extremes alone, not on the
/// order in which values came.
class Bins {
public:
    explicit Bins(std::size_t most) : most_(most) {}

    /// The finite ones of a piece, whose extremes are `low` and `high`.
    void add(const double* v, std::int64_t n, double low, double high);
    void add(const float* v, std::int64_t n, double low, double high);
    void merge(const Bins& other);
    [[nodiscard]] std::optional<Histogram> histogram() const;

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
    /// Counts since the bins were last changed. Values that follow each other often fall into one bin: four places for
    /// each let the processor add to them at once. One bin more takes what is not finite.
    std::vector<std::int64_t> recent_;
};

}  // namespace tessera
