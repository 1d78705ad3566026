// The dialect of zarr-python 2: `.zarray`, `.zattrs`, `.zgroup`, `.zmetadata`, chunks `1.0` or `1/0`.
//
// `filters` and `compressor` are numcodecs' configurations. As a v3 chain they are: for order F, a transpose that
// reverses all dimensions; the filters; "bytes", unless a filter turns elements into bytes; and the compressor. Strings
// and bytes of variable length have dtype |O, and the filter that encodes them tells which they are.
//
// json2 ignores order F: zarr-python 2 hands it the chunk, whose rows it writes one after another. It reads them back
// in another order than it wrote. So such arrays have no transpose and are not written: `order` is a spelling then.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error_text.h>
#include <tessera/group_documents.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <array>
#include <map>

#include "base64.h"
#include "dialects.h"
#include "metadata_json.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 3> document_keys{v2_array_name, v2_group_name, v2_attributes_name};
constexpr std::array<std::string_view, 9> members{
    "chunks", "compressor", "dimension_separator", "dtype", "fill_value", "filters", "order", "shape", "zarr_format"};
constexpr std::array<std::string_view, 2> orders{"C", "F"};
constexpr std::array<std::string_view, 2> separator_choices{".", "/"};

/// Whether a codec of this name produces the same bytes in numcodecs and v3.
bool is_native(std::string_view name) {
    const CodecRow* row = find_codec(name);
    return row != nullptr && row->numcodecs;
}

// ---- fill values

ElementBytes read_fill_bytes(const DType& dtype, const Value& v) {
    switch (dtype.kind()) {
        case Kind::variable_text:
            if (v == Value(0)) return {};  // zarr-python's default, which it encodes as ""
            return element_from_value(dtype, v, Assign::exact);
        case Kind::variable_bytes:
            if (v == Value(0)) return {};
            return read_base64(v, 0, INT64_MAX);
        case Kind::bytes:
            if (auto bytes = v.is_string() ? base64_decode(v.as_string()) : std::nullopt) {
                bytes->resize(static_cast<std::size_t>(dtype.size()));
                return *bytes;
            }
            return element_from_value(dtype, v, Assign::numpy);  // the spelling before fills became base64
        case Kind::raw:
        case Kind::structure:
            return read_base64(v, dtype.size(), dtype.size());
        default:
            return element_from_value(dtype, v, Assign::numpy);
    }
}

Value write_fill_bytes(const DType& dtype, const ElementBytes& bytes) {
    switch (dtype.kind()) {
        case Kind::variable_text:
            return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        case Kind::bytes:
            return base64_encode(without_trailing_zeros(bytes));
        case Kind::variable_bytes:
        case Kind::raw:
        case Kind::structure:
            return base64_encode(bytes);
        default:
            return strict_number_json(dtype, bytes.data());
    }
}

std::string_view fill_limits(const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::real:
        case Kind::complex:
            return "a NaN must be the usual one, positive and without a payload";
        case Kind::extended:
        case Kind::extended_complex:
            return "it must be a number that a double holds";
        default:
            return "no JSON value reads back as these bytes";
    }
}

constexpr FillRules fill_rules{.read = read_fill_bytes, .write = write_fill_bytes, .limits = fill_limits};

FillValue read_fill(const DType& dtype, const Value& v) {
    FillValue fill{.bytes = {}, .spelling = v, .error = {}};
    if (!v.is_null()) fill.bytes = read_fill_bytes(dtype, v);
    // zarr-python 2 fills an absent chunk with the fill's JSON value: for bytes a string, for strings perhaps the
    // number 0.
    fill.always_stored = dtype.kind() == Kind::variable_bytes || (dtype.is_variable() && !v.is_string());
    return fill;
}

FillValue default_v2_fill(const DType& dtype) {
    FillValue fill = zero_fill(dtype);
    fill.always_stored = dtype.kind() == Kind::variable_bytes;
    return fill;
}

// ---- codecs

/// A filter or compressor under its canonical name.
CodecConfig read_codec(const Value& object) {
    const std::string id = object.at("id").as_string();
    CodecConfig codec{id};
    codec.configuration = object;
    codec.configuration.erase("id");
    // numcodecs 0.15 and later write null for the size of the elements.
    if (id == "blosc" && codec.configuration.find("typesize") != nullptr &&
        codec.configuration.at("typesize").is_null()) {
        codec.configuration.erase("typesize");
    }
    const Value* shuffle = id == "blosc" ? object.find("shuffle") : nullptr;
    const bool named = shuffle != nullptr && (*shuffle == Value(0) || *shuffle == Value(1) || *shuffle == Value(2));
    if (named) codec.configuration.set("shuffle", blosc_shuffles[static_cast<std::size_t>(shuffle->as_int64())]);
    // v3 cannot express the automatic shuffle (or one that blosc lacks) or a leading checksum.
    const bool native =
        shuffle != nullptr ? named : is_native(id) && (id != "crc32c" || codec.configuration.as_object().empty());
    if (!native) codec.name = "numcodecs." + id;
    return codec;
}

std::vector<CodecConfig> read_filters(const Value& filters) {
    std::vector<CodecConfig> codecs;
    if (filters.is_null()) return codecs;
    for (const Value& filter : filters.as_array()) codecs.push_back(read_codec(filter));
    return codecs;
}

/// Appends a codec, preceded by "bytes" if it needs bytes and the chain still yields elements.
void append_codec(std::vector<CodecConfig>& chain, bool& is_bytes, CodecConfig codec) {
    const CodecRow& row = codec_row(codec.name);
    if (row.bytes_to_bytes == nullptr && is_bytes) {
        throw unsupported("{} needs elements, but stands after {}, which gives bytes", codec.name, chain.back().name);
    }
    if (row.bytes_to_bytes != nullptr && !is_bytes) chain.push_back({"bytes"});
    is_bytes = row.array_to_array == nullptr;
    chain.push_back(std::move(codec));
}

std::string_view numcodecs_id(std::string_view name) {
    constexpr std::string_view prefix = "numcodecs.";
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

/// The filters that encode elements of dtype |O.
std::string object_filters() {
    std::vector<std::string_view> names;
    for (const CodecRow& row : codec_table()) {
        if (row.objects != Kind::object) names.push_back(numcodecs_id(row.name));
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

/// The real dtype of |O elements, by the filter that encodes them.
DType object_dtype(const std::vector<CodecConfig>& filters) {
    if (filters.empty()) {
        throw unsupported(
            "the elements are Python objects (dtype |O), and no filter says how they are encoded; there are {}",
            object_filters());
    }
    const std::string& name = filters.front().name;
    const CodecRow* row = find_codec(name);
    const Kind kind = row == nullptr ? Kind::object : row->objects;
    if (kind == Kind::variable_text) return DType::variable_text();
    if (kind == Kind::variable_bytes) return DType::variable_bytes();
    throw unsupported(
        "the elements are Python objects (dtype |O) encoded by {}, which Tessera does not read; there are {}",
        numcodecs_id(name), object_filters());
}

/// json2 and its like, which ignore the order.
bool is_json(const CodecConfig& codec) {
    return codec.name == "numcodecs.json2" || codec.name == "numcodecs.json" || codec.name == "numcodecs.msgpack2";
}

/// Whether the order is F, which the chunks do not have.
bool has_json_in_f(const ArrayMetadata& m) {
    return m.shape.rank() > 1 && m.spelling.find("order") != nullptr && !m.codecs.empty() && is_json(m.codecs.front());
}

// ---- reading

void append_chain(const Value& meta, const std::vector<CodecConfig>& filters, std::vector<CodecConfig>& chain) {
    bool is_bytes = false;
    in_member("filters", [&] {
        for (const CodecConfig& filter : filters) append_codec(chain, is_bytes, filter);
    });
    member(meta, "compressor", [&](const Value& v) {
        if (!v.is_null()) append_codec(chain, is_bytes, read_codec(v));
        return 0;
    });
    if (!is_bytes) chain.push_back({"bytes"});
}

ArrayMetadata parse_metadata(const Value& meta) {
    require_format(meta, 2);
    ArrayMetadata m;
    const auto filters = member(meta, "filters", read_filters);
    m.dtype = member(meta, "dtype", [&](const Value& v) {
        return v == Value("|O") ? object_dtype(filters) : read_numpy_dtype(v, "v2");
    });
    m.shape = member(meta, "shape", [](const Value& v) { return read_dims(v, 0); });
    m.chunks = member(meta, "chunks", [](const Value& v) { return read_dims(v, 1); });
    require_sizes(m);
    m.fill = member(meta, "fill_value", [&](const Value& v) { return read_fill(m.dtype, v); });

    const bool fortran = member(meta, "order", [](const Value& v) { return read_choice(v, orders); }) == "F";
    if (fortran && m.shape.rank() > 1 && (filters.empty() || !is_json(filters.front()))) {
        m.codecs.push_back(reversal(m.shape.rank()));
    } else if (fortran) {
        m.spelling.set("order", "F");
    }
    append_chain(meta, filters, m.codecs);

    m.keys = v2_keys();
    if (const Value* separator = meta.find("dimension_separator")) {
        m.keys.separator = in_member("dimension_separator", [&] { return read_choice(*separator, separator_choices); });
        m.spelling.set("dimension_separator", *separator);
    }
    m.unknown = unknown_members(meta, members);
    return m;
}

// ---- writing

/// A codec in numcodecs' configuration. `item_size` is the size of the elements before they became bytes.
Value codec_json(const CodecConfig& codec, std::int64_t item_size) {
    const bool native = is_native(codec.name);
    if (!native && !codec.name.starts_with("numcodecs.")) {
        throw unsupported("v2 cannot express the codec {}", codec.name);
    }
    Value json = codec.configuration;
    if (codec.name == "blosc") {
        require_member(codec, "typesize", item_size > 255 ? 1 : item_size, "v2");
        json.erase("typesize");
        json.set("shuffle", shuffle_number(codec.configuration, "v2"));
        if (json.find("clevel") == nullptr) json.set("clevel", 5);
        if (json.find("blocksize") == nullptr) json.set("blocksize", 0);
    }
    // Older numcodecs reject the member, and false is its default.
    if (codec.name == "zstd" && json.find("checksum") != nullptr && json.at("checksum") == Value(false)) {
        json.erase("checksum");
    }
    json.set("id", numcodecs_id(codec.name));
    return json;
}

/// v2 has no "bytes", so it cannot have another byte order than its input.
void require_own_order(const CodecConfig& bytes, const DType& dtype) {
    const Value* endian = bytes.configuration.find("endian");
    if (endian == nullptr || dtype.order() == ByteOrder::none) return;
    if ((endian->as_string() == "big") == (dtype.order() == ByteOrder::big)) return;
    throw unsupported("v2 cannot express the codec bytes with endian {} for elements of type {}", endian->dump(),
                      dtype.to_string());
}

/// Sets order, filters and compressor; throws unsupported for a chain that v2 cannot express.
void set_codecs(Value& meta, const ArrayMetadata& m) {
    std::span<const CodecConfig> chain = m.codecs;
    const bool fortran = !chain.empty() && chain.front() == reversal(m.shape.rank());
    const DType dtype = encoded_spec({m.dtype, m.chunks, m.fill.bytes}, chain).dtype;
    if (fortran) chain = chain.subspan(1);
    if (has_json_in_f(m) || (fortran && !chain.empty() && is_json(chain.front()))) {
        throw unsupported(
            "v2 cannot express order F with json2: zarr-python 2 reads such chunks in another order than "
            "it writes; order C works, and a copy has it");
    }
    meta.set("order", fortran || (m.shape.rank() < 2 && m.spelling.find("order") != nullptr) ? "F" : "C");

    Value compressor;
    Value filters = Value::array();
    std::int64_t item_size = dtype.size();
    for (const CodecConfig& codec : chain) {
        if (codec.name == "bytes") {
            require_own_order(codec, dtype);
            continue;
        }
        if (&codec == &chain.back() && codec_row(codec.name).compressor) {
            compressor = codec_json(codec, item_size);
        } else {
            filters.push_back(codec_json(codec, item_size));
        }
        if (codec_row(codec.name).array_to_array == nullptr) item_size = 1;
    }
    meta.set("compressor", std::move(compressor));
    meta.set("filters", filters.as_array().empty() ? Value() : std::move(filters));
}

/// The content of `.zarray`; throws for metadata that it cannot express.
Value metadata_json(const ArrayMetadata& m) {
    if (!m.dtype.is_variable()) require_numpy_dtype(m.dtype, "v2");
    require_sizes(m);
    require_no_dimension_names(m, "v2");
    require_one_chunk_shape(m, "v2");
    KeyScheme keys = v2_keys();
    if (m.keys.separator == "/") keys.separator = m.keys.separator;
    require_keys(m, keys, "v2");

    Value meta = m.unknown;
    // In alphabetical order, as they are written; set_codecs sets three.
    meta.set("chunks", dims_json(m.chunks));
    meta.set("compressor", Value());
    if (keys.separator == "/" || m.spelling.find("dimension_separator") != nullptr) {
        meta.set("dimension_separator", keys.separator);
    }
    meta.set("dtype", m.dtype.is_variable() ? Value("|O") : m.dtype.descr());
    meta.set("fill_value", m.fill.bytes ? fill_json(fill_rules, "v2", m.dtype, m.fill) : Value());
    meta.set("filters", Value());
    meta.set("order", "C");
    meta.set("shape", dims_json(m.shape));
    meta.set("zarr_format", 2);
    set_codecs(meta, m);
    return meta;
}

std::vector<std::string> what_programs_cannot(const ArrayMetadata& m) {
    std::vector<std::string> said;
    for (const CodecConfig& codec : m.codecs) {
        const Value* cname = codec.configuration.find("cname");
        if (cname != nullptr && *cname == Value("snappy")) {
            said.emplace_back(
                "Zarr for Python with numcodecs 0.16 or newer cannot read chunks compressed with snappy.");
        }
        const Value* checksum = codec.name == "zstd" ? codec.configuration.find("checksum") : nullptr;
        if (checksum != nullptr && *checksum == Value(true)) {
            said.emplace_back("Zarr for Python with numcodecs before 0.13 does not know zstd's checksum.");
        }
    }
    if (has_json_in_f(m)) {
        said.emplace_back(
            "zarr-python 2 reads text in json2 and order F in another order than it wrote. It is read here "
            "as it was written, and is not changed; a copy is right everywhere.");
    }
    if (m.dtype.kind() == Kind::extended || m.dtype.kind() == Kind::extended_complex) {
        said.emplace_back("zarr-python 3 cannot open arrays of long doubles.");
    }
    return said;
}

struct V2 final : Dialect {
    constexpr V2()
        : Dialect({.name = "v2",
                   .about = "zarr-python 2 (.zarray), which zarr-python 3 reads and writes too",
                   .metadata_key = v2_array_name,
                   .separators = true,
                   .fill_is_missing = true,  // not for v3; xarray does not read older formats
                   .group_key = v2_group_name,
                   .documents = document_keys,
                   .consolidated_key = v2_consolidated_name,
                   .url_scheme = "zarr2"}) {}

    ArrayMetadata parse(std::string_view text) const override { return parse_metadata(Value::parse(text)); }
    Value document(const ArrayMetadata& m) const override { return metadata_json(m); }
    KeyScheme default_keys() const override { return v2_keys(); }
    FillValue default_fill(const DType& dtype) const override { return default_v2_fill(dtype); }
    /// v2 shares only the separator with other dialects.
    KeyScheme keys_like(const KeyScheme& keys) const override {
        const bool known = std::ranges::find(separator_choices, keys.separator) != separator_choices.end();
        return known ? v2_keys().with_separator(keys.separator) : v2_keys();
    }
    std::vector<std::string> remarks(const ArrayMetadata& m) const override { return what_programs_cannot(m); }

    bool probe_group(const PlaceView& place) const override;
    Value load_group_unknown(const PlaceView& place) const override;
    void save_group(const PlaceRef& place, const Value& attributes, const Value& unknown) const override;
    std::optional<Value> load_consolidated(const PlaceView& place) const override;
    void save_consolidated(const PlaceRef& place, const Value& nodes) const override;
};

constexpr V2 v2;

// ---- groups

bool V2::probe_group(const PlaceView& place) const {
    return place.store.open(place.key(v2_group_name)) != nullptr;
}

Value V2::load_group_unknown(const PlaceView& place) const {
    constexpr std::array<std::string_view, 1> known{"zarr_format"};
    const auto group = get_object(place.store, place.key(v2_group_name));
    return group ? unknown_members(*group, known) : Value::object();
}

void V2::save_group(const PlaceRef& place, const Value& attributes, const Value& unknown) const {
    Value group = unknown;
    group.set("zarr_format", 2);
    // As zarr-python 2: writes no file for no attributes, but overwrites an existing one.
    if (!attributes.as_object().empty() || place.store.open(place.key(v2_attributes_name)) != nullptr) {
        save_attributes(place, attributes);
    }
    // Keep the order of members: other programs may rely on it, as NCZarr's dimensions do.
    const JsonStyle as_given{.indent = 4, .sort_keys = false, .ascii = true};
    put_object(place.store, place.key(v2_group_name), group,
               unknown.as_object().empty() ? python_json_style : as_given);
}

std::optional<Value> V2::load_consolidated(const PlaceView& place) const {
    const std::string key = place.key(v2_consolidated_name);
    const std::optional<Value> document = get_object(place.store, key);
    if (!document) return {};
    return reading(place.store.name_of(key), [&] {
        member(*document, "zarr_consolidated_format", [](const Value& v) {
            if (v != Value(1)) throw unsupported("{} was found, expected 1", v.dump());
            return 0;
        });
        return member(*document, "metadata", [](const Value& v) {
            std::map<std::string, Value::Object> nodes;
            for (const auto& [path, metadata] : v.as_object()) {
                const std::size_t slash = path.rfind('/');
                const std::string node = slash == std::string::npos ? "" : path.substr(0, slash);
                nodes[node].emplace_back(path.substr(slash + 1), metadata);  // npos + 1 is 0
            }
            Value::Object list;
            for (auto& [path, held] : nodes) list.emplace_back(path, std::move(held));
            return Value(std::move(list));
        });
    });
}

void V2::save_consolidated(const PlaceRef& place, const Value& nodes) const {
    Value::Object metadata;
    for (const std::string_view key : {v2_group_name, v2_attributes_name}) {
        if (auto own = get_object(place.store, place.key(key))) metadata.emplace_back(key, std::move(*own));
    }
    for (const auto& [node, held] : nodes.as_object()) {
        if (node.empty()) continue;  // the group's own documents are kept
        for (const auto& [key, document] : held.as_object()) {
            metadata.emplace_back(join_key(node, key), document);
        }
    }
    put_object(place.store, place.key(v2_consolidated_name), v2_consolidated_document(std::move(metadata)));
}

}  // namespace

constinit const Dialect& v2_dialect = v2;

}  // namespace tessera
