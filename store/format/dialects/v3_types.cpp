#include "v3_types.h"
#include <tessera/error_text.h>
#include <tessera/number_names.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>

#include "base64.h"
#include "dialects.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 14> time_units{"generic", "Y",  "M",  "W",  "D",  "h",  "m",
                                                      "s",       "ms", "us", "ns", "ps", "fs", "as"};

constexpr std::int64_t longest_item = INT32_MAX;

// ---- data types

DType read_time(Kind kind, const Value& configuration) {
    std::string unit = member(configuration, "unit", [](const Value& v) { return v.as_string(); });
    if (unit == "\u00b5s" || unit == "\u03bcs") unit = "us";
    const std::int64_t multiple =
        member(configuration, "scale_factor", [](const Value& v) { return read_number(v, 1, INT32_MAX); });
    (void)in_member("unit", [&] { return read_choice(unit, time_units); });
    if (unit == "generic") return DType::time(kind, {}, ByteOrder::little);
    return DType::parse(fmt::format("<{}8[{}{}]", kind == Kind::datetime ? 'M' : 'm', multiple, unit));
}

/// {"name": …, "data_type": …}, or [name, data_type] as zarr-python 3.1 wrote.
std::pair<std::string, DType> read_field(const Value& v) {
    if (!v.is_array()) return {v.at("name").as_string(), read_data_type(v.at("data_type"))};
    if (v.as_array().size() != 2) throw corrupt("a field takes a name and a data type");
    return {v.as_array()[0].as_string(), read_data_type(v.as_array()[1])};
}

DType read_structure(const Value& configuration) {
    return member(configuration, "fields", [](const Value& list) {
        std::vector<Field> fields;
        std::int64_t size = 0;
        for (const Value& v : list.as_array()) {
            auto [name, dtype] = read_field(v);
            const std::int64_t bytes = dtype.size();
            fields.push_back({.name = std::move(name),
                              .title = {},
                              .dtype = std::move(dtype),
                              .shape = {},
                              .offset = size,
                              .unnamed = false});
            size = checked_add(size, bytes, "the size of a structure");
        }
        return DType::structure(std::move(fields), size);
    });
}

/// r24 is three bytes.
std::optional<DType> read_bits(std::string_view name) {
    if (!name.starts_with('r') || name.size() < 2 || name.size() > 11) return {};
    std::int64_t bits = 0;
    for (const char c : name.substr(1)) {
        if (c < '0' || c > '9') return {};
        bits = bits * 10 + (c - '0');
    }
    if (bits == 0 || bits % 8 != 0) {
        throw corrupt("\"{}\": the number of bits must be a multiple of 8", name);
    }
    return DType::raw(bits / 8);
}

Value structure_json(const DType& dtype, std::string_view name) {
    Value fields = Value::array();
    std::int64_t end = 0;
    const auto refuse = [&](std::string_view what) {
        throw unsupported("v3 cannot express {} in elements of type {}", what, dtype.to_string());
    };
    for (const Field& field : dtype.fields()) {
        if (field.offset != end) refuse("padding");
        if (!field.shape.empty()) refuse(fmt::format("the sub-array '{}'", field.name));
        if (field.title) refuse(fmt::format("the title of '{}'", field.name));
        if (field.dtype.order() == ByteOrder::big) refuse(fmt::format("the byte order of '{}'", field.name));
        Value type = data_type_json(field.dtype, name);
        if (name == older_structure_name) {
            fields.push_back(Value::Array{field.name, std::move(type)});
        } else {
            Value json = Value::object();
            json.set("name", field.name);
            json.set("data_type", std::move(type));
            fields.push_back(std::move(json));
        }
        end = field.offset + field.size();
    }
    if (dtype.size() != end) refuse("padding");
    CodecConfig type{std::string(name)};
    type.configuration.set("fields", std::move(fields));
    return codec_to_json(type);
}

// ---- fill values

DType half_of(const DType& dtype) {
    return DType::scalar(Kind::real, dtype.size() / 2, dtype.order());
}

/// Reads the bits of a float: "0x" and all hexadecimal digits, the highest first.
ElementBytes read_bits_fill(const DType& dtype, const std::string& text) {
    // The bytes of V are written in order: those of a big-endian number.
    ElementBytes bytes = element_from_value(DType::raw(dtype.size()), text, Assign::exact);
    if (dtype.order() == ByteOrder::little) std::ranges::reverse(bytes);
    return bytes;
}

ElementBytes read_float_fill(const DType& dtype, const Value& v) {
    if (v.is_string() && v.as_string().starts_with("0x")) return read_bits_fill(dtype, v.as_string());
    if (v.is_string() && v != Value("NaN") && v != Value("Infinity") && v != Value("-Infinity")) {
        throw invalid_argument(
            "{} was found, expected a number, \"NaN\", \"Infinity\", \"-Infinity\" or the bits as \"0x\" and {} digits",
            excerpt(v), 2 * dtype.size());
    }
    return element_from_value(dtype, v, Assign::exact);
}

/// Bytes as base64, or as a list of numbers.
ElementBytes read_bytes_fill(const Value& v, std::int64_t least, std::int64_t most) {
    if (!v.is_array()) return read_base64(v, least, most);
    ElementBytes bytes;
    for (const Value& byte : v.as_array()) bytes.push_back(static_cast<std::byte>(read_number(byte, 0, 255)));
    const auto size = static_cast<std::int64_t>(bytes.size());
    if (size < least || size > most) {
        throw invalid_argument("{} bytes were found, expected {}", size, most);
    }
    return bytes;
}

ElementBytes read_fill(const DType& dtype, const Value& v);

ElementBytes read_structure_fill(const DType& dtype, const Value& v) {
    if (v.is_string()) return read_base64(v, dtype.size(), dtype.size());
    if (v.as_object().size() != dtype.fields().size()) {
        throw invalid_argument("{} values were found for {} fields", v.as_object().size(), dtype.fields().size());
    }
    std::map<std::string_view, const Value*> values;  // a structure may have very many fields
    for (const auto& [name, value] : v.as_object()) values.emplace(name, &value);
    ElementBytes bytes = zero_element(dtype);
    for (const Field& field : dtype.fields()) {
        const auto value = values.find(field.name);
        if (value == values.end()) throw invalid_argument("the field '{}' has no value", field.name);
        const ElementBytes element = in_context([&] { return fmt::format("the field '{}'", field.name); },
                                                [&] { return read_fill(field.dtype, *value->second); });
        std::ranges::copy(element, bytes.begin() + field.offset);
    }
    return bytes;
}

void require(bool good, const Value& v, std::string_view expected) {
    if (!good) throw invalid_argument("{} was found, expected {}", excerpt(v), expected);
}

ElementBytes read_complex_fill(const DType& dtype, const Value& v) {
    require(v.is_array() && v.as_array().size() == 2, v, "[real, imaginary]");
    ElementBytes bytes = read_float_fill(half_of(dtype), v.as_array()[0]);
    std::ranges::copy(read_float_fill(half_of(dtype), v.as_array()[1]), std::back_inserter(bytes));
    return bytes;
}

ElementBytes read_fill(const DType& dtype, const Value& v) {
    switch (dtype.kind()) {
        case Kind::boolean:
            require(v.is_bool(), v, "true or false");
            break;
        case Kind::real:
        case Kind::bfloat16:
            return read_float_fill(dtype, v);
        case Kind::complex:
            return read_complex_fill(dtype, v);
        case Kind::datetime:
        case Kind::timedelta:
            require(v.is_integer() || v == Value("NaT"), v, "an integer or \"NaT\"");
            break;
        case Kind::bytes: {
            ElementBytes bytes = read_bytes_fill(v, 0, dtype.size());
            bytes.resize(static_cast<std::size_t>(dtype.size()));
            return bytes;
        }
        case Kind::raw:
            return read_bytes_fill(v, dtype.size(), dtype.size());
        case Kind::variable_bytes:
            return read_bytes_fill(v, 0, INT64_MAX);
        case Kind::structure:
            return read_structure_fill(dtype, v);
        default:
            break;
    }
    return element_from_value(dtype, v, Assign::exact);
}

Value float_fill_json(const DType& dtype, const std::byte* p) {
    Value v = strict_number_json(dtype, p);
    const ElementBytes bytes(p, p + dtype.size());
    if (v != Value("NaN") || read_float_fill(dtype, v) == bytes) return v;
    ElementBytes digits = bytes;
    if (dtype.order() == ByteOrder::little) std::ranges::reverse(digits);
    return element_to_value(DType::raw(dtype.size()), digits.data());
}

Value write_fill(const DType& dtype, const ElementBytes& bytes) {
    switch (dtype.kind()) {
        case Kind::real:
        case Kind::bfloat16:
            return float_fill_json(dtype, bytes.data());
        case Kind::complex: {
            const DType part = half_of(dtype);
            return Value::Array{float_fill_json(part, bytes.data()), float_fill_json(part, bytes.data() + part.size())};
        }
        case Kind::bytes:
            return base64_encode(without_trailing_zeros(bytes));
        case Kind::raw:
        case Kind::variable_bytes:
            return base64_encode(bytes);
        case Kind::variable_text:
            return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        case Kind::structure: {
            Value::Object fields;
            for (const Field& field : dtype.fields()) {
                const std::byte* first = bytes.data() + field.offset;
                fields.emplace_back(field.name, write_fill(field.dtype, {first, first + field.dtype.size()}));
            }
            return fields;
        }
        default:
            return element_to_value(dtype, bytes.data());
    }
}

/// One element of a small type as its codec packs it, and back.
class SmallElement {
public:
    SmallElement(const SmallType& type, const DType& dtype)
        : dtype_(dtype),
          codec_(codec_row(small_type_codec_name).array_to_array(configuration(type), {dtype, {}, {}})) {}

    [[nodiscard]] ElementBytes packed(const ElementBytes& element) const {
        const NDArray made = codec_->encode(view_bytes(element.data(), dtype_, {}));
        return {made.bytes().begin(), made.bytes().end()};
    }
    [[nodiscard]] ElementBytes unpacked(const ElementBytes& bytes) const {
        ElementBytes element = zero_element(dtype_);
        codec_->decode(view_bytes(bytes.data(), codec_->encoded().dtype, {}), view_bytes(element.data(), dtype_, {}));
        return element;
    }

private:
    static Value configuration(const SmallType& type) {
        Value name = Value::object();
        name.set("name", type.name());
        return name;
    }

    DType dtype_;
    std::unique_ptr<ArrayToArrayCodec> codec_;
};

/// The number of the bytes that one part has; nullopt for anything but "0x" and so many digits.
std::optional<ElementBytes> small_bits(const SmallType& type, ByteOrder order, const Value& v) {
    if (!v.is_string() || !v.as_string().starts_with("0x")) return {};
    ElementBytes bytes = element_from_value(DType::raw(type.part_bytes()), v, Assign::exact);
    if (order != ByteOrder::big) std::ranges::reverse(bytes);
    return bytes;
}

std::vector<Value> parts_of(const SmallType& type, const Value& v) {
    if (type.parts == 1) return {v};
    if (!v.is_array() || v.as_array().size() != 2) {
        throw invalid_argument("{} was found, expected [real, imaginary]", excerpt(v));
    }
    return {v.as_array().begin(), v.as_array().end()};
}

Value write_structured_fill(const DType& /*dtype*/, const ElementBytes& bytes) {
    return base64_encode(bytes);
}

std::string_view limits(const DType& /*dtype*/) {
    return "no JSON value reads back as these bytes";
}

}  // namespace

Value named_json(std::string_view name, std::string_view member_name, Value v) {
    CodecConfig named{std::string(name)};
    named.configuration.set(member_name, std::move(v));
    return codec_to_json(named);
}

bool is_optional_name(std::string_view name) {
    return name == "optional" || name == "zarrs.optional";
}

bool is_optional_type(const Value& v) {
    return is_optional_name(codec_from_json(v).name);
}

DType read_data_type(const Value& v) {
    CodecConfig type = codec_from_json(v);
    if (is_optional_type(v)) return read_data_type(type.configuration);
    if (type.name == "complex_float32") type.name = "complex64";  // the registered names
    if (type.name == "complex_float64") type.name = "complex128";
    const auto length = [&](std::int64_t least) {
        return member(type.configuration, "length_bytes",
                      [&](const Value& n) { return read_number(n, least, longest_item); });
    };
    if (const NumberName* number = number_named(type.name)) {
        return DType::scalar(number->kind, number->size, ByteOrder::little);
    }
    if (type.name == "string") return DType::variable_text();
    if (type.name == "variable_length_bytes" || type.name == "bytes") return DType::variable_bytes();
    if (type.name == "null_terminated_bytes") return DType::bytes(length(0));
    if (type.name == "raw_bytes") return DType::raw(length(0));
    if (type.name == "fixed_length_utf32") {
        const std::int64_t bytes = length(0);
        if (bytes % 4 != 0) throw corrupt("length_bytes is {}, expected a multiple of 4", bytes);
        return DType::text(bytes / 4, ByteOrder::little);
    }
    if (type.name == "numpy.datetime64") return read_time(Kind::datetime, type.configuration);
    if (type.name == "numpy.timedelta64") return read_time(Kind::timedelta, type.configuration);
    if (type.name == structure_name || type.name == older_structure_name) return read_structure(type.configuration);
    if (const auto bits = read_bits(type.name)) return *bits;
    throw unsupported("{} is not known to Tessera", excerpt(type.name));
}

Value data_type_json(const DType& dtype, std::string_view structures) {
    if (const NumberName* number = number_name_of(dtype)) return number->name;
    switch (dtype.kind()) {
        case Kind::variable_text:
            return "string";
        case Kind::variable_bytes:
            return "bytes";
        case Kind::bytes:
            return named_json("null_terminated_bytes", "length_bytes", dtype.size());
        case Kind::raw:
            return named_json("raw_bytes", "length_bytes", dtype.size());
        case Kind::text:
            return named_json("fixed_length_utf32", "length_bytes", dtype.size());
        case Kind::datetime:
        case Kind::timedelta: {
            // Splits "<M8[10ns]" into the unit and its multiple, which is a member of its own.
            CodecConfig type{dtype.kind() == Kind::datetime ? "numpy.datetime64" : "numpy.timedelta64"};
            const std::string text = dtype.str();
            const std::size_t unit = text.find_first_not_of("[0123456789", std::min<std::size_t>(3, text.size()));
            type.configuration.set("unit",
                                   unit == std::string::npos ? "generic" : text.substr(unit, text.size() - unit - 1));
            type.configuration.set("scale_factor", dtype.time_unit().multiple);
            return codec_to_json(type);
        }
        case Kind::structure:
            return structure_json(dtype, structures);
        default:
            throw unsupported("v3 has no data_type for elements of type {}", dtype.to_string());
    }
}

ElementBytes read_small_fill(const SmallType& type, const DType& dtype, const Value& v) {
    const SmallElement element(type, dtype);
    const DType part = type.parts == 2 ? half_of(dtype) : dtype;
    const std::vector<Value> values = parts_of(type, v);
    const Value not_a_number = "NaN";
    ElementBytes rounded;
    for (std::size_t i = 0; i < values.size(); ++i) {
        // The other part of a complex number stays zero meanwhile.
        const auto at = static_cast<std::ptrdiff_t>(i) * part.size();
        ElementBytes number = zero_element(dtype);
        // What has no zero is NaN where others write 0, as they do by default.
        const bool absent =
            type.form == SmallType::Form::exponents && values[i].is_number() && values[i].as_double() == 0;
        const Value& value = absent ? not_a_number : values[i];
        if (const auto bits = small_bits(type, dtype.order(), value)) {
            ElementBytes packed(static_cast<std::size_t>(type.parts * type.part_bytes()));
            std::ranges::copy(*bits, packed.begin() + static_cast<std::ptrdiff_t>(i) * type.part_bytes());
            number = element.unpacked(packed);
        } else {
            std::ranges::copy(part.kind() == Kind::real ? read_float_fill(part, value)
                                                        : element_from_value(part, value, Assign::exact),
                              number.begin() + at);
            number = element.unpacked(element.packed(number));
        }
        rounded.insert(rounded.end(), number.begin() + at, number.begin() + at + part.size());
    }
    return rounded;
}

Value small_fill_json(const SmallType& type, const DType& dtype, const FillValue& fill) {
    if (fill.spelling && !fill.spelling->is_null() && read_small_fill(type, dtype, *fill.spelling) == fill.bytes) {
        return *fill.spelling;
    }
    const DType part = type.parts == 2 ? half_of(dtype) : dtype;
    Value parts = Value::array();
    const ElementBytes packed = SmallElement(type, dtype).packed(*fill.bytes);
    for (int i = 0; i < type.parts; ++i) {
        Value v = strict_number_json(part, fill.bytes->data() + i * part.size());
        ElementBytes alone = zero_element(dtype);
        std::copy_n(fill.bytes->begin() + i * part.size(), part.size(), alone.begin());
        const Value pair = Value::Array{v, 0};
        if (v == Value("NaN") && read_small_fill(type, dtype, type.parts == 2 ? pair : v) != alone) {
            ElementBytes bits(packed.begin() + i * type.part_bytes(), packed.begin() + (i + 1) * type.part_bytes());
            if (dtype.order() != ByteOrder::big) std::ranges::reverse(bits);
            v = element_to_value(DType::raw(type.part_bytes()), bits.data());
        }
        parts.push_back(std::move(v));
    }
    Value json = type.parts == 2 ? parts : parts.as_array().front();
    if (read_small_fill(type, dtype, json) != fill.bytes) {
        throw unsupported("the fill value {} is none of {}", excerpt(json), type.name());
    }
    return json;
}

void name_structures(const Dialect& dialect, ArrayMetadata& m, std::string_view name) {
    if (name != structure_name && name != older_structure_name) {
        throw invalid_argument("structures \"{}\": expected {} or {}", name, structure_name, older_structure_name);
    }
    if (dialect.name != "v3") {
        throw unsupported("structures \"{}\": only v3 has names for structures, not {}", name, dialect.name);
    }
    if (m.dtype.kind() != Kind::structure) return;
    m.spelling.erase("data_type");
    if (name != structure_name) m.spelling.set("data_type", data_type_json(m.dtype, name));
    m.fill.spelling.reset();  // each name has its own
}

constinit const FillRules v3_fill_rules{.read = read_fill, .write = write_fill, .limits = limits};
constinit const FillRules v3_structured_fill_rules{.read = read_fill, .write = write_structured_fill, .limits = limits};

}  // namespace tessera
