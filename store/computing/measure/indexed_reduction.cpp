#include <tessera/indexed_reduction.h>

#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/error.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/shape.h>
#include <tessera/slices.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "column_summary.h"
#include "exact_sum.h"
#include "index_bytes.h"
#include "reduced_array.h"

namespace tessera {

namespace {

/// What is known of the elements of one result.
struct Known {
    KnownElements elements;
    bool has_zero = false;  ///< whether some part of them surely has a zero
    bool may_have = false;  ///< whether some part may have one

    void merge(const KnownElements& part) {
        elements.merge(part);
        if (part.low > part.high) return;
        has_zero = has_zero || part.low == 0 || part.high == 0;
        may_have = may_have || (part.low < 0 && part.high > 0);
    }
};

/// The result that follows from what is known of its elements.
class Answer {
public:
    Answer(const ReduceOptions& options, const ArrayInfo& from)
        : with_(options.with),
          skip_(options.skip_nan),
          dtype_(native_dtype(from.dtype)),
          result_(native_dtype(reduced_dtype(from.dtype, options.with))),
          marks_(from.marks_missing) {}

    [[nodiscard]] const DType& dtype() const { return result_; }

    [[nodiscard]] bool takes_sums() const { return with_ == Reduction::sum || with_ == Reduction::mean; }

    /// Writes an element. False: it does not follow.
    [[nodiscard]] bool write(const Known& known, std::byte* out) const {
        const KnownElements& k = known.elements;
        const std::int64_t count = k.count - k.missing;
        switch (with_) {
            case Reduction::count:
                std::memcpy(out, &count, sizeof count);
                return true;
            case Reduction::any:
            case Reduction::all:
                return write_truth(known, out);
            case Reduction::min:
            case Reduction::max:
                return write_extreme(k, out);
            default:
                return k.sums && write_sum(k, count, out);
        }
    }

private:
    [[nodiscard]] bool is_float() const { return dtype_.kind() == Kind::real || dtype_.kind() == Kind::bfloat16; }

    void write_number(double v, std::byte* out) const {
        (void)cast_packed(DType::of<double>(), reinterpret_cast<const std::byte*>(&v), result_, out, 1, Cast::unsafe);
    }
    static bool write_integer(std::int64_t v, std::byte* out) {
        std::memcpy(out, &v, sizeof v);
        return true;
    }

    [[nodiscard]] bool write_truth(const Known& known, std::byte* out) const {
        const KnownElements& k = known.elements;
        const bool numbers = k.low <= k.high;
        bool truth = false;
        if (with_ == Reduction::any) {
            truth = (numbers && (k.low != 0 || k.high != 0)) || (!skip_ && k.missing > 0);
        } else {
            if (!known.has_zero && known.may_have) return false;
            truth = !known.has_zero;
        }
        *out = std::byte{truth ? std::uint8_t{1} : std::uint8_t{0}};
        return true;
    }

    /// Which of several NaNs comes first, and which of two zeros, is known by reading alone.
    [[nodiscard]] bool write_extreme(const KnownElements& k, std::byte* out) const {
        const bool least = with_ == Reduction::min;
        if (!is_float() && dtype_.size() == 8) {
            if (marks_ || is_time(dtype_)) {
                const bool missing = skip_ ? k.missing == k.count : k.missing > 0;
                if (missing) return write_integer(missing_integer, out);
            }
            const bool turned = dtype_.kind() == Kind::unsigned_integer;
            return write_integer((least ? k.least : k.most) ^ (turned ? std::numeric_limits<std::int64_t>::min() : 0),
                                 out);
        }
        if (!skip_ && k.missing > 0) return false;
        double v = least ? k.low : k.high;
        if (k.low > k.high) v = std::numeric_limits<double>::quiet_NaN();
        const double other = least ? k.high : k.low;
        const bool one_zero = v != 0 || std::signbit(v) != least || (other == 0 && std::signbit(other) == least);
        if (is_float() && !one_zero) return false;
        write_number(v, out);
        return true;
    }

    [[nodiscard]] bool write_sum(const KnownElements& k, std::int64_t count, std::byte* out) const {
        const bool mean = with_ == Reduction::mean;
        if (!mean && !is_float()) {
            const bool missing = marks_ && (skip_ ? count == 0 : k.missing > 0);
            return write_integer(missing ? missing_integer : static_cast<std::int64_t>(k.whole), out);
        }
        const bool missing = !skip_ && k.missing > 0;
        write_number(missing ? std::numeric_limits<double>::quiet_NaN() : sum_result(k.sum, count, k.missing > 0, mean),
                     out);
        return true;
    }

    Reduction with_;
    bool skip_;
    DType dtype_, result_;
    bool marks_;
};

/// A reduction of a region of an array, and how its results lie in it.
class IndexedReduction final : public ArraySource {
public:
    struct Geometry {
        Shape from = {};     ///< of what is reduced
        Index start = {};    ///< of its first element in the array
        Dims axis_of = {};   ///< the array's axis for each of its axes
        Dims kept = {};      ///< its axes that are not reduced, ascending
        bool keeps = false;  ///< whether the others stay with the length 1
    };

    IndexedReduction(std::unique_ptr<ArraySource> read, std::shared_ptr<const ChunkIndex> index, const Answer& answer,
                     Geometry geometry)
        : read_(std::move(read)), index_(std::move(index)), answer_(answer), geometry_(std::move(geometry)) {}

    [[nodiscard]] ArrayInfo info() const override { return read_->info(); }
    [[nodiscard]] const std::string& name() const override { return read_->name(); }
    [[nodiscard]] Value attribute_values() const override { return read_->attribute_values(); }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        const auto known = region.empty() ? std::nullopt : known_of(region, io);
        NDArray results(answer_.dtype(), region.extent);
        bool answered = known.has_value();
        for (std::size_t n = 0; answered && n < known->size(); ++n) {
            answered = answer_.write((*known)[n], results.bytes().data() + n * static_cast<std::size_t>(size()));
        }
        if (!answered) return read_->read_into(region, out, io);
        copy_elements(std::as_const(results).view(), out);
    }

private:
    [[nodiscard]] std::int64_t size() const { return answer_.dtype().size(); }

    /// What is reduced to a region of the results, in the array.
    [[nodiscard]] Region elements_of(const Region& results) const {
        Region elements(geometry_.start, Shape::filled(geometry_.start.rank(), 1));
        int at = 0;
        for (int d = 0; d < geometry_.from.rank(); ++d) {
            const int axis = static_cast<int>(geometry_.axis_of[d]);
            const bool kept = std::ranges::count(geometry_.kept, d) > 0;
            elements.start[axis] += kept ? results.start[at] : 0;
            elements.extent[axis] = kept ? results.extent[at] : geometry_.from[d];
            if (kept || geometry_.keeps) ++at;
        }
        return elements;
    }

    /// nullopt: it is to be read.
    [[nodiscard]] std::optional<std::vector<Known>> known_of(const Region& results, const IoOptions& io) const {
        const Region elements = elements_of(results);
        std::vector<Known> known(static_cast<std::size_t>(element_count(results.extent)));
        const DType dtype = native_dtype(index_->elements().info().dtype);
        const bool marks = index_->elements().info().marks_missing;
        IoOptions without_progress = io;  // which the results make
        without_progress.progress = nullptr;
        const auto take = [&](const Region& unit, std::string_view saved) {
            const auto one = ColumnSummary::make(dtype, 0, marks, answer_.takes_sums());
            IndexReader from(saved);
            one->load(from, unit.count());
            std::int64_t column = 0;
            for (const std::int64_t d : geometry_.kept) {
                const int axis = static_cast<int>(geometry_.axis_of[static_cast<int>(d)]);
                column = column * elements.extent[axis] + unit.start[axis] - elements.start[axis];
            }
            known[static_cast<std::size_t>(column)].merge(one->known());
        };
        try {
            const auto seen = index_->for_each_unit(
                {.region = elements, .sums = answer_.takes_sums(), .keep = true, .mostly_known = true}, take,
                without_progress);
            if (!seen || (*seen < elements.count() && !add_absent(known, elements.count()))) return std::nullopt;
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled) throw;
            return std::nullopt;  // reading says what is wrong, or does it
        }
        return known;
    }

    /// Adds elements that are not stored, so that `count` are known in all. False if they are not known.
    [[nodiscard]] bool add_absent(std::vector<Known>& known, std::int64_t count) const {
        const auto absent = index_->absent_element();
        if (!absent) return false;
        const ArrayInfo info = index_->elements().info();
        const auto one = ColumnSummary::make(native_dtype(info.dtype), 0, info.marks_missing, true);
        one->add(absent->data(), std::ssize(*absent), 1, nullptr);
        const KnownElements single = one->known();
        for (Known& column : known) {
            const std::int64_t rest = count / std::ssize(known) - column.elements.count;
            if (rest <= 0) continue;
            KnownElements all = single;
            all.count = rest;
            all.missing *= rest;
            all.whole *= static_cast<std::uint64_t>(rest);
            all.sum.clear();
            all.sum.add(single.sum.rounded(), rest);
            column.merge(all);
        }
        return true;
    }

    std::unique_ptr<ArraySource> read_;
    std::shared_ptr<const ChunkIndex> index_;
    Answer answer_;
    Geometry geometry_;
};

/// Whether the index can say anything of such a reduction.
bool is_answered(const ReduceOptions& options, const ArrayInfo& from, const ArrayInfo& known) {
    if (options.groups != nullptr || options.weights != nullptr || from.marks_missing != known.marks_missing ||
        !(native_dtype(from.dtype) == native_dtype(known.dtype))) {
        return false;
    }
    switch (options.with) {
        case Reduction::min:
        case Reduction::max:
        case Reduction::count:
            return true;
        case Reduction::sum:
        case Reduction::mean:
        case Reduction::any:
        case Reduction::all:
            return !is_time(from.dtype);
        default:
            return false;
    }
}

/// nullopt if chunks belong to several results, or results would take too much memory.
std::optional<IndexedReduction::Geometry> geometry_of(const ReduceOptions& options, const ArrayInfo& from,
                                                      const ChunkGrid& units, const Selection& part) {
    IndexedReduction::Geometry geometry{
        .from = from.shape, .start = part.bounds().start, .keeps = options.keep_dimensions};
    for (int axis = 0; axis < part.rank(); ++axis) {
        if (!part.axes()[static_cast<std::size_t>(axis)].dropped) geometry.axis_of.push_back(axis);
    }
    if (!part.is_region() || !(part.shape() == from.shape)) return std::nullopt;
    const int rank = from.shape.rank();
    std::int64_t results = 1;
    for (int d = 0; d < rank; ++d) {
        const bool goes = options.axes.empty() || std::ranges::any_of(options.axes, [&](int axis) {
                              return (axis < 0 ? axis + rank : axis) == d;
                          });
        if (goes) continue;
        geometry.kept.push_back(d);
        results *= from.shape[d];
        if (from.shape[d] != 1 && units.chunks()[static_cast<int>(geometry.axis_of[d])] != 1) return std::nullopt;
    }
    const bool integers = from.dtype.kind() != Kind::real && from.dtype.kind() != Kind::bfloat16;
    const bool exact = options.with == Reduction::mean || (options.with == Reduction::sum && !integers);
    if (exact && !sums_exactly(from, options, geometry.kept)) return std::nullopt;
    if (element_count(from.shape) == 0 || results > options.memory / static_cast<std::int64_t>(sizeof(Known))) {
        return std::nullopt;
    }
    return geometry;
}

}  // namespace

std::unique_ptr<ArraySource> reduce_by_index(std::unique_ptr<ArraySource> array, const ReduceOptions& options,
                                             std::shared_ptr<const ChunkIndex> index,
                                             const std::optional<Selection>& part) {
    const ArrayInfo from = array->info();
    auto read = reduce_source(std::move(array), options);
    if (index == nullptr || !is_answered(options, from, index->elements().info())) return read;
    const Selection all = part ? *part : Selection::all(index->elements().info().shape);
    auto geometry = geometry_of(options, from, index->units(), all);
    if (!geometry) return read;
    return std::make_unique<IndexedReduction>(std::move(read), std::move(index), Answer(options, from),
                                              std::move(*geometry));
}

}  // namespace tessera
