// ArrayOptions: how to create an array, and in which format.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/dialect.h>
#include <tessera/metadata.h>

namespace tessera {

/// How to create an array. Only shape and dtype are needed.
struct ArrayOptions {
    Shape shape;
    Shape chunks = {};  ///< empty: about 1 MiB is chosen (choose_chunks)
    DType dtype;
    /// Must fit the dtype. nullopt: the dialect's default, and in v2 with names of dimensions null, because xarray
    /// takes elements that equal v2's fill for missing ones.
    std::optional<Value> fill_value = std::nullopt;
    Shape shards = {};  ///< v3: shape of a shard, a multiple of chunks; empty: no sharding
    /// v3: the lengths along each dimension, where they differ, instead of `chunks` or `shards`. In shards that differ
    /// the chunks have one shape, of which every shard's is a multiple.
    std::vector<ChunkEdges> edges = {};
    std::vector<ChunkEdges> shard_edges = {};
    std::string codec = "blosc:lz4:5:shuffle";  ///< as parse_codecs reads it
    std::string format = "";                    ///< empty: choose_format() chooses
    Order order = Order::C;                     ///< of the elements within a chunk
    std::string separator = "";   ///< between the indices of chunk keys, "." or "/"; empty: the dialect's own
    std::string structures = "";  ///< v3: the name of structures, "struct", or "structured" for zarr-python before 3.3
    std::vector<std::optional<std::string>> dimension_names = {};  ///< empty, or one per dimension
    Value attributes = Value::object();                            ///< written when not empty
};

/// The format of new arrays for which none is named: `preferred`, else zmeta. Throws invalid_argument for no format's
/// name. The library reads no environment: what a user prefers is the caller's to say.
[[nodiscard]] const Dialect& default_format(std::string_view preferred = "");

struct FormatChoice {
    const Dialect* dialect = nullptr;
    std::optional<Note> note = std::nullopt;  ///< why it is not the default one, as a sentence
};
/// The format of a new array: the one that the options name; else the default one; else v3, if the default one cannot
/// express what is asked (codecs, shards, names of dimensions, …) and v3 can.
[[nodiscard]] FormatChoice choose_format(const ArrayOptions& options, std::string_view preferred = "");

/// The metadata that these options describe, in the dialect that they name (or that choose_format() chooses). If that
/// dialect has no dimension names, new_attributes() returns them. Throws as Array::create.
[[nodiscard]] ArrayMetadata make_metadata(const ArrayOptions& options);
/// The attributes, including xarray's `_ARRAY_DIMENSIONS` if the dialect has no other place for dimension names.
[[nodiscard]] Value new_attributes(const ArrayOptions& options);

/// A fill that is not defined.
[[nodiscard]] FillValue null_fill();
/// A warning if elements that were never written have no value in a new array, because its fill, which nobody chose, is
/// null: in formats whose fill xarray takes for missing.
[[nodiscard]] std::optional<Note> undefined_note(const Dialect& dialect, const ArrayMetadata& metadata);

}  // namespace tessera
