// The loops that read and write a region of an array, chunk by chunk, in parallel. Private to the store module.
//
// Writers hold the shape lock (slot 0) shared for the whole call. How chunks are locked and replaced: chunk_changes.h.
// Readers take no lock: a chunk is replaced as a whole.
//
// A shard is locked and replaced like a chunk. Within it only the inner chunks that are needed are read or encoded
// anew; the others are copied as they are.
#pragma once

#include "array_state.h"

namespace tessera {

class ChunkOutput;

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

/// Reads a part of a unit (what is decoded as one), or all of it, into memory of the part's shape.
using ReadUnit = std::function<void(const Region& region, const MutableArrayView& out, WorkerScratch& scratch)>;
using EachUnit = std::function<void(std::size_t i, const ReadUnit& read)>;
/// Opens a shard once and calls each(i, read) for some of its inner chunks, by their numbers in it, in parallel.
void read_units(const ArrayState& array, const LoadedArray& loaded, const Index& shard,
                std::span<const std::int64_t> inner, const IoOptions& io, const EachUnit& each);

/// Throws invalid_argument, naming it, where a link that must not be followed (StoreOptions::follow_links) leads to
/// chunks of a region, so that nothing is written when a part of it cannot be.
void require_direct(const ArrayState& array, const LoadedArray& loaded, const Region& region);
/// The same of any chunk that may be stored.
void require_direct(const ArrayState& array, const LoadedArray& loaded);

/// The lock of a chunk or shard. The caller holds the shape lock.
[[nodiscard]] StoreLock lock_chunk(const ArrayState& array, const LoadedArray& loaded, const Index& chunk);

/// Reads one whole chunk, with shards one inner chunk, `index` counting those over the array. `out` has their shape;
/// beyond the array's edge it gets the fill.
void read_one_chunk(const ArrayState& array, const LoadedArray& loaded, const Index& index,
                    const MutableArrayView& out);

/// New elements of a whole chunk, with shards of one inner chunk, `index` counting those over the array. All packed in
/// C order.
struct MarkedChunk {
    Index index;
    ArrayView elements;
    ArrayView dirty_mask;  ///< bools: which of them to write; without data: all of them
};
/// Writes the marked elements into one chunk or shard, which is replaced once. `output` has begun. The caller holds the
/// shape lock.
void write_marked(const ArrayState& array, const LoadedArray& loaded, const Index& index,
                  const std::vector<MarkedChunk>& chunks, ChunkOutput& output, const IoOptions& io);
/// Copies the marked elements. All packed in C order.
void copy_marked(const ArrayView& from, const ArrayView& dirty_mask, const MutableArrayView& to);

/// The shape of what is decoded and encoded as one: of chunks, with shards of the inner chunks.
[[nodiscard]] const Shape& unit_shape(const LoadedArray& loaded);

/// ArraySink::open_shard: holds the lock of the shard, and the shape lock given, for as long as it lives.
[[nodiscard]] std::unique_ptr<ArraySink> shard_sink(const ArrayState& array, std::shared_ptr<const LoadedArray> loaded,
                                                    const Region& region, StoreLock shape_lock);

/// Sets the elements of a stored chunk or shard that lie beyond the array's edge to the fill.
void clear_beyond_edge(const ArrayState& array, const LoadedArray& loaded, const Index& index, ChunkOutput& output,
                       const IoOptions& io);

/// What for_each_stored() calls. Keys of strays and of what is in the way are below the array.
struct StoredVisitor {
    /// A chunk, inside the grid or not: also what has a chunk's name and cannot be read (a FIFO, a link that leads
    /// nowhere). It is not absent, and reading it fails.
    std::function<void(const Index&, const std::string& key, const KeyValueStore::ValueSize& size)> each;
    /// Every other value among them.
    std::function<void(const std::string&)> stray = [](const std::string&) {};
    /// What keeps chunks from being there: a directory in a chunk's place (then with its index), something else in the
    /// place of a folder of chunks, a folder that the walk has come to by another name.
    std::function<void(const Index*, const std::string& key, const std::string& text)> in_the_way;
};
void for_each_stored(const ArrayState& array, const LoadedArray& loaded, const StoredVisitor& visitor);

}  // namespace tessera
