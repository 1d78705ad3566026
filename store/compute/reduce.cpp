#include <tessera/reduce.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/calc.h>
#include <tessera/cast.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/slices.h>

#include "accumulate.h"

namespace tessera {

namespace {

struct Named {
    std::string_view name;
    Reduction reduction;
};
constexpr std::array<Named, 13> reduction_names{{{"min", Reduction::min},
                                                 {"max", Reduction::max},
                                                 {"sum", Reduction::sum},
                                                 {"mean", Reduction::mean},
                                                 {"std", Reduction::deviation},
                                                 {"var", Reduction::variance},
                                                 {"count", Reduction::count},
                                                 {"argmin", Reduction::argmin},
                                                 {"argmax", Reduction::argmax},
                                                 {"median", Reduction::median},
                                                 {"any", Reduction::any},
                                                 {"all", Reduction::all},
                                                 {"percentile", Reduction::percentile}}};

bool orders(Reduction with) {
    return with == Reduction::min || with == Reduction::max || with == Reduction::argmin || with == Reduction::argmax;
}

/// Boxes of size `step` (the last ones may be smaller) that cover a shape, in C order.
template <class Body>
void for_each_step(const Shape& shape, const Shape& step, const Body& body) {
    Index start = Index::filled(shape.rank(), 0);
    for (;;) {
        Region box(start, step);
        for (int d = 0; d < shape.rank(); ++d) box.extent[d] = std::min(step[d], shape[d] - start[d]);
        body(box);
        int d = shape.rank() - 1;
        for (; d >= 0; --d) {
            start[d] += step[d];
            if (start[d] < shape[d]) break;
            start[d] = 0;
        }
        if (d < 0) return;
    }
}

/// Where a percentile lies among n sorted elements: NumPy's "linear".
struct Rank {
    std::int64_t below = 0;  ///< the element at or below it
    double part = 0;         ///< how far it is from there to the next one
};
Rank rank_of(std::int64_t n, double percent) {
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

/// A percentile of doubles. Reorders them.
double percentile_of(double* v, std::int64_t n, double percent, Reduction with) {
    if (n == 0) return std::numeric_limits<double>::quiet_NaN();
    const Rank rank = rank_of(n, percent);
    std::nth_element(v, v + rank.below, v + n);
    if (rank.below + 1 == n || rank.part == 0) return v[rank.below];
    return between(v[rank.below], *std::min_element(v + rank.below + 1, v + n), rank.part, with);
}

/// Doubles as integers in the same order, and back. -0 comes before 0.
std::uint64_t key_of(double v) {
    const auto bits = std::bit_cast<std::uint64_t>(v);
    return (bits >> 63U) != 0 ? ~bits : bits | (std::uint64_t{1} << 63U);
}
double number_of_key(std::uint64_t key) {
    return std::bit_cast<double>((key >> 63U) != 0 ? key & ~(std::uint64_t{1} << 63U) : ~key);
}

/// Finds a percentile of more elements than memory holds, in a few passes over them: each counts the elements in
/// intervals of the range that holds the wanted one, which becomes that range, until it is a single value.
class PercentileSearch {
public:
    static constexpr std::size_t intervals = 1024;
    static constexpr std::int64_t bytes = intervals * 24 + 128;

    /// Call these for all elements in each pass, until end_pass() returns true.
    void add(const double* v, std::int64_t n) {
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
    /// Whether the result is known.
    bool end_pass(const ReduceOptions& o) {
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
    [[nodiscard]] double result() const { return result_; }

private:
    struct Interval {
        std::int64_t count = 0;
        std::uint64_t low = ~std::uint64_t{0}, high = 0;
    };
    bool finish(std::uint64_t at, std::uint64_t next, Reduction with) {
        const double a = number_of_key(at);
        result_ = rank_.part == 0 || next == none ? a : between(a, number_of_key(next), rank_.part, with);
        counts_ = {};
        return true;
    }

    static constexpr std::uint64_t none = ~std::uint64_t{0};  // no double has it but a NaN
    bool first_ = true;
    std::int64_t count_ = 0, missing_ = 0, left_ = 0;
    Rank rank_;
    std::uint64_t low_ = none, high_ = 0;
    std::uint64_t above_ = none;  ///< the least key above the range
    unsigned shift_ = 0;
    std::vector<Interval> counts_;
    double result_ = 0;
};

class ReduceSource final : public ArraySource {
public:
    /// `of_nothing`: the result of no elements, where that is no error.
    ReduceSource(std::unique_ptr<ArraySource> array, const ReduceOptions& options, std::optional<bool> of_nothing)
        : array_(std::move(array)),
          from_(array_->info()),
          options_(options),
          groups_(options_.groups.get()),
          of_nothing_(of_nothing),
          dtype_(native_dtype(from_.dtype)) {
        if (options_.with == Reduction::median) options_.percent = 50;
        info_.dtype = native_dtype(reduced_dtype(from_.dtype, options.with));
        find_axes();
        const int rank = from_.shape.rank();
        const bool chunked = rank > 0 && from_.chunks.rank() == rank;
        for (int d = 0; d < rank; ++d) {
            if (!goes(d)) kept_.push_back(d);
            if (goes(d) && !options_.keep_dimensions && groups_ == nullptr) continue;
            info_.shape.push_back(!goes(d) ? from_.shape[d] : groups_ != nullptr ? groups_->count : 1);
            if (chunked) info_.chunks.push_back(!goes(d) ? from_.chunks[d] : groups_ != nullptr ? group_chunk(d) : 1);
        }
        info_.access = from_.access;
        info_.working = least_memory();
        if (orders(options_.with) && !of_nothing_ && element_count(reduced_shape()) == 0 &&
            element_count(info_.shape) > 0) {
            throw invalid_argument("{}: there is no {} of no elements", array_->name(), reduction_name(options_.with));
        }
        name_ = array_->name();
        if (groups_ != nullptr) require_groups();
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] Value attribute_values() const override {
        Value values = array_->attribute_values();
        if (groups_ != nullptr) {
            values.set("grouped_by", groups_->by);
            values.set("group_labels", groups_->labels);
        }
        return values;
    }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        const int rank = from_.shape.rank();
        Region whole = Region::whole(from_.shape);
        MutableArrayView full = out;
        full.shape = Shape();
        full.strides = Strides();
        int at = 0;
        for (int d = 0; d < rank; ++d) {
            if (goes(d)) {
                if (groups_ != nullptr) {  // of this dimension `whole` has groups
                    whole.start[d] = region.start[at];
                    whole.extent[d] = region.extent[at];
                }
                full.shape.push_back(groups_ != nullptr ? out.shape[at] : 1);
                full.strides.push_back(groups_ != nullptr ? out.strides[at] : 0);
                if (options_.keep_dimensions || groups_ != nullptr) ++at;
                continue;
            }
            whole.start[d] = region.start[at];
            whole.extent[d] = region.extent[at];
            full.shape.push_back(out.shape[at]);
            full.strides.push_back(out.strides[at]);
            ++at;
        }
        divide(whole, full, io);
    }

private:
    void find_axes() {
        const int rank = from_.shape.rank();
        std::vector<int> axes;
        if (groups_ != nullptr) {
            axes_.push_back(groups_->axis);
            return;
        }
        for (const int given : options_.axes) {
            const int axis = given < 0 ? given + rank : given;
            if (axis < 0 || axis >= rank) {
                throw invalid_argument("{}: there is no axis {} of {}", array_->name(), given, rank);
            }
            axes.push_back(axis);
        }
        if (options_.axes.empty()) {
            for (int d = 0; d < rank; ++d) axes.push_back(d);
        }
        std::ranges::sort(axes);
        if (const auto twice = std::ranges::adjacent_find(axes); twice != axes.end()) {
            throw invalid_argument("{}: axis {} is given twice", array_->name(), *twice);
        }
        for (const int axis : axes) axes_.push_back(axis);
    }

    void require_groups() const {
        if (options_.with == Reduction::argmin || options_.with == Reduction::argmax) {
            throw unsupported("{}: there is no {} of groups", name_, reduction_name(options_.with));
        }
        if (std::ssize(groups_->of) != from_.shape[groups_->axis]) {
            throw invalid_argument("{}: {} indices are grouped, but there are {}", name_, groups_->of.size(),
                                   from_.shape[groups_->axis]);
        }
    }
    /// How many groups a chunk's indices belong to, if groups follow each other; else all.
    [[nodiscard]] std::int64_t group_chunk(int d) const {
        const std::int64_t count = std::max<std::int64_t>(1, groups_->count);
        if (!std::ranges::is_sorted(groups_->of)) return count;
        return std::clamp<std::int64_t>(count * from_.chunks[d] / std::max<std::int64_t>(1, from_.shape[d]), 1, count);
    }
    /// The groups of a part of the result, and the box of elements that belong to them.
    struct Groups {
        std::int64_t first = 0, count = 1;
        Region box;
    };
    [[nodiscard]] Groups groups_of(const Region& whole) const {
        const Shape all = reduced_shape();
        Groups groups{.box = Region::whole(all)};
        if (groups_ == nullptr) return groups;
        groups.first = whole.start[groups_->axis];
        groups.count = whole.extent[groups_->axis];
        const auto inside = [&](std::int32_t g) { return g >= groups.first && g < groups.first + groups.count; };
        const auto first = std::ranges::find_if(groups_->of, inside);
        const auto last = std::find_if(groups_->of.rbegin(), groups_->of.rend(), inside);
        const std::int64_t start = first == groups_->of.end() ? 0 : first - groups_->of.begin();
        const std::int64_t end = first == groups_->of.end() ? 0 : groups_->of.rend() - last;
        groups.box = Region({start}, {end - start});
        return groups;
    }
    [[nodiscard]] bool takes_percentile() const {
        return options_.with == Reduction::median || options_.with == Reduction::percentile;
    }
    [[nodiscard]] bool goes(int d) const { return std::ranges::count(axes_, d) > 0; }
    [[nodiscard]] Shape lengths(const Shape& of, const Dims& dimensions) const {
        Shape some;
        for (const std::int64_t d : dimensions) some.push_back(of[static_cast<int>(d)]);
        return some;
    }
    [[nodiscard]] Shape reduced_shape() const { return lengths(from_.shape, axes_); }
    [[nodiscard]] std::int64_t chunk_length(int d) const {
        return from_.chunks.rank() == from_.shape.rank() && !from_.chunks.empty() ? from_.chunks[d] : 1;
    }

    /// The minimum lengths along the reduced axes: a chunk's.
    [[nodiscard]] Shape least_step() const {
        Shape step;
        for (const std::int64_t d : axes_) {
            const int axis = static_cast<int>(d);
            step.push_back(std::max<std::int64_t>(1, std::min(chunk_length(axis), from_.shape[axis])));
        }
        return step;
    }

    /// The elements of one result, or of one column of groups.
    [[nodiscard]] std::int64_t line_bytes() const {
        return checked_multiply(element_count(reduced_shape()), dtype_.size() + 8, "memory");
    }
    /// Whether a percentile takes several passes, because its elements do not fit into memory, or so few results at
    /// a time that chunks would be decoded more often.
    [[nodiscard]] bool in_passes(std::int64_t columns) const {
        if (!takes_percentile() || groups_ != nullptr) return false;
        const std::int64_t line = line_bytes();
        return line > options_.memory ||
               (columns > options_.memory / std::max<std::int64_t>(1, line) && line > 6 * PercentileSearch::bytes);
    }

    /// The memory for a part of the result that divide() does not divide.
    [[nodiscard]] std::int64_t least_memory() const {
        const bool percentile = takes_percentile();
        std::int64_t columns = 1;
        for (const std::int64_t k : kept_) {
            const int d = static_cast<int>(k);
            if (!percentile) columns *= std::max<std::int64_t>(1, std::min(chunk_length(d), from_.shape[d]));
        }
        constexpr std::int64_t results = 16;
        const std::int64_t passes = checked_add(checked_multiply(element_count(least_step()), dtype_.size(), "memory"),
                                                PercentileSearch::bytes + 8 * few_numbers, "memory");
        const std::int64_t slab = !percentile ? checked_multiply(element_count(least_step()), dtype_.size(), "memory")
                                  : groups_ != nullptr ? line_bytes()
                                                       : std::min(line_bytes(), passes);
        const std::int64_t state = groups_ == nullptr ? 1
                                   : percentile       ? groups_->count
                                                : (info_.chunks.empty() ? groups_->count : info_.chunks[groups_->axis]);
        const std::int64_t each = checked_add(
            slab, checked_multiply(std::max<std::int64_t>(1, state), accumulator_bytes + 8 + results, "memory"),
            "memory");
        return checked_add(checked_multiply(columns, each, "memory"), reading_memory(from_), "memory");
    }

    /// Halves a part of the result until its computation fits into memory. Only for percentiles are chunks divided,
    /// because they need all elements of a result at once.
    void divide(const Region& whole, const MutableArrayView& out, const IoOptions& io) const {
        if (io.stop.stop_requested()) throw cancelled("stopped on request");
        const std::int64_t columns = element_count(lengths(whole.extent, kept_));
        const bool passes = in_passes(columns);
        const std::int64_t state = (accumulator_bytes + 8) * (groups_ == nullptr ? 1 : whole.extent[groups_->axis]);
        const std::int64_t each = passes               ? 2 * PercentileSearch::bytes
                                  : takes_percentile() ? line_bytes()
                                                       : state + element_count(least_step()) * dtype_.size();
        if (columns > 1 && columns > options_.memory / std::max<std::int64_t>(1, each)) {
            for (const bool cut_chunks : {false, true}) {
                if (cut_chunks && !takes_percentile() && groups_ == nullptr &&
                    from_.chunks.rank() == from_.shape.rank()) {
                    break;
                }
                for (const std::int64_t k : kept_) {
                    const int d = static_cast<int>(k);
                    const std::int64_t unit = cut_chunks ? 1 : chunk_length(d);
                    const std::int64_t first =
                        ceil_div(whole.start[d] + whole.extent[d] / 2, unit) * unit - whole.start[d];
                    if (first <= 0 || first >= whole.extent[d]) continue;
                    divide_at(whole, out, d, first, io);
                    return;
                }
            }
        }
        if (passes) return search_percentiles(whole, out, io);
        takes_percentile() ? read_percentiles(whole, out, io) : accumulate(whole, out, io);
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

    /// Reads a region into `memory`, where `slow` axes vary slowest, then `fast` ones. Memory of the right shape is
    /// used again.
    void read_ordered(NDArray& memory, const Region& region, const Dims& slow, const Dims& fast,
                      const IoOptions& io) const {
        Shape lengths_there;
        Dims place_of = Dims::filled(region.rank(), 0);
        int k = 0;
        for (const Dims* axes : {&slow, &fast}) {
            for (const std::int64_t d : *axes) {
                lengths_there.push_back(region.extent[static_cast<int>(d)]);
                place_of[static_cast<int>(d)] = k++;
            }
        }
        if (memory.shape() != lengths_there) memory = NDArray(dtype_, lengths_there);
        array_->read_into(region, memory.view().transposed(place_of), io);
    }

    /// Lengths along the reduced axes such that slabs fit into memory.
    [[nodiscard]] Shape slab_step(std::int64_t columns) const {
        Shape step = least_step();
        const Shape all = reduced_shape();
        const std::int64_t most = std::max<std::int64_t>(1, options_.memory / 2 / (columns * dtype_.size()));
        for (int k = step.rank() - 1; k >= 0; --k) {
            const std::int64_t others = element_count(step) / step[k];
            const std::int64_t fits = most / std::max<std::int64_t>(1, others) / step[k] * step[k];
            step[k] = std::max(step[k], std::min(fits, std::max<std::int64_t>(1, all[k])));
            if (step[k] < all[k]) break;
        }
        return step;
    }

    [[nodiscard]] Region slab_of(const Region& whole, const Region& box) const {
        Region slab = whole;
        for (int k = 0; k < axes_.rank(); ++k) {
            slab.start[static_cast<int>(axes_[k])] = box.start[k];
            slab.extent[static_cast<int>(axes_[k])] = box.extent[k];
        }
        return slab;
    }

    /// The index of a box's n-th element among all reduced elements, both in C order.
    [[nodiscard]] static std::int64_t place_of(const Shape& all, const Region& box, std::int64_t n) {
        std::int64_t place = 0;
        std::int64_t scale = 1;
        for (int k = all.rank() - 1; k >= 0; --k) {
            place += (box.start[k] + n % box.extent[k]) * scale;
            n /= box.extent[k];
            scale *= all[k];
        }
        return place;
    }

    /// Adds rows of `columns` elements, a few columns at a time, so that their sums stay in the cache.
    void add_rows(Accumulator& sums, const std::byte* rows, std::int64_t columns, const Region& box,
                  const Groups& groups, const IoOptions& io) const {
        constexpr std::int64_t few = 4096;
        const Shape all = reduced_shape();
        const std::int64_t count = box.count();
        parallel_for(ceil_div(columns, few), io, [&](std::int64_t part) {
            const std::int64_t first = part * few;
            const std::int64_t n = std::min(few, columns - first);
            for (std::int64_t row = 0; row < count; ++row) {
                std::int64_t group = 0;
                if (groups_ != nullptr) {
                    group = groups_->of[static_cast<std::size_t>(box.start[0] + row)] - groups.first;
                    if (group < 0 || group >= groups.count) continue;
                }
                sums.add(rows + (row * columns + first) * dtype_.size(), group * columns + first, n,
                         place_of(all, box, row), 0);
            }
        });
    }

    /// Adds columns whose elements are contiguous, each distributed over several lanes. Long columns are divided, so
    /// that all threads have a part even of a single one.
    void add_columns(Accumulator& sums, const std::byte* elements, std::int64_t columns, const Region& box,
                     const IoOptions& io) const {
        constexpr std::int64_t lanes = 64;
        constexpr std::int64_t enough = 16;      // parts for all threads
        constexpr std::int64_t least = 1 << 15;  // elements that are worth a part
        const Shape all = reduced_shape();
        const std::int64_t count = box.count();
        const std::int64_t run = box.extent.back();
        const std::int64_t parts = std::clamp<std::int64_t>(enough / columns, 1, ceil_div(count, least));
        const std::int64_t length = ceil_div(count, parts);
        const auto make = [&] { return Accumulator::make(dtype_, options_.with, options_.skip_nan, lanes); };
        const auto add_part = [&](Accumulator& turns, std::int64_t column, std::int64_t part) {
            const std::int64_t end = std::min(count, (part + 1) * length);
            for (std::int64_t n = part * length, some = 0; n < end; n += some) {
                some = std::min(run - n % run, end - n);
                turns.add_in_turn(elements + (column * count + n) * dtype_.size(), some, place_of(all, box, n));
            }
        };
        const auto merge = [&](const Accumulator& turns, std::int64_t column) {
            for (std::int64_t lane = 0; lane < std::min(run, lanes); ++lane) sums.merge(column, turns, lane);
        };
        if (parts == 1) {
            const std::int64_t some = ceil_div(least, count);
            parallel_for(ceil_div(columns, some), io, [&](std::int64_t part) {
                const auto turns = make();
                for (std::int64_t c = part * some; c < std::min(columns, (part + 1) * some); ++c) {
                    turns->reset();
                    add_part(*turns, c, 0);
                    merge(*turns, c);
                }
            });
            return;
        }
        std::vector<std::unique_ptr<Accumulator>> turns(static_cast<std::size_t>(columns * parts));
        parallel_for(std::ssize(turns), io, [&](std::int64_t n) {
            const auto at = static_cast<std::size_t>(n);
            turns[at] = make();
            add_part(*turns[at], n / parts, n % parts);
        });
        // In their order, so that the sums do not depend on which thread is faster.
        for (std::int64_t n = 0; n < std::ssize(turns); ++n) merge(*turns[static_cast<std::size_t>(n)], n / parts);
    }

    void accumulate(const Region& whole, const MutableArrayView& out, const IoOptions& io) const {
        const std::int64_t columns = element_count(lengths(whole.extent, kept_));
        const Groups groups = groups_of(whole);
        const auto sums = Accumulator::make(dtype_, options_.with, options_.skip_nan, columns * groups.count);
        const Shape step = slab_step(columns);
        // If the last axis is reduced, a column's elements are contiguous.
        const bool inner = groups_ == nullptr && !axes_.empty() && axes_.back() == from_.shape.rank() - 1;
        NDArray elements(dtype_, Shape{0});
        const auto add_slab = [&](const Region& box) {
            if (io.stop.stop_requested()) throw cancelled("stopped on request");
            const Region slab = slab_of(whole, box);
            read_ordered(elements, slab, inner ? kept_ : axes_, inner ? axes_ : kept_, io);
            const std::byte* p = elements.bytes().data();
            if (!inner) {
                add_rows(*sums, p, columns, box, groups, io);
                return;
            }
            add_columns(*sums, p, columns, box, io);
        };
        if (groups.box.count() > 0) {
            for_each_step(groups.box.extent, step, [&](Region box) {
                for (int k = 0; k < box.rank(); ++k) box.start[k] += groups.box.start[k];
                add_slab(box);
            });
        }
        NDArray results(sums->result_dtype(), {columns * groups.count});
        sums->results(results.bytes().data());
        write(results, whole, out, groups);
    }

    /// Calls each(numbers, their count, column) for the elements of each column of a slab, in pieces, with the columns
    /// in several threads.
    template <class Each>
    void for_columns(const NDArray& elements, std::int64_t columns, const IoOptions& io, const Each& each) const {
        const std::int64_t n = elements.count() / columns;
        const ToDoubles widen = to_doubles(dtype_);
        parallel_for(columns, io, [&](std::int64_t c) {
            std::array<double, few_numbers> numbers;
            for (std::int64_t i = 0; i < n; i += few_numbers) {
                const std::int64_t count = std::min(few_numbers, n - i);
                widen(elements.bytes().data() + (c * n + i) * dtype_.size(), count, numbers.data());
                each(numbers.data(), count, c);
            }
        });
    }

    void search_percentiles(const Region& whole, const MutableArrayView& out, const IoOptions& io) const {
        const std::int64_t columns = element_count(lengths(whole.extent, kept_));
        const MemoryHold held(static_cast<std::uint64_t>(columns * PercentileSearch::bytes));
        std::vector<PercentileSearch> searches(static_cast<std::size_t>(columns));
        std::vector<char> done(searches.size(), 0);
        const Shape step = slab_step(columns);
        NDArray elements(dtype_, Shape{0});
        while (std::ranges::count(done, 0) > 0) {
            for_each_step(reduced_shape(), step, [&](const Region& box) {
                if (io.stop.stop_requested()) throw cancelled("stopped on request");
                read_ordered(elements, slab_of(whole, box), kept_, axes_, io);
                for_columns(elements, columns, io, [&](const double* v, std::int64_t n, std::int64_t c) {
                    const auto at = static_cast<std::size_t>(c);
                    if (done[at] == 0) searches[at].add(v, n);
                });
            });
            for (std::size_t c = 0; c < searches.size(); ++c) {
                if (done[c] == 0 && searches[c].end_pass(options_)) done[c] = 1;
            }
        }
        NDArray results(DType::of<double>(), {columns});
        for (std::size_t c = 0; c < searches.size(); ++c) results.values<double>()[c] = searches[c].result();
        write(results, whole, out, {});
    }

    void read_percentiles(const Region& whole, const MutableArrayView& out, const IoOptions& io) const {
        const Groups groups = groups_of(whole);
        const std::int64_t n = groups.box.count();
        const std::int64_t columns = element_count(lengths(whole.extent, kept_));
        NDArray elements(dtype_, Shape{0});
        if (groups_ == nullptr || n > 0) read_ordered(elements, slab_of(whole, groups.box), kept_, axes_, io);
        const ToDoubles widen = to_doubles(dtype_);
        NDArray line(DType::of<double>(), {n});
        NDArray group(DType::of<double>(), {groups_ == nullptr ? 0 : n});
        NDArray results(DType::of<double>(), {columns * groups.count});
        const auto result = [&](double* v, std::int64_t count) {
            // Not std::ranges::partition, of which Clang 14 cannot compile the result.
            double* const numbers_end = std::partition(v, v + count, [](double x) { return x == x; });
            const bool missing = numbers_end != v + count;
            return missing && !options_.skip_nan ? std::numeric_limits<double>::quiet_NaN()
                                                 : percentile_of(v, numbers_end - v, options_.percent, options_.with);
        };
        // The places of each group's elements in a line, so that groups are gathered one after the other.
        std::vector<std::int64_t> begins(static_cast<std::size_t>(groups.count) + 1, 0);
        std::vector<std::int64_t> places;
        if (groups_ != nullptr) {
            for (std::int64_t g = 0; g < groups.count; ++g) begins[static_cast<std::size_t>(g)] = 0;
            const auto* const of = groups_->of.data() + groups.box.start[0];
            const auto number = [&](std::int64_t i) { return of[i] - groups.first; };
            const auto inside = [&](std::int64_t g) { return g >= 0 && g < groups.count; };
            for (std::int64_t i = 0; i < n; ++i) {
                if (inside(number(i))) ++begins[static_cast<std::size_t>(number(i)) + 1];
            }
            for (std::size_t g = 1; g < begins.size(); ++g) begins[g] += begins[g - 1];
            places.resize(static_cast<std::size_t>(begins.back()));
            std::vector<std::int64_t> next = begins;
            for (std::int64_t i = 0; i < n; ++i) {
                if (inside(number(i))) {
                    places[static_cast<std::size_t>(next[static_cast<std::size_t>(number(i))]++)] = i;
                }
            }
        }
        for (std::int64_t c = 0; c < columns; ++c) {
            if (io.stop.stop_requested()) throw cancelled("stopped on request");
            double* const v = line.values<double>().data();
            const auto made = results.values<double>();
            if (n > 0) widen(elements.bytes().data() + c * n * dtype_.size(), n, v);
            if (groups_ == nullptr) {
                made[static_cast<std::size_t>(c)] = result(v, n);
                continue;
            }
            double* const some = group.values<double>().data();
            for (std::int64_t g = 0; g < groups.count; ++g) {
                const std::int64_t first = begins[static_cast<std::size_t>(g)];
                const std::int64_t count = begins[static_cast<std::size_t>(g) + 1] - first;
                for (std::int64_t i = 0; i < count; ++i) some[i] = v[places[static_cast<std::size_t>(first + i)]];
                made[static_cast<std::size_t>(g * columns + c)] = result(some, count);
            }
        }
        write(results, whole, out, groups);
    }

    /// Elements of the dtype of the results, of which there are several groups, the groups first.
    void write(const NDArray& results, const Region& whole, const MutableArrayView& out, const Groups& groups) const {
        Shape shape = whole.extent;
        for (const std::int64_t d : axes_) shape[static_cast<int>(d)] = 1;
        NDArray made(info_.dtype, {results.count()});
        (void)cast_packed(results.dtype(), results.bytes().data(), info_.dtype, made.bytes().data(), made.count(),
                          Cast::unsafe);
        const std::int64_t columns = element_count(shape);
        if (of_nothing_ && groups_ == nullptr && element_count(reduced_shape()) == 0) {
            std::fill_n(made.bytes().data(), made.count(), std::byte{*of_nothing_ ? std::uint8_t{1} : std::uint8_t{0}});
        }
        for (std::int64_t g = 0; g < groups.count; ++g) {
            std::byte* const part = made.bytes().data() + g * columns * info_.dtype.size();
            if (groups_ != nullptr && !holds_any(groups.first + g)) set_empty(part, columns);
            MutableArrayView to = out;
            if (groups_ != nullptr) {
                Region place = Region::whole(out.shape);
                place.start[groups_->axis] = g;
                place.extent[groups_->axis] = 1;
                to = out.part(place);
            }
            copy_elements(ArrayView(part, info_.dtype, shape, contiguous_strides(shape, info_.dtype.size())), to);
        }
    }
    [[nodiscard]] bool holds_any(std::int64_t group) const {
        return std::ranges::find(groups_->of, static_cast<std::int32_t>(group)) != groups_->of.end();
    }
    /// NaN, or 0 in other dtypes.
    void set_empty(std::byte* out, std::int64_t n) const {
        const bool real = info_.dtype.kind() == Kind::real || info_.dtype.kind() == Kind::bfloat16;
        const double value = real ? std::numeric_limits<double>::quiet_NaN() : 0;
        const DType number = real ? info_.dtype : DType::of<std::int8_t>();
        if (!real) {
            std::fill_n(out, n * info_.dtype.size(), std::byte{0});
            if (of_nothing_ && *of_nothing_) std::fill_n(out, n, std::byte{1});
            return;
        }
        for (std::int64_t i = 0; i < n; ++i) {
            (void)cast_packed(DType::of<double>(), reinterpret_cast<const std::byte*>(&value), number,
                              out + i * info_.dtype.size(), 1, Cast::unsafe);
        }
    }

    static constexpr std::int64_t few_numbers = 1024;

    std::unique_ptr<ArraySource> array_;
    ArrayInfo from_;
    ReduceOptions options_;
    const Grouping* groups_;
    std::optional<bool> of_nothing_;
    DType dtype_;  ///< the source's, in host order
    ArrayInfo info_;
    Dims axes_;  ///< reduced axes, ascending
    Dims kept_;
    std::string name_;
};

}  // namespace

namespace {

std::optional<double> percent_in(std::string_view word) {
    if (!word.starts_with('p')) return std::nullopt;
    double percent = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data() + 1, end, percent);
    const bool fits = error == std::errc() && stop == end && percent >= 0 && percent <= 100;
    return fits ? std::optional(percent) : std::nullopt;
}

/// Whether elements are not zero, as booleans; NaN is not.
std::unique_ptr<ArraySource> truth_source(std::unique_ptr<ArraySource> array, Reduction with, bool skip_nan) {
    const bool has_nan = !is_time(array->info().dtype) && array->info().dtype.kind() != Kind::boolean && skip_nan;
    const char* expression = "a != 0";
    if (array->info().dtype.kind() == Kind::boolean) return array;
    if (has_nan) expression = with == Reduction::any ? "(a != 0) & ~isnan(a)" : "(a != 0) | isnan(a)";
    return calc_source(expression, {{"a", std::shared_ptr<const ArraySource>(std::move(array))}});
}

}  // namespace

Reduction parse_reduction(std::string_view word) {
    if (percent_in(word)) return Reduction::percentile;
    for (const Named& one : reduction_names) {
        if (one.name == word && one.reduction != Reduction::percentile) return one.reduction;
    }
    throw invalid_argument(
        "expected min, max, sum, mean, std, var, count, argmin, argmax, any, all, median or a percentile such as p95 "
        "or "
        "p2.5, found '{}'",
        word);
}

double parse_percent(std::string_view word) {
    return percent_in(word).value_or(50);
}

std::string_view reduction_name(Reduction reduction) {
    return std::ranges::find(reduction_names, reduction, &Named::reduction)->name;
}

DType reduced_dtype(const DType& dtype, Reduction with) {
    const bool complex = dtype.kind() == Kind::complex;
    const bool truth = with == Reduction::any || with == Reduction::all;
    const bool for_complex = truth || with == Reduction::sum || with == Reduction::mean || with == Reduction::count;
    const bool known = (is_number(dtype) && (!complex || for_complex)) ||
                       (is_time(dtype) && (orders(with) || with == Reduction::count));
    if (!known) {
        throw unsupported("there is no {} of elements of {}", reduction_name(with), dtype.to_string());
    }
    if (with == Reduction::any || with == Reduction::all) return DType::of<bool>();
    const bool integer = dtype.kind() == Kind::boolean || dtype.kind() == Kind::integer;
    switch (with) {
        case Reduction::min:
        case Reduction::max:
            return dtype;
        case Reduction::count:
        case Reduction::argmin:
        case Reduction::argmax:
            return DType::of<std::int64_t>();
        case Reduction::sum:
            if (integer) return DType::of<std::int64_t>();
            if (dtype.kind() == Kind::unsigned_integer) return DType::of<std::uint64_t>();
            break;
        default:
            if (integer || dtype.kind() == Kind::unsigned_integer) return DType::of<double>();
            break;
    }
    return dtype.kind() == Kind::bfloat16 ? DType::of<float>() : dtype;
}

std::unique_ptr<ArraySource> reduce_source(std::unique_ptr<ArraySource> array, const ReduceOptions& options) {
    if (!(options.percent >= 0 && options.percent <= 100)) {
        throw invalid_argument("a percentile is that of 0 to 100 percent, found {}", options.percent);
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
