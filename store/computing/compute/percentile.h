// Percentiles of doubles, in memory or in passes over more elements than memory holds. Private to the store module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tessera/reduce.h>

namespace tessera {

/// Where a percentile lies among sorted elements: NumPy's "linear".
struct PercentileRank {
    std::int64_t below = 0;  ///< the element at or below it
    double part = 0;         ///< how far it is from there to the next one
};

/// A percentile of doubles, or the median. Reorders them.
[[nodiscard]] double percentile_of(double* v, std::int64_t n, double percent, Reduction with);

/// Finds a percentile of more elements than memory holds, in a few passes over them: each counts the elements in
/// intervals of the range that holds the wanted one, which becomes that range, until it is a single value.
class PercentileSearch {
public:
    static constexpr std::size_t intervals = 1024;
    static constexpr std::int64_t bytes = intervals * 24 + 128;

    /// Call these for all elements in each pass, until end_pass() returns true.
    void add(const double* v, std::int64_t n);
    /// Whether the result is known.
    bool end_pass(const ReduceOptions& o);
    [[nodiscard]] double result() const { return result_; }

private:
    struct Interval {
        std::int64_t count = 0;
        std::uint64_t low = ~std::uint64_t{0}, high = 0;
    };
    bool finish(std::uint64_t at, std::uint64_t next, Reduction with);

    static constexpr std::uint64_t none = ~std::uint64_t{0};  // no double has it but a NaN
    bool first_ = true;
    std::int64_t count_ = 0, missing_ = 0, left_ = 0;
    PercentileRank rank_;
    std::uint64_t low_ = none, high_ = 0;
    std::uint64_t above_ = none;  ///< the least key above the range
    unsigned shift_ = 0;
    std::vector<Interval> counts_;
    double result_ = 0;
};

}  // namespace tessera
