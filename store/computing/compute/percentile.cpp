#include "percentile.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tessera {

namespace {

PercentileRank rank_of(std::int64_t n, double percent) {
    const double place = static_cast<double>(n - 1) * (percent / 100);
    const double below = std::floor(place);
    return {static_cast<std::int64_t>(below), place - below};
}
/// As NumPy computes percentiles, and for the median the mean of two, bit for bit.
double between(double a, double b, double part, Reduction with) {
    if (a == b) return a;
    if (with == Reduction::median) return (a + b) / 2;
    const double difference = b - a;
    return part >= 0.5 ? b - difference * (1 - part) : a + difference * part;
}

/// Doubles as integers in the same order, and back. -0 comes before 0.
std::uint64_t key_of(double v) {
    const auto bits = std::bit_cast<std::uint64_t>(v);
    return (bits >> 63U) != 0 ? ~bits : bits | (std::uint64_t{1} << 63U);
}
double number_of_key(std::uint64_t key) {
    return std::bit_cast<double>((key >> 63U) != 0 ? key & ~(std::uint64_t{1} << 63U) : ~key);
}

}  // namespace

double percentile_of(double* v, std::int64_t n, double percent, Reduction with) {
    if (n == 0) return std::numeric_limits<double>::quiet_NaN();
    const PercentileRank rank = rank_of(n, percent);
    std::nth_element(v, v + rank.below, v + n);
    if (rank.below + 1 == n || rank.part == 0) return v[rank.below];
    return between(v[rank.below], *std::min_element(v + rank.below + 1, v + n), rank.part, with);
}

void PercentileSearch::add(const double* v, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
        if (v[i] != v[i]) {
            ++missing_;
            continue;
        }
        const std::uint64_t key = key_of(v[i]);
        if (first_) {
            ++count_;
            low_ = std::min(low_, key);
            high_ = std::max(high_, key);
        } else if (key > high_) {
            above_ = std::min(above_, key);
        } else if (key >= low_) {
            Interval& in = counts_[static_cast<std::size_t>((key - low_) >> shift_)];
            ++in.count;
            in.low = std::min(in.low, key);
            in.high = std::max(in.high, key);
        }
    }
}

bool PercentileSearch::end_pass(const ReduceOptions& o) {
    if (first_) {
        first_ = false;
        if (count_ == 0 || (missing_ > 0 && !o.skip_nan)) {
            result_ = std::numeric_limits<double>::quiet_NaN();
            return true;
        }
        rank_ = rank_of(count_, o.percent);
        left_ = rank_.below;
    } else {
        std::uint64_t next = above_;
        std::size_t i = 0;
        while (counts_[i].count <= left_) left_ -= counts_[i++].count;
        for (std::size_t k = i + 1; k < intervals; ++k) {
            if (counts_[k].count > 0) {
                next = std::min(next, counts_[k].low);
                break;
            }
        }
        above_ = next;
        count_ = counts_[i].count;
        low_ = counts_[i].low;
        high_ = counts_[i].high;
    }
    missing_ = 0;
    if (low_ == high_) return finish(low_, left_ + 1 < count_ ? low_ : above_, o.with);
    shift_ = 0;
    while (((high_ - low_) >> shift_) >= intervals) ++shift_;
    counts_.assign(intervals, {});
    return false;
}

bool PercentileSearch::finish(std::uint64_t at, std::uint64_t next, Reduction with) {
    const double a = number_of_key(at);
    result_ = rank_.part == 0 || next == none ? a : between(a, number_of_key(next), rank_.part, with);
    counts_ = {};
    return true;
}

}  // namespace tessera
