// The common model of an array, and one constant object for each Zarr format (Dialect) that parses and saves it.
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
#include <tessera/key_value_store.h>
#include <tessera/shape.h>
#include <tessera/value.h>

namespace tessera {

// ArrayMetadata: the common model of an array, in Zarr v3 terms. Every format is lowered to it; it contains no JSON
// text.

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

// Dialects: one constant object for each Zarr format, with everything specific to it. What most have in common is here
// the default.

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
    std::string_view url_scheme = {};  ///< in addresses of ZEP 8: "zarr3"; "" if it has none
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

    /// Whether an array of this dialect lies at `place`: by its metadata_key.
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

    /// Whether a group of this dialect lies at `place`.
    [[nodiscard]] virtual bool probe_group(const PlaceView& place) const;
    /// Creates the group at `place` with these attributes. `unknown` holds members of its document that the dialect
    /// does not know; throws unsupported, naming the member, for one that must be understood. Without groups it throws
    /// unsupported, as save_consolidated does.
    virtual void save_group(const PlaceRef& place, const Value& attributes, const Value& unknown) const;
    /// The members of the group's document that the dialect does not know, an object.
    [[nodiscard]] virtual Value load_group_unknown(const PlaceView& place) const;

    /// The attributes of the array or group at `place`, an object; nullopt if none were ever stored.
    [[nodiscard]] virtual std::optional<Value> load_attributes(const PlaceView& place) const;
    /// Replaces them. The array or group must exist.
    virtual void save_attributes(const PlaceRef& place, const Value& attributes) const;

    /// The consolidated metadata that the group at `place` carries: an object from the path of each node below it
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
/// The dialect of the array at `place`, or nullptr when there is none.
[[nodiscard]] const Dialect* probe_dialect(const PlaceView& place);
/// The metadata of the array of that dialect at `place`. Throws not_found if there is none, and the errors of parse,
/// naming the key.
[[nodiscard]] ArrayMetadata load_metadata(const Dialect& dialect, const PlaceView& place);
/// The dialect of the group at `place`, or nullptr when no group metadata are there.
[[nodiscard]] const Dialect* probe_group_dialect(const PlaceView& place);

}  // namespace tessera
