#include "metadata_json.h"
#include <tessera/action.h>
#include <tessera/error_text.h>

#include <fmt/ranges.h>
#include <tessera/chunk_grid.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base64.h"

namespace tessera {

// ---- documents

std::optional<Value> get_object(const ReadableStore& store, std::string_view key) {
    Buffer bytes;
    if (!store.get(key, bytes, metadata_limit)) return {};
    return reading(store.name_of(key), [&] {
        Value object = Value::parse(text_of(bytes));
        (void)object.as_object();
        return object;
    });
}

void put_object(KeyValueStore& store, std::string_view key, const Value& object, JsonStyle style) {
    (void)object.as_object();
    const std::string text = object.dump(style);
    store.put(key, std::as_bytes(std::span(text)));
}

// ---- members

std::string excerpt(const Value& v) {
    std::string text = v.dump({.indent = -1, .sort_keys = false, .ascii = true});
    if (text.size() > 60) text.replace(57, std::string::npos, "...");
    return text;
}

Shape read_dims(const Value& v, std::int64_t least) {
    Shape dims;
    for (const Value& length : v.as_array()) {
        const std::int64_t n = length.as_int64();
        if (n < least) throw corrupt("a length is {}, expected at least {}", n, least);
        dims.push_back(n);
    }
    return dims;
}

Value dims_json(const Dims& dims) {
    return Value::Array(dims.begin(), dims.end());
}

std::int64_t read_number(const Value& v, std::int64_t least, std::int64_t most) {
    const std::int64_t n = v.as_int64();
    if (n < least || n > most) throw corrupt("{} was found, expected {} to {}", n, least, most);
    return n;
}

std::string read_choice(const Value& v, std::span<const std::string_view> choices) {
    if (std::ranges::find(choices, v.as_string()) == choices.end()) {
        throw corrupt("{} was found, expected one of {}", excerpt(v), fmt::join(choices, ", "));
    }
    return v.as_string();
}

void require_format(const Value& meta, int format) {
    member(meta, "zarr_format", [&](const Value& v) {
        if (v != Value(format)) throw unsupported("{} was found, expected {}", excerpt(v), format);
        return 0;
    });
}

Value unknown_members(const Value& object, std::span<const std::string_view> known) {
    Value::Object unknown;
    for (const auto& [name, value] : object.as_object()) {
        if (std::ranges::find(known, name) == known.end()) unknown.emplace_back(name, value);
    }
    return unknown;
}

// ---- dtypes and shapes

void require_numpy_dtype(const DType& dtype, std::string_view dialect) {
    switch (dtype.kind()) {
        case Kind::object:
            throw unsupported("{} has no elements of type {}", dialect, dtype.to_string());
        case Kind::bfloat16:
            throw unsupported("{} has no elements of type {}", dialect, dtype.to_string())
                .advising(Action::format, "has", "v3");
        case Kind::variable_text:
        case Kind::variable_bytes:
            throw unsupported("{} has no elements of type {}", dialect, dtype.to_string())
                .advising(Action::format, "has", "v3")
                .advising(Action::format, "has, too", "v2");
        case Kind::structure:
            for (const Field& field : dtype.fields()) require_numpy_dtype(field.dtype, dialect);
            break;
        default:
            break;
    }
}

DType read_numpy_dtype(const Value& v, std::string_view dialect) {
    DType dtype = v.is_array() ? DType::from_descr(v, DType::Padding::name) : DType::parse(v.as_string());
    require_numpy_dtype(dtype, dialect);
    return dtype;
}

void require_sizes(const ArrayMetadata& m) {
    if (m.dtype.size() == 0) {
        throw unsupported("elements of type {} have no bytes to store", m.dtype.to_string());
    }
    (void)chunk_grid(m);  // checks ranks and products
    (void)byte_count(m.shape, m.dtype.size());
    (void)byte_count(m.chunks, m.dtype.size());
}

KeyScheme v2_keys() {
    return {.prefix = "", .separator = ".", .suffix = "", .zero_d = "0"};
}

void require_keys(const ArrayMetadata& m, const KeyScheme& only, std::string_view dialect) {
    if (m.keys == only) return;
    const Index first = Index::filled(m.shape.rank(), 0);
    throw unsupported("{} cannot express chunk keys such as {}: they are {}", dialect, m.keys.key(first),
                      only.key(first));
}

void require_one_chunk_shape(const ArrayMetadata& m, std::string_view dialect) {
    if (m.edges.empty()) return;
    throw unsupported("{} cannot express chunks that differ in length: all have one shape", dialect)
        .advising(Action::format, "can", "v3");
}

void require_no_dimension_names(const ArrayMetadata& m, std::string_view dialect) {
    if (std::ranges::any_of(m.dimension_names, [](const auto& name) { return name.has_value(); })) {
        throw unsupported("{} cannot express dimension_names", dialect);
    }
}

bool is_chunk_name(const ArrayMetadata& m, std::string_view name) {
    const int rank = m.shape.rank();
    // The name of the folder of chunks is the first part of any chunk's key.
    const std::string first = m.keys.key(Index::filled(rank, 0));
    const std::size_t slash = first.find('/');
    if (slash == std::string::npos) return m.keys.parse(name, rank).has_value();
    if (!m.keys.prefix.empty()) return name == std::string_view(first).substr(0, slash);
    return KeyScheme{.prefix = "", .separator = ".", .suffix = "", .zero_d = ""}.parse(name, 1).has_value();
}

// ---- fill values

namespace {

/// The value of an element given by its bytes, for messages.
std::string shown(const DType& dtype, const ElementBytes& bytes) {
    if (!dtype.is_variable()) return element_to_value(dtype, bytes.data()).dump();
    const VariableSlot slot{.data = reinterpret_cast<const char*>(bytes.data()), .size = bytes.size()};
    return element_to_value(dtype, reinterpret_cast<const std::byte*>(&slot)).dump();
}

/// One element from a fill value as zarr 0.4 read it; throws invalid_argument if NumPy could not assign it.
ElementBytes assign_plain(const DType& dtype, const Value& v) {
    if (v.is_array() || v.is_object()) {
        throw invalid_argument("{} is no single value", v.kind_name());
    }
    if (dtype.kind() == Kind::raw) {
        throw invalid_argument("NumPy cannot assign {} to {}", excerpt(v), dtype.str());
    }
    return element_from_value(dtype, v, Assign::numpy);
}

/// A candidate for the JSON of a fill value given by its bytes.
Value plain_candidate(const DType& dtype, const ElementBytes& bytes) {
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

std::string_view plain_limits(const DType& dtype) {
    switch (dtype.kind()) {
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

/// `v` rounded to a float of this type: element_to_value gives the shortest decimal instead.
double rounded(const DType& dtype, std::int64_t size, double v) {
    if (dtype.kind() == Kind::bfloat16) return bfloat16_to_float(double_to_bfloat16(v));
    if (size == 2) return half_to_float(double_to_half(v));
    return size == 4 ? static_cast<double>(static_cast<float>(v)) : v;
}

Value strict_float(double v) {
    if (std::isnan(v)) return "NaN";
    if (std::isinf(v)) return v < 0 ? "-Infinity" : "Infinity";
    return v;
}

}  // namespace

Value fill_json(const FillRules& rules, std::string_view dialect, const DType& dtype, const FillValue& fill) {
    // Goes through the text, because JSON has only one NaN.
    const auto reads_back = [&](const Value& v) {
        try {
            return rules.read(dtype, Value::parse(v.dump())) == *fill.bytes;
        } catch (const Error&) {
            return false;
        }
    };
    if (fill.spelling && reads_back(*fill.spelling)) return *fill.spelling;
    Value candidate = rules.write(dtype, *fill.bytes);
    if (reads_back(candidate)) return candidate;
    throw unsupported("{} cannot express the fill_value {} of type {}: {}", dialect, shown(dtype, *fill.bytes),
                      dtype.to_string(), rules.limits(dtype));
}

FillValue read_plain_fill(const DType& dtype, const Value& v) {
    FillValue fill{.bytes = {}, .spelling = v, .error = {}};
    if (v.is_null()) return fill;
    try {
        fill.bytes = assign_plain(dtype, v);
    } catch (const Error& e) {
        fill.error = e.what();  // NumPy complained when the fill was needed, not before
    }
    return fill;
}

Value plain_fill_json(std::string_view dialect, const DType& dtype, const FillValue& fill) {
    if (!fill.bytes) return !fill.error.empty() && fill.spelling ? *fill.spelling : Value();
    return fill_json({.read = assign_plain, .write = plain_candidate, .limits = plain_limits}, dialect, dtype, fill);
}

FillValue plain_default_fill(const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::raw:
        case Kind::structure:
            return read_plain_fill(dtype, nullptr);
        case Kind::boolean:
            return read_plain_fill(dtype, false);
        case Kind::bytes:
        case Kind::text:
            return read_plain_fill(dtype, "");
        default:
            return read_plain_fill(dtype, 0);
    }
}

Value strict_number_json(const DType& dtype, const std::byte* p) {
    const Value v = element_to_value(dtype, p);
    if (v.is_double()) return strict_float(rounded(dtype, dtype.size(), v.as_double()));
    if (!v.is_array()) return v;
    Value pair = Value::array();
    for (const Value& part : v.as_array()) {
        pair.push_back(strict_float(rounded(dtype, dtype.size() / 2, part.as_double())));
    }
    return pair;
}

ElementBytes read_base64(const Value& v, std::int64_t least, std::int64_t most) {
    auto bytes = base64_decode(v.as_string());
    if (!bytes) throw invalid_argument("{} is no base64", excerpt(v));
    const auto size = static_cast<std::int64_t>(bytes->size());
    if (size < least || size > most) {
        throw invalid_argument("{} stands for {} bytes, expected {}", excerpt(v), size, most);
    }
    return *bytes;
}

std::span<const std::byte> without_trailing_zeros(std::span<const std::byte> bytes) {
    while (!bytes.empty() && bytes.back() == std::byte{0}) bytes = bytes.first(bytes.size() - 1);
    return bytes;
}

FillValue zero_fill(const DType& dtype) {
    return {.bytes = zero_element(dtype), .spelling = {}, .error = {}};
}

// ---- codecs

CodecConfig read_numbered_blosc(const Value& object) {
    CodecConfig blosc{"blosc"};
    const auto take = [&](std::string_view name, auto&& read) {
        blosc.configuration.set(name, member(object, name, read));
    };
    take("cname", [](const Value& v) -> Value { return read_choice(v, blosc_cnames); });
    take("clevel", [](const Value& v) -> Value { return read_number(v, 0, 9); });
    take("shuffle",
         [](const Value& v) -> Value { return blosc_shuffles[static_cast<std::size_t>(read_number(v, 0, 2))]; });
    return blosc;
}

Value shuffle_number(const Value& configuration, std::string_view dialect) {
    const Value* v = configuration.find("shuffle");
    if (!v) return 1;
    const auto* found = std::ranges::find(blosc_shuffles, v->as_string());
    if (found == blosc_shuffles.end()) {
        throw unsupported("{} cannot express the shuffle {}: it must be one of {}", dialect, v->dump(),
                          fmt::join(blosc_shuffles, ", "));
    }
    return found - blosc_shuffles.begin();
}

void require_member(const CodecConfig& codec, std::string_view name, const Value& only, std::string_view dialect) {
    const Value* v = codec.configuration.find(name);
    if (v && *v != only) {
        throw unsupported("{} cannot express {}'s {} {}: it must be {}", dialect, codec.name, name, v->dump(),
                          only.dump());
    }
}

Value numbered_blosc_json(const CodecConfig& blosc, const DType& dtype, std::string_view dialect) {
    require_member(blosc, "typesize", dtype.size() > 255 ? 1 : dtype.size(), dialect);
    require_member(blosc, "blocksize", 0, dialect);
    const Value& cname = blosc.configuration.at("cname");
    if (std::ranges::find(blosc_cnames, cname.as_string()) == blosc_cnames.end()) {
        throw unsupported("{} cannot express the cname {}: it must be one of {}", dialect, cname.dump(),
                          fmt::join(blosc_cnames, ", "));
    }
    const Value* clevel = blosc.configuration.find("clevel");
    return Value{{"clevel", clevel ? *clevel : Value(5)},
                 {"cname", cname},
                 {"shuffle", shuffle_number(blosc.configuration, dialect)}};
}

std::string chain_text(std::span<const CodecConfig> codecs) {
    std::vector<std::string> names;
    for (const CodecConfig& codec : codecs) names.push_back(codec.name);
    return fmt::format("[{}]", fmt::join(names, ", "));
}

const CodecRow& codec_row(std::string_view name) {
    if (const CodecRow* row = find_codec(name)) return *row;
    throw unsupported("there is no codec \"{}\" in Tessera", name);
}

ChunkSpec encoded_spec(ChunkSpec spec, std::span<const CodecConfig> codecs) {
    for (const CodecConfig& codec : codecs) {
        const CodecRow& row = codec_row(codec.name);
        if (row.array_to_array == nullptr) break;
        const Value configuration = decoding_configuration(row, codec.configuration);
        spec =
            in_context([&] { return codec.name; }, [&] { return row.array_to_array(configuration, spec)->encoded(); });
    }
    return spec;
}

CodecConfig reversal(int rank) {
    CodecConfig transpose{"transpose"};
    Value axes = Value::array();
    for (int d = rank; d-- > 0;) axes.push_back(d);
    transpose.configuration.set("order", std::move(axes));
    return transpose;
}

}  // namespace tessera
