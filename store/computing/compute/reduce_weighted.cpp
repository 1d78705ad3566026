// Sums, means and variances of elements that count by their weights.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/numbers.h>
#include <tessera/parallel.h>

#include "reduced_array.h"

namespace tessera {

namespace {

/// The state of each column: sums of weights and of products, the latter by compensated summation; or the mean and the
/// squares of distances from it (West's form of Welford's).
class WeightedSums {
public:
    WeightedSums(const ReduceOptions& how, std::int64_t columns)
        : with_(how.with),
          skip_(how.skip_nan),
          weights_(static_cast<std::size_t>(columns), 0),
          first_(weights_.size(), 0),
          second_(weights_.size(), 0),
          seen_(weights_.size(), 0) {}

    void take(std::int64_t column, double v, double weight) {
        const auto c = static_cast<std::size_t>(column);
        const bool lacks = v != v;
        seen_[c] |= lacks ? missing : present;
        if (lacks && !skip_) first_[c] = v;
        if (lacks || weight == 0) return;
        weights_[c] += weight;
        if (with_ == Reduction::deviation || with_ == Reduction::variance) {
            const double distance = v - first_[c];
            first_[c] += distance * (weight / weights_[c]);
            second_[c] += weight * distance * (v - first_[c]);
            return;
        }
        const double product = v * weight;
        const double sum = first_[c] + product;
        second_[c] +=
            std::abs(first_[c]) >= std::abs(product) ? (first_[c] - sum) + product : (product - sum) + first_[c];
        first_[c] = sum;
    }

    [[nodiscard]] double result(std::int64_t column) const {
        const auto c = static_cast<std::size_t>(column);
        constexpr double nan = std::numeric_limits<double>::quiet_NaN();
        if (!skip_ && (seen_[c] & missing) != 0) return nan;
        if (seen_[c] == missing) return nan;
        if (with_ == Reduction::deviation) return std::sqrt(second_[c] / weights_[c]);
        if (with_ == Reduction::variance) return second_[c] / weights_[c];
        const double sum = std::isfinite(first_[c]) ? first_[c] + second_[c] : first_[c];
        return with_ == Reduction::sum ? sum : sum / weights_[c];
    }

private:
    static constexpr std::uint8_t present = 1, missing = 2;
    Reduction with_;
    bool skip_;
    std::vector<double> weights_, first_, second_;
    std::vector<std::uint8_t> seen_;
};

/// The weights of a part of the array, in the order of its elements.
class WeightsThere {
public:
    explicit WeightsThere(const ReducedArray& a) : a_(a), source_(*a.options.weights), shape_(source_.info().shape) {
        for (const std::int64_t d : a.kept) by_column_ = by_column_ || shape_[static_cast<int>(d)] != 1;
    }
    /// Whether they differ between columns. If not, they are those of one column.
    [[nodiscard]] bool by_column() const { return by_column_; }

    const double* read(const Region& slab, const Dims& slow, const Dims& fast, const IoOptions& io) {
        Region own = slab;
        Shape wanted;
        for (int d = 0; d < own.rank(); ++d) {
            if (shape_[d] == 1) own.start[d] = 0;
            if (shape_[d] == 1) own.extent[d] = 1;
        }
        ReducedArray::read_ordered(source_, DType::of<double>(), read_, own, slow, fast, io);
        require_valid();
        for (const Dims* dims : {&slow, &fast}) {
            for (const std::int64_t d : *dims) {
                const bool one = !by_column_ && !a_.goes(static_cast<int>(d));
                wanted.push_back(one ? 1 : slab.extent[static_cast<int>(d)]);
            }
        }
        if (read_.shape() == wanted) return read_.values<double>().data();
        ArrayView view = read_.view();
        for (int k = 0; k < wanted.rank(); ++k) {
            if (view.shape[k] != wanted[k]) view.strides[k] = 0;
        }
        view.shape = wanted;
        if (spread_.shape() != wanted) spread_ = NDArray(DType::of<double>(), wanted);
        copy_elements(view, spread_.view());
        return spread_.values<double>().data();
    }

private:
    void require_valid() const {
        for (const double w : read_.values<double>()) {
            if (std::isfinite(w) && w >= 0) continue;
            throw invalid_argument("weights: {}: expected finite numbers from 0 on, found {}", source_.name(), w);
        }
    }
    const ReducedArray& a_;
    const ArraySource& source_;
    Shape shape_;
    bool by_column_ = false;
    NDArray read_{DType::of<double>(), Shape{0}}, spread_{DType::of<double>(), Shape{0}};
};

/// Calls take(number, its index) for packed elements.
template <class Take>
void for_numbers(const ToDoubles widen, const std::byte* elements, std::int64_t size, std::int64_t n,
                 const Take& take) {
    std::array<double, numbers_at_once> numbers;
    for (std::int64_t first = 0; first < n; first += numbers_at_once) {
        const std::int64_t count = std::min(numbers_at_once, n - first);
        widen(elements + first * size, count, numbers.data());
        for (std::int64_t i = 0; i < count; ++i) take(numbers[static_cast<std::size_t>(i)], first + i);
    }
}

/// A slab of elements with their weights.
struct WeightedSlab {
    const ReducedArray& a;
    const std::byte* elements;
    const double* weights;
    bool by_column;
    std::int64_t columns, count;  ///< elements of each column

    /// Columns one after the other.
    void add_columns(WeightedSums& sums, const IoOptions& io) const {
        const ToDoubles widen = to_doubles(a.elements().for_doubles());
        parallel_for(columns, io, [&](std::int64_t c) {
            const double* const w = weights + (by_column ? c * count : 0);
            for_numbers(widen, elements + c * count * a.dtype.size(), a.dtype.size(), count,
                        [&](double v, std::int64_t i) { sums.take(c, v, w[i]); });
        });
    }
    /// Rows with an element of each column. `first` is the first row's index along a grouped axis.
    void add_rows(WeightedSums& sums, const GroupRange& groups, std::int64_t first, const IoOptions& io) const {
        constexpr std::int64_t few = 4096;
        const ToDoubles widen = to_doubles(a.elements().for_doubles());
        parallel_for(ceil_div(columns, few), io, [&](std::int64_t part) {
            const std::int64_t begin = part * few;
            const std::int64_t n = std::min(few, columns - begin);
            for (std::int64_t row = 0; row < count; ++row) {
                const std::int64_t group =
                    a.grouping == nullptr ? 0 : a.grouping->of[static_cast<std::size_t>(first + row)] - groups.first;
                if (group < 0 || group >= groups.count) continue;
                const double* const w = weights + (by_column ? row * columns + begin : row);
                for_numbers(
                    widen, elements + (row * columns + begin) * a.dtype.size(), a.dtype.size(), n,
                    [&](double v, std::int64_t i) { sums.take(group * columns + begin + i, v, w[by_column ? i : 0]); });
            }
        });
    }
};

}  // namespace

void reduce_by_weights(const ReducedArray& a, const Region& whole, const MutableArrayView& out, const IoOptions& io) {
    const std::int64_t columns = element_count(lengths_along(whole.extent, a.kept));
    const GroupRange groups = a.groups_of(whole);
    WeightedSums sums(a.options, columns * groups.count);
    WeightsThere weights(a);
    const bool inner = a.grouping == nullptr && a.axes.back() == a.from.shape.rank() - 1;
    const Dims& slow = inner ? a.kept : a.axes;
    const Dims& fast = inner ? a.axes : a.kept;
    NDArray elements(a.dtype, Shape{0});
    const auto add_slab = [&](const Region& box) {
        if (io.stop.stop_requested()) throw cancelled("stopped on request");
        const Region slab = a.slab_of(whole, box);
        a.read_ordered(elements, slab, slow, fast, io);
        const WeightedSlab there{.a = a,
                                 .elements = elements.bytes().data(),
                                 .weights = weights.read(slab, slow, fast, io),
                                 .by_column = weights.by_column(),
                                 .columns = columns,
                                 .count = box.count()};
        inner ? there.add_columns(sums, io) : there.add_rows(sums, groups, box.start[0], io);
    };
    if (groups.box.count() > 0) {
        for_each_step(groups.box.extent, a.slab_step(columns), [&](Region box) {
            for (int k = 0; k < box.rank(); ++k) box.start[k] += groups.box.start[k];
            add_slab(box);
        });
    }
    NDArray results(DType::of<double>(), {columns * groups.count});
    const auto made = results.values<double>();
    for (std::int64_t c = 0; c < results.count(); ++c) made[static_cast<std::size_t>(c)] = sums.result(c);
    a.write(results, whole, out, groups);
}

}  // namespace tessera
