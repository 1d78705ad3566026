// Reductions whose results take a few numbers each, added up slab by slab.
#include <algorithm>
#include <memory>
#include <vector>

#include <tessera/error.h>
#include <tessera/parallel.h>

#include "accumulate.h"
#include "reduced_array.h"

namespace tessera {

namespace {

/// The index of a box's n-th element among all reduced elements, both in C order.
std::int64_t place_of(const Shape& all, const Region& box, std::int64_t n) {
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
void add_rows(const ReducedArray& a, Accumulator& sums, const std::byte* rows, std::int64_t columns, const Region& box,
              const GroupRange& groups, const IoOptions& io) {
    constexpr std::int64_t few = 4096;
    const Shape all = a.reduced_shape();
    const std::int64_t count = box.count();
    parallel_for(ceil_div(columns, few), io, [&](std::int64_t part) {
        const std::int64_t first = part * few;
        const std::int64_t n = std::min(few, columns - first);
        for (std::int64_t row = 0; row < count; ++row) {
            std::int64_t group = 0;
            if (a.grouping != nullptr) {
                group = a.grouping->of[static_cast<std::size_t>(box.start[0] + row)] - groups.first;
                if (group < 0 || group >= groups.count) continue;
            }
            sums.add(rows + (row * columns + first) * a.dtype.size(), group * columns + first, n,
                     place_of(all, box, row), 0);
        }
    });
}

/// Adds columns whose elements are contiguous, each distributed over several lanes. Long columns are divided, so
/// that all threads have a part even of a single one.
void add_columns(const ReducedArray& a, Accumulator& sums, const std::byte* elements, std::int64_t columns,
                 const Region& box, const IoOptions& io) {
    const std::int64_t lanes = a.exact ? 1 : 64;
    constexpr std::int64_t enough = 16;      // parts for all threads
    constexpr std::int64_t least = 1 << 15;  // elements that are worth a part
    const Shape all = a.reduced_shape();
    const std::int64_t count = box.count();
    const std::int64_t run = a.exact ? count : box.extent.back();  // where places do not matter, all at once
    const std::int64_t parts = std::clamp<std::int64_t>(enough / columns, 1, ceil_div(count, least));
    const std::int64_t length = ceil_div(count, parts);
    const auto make = [&] { return a.accumulators(lanes); };
    const auto add_part = [&](Accumulator& turns, std::int64_t column, std::int64_t part) {
        const std::int64_t end = std::min(count, (part + 1) * length);
        for (std::int64_t n = part * length, some = 0; n < end; n += some) {
            some = std::min(run - n % run, end - n);
            turns.add_in_turn(elements + (column * count + n) * a.dtype.size(), some, place_of(all, box, n));
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

}  // namespace

void reduce_by_accumulators(const ReducedArray& a, const Region& whole, const MutableArrayView& out,
                            const IoOptions& io) {
    const std::int64_t columns = element_count(lengths_along(whole.extent, a.kept));
    const GroupRange groups = a.groups_of(whole);
    const auto sums = a.accumulators(columns * groups.count);
    const Shape step = a.slab_step(columns);
    // If the last axis is reduced, a column's elements are contiguous.
    const bool inner = a.grouping == nullptr && !a.axes.empty() && a.axes.back() == a.from.shape.rank() - 1;
    NDArray elements(a.dtype, Shape{0});
    const auto add_slab = [&](const Region& box) {
        if (io.stop.stop_requested()) throw cancelled("stopped on request");
        const Region slab = a.slab_of(whole, box);
        a.read_ordered(elements, slab, inner ? a.kept : a.axes, inner ? a.axes : a.kept, io);
        const std::byte* p = elements.bytes().data();
        if (!inner) return add_rows(a, *sums, p, columns, box, groups, io);
        add_columns(a, *sums, p, columns, box, io);
    };
    if (groups.box.count() > 0) {
        for_each_step(groups.box.extent, step, [&](Region box) {
            for (int k = 0; k < box.rank(); ++k) box.start[k] += groups.box.start[k];
            add_slab(box);
        });
    }
    NDArray results(sums->result_dtype(), {columns * groups.count});
    sums->results(results.bytes().data());
    a.write(results, whole, out, groups);
}

}  // namespace tessera
