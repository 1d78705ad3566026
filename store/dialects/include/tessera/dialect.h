// Dialect: one constant object for each Zarr format, with everything specific to it. Each is defined in its own file
// (zmeta.cpp, …) and listed in one table (dialect.cpp).
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
    bool dimension_names = false;   ///< whether metadata hold them; else xarray's attribute `_ARRAY_DIMENSIONS` does
    bool shards = false;            ///< whether a file may hold many chunks
    bool null_fill = true;          ///< whether a fill may be null in new metadata
    bool separators = false;        ///< whether chunks may be named 1/0 as well as 1.0
    bool fill_is_missing = false;   ///< xarray takes elements that equal the fill for missing data
    std::string_view cannot_read_zstd = {};  ///< its original program, if that cannot read today's zstd; else ""
    std::string_view group_key;              ///< of a group: ".zgroup"; "" if all groups are plain directories

    /// Whether an array of this dialect lies at `prefix`.
    bool (*probe)(const KeyValueStore& store, std::string_view prefix);
    /// Parses the document under metadata_key. Throws corrupt or unsupported, naming the member, the expected value and
    /// the value found.
    ArrayMetadata (*parse)(std::string_view document);
    /// Writes the metadata, as the last step of making an array, and the attributes (an object). If `attributes` is
    /// null, existing attributes are kept. Throws unsupported, naming the member that the dialect cannot express;
    /// nothing is written then.
    void (*save)(KeyValueStore& store, std::string_view prefix, const ArrayMetadata& metadata, const Value* attributes);
    /// The checks of save alone.
    void (*require_expressible)(const ArrayMetadata& metadata);

    /// Whether a group of this dialect lies at `prefix`; nullptr where the dialect has no group metadata.
    bool (*probe_group)(const KeyValueStore& store, std::string_view prefix);
    /// Creates the group at `prefix` with these attributes. `unknown` holds members of its document that the dialect
    /// does not know; throws unsupported, naming the member, for one that must be understood. nullptr if the dialect
    /// has no group metadata.
    void (*save_group)(KeyValueStore& store, std::string_view prefix, const Value& attributes, const Value& unknown);
    /// The members of the group's document that the dialect does not know, an object. nullptr as save_group.
    Value (*load_group_unknown)(const KeyValueStore& store, std::string_view prefix);

    /// The attributes of the array or group at `prefix`, an object; nullopt if none were ever stored.
    std::optional<Value> (*load_attributes)(const KeyValueStore& store, std::string_view prefix);
    /// Replaces them. The array or group must exist.
    void (*save_attributes)(KeyValueStore& store, std::string_view prefix, const Value& attributes);

    /// The consolidated metadata that the group at `prefix` carries: an object from the path of each node below it
    /// ("sub/b") to its metadata documents by their key ({".zarray": …, ".zattrs": …} or {"zarr.json": …}), and from ""
    /// to those of the group itself, if included; nullopt if it carries none. It is a copy that may be stale; the nodes
    /// themselves take precedence.
    std::optional<Value> (*load_consolidated)(const KeyValueStore& store, std::string_view prefix);
    /// Replaces it; `nodes` as from load_consolidated, without the group itself. Both are nullptr if the dialect has no
    /// consolidated metadata.
    void (*save_consolidated)(KeyValueStore& store, std::string_view prefix, const Value& nodes);

    /// Defaults for a new array.
    KeyScheme (*default_keys)();
    FillValue (*default_fill)(const DType& dtype);
    /// The keys of a converted array whose source has `keys`; nullptr: always default_keys().
    KeyScheme (*keys_like)(const KeyScheme& keys) = nullptr;
    /// Adapts details of a converted array that the dialect cannot express, without effect on readers, and adds
    /// sentences to `changes`; nullptr: nothing to adapt.
    void (*adapt)(ArrayMetadata& metadata, std::vector<std::string>& changes) = nullptr;
    /// Sentences for `info`: which features of this array the original program could not read.
    std::vector<std::string> (*remarks)(const ArrayMetadata& metadata);
    /// Whether a name directly below an array's prefix belongs to an array of this dialect, so that --overwrite may
    /// replace it: metadata, attributes, the folder of chunks, a chunk, the original program's lock files.
    bool (*owns)(const ArrayMetadata& metadata, std::string_view name);

    /// The keys of a node's documents, relative to its prefix. Consolidated metadata are copies of these.
    std::span<const std::string_view> documents = {};
    /// The key of a group's consolidated metadata, if separate from its own: ".zmetadata".
    std::string_view consolidated_key = "";

    /// Whether a document under metadata_key is a group's; nullptr if groups have another key.
    bool (*is_group)(std::string_view document) = nullptr;
    /// metadata_key is a common file name: call probe before reading the file as metadata.
    bool common_key = false;
    /// The name of the folder of chunks (the prefix of default_keys()) is distinctive: such a folder with chunks, but
    /// without metadata beside it, is an array that lost its metadata.
    bool own_folder = false;
};

/// Attribute with the text "null": the fill was null and became zeros in a dialect without null.
inline constexpr std::string_view null_fill_attribute = "_TESSERA_FILL_VALUE";
/// Attribute for dimension names in dialects without a member for them: xarray's convention.
inline constexpr std::string_view dimensions_attribute = "_ARRAY_DIMENSIONS";
/// netCDF's attribute for the value of missing elements. xarray takes the fill of Zarr v2 for it.
inline constexpr std::string_view fill_attribute = "_FillValue";

[[nodiscard]] std::span<const Dialect> dialect_table();
/// By name; throws invalid_argument that lists the names.
[[nodiscard]] const Dialect& dialect_named(std::string_view name);
/// The dialect of the array at `prefix`, or nullptr when there is none.
[[nodiscard]] const Dialect* probe_dialect(const KeyValueStore& store, std::string_view prefix);
/// The metadata of the array of that dialect at `prefix`. Throws not_found if there is none, and the errors of parse,
/// naming the key.
[[nodiscard]] ArrayMetadata load_metadata(const Dialect& dialect, const KeyValueStore& store, std::string_view prefix);
/// The dialect of the group at `prefix`, or nullptr when no group metadata are there.
[[nodiscard]] const Dialect* probe_group_dialect(const KeyValueStore& store, std::string_view prefix);

}  // namespace tessera
