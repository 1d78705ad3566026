#include "region_io.h"

#include <fmt/format.h>

#include <tessera/copy_elements.h>
#include <tessera/error.h>
#include <tessera/parallel.h>
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "array_access.h"
#include "chunk_changes.h"
#include "chunk_memory.h"
#include "far_parts.h"
#include "picked_part.h"
#include "shard_io.h"

namespace tessera {

namespace {

/// The chunks or shards in which a selection picks elements. Where its step is longer than a chunk, there are chunks
/// between these in which it picks none, maybe far more than it picks elements.
class PickedChunks {
public:
    PickedChunks(const Selection& selection, const ChunkGrid& grid)
        : bounds_(selection.bounds()), grid_(grid), chunks_(grid.overlapping(bounds_)) {
        for (int d = 0; d < bounds_.rank(); ++d) {
            const Selection::Axis& axis = selection.axes()[static_cast<std::size_t>(d)];
            const std::int64_t step = std::abs(axis.step);
            steps_.push_back(axis.count > 1 && step > grid.chunks()[d] ? step : 0);
            if (steps_[d] > 0) chunks_.start[d] = 0, chunks_.extent[d] = axis.count;
        }
    }

    [[nodiscard]] std::int64_t count() const { return chunks_.count(); }
    [[nodiscard]] Index index(std::int64_t n) const {
        Index index = index_in(chunks_, n);
        for (int d = 0; d < index.rank(); ++d) {
            if (steps_[d] > 0) index[d] = grid_.chunk_at(d, bounds_.start[d] + index[d] * steps_[d]);
        }
        return index;
    }

private:
    Region bounds_;
    const ChunkGrid& grid_;
    Region chunks_;  ///< where there is a step: numbers of elements, each in a chunk of its own
    Shape steps_;    ///< 0: each chunk is picked from
};

/// Calls each(the array as of the chunk, its index, picked part, options for the work within, …) for every chunk or
/// shard that the selection touches.
/// run(count, options, job) calls job(i, …) in parallel.
template <class Run, class Each>
void for_each_picked(const ArrayState& array, const LoadedArray& loaded, const Selection& selection,
                     const IoOptions& io, const Run& run, const Each& each) {
    require_inside(array, loaded, selection.bounds());
    if (selection.bounds().empty()) return;
    const PickedChunks chunks(selection, loaded.grid);
    const SharedThreads threads = share_threads(loaded, chunks.count(), io);
    run(chunks.count(), threads.outer, [&](std::int64_t n, auto&... output) {
        const Index index = chunks.index(n);
        const Picked part = picked_from(selection, loaded.grid.chunk_region(index));
        if (!part.in_request.empty()) each(*loaded.of(index), index, part, threads.within, output...);
    });
}

// ---- reading

/// The values that read_selected() will ask for, one with each call.
std::function<bool(ReadWish&)> wishes_of(const ArrayState& array, const LoadedArray& loaded,
                                         const Selection& selection) {
    const bool shards = loaded.pipeline.shard() != nullptr;
    return [&array, &loaded, selection, parts = FarParts(array, loaded), shards,
            chunks = PickedChunks(selection, loaded.grid), n = std::int64_t{0}](ReadWish& wish) mutable {
        while (n < chunks.count()) {
            const Index index = chunks.index(n++);
            const Picked part = picked_from(selection, loaded.grid.chunk_region(index));
            if (part.in_request.empty()) continue;
            wish.key = array.chunk_key(loaded, index);
            const bool all = part.in_request.extent == loaded.grid.chunk_shape(index);
            const auto first = shards || all ? std::nullopt : parts.first(part.in_box);
            wish.whole = !shards && !first;
            wish.first = first.value_or(ByteSource::Extent());
            return true;
        }
        return false;
    };
}

/// Announces the values that read_selected() will ask for; null for stores of this machine.
std::unique_ptr<ReadAhead> announce(const ArrayState& array, const LoadedArray& loaded, const Selection& selection) {
    if (!array.store->is_far()) return nullptr;
    require_inside(array, loaded, selection.bounds());
    if (selection.bounds().empty()) return nullptr;
    const bool shards = loaded.pipeline.shard() != nullptr;
    return array.store->read_ahead(shards ? 0 : usual_bytes(loaded), wishes_of(array, loaded, selection));
}

void read_chunk(const ArrayState& array, const LoadedArray& loaded, const FarParts& parts, const std::string& key,
                const Index& index, const Picked& part, const Request<MutableArrayView>& request) {
    ScratchPool::Loan scratch(array.scratch);
    const MutableArrayView out = request.elements.part(part.in_request);
    if (part.in_request.extent == loaded.grid.chunks()) {
        if (array.store->get(key, scratch->encoded, loaded.pipeline.encoded_limit())) {
            const Ascending ascending(request.selection, part, out);
            loaded.pipeline.decode(scratch->encoded, ascending.out, scratch->codec);
            return;
        }
    } else {
        const Ascending ascending(request.selection, part, out);
        const auto decode = [&](const ByteSource& source) {
            loaded.pipeline.decode_part(source, ascending.region, ascending.out, scratch->codec, ascending.steps);
        };
        // By reference, which takes no memory.
        if (parts.read(key, parts.first(part.in_box), std::cref(decode))) return;
    }
    read_absent(array, loaded, index, out);
}

// ---- writing

/// The new bytes of the stored chunk in scratch.encoded, if only its blocks touched by `part` need re-encoding. nullopt
/// if that is impossible, or if the chunk might become the fill.
std::optional<ByteSpan> encode_touched(const LoadedArray& loaded, const Request<ArrayView>& request, const Picked& part,
                                       WorkerScratch& scratch) {
    if (!request.selection.is_region()) return std::nullopt;
    const ArrayView in = request.elements.part(part.in_request);
    if (loaded.may_omit() && all_elements_equal(in, loaded.fill())) return std::nullopt;
    return loaded.pipeline.encode_part(scratch.encoded, part.in_box, in, scratch.codec);
}

void write_chunk(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                 const Picked& part, const Request<ArrayView>& request, ChunkOutput& output) {
    ScratchPool::Loan scratch(array.scratch);
    output.begin(index, key, !part.whole);
    const Shape& whole = loaded.grid.chunks();
    const bool stored = !part.whole && array.store->get(key, scratch->encoded, loaded.pipeline.encoded_limit());
    // An uncompressed chunk is changed where it was read.
    const auto there = stored ? loaded.pipeline.elements_in(scratch->encoded) : std::nullopt;
    const bool in_place = there && there->dtype == loaded.metadata.dtype;
    if (stored && !in_place) {
        if (const auto bytes = encode_touched(loaded, request, part, *scratch)) {
            output.put(*bytes);
            return;
        }
    }
    const auto memory = [&](bool keep) {
        if (in_place) {
            return MutableArrayView{scratch->encoded.data(), there->dtype, there->shape, there->strides, nullptr};
        }
        require_chunk_memory(loaded, *scratch);
        const MutableArrayView chunk = chunk_buffer(loaded, whole, *scratch);
        if (stored) {
            loaded.pipeline.decode(scratch->encoded, chunk, scratch->codec);
        } else if (keep) {
            fill_elements(chunk, loaded.fill());
        } else if (!(part.in_box.extent == whole)) {
            fill_unread(loaded, chunk);
        }
        return chunk;
    };
    if (const auto chunk = edited(loaded, request, loaded.grid.chunk_region(index), whole, memory)) {
        store_chunk(loaded, index, *chunk, output, *scratch);
    }
}

/// Writes the picked elements of one chunk or shard.
void write_picked(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                  const Picked& part, const Request<ArrayView>& request, ChunkOutput& output, const IoOptions& io) {
    if (part.whole && keeps_beyond_edge(array, loaded, index)) {
        Picked kept = part;
        kept.whole = false;
        return write_picked(array, loaded, key, index, kept, request, output, io);
    }
    if (loaded.pipeline.shard() == nullptr) {
        write_chunk(array, loaded, key, index, part, request, output);
    } else {
        write_shard(array, loaded, key, index, part.whole, request, output, io);
    }
}

/// One chunk of each folder in which a region's chunks lie.
Region one_per_folder(const LoadedArray& loaded, const Region& region) {
    Region chunks = loaded.grid.overlapping(region);
    const int rank = chunks.rank();
    const bool nested = loaded.metadata.keys.separator == "/";
    for (int d = nested ? std::max(rank - 1, 0) : 0; d < rank; ++d)
        chunks.extent[d] = std::min<std::int64_t>(chunks.extent[d], 1);
    return chunks;
}

}  // namespace

std::uint64_t usual_bytes(const LoadedArray& loaded) {
    constexpr std::uint64_t of_any_content = std::uint64_t{1} << 20;
    return std::min(loaded.pipeline.encoded_limit(), loaded.pipeline.encoded_bound().value_or(of_any_content));
}

SharedThreads share_threads(const LoadedArray& loaded, std::int64_t count, const IoOptions& io) {
    SharedThreads threads{io, io};
    const bool few = loaded.pipeline.shard() != nullptr && count < thread_count(io);
    (few ? threads.outer : threads.within).threads = 1;
    return threads;
}

void read_selected(const ArrayState& array, const LoadedArray& loaded, const Selection& selection,
                   const MutableArrayView& out, const IoOptions& io) {
    const Request<MutableArrayView> request{selection, fitted(array, loaded, out, selection.full_shape())};
    const auto ahead = announce(array, loaded, selection);
    const FarParts parts(array, loaded);
    const auto each = [&](const LoadedArray& own, const Index& index, const Picked& part, const IoOptions& within) {
        const std::string key = array.chunk_key(own, index);
        in_context([&] { return where(array, index, key); },
                   [&] {
                       in_chunk_memory(own, [&] {
                           if (own.pipeline.shard() == nullptr) {
                               read_chunk(array, own, parts, key, index, part, request);
                           } else {
                               read_shard(array, own, key, index, part, request, within);
                           }
                       });
                       show_json(own, request.elements.part(part.in_request));
                   });
    };
    const auto run = [&](std::int64_t count, const IoOptions& outer, const auto& job) {
        const auto bytes = static_cast<std::uint64_t>(byte_count(out.shape, loaded.metadata.dtype.size()));
        parallel_waiting(count, outer,
                         parts.waiters(bytes / static_cast<std::uint64_t>(std::max<std::int64_t>(count, 1)), true),
                         job);
    };
    for_each_picked(array, loaded, selection, io, run, each);
}

void write_selected(const ArrayState& array, const LoadedArray& loaded, const Selection& selection, const ArrayView& in,
                    const IoOptions& io) {
    const Request<ArrayView> request{selection, fitted(array, loaded, in, selection.full_shape())};
    // If all chunks share one folder, the first write makes this check.
    if (one_per_folder(loaded, selection.bounds()).count() > 1) require_direct(array, loaded, selection.bounds());
    const auto run = [&](std::int64_t count, const IoOptions& outer, const auto& job) {
        change_chunks(array, loaded, count, outer, job);
    };
    const auto each = [&](const LoadedArray& own, const Index& index, const Picked& part, const IoOptions& within,
                          ChunkOutput& output) {
        const std::string key = array.chunk_key(own, index);
        in_context([&] { return where(array, index, key); },
                   [&] {
                       in_chunk_memory(own,
                                       [&] { write_picked(array, own, key, index, part, request, output, within); });
                   });
    };
    for_each_picked(array, loaded, selection, io, run, each);
}

void update_selected(const ArrayState& array, const LoadedArray& loaded, const Selection& selection,
                     const std::function<void(const Region& place, const MutableArrayView& elements)>& change,
                     const IoOptions& io) {
    if (one_per_folder(loaded, selection.bounds()).count() > 1) require_direct(array, loaded, selection.bounds());
    ErasedNotes notes(array);
    const auto each = [&](const LoadedArray& own, const Index& index, const Picked& part, const IoOptions& within) {
        const std::string key = array.chunk_key(own, index);
        in_context([&] { return where(array, index, key); },
                   [&] {
                       const Selection picks = selection.part(part.in_request);
                       NDArray elements(loaded.metadata.dtype, part.in_request.extent);
                       change_chunk(array, own, notes, [&](ChunkOutput& output) {
                           output.begin(index, key, true);
                           read_selected(array, own, picks, elements, within);
                           change(part.in_request, elements);
                           const Picked box = picked_from(picks, own.grid.chunk_region(index));
                           write_picked(array, own, key, index, box, {picks, elements}, output, within);
                       });
                   });
    };
    for_each_picked(array, loaded, selection, io, parallel_in_memory, each);
}

void require_direct(const ArrayState& array, const LoadedArray& loaded, const Region& region) {
    require_inside(array, loaded, region);
    const Region chunks = one_per_folder(loaded, region);
    for (std::int64_t n = 0; n < chunks.count(); ++n) {
        array.store->local_files().require_direct(array.chunk_key(loaded, index_in(chunks, n)));
    }
}

void read_region(const ArrayState& array, const LoadedArray& loaded, const Region& region, const MutableArrayView& out,
                 const IoOptions& io) {
    require_inside(array, loaded, region);
    read_selected(array, loaded, region_selection(region), out, io);
}

void write_region(const ArrayState& array, const LoadedArray& loaded, const Region& region, const ArrayView& in,
                  const IoOptions& io) {
    require_inside(array, loaded, region);
    write_selected(array, loaded, region_selection(region), in, io);
}

bool is_far(const ArraySource& source) {
    const auto* const array = as_array(source);
    return array != nullptr && ArrayAccess::state(*array)->store->is_far();
}

std::unique_ptr<ReadAhead> keep_divided(const ArraySource& source, const Region& region, const Shape& block,
                                        bool whole) {
    if (!is_far(source)) return nullptr;
    const ArrayState& state = *ArrayAccess::state(*as_array(source));
    const auto loaded = state.loaded();
    const Shape& chunks = loaded->grid.chunks();
    if (chunks.rank() != block.rank()) return nullptr;
    bool divided = !loaded->grid.regular();
    for (int d = 0; d < block.rank(); ++d) {
        const bool aligned = region.start[d] % chunks[d] == 0 && block[d] % chunks[d] == 0;
        divided = divided || (block[d] < region.extent[d] && !aligned);
    }
    return divided ? state.store->keep_parts(whole) : nullptr;
}

std::unique_ptr<ReadAhead> announce_next(const ArraySource& source, std::uint64_t room,
                                         std::function<std::optional<Selection>()> next) {
    if (room == 0 || !is_far(source)) return nullptr;
    const ArrayState& state = *ArrayAccess::state(*as_array(source));
    auto loaded = state.loaded();
    const bool shards = loaded->pipeline.shard() != nullptr;
    // Only ends of shards: a few are enough.
    constexpr std::uint64_t room_for_ends = std::uint64_t{1} << 20;
    const std::uint64_t usual = shards ? 0 : usual_bytes(*loaded);
    const std::uint64_t most = shards ? std::min(room, room_for_ends) : room;
    auto wishes = [&state, loaded = std::move(loaded), next = std::move(next),
                   now = std::function<bool(ReadWish&)>()](ReadWish& wish) mutable {
        for (;;) {
            if (now && now(wish)) return true;
            const std::optional<Selection> selection = next();
            if (!selection) return false;
            now = wishes_of(state, *loaded, *selection);
        }
    };
    return state.store->read_ahead(usual, std::move(wishes), most);
}

void check_value(const ArrayState& array, const LoadedArray& all, const Index& index, const std::string& key,
                 ByteSpan value) {
    const auto own = all.of(index);
    in_context([&] { return where(array, index, key); },
               [&] {
                   in_chunk_memory(*own, [&] {
                       ScratchPool::Loan scratch(array.scratch);
                       NDArray elements(own->metadata.dtype, own->grid.chunks());
                       own->pipeline.decode(value, elements, scratch->codec);
                       show_json(*own, elements);
                   });
               });
}

void read_one_chunk(const ArrayState& array, const LoadedArray& loaded, const Index& index,
                    const MutableArrayView& out) {
    const Region box = unit_grid(loaded).chunk_region(index);
    if (!(box.extent == out.shape)) fill_unread(loaded, out);
    read_region(array, loaded, box, out.part(Region::whole(box.extent)), {.threads = 1});
}

void clear_beyond_edge(const ArrayState& array, const LoadedArray& all, const Index& index, ChunkOutput& output,
                       const IoOptions& io) {
    const auto own = all.of(index);
    const LoadedArray& loaded = *own;
    const std::string key = array.chunk_key(loaded, index);
    in_context([&] { return where(array, index, key); },
               [&] {
                   output.begin(index, key, true);
                   if (loaded.pipeline.shard() != nullptr) {
                       clear_shard_beyond(array, loaded, key, index, output, io);
                       return;
                   }
                   ScratchPool::Loan scratch(array.scratch);
                   const MutableArrayView chunk = chunk_buffer(loaded, loaded.grid.chunks(), *scratch);
                   if (!load_chunk(array, loaded, key, chunk, *scratch)) return;
                   fill_beyond(loaded, loaded.grid.chunk_region(index).extent, chunk);
                   output.put(loaded.pipeline.encode(chunk, scratch->codec));
               });
}

void cover_with_fill(const ArrayState& array, const LoadedArray& all, const Index& index, ChunkOutput& output) {
    const auto own = all.of(index);
    const LoadedArray& loaded = *own;
    const std::string key = array.chunk_key(loaded, index);
    in_context([&] { return where(array, index, key); },
               [&] {
                   output.begin(index, key, false);
                   if (output.erase()) return;
                   if (loaded.pipeline.shard() != nullptr) {
                       shard_writer(array, loaded, key, index, true, output).finish();
                       return;
                   }
                   ScratchPool::Loan scratch(array.scratch);
                   const MutableArrayView chunk = chunk_buffer(loaded, loaded.grid.chunks(), *scratch);
                   fill_unread(loaded, chunk);
                   output.put(loaded.pipeline.encode(chunk, scratch->codec));
               });
}

void require_direct(const ArrayState& array, const LoadedArray& loaded) {
    const KeyScheme& keys = loaded.metadata.keys;
    const int rank = loaded.grid.shape().rank();
    array.store->local_files().require_direct(array.chunk_key(loaded, Index::filled(rank, 0)));
    if (keys.separator != "/") return;
    const std::function<void(const std::string&, int)> walk = [&](const std::string& place, int depth) {
        for (const std::string& name : array.store->list(place).prefixes) {
            if (name.find_first_not_of("0123456789") != std::string::npos) continue;
            array.store->local_files().require_direct(join_key(join_key(place, name), "0"));
            if (depth > 1) walk(join_key(place, name), depth - 1);
        }
    };
    const std::size_t slash = keys.prefix.rfind('/');
    if (rank > 1) walk(array.key(keys.prefix.substr(0, slash == std::string::npos ? 0 : slash)), rank - 1);
}

}  // namespace tessera
