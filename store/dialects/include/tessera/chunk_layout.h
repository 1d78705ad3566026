// ChunkLayout: chunks and shards as a user counts them.
#pragma once

#include <vector>

#include <tessera/metadata.h>

namespace tessera {

/// The shape and encoding of a chunk, with sharding kept apart from the chunk's own codecs.
struct ChunkLayout {
    Shape chunks;                     ///< the unit of decoding; with shards, the inner chunks
    Shape shards;                     ///< the unit of storage, one for each key; empty without sharding
    std::vector<CodecConfig> codecs;  ///< of a chunk
    bool operator==(const ChunkLayout&) const = default;
};
/// For nested shards: the innermost chunks and the outermost shards. Codecs applied to whole shards are omitted.
[[nodiscard]] ChunkLayout chunk_layout(const ArrayMetadata& metadata);
/// Gives an array this layout, with an index at the end of each shard. Throws invalid_argument if shards are not a
/// multiple of chunks.
void set_chunk_layout(ArrayMetadata& metadata, const ChunkLayout& layout);

}  // namespace tessera
