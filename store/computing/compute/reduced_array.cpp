#include "reduced_array.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>
#include <tessera/slices.h>

namespace tessera {

namespace {

/// The axes that a reduction takes away, ascending.
Dims axes_of(const ArraySource& array, const ReduceOptions& options) {
    if (options.groups != nullptr) return {options.groups->axis};
    const int rank = array.info().shape.rank();
    std::vector<int> axes;
    for (const int given : options.axes) {
        const int axis = given < 0 ? given + rank : given;
        if (axis < 0 || axis >= rank) {
            throw invalid_argument("{}: there is no axis {} of {}", array.name(), given, rank);
        }
        axes.push_back(axis);
    }
    if (options.axes.empty()) {
        for (int d = 0; d < rank; ++d) axes.push_back(d);
    }
    std::ranges::sort(axes);
    if (const auto twice = std::ranges::adjacent_find(axes); twice != axes.end()) {
        throw invalid_argument("{}: axis {} is given twice", array.name(), *twice);
    }
    Dims ascending;
    for (const int axis : axes) ascending.push_back(axis);
    return ascending;
}

bool holds_any(const Grouping& grouping, std::int64_t group) {
    return std::ranges::find(grouping.of, static_cast<std::int32_t>(group)) != grouping.of.end();
}

/// NaN, or 0 in other dtypes.
void set_no_elements(const DType& dtype, std::optional<bool> of_nothing, std::byte* out, std::int64_t n) {
    const bool real = dtype.kind() == Kind::real || dtype.kind() == Kind::bfloat16;
    const double value = real ? std::numeric_limits<double>::quiet_NaN() : 0;
    const DType number = real ? dtype : DType::of<std::int8_t>();
    if (!real) {
        std::fill_n(out, n * dtype.size(), std::byte{0});
        if (of_nothing && *of_nothing) std::fill_n(out, n, std::byte{1});
        return;
    }
    for (std::int64_t i = 0; i < n; ++i) {
        (void)cast_packed(DType::of<double>(), reinterpret_cast<const std::byte*>(&value), number,
                          out + i * dtype.size(), 1, Cast::unsafe);
    }
}

}  // namespace

bool sums_exactly(const ArrayInfo& from, const ReduceOptions& options, const Dims& kept) {
    const int rank = from.shape.rank();
    const bool sums = options.with == Reduction::sum || options.with == Reduction::mean;
    if (!sums || from.dtype.kind() == Kind::complex || options.groups != nullptr || options.weights != nullptr) {
        return false;
    }
    // The last axis is reduced, so that the elements of a result are contiguous.
    if (rank == 0 || (!kept.empty() && (kept.back() == rank - 1 || from.chunks.rank() != rank))) return false;
    constexpr std::int64_t length = 1024;  // of which the state of a sum is a small part
    std::int64_t reduced = element_count(from.shape);
    for (const std::int64_t k : kept) {
        const int d = static_cast<int>(k);
        if (from.chunks[d] != 1 && from.shape[d] != 1) return false;
        reduced /= std::max<std::int64_t>(1, from.shape[d]);
    }
    return kept.empty() || reduced >= length;
}

Shape lengths_along(const Shape& of, const Dims& dimensions) {
    Shape some;
    for (const std::int64_t d : dimensions) some.push_back(of[static_cast<int>(d)]);
    return some;
}

ReducedArray::ReducedArray(std::unique_ptr<ArraySource> of, const ReduceOptions& how, std::optional<bool> nothing)
    : array(std::move(of)),
      from(array->info()),
      options(how),
      grouping(options.groups.get()),
      of_nothing(nothing),
      dtype(native_dtype(from.dtype)),
      // Products with weights are no integers.
      result_dtype(native_dtype(reduced_dtype(from.dtype, how.weights ? Reduction::mean : how.with))),
      axes(axes_of(*array, options)),
      exact(false) {
    if (options.with == Reduction::median) options.percent = 50;
    for (int d = 0; d < from.shape.rank(); ++d) {
        if (!goes(d)) kept.push_back(d);
    }
    exact = sums_exactly(from, options, kept);
}

GroupRange ReducedArray::groups_of(const Region& whole) const {
    const Shape all = reduced_shape();
    GroupRange groups{.box = Region::whole(all)};
    if (grouping == nullptr) return groups;
    groups.first = whole.start[grouping->axis];
    groups.count = whole.extent[grouping->axis];
    const auto inside = [&](std::int32_t g) { return g >= groups.first && g < groups.first + groups.count; };
    const auto first = std::ranges::find_if(grouping->of, inside);
    const auto last = std::find_if(grouping->of.rbegin(), grouping->of.rend(), inside);
    const std::int64_t start = first == grouping->of.end() ? 0 : first - grouping->of.begin();
    const std::int64_t end = first == grouping->of.end() ? 0 : grouping->of.rend() - last;
    groups.box = Region({start}, {end - start});
    return groups;
}

bool ReducedArray::goes(int d) const {
    return std::ranges::count(axes, d) > 0;
}

Shape ReducedArray::reduced_shape() const {
    return lengths_along(from.shape, axes);
}

std::int64_t ReducedArray::chunk_length(int d) const {
    return from.chunks.rank() == from.shape.rank() && !from.chunks.empty() ? from.chunks[d] : 1;
}

Shape ReducedArray::least_step() const {
    Shape step;
    for (const std::int64_t d : axes) {
        const int axis = static_cast<int>(d);
        step.push_back(std::max<std::int64_t>(1, std::min(chunk_length(axis), from.shape[axis])));
    }
    return step;
}

std::int64_t ReducedArray::line_bytes() const {
    return checked_multiply(element_count(reduced_shape()), dtype.size() + 8, "memory");
}

namespace {

/// Dimensions in another order: their lengths there, and the place of each.
struct Ordered {
    Shape lengths;
    Dims place_of;
    Ordered(const Shape& extent, const Dims& slow, const Dims& fast) : place_of(Dims::filled(extent.rank(), 0)) {
        for (const Dims* some : {&slow, &fast}) {
            for (const std::int64_t d : *some) {
                place_of[static_cast<int>(d)] = lengths.rank();
                lengths.push_back(extent[static_cast<int>(d)]);
            }
        }
    }
};

}  // namespace

void ReducedArray::read_ordered(const ArraySource& source, const DType& native, NDArray& memory, const Region& region,
                                const Dims& slow, const Dims& fast, const IoOptions& io) {
    const Ordered there(region.extent, slow, fast);
    if (memory.shape() != there.lengths) memory = NDArray(native, there.lengths);
    source.read_into(region, memory.view().transposed(there.place_of), io);
}

void ReducedArray::write_ordered(NDArray results, const MutableArrayView& out, const Dims& slow, const Dims& fast) {
    const Ordered there(out.shape, slow, fast);
    const NDArray made = std::move(results).reshaped(there.lengths);
    copy_elements(ArrayView(made.view()).transposed(there.place_of), out);
}

Shape ReducedArray::slab_step(std::int64_t columns) const {
    Shape step = least_step();
    const Shape all = reduced_shape();
    const std::int64_t most = std::max<std::int64_t>(1, options.memory / 2 / (columns * element_bytes()));
    for (int k = step.rank() - 1; k >= 0; --k) {
        const std::int64_t others = element_count(step) / step[k];
        const std::int64_t fits = most / std::max<std::int64_t>(1, others) / step[k] * step[k];
        step[k] = std::max(step[k], std::min(fits, std::max<std::int64_t>(1, all[k])));
        if (step[k] < all[k]) break;
    }
    return step;
}

Region ReducedArray::slab_of(const Region& whole, const Region& box) const {
    Region slab = whole;
    for (int k = 0; k < axes.rank(); ++k) {
        slab.start[static_cast<int>(axes[k])] = box.start[k];
        slab.extent[static_cast<int>(axes[k])] = box.extent[k];
    }
    return slab;
}

void ReducedArray::write(const NDArray& results, const Region& whole, const MutableArrayView& out,
                         const GroupRange& groups) const {
    Shape shape = whole.extent;
    for (const std::int64_t d : axes) shape[static_cast<int>(d)] = 1;
    NDArray made(result_dtype, {results.count()});
    (void)cast_packed(results.dtype(), results.bytes().data(), result_dtype, made.bytes().data(), made.count(),
                      Cast::unsafe);
    const std::int64_t columns = element_count(shape);
    if (of_nothing && grouping == nullptr && element_count(reduced_shape()) == 0) {
        std::fill_n(made.bytes().data(), made.count(), std::byte{*of_nothing ? std::uint8_t{1} : std::uint8_t{0}});
    }
    for (std::int64_t g = 0; g < groups.count; ++g) {
        std::byte* const part = made.bytes().data() + g * columns * result_dtype.size();
        if (grouping != nullptr && !holds_any(*grouping, groups.first + g))
            set_no_elements(result_dtype, of_nothing, part, columns);
        MutableArrayView to = out;
        if (grouping != nullptr) {
            Region place = Region::whole(out.shape);
            place.start[grouping->axis] = g;
            place.extent[grouping->axis] = 1;
            to = out.part(place);
        }
        copy_elements(ArrayView(part, result_dtype, shape, contiguous_strides(shape, result_dtype.size())), to);
    }
}

}  // namespace tessera
