#include <tessera/reduce.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <tessera/calc.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/geo_reference.h>
#include <tessera/meaning.h>
#include <tessera/multiscales.h>
#include <tessera/numbers.h>
#include <tessera/slices.h>

#include "accumulate.h"
#include "percentile.h"
#include "reduced_array.h"

namespace tessera {

namespace {

bool is_count(Reduction with) {
    return with == Reduction::count || with == Reduction::argmin || with == Reduction::argmax;
}

/// What a result is, in the words of CF's cell_methods, and what becomes of the units.
ResultMeaning reduction_meaning(Reduction with, bool weighted) {
    if (weighted && with == Reduction::mean) return {"mean (weighted)"};
    if (weighted && with == Reduction::sum) return {"sum (weighted)", UnitsKept::none};  // weights have units, too
    switch (with) {
        case Reduction::min:
            return {"minimum"};
        case Reduction::max:
            return {"maximum"};
        case Reduction::sum:
            return {"sum", UnitsKept::as_difference};  // a sum of dates is none
        case Reduction::mean:
            return {"mean"};
        case Reduction::median:
            return {"median"};
        case Reduction::deviation:
            return {"standard_deviation", UnitsKept::as_difference};
        case Reduction::variance:
            return {"variance", UnitsKept::squared};
        case Reduction::percentile:
            return {""};
        default:
            return {"", UnitsKept::none};
    }
}

/// Plans which parts of a result are computed at once, and how.
class ReduceSource final : public ArraySource {
public:
    /// `of_nothing`: the result of no elements, where that is no error.
    ReduceSource(std::unique_ptr<ArraySource> array, const ReduceOptions& options, std::optional<bool> of_nothing)
        : a_(std::move(array), options, of_nothing), name_(a_.array->name()) {
        info_.dtype = a_.result_dtype;
        info_.marks_missing = a_.from.marks_missing && !is_count(options.with) && info_.dtype.kind() == Kind::integer;
        const int rank = a_.from.shape.rank();
        const bool chunked = rank > 0 && a_.from.chunks.rank() == rank;
        const Grouping* const groups = a_.grouping;
        for (int d = 0; d < rank; ++d) {
            const bool goes = a_.goes(d);
            if (goes && !a_.options.keep_dimensions && groups == nullptr) continue;
            info_.shape.push_back(!goes ? a_.from.shape[d] : groups != nullptr ? groups->count : 1);
            if (chunked) info_.chunks.push_back(!goes ? a_.from.chunks[d] : groups != nullptr ? group_chunk(d) : 1);
        }
        info_.access = a_.from.access;
        info_.working = least_memory();
        if (chooses_by_order(a_.options.with) && !of_nothing && element_count(a_.reduced_shape()) == 0 &&
            element_count(info_.shape) > 0) {
            throw invalid_argument("{}: there is no {} of no elements", name_, reduction_name(a_.options.with));
        }
        if (groups != nullptr) require_groups();
        if (a_.options.weights) require_weights();
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] Value attribute_values() const override {
        std::vector<int> axes;
        for (const std::int64_t d : a_.axes) axes.push_back(static_cast<int>(d));
        Value values = attributes_of_result(*a_.array, info_,
                                            reduction_meaning(a_.options.with, a_.options.weights != nullptr), axes);
        if (const auto place = geo_reference_in(values)) {
            const auto [y, x] = geo_dimensions(*place, dimension_names_of(*a_.array), a_.from.shape.rank());
            if (y >= 0 && (a_.goes(y) || a_.goes(x))) erase_geo_place(values);
        }
        if (a_.grouping != nullptr) {
            values.set("grouped_by", a_.grouping->by);
            values.set("group_labels", a_.grouping->labels);
        }
        return values;
    }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        const int rank = a_.from.shape.rank();
        Region whole = Region::whole(a_.from.shape);
        MutableArrayView full = out;
        full.shape = Shape();
        full.strides = Strides();
        int at = 0;
        for (int d = 0; d < rank; ++d) {
            const bool stays = !a_.goes(d) || a_.grouping != nullptr;  // of a grouped dimension `whole` has groups
            if (stays) {
                whole.start[d] = region.start[at];
                whole.extent[d] = region.extent[at];
            }
            full.shape.push_back(stays ? out.shape[at] : 1);
            full.strides.push_back(stays ? out.strides[at] : 0);
            if (stays || a_.options.keep_dimensions) ++at;
        }
        divide(whole, full, io);
    }

private:
    void require_groups() const {
        if (a_.options.with == Reduction::argmin || a_.options.with == Reduction::argmax) {
            throw unsupported("{}: there is no {} of groups", name_, reduction_name(a_.options.with));
        }
        if (std::ssize(a_.grouping->of) != a_.from.shape[a_.grouping->axis]) {
            throw invalid_argument("{}: {} indices are grouped, but there are {}", name_, a_.grouping->of.size(),
                                   a_.from.shape[a_.grouping->axis]);
        }
    }
    void require_weights() const {
        const Shape shape = a_.options.weights->info().shape;
        bool fits = shape.rank() == a_.from.shape.rank(), depends = false;
        for (int d = 0; fits && d < shape.rank(); ++d) {
            fits = shape[d] == 1 || shape[d] == a_.from.shape[d];
            depends = depends || (a_.goes(d) && shape[d] == a_.from.shape[d]);
        }
        if (!fits) {
            throw invalid_argument("{}: its shape is {}, and that of the weights {}", name_, a_.from.shape.to_string(),
                                   shape.to_string());
        }
        if (!depends) {
            throw invalid_argument("weights: {} are of no dimension that is reduced, so that they change nothing",
                                   a_.options.weights->name());
        }
    }
    /// How many groups a chunk's indices belong to, if groups follow each other; else all.
    [[nodiscard]] std::int64_t group_chunk(int d) const {
        const std::int64_t count = std::max<std::int64_t>(1, a_.grouping->count);
        if (!std::ranges::is_sorted(a_.grouping->of)) return count;
        return std::clamp<std::int64_t>(count * a_.from.chunks[d] / std::max<std::int64_t>(1, a_.from.shape[d]), 1,
                                        count);
    }
    [[nodiscard]] bool takes_percentile() const {
        return a_.options.with == Reduction::median || a_.options.with == Reduction::percentile;
    }

    /// Whether a percentile takes several passes, because its elements do not fit into memory, or so few results at
    /// a time that chunks would be decoded more often.
    [[nodiscard]] bool in_passes(std::int64_t columns) const {
        if (!takes_percentile() || a_.grouping != nullptr) return false;
        const std::int64_t line = a_.line_bytes();
        return line > a_.options.memory ||
               (columns > a_.options.memory / std::max<std::int64_t>(1, line) && line > 6 * PercentileSearch::bytes);
    }

    /// The memory for a part of the result that divide() does not divide.
    [[nodiscard]] std::int64_t least_memory() const {
        const bool percentile = takes_percentile();
        std::int64_t columns = 1;
        for (const std::int64_t k : a_.kept) {
            const int d = static_cast<int>(k);
            if (!percentile) columns *= std::max<std::int64_t>(1, std::min(a_.chunk_length(d), a_.from.shape[d]));
        }
        constexpr std::int64_t results = 16;
        const std::int64_t passes =
            checked_add(checked_multiply(element_count(a_.least_step()), a_.dtype.size(), "memory"),
                        PercentileSearch::bytes + 8 * numbers_in_a_pass, "memory");
        const std::int64_t slab = !percentile
                                      ? checked_multiply(element_count(a_.least_step()), a_.element_bytes(), "memory")
                                  : a_.grouping != nullptr ? a_.line_bytes()
                                                           : std::min(a_.line_bytes(), passes);
        const std::int64_t state = a_.grouping == nullptr ? 1
                                   : percentile
                                       ? a_.grouping->count
                                       : (info_.chunks.empty() ? a_.grouping->count : info_.chunks[a_.grouping->axis]);
        const std::int64_t each = checked_add(
            slab, checked_multiply(std::max<std::int64_t>(1, state), a_.state_bytes() + 8 + results, "memory"),
            "memory");
        return checked_add(checked_multiply(columns, each, "memory"), reading_memory(a_.from), "memory");
    }

    /// Halves a part of the result until its computation fits into memory. Only for percentiles are chunks divided,
    /// because they need all elements of a result at once.
    void divide(const Region& whole, const MutableArrayView& out, const IoOptions& io) const {
        if (io.stop.stop_requested()) throw cancelled("stopped on request");
        const std::int64_t columns = element_count(lengths_along(whole.extent, a_.kept));
        const bool passes = in_passes(columns);
        const std::int64_t state =
            (a_.state_bytes() + 8) * (a_.grouping == nullptr ? 1 : whole.extent[a_.grouping->axis]);
        const std::int64_t each = passes               ? 2 * PercentileSearch::bytes
                                  : takes_percentile() ? a_.line_bytes()
                                                       : state + element_count(a_.least_step()) * a_.element_bytes();
        if (columns > 1 && columns > a_.options.memory / std::max<std::int64_t>(1, each)) {
            for (const bool cut_chunks : {false, true}) {
                if (cut_chunks && !takes_percentile() && a_.grouping == nullptr &&
                    a_.from.chunks.rank() == a_.from.shape.rank()) {
                    break;
                }
                for (const std::int64_t k : a_.kept) {
                    const int d = static_cast<int>(k);
                    const std::int64_t unit = cut_chunks ? 1 : a_.chunk_length(d);
                    const std::int64_t first =
                        ceil_div(whole.start[d] + whole.extent[d] / 2, unit) * unit - whole.start[d];
                    if (first <= 0 || first >= whole.extent[d]) continue;
                    divide_at(whole, out, d, first, io);
                    return;
                }
            }
        }
        if (passes) return reduce_by_passes(a_, whole, out, io);
        if (a_.options.weights) return reduce_by_weights(a_, whole, out, io);
        takes_percentile() ? reduce_by_sorting(a_, whole, out, io) : reduce_by_accumulators(a_, whole, out, io);
    }

    void divide_at(const Region& whole, const MutableArrayView& out, int d, std::int64_t first,
                   const IoOptions& io) const {
        Region part = whole;
        Region place = Region::whole(out.shape);
        part.extent[d] = place.extent[d] = first;
        divide(part, out.part(place), io);
        part.start[d] += first;
        place.start[d] = first;
        part.extent[d] = place.extent[d] = whole.extent[d] - first;
        divide(part, out.part(place), io);
    }

    ReducedArray a_;
    ArrayInfo info_;
    std::string name_;
};

/// Whether elements are not zero, as booleans; NaN is not.
std::unique_ptr<ArraySource> truth_source(std::unique_ptr<ArraySource> array, Reduction with, bool skip_nan) {
    const ArrayInfo info = array->info();
    if (info.dtype.kind() == Kind::boolean) return array;
    const bool any = with == Reduction::any;
    const char* expression = "a != 0";  // true of NaN and of the least integer, which marks missing ones
    if (skip_nan && info.marks_missing) {
        if (any) expression = "(a != 0) & (a >= -9223372036854775807)";
    } else if (skip_nan && !is_time(info.dtype)) {
        expression = any ? "(a != 0) & ~isnan(a)" : "(a != 0) | isnan(a)";
    }
    return calc_source(expression, {{"a", std::shared_ptr<const ArraySource>(std::move(array))}});
}

}  // namespace

std::unique_ptr<ArraySource> reduce_source(std::unique_ptr<ArraySource> array, const ReduceOptions& options) {
    if (!(options.percent >= 0 && options.percent <= 100)) {
        throw invalid_argument("a percentile is that of 0 to 100 percent, found {}", options.percent);
    }
    const bool weighs = options.with == Reduction::mean || options.with == Reduction::sum ||
                        options.with == Reduction::deviation || options.with == Reduction::variance;
    const DType dtype = array->info().dtype;
    if (options.weights && (!weighs || dtype.kind() == Kind::complex)) {
        throw unsupported("weights: only for mean, sum, std and var of real numbers, but found {} of {}",
                          reduction_name(options.with), dtype.to_string());
    }
    if (options.with != Reduction::any && options.with != Reduction::all) {
        return std::make_unique<ReduceSource>(std::move(array), options, std::nullopt);
    }
    (void)reduced_dtype(array->info().dtype, options.with);
    const bool all = options.with == Reduction::all;
    ReduceOptions of_truth = options;
    of_truth.with = all ? Reduction::min : Reduction::max;
    of_truth.skip_nan = false;
    return std::make_unique<ReduceSource>(truth_source(std::move(array), options.with, options.skip_nan), of_truth,
                                          all);
}

}  // namespace tessera
