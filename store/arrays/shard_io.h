// Shards: inner chunks that a selection touches are read or re-encoded, the others copied unchanged. Private to the
// store module.
#pragma once

#include <tessera/shard.h>
#include <memory>
#include <string>

#include "array_state.h"
#include "chunk_changes.h"
#include "picked.h"

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

/// Puts a shard in place, or removes it if it is empty.
void finish_shard(ShardWriter& writer, ChunkOutput& output);

}  // namespace tessera
