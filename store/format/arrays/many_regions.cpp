// Many regions at once: Array::read_many and write_many. Each unit (a chunk, or in a shard an inner chunk) is processed
// once, whatever the order of the regions; a shard is replaced once.
#include "many_regions.h"

#include <fmt/format.h>

#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/shard.h>

#include <algorithm>
#include <map>
#include <utility>

#include "chunk_changes.h"
#include "element_mask.h"
#include "marked_chunks.h"
#include "picked_part.h"
#include "region_io.h"
#include "shard_io.h"

namespace tessera {

namespace {

/// A pair of a region and a unit that it touches.
struct Touch {
    std::int64_t unit;
    std::size_t part;
};

/// All touches, sorted by unit and then by region, and the start of each unit's touches.
struct Touches {
    ChunkGrid units;
    std::vector<Touch> all;
    std::vector<std::size_t> begin;  ///< one more entry than units

    [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(begin.size()) - 1; }
    [[nodiscard]] std::span<const Touch> of(std::int64_t n) const {
        const auto i = static_cast<std::size_t>(n);
        return std::span(all).subspan(begin[i], begin[i + 1] - begin[i]);
    }
    [[nodiscard]] Index unit(std::int64_t n) const { return index_in(Region::whole(units.grid()), of(n).front().unit); }
};

template <class Part, class View>
Touches touches_of(const ArrayState& array, const LoadedArray& loaded, std::span<const Part> parts,
                   View Part::*elements) {
    Touches touches{unit_grid(loaded), {}, {}};
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Region& region = parts[i].region;
        const View& v = parts[i].*elements;
        in_context([&] { return fmt::format("{}: part {} of {}", array.name, i, parts.size()); },
                   [&] {
                       require_inside(region, loaded.grid.shape());
                       if (!(v.shape == region.extent) || !v.dtype.equal_but_order(loaded.metadata.dtype)) {
                           throw invalid_argument(
                               "the elements given are {} of shape {}, the region has shape {} and the array {}",
                               v.dtype.to_string(), v.shape.to_string(), region.extent.to_string(),
                               loaded.metadata.dtype.to_string());
                       }
                   });
        if (region.empty()) continue;
        const Region overlapped = touches.units.overlapping(region);
        for (std::int64_t n = 0; n < overlapped.count(); ++n) {
            touches.all.push_back({touches.units.linear(index_in(overlapped, n)), i});
        }
    }
    std::ranges::stable_sort(touches.all, {}, &Touch::unit);
    for (std::size_t i = 0; i < touches.all.size(); ++i) {
        if (i == 0 || touches.all[i].unit != touches.all[i - 1].unit) touches.begin.push_back(i);
    }
    touches.begin.push_back(touches.all.size());
    return touches;
}

/// The intersection of a region and a unit: within the region, and within the unit.
struct Common {
    Region in_part;
    Region in_unit;
};

Common common_of(const Region& part, const Region& unit) {
    const Region both = intersection(part, unit);
    Common common{both, both};
    for (int d = 0; d < both.rank(); ++d) {
        common.in_part.start[d] -= part.start[d];
        common.in_unit.start[d] -= unit.start[d];
    }
    return common;
}

/// Copies the parts of one unit into `elements`, and marks these elements in `dirty_mask`.
void overlay(const Touches& touches, std::int64_t n, std::span<const RegionWrite> parts,
             const MutableArrayView& elements, ElementMask& dirty_mask) {
    const Region box = touches.units.chunk_region(touches.unit(n));
    for (const Touch& touch : touches.of(n)) {
        const Common common = common_of(parts[touch.part].region, box);
        copy_elements(parts[touch.part].in.part(common.in_part), elements.part(common.in_unit));
        dirty_mask.mark(common.in_unit);
    }
}

Region moved(const Region& region, const Index& by) {
    Region there = region;
    for (int d = 0; d < there.rank(); ++d) there.start[d] += by[d];
    return there;
}

/// Copies from a unit into all parts that touch it.
void distribute(const Touches& touches, std::int64_t n, std::span<const RegionRead> parts, const ArrayView& unit) {
    const Region box = touches.units.chunk_region(touches.unit(n));
    for (const Touch& touch : touches.of(n)) {
        const Common common = common_of(parts[touch.part].region, box);
        copy_elements(unit.part(common.in_unit), parts[touch.part].out.part(common.in_part));
    }
}

/// Reads what the parts need of a unit.
void read_touched(const ArrayState& array, const LoadedArray& loaded, const Touches& touches, std::int64_t n,
                  std::span<const RegionRead> parts, const ReadUnit& read) {
    const Region box = touches.units.chunk_region(touches.unit(n));
    const auto unit_touches = touches.of(n);
    ScratchPool::Loan scratch(array.scratch);
    if (unit_touches.size() == 1) {  // decode only the needed part
        const RegionRead& part = parts[unit_touches.front().part];
        const Common common = common_of(part.region, box);
        read(common.in_unit, part.out.part(common.in_part), *scratch);
        return;
    }
    NDArray& unit = scratch->unit;
    const Shape shape = touches.units.chunk_shape(touches.unit(n));
    if (!(unit.dtype() == loaded.metadata.dtype) || !(unit.shape() == shape) || unit.dtype().is_variable())
        unit = NDArray(loaded.metadata.dtype, shape);
    const ShardCodec* const shard = loaded.pipeline.shard();
    const MutableArrayView all = laid_out_as(shard == nullptr ? loaded.pipeline : shard->inner(), unit.view());
    const Region inside = Region::whole(box.extent);
    read(inside, all.part(inside), *scratch);
    distribute(touches, n, parts, all);
}

/// The same for a chunk, several parts of which are needed.
void read_touched_chunk(const ArrayState& array, const LoadedArray& loaded, const Touches& touches, std::int64_t n,
                        std::span<const RegionRead> parts) {
    const Index index = touches.unit(n);
    const std::string key = array.chunk_key(loaded, index);
    in_context([&] { return where(array, index, key); },
               [&] {
                   ScratchPool::Loan scratch(array.scratch);
                   if (const auto chunk = stored_chunk(array, *loaded.of(index), key, *scratch)) {
                       distribute(touches, n, parts, *chunk);
                       return;
                   }
                   const Region box = touches.units.chunk_region(index);
                   for (const Touch& touch : touches.of(n)) {
                       const Common common = common_of(parts[touch.part].region, box);
                       read_absent(array, loaded, index, parts[touch.part].out.part(common.in_part));
                   }
               });
}

/// Calls each(index, its units, options for the work within, …) for every chunk or shard. run(count, options, job)
/// calls job(i, …) in parallel.
template <class Run, class Each>
void for_each_key(const LoadedArray& loaded, const Touches& touches, const IoOptions& io, const Run& run,
                  const Each& each) {
    std::map<std::int64_t, std::vector<std::int64_t>> stored;
    for (std::int64_t n = 0; n < touches.count(); ++n) {
        const Region box = touches.units.chunk_region(touches.unit(n));
        stored[loaded.grid.linear(loaded.grid.overlapping(box).start)].push_back(n);
    }
    const std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>> jobs(stored.begin(), stored.end());
    const SharedThreads threads = share_threads(loaded, std::ssize(jobs), io);
    run(std::ssize(jobs), threads.outer, [&](std::int64_t job, auto&... output) {
        const auto& [chunk, units] = jobs[static_cast<std::size_t>(job)];
        each(index_in(Region::whole(loaded.grid.grid()), chunk), units, threads.within, output...);
    });
}

}  // namespace

void read_many(const ArrayState& array, const LoadedArray& loaded, std::span<const RegionRead> parts,
               const IoOptions& io) {
    const Touches touches = touches_of(array, loaded, parts, &RegionRead::out);
    if (loaded.pipeline.shard() == nullptr) {
        parallel_in_memory(touches.count(), io, [&](std::int64_t n) {
            if (touches.of(n).size() > 1 && !loaded.metadata.dtype.is_variable()) {
                read_touched_chunk(array, loaded, touches, n, parts);
                return;
            }
            const Region box = touches.units.chunk_region(touches.unit(n));
            read_touched(array, loaded, touches, n, parts,
                         [&](const Region& region, const MutableArrayView& out, WorkerScratch&) {
                             read_region(array, loaded, moved(region, box.start), out, {.threads = 1});
                         });
        });
        return;
    }
    for_each_key(loaded, touches, io, parallel_in_memory,
                 [&](const Index& shard, const std::vector<std::int64_t>& units, const IoOptions& within) {
                     const auto own = loaded.of(shard);
                     const ChunkGrid& inner = own->pipeline.shard()->grid();
                     const Index first = first_unit(loaded, shard);
                     std::vector<std::int64_t> numbers;
                     for (const std::int64_t n : units) {
                         Index index = touches.unit(n);
                         for (int d = 0; d < index.rank(); ++d) index[d] -= first[d];
                         numbers.push_back(inner.linear(index));
                     }
                     read_units(array, loaded, shard, numbers, within,
                                [&](std::size_t i, const ReadUnit& read, const ByteSource*) {
                                    read_touched(array, loaded, touches, units[i], parts, read);
                                });
                 });
}

void write_many(const ArrayState& array, const LoadedArray& loaded, std::span<const RegionWrite> parts,
                const IoOptions& io) {
    const Touches touches = touches_of(array, loaded, parts, &RegionWrite::in);
    if (loaded.metadata.keys.separator == "/") {  // else all share one folder: the first write makes this check
        for (const RegionWrite& part : parts) require_direct(array, loaded, part.region);
    }
    const auto run = [&](std::int64_t count, const IoOptions& outer, const auto& job) {
        change_chunks(array, loaded, count, outer, job);
    };
    for_each_key(
        loaded, touches, io, run,
        [&](const Index& index, const std::vector<std::int64_t>& units, const IoOptions& within, ChunkOutput& output) {
            std::vector<std::pair<NDArray, ElementMask>> memory;
            memory.reserve(units.size());
            std::vector<MarkedChunk> marked;
            const auto own = loaded.of(index);
            for (const std::int64_t n : units) {
                auto& [elements, dirty_mask] = memory.emplace_back(NDArray(loaded.metadata.dtype, unit_shape(*own)),
                                                                   ElementMask(unit_shape(*own)));
                overlay(touches, n, parts, elements, dirty_mask);
                marked.push_back({touches.unit(n), elements.view(), &dirty_mask});
            }
            output.begin(index, array.chunk_key(loaded, index), true);
            write_marked(array, loaded, index, marked, output, within);
        });
}

}  // namespace tessera
