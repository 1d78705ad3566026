// Shards: the inner chunks that a selection touches are read or encoded anew, the others copied as they are. Private to
// the store module.
#pragma once

#include <tessera/shard.h>
#include <memory>
#include <string>

#include "array_state.h"
#include "chunk_changes.h"
#include "picked.h"

namespace tessera {

/// Reads what is picked from one shard.
void read_shard(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                const Picked& part, const Request<MutableArrayView>& request, const IoOptions& io);

/// Writes what is requested of one shard; nothing of the old one stays where all of it (`whole`) is replaced.
void write_shard(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                 bool whole, const Request<ArrayView>& request, ChunkOutput& output, const IoOptions& io);

/// Sets the elements of a stored shard that lie beyond the array's edge to the fill.
void clear_shard_beyond(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const Index& index,
                        ChunkOutput& output, const IoOptions& io);

/// A shard about to be written anew to `output`, which has begun; what is stored stays, unless all of it is `replaced`.
[[nodiscard]] ShardWriter shard_writer(const ArrayState& array, const LoadedArray& loaded, const std::string& key,
                                       const Index& index, bool replaced, ChunkOutput& output);

/// Puts a shard in place, or removes it when there is nothing in it.
void finish_shard(ShardWriter& writer, ChunkOutput& output);

}  // namespace tessera
