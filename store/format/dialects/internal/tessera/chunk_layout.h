// ChunkLayout: chunks and shards as a user counts them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <tessera/dialect.h>

namespace tessera {

/// The shape and encoding of a chunk, with sharding kept apart from the chunk's own codecs.
struct ChunkLayout {
    Shape chunks;                     ///< the unit of decoding; with shards, the inner chunks
    Shape shards;                     ///< the unit of storage, one for each key; empty without sharding
    std::vector<CodecConfig> codecs;  ///< of a chunk
    /// If chunks differ in length, else empty: the lengths along each dimension; with shards, those of the shards.
    std::vector<ChunkEdges> edges = {};
    bool operator==(const ChunkLayout&) const = default;
};
/// For nested shards: the innermost chunks and the outermost shards. Codecs applied to whole shards are omitted.
[[nodiscard]] ChunkLayout chunk_layout(const ArrayMetadata& metadata);
/// Gives a layout the lengths that are given: chunks of one shape or lengths that differ, and the same for shards (an
/// empty shape: no sharding). Throws invalid_argument as ChunkGrid, and for lengths that exclude each other.
void set_lengths(ChunkLayout& layout, const Shape& shape, const std::optional<Shape>& chunks,
                 const std::optional<std::vector<ChunkEdges>>& edges, const std::optional<Shape>& shards,
                 const std::optional<std::vector<ChunkEdges>>& shard_edges);
/// Throws invalid_argument if a shard's length is no multiple of the chunks' along the same dimension.
void require_whole_chunks(std::span<const ChunkEdges> shards, const Shape& chunks);
/// Gives an array this layout, with an index at the end of each shard. Throws invalid_argument if shards are not a
/// multiple of chunks.
void set_chunk_layout(ArrayMetadata& metadata, const ChunkLayout& layout);

}  // namespace tessera
