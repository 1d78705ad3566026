// The dialect of zarr-python 0.4, which is Tessera's own: `__zmeta__`, `__zattr__`, `__zdata__/1.0.blosc`.
//
// `__zmeta__` is what Python's json.dump(indent=4, sort_keys=True) writes, and what is saved here is byte for byte what
// zarr 0.4 would have written for the same array. Two things are kept as they were spelt: the fill value (300 for a u1
// stays 300 until the fill changes) and members that 0.4 did not know.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/chunk_grid.h>
#include <tessera/error.h>

#include <algorithm>
#include <array>

#include "dialects.h"

namespace tessera {

namespace {

constexpr std::string_view metadata_name = "__zmeta__";
constexpr std::string_view attributes_name = "__zattr__";
constexpr std::array<std::string_view, 7> members{"chunks",     "clevel", "cname",  "dtype",
                                                  "fill_value", "shape",  "shuffle"};
constexpr std::array<std::string_view, 6> cnames{"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
constexpr std::array<std::string_view, 3> shuffles{"noshuffle", "shuffle", "bitshuffle"};  // by their number here

// ---- reading

std::string name_of(const KeyValueStore& store, std::string_view key) {
    return fmt::format("{}/{}", store.name(), key);
}

/// Runs `body` on what a file says: its complaints are about the file, not about what the caller asked for.
template <class Body>
decltype(auto) reading(std::string_view where, Body&& body) {
    try {
        return body();
    } catch (const Error& e) {
        const bool about_content = e.code() == ErrorCode::invalid_argument || e.code() == ErrorCode::not_found;
        throw Error(about_content ? ErrorCode::corrupt : e.code(), fmt::format("{}: {}", where, e.what()));
    }
}

std::string_view text_of(const Buffer& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Reads one member; what goes wrong names it.
template <class Read>
auto member(const Value& meta, std::string_view name, Read&& read) {
    const Value* v = meta.find(name);
    if (!v) throw corrupt(fmt::format("the member \"{}\" is missing", name));
    return in_context([&] { return fmt::format("member \"{}\"", name); }, [&] { return read(*v); });
}

Shape read_dims(const Value& v, std::int64_t least) {
    Shape dims;
    for (const Value& length : v.as_array()) {
        const std::int64_t n = length.as_int64();
        if (n < least) throw corrupt(fmt::format("a length is {}, expected at least {}", n, least));
        dims.push_back(n);
    }
    return dims;
}

std::int64_t read_number(const Value& v, std::int64_t most) {
    const std::int64_t n = v.as_int64();
    if (n < 0 || n > most) throw corrupt(fmt::format("{} was found, expected 0 to {}", n, most));
    return n;
}

/// Throws unsupported for a dtype that never was in this dialect.
void require_dtype(const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::object:
        case Kind::bfloat16:
        case Kind::variable_text:
        case Kind::variable_bytes:
            throw unsupported(fmt::format("zmeta has no elements of type {}", dtype.to_string()));
        case Kind::structure:
            for (const Field& field : dtype.fields()) require_dtype(field.dtype);
            break;
        default:
            break;
    }
}

void require_sizes(const ArrayMetadata& m) {
    require_dtype(m.dtype);
    if (m.dtype.size() == 0) {
        throw unsupported(fmt::format("elements of type {} have no bytes to store", m.dtype.to_string()));
    }
    const ChunkGrid grid(m.shape, m.chunks);  // checks ranks and products
    (void)byte_count(m.shape, m.dtype.size());
    (void)byte_count(m.chunks, m.dtype.size());
}

/// One element from a fill value as zarr 0.4 read it; throws invalid_argument for what NumPy could not assign.
ElementBytes assign(const DType& dtype, const Value& v) {
    if (v.is_array() || v.is_object()) {
        throw invalid_argument(fmt::format("{} is no single value", v.kind_name()));
    }
    if (dtype.kind() == Kind::raw) {
        throw invalid_argument(fmt::format("NumPy cannot assign {} to {}", v.dump(), dtype.str()));
    }
    if (dtype.kind() == Kind::bytes && v.is_string() &&
        !std::ranges::all_of(v.as_string(), [](char c) { return static_cast<unsigned char>(c) < 0x80; })) {
        throw invalid_argument(fmt::format("NumPy cannot assign {} to {}: it is not ASCII", v.dump(), dtype.str()));
    }
    return element_from_value(dtype, v, Assign::numpy);
}

FillValue read_fill(const DType& dtype, const Value& v) {
    FillValue fill{.bytes = {}, .spelling = v, .error = {}};
    if (v.is_null()) return fill;
    try {
        fill.bytes = assign(dtype, v);
    } catch (const Error& e) {
        fill.error = e.what();  // NumPy complained when the fill was needed, not before
    }
    return fill;
}

KeyScheme default_keys() {
    return {.prefix = "__zdata__/", .separator = ".", .suffix = ".blosc", .zero_d = "__zdata__/0.blosc"};
}

Value parse_json(std::string_view text) {
    try {
        return Value::parse(text);
    } catch (const Error& e) {
        // What 0.4 left when Python could not write the fill value it was given.
        if (!text.ends_with("\"fill_value\": ")) throw;
        throw corrupt(
            fmt::format("{} (zarr 0.4 failed while it wrote the fill value: the array was never complete)", e.what()));
    }
}

ArrayMetadata parse_metadata(std::string_view text) {
    if (text.starts_with("(dp0\n")) {
        throw unsupported(
            "this is the pickled metadata of zarr 0.3, which is not read because unpickling runs programs. The chunks "
            "are the same as in zarr 0.4: write a JSON __zmeta__ with the same members in its place");
    }
    const Value meta = parse_json(text);
    ArrayMetadata m;
    m.dtype = member(meta, "dtype", [](const Value& v) {
        return v.is_array() ? DType::from_descr(v, DType::Padding::name) : DType::parse(v.as_string());
    });
    m.shape = member(meta, "shape", [](const Value& v) { return read_dims(v, 0); });
    m.chunks = member(meta, "chunks", [](const Value& v) { return read_dims(v, 1); });
    require_sizes(m);
    m.fill = member(meta, "fill_value", [&](const Value& v) { return read_fill(m.dtype, v); });

    CodecConfig blosc{"blosc"};
    blosc.configuration.set(
        "cname", member(meta, "cname", [](const Value& v) {
            if (std::ranges::find(cnames, v.as_string()) == cnames.end()) {
                throw corrupt(fmt::format("{} was found, expected one of {}", v.dump(), fmt::join(cnames, ", ")));
            }
            return v;
        }));
    blosc.configuration.set("clevel", member(meta, "clevel", [](const Value& v) { return read_number(v, 9); }));
    blosc.configuration.set("shuffle", member(meta, "shuffle", [](const Value& v) {
                                return shuffles[static_cast<std::size_t>(read_number(v, 2))];
                            }));
    m.codecs = {{"bytes"}, blosc};
    m.keys = default_keys();
    for (const auto& [name, value] : meta.as_object()) {
        if (std::ranges::find(members, name) == members.end()) m.unknown.set(name, value);
    }
    return m;
}

bool probe(const KeyValueStore& store, std::string_view prefix) {
    return store.open(join_key(prefix, metadata_name)) != nullptr;
}

ArrayMetadata load(const KeyValueStore& store, std::string_view prefix) {
    const std::string key = join_key(prefix, metadata_name);
    Buffer bytes;
    if (!store.get(key, bytes, metadata_limit))
        throw not_found(fmt::format("{} is not there: no zmeta array", name_of(store, key)));
    return reading(name_of(store, key), [&] { return parse_metadata(text_of(bytes)); });
}

// ---- writing

/// dtype.descr as zarr 0.4 wrote it: padding, and the fields that its names come from, have the name "".
Value dtype_json(const DType& dtype) {
    if (dtype.kind() != Kind::structure) return dtype.str();
    Value list = Value::array();
    std::int64_t end = 0;
    const auto pad_to = [&](std::int64_t offset) {
        if (offset > end) list.push_back(Value::Array{"", DType::raw(offset - end).str()});
    };
    for (const Field& field : dtype.fields()) {
        pad_to(field.offset);
        Value name = field.unnamed ? "" : field.name;
        if (field.title) name = Value::Array{*field.title, name};
        Value item = Value::Array{std::move(name), dtype_json(field.dtype)};
        if (field.shape.rank() != 0) item.push_back(Value::Array(field.shape.begin(), field.shape.end()));
        list.push_back(std::move(item));
        end = field.offset + field.size();
    }
    pad_to(dtype.size());
    return list;
}

/// The JSON that a fill value known by its bytes might be written as; checked by reading it back.
Value fill_candidate(const DType& dtype, const ElementBytes& bytes) {
    switch (dtype.kind()) {
        case Kind::complex:
            return element_to_value(dtype, bytes.data()).as_array().front();
        case Kind::structure:
        case Kind::extended:
        case Kind::extended_complex:
            return 0;
        default:
            return element_to_value(dtype, bytes.data());
    }
}

/// Why a fill value that does not read back cannot be written.
std::string_view fill_refusal(Kind kind) {
    switch (kind) {
        case Kind::complex:
            return "a complex fill must be a real number (imaginary part +0, no NaN with a payload)";
        case Kind::real:
            return "a NaN must be the usual one, positive and without a payload";
        case Kind::bytes:
            return "text must be ASCII";
        case Kind::raw:
            return "V can only have null";
        case Kind::structure:
            return "a structure can only have null, or what 0 gives in every field";
        default:
            return "no JSON value reads back as these bytes";
    }
}

Value fill_json(const ArrayMetadata& m) {
    const FillValue& fill = m.fill;
    if (!fill.bytes) return !fill.error.empty() && fill.spelling ? *fill.spelling : Value();
    // By way of the text: the NaNs of JSON are all the same one.
    const auto reads_back = [&](const Value& v) {
        try {
            return assign(m.dtype, Value::parse(v.dump(python_json_style))) == *fill.bytes;
        } catch (const Error&) {
            return false;
        }
    };
    if (fill.spelling && reads_back(*fill.spelling)) return *fill.spelling;
    if (m.dtype.kind() != Kind::raw) {
        Value candidate = fill_candidate(m.dtype, *fill.bytes);
        if (reads_back(candidate)) return candidate;
    }
    throw unsupported(fmt::format("zmeta cannot express the fill_value {} of type {}: {}",
                                  element_to_value(m.dtype, fill.bytes->data()).dump(), m.dtype.to_string(),
                                  fill_refusal(m.dtype.kind())));
}

/// The blosc configuration of [bytes, blosc]; throws unsupported for any other chain and what only later blosc had.
const Value& require_blosc(const ArrayMetadata& m) {
    if (m.codecs.size() != 2 || m.codecs[0].name != "bytes" || m.codecs[1].name != "blosc") {
        std::vector<std::string> names;
        for (const CodecConfig& codec : m.codecs) names.push_back(codec.name);
        throw unsupported(
            fmt::format("zmeta cannot express the codecs [{}]: they must be [bytes, blosc]", fmt::join(names, ", ")));
    }
    const Value& configuration = m.codecs[1].configuration;
    const std::int64_t typesize = m.dtype.size() > 255 ? 1 : m.dtype.size();
    for (const auto& [name, automatic] : {std::pair("typesize", typesize), std::pair("blocksize", std::int64_t{0})}) {
        const Value* v = configuration.find(name);
        if (v && *v != Value(automatic)) {
            throw unsupported(
                fmt::format("zmeta cannot express blosc's {} {}: it must be {}", name, v->dump(), automatic));
        }
    }
    if (std::ranges::find(cnames, configuration.at("cname").as_string()) == cnames.end()) {
        throw unsupported(fmt::format("zmeta cannot express the cname {}: it must be one of {}",
                                      configuration.at("cname").dump(), fmt::join(cnames, ", ")));
    }
    return configuration;
}

Value shuffle_number(const Value& configuration) {
    const Value* v = configuration.find("shuffle");
    if (!v) return 1;
    const auto* found = std::ranges::find(shuffles, v->as_string());
    if (found == shuffles.end()) {
        throw unsupported(fmt::format("zmeta cannot express the shuffle {}: it must be one of {}", v->dump(),
                                      fmt::join(shuffles, ", ")));
    }
    return found - shuffles.begin();
}

/// The whole of `__zmeta__`, or an error for what cannot be in it.
Value metadata_json(const ArrayMetadata& m) {
    require_sizes(m);
    const Value& blosc = require_blosc(m);
    if (m.keys != default_keys()) {
        throw unsupported(fmt::format("zmeta cannot express chunk keys such as {}: they are {}",
                                      m.keys.key(Index::filled(m.shape.rank(), 0)),
                                      default_keys().key(Index::filled(m.shape.rank(), 0))));
    }
    if (std::ranges::any_of(m.dimension_names, [](const auto& name) { return name.has_value(); })) {
        throw unsupported("zmeta cannot express dimension_names");
    }
    Value meta = m.unknown;
    meta.set("chunks", Value::Array(m.chunks.begin(), m.chunks.end()));
    const Value* clevel = blosc.find("clevel");
    meta.set("clevel", clevel ? *clevel : Value(5));
    meta.set("cname", blosc.at("cname"));
    meta.set("dtype", dtype_json(m.dtype));
    meta.set("fill_value", fill_json(m));
    meta.set("shape", Value::Array(m.shape.begin(), m.shape.end()));
    meta.set("shuffle", shuffle_number(blosc));
    return meta;
}

void put_json(KeyValueStore& store, const std::string& key, const Value& value) {
    const std::string text = value.dump(python_json_style);
    store.put(key, std::as_bytes(std::span(text)));
}

void require_expressible(const ArrayMetadata& metadata) {
    (void)metadata_json(metadata);
}

std::optional<Value> load_attributes(const KeyValueStore& store, std::string_view prefix) {
    const std::string key = join_key(prefix, attributes_name);
    Buffer bytes;
    if (!store.get(key, bytes, metadata_limit)) return {};
    return reading(name_of(store, key), [&] {
        Value attributes = Value::parse(text_of(bytes));
        (void)attributes.as_object();
        return attributes;
    });
}

void save_attributes(KeyValueStore& store, std::string_view prefix, const Value& attributes) {
    (void)attributes.as_object();
    put_json(store, join_key(prefix, attributes_name), attributes);
}

void save(KeyValueStore& store, std::string_view prefix, const ArrayMetadata& metadata, const Value* attributes) {
    const Value json = metadata_json(metadata);
    if (attributes != nullptr) save_attributes(store, prefix, *attributes);
    put_json(store, join_key(prefix, metadata_name), json);
}

FillValue default_fill(const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::raw:
        case Kind::structure:
            return read_fill(dtype, nullptr);
        case Kind::boolean:
            return read_fill(dtype, false);
        case Kind::bytes:
        case Kind::text:
            return read_fill(dtype, "");
        default:
            return read_fill(dtype, 0);
    }
}

/// Whether a structure has, at any depth, a field of which `is` holds.
template <class Is>
bool any_field(const DType& dtype, const Is& is) {
    return dtype.kind() == Kind::structure && std::ranges::any_of(dtype.fields(), [&](const Field& field) {
               return is(field) || any_field(field.dtype, is);
           });
}

std::vector<std::string> remarks(const ArrayMetadata& m) {
    std::vector<std::string> said;
    if (m.shape.rank() == 0) said.emplace_back("zarr 0.4 could not open arrays without dimensions.");
    if (any_field(m.dtype, [](const Field& f) { return f.shape.rank() != 0; })) {
        said.emplace_back("zarr 0.4 could not open structures with sub-array fields.");
    }
    if (any_field(m.dtype, [](const Field& f) { return f.title.has_value(); })) {
        said.emplace_back("zarr 0.4 could not open structures with titled fields.");
    }
    if (m.codecs.size() == 2 && m.codecs[1].configuration.find("cname") &&
        m.codecs[1].configuration.at("cname") == Value("zstd")) {
        said.emplace_back("zarr 0.4 could not read chunks compressed with zstd.");
    }
    return said;
}

bool owns(const ArrayMetadata& /*metadata*/, std::string_view name) {
    // The locks are those that zarr 0.4's synchronized arrays leave behind.
    constexpr std::array<std::string_view, 5> names{metadata_name, attributes_name, "__zdata__", "__zmeta__.lock",
                                                    "__zattr__.lock"};
    return std::ranges::find(names, name) != names.end();
}

}  // namespace

constinit const Dialect zmeta_dialect{
    .name = "zmeta",
    .about = "zarr-python 0.4 (__zmeta__), Tessera's own",
    .metadata_key = metadata_name,
    .group_key = "",
    .probe = probe,
    .load = load,
    .save = save,
    .require_expressible = require_expressible,
    .probe_group = nullptr,
    .save_group = nullptr,
    .load_attributes = load_attributes,
    .save_attributes = save_attributes,
    .load_consolidated = nullptr,
    .save_consolidated = nullptr,
    .default_keys = default_keys,
    .default_fill = default_fill,
    .remarks = remarks,
    .owns = owns,
};

}  // namespace tessera
