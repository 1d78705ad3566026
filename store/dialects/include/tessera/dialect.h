// Dialect: one constant object per Zarr format, which says all that others do not know of it. Siblings in one file
// each (zmeta.cpp, …), listed in one table (dialect.cpp).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/metadata.h>

namespace tessera {

/// The largest metadata or attribute document that is read.
inline constexpr std::uint64_t metadata_limit = std::uint64_t{64} << 20;

struct Dialect {
    std::string_view name;          ///< for --format: "zmeta"
    std::string_view about;         ///< "zarr-python 0.4 (__zmeta__), Tessera's own"
    std::string_view metadata_key;  ///< of an array, relative to its prefix: "__zmeta__"
    bool dimension_names = false;   ///< in the metadata; elsewhere they are xarray's attribute `_ARRAY_DIMENSIONS`
    bool shards = false;            ///< whether a file may hold many chunks
    bool null_fill = true;          ///< whether a fill may be null in new metadata
    bool separators = false;        ///< whether chunks may be named 1/0 as well as 1.0
    bool fill_is_missing = false;   ///< xarray takes elements that equal the fill for missing data
    std::string_view cannot_read_zstd =
        {};                      ///< its program, which cannot read what today's zstd writes; "" where it can
    std::string_view group_key;  ///< of a group: ".zgroup"; "" where a plain directory is the only group there is

    /// Whether an array of this dialect lies at `prefix`.
    bool (*probe)(const KeyValueStore& store, std::string_view prefix);
    /// Of the document under metadata_key. Throws corrupt or unsupported, naming the member, what was expected and what
    /// was found.
    ArrayMetadata (*parse)(std::string_view document);
    /// Writes the metadata, as the last step of making an array, and the attributes (an object). If `attributes` is
    /// null, existing attributes are kept. Throws unsupported, naming the member that the dialect cannot express;
    /// nothing is written then.
    void (*save)(KeyValueStore& store, std::string_view prefix, const ArrayMetadata& metadata, const Value* attributes);
    /// The checks of save alone.
    void (*require_expressible)(const ArrayMetadata& metadata);

    /// Whether a group of this dialect lies at `prefix`; nullptr where the dialect has no group metadata.
    bool (*probe_group)(const KeyValueStore& store, std::string_view prefix);
    /// Makes the group at `prefix`, with these attributes and these members of its document that the dialect does not
    /// know. nullptr where the dialect has no group metadata. Throws unsupported, naming it, for a member that must be
    /// understood.
    void (*save_group)(KeyValueStore& store, std::string_view prefix, const Value& attributes, const Value& unknown);
    /// The members of the group's document that the dialect does not know, an object. nullptr as save_group.
    Value (*load_group_unknown)(const KeyValueStore& store, std::string_view prefix);

    /// The attributes of the array or group at `prefix`, an object; nothing when there are none and never were.
    std::optional<Value> (*load_attributes)(const KeyValueStore& store, std::string_view prefix);
    /// Replaces them. The array or group is there.
    void (*save_attributes)(KeyValueStore& store, std::string_view prefix, const Value& attributes);

    /// The consolidated metadata that the group at `prefix` carries: an object from the path of each node below it
    /// ("sub/b") to its metadata documents by their key ({".zarray": …, ".zattrs": …} or {"zarr.json": …}), and "" to
    /// those of the group itself where they are among them; nothing when it carries none. A copy, which may be stale:
    /// never trusted over the nodes themselves.
    std::optional<Value> (*load_consolidated)(const KeyValueStore& store, std::string_view prefix);
    /// Replaces it; `nodes` as load_consolidated gives it, without the group itself. Both nullptr where the dialect has
    /// no such thing.
    void (*save_consolidated)(KeyValueStore& store, std::string_view prefix, const Value& nodes);

    /// What a new array gets where its creator said nothing.
    KeyScheme (*default_keys)();
    FillValue (*default_fill)(const DType& dtype);
    /// What a converted array gets whose chunks have such keys; nullptr: default_keys(), whatever they are.
    KeyScheme (*keys_like)(const KeyScheme& keys) = nullptr;
    /// Changes elements of a converted array in what the dialect cannot express and no reader notices, and says so in
    /// `changes`; nullptr: there is nothing of the kind.
    void (*adapt)(ArrayMetadata& metadata, std::vector<std::string>& changes) = nullptr;
    /// Sentences for `info`: what the original program could not read of this array.
    std::vector<std::string> (*remarks)(const ArrayMetadata& metadata);
    /// Whether a name directly below an array's prefix is part of an array of this dialect (metadata, attributes, the
    /// folder of its chunks, a chunk, the original program's lock files): what --overwrite may replace.
    bool (*owns)(const ArrayMetadata& metadata, std::string_view name);

    /// The keys of a node's documents, relative to its prefix: what consolidated metadata are copies of.
    std::span<const std::string_view> documents = {};
    /// The key of a group's consolidated metadata where they have one of their own: ".zmetadata".
    std::string_view consolidated_key = "";

    /// Whether a document under metadata_key is a group's; nullptr where groups have another key.
    bool (*is_group)(std::string_view document) = nullptr;
    /// Anything may have the name that metadata_key is, so that probe comes before reading it.
    bool common_key = false;
    /// Nothing else is called as the folder of chunks is, the prefix of default_keys(): with chunks in it, and without
    /// metadata beside it, it is a lost array.
    bool own_folder = false;
};

/// Marks an array whose fill was null, and became zeros in a dialect without null: a text, "null".
inline constexpr std::string_view null_fill_attribute = "_TESSERA_FILL_VALUE";
/// Where arrays keep the names of their dimensions in dialects without a member for them: xarray's convention.
inline constexpr std::string_view dimensions_attribute = "_ARRAY_DIMENSIONS";

[[nodiscard]] std::span<const Dialect> dialect_table();
/// By name; throws invalid_argument that lists the names.
[[nodiscard]] const Dialect& dialect_named(std::string_view name);
/// The dialect of the array at `prefix`, or nullptr when there is none.
[[nodiscard]] const Dialect* probe_dialect(const KeyValueStore& store, std::string_view prefix);
/// The metadata of the array of that dialect at `prefix`. Throws not_found when there are none, and what parse throws,
/// naming the key.
[[nodiscard]] ArrayMetadata load_metadata(const Dialect& dialect, const KeyValueStore& store, std::string_view prefix);
/// The dialect of the group at `prefix`, or nullptr when no group metadata are there.
[[nodiscard]] const Dialect* probe_group_dialect(const KeyValueStore& store, std::string_view prefix);

}  // namespace tessera
