#include <tessera/rolling.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>
#include <tessera/meaning.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/slices.h>

#include "fill_attribute.h"
#include "percentile.h"
#include "reduced_array.h"
#include "windows.h"

namespace tessera {

namespace {

/// The reduction of numbers, of which NaN are missing.
class WindowOf {
public:
    explicit WindowOf(const RollingOptions& o) : o_(o), least_(o.least.value_or(o.length)) {}

    double result(const double* v, std::int64_t n) {
        std::int64_t count = 0;
        for (std::int64_t i = 0; i < n; ++i) count += v[i] == v[i] ? 1 : 0;
        if (count < least_ || (count == 0 && o_.with != Reduction::count)) return missing_number;
        switch (o_.with) {
            case Reduction::count:
                return static_cast<double>(count);
            case Reduction::min:
            case Reduction::max:
                return extreme(v, n);
            case Reduction::sum:
                return sum(v, n);
            case Reduction::mean:
                return sum(v, n) / static_cast<double>(count);
            case Reduction::variance:
                return variance(v, n, count);
            case Reduction::deviation:
                return std::sqrt(variance(v, n, count));
            default:
                return percentile(v, n);
        }
    }

private:
    static double sum(const double* v, std::int64_t n) {
        double sum = 0;
        for (std::int64_t i = 0; i < n; ++i) sum += v[i] == v[i] ? v[i] : 0;
        return sum;
    }
    [[nodiscard]] double extreme(const double* v, std::int64_t n) const {
        double best = o_.with == Reduction::max ? -HUGE_VAL : HUGE_VAL;
        for (std::int64_t i = 0; i < n; ++i) {
            const bool better = o_.with == Reduction::max ? v[i] > best : v[i] < best;
            best = better ? v[i] : best;
        }
        return best;
    }
    static double variance(const double* v, std::int64_t n, std::int64_t count) {
        const double mean = sum(v, n) / static_cast<double>(count);
        double squares = 0;
        for (std::int64_t i = 0; i < n; ++i) squares += v[i] == v[i] ? (v[i] - mean) * (v[i] - mean) : 0;
        return squares / static_cast<double>(count);
    }
    double percentile(const double* v, std::int64_t n) {
        some_.clear();
        std::copy_if(v, v + n, std::back_inserter(some_), [](double x) { return x == x; });
        return percentile_of(some_.data(), std::ssize(some_), o_.percent, o_.with);
    }

    const RollingOptions& o_;
    std::int64_t least_;
    std::vector<double> some_;
};

class RollingSource final : public ArraySource {
public:
    RollingSource(std::unique_ptr<ArraySource> array, const RollingOptions& options)
        : array_(std::move(array)), o_(options), from_(array_->info()), native_(native_dtype(from_.dtype)) {
        info_ = from_;
        info_.dtype = native_dtype(reduced_dtype(from_.dtype, Reduction::mean));
        info_.marks_missing = false;
        info_.access = from_.access;
        for (int d = 0; d < from_.shape.rank(); ++d) {
            if (d != o_.axis) others_.push_back(d);
        }
        set_blocks();
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return array_->name(); }
    [[nodiscard]] Value attribute_values() const override {
        const bool of_numbers = o_.with == Reduction::count;
        Value values =
            attributes_of_result(*array_, info_, {"", of_numbers ? UnitsKept::none : with_units()}, {o_.axis});
        if (o_.least.value_or(o_.length) > 0) values.set(fill_attribute, missing_number);
        return values;
    }
    [[nodiscard]] const ArraySource* converted_from() const override { return array_.get(); }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (!region.empty()) divide(region, out, io);
    }

private:
    [[nodiscard]] UnitsKept with_units() const {
        if (o_.with == Reduction::variance) return UnitsKept::squared;
        return o_.with == Reduction::deviation || o_.with == Reduction::sum ? UnitsKept::as_difference : UnitsKept::all;
    }
    /// Blocks that are long along the axis, because the elements before each are read again.
    void set_blocks() {
        const int rank = from_.shape.rank();
        const bool chunked = from_.chunks.rank() == rank;
        const std::int64_t length = std::max<std::int64_t>(1, from_.shape[o_.axis]);
        if (!chunked) info_.chunks = Shape::filled(rank, 1);
        const std::int64_t own = info_.chunks[o_.axis];
        constexpr std::int64_t windows = 8;
        info_.chunks[o_.axis] = std::min(length, ceil_div(std::max(own, windows * o_.length), own) * own);
        std::int64_t elements = element_count(info_.chunks);
        constexpr std::int64_t block = std::int64_t{1} << 19;
        for (int d = rank - 1; !chunked && d >= 0; --d) {
            if (d == o_.axis) continue;
            info_.chunks[d] = std::clamp<std::int64_t>(block / std::max<std::int64_t>(1, elements), 1,
                                                       std::max<std::int64_t>(1, from_.shape[d]));
            elements *= info_.chunks[d];
        }
        info_.shards = {};
        info_.working = reading_memory(from_) + std::min(o_.memory, elements * bytes_each() * 2);
    }
    [[nodiscard]] std::int64_t bytes_each() const { return native_.size() + 8 + info_.dtype.size(); }

    /// The elements along the axis that windows of a range take, those of the array.
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> window(std::int64_t first, std::int64_t last) const {
        const std::int64_t before = o_.centred ? o_.length / 2 : o_.length - 1;
        const std::int64_t length = from_.shape[o_.axis];
        return {std::clamp<std::int64_t>(first - before, 0, length),
                std::clamp<std::int64_t>(last - before + o_.length, 0, length)};
    }

    /// Halves a region until it fits into memory: first across the axis, at chunks, then along it.
    void divide(const Region& region, const MutableArrayView& out, const IoOptions& io) const {
        if (io.stop.stop_requested()) throw cancelled("stopped on request");
        const int axis = o_.axis;
        const auto [low, high] = window(region.start[axis], region.start[axis] + region.extent[axis] - 1);
        const std::int64_t lines = region.count() / region.extent[axis];
        if (lines * (high - low) <= o_.memory / bytes_each()) return compute(region, out, io);
        for (const bool cut : {false, true}) {
            if (cut && region.extent[axis] > 4 * o_.length) return halve(region, out, axis, 1, io);
            for (const std::int64_t k : others_) {
                const int d = static_cast<int>(k);
                const bool chunked = from_.chunks.rank() == from_.shape.rank();
                const std::int64_t unit = cut || !chunked ? 1 : from_.chunks[d];
                const std::int64_t middle = ceil_div(region.start[d] + region.extent[d] / 2, unit) * unit;
                if (middle > region.start[d] && middle < region.start[d] + region.extent[d]) {
                    return halve(region, out, d, unit, io);
                }
            }
        }
        if (region.extent[axis] > 1) return halve(region, out, axis, 1, io);
        compute(region, out, io);
    }

    void halve(const Region& region, const MutableArrayView& out, int d, std::int64_t unit, const IoOptions& io) const {
        const std::int64_t first = ceil_div(region.start[d] + region.extent[d] / 2, unit) * unit - region.start[d];
        Region part = region, place = Region::whole(region.extent);
        part.extent[d] = place.extent[d] = first;
        divide(part, out.part(place), io);
        part.start[d] += first;
        place.start[d] = first;
        part.extent[d] = place.extent[d] = region.extent[d] - first;
        divide(part, out.part(place), io);
    }

    void compute(const Region& region, const MutableArrayView& out, const IoOptions& io) const {
        const int axis = o_.axis;
        const std::int64_t n = region.extent[axis];
        const auto [low, high] = window(region.start[axis], region.start[axis] + n - 1);
        Region read = region;
        read.start[axis] = low;
        read.extent[axis] = high - low;
        NDArray elements(native_, Shape{0});
        const Dims along{axis};
        ReducedArray::read_ordered(*array_, native_, elements, read, others_, along, io);
        const std::int64_t lines = region.count() / n;
        const ToDoubles widen = to_doubles(Elements{.dtype = native_, .marks = from_.marks_missing}.for_doubles());
        NDArray line(DType::of<double>(), {high - low});
        NDArray results(DType::of<double>(), {lines * n});
        double* const v = line.values<double>().data();
        double* made = results.values<double>().data();
        WindowOf reduce(o_);
        for (std::int64_t l = 0; l < lines; ++l) {
            if (io.stop.stop_requested()) throw cancelled("stopped on request");
            if (high > low) widen(elements.bytes().data() + l * (high - low) * native_.size(), high - low, v);
            for (std::int64_t i = 0; i < n; ++i) {
                const auto [first, last] = window(region.start[axis] + i, region.start[axis] + i);
                *made++ = reduce.result(v + (first - low), last - first);
            }
        }
        write(results, region, out);
    }

    void write(const NDArray& results, const Region& region, const MutableArrayView& out) const {
        NDArray made(info_.dtype, {results.count()});
        (void)cast_packed(results.dtype(), results.bytes().data(), info_.dtype, made.bytes().data(), made.count(),
                          Cast::unsafe);
        Shape shape;
        Dims place_of = Dims::filled(region.rank(), 0);
        int k = 0;
        for (const std::int64_t d : others_) {
            shape.push_back(region.extent[static_cast<int>(d)]);
            place_of[static_cast<int>(d)] = k++;
        }
        shape.push_back(region.extent[o_.axis]);
        place_of[o_.axis] = k;
        made = std::move(made).reshaped(shape);
        copy_elements(ArrayView(made.view()).transposed(place_of), out);
    }

    std::unique_ptr<ArraySource> array_;
    RollingOptions o_;
    ArrayInfo from_, info_;
    DType native_;
    Dims others_;
};

}  // namespace

std::unique_ptr<ArraySource> rolling_source(std::unique_ptr<ArraySource> array, const RollingOptions& options) {
    const ArrayInfo info = array->info();
    const bool places = options.with == Reduction::argmin || options.with == Reduction::argmax;
    if (places || options.with == Reduction::any || options.with == Reduction::all) {
        throw unsupported("there is no {} of windows", reduction_name(options.with));
    }
    if (!is_number(info.dtype) || info.dtype.kind() == Kind::complex) {
        throw unsupported("{}: windows are of real numbers, and its elements are {}", array->name(),
                          info.dtype.to_string());
    }
    const std::int64_t length = info.shape[options.axis];
    if (options.length < 1 || options.length > std::max<std::int64_t>(1, length)) {
        throw invalid_argument("{}: expected a window of 1 to {} elements, found {}", array->name(), length,
                               options.length);
    }
    if (options.least && (*options.least < 0 || *options.least > options.length)) {
        throw invalid_argument("min_count: expected 0 to {}, the length of a window, found {}", options.length,
                               *options.least);
    }
    return std::make_unique<RollingSource>(std::move(array), options);
}

}  // namespace tessera
