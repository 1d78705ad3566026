// From one Zarr format to another: what an array's metadata become there, and whether its chunks stay valid.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/array.h>
#include <tessera/dialect.h>
#include <tessera/metadata.h>

namespace tessera {

/// What one chunk is and how it is encoded, with the shards that chunks may be kept in taken apart.
struct ChunkLayout {
    Shape chunks;                     ///< what is decoded whole
    Shape shards;                     ///< what one key holds; empty without sharding
    std::vector<CodecConfig> codecs;  ///< of a chunk
    bool operator==(const ChunkLayout&) const = default;
};
/// For nested shards: the innermost chunks and the outermost shards. Codecs applied to whole shards are omitted.
[[nodiscard]] ChunkLayout chunk_layout(const ArrayMetadata& metadata);
/// Gives an array this layout, with an index at the end of each shard. Throws invalid_argument when shards are no
/// multiple of chunks.
void set_chunk_layout(ArrayMetadata& metadata, const ChunkLayout& layout);

/// An array as it is to be in another dialect.
struct Conversion {
    ArrayMetadata metadata;
    std::optional<Value> attributes;
    /// Sentences about what is said otherwise there than here ("the codec zstd:3 becomes blosc:zstd:3:shuffle, because
    /// …"). Elements never change.
    std::vector<std::string> changes;
};

/// Keeps dtype, shape, fill, attributes and dimension names (an attribute `_ARRAY_DIMENSIONS` outside v3, which is
/// xarray's convention), or throws unsupported naming what `to` cannot express. Codecs stay where `to` can express
/// them; else the nearest are chosen. Codecs that the program of `to` cannot read (zstd, for zarr-python 0.4 and 1) are
/// replaced too, unless they were `codecs_chosen` by a person. A fill of null becomes zeros where `to` has no null,
/// with null_fill_attribute as the way back; the fields of structures become little-endian for v3. `attributes` as
/// Dialect::load_attributes gives them.
[[nodiscard]] Conversion convert_metadata(const ArrayMetadata& metadata, const std::optional<Value>& attributes,
                                          const Dialect& from, const Dialect& to, bool codecs_chosen = false);

/// Why the chunks of an array with metadata `from` must be encoded anew for one with metadata `to`; nothing when their
/// bytes stay valid, so that chunk files can be copied or linked.
[[nodiscard]] std::optional<std::string> why_recode(const ArrayMetadata& from, const ArrayMetadata& to);

/// What copy_chunks did.
struct CopiedChunks {
    std::int64_t chunks = 0;
    std::int64_t linked = 0;  ///< of these, those that are hard links
};
/// Copies every stored chunk of `from` as it is, to an array for which why_recode says nothing; what is stored there
/// already stays. Each is decoded once, so that damage is an error and not a copy. With `link` by hard links where both
/// lie on one file system: Tessera never writes into a chunk file, but other programs may, and would then change both.
CopiedChunks copy_chunks(const Array& from, Array& to, bool link, const IoOptions& io = {});

}  // namespace tessera
