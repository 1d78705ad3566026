// ArrayMetadata: the common model of an array, in Zarr v3 terms. Every format is lowered to it; it contains no JSON
// text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/chunk_grid.h>
#include <tessera/codec.h>
#include <tessera/dtype.h>
#include <tessera/element.h>
#include <tessera/shape.h>
#include <tessera/value.h>

namespace tessera {

/// How chunk indices become keys: prefix + indices joined by separator + suffix.
struct KeyScheme {
    std::string prefix;  ///< "__zdata__/", "c/", ""
    std::string separator = ".";
    std::string suffix;        ///< ".blosc", ""
    std::string zero_d = "0";  ///< the whole key of a 0-d array's only chunk
    [[nodiscard]] std::string key(const Index& chunk) const;
    /// The chunk that a key (relative to the array) names; nullopt if it names none of this rank.
    [[nodiscard]] std::optional<Index> parse(std::string_view key, int rank) const;
    /// The same with "." or "/" between indices (and after v3's "c"). Throws invalid_argument for anything else.
    [[nodiscard]] KeyScheme with_separator(std::string_view separator) const;
    friend bool operator==(const KeyScheme&, const KeyScheme&) = default;
};

/// The fill value: the element's bytes and its spelling in the metadata.
struct FillValue {
    /// nullopt for `null` (undefined). For variable-length kinds: the content.
    std::optional<ElementBytes> bytes;
    /// The spelling in the metadata, written back unless the fill changes; nullopt for a fill known only by its bytes.
    std::optional<Value> spelling;
    /// Other programs do not read an absent chunk of this array as the fill (for bytes, zarr-python 2 returns the text
    /// ""). Chunks full of the fill are therefore stored.
    bool always_stored = false;
    /// Why the spelling cannot be assigned to the dtype (0 to V, NaN to an integer); else empty. `bytes` is then
    /// nullopt, and the error is thrown when the fill is needed.
    std::string error;
};

struct ArrayMetadata {
    DType dtype;
    Shape shape;
    Shape chunks;  ///< rank of shape, each at least 1: the unit of storage, so with sharding the shape of a shard
    /// One per dimension if chunks (with sharding: shards) differ in length. `chunks` are then the longest lengths.
    std::vector<ChunkEdges> edges;
    FillValue fill;
    std::vector<CodecConfig> codecs;
    KeyScheme keys;
    std::vector<std::optional<std::string>> dimension_names;  ///< empty, or one per dimension
    Value unknown = Value::object();                          ///< members that the dialect does not know but keeps
    /// Spellings of the document for which the dialect allows several ("dimension_separator": "." in v2), so that it is
    /// written back unchanged. It adds no information to the members above.
    Value spelling = Value::object();
};

/// The grid of the chunks, with sharding of the shards. Throws as ChunkGrid.
[[nodiscard]] ChunkGrid chunk_grid(const ArrayMetadata& metadata);
/// Gives the metadata chunks of these lengths; none: of the shape `chunks`, which then stays. Throws as ChunkGrid.
void set_edges(ArrayMetadata& metadata, std::vector<ChunkEdges> edges);

/// The sharding_indexed codec for inner chunks of this shape with these codecs, as zarr-python writes it by default:
/// the index at the end, little-endian, with crc32c.
[[nodiscard]] CodecConfig sharding_codec(const Shape& chunks, std::vector<CodecConfig> codecs);

/// The names of dimensions as metadata and attributes list them: a list of strings, null where there is none.
[[nodiscard]] Value dimension_names_json(std::span<const std::optional<std::string>> names);
/// Throws invalid_argument if a name stands for two dimensions. Zarr allows that and arrays that have it are read, but
/// xarray and others find dimensions by name.
void require_distinct_names(std::span<const std::optional<std::string>> names);

/// Whether a chunk full of the fill may be left out. False if the fill is undefined, because other programs then read
/// arbitrary elements.
[[nodiscard]] bool may_omit(const FillValue& fill);

/// The bytes of an absent chunk's elements: the fill, or zeros if it is undefined. Throws invalid_argument if the
/// metadata's fill cannot be assigned to the dtype.
[[nodiscard]] ElementBytes fill_element(const ArrayMetadata& metadata);

}  // namespace tessera
