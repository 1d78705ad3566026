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
#include <tessera/parallel.h>
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
        if (region.empty()) return;
        for_each_step(region.extent, info_.chunks, [&](Region block) {
            if (io.stop.stop_requested()) throw cancelled("stopped on request");
            const Region place = block;
            for (int d = 0; d < block.rank(); ++d) block.start[d] += region.start[d];
            compute(block, out.part(place), io);
        });
    }

private:
    [[nodiscard]] UnitsKept with_units() const {
        if (o_.with == Reduction::variance) return UnitsKept::squared;
        return o_.with == Reduction::deviation || o_.with == Reduction::sum ? UnitsKept::as_difference : UnitsKept::all;
    }
    /// Blocks within memory. The elements before each are read again, so that long ones are better; but other
    /// dimensions are cut for that, and chunks then decoded by several.
    void set_blocks() {
        const int rank = from_.shape.rank();
        const std::int64_t length = std::max<std::int64_t>(1, from_.shape[o_.axis]);
        if (from_.chunks.rank() != rank) info_.chunks = Shape::filled(rank, 1);
        const std::int64_t own = std::min(length, info_.chunks[o_.axis]);
        if (from_.chunks.rank() != rank) info_.chunks = from_.shape;
        for (std::int64_t& n : info_.chunks) n = std::max<std::int64_t>(1, n);
        Shape cut = info_.chunks;
        double least = std::numeric_limits<double>::infinity();
        for (double parts = 1;; parts *= 2) {
            cut[o_.axis] = 1;
            const std::int64_t lines = std::max<std::int64_t>(1, element_count(cut));
            const std::int64_t fits = o_.memory / (lines * bytes_each()) - (o_.length - 1);
            const std::int64_t whole = fits >= own ? fits / own * own : fits;
            const std::int64_t block = std::clamp<std::int64_t>(whole, 1, length);
            const double work = parts * static_cast<double>(block + o_.length - 1) / static_cast<double>(block);
            if ((fits >= 1 || lines == 1) && work < least) {
                least = work;
                info_.chunks = cut;
                info_.chunks[o_.axis] = block;
            }
            if (lines == 1 || block == length) break;
            std::int64_t& longest = *std::max_element(cut.begin(), cut.end());
            longest = ceil_div(longest, 2);
        }
        info_.shards = {};
        info_.working = reading_memory(from_) + element_count(info_.chunks) / info_.chunks[o_.axis] *
                                                    (info_.chunks[o_.axis] + o_.length) * bytes_each();
    }
    [[nodiscard]] std::int64_t bytes_each() const { return native_.size() + info_.dtype.size(); }

    /// The elements along the axis that windows of a range take, those of the array.
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> window(std::int64_t first, std::int64_t last) const {
        const std::int64_t before = o_.centred ? o_.length / 2 : o_.length - 1;
        const std::int64_t length = from_.shape[o_.axis];
        return {std::clamp<std::int64_t>(first - before, 0, length),
                std::clamp<std::int64_t>(last - before + o_.length, 0, length)};
    }

    void compute(const Region& region, const MutableArrayView& out, const IoOptions& io) const {
        const int axis = o_.axis;
        const std::int64_t n = region.extent[axis];
        const auto range = window(region.start[axis], region.start[axis] + n - 1);
        const std::int64_t low = range.first, count = range.second - range.first;
        Region read = region;
        read.start[axis] = low;
        read.extent[axis] = count;
        NDArray elements(native_, Shape{0});
        const Dims along{axis};
        ReducedArray::read_ordered(*array_, native_, elements, read, others_, along, io);
        const std::int64_t lines = region.count() / n;
        const ToDoubles widen = to_doubles(Elements{.dtype = native_, .marks = from_.marks_missing}.for_doubles());
        NDArray results(info_.dtype, {lines * n});
        constexpr std::int64_t few = 64;
        parallel_for(ceil_div(lines, few), io, [&](std::int64_t part) {
            WindowOf reduce(o_);
            std::vector<double> line(static_cast<std::size_t>(count)), made(static_cast<std::size_t>(n));
            for (std::int64_t l = part * few; l < std::min(lines, (part + 1) * few); ++l) {
                if (count > 0) widen(elements.bytes().data() + l * count * native_.size(), count, line.data());
                for (std::int64_t i = 0; i < n; ++i) {
                    const auto [first, last] = window(region.start[axis] + i, region.start[axis] + i);
                    made[static_cast<std::size_t>(i)] = reduce.result(line.data() + (first - low), last - first);
                }
                (void)cast_packed(DType::of<double>(), reinterpret_cast<const std::byte*>(made.data()), info_.dtype,
                                  results.bytes().data() + l * n * info_.dtype.size(), n, Cast::unsafe);
            }
        });
        ReducedArray::write_ordered(std::move(results), out, others_, along);
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
