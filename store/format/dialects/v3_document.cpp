#include "v3_document.h"

#include <fmt/format.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "v3_codecs.h"
#include "v3_grid.h"
#include "v3_types.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 11> v3_array_members{
    "shape",      "data_type",       "chunk_grid",  "chunk_key_encoding", "fill_value",          "codecs",
    "attributes", "dimension_names", "zarr_format", "node_type",          "storage_transformers"};

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

/// Of elements that may be missing: [v] is v; [null], of an element that may be missing in two ways, is missing, too.
ElementBytes read_optional_fill(const DType& dtype, const Value& v) {
    const Value* inner = &v;
    while (inner->is_array() && inner->as_array().size() == 1) inner = &inner->as_array().front();
    return inner->is_null() ? zero_element(dtype) : v3_fill_rules.read(dtype, *inner);
}

/// Whether elements may be missing: the data type and the codec are both of zarrs.
bool has_optional(const ArrayMetadata& m) {
    const Value* spelt = m.spelling.find("data_type");
    return spelt != nullptr && is_optional_type(*spelt) && has_optional_codec(m);
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

}  // namespace

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

namespace {

void refuse_draft(const Value& meta) {
    const Value* format = meta.find("zarr_format");
    if (format == nullptr || !format->is_string() || format->as_string().find("purl.org") == std::string::npos) return;
    throw unsupported(
        "member \"zarr_format\": {}: this is a draft of v3 from before 2023, which no program writes any "
        "more and Tessera does not read; the program that wrote it may copy it to v2",
        format->dump());
}

FillValue read_v3_fill(const Value& v, const Value& data_type, const std::optional<SmallType>& small,
                       ArrayMetadata& m) {
    if (is_optional_type(data_type)) {  // whose null is no null of zarrita
        m.spelling.set("fill_value", v);
        return FillValue{.bytes = read_optional_fill(m.dtype, v), .spelling = {}, .error = {}};
    }
    // zarrita writes null, which v3 lacks, for the dtype's default.
    if (v.is_null()) return FillValue{.bytes = zero_element(m.dtype), .spelling = v, .error = {}};
    return FillValue{.bytes = small ? read_small_fill(*small, m.dtype, v) : v3_fill_rules.read(m.dtype, v),
                     .spelling = v,
                     .error = {}};
}

/// What may be left out.
void read_optional_members(const Value& meta, ArrayMetadata& m) {
    if (const Value* names = meta.find("dimension_names")) {
        if (names->is_array() && names->as_array().empty()) m.spelling.set("dimension_names", *names);
        m.dimension_names = in_member("dimension_names", [&] { return read_dimension_names(*names, m.shape.rank()); });
    }
    if (const Value* transformers = meta.find("storage_transformers")) {
        if (!in_member("storage_transformers", [&] { return transformers->as_array().empty(); })) {
            throw unsupported("member \"storage_transformers\": Tessera knows none, and some were found");
        }
    }
}

}  // namespace

ArrayMetadata read_v3_document(const Value& meta) {
    refuse_draft(meta);
    require_format(meta, 3);
    if (const std::string type = member(meta, "node_type", [](const Value& v) { return v.as_string(); });
        type != "array") {
        throw corrupt("member \"node_type\": \"{}\" was found, expected \"array\"", type);
    }
    ArrayMetadata m;
    m.unknown = unknown_members(meta, v3_array_members);
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
    in_member("codecs", [&] { take_codecs(m.dtype, m.codecs, small); });
    m.fill = member(meta, "fill_value", [&](const Value& v) { return read_v3_fill(v, data_type, small, m); });
    read_optional_members(meta, m);
    return m;
}

namespace {

/// Throws unsupported if elements would be of another type when the document is read again.
void require_same_type(const ArrayMetadata& m, const std::optional<SmallType>& small, const Value& data_type,
                       const Value& codecs) {
    DType read_again = small ? small->in_memory() : read_data_type(data_type);
    auto chain = read_codecs(codecs);
    take_codecs(read_again, chain, small);
    require_small_type_first(m, small);
    if (!(read_again == m.dtype)) {
        throw unsupported(
            "v3 cannot express the byte order of elements of type {} with the codecs {}: they would read as {}",
            m.dtype.to_string(), chain_text(m.codecs), read_again.to_string());
    }
}

Value v3_fill(const ArrayMetadata& m, const std::optional<SmallType>& small, bool structured) {
    if (has_optional(m)) return optional_fill_json(m);
    if (stays_null(m)) return {};
    if (small) return small_fill_json(*small, m.dtype, m.fill);
    return fill_json(structured ? v3_structured_fill_rules : v3_fill_rules, "v3", m.dtype, m.fill);
}

void set_dimension_names(Value& meta, const ArrayMetadata& m) {
    if (!m.dimension_names.empty()) {
        Value names = dimension_names_json(m.dimension_names);
        (void)read_dimension_names(names, m.shape.rank());
        meta.set("dimension_names", std::move(names));
    } else if (m.shape.empty() && m.spelling.find("dimension_names") != nullptr) {
        meta.set("dimension_names", Value::array());
    }
}

}  // namespace

Value v3_document(const ArrayMetadata& m, Value attributes) {
    require_sizes(m);
    require_optional(m.unknown);
    if (!m.fill.bytes) {
        throw unsupported("v3 cannot express the fill_value null (undefined): choose a value");
    }
    const auto small = stored_type(m);
    Value data_type = small ? Value(small->name()) : spelt_data_type(m);
    // zarr-python 3.1 wrote structures under another name, and their fill as base64.
    const bool structured = data_type.is_object() && data_type.at("name") == Value(older_structure_name);
    Value codecs = codecs_json(m, structured);
    require_same_type(m, small, data_type, codecs);
    Value meta = Value::object();
    meta.set("shape", dims_json(m.shape));
    meta.set("data_type", std::move(data_type));
    meta.set("chunk_grid", chunk_grid_json(m));
    meta.set("chunk_key_encoding", key_encoding_json(m.keys));
    meta.set("fill_value", v3_fill(m, small, structured));
    meta.set("codecs", std::move(codecs));
    meta.set("attributes", std::move(attributes));
    set_dimension_names(meta, m);
    meta.set("zarr_format", 3);
    meta.set("node_type", "array");
    meta.set("storage_transformers", Value::array());
    for (const auto& [name, value] : m.unknown.as_object()) meta.set(name, value);
    return meta;
}

namespace {

/// What programs in Python cannot read of a codec.
void add_unread(const CodecConfig& codec, std::vector<std::string>& said) {
    const Value* cname = codec.configuration.find("cname");
    if (cname != nullptr && *cname == Value("snappy")) {
        said.emplace_back("Zarr for Python with numcodecs 0.16 or newer cannot read chunks compressed with snappy.");
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

}  // namespace

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
    for (const CodecConfig& codec : m.codecs) add_unread(codec, said);
    if (m.dtype.kind() == Kind::structure && m.spelling.find("data_type") == nullptr) {
        said.emplace_back("zarr-python before 3.3 cannot read structures spelt \"struct\", only \"structured\".");
    }
    return said;
}

}  // namespace tessera
