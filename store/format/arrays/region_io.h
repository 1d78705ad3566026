// The loops that read and write a region of an array, chunk by chunk, in parallel. Private to the store module.
//
// Writers hold the shape lock (slot 0) shared for the whole call. See chunk_changes.h for how chunks are locked and
// replaced. Readers take no lock, because a chunk is replaced as a whole.
//
// A shard is locked and replaced like a chunk. Only the inner chunks that are needed are read or re-encoded; the others
// are copied unchanged.
#pragma once

#include <tessera/array_io.h>
#include <tessera/key_value_store.h>
#include <tessera/selection.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "array_state.h"

namespace tessera {

class ChunkOutput;

/// The options for `count` chunks or shards in parallel, and for the work within each.
struct SharedThreads {
    IoOptions outer;
    IoOptions within;
};
/// A few shards are processed one after another, with all threads on the inner chunks of each. Else each thread
/// processes a chunk or shard alone.
[[nodiscard]] SharedThreads share_threads(const LoadedArray& loaded, std::int64_t count, const IoOptions& io);

/// No chunk as any known program encodes it has more bytes; for content of any length, a guess.
[[nodiscard]] std::uint64_t usual_bytes(const LoadedArray& loaded);

/// `out` has the shape region.extent; region lies inside the array.
void read_region(const ArrayState& array, const LoadedArray& loaded, const Region& region, const MutableArrayView& out,
                 const IoOptions& io);

/// The caller holds the shape lock. `in` has the shape region.extent; dimensions with stride 0 repeat an element.
void write_region(const ArrayState& array, const LoadedArray& loaded, const Region& region, const ArrayView& in,
                  const IoOptions& io);

// The same for any selection; the shape is selection.full_shape().
void read_selected(const ArrayState& array, const LoadedArray& loaded, const Selection& selection,
                   const MutableArrayView& out, const IoOptions& io);
void write_selected(const ArrayState& array, const LoadedArray& loaded, const Selection& selection, const ArrayView& in,
                    const IoOptions& io);

/// See Array::update. The caller holds the shape lock.
void update_selected(const ArrayState& array, const LoadedArray& loaded, const Selection& selection,
                     const std::function<void(const Region& place, const MutableArrayView& elements)>& change,
                     const IoOptions& io);

/// If chunks of a region lie behind a link that must not be followed (StoreOptions::follow_links), throws
/// invalid_argument, naming the link. So a write either can reach all chunks or writes nothing.
void require_direct(const ArrayState& array, const LoadedArray& loaded, const Region& region);
/// The same for all chunks that may be stored.
void require_direct(const ArrayState& array, const LoadedArray& loaded);

/// Whether the source is an array behind a network.
[[nodiscard]] bool is_far(const ArraySource& source);

/// For a region that is read in blocks of some shape: while the result lives, chunks and shards far away that several
/// blocks need are not asked for again (KeyValueStore::keep_parts). Null where that is not needed.
[[nodiscard]] std::unique_ptr<ReadAhead> keep_divided(const ArraySource& source, const Region& region,
                                                      const Shape& block, bool whole);

/// For selections that are read one after another, each by one call: while the result lives, the chunks and shards far
/// away of those that come next are asked for, within `room` bytes of memory. next() gives the next; nullopt at the
/// end. It is called in any thread, one call at a time. Null where nothing is announced.
[[nodiscard]] std::unique_ptr<ReadAhead> announce_next(const ArraySource& source, std::uint64_t room,
                                                       std::function<std::optional<Selection>()> next);

/// Decodes the value of a chunk that is not a shard. Throws as reading it would.
void check_value(const ArrayState& array, const LoadedArray& all, const Index& index, const std::string& key,
                 ByteSpan value);

/// Reads one whole chunk, with shards one inner chunk; `index` is in the grid of these. `out` has the same shape;
/// elements beyond the array's edge get the fill.
void read_one_chunk(const ArrayState& array, const LoadedArray& loaded, const Index& index,
                    const MutableArrayView& out);

/// Sets the elements of a stored chunk or shard that lie beyond the array's edge to the fill.
void clear_beyond_edge(const ArrayState& array, const LoadedArray& all, const Index& index, ChunkOutput& output,
                       const IoOptions& io);
/// Where values are not removed (ChunkOutput::erase): replaces a chunk or shard, if it is stored, by one of the fill.
void cover_with_fill(const ArrayState& array, const LoadedArray& all, const Index& index, ChunkOutput& output);

}  // namespace tessera
