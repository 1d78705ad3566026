// The loops that read and write a region of an array, chunk by chunk, in parallel. Private to the store module.
//
// Writers hold the shape lock (slot 0) shared for the whole call. See chunk_changes.h for how chunks are locked and
// replaced. Readers take no lock, because a chunk is replaced as a whole.
//
// A shard is locked and replaced like a chunk. Only the inner chunks that are needed are read or re-encoded; the others
// are copied unchanged.
#pragma once

#include "array_state.h"

namespace tessera {

class ChunkOutput;
class ElementMask;

/// The options for `count` chunks or shards in parallel, and for the work within each.
struct SharedThreads {
    IoOptions outer;
    IoOptions within;
};
/// A few shards are processed one after another, with all threads on the inner chunks of each. Else each thread
/// processes a chunk or shard alone.
[[nodiscard]] SharedThreads share_threads(const LoadedArray& loaded, std::int64_t count, const IoOptions& io);

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
                     const Array::Change& change, const IoOptions& io);

// Many regions at once; see Array::read_many.
void read_many(const ArrayState& array, const LoadedArray& loaded, std::span<const RegionRead> parts,
               const IoOptions& io);
void write_many(const ArrayState& array, const LoadedArray& loaded, std::span<const RegionWrite> parts,
                const IoOptions& io);

/// See Array::read_points.
void read_points(const ArrayState& array, const LoadedArray& loaded, std::span<const std::int64_t> indices,
                 const MutableArrayView& out, const IoOptions& io);

/// Reads a unit (a chunk, or an inner chunk of a shard), or a part of it, into memory of the part's shape.
using ReadUnit = std::function<void(const Region& region, const MutableArrayView& out, WorkerScratch& scratch)>;
using EachUnit = std::function<void(std::size_t i, const ReadUnit& read, const ByteSource* encoded)>;
/// Opens a shard once and calls each(i, read, encoded) in parallel for some of its inner chunks, given by their numbers
/// in the shard. `encoded` is nullptr for an absent one.
void read_units(const ArrayState& array, const LoadedArray& loaded, const Index& shard,
                std::span<const std::int64_t> inner, const IoOptions& io, const EachUnit& each);

/// If chunks of a region lie behind a link that must not be followed (StoreOptions::follow_links), throws
/// invalid_argument, naming the link. So a write either can reach all chunks or writes nothing.
void require_direct(const ArrayState& array, const LoadedArray& loaded, const Region& region);
/// The same for all chunks that may be stored.
void require_direct(const ArrayState& array, const LoadedArray& loaded);

/// The lock of a chunk or shard. The caller holds the shape lock.
[[nodiscard]] StoreLock lock_chunk(const ArrayState& array, const LoadedArray& loaded, const Index& chunk);

/// Reads one whole chunk, with shards one inner chunk; `index` is in the grid of these. `out` has the same shape;
/// elements beyond the array's edge get the fill.
void read_one_chunk(const ArrayState& array, const LoadedArray& loaded, const Index& index,
                    const MutableArrayView& out);

/// New elements of a whole chunk, with shards of one inner chunk; `index` is in the grid of these. All packed in C
/// order.
struct MarkedChunk {
    Index index;
    ArrayView elements;
    const ElementMask* dirty_mask;  ///< which of them to write; null: all
};
/// Writes the dirty elements into one chunk or shard, which is replaced once. `output` has begun. The caller holds the
/// shape lock.
void write_marked(const ArrayState& array, const LoadedArray& loaded, const Index& index,
                  const std::vector<MarkedChunk>& chunks, ChunkOutput& output, const IoOptions& io);
/// Copies the dirty elements. All packed in C order.
void copy_marked(const ArrayView& from, const ElementMask& dirty_mask, const MutableArrayView& to);

/// The shape of a unit, which is decoded and encoded as a whole: a chunk, or with shards an inner chunk.
[[nodiscard]] const Shape& unit_shape(const LoadedArray& loaded);

/// For ArraySink::open_shard. Holds the lock of the shard and the given shape lock while it lives.
[[nodiscard]] std::unique_ptr<ArraySink> shard_sink(const ArrayState& array, std::shared_ptr<const LoadedArray> loaded,
                                                    const Region& region, StoreLock shape_lock);

/// Sets the elements of a stored chunk or shard that lie beyond the array's edge to the fill.
void clear_beyond_edge(const ArrayState& array, const LoadedArray& loaded, const Index& index, ChunkOutput& output,
                       const IoOptions& io);

/// Callbacks of for_each_stored(). The keys of strays and obstacles are below the array.
struct StoredVisitor {
    /// A chunk, inside the grid or not. Includes unreadable things with a chunk's name (a FIFO, a dangling link): they
    /// are not absent, but reading them fails.
    std::function<void(const Index&, const std::string& key, const KeyValueStore::ValueSize& size)> each;
    /// Every other value beside them.
    std::function<void(const std::string&)> stray = [](const std::string&) {};
    /// An obstacle to chunks: a directory in a chunk's place (then with its index), a thing that is not a folder in the
    /// place of a folder of chunks, or a folder that the walk already visited under another name.
    std::function<void(const Index*, const std::string& key, const std::string& text)> in_the_way;
};
void for_each_stored(const ArrayState& array, const LoadedArray& loaded, const StoredVisitor& visitor);

}  // namespace tessera
