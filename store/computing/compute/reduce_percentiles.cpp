// Percentiles, whose results need all their elements at once, or several passes over them.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/error.h>
#include <tessera/memory_account.h>
#include <tessera/numbers.h>
#include <tessera/parallel.h>

#include "percentile.h"
#include "reduced_array.h"

namespace tessera {

namespace {

/// Calls each(numbers, their count, column) for the elements of each column of a slab, in pieces, with the columns
/// in several threads.
template <class Each>
void for_columns(const ReducedArray& a, const NDArray& elements, std::int64_t columns, const IoOptions& io,
                 const Each& each) {
    const std::int64_t n = elements.count() / columns;
    const ToDoubles widen = to_doubles(a.elements().for_doubles());
    parallel_for(columns, io, [&](std::int64_t c) {
        std::array<double, numbers_in_a_pass> numbers;
        for (std::int64_t i = 0; i < n; i += numbers_in_a_pass) {
            const std::int64_t count = std::min(numbers_in_a_pass, n - i);
            widen(elements.bytes().data() + (c * n + i) * a.dtype.size(), count, numbers.data());
            each(numbers.data(), count, c);
        }
    });
}

}  // namespace

void reduce_by_passes(const ReducedArray& a, const Region& whole, const MutableArrayView& out, const IoOptions& io) {
    const std::int64_t columns = element_count(lengths_along(whole.extent, a.kept));
    const MemoryHold held(static_cast<std::uint64_t>(columns * PercentileSearch::bytes));
    std::vector<PercentileSearch> searches(static_cast<std::size_t>(columns));
    std::vector<char> done(searches.size(), 0);
    const Shape step = a.slab_step(columns);
    NDArray elements(a.dtype, Shape{0});
    while (std::ranges::count(done, 0) > 0) {
        for_each_step(a.reduced_shape(), step, [&](const Region& box) {
            if (io.stop.stop_requested()) throw cancelled("stopped on request");
            a.read_ordered(elements, a.slab_of(whole, box), a.kept, a.axes, io);
            for_columns(a, elements, columns, io, [&](const double* v, std::int64_t n, std::int64_t c) {
                const auto at = static_cast<std::size_t>(c);
                if (done[at] == 0) searches[at].add(v, n);
            });
        });
        for (std::size_t c = 0; c < searches.size(); ++c) {
            if (done[c] == 0 && searches[c].end_pass(a.options)) done[c] = 1;
        }
    }
    NDArray results(DType::of<double>(), {columns});
    for (std::size_t c = 0; c < searches.size(); ++c) results.values<double>()[c] = searches[c].result();
    a.write(results, whole, out, {});
}

namespace {

/// The places of each group's elements in a line, so that groups are gathered one after the other.
struct Places {
    std::vector<std::int64_t> begins;  ///< of each group, and the end of the last
    std::vector<std::int64_t> places;

    Places(const ReducedArray& a, const GroupRange& groups, std::int64_t n)
        : begins(static_cast<std::size_t>(groups.count) + 1, 0) {
        const auto* const of = a.grouping->of.data() + groups.box.start[0];
        const auto number = [&](std::int64_t i) { return of[i] - groups.first; };
        const auto inside = [&](std::int64_t g) { return g >= 0 && g < groups.count; };
        for (std::int64_t i = 0; i < n; ++i) {
            if (inside(number(i))) ++begins[static_cast<std::size_t>(number(i)) + 1];
        }
        for (std::size_t g = 1; g < begins.size(); ++g) begins[g] += begins[g - 1];
        places.resize(static_cast<std::size_t>(begins.back()));
        std::vector<std::int64_t> next = begins;
        for (std::int64_t i = 0; i < n; ++i) {
            if (inside(number(i))) places[static_cast<std::size_t>(next[static_cast<std::size_t>(number(i))]++)] = i;
        }
    }

    /// The elements of a group in `some`; returns how many.
    std::int64_t gather(std::int64_t group, const double* line, double* some) const {
        const std::int64_t first = begins[static_cast<std::size_t>(group)];
        const std::int64_t count = begins[static_cast<std::size_t>(group) + 1] - first;
        for (std::int64_t i = 0; i < count; ++i) some[i] = line[places[static_cast<std::size_t>(first + i)]];
        return count;
    }
};

double percentile_in(const ReducedArray& a, double* v, std::int64_t count) {
    // Not std::ranges::partition, of which Clang 14 cannot compile the result.
    double* const numbers_end = std::partition(v, v + count, [](double x) { return x == x; });
    const bool missing = numbers_end != v + count;
    return missing && !a.options.skip_nan ? std::numeric_limits<double>::quiet_NaN()
                                          : percentile_of(v, numbers_end - v, a.options.percent, a.options.with);
}

}  // namespace

void reduce_by_sorting(const ReducedArray& a, const Region& whole, const MutableArrayView& out, const IoOptions& io) {
    const GroupRange groups = a.groups_of(whole);
    const std::int64_t n = groups.box.count();
    const std::int64_t columns = element_count(lengths_along(whole.extent, a.kept));
    NDArray elements(a.dtype, Shape{0});
    if (a.grouping == nullptr || n > 0) a.read_ordered(elements, a.slab_of(whole, groups.box), a.kept, a.axes, io);
    const ToDoubles widen = to_doubles(a.elements().for_doubles());
    NDArray line(DType::of<double>(), {n});
    NDArray group(DType::of<double>(), {a.grouping == nullptr ? 0 : n});
    NDArray results(DType::of<double>(), {columns * groups.count});
    const auto places = a.grouping == nullptr ? std::nullopt : std::optional<Places>(std::in_place, a, groups, n);
    double* const v = line.values<double>().data();
    double* const some = group.values<double>().data();
    const auto made = results.values<double>();
    for (std::int64_t c = 0; c < columns; ++c) {
        if (io.stop.stop_requested()) throw cancelled("stopped on request");
        if (n > 0) widen(elements.bytes().data() + c * n * a.dtype.size(), n, v);
        if (!places) {
            made[static_cast<std::size_t>(c)] = percentile_in(a, v, n);
            continue;
        }
        for (std::int64_t g = 0; g < groups.count; ++g) {
            const std::int64_t count = places->gather(g, v, some);
            made[static_cast<std::size_t>(g * columns + c)] = percentile_in(a, some, count);
        }
    }
    a.write(results, whole, out, groups);
}

}  // namespace tessera
