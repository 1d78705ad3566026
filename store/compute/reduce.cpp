#include <tessera/reduce.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include <tessera/cast.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
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
constexpr std::array<Named, 10> reduction_names{{{"min", Reduction::min},
                                                 {"max", Reduction::max},
                                                 {"sum", Reduction::sum},
                                                 {"mean", Reduction::mean},
                                                 {"std", Reduction::deviation},
                                                 {"var", Reduction::variance},
                                                 {"count", Reduction::count},
                                                 {"argmin", Reduction::argmin},
                                                 {"argmax", Reduction::argmax},
                                                 {"median", Reduction::median}}};

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

/// The median of doubles. Reorders them.
double median_of(double* v, std::int64_t n) {
    if (n == 0) return std::numeric_limits<double>::quiet_NaN();
    double* middle = v + n / 2;
    std::nth_element(v, middle, v + n);
    if (n % 2 != 0) return *middle;
    const double below = *std::max_element(v, middle);
    return below == *middle ? below : (below + *middle) / 2;
}

class ReduceSource final : public ArraySource {
public:
    ReduceSource(std::unique_ptr<ArraySource> array, const ReduceOptions& options)
        : array_(std::move(array)), from_(array_->info()), options_(options), dtype_(native_dtype(from_.dtype)) {
        info_.dtype = native_dtype(reduced_dtype(from_.dtype, options.with));
        find_axes();
        const int rank = from_.shape.rank();
        const bool chunked = rank > 0 && from_.chunks.rank() == rank;
        for (int d = 0; d < rank; ++d) {
            if (!goes(d)) kept_.push_back(d);
            if (goes(d) && !options_.keep_dimensions) continue;
            info_.shape.push_back(goes(d) ? 1 : from_.shape[d]);
            if (chunked) info_.chunks.push_back(goes(d) ? 1 : from_.chunks[d]);
        }
        info_.access = from_.access;
        info_.working = least_memory();
        if (orders(options_.with) && element_count(reduced_shape()) == 0 && element_count(info_.shape) > 0) {
            throw invalid_argument("{}: there is no {} of no elements", array_->name(), reduction_name(options_.with));
        }
        name_ = array_->name();
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] Value attribute_values() const override { return array_->attribute_values(); }

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
                full.shape.push_back(1);
                full.strides.push_back(0);
                if (options_.keep_dimensions) ++at;
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

    /// The memory for a part of the result that divide() does not divide.
    [[nodiscard]] std::int64_t least_memory() const {
        const bool median = options_.with == Reduction::median;
        std::int64_t columns = 1;
        for (const std::int64_t k : kept_) {
            const int d = static_cast<int>(k);
            if (!median) columns *= std::max<std::int64_t>(1, std::min(chunk_length(d), from_.shape[d]));
        }
        constexpr std::int64_t results = 16;
        const std::int64_t slab = checked_multiply(element_count(median ? reduced_shape() : least_step()),
                                                   median ? dtype_.size() + 8 : dtype_.size(), "memory");
        const std::int64_t each = checked_add(slab, accumulator_bytes + 8 + results, "memory");
        return checked_add(checked_multiply(columns, each, "memory"), reading_memory(from_), "memory");
    }

    /// Halves a part of the result until its computation fits into memory. Only for the median are chunks divided,
    /// because it needs all elements of a result at once.
    void divide(const Region& whole, const MutableArrayView& out, const IoOptions& io) const {
        if (io.stop.stop_requested()) throw cancelled("stopped on request");
        const bool median = options_.with == Reduction::median;
        const std::int64_t columns = element_count(lengths(whole.extent, kept_));
        const std::int64_t each = median ? element_count(reduced_shape()) * dtype_.size()
                                         : accumulator_bytes + 8 + element_count(least_step()) * dtype_.size();
        if (columns > 1 && columns > options_.memory / std::max<std::int64_t>(1, each)) {
            for (const bool cut_chunks : {false, true}) {
                if (cut_chunks && !median && from_.chunks.rank() == from_.shape.rank()) break;
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
        median ? read_medians(whole, out, io) : accumulate(whole, out, io);
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
                  const IoOptions& io) const {
        constexpr std::int64_t few = 4096;
        const Shape all = reduced_shape();
        const std::int64_t count = box.count();
        parallel_for(ceil_div(columns, few), io, [&](std::int64_t part) {
            const std::int64_t first = part * few;
            const std::int64_t n = std::min(few, columns - first);
            for (std::int64_t row = 0; row < count; ++row) {
                sums.add(rows + (row * columns + first) * dtype_.size(), first, n, place_of(all, box, row), 0);
            }
        });
    }

    void accumulate(const Region& whole, const MutableArrayView& out, const IoOptions& io) const {
        const std::int64_t columns = element_count(lengths(whole.extent, kept_));
        const auto sums = Accumulator::make(dtype_, options_.with, options_.skip_nan, columns);
        const Shape all = reduced_shape();
        const Shape step = slab_step(columns);
        // If the last axis is reduced, a column's elements are contiguous, and are distributed over several lanes.
        const bool inner = !axes_.empty() && axes_.back() == from_.shape.rank() - 1;
        constexpr std::int64_t lanes = 256;
        const auto turns = inner ? Accumulator::make(dtype_, options_.with, options_.skip_nan, lanes) : nullptr;
        NDArray elements(dtype_, Shape{0});
        const auto add_slab = [&](const Region& box) {
            if (io.stop.stop_requested()) throw cancelled("stopped on request");
            const Region slab = slab_of(whole, box);
            read_ordered(elements, slab, inner ? kept_ : axes_, inner ? axes_ : kept_, io);
            const std::byte* p = elements.bytes().data();
            const std::int64_t count = box.count();
            if (!inner) {
                add_rows(*sums, p, columns, box, io);
                return;
            }
            const std::int64_t run = box.extent.back();
            const std::int64_t used = std::min(run, lanes);
            for (std::int64_t c = 0; c < columns; ++c) {
                turns->reset();
                for (std::int64_t n = 0; n < count; n += run) {
                    const std::int64_t place = place_of(all, box, n);
                    for (std::int64_t i = 0; i < run; i += lanes) {
                        turns->add(p, 0, std::min(lanes, run - i), place + i, 1);
                        p += std::min(lanes, run - i) * dtype_.size();
                    }
                }
                for (std::int64_t lane = 0; lane < used; ++lane) sums->merge(c, *turns, lane);
            }
        };
        if (element_count(all) > 0) for_each_step(all, step, add_slab);
        NDArray results(sums->result_dtype(), {columns});
        sums->results(results.bytes().data());
        write(results, whole, out);
    }

    void read_medians(const Region& whole, const MutableArrayView& out, const IoOptions& io) const {
        const std::int64_t n = element_count(reduced_shape());
        const std::int64_t columns = element_count(lengths(whole.extent, kept_));
        NDArray elements(dtype_, Shape{0});
        read_ordered(elements, whole, kept_, axes_, io);
        const ToDoubles widen = to_doubles(dtype_);
        NDArray line(DType::of<double>(), {n});
        NDArray results(DType::of<double>(), {columns});
        for (std::int64_t c = 0; c < columns; ++c) {
            if (io.stop.stop_requested()) throw cancelled("stopped on request");
            const auto v = line.values<double>();
            widen(elements.bytes().data() + c * n * dtype_.size(), n, v.data());
            // Not std::ranges::partition, of which Clang 14 cannot compile the result.
            const auto numbers_end = std::partition(v.begin(), v.end(), [](double x) { return x == x; });
            const std::int64_t missing = v.end() - numbers_end;
            results.values<double>()[static_cast<std::size_t>(c)] = missing > 0 && !options_.skip_nan
                                                                        ? std::numeric_limits<double>::quiet_NaN()
                                                                        : median_of(v.data(), n - missing);
        }
        write(results, whole, out);
    }

    void write(const NDArray& results, const Region& whole, const MutableArrayView& out) const {
        Shape shape = whole.extent;
        for (const std::int64_t d : axes_) shape[static_cast<int>(d)] = 1;
        NDArray made(info_.dtype, shape);
        (void)cast_packed(results.dtype(), results.bytes().data(), info_.dtype, made.bytes().data(), made.count(),
                          Cast::unsafe);
        copy_elements(made.view(), out);
    }

    std::unique_ptr<ArraySource> array_;
    ArrayInfo from_;
    ReduceOptions options_;
    DType dtype_;  ///< the source's, in host order
    ArrayInfo info_;
    Dims axes_;  ///< reduced axes, ascending
    Dims kept_;
    std::string name_;
};

}  // namespace

Reduction parse_reduction(std::string_view word) {
    for (const Named& one : reduction_names) {
        if (one.name == word) return one.reduction;
    }
    throw invalid_argument("expected min, max, sum, mean, std, var, count, argmin, argmax or median, found '{}'", word);
}

std::string_view reduction_name(Reduction reduction) {
    return std::ranges::find(reduction_names, reduction, &Named::reduction)->name;
}

DType reduced_dtype(const DType& dtype, Reduction with) {
    const bool complex = dtype.kind() == Kind::complex;
    const bool for_complex = with == Reduction::sum || with == Reduction::mean || with == Reduction::count;
    const bool known = (is_number(dtype) && (!complex || for_complex)) ||
                       (is_time(dtype) && (orders(with) || with == Reduction::count));
    if (!known) {
        throw unsupported("there is no {} of elements of {}", reduction_name(with), dtype.to_string());
    }
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
    return std::make_unique<ReduceSource>(std::move(array), options);
}

}  // namespace tessera
