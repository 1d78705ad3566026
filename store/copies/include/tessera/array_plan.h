// Plans the metadata of a copied array: its source's metadata with some members changed, in any format. Writes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array.h>
#include <tessera/array_io.h>
#include <tessera/convert.h>
#include <tessera/error.h>
#include <tessera/selection.h>

namespace tessera {

/// The members in which a copy differs from its source. All others come from the source, or from the defaults of
/// ArrayOptions if the source is not an array in a store.
struct ArrayWishes {
    std::optional<Shape> chunks = std::nullopt;
    std::optional<Shape> shards = std::nullopt;  ///< empty: no sharding
    /// Instead of `chunks` or `shards`: as in ArrayOptions.
    std::optional<std::vector<ChunkEdges>> edges = std::nullopt;
    std::optional<std::vector<ChunkEdges>> shard_edges = std::nullopt;
    std::optional<std::string> codec = std::nullopt;  ///< "delta,zstd:3"
    std::optional<Value> fill = std::nullopt;
    std::optional<std::string> format = std::nullopt;  ///< "v3"
    /// Without a format, and for data that have none: that of what they were made from, and where there is none,
    /// default_format(preferred_format).
    std::optional<std::string> like_format = std::nullopt;
    std::string preferred_format = {};
    /// Whether v3 is taken, without a format, where the source's or the default one cannot express what is asked. Not
    /// for one of several arrays, which share a format.
    bool may_take_v3 = true;
    std::optional<std::string> separator = std::nullopt;
    std::optional<std::string> structures = std::nullopt;  ///< as ArrayOptions::structures
    std::optional<Order> order = std::nullopt;             ///< of the elements in a chunk
    std::optional<std::vector<std::optional<std::string>>> dimension_names = std::nullopt;
};

/// The complete metadata of an array to be made.
struct PlannedArray {
    const Dialect* dialect = nullptr;
    ArrayMetadata metadata;
    std::optional<Value> attributes;
    std::vector<Note> changes;  ///< sentences about what differs from the source
    /// Why chunks are encoded anew; nullopt if those of the source are copied as they are.
    std::optional<std::string> recode;
};

/// The source's metadata with `wishes` applied. Throws invalid_argument and unsupported, naming the option or member,
/// but neither the source nor the array to be made: the caller knows where that will be.
[[nodiscard]] PlannedArray plan_array(const ArraySource& source, const ArrayWishes& wishes = {},
                                      const std::optional<Selection>& selection = std::nullopt);

/// make_metadata(). If the format was not chosen and cannot express the options, the error names one that can.
[[nodiscard]] ArrayMetadata metadata_of_new(const ArrayOptions& options, bool format_chosen);

/// A warning if xarray would show elements as missing because they equal a default fill. Given only for arrays with
/// dimension names, because xarray opens no others.
[[nodiscard]] std::optional<Note> masking_note(const Dialect& dialect, const ArrayMetadata& metadata);

/// The same for an array of which `missing` chunks are not stored; nullopt if there are none.
[[nodiscard]] std::optional<std::string> undefined_chunks_note(const ArrayMetadata& metadata, std::int64_t missing);
/// The same for the elements that an array got when its shape changed from `before` to that of the metadata.
[[nodiscard]] std::optional<std::string> undefined_growth_note(const ArrayMetadata& metadata, const Shape& before);
/// Whether the wishes are such that a format may not be able to express them: codecs, shards, names of dimensions.
[[nodiscard]] bool asks_for_a_format(const ArrayWishes& wishes);

/// A warning if a chunk (of a shard: an inner one) is too large to be written within `max_memory` bytes: decoded and
/// encoded, it takes twice its size. 0: no limit is known, and there is no warning.
[[nodiscard]] std::optional<Note> large_chunk_note(const ArrayMetadata& metadata, std::uint64_t max_memory);

/// Whether chunks are compressed with a zstd that the dialect's original program cannot read.
[[nodiscard]] bool uses_unknown_zstd(const Dialect& dialect, const ArrayMetadata& metadata);

}  // namespace tessera
