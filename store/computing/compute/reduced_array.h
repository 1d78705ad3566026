// An array as its reduction sees it, and the two ways to compute a part of the result: `reduce` plans parts, these read
// and compute one. Private to the store module.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/array_io.h>
#include <tessera/ndarray.h>
#include <tessera/reduce.h>
#include <tessera/shape.h>

#include "accumulate.h"

namespace tessera {

/// Whether a reduction chooses an element by its order, so that there is no result of no elements.
[[nodiscard]] inline bool chooses_by_order(Reduction with) {
    return with == Reduction::min || with == Reduction::max || with == Reduction::argmin || with == Reduction::argmax;
}

/// The word of parse_reduction() that a function's name stands for: "mean" of nanmean, "p95" of p95. nullopt for one
/// that is no reduction.
[[nodiscard]] std::optional<std::string> called_reduction(std::string_view name);

[[nodiscard]] Shape lengths_along(const Shape& of, const Dims& dimensions);

/// Calls body(box) for boxes of size `step` (the last ones may be smaller) that cover a shape, in C order.
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

/// Whether sums and means are exact until they are rounded once, so that they do not depend on the order of elements,
/// nor on who added up which of them: those of everything, and long ones of which each chunk belongs to one.
[[nodiscard]] bool sums_exactly(const ArrayInfo& from, const ReduceOptions& options, const Dims& kept);

/// The groups of a part of the result, and the box along the reduced axes of the elements that belong to them.
struct GroupRange {
    std::int64_t first = 0, count = 1;
    Region box;
};

/// An array, with the axes that go and those that stay. A part of its result is named by `whole`: along the axes that
/// stay, indices of the array; along the reduced axes, all of them, or groups.
struct ReducedArray {
    /// `nothing`: the result of no elements, where that is no error. Throws as reduce_source.
    ReducedArray(std::unique_ptr<ArraySource> of, const ReduceOptions& how, std::optional<bool> nothing);

    std::unique_ptr<ArraySource> array;
    ArrayInfo from;  ///< the array's
    ReduceOptions options;
    const Grouping* grouping;  ///< that of the options; null: none
    std::optional<bool> of_nothing;
    DType dtype;         ///< the array's, in host order
    DType result_dtype;  ///< the same of the result
    Dims axes;           ///< reduced axes, ascending
    Dims kept;
    bool exact;  ///< sums_exactly()

    [[nodiscard]] Elements elements() const {
        return {.dtype = dtype, .skip = options.skip_nan, .marks = from.marks_missing};
    }
    /// Accumulators, as many as all these columns need.
    [[nodiscard]] std::unique_ptr<Accumulator> accumulators(std::int64_t columns) const {
        return exact ? Accumulator::make_exact(elements(), options.with, columns)
                     : Accumulator::make(elements(), options.with, columns);
    }
    /// Bytes of a result's accumulator.
    [[nodiscard]] std::int64_t state_bytes() const { return exact ? exact_accumulator_bytes : accumulator_bytes; }
    /// Bytes of an element and its weight in memory.
    [[nodiscard]] std::int64_t element_bytes() const { return dtype.size() + (options.weights ? 8 : 0); }
    [[nodiscard]] bool goes(int d) const;
    [[nodiscard]] Shape reduced_shape() const;
    [[nodiscard]] std::int64_t chunk_length(int d) const;
    /// The minimum lengths along the reduced axes: a chunk's.
    [[nodiscard]] Shape least_step() const;
    /// Lengths along the reduced axes such that slabs of `columns` results fit into memory.
    [[nodiscard]] Shape slab_step(std::int64_t columns) const;
    /// The elements of one result, or of one column of groups.
    [[nodiscard]] std::int64_t line_bytes() const;
    [[nodiscard]] GroupRange groups_of(const Region& whole) const;
    /// The elements of a part of the result that lie in a box along the reduced axes.
    [[nodiscard]] Region slab_of(const Region& whole, const Region& box) const;

    /// Reads a region into `memory`, where `slow` axes vary slowest, then `fast` ones. Memory of the right shape is
    /// used again.
    void read_ordered(NDArray& memory, const Region& region, const Dims& slow, const Dims& fast,
                      const IoOptions& io) const {
        read_ordered(*array, dtype, memory, region, slow, fast, io);
    }
    /// The same of another source of the array's rank, as elements of its dtype in host order.
    static void read_ordered(const ArraySource& from, const DType& native, NDArray& memory, const Region& region,
                             const Dims& slow, const Dims& fast, const IoOptions& io);
    /// The reverse, of results that lie one after the other in that order.
    static void write_ordered(NDArray results, const MutableArrayView& out, const Dims& slow, const Dims& fast);
    /// Writes results of any dtype, of which there are several groups, the groups first.
    void write(const NDArray& results, const Region& whole, const MutableArrayView& out,
               const GroupRange& groups) const;
};

// ---- a part of the result, `whole`, into `out`

/// By an accumulator for each result, slab by slab.
void reduce_by_accumulators(const ReducedArray& a, const Region& whole, const MutableArrayView& out,
                            const IoOptions& io);
/// The same of elements with weights.
void reduce_by_weights(const ReducedArray& a, const Region& whole, const MutableArrayView& out, const IoOptions& io);
/// Percentiles of elements that all lie in memory.
void reduce_by_sorting(const ReducedArray& a, const Region& whole, const MutableArrayView& out, const IoOptions& io);
/// Percentiles in several passes over the elements, without groups.
void reduce_by_passes(const ReducedArray& a, const Region& whole, const MutableArrayView& out, const IoOptions& io);
/// How many elements reduce_by_passes converts at a time, in each thread.
inline constexpr std::int64_t numbers_in_a_pass = 1024;

}  // namespace tessera
