// The dialect of Zarr v3 as zarr-python 3 writes it: one document, `zarr.json`, for an array or a group with its
// attributes and, in a group, consolidated metadata; chunks `c/1/0`, or named as in v2.
//
// A v3 data type has no byte order; the "bytes" codec has it. Here the dtype has it instead. If a filter between the
// two changes the elements, the codec keeps its endian, and the dtype gets the byte order of the filter's decoded
// dtype. This is because zarr-python 3 writes filters over a big-endian array with their own dtypes and a little-endian
// "bytes".
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "dialects.h"
#include "metadata_json.h"
#include "v3_types.h"

namespace tessera {

namespace {

constexpr std::string_view document_name = "zarr.json";
constexpr std::array<std::string_view, 1> document_keys{document_name};
constexpr std::array<std::string_view, 11> members{
    "shape",      "data_type",       "chunk_grid",  "chunk_key_encoding", "fill_value",          "codecs",
    "attributes", "dimension_names", "zarr_format", "node_type",          "storage_transformers"};
constexpr std::array<std::string_view, 2> separators{".", "/"};

KeyScheme v3_keys() {
    return {.prefix = "c/", .separator = "/", .suffix = "", .zero_d = "c"};
}

KeyScheme v2_keys() {
    return {.prefix = "", .separator = ".", .suffix = "", .zero_d = "0"};
}

// ---- the byte order of elements

/// Whether a codec keeps the dtype of its input, whatever the byte order.
bool keeps_dtype(const CodecConfig& codec) {
    const CodecRow* row = find_codec(codec.name);
    return row != nullptr && row->keeps_dtype;
}

/// The byte order of a filter's decoded elements, if its configuration has one.
std::optional<ByteOrder> decoded_order(const CodecConfig& filter, const DType& dtype) {
    const CodecRow* row = find_codec(filter.name);
    if (row == nullptr || row->decoded_dtype.empty()) return {};
    const Value* decoded = filter.configuration.find(row->decoded_dtype);
    if (decoded == nullptr || decoded->is_null()) return {};
    const DType said = in_context([&] { return fmt::format("codec \"{}\": {}", filter.name, row->decoded_dtype); },
                                  [&] { return DType::parse(decoded->as_string()); });
    // The filter rejects elements of another size; in structures each field has its own byte order.
    if (said.size() != dtype.size() || dtype.order() == ByteOrder::none || said.order() == ByteOrder::none) return {};
    return said.order();
}

/// Moves the endian of the chain's "bytes", and of that of inner chunks, to the dtype.
void take_endian(DType& dtype, std::vector<CodecConfig>& codecs, int depth = 0) {
    constexpr int deepest = 8;  // each level is copied
    if (depth > deepest) throw unsupported("shards are nested more than {} deep", deepest);
    const auto innermost = std::ranges::find_if_not(codecs, keeps_dtype);
    if (innermost == codecs.end()) return;
    Value& configuration = innermost->configuration;
    if (is_shard(*innermost)) {
        auto inner = read_codecs(configuration.at("codecs"));
        take_endian(dtype, inner, depth + 1);
        configuration.set("codecs", plain_codecs_json(inner));
    }
    if (const auto order = decoded_order(*innermost, dtype)) dtype = dtype.with_order(*order);
    const Value* endian = innermost->name == "bytes" ? configuration.find("endian") : nullptr;
    if (endian == nullptr) return;
    constexpr std::array<std::string_view, 2> choices{"little", "big"};
    const bool big =
        in_context([] { return "codec \"bytes\": endian"; }, [&] { return read_choice(*endian, choices); }) == "big";
    if (big && dtype.kind() == Kind::structure) {
        throw unsupported("codec \"bytes\": the fields of a structure are little-endian, and endian is \"big\"");
    }
    dtype = dtype.with_order(big ? ByteOrder::big : ByteOrder::little);
    configuration.erase("endian");
}

// ---- small types

bool is_small(const CodecConfig& codec) {
    return codec.name == small_type_codec_name;
}

/// Where the codec of a small type stands: in front of the innermost chain whose elements are the array's. In a shard
/// each inner chunk can then be read alone.
template <class Body>
void change_first_chain(std::vector<CodecConfig>& codecs, const Body& body) {
    const auto first = std::ranges::find_if_not(codecs, keeps_dtype);
    if (first == codecs.end() || !is_shard(*first)) return body(codecs);
    auto inner = read_codecs(first->configuration.at("codecs"));
    change_first_chain(inner, body);
    first->configuration.set("codecs", plain_codecs_json(inner));
}

bool given_last_bit(const CodecConfig& codec) {
    const Value* last = codec.configuration.find("last_bit");
    return last != nullptr && !last->is_null();
}

/// The bits of packbits, which takes them from the data type.
void limit_bits(std::vector<CodecConfig>& codecs, const SmallType& type) {
    for (CodecConfig& codec : codecs) {
        if (codec.name != "packbits") continue;
        if (!given_last_bit(codec)) codec.configuration.set("last_bit", type.bits - 1);
        const Value& last = codec.configuration.at("last_bit");
        if (last.as_int64() < type.bits) continue;
        throw invalid_argument("codec \"packbits\": last_bit is {}, but an element of {} has {} bits", last.as_int64(),
                               type.name(), type.bits);
    }
}

void take_small_type(const SmallType& type, DType& dtype, std::vector<CodecConfig>& codecs) {
    // Where the parts are bytes, their order has no effect.
    if (type.part_bytes() == 1) dtype = type.in_memory();
    change_first_chain(codecs, [&](std::vector<CodecConfig>& chain) {
        limit_bits(chain, type);
        CodecConfig codec{std::string(small_type_codec_name)};
        codec.configuration.set("name", type.name());
        chain.insert(chain.begin(), std::move(codec));
    });
}

/// The small type as which the elements are stored.
std::optional<SmallType> stored_type(const ArrayMetadata& m) {
    std::optional<SmallType> found;
    std::vector<CodecConfig> codecs = m.codecs;
    change_first_chain(codecs, [&](std::vector<CodecConfig>& chain) {
        const auto codec = std::ranges::find_if_not(chain, keeps_dtype);
        if (codec == chain.end() || !is_small(*codec)) return;
        found = small_type(codec->configuration.at("name").as_string());
        if (!found) return;
        std::vector<CodecConfig> after(std::next(codec), chain.end());
        for (const CodecConfig& packed : after) {
            if (packed.name != "packbits" || given_last_bit(packed)) continue;
            throw invalid_argument("codec \"packbits\": elements of {} need the last_bit, {}", found->name(),
                                   found->bits - 1);
        }
        limit_bits(after, *found);
    });
    return found;
}

// ---- reading

/// The configuration of an extension point, {"name": …, "configuration": …} or a bare name.
struct Named {
    std::string name;
    Value configuration = Value::object();
};

Named read_named(const Value& v) {
    CodecConfig named = codec_from_json(v);
    return {std::move(named.name), std::move(named.configuration)};
}

/// The lengths of chunks along one dimension: a number, or a list of numbers and [length, count].
ChunkEdges read_edges(const Value& v) {
    if (!v.is_array()) return ChunkEdges(read_number(v, 1, INT64_MAX));
    std::vector<ChunkEdges::Run> runs;
    for (const Value& item : v.as_array()) {
        if (!item.is_array()) {
            runs.push_back({read_number(item, 1, INT64_MAX), 1});
            continue;
        }
        if (item.as_array().size() != 2) throw corrupt("{} is no pair of a length and a count", excerpt(item));
        runs.push_back({read_number(item.as_array()[0], 1, INT64_MAX), read_number(item.as_array()[1], 1, INT64_MAX)});
    }
    return ChunkEdges(runs);
}

/// Sets the chunks of an array whose shape is known.
void read_chunk_grid(const Value& v, ArrayMetadata& m) {
    const Named grid = read_named(v);
    if (grid.name == "regular") {
        m.chunks = member(grid.configuration, "chunk_shape", [](const Value& shape) { return read_dims(shape, 1); });
        return;
    }
    if (grid.name != "rectilinear") {
        throw unsupported("the grid \"{}\" was found; there are \"regular\" and \"rectilinear\"", grid.name);
    }
    const Value* kind = grid.configuration.find("kind");
    if (kind == nullptr || *kind != Value("inline")) {
        throw unsupported("kind is {}, expected \"inline\"", kind != nullptr ? kind->dump() : "missing");
    }
    std::vector<ChunkEdges> edges = member(grid.configuration, "chunk_shapes", [&](const Value& shapes) {
        std::vector<ChunkEdges> all;
        for (const Value& along : shapes.as_array()) all.push_back(read_edges(along));
        return all;
    });
    if (std::cmp_not_equal(edges.size(), m.shape.rank())) {
        throw corrupt("chunk_shapes has {} dimensions, the array has {}", edges.size(), m.shape.rank());
    }
    set_edges(m, std::move(edges));
}

KeyScheme read_key_encoding(const Value& v) {
    const Named encoding = read_named(v);
    if (encoding.name != "default" && encoding.name != "v2") {
        throw unsupported("\"{}\" was found, expected \"default\" or \"v2\"", encoding.name);
    }
    const KeyScheme keys = encoding.name == "v2" ? v2_keys() : v3_keys();
    const Value* separator = encoding.configuration.find("separator");
    return separator == nullptr ? keys : keys.with_separator(read_choice(*separator, separators));
}

std::vector<std::optional<std::string>> read_dimension_names(const Value& v, int rank) {
    std::vector<std::optional<std::string>> names;
    if (v.is_null()) return names;
    for (const Value& name : v.as_array()) {
        names.push_back(name.is_null() ? std::nullopt : std::optional(name.as_string()));
    }
    if (names.size() != static_cast<std::size_t>(rank)) {
        throw corrupt("{} names were found for {} dimensions", names.size(), rank);
    }
    return names;
}

void require_optional(const Value& unknown) {
    for (const auto& [name, value] : unknown.as_object()) {
        const Value* must = value.is_object() ? value.find("must_understand") : nullptr;
        if (must != nullptr && *must == Value(false)) continue;
        throw unsupported(
            "member \"{}\" is not known, and does not say that it need not be understood "
            "(\"must_understand\": false)",
            name);
    }
}

std::string node_type(const Value& document) {
    return member(document, "node_type", [](const Value& v) { return v.as_string(); });
}

/// Of elements that may be missing: [v] is v; [null], of an element that may be missing in two ways, is missing, too.
ElementBytes read_optional_fill(const DType& dtype, const Value& v) {
    const Value* inner = &v;
    while (inner->is_array() && inner->as_array().size() == 1) inner = &inner->as_array().front();
    return inner->is_null() ? zero_element(dtype) : v3_fill_rules.read(dtype, *inner);
}

ArrayMetadata parse_metadata(const Value& meta) {
    const Value* format = meta.find("zarr_format");
    if (format != nullptr && format->is_string() && format->as_string().find("purl.org") != std::string::npos) {
        throw unsupported(
            "member \"zarr_format\": {}: this is a draft of v3 from before 2023, which no program writes any "
            "more and Tessera does not read; the program that wrote it may copy it to v2",
            format->dump());
    }
    require_format(meta, 3);
    if (const std::string type = node_type(meta); type != "array") {
        throw corrupt("member \"node_type\": \"{}\" was found, expected \"array\"", type);
    }
    ArrayMetadata m;
    m.unknown = unknown_members(meta, members);
    require_optional(m.unknown);
    const Value data_type = member(meta, "data_type", [](const Value& v) { return v; });
    const auto small = data_type.is_string() ? small_type(data_type.as_string()) : std::nullopt;
    m.dtype = small ? small->in_memory() : in_member("data_type", [&] { return read_data_type(data_type); });
    if (!small && data_type_json(m.dtype) != data_type) m.spelling.set("data_type", data_type);
    m.shape = member(meta, "shape", [](const Value& v) { return read_dims(v, 0); });
    member(meta, "chunk_grid", [&](const Value& grid) { read_chunk_grid(grid, m); });
    require_sizes(m);
    m.keys = member(meta, "chunk_key_encoding", read_key_encoding);
    m.codecs = member(meta, "codecs", read_codecs);
    in_member("codecs", [&] {
        take_endian(m.dtype, m.codecs);
        if (small) take_small_type(*small, m.dtype, m.codecs);
    });
    m.fill = member(meta, "fill_value", [&](const Value& v) {
        if (is_optional_type(data_type)) {  // whose null is no null of zarrita
            m.spelling.set("fill_value", v);
            return FillValue{.bytes = read_optional_fill(m.dtype, v), .spelling = {}, .error = {}};
        }
        // zarrita writes null, which v3 lacks, for the dtype's default.
        if (v.is_null()) return FillValue{.bytes = zero_element(m.dtype), .spelling = v, .error = {}};
        return FillValue{.bytes = small ? read_small_fill(*small, m.dtype, v) : v3_fill_rules.read(m.dtype, v),
                         .spelling = v,
                         .error = {}};
    });
    if (const Value* names = meta.find("dimension_names")) {
        if (names->is_array() && names->as_array().empty()) m.spelling.set("dimension_names", *names);
        m.dimension_names = in_member("dimension_names", [&] { return read_dimension_names(*names, m.shape.rank()); });
    }
    if (const Value* transformers = meta.find("storage_transformers")) {
        if (!in_member("storage_transformers", [&] { return transformers->as_array().empty(); })) {
            throw unsupported("member \"storage_transformers\": Tessera knows none, and some were found");
        }
    }
    return m;
}

std::optional<Value> load_document(const KeyValueStore& store, std::string_view prefix) {
    return get_object(store, join_key(prefix, document_name));
}

// ---- writing

/// Sets a member that v3 requires but other dialects may omit.
void set_default(Value& configuration, std::string_view name, Value otherwise) {
    if (configuration.find(name) == nullptr) configuration.set(name, std::move(otherwise));
}

Value codecs_json(ChunkSpec spec, std::span<const CodecConfig> codecs, bool structured);

/// The v3 JSON of one codec. `spec` is its input: the elements after the preceding codecs.
Value codec_json(CodecConfig codec, const ChunkSpec& spec, bool is_bytes, bool structured) {
    Value& configuration = codec.configuration;
    if (codec.name == "bytes") {
        const bool ordered = spec.dtype.order() != ByteOrder::none || spec.dtype.kind() == Kind::structure;
        if (ordered && !structured) {
            set_default(configuration, "endian", spec.dtype.order() == ByteOrder::big ? "big" : "little");
        }
        return codec_to_json(codec);
    }
    if (codec.name == "crc32c") return codec_to_json(codec);
    if (is_shard(codec)) {
        ChunkSpec inner = spec;
        inner.shape = read_dims(configuration.at("chunk_shape"), 1);
        configuration.set("codecs", codecs_json(inner, read_codecs(configuration.at("codecs")), structured));
    }
    if (codec.name == "blosc") {
        const std::int64_t size = is_bytes || spec.dtype.size() > 255 ? 1 : spec.dtype.size();
        set_default(configuration, "typesize", size);
        set_default(configuration, "clevel", 5);
        set_default(configuration, "shuffle", "shuffle");
        set_default(configuration, "blocksize", 0);
    }
    if (codec.name == "zstd") {
        set_default(configuration, "level", 0);
        set_default(configuration, "checksum", false);
    }
    if (codec.name == "gzip") set_default(configuration, "level", 5);
    Value json = Value::object();
    json.set("name", codec.name);
    json.set("configuration", std::move(configuration));  // even if empty: zarr-python requires it for numcodecs
    return json;
}

bool small_parts_are_swapped(const CodecConfig& codec) {
    const auto type = small_type(codec.configuration.at("name").as_string());
    return type && type->part_bytes() > 1;
}

Value codecs_json(ChunkSpec spec, std::span<const CodecConfig> codecs, bool structured) {
    Value list = Value::array();
    bool is_bytes = false;  // the codec's input is bytes without items
    std::optional<ByteOrder> packed;
    for (std::size_t i = 0; i < codecs.size(); ++i) {
        CodecConfig codec = codecs[i];
        if (is_small(codec)) {  // which is the data_type
            if (small_parts_are_swapped(codec)) packed = spec.dtype.order();
            spec = encoded_spec(std::move(spec), codecs.subspan(i, 1));
            continue;
        }
        if (packed && codec.name == "bytes") {
            set_default(codec.configuration, "endian", *packed == ByteOrder::big ? "big" : "little");
        }
        in_context([&] { return fmt::format("codec \"{}\"", codec.name); },
                   [&] { list.push_back(codec_json(codec, spec, is_bytes, structured)); });
        const CodecRow& row = codec_row(codecs[i].name);
        is_bytes = row.bytes_to_bytes != nullptr || (row.array_to_bytes != nullptr && codecs[i].name != "bytes");
        if (row.array_to_array != nullptr) spec = encoded_spec(std::move(spec), codecs.subspan(i, 1));
    }
    return list;
}

Value named_json(std::string_view name, std::string_view member_name, Value v) {
    CodecConfig named{std::string(name)};
    named.configuration.set(member_name, std::move(v));
    return codec_to_json(named);
}

Value key_encoding_json(const KeyScheme& keys) {
    for (const auto& [name, scheme] : {std::pair("default", v3_keys()), std::pair("v2", v2_keys())}) {
        for (const std::string_view separator : separators) {
            if (keys == scheme.with_separator(separator)) return named_json(name, "separator", separator);
        }
    }
    throw unsupported("v3 cannot express chunk keys such as {}: they are c/0/0 or c.0.0, or 0.0 or 0/0",
                      keys.key({0, 0}));
}

/// Whether elements may be missing: the data type and the codec are both of zarrs.
bool has_optional(const ArrayMetadata& m) {
    const Value* spelt = m.spelling.find("data_type");
    const auto is_optional = [](const CodecConfig& codec) {
        return codec.name == "optional" || codec.name == "zarrs.optional";
    };
    if (spelt == nullptr || !is_optional_type(*spelt)) return false;
    bool found = false;
    std::vector<CodecConfig> codecs = m.codecs;
    change_first_chain(codecs, [&](const auto& chain) { found = std::ranges::any_of(chain, is_optional); });
    return found;
}

/// The original spelling of the data type, if it still matches the dtype.
Value spelt_data_type(const ArrayMetadata& m) {
    const Value* spelt = m.spelling.find("data_type");
    if (spelt != nullptr && is_optional_type(*spelt) != has_optional(m)) spelt = nullptr;
    if (spelt != nullptr && read_data_type(*spelt).equal_but_order(m.dtype)) return *spelt;
    return data_type_json(m.dtype);
}

/// Whether the fill was spelt null and still has the value of that.
bool stays_null(const ArrayMetadata& m) {
    return m.fill.spelling && m.fill.spelling->is_null() && m.fill.bytes == zero_element(m.dtype);
}

/// The fill of elements that may be missing, as it was spelt if it has that value still.
Value optional_fill_json(const ArrayMetadata& m) {
    const Value* spelt = m.spelling.find("fill_value");
    if (spelt != nullptr && read_optional_fill(m.dtype, *spelt) == m.fill.bytes) return *spelt;
    Value fill = fill_json(v3_fill_rules, "v3", m.dtype, m.fill);
    for (const Value* type = m.spelling.find("data_type"); is_optional_type(*type);) {
        fill = Value(Value::Array{std::move(fill)});
        type = &type->at("configuration");
    }
    return fill;
}

/// How often a chain and the chains in its codecs have the codec of small types.
std::int64_t small_types_in(const Value& codecs) {
    std::int64_t count = 0;
    for (const Value& json : codecs.as_array()) {
        const CodecConfig codec = codec_from_json(json);
        if (is_small(codec)) ++count;
        const Value* inner = codec.configuration.find("codecs");
        if (inner != nullptr && inner->is_array()) count += small_types_in(*inner);
    }
    return count;
}

Value edges_json(const ChunkEdges& edges) {
    const std::vector<ChunkEdges::Run> runs = edges.runs();
    if (edges.endless()) return runs.front().length;
    Value list = Value::array();
    for (const ChunkEdges::Run& run : runs) {
        list.push_back(run.count == 1 ? Value(run.length) : Value(Value::Array{run.length, run.count}));
    }
    return list;
}

Value chunk_grid_json(const ArrayMetadata& m) {
    if (m.edges.empty()) return named_json("regular", "chunk_shape", dims_json(m.chunks));
    Value shapes = Value::array();
    for (const ChunkEdges& along : m.edges) shapes.push_back(edges_json(along));
    Value grid = named_json("rectilinear", "chunk_shapes", std::move(shapes));
    Value configuration = Value::object();
    configuration.set("kind", "inline");
    configuration.set("chunk_shapes", grid.at("configuration").at("chunk_shapes"));
    grid.set("configuration", std::move(configuration));
    return grid;
}

/// The content of an array's `zarr.json`; throws for metadata that it cannot express.
Value metadata_json(const ArrayMetadata& m, Value attributes) {
    require_sizes(m);
    require_optional(m.unknown);
    if (!m.fill.bytes) {
        throw unsupported("v3 cannot express the fill_value null (undefined): choose a value");
    }
    const auto small = stored_type(m);
    Value data_type = small ? Value(small->name()) : spelt_data_type(m);
    // zarr-python 3.1 wrote structures under another name, and their fill as base64.
    const bool structured = data_type.is_object() && data_type.at("name") == Value(older_structure_name);
    Value codecs = codecs_json({m.dtype, m.chunks, m.fill.bytes}, m.codecs, structured);

    DType read_again = small ? small->in_memory() : read_data_type(data_type);
    auto chain = read_codecs(codecs);
    take_endian(read_again, chain);
    if (small) take_small_type(*small, read_again, chain);
    if (small_types_in(plain_codecs_json(m.codecs)) != (small ? 1 : 0)) {
        throw unsupported(
            "v3 cannot express the codecs {}: {} is what the elements are, so that no filter comes before it",
            chain_text(m.codecs), small_type_codec_name);
    }
    if (!(read_again == m.dtype)) {
        throw unsupported(
            "v3 cannot express the byte order of elements of type {} with the codecs {}: they would read as {}",
            m.dtype.to_string(), chain_text(m.codecs), read_again.to_string());
    }
    Value meta = Value::object();
    meta.set("shape", dims_json(m.shape));
    meta.set("data_type", std::move(data_type));
    meta.set("chunk_grid", chunk_grid_json(m));
    meta.set("chunk_key_encoding", key_encoding_json(m.keys));
    const FillRules& rules = structured ? v3_structured_fill_rules : v3_fill_rules;
    meta.set("fill_value", Value());
    if (has_optional(m)) {
        meta.set("fill_value", optional_fill_json(m));
    } else if (!stays_null(m)) {
        meta.set("fill_value",
                 small ? small_fill_json(*small, m.dtype, m.fill) : fill_json(rules, "v3", m.dtype, m.fill));
    }
    meta.set("codecs", std::move(codecs));
    meta.set("attributes", std::move(attributes));
    if (!m.dimension_names.empty()) {
        Value names = dimension_names_json(m.dimension_names);
        (void)read_dimension_names(names, m.shape.rank());
        meta.set("dimension_names", std::move(names));
    } else if (m.shape.empty() && m.spelling.find("dimension_names") != nullptr) {
        meta.set("dimension_names", Value::array());
    }
    meta.set("zarr_format", 3);
    meta.set("node_type", "array");
    meta.set("storage_transformers", Value::array());
    for (const auto& [name, value] : m.unknown.as_object()) meta.set(name, value);
    return meta;
}

void put_document(KeyValueStore& store, std::string_view prefix, const Value& document) {
    put_object(store, join_key(prefix, document_name), document, zarr3_json_style);
}

/// The existing document, to be changed.
Value document_at(const KeyValueStore& store, std::string_view prefix) {
    auto document = load_document(store, prefix);
    if (!document) throw not_found("{} is not there", name_of(store, join_key(prefix, document_name)));
    return std::move(*document);
}

std::vector<std::string> what_zarr_python_cannot(const ArrayMetadata& m) {
    std::vector<std::string> said;
    if (stays_null(m)) {
        said.emplace_back("zarr-python 3 cannot open arrays whose fill_value is null, as zarrita writes them.");
    }
    if (has_optional(m)) {
        said.push_back(
            fmt::format("The elements may be missing, as zarrs has them, which zarr-python cannot read. Those that "
                        "are missing read as {}, the fill value.",
                        element_to_text(m.dtype, m.fill.bytes->data())));
    }
    if (const auto small = stored_type(m)) {
        said.push_back(fmt::format("The elements are stored as {}, which zarr-python cannot read.", small->name()));
    }
    if (m.dtype.kind() == Kind::variable_bytes && m.spelling.find("data_type") == nullptr && m.fill.bytes &&
        !m.fill.bytes->empty()) {
        said.emplace_back("zarr-python before 3.1 reads the fill value of \"bytes\" as the text of its base64.");
    }
    for (const CodecConfig& codec : m.codecs) {
        const Value* cname = codec.configuration.find("cname");
        if (cname != nullptr && *cname == Value("snappy")) {
            said.emplace_back(
                "Zarr for Python with numcodecs 0.16 or newer cannot read chunks compressed with snappy.");
        }
        if (codec.name.starts_with("numcodecs.")) {
            said.push_back(fmt::format("Of other programs, few but zarr-python know the codec {}.", codec.name));
        }
        if (codec.name == "scale_offset" || codec.name == "cast_value") {
            said.push_back(fmt::format("zarr-python before 3.3 cannot read the codec {}.", codec.name));
        }
        constexpr std::array<std::string_view, 6> others{"bitround",   "packbits",    "reshape",
                                                         "n5_default", "conditional", "zfp"};
        if (std::ranges::find(others, codec.name) != others.end()) {
            said.push_back(fmt::format("zarr-python cannot read the codec {}.", codec.name));
        }
    }
    if (m.dtype.kind() == Kind::structure && m.spelling.find("data_type") == nullptr) {
        said.emplace_back("zarr-python before 3.3 cannot read structures spelt \"struct\", only \"structured\".");
    }
    return said;
}

/// Makes the fields of structures little-endian.
void take_little_endian(ArrayMetadata& m, std::vector<std::string>& changes) {
    const DType little = m.dtype.with_order(ByteOrder::little);
    if (m.dtype.kind() != Kind::structure || little == m.dtype) return;
    changes.push_back(
        fmt::format("the fields become little-endian: {}, because v3 has no other structures", little.to_string()));
    if (m.fill.bytes) {
        NDArray element(little, {});
        copy_elements(view_bytes(std::as_const(*m.fill.bytes).data(), m.dtype, {}), element);
        m.fill.bytes->assign(element.bytes().begin(), element.bytes().end());
    }
    m.dtype = little;
}

Value consolidated_json(Value nodes) {
    Value consolidated = Value::object();
    consolidated.set("kind", "inline");
    consolidated.set("must_understand", false);
    consolidated.set("metadata", std::move(nodes));
    return consolidated;
}

struct V3 final : Dialect {
    constexpr V3()
        : Dialect({.name = "v3",
                   .about = "zarr-python 3 (zarr.json)",
                   .metadata_key = document_name,
                   .dimension_names = true,
                   .shards = true,
                   .edges = true,
                   .null_fill = false,
                   .separators = true,
                   .group_key = document_name,
                   .documents = document_keys}) {}

    bool probe(const KeyValueStore& store, std::string_view prefix) const override;
    ArrayMetadata parse(std::string_view text) const override { return parse_metadata(Value::parse(text)); }
    bool is_group(std::string_view text) const override;
    Value document(const ArrayMetadata& m) const override { return metadata_json(m, Value::object()); }
    void save(KeyValueStore& store, std::string_view prefix, const ArrayMetadata& m,
              const Value* attributes) const override;
    KeyScheme default_keys() const override { return v3_keys(); }
    FillValue default_fill(const DType& dtype) const override { return zero_fill(dtype); }
    /// v3 also allows v2's keys.
    KeyScheme keys_like(const KeyScheme& keys) const override {
        const bool bare = keys.prefix.empty() && keys.suffix.empty() && keys.zero_d == "0";
        return bare ? keys : v3_keys();
    }
    void adapt(ArrayMetadata& m, std::vector<std::string>& changes) const override { take_little_endian(m, changes); }
    std::vector<std::string> remarks(const ArrayMetadata& m) const override { return what_zarr_python_cannot(m); }

    std::optional<Value> load_attributes(const KeyValueStore& store, std::string_view prefix) const override;
    void save_attributes(KeyValueStore& store, std::string_view prefix, const Value& attributes) const override;
    bool probe_group(const KeyValueStore& store, std::string_view prefix) const override;
    Value load_group_unknown(const KeyValueStore& store, std::string_view prefix) const override;
    void save_group(KeyValueStore& store, std::string_view prefix, const Value& attributes,
                    const Value& unknown) const override;
    std::optional<Value> load_consolidated(const KeyValueStore& store, std::string_view prefix) const override;
    void save_consolidated(KeyValueStore& store, std::string_view prefix, const Value& nodes) const override;
};

constexpr V3 v3;

bool V3::is_group(std::string_view text) const {
    try {
        const Value object = Value::parse(text);
        const Value* type = object.find("node_type");
        return type != nullptr && *type == Value("group");
    } catch (const Error&) {
        return false;
    }
}

bool V3::probe_group(const KeyValueStore& store, std::string_view prefix) const {
    Buffer document;
    try {
        return store.get(join_key(prefix, document_name), document, metadata_limit) && is_group(text_of(document));
    } catch (const Error&) {
        return false;
    }
}

bool V3::probe(const KeyValueStore& store, std::string_view prefix) const {
    // An unreadable document counts as a damaged array: loading it reports the error.
    return store.contains(join_key(prefix, document_name)) && !probe_group(store, prefix);
}

std::optional<Value> V3::load_attributes(const KeyValueStore& store, std::string_view prefix) const {
    const auto document = load_document(store, prefix);
    const Value* attributes = document ? document->find("attributes") : nullptr;
    if (attributes == nullptr) return {};
    return reading(name_of(store, join_key(prefix, document_name)), [&] {
        (void)in_member("attributes", [&] { return attributes->as_object().size(); });
        return *attributes;
    });
}

void V3::save(KeyValueStore& store, std::string_view prefix, const ArrayMetadata& metadata,
              const Value* attributes) const {
    Value kept = Value::object();
    if (attributes != nullptr) {
        (void)attributes->as_object();
        kept = *attributes;
    } else if (auto there = load_attributes(store, prefix)) {
        kept = std::move(*there);
    }
    put_document(store, prefix, metadata_json(metadata, std::move(kept)));
}

void V3::save_attributes(KeyValueStore& store, std::string_view prefix, const Value& attributes) const {
    (void)attributes.as_object();
    Value document = document_at(store, prefix);
    document.set("attributes", attributes);
    put_document(store, prefix, document);
}

// ---- groups

Value V3::load_group_unknown(const KeyValueStore& store, std::string_view prefix) const {
    constexpr std::array<std::string_view, 4> known{"attributes", "zarr_format", "node_type", "consolidated_metadata"};
    const auto group = load_document(store, prefix);
    return group ? unknown_members(*group, known) : Value::object();
}

void V3::save_group(KeyValueStore& store, std::string_view prefix, const Value& attributes,
                    const Value& unknown) const {
    (void)attributes.as_object();
    require_optional(unknown);
    Value group = Value::object();
    group.set("attributes", attributes);
    group.set("zarr_format", 3);
    group.set("node_type", "group");
    for (const auto& [key, value] : unknown.as_object()) group.set(key, value);
    put_document(store, prefix, group);
}

std::optional<Value> V3::load_consolidated(const KeyValueStore& store, std::string_view prefix) const {
    const auto document = load_document(store, prefix);
    const Value* consolidated = document ? document->find("consolidated_metadata") : nullptr;
    if (consolidated == nullptr || consolidated->is_null()) return {};
    return reading(name_of(store, join_key(prefix, document_name)), [&] {
        return in_member("consolidated_metadata", [&] {
            member(*consolidated, "kind", [](const Value& v) {
                if (v != Value("inline")) throw unsupported("{} was found, expected \"inline\"", excerpt(v));
                return 0;
            });
            return member(*consolidated, "metadata", [](const Value& v) {
                Value::Object nodes;
                for (const auto& [path, node] : v.as_object()) {
                    nodes.emplace_back(path, Value::Object{{std::string(document_name), node}});
                }
                return Value(std::move(nodes));
            });
        });
    });
}

void V3::save_consolidated(KeyValueStore& store, std::string_view prefix, const Value& nodes) const {
    Value::Object metadata;
    for (const auto& [path, held] : nodes.as_object()) {
        Value node = held.at(document_name);
        // As zarr-python 3 writes it: a listed group has an empty copy of its own.
        const Value* type = node.find("node_type");
        if (type != nullptr && *type == Value("group")) {
            node.set("consolidated_metadata", consolidated_json(Value::object()));
        }
        metadata.emplace_back(path, std::move(node));
    }
    Value document = document_at(store, prefix);
    document.set("consolidated_metadata", consolidated_json(std::move(metadata)));
    put_document(store, prefix, document);
}

}  // namespace

constinit const Dialect& v3_dialect = v3;

}  // namespace tessera
