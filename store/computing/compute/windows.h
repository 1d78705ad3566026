// Elements as numbers, row by row, and what the numbers of a window amount to. Private to the store module.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/reduce.h>

namespace tessera {

inline constexpr double missing_number = std::numeric_limits<double>::quiet_NaN();

/// Rows of elements in host order, in pieces of at most numbers_at_once. Thread rule: one thread at a time.
class NumberRows {
public:
    /// Throws unsupported for elements that are neither numbers nor times.
    explicit NumberRows(const DType& dtype);

    /// Calls take(packed elements, index of the first, their number) for the pieces of a row of `n` elements, which lie
    /// `step` bytes apart.
    template <class Take>
    void packed(const std::byte* elements, std::int64_t step, std::int64_t n, const Take& take) {
        for (std::int64_t first = 0; first < n; first += numbers_at_once) {
            const std::int64_t count = std::min(numbers_at_once, n - first);
            take(packed_piece(elements + first * step, step, count), first, count);
        }
    }
    /// The same with doubles: of a complex number its magnitude, of NaT NaN.
    template <class Take>
    void reals(const std::byte* elements, std::int64_t step, std::int64_t n, const Take& take) {
        packed(elements, step, n, [&](const std::byte* piece, std::int64_t first, std::int64_t count) {
            take(real_piece(piece, count), first, count);
        });
    }

private:
    const std::byte* packed_piece(const std::byte* elements, std::int64_t step, std::int64_t n);
    const double* real_piece(const std::byte* elements, std::int64_t n);

    DType dtype_;
    ToDoubles convert_;
    NDArray packed_;
    NDArray numbers_;
};

/// Calls body(window, index of its first number among those given, their number) for the windows of `size` numbers that
/// the numbers [first, first + n) of a row lie in.
template <class Body>
void for_each_window(std::int64_t first, std::int64_t n, std::int64_t size, const Body& body) {
    std::int64_t window = first / size;
    std::int64_t left = (window + 1) * size - first;
    for (std::int64_t at = 0; at < n; ++window, left = size) {
        const std::int64_t count = std::min(left, n - at);
        body(window, at, count);
        at += count;
    }
}

/// The sum and the extremes of numbers, without NaN and those that stand for missing data.
struct Window {
    double sum = 0;
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();
    std::int64_t count = 0;
    bool has_missing = false;

    /// Computes only what `with` needs, or everything.
    void add(const double* numbers, std::int64_t n, const std::vector<double>& missing,
             std::optional<Coarsening> with = std::nullopt);
    /// For numbers that all count.
    void add_all(const double* numbers, std::int64_t n, Coarsening with);
    void merge(const Window& other);
    /// The sum for the mean, or the extreme.
    [[nodiscard]] double part(Coarsening with) const {
        return with == Coarsening::min ? low : with == Coarsening::max ? high : sum;
    }
    /// NaN if there are no numbers.
    [[nodiscard]] double value(Coarsening with) const;
};

// In the header, because windows may be of two numbers.

inline void Window::add(const double* numbers, std::int64_t n, const std::vector<double>& missing,
                        std::optional<Coarsening> with) {
    const bool lows = !with || with == Coarsening::min;
    const bool highs = !with || with == Coarsening::max;
    const bool sums = !with || !(lows || highs);
    Window w = *this;  // which the compiler keeps in registers
    for (std::int64_t i = 0; i < n; ++i) {
        const double v = numbers[i];
        if (v != v) continue;
        if (!missing.empty() && std::ranges::find(missing, v) != missing.end()) {
            w.has_missing = true;
            continue;
        }
        if (sums) w.sum += v;
        if (lows) w.low = v < w.low ? v : w.low;
        if (highs) w.high = v > w.high ? v : w.high;
        ++w.count;
    }
    *this = w;
}

inline void Window::add_all(const double* numbers, std::int64_t n, Coarsening with) {
    count += n;
    if (with == Coarsening::min) {
        for (std::int64_t i = 0; i < n; ++i) low = numbers[i] < low ? numbers[i] : low;
    } else if (with == Coarsening::max) {
        for (std::int64_t i = 0; i < n; ++i) high = numbers[i] > high ? numbers[i] : high;
    } else {
        double sums[4] = {};  // so that one addition need not wait for the one before
        std::int64_t i = 0;
        for (; i + 4 <= n; i += 4) {
            for (int k = 0; k < 4; ++k) sums[k] += numbers[i + k];
        }
        for (; i < n; ++i) sums[0] += numbers[i];
        sum += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
}

}  // namespace tessera
