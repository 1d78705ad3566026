// Shards: inner chunks that a selection touches are read or re-encoded, the others copied unchanged. Private to the
// store module.
#pragma once

#include <tessera/shard.h>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "array_state.h"
#include "chunk_changes.h"
#include "picked_part.h"

namespace tessera {

/// Reads the picked elements of one shard.
void read_shard(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                const Picked& part, const Request<MutableArrayView>& request, const IoOptions& io);

/// Writes the requested elements of one shard. If all of it (`whole`) is replaced, nothing of the old one is kept.
void write_shard(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                 bool whole, const Request<ArrayView>& request, ChunkOutput& output, const IoOptions& io);

/// Sets the elements of a stored shard that lie beyond the array's edge to the fill.
void clear_shard_beyond(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                        ChunkOutput& output, const IoOptions& io);

/// A writer of a new version of a shard to `output`, which has begun. Stored inner chunks are kept, unless all is
/// `replaced`.
[[nodiscard]] ShardWriter shard_writer(const ArrayState& array, const LoadedArray& loaded, const std::string& key,
                                       const Index& index, bool replaced, ChunkOutput& output);

/// Puts a shard in place, or removes it if it is empty (see ChunkOutput::erase).
void finish_shard(ShardWriter& writer, ChunkOutput& output);

/// Reads a unit (a chunk, or an inner chunk of a shard), or a part of it, into memory of the part's shape.
using ReadUnit = std::function<void(const Region& region, const MutableArrayView& out, WorkerScratch& scratch)>;
using EachUnit = std::function<void(std::size_t i, const ReadUnit& read, const ByteSource* encoded)>;
/// Opens a shard once and calls each(i, read, encoded) in parallel for some of its inner chunks, given by their numbers
/// in the shard. `encoded` is nullptr for an absent one.
void read_units(const ArrayState& array, const LoadedArray& loaded, const Index& shard,
                std::span<const std::int64_t> inner, const IoOptions& io, const EachUnit& each);

/// For ArraySink::open_shard. Holds the lock of the shard and the given shape lock while it lives.
[[nodiscard]] std::unique_ptr<ArraySink> shard_sink(const ArrayState& array, std::shared_ptr<const LoadedArray> loaded,
                                                    const Region& region, StoreLock shape_lock);

}  // namespace tessera
