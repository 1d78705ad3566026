// Dialect: one constant object for each Zarr format, with everything specific to it. Each is defined in its own file
// (zmeta.cpp, …) and listed in one table (dialect.cpp). What most have in common is here the default.
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

/// What is constant in a dialect.
struct DialectFacts {
    std::string_view name;          ///< for --format: "zmeta"
    std::string_view about;         ///< "zarr-python 0.4 (__zmeta__), Tessera's own"
    std::string_view metadata_key;  ///< of an array, relative to its prefix: "__zmeta__"
    bool dimension_names = false;   ///< whether metadata hold them; else xarray's attribute `_ARRAY_DIMENSIONS` does
    bool shards = false;            ///< whether a file may hold many chunks
    bool edges = false;             ///< whether chunks may differ in length
    bool null_fill = true;          ///< whether a fill may be null in new metadata
    bool separators = false;        ///< whether chunks may be named 1/0 as well as 1.0
    bool fill_is_missing = false;   ///< xarray takes elements that equal the fill for missing data
    std::string_view cannot_read_zstd = {};  ///< its original program, if that cannot read today's zstd; else ""
    std::string_view group_key = {};         ///< of a group: ".zgroup"; "" if all groups are plain directories
    /// The keys of a node's documents, relative to its prefix, the last of which holds the attributes. Consolidated
    /// metadata are copies of these.
    std::span<const std::string_view> documents = {};
    /// The key of a group's consolidated metadata, if separate from its own: ".zmetadata".
    std::string_view consolidated_key = {};
    /// metadata_key is a common file name: call probe before reading the file as metadata.
    bool common_key = false;
    /// The name of the folder of chunks (the prefix of default_keys()) is distinctive: such a folder with chunks, but
    /// without metadata beside it, is an array that lost its metadata.
    bool own_folder = false;
};

class Dialect : public DialectFacts {
public:
    constexpr explicit Dialect(const DialectFacts& facts) : DialectFacts(facts) {}
    Dialect(const Dialect&) = delete;
    Dialect& operator=(const Dialect&) = delete;

    /// Whether it has groups that are more than plain directories, and their consolidated metadata.
    [[nodiscard]] bool has_groups() const { return !group_key.empty(); }

    /// Whether an array of this dialect lies at `prefix`: by its metadata_key.
    [[nodiscard]] virtual bool probe(const PlaceView& place) const;
    /// Parses the document under metadata_key. Throws corrupt or unsupported, naming the member, the expected value and
    /// the value found.
    [[nodiscard]] virtual ArrayMetadata parse(std::string_view document) const = 0;
    /// Whether a document under metadata_key is a group's.
    [[nodiscard]] virtual bool is_group(std::string_view /*document*/) const { return false; }
    /// The document under metadata_key, without attributes. Throws unsupported, naming the member that the dialect
    /// cannot express.
    [[nodiscard]] virtual Value document(const ArrayMetadata& metadata) const = 0;
    /// The checks of document alone.
    void require_expressible(const ArrayMetadata& metadata) const { (void)document(metadata); }
    /// Writes the metadata, as the last step of making an array, and the attributes (an object). If `attributes` is
    /// null, existing attributes are kept. Throws as document; nothing is written then.
    virtual void save(const PlaceRef& place, const ArrayMetadata& metadata, const Value* attributes) const;

    /// Whether a group of this dialect lies at `prefix`.
    [[nodiscard]] virtual bool probe_group(const PlaceView& place) const;
    /// Creates the group at `prefix` with these attributes. `unknown` holds members of its document that the dialect
    /// does not know; throws unsupported, naming the member, for one that must be understood. Without groups it throws
    /// unsupported, as save_consolidated does.
    virtual void save_group(const PlaceRef& place, const Value& attributes, const Value& unknown) const;
    /// The members of the group's document that the dialect does not know, an object.
    [[nodiscard]] virtual Value load_group_unknown(const PlaceView& place) const;

    /// The attributes of the array or group at `prefix`, an object; nullopt if none were ever stored.
    [[nodiscard]] virtual std::optional<Value> load_attributes(const PlaceView& place) const;
    /// Replaces them. The array or group must exist.
    virtual void save_attributes(const PlaceRef& place, const Value& attributes) const;

    /// The consolidated metadata that the group at `prefix` carries: an object from the path of each node below it
    /// ("sub/b") to its metadata documents by their key ({".zarray": …, ".zattrs": …} or {"zarr.json": …}), and from ""
    /// to those of the group itself, if included; nullopt if it carries none. It is a copy that may be stale; the nodes
    /// themselves take precedence.
    [[nodiscard]] virtual std::optional<Value> load_consolidated(const PlaceView& place) const;
    /// Replaces it; `nodes` as from load_consolidated, without the group itself.
    virtual void save_consolidated(const PlaceRef& place, const Value& nodes) const;

    /// Defaults for a new array.
    [[nodiscard]] virtual KeyScheme default_keys() const = 0;
    [[nodiscard]] virtual FillValue default_fill(const DType& dtype) const = 0;
    /// The keys of a converted array whose source has `keys`.
    [[nodiscard]] virtual KeyScheme keys_like(const KeyScheme& /*keys*/) const { return default_keys(); }
    /// Adapts details of a converted array that the dialect cannot express, without effect on readers, and adds
    /// sentences to `changes`.
    virtual void adapt(ArrayMetadata& /*metadata*/, std::vector<std::string>& /*changes*/) const {}
    /// Sentences for `info`: which features of this array the original program could not read.
    [[nodiscard]] virtual std::vector<std::string> remarks(const ArrayMetadata& metadata) const = 0;
    /// Whether a name directly below an array's prefix belongs to an array of this dialect, so that --overwrite may
    /// replace it: metadata, attributes, the folder of chunks, a chunk, the original program's lock files.
    [[nodiscard]] virtual bool owns(const ArrayMetadata& metadata, std::string_view child) const;

protected:
    ~Dialect() = default;
};

/// Attribute with the text "null": the fill was null and became zeros in a dialect without null.
inline constexpr std::string_view null_fill_attribute = "_TESSERA_FILL_VALUE";
/// Attribute for dimension names in dialects without a member for them: xarray's convention.
inline constexpr std::string_view dimensions_attribute = "_ARRAY_DIMENSIONS";
/// netCDF's attribute for the value of missing elements. xarray takes the fill of Zarr v2 for it.
inline constexpr std::string_view fill_attribute = "_FillValue";

/// From the oldest to the newest.
[[nodiscard]] std::span<const Dialect* const> dialect_table();
/// By name; throws invalid_argument that lists the names.
[[nodiscard]] const Dialect& dialect_named(std::string_view name);
/// The dialect of the array at `prefix`, or nullptr when there is none.
[[nodiscard]] const Dialect* probe_dialect(const PlaceView& place);
/// The metadata of the array of that dialect at `prefix`. Throws not_found if there is none, and the errors of parse,
/// naming the key.
[[nodiscard]] ArrayMetadata load_metadata(const Dialect& dialect, const PlaceView& place);
/// The dialect of the group at `prefix`, or nullptr when no group metadata are there.
[[nodiscard]] const Dialect* probe_group_dialect(const PlaceView& place);

}  // namespace tessera
