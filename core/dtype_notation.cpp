// Reads NumPy's notations of dtypes: type codes and names, lists of fields, dictionaries.
#include <tessera/dtype.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/number_names.h>

#include "kind_rows.h"
#include "python_literal.h"
#include "time_units.h"

namespace tessera {
namespace {

constexpr int max_nesting = 64;

// A type with the shape of a sub-array; only a field can have one.
struct Item {
    DType dtype;
    Shape shape;
};

// Names that NumPy 1.24 knows besides kind and size, and those of number_names.h. To NumPy "bytes" is S; here it is the
// variable-length kind.
constexpr NumberName spellings[] = {
    {"?", Kind::boolean, 1},
    {"bool_", Kind::boolean, 1},
    {"bool8", Kind::boolean, 1},
    {"b", Kind::integer, 1},
    {"byte", Kind::integer, 1},
    {"h", Kind::integer, 2},
    {"short", Kind::integer, 2},
    {"i", Kind::integer, 4},
    {"intc", Kind::integer, 4},
    {"l", Kind::integer, 8},
    {"q", Kind::integer, 8},
    {"p", Kind::integer, 8},
    {"int", Kind::integer, 8},
    {"int_", Kind::integer, 8},
    {"int0", Kind::integer, 8},
    {"intp", Kind::integer, 8},
    {"long", Kind::integer, 8},
    {"longlong", Kind::integer, 8},
    {"B", Kind::unsigned_integer, 1},
    {"ubyte", Kind::unsigned_integer, 1},
    {"H", Kind::unsigned_integer, 2},
    {"ushort", Kind::unsigned_integer, 2},
    {"I", Kind::unsigned_integer, 4},
    {"uintc", Kind::unsigned_integer, 4},
    {"L", Kind::unsigned_integer, 8},
    {"Q", Kind::unsigned_integer, 8},
    {"P", Kind::unsigned_integer, 8},
    {"uint", Kind::unsigned_integer, 8},
    {"uint0", Kind::unsigned_integer, 8},
    {"uintp", Kind::unsigned_integer, 8},
    {"ulong", Kind::unsigned_integer, 8},
    {"ulonglong", Kind::unsigned_integer, 8},
    {"e", Kind::real, 2},
    {"half", Kind::real, 2},
    {"f", Kind::real, 4},
    {"single", Kind::real, 4},
    {"d", Kind::real, 8},
    {"double", Kind::real, 8},
    {"float", Kind::real, 8},
    {"float_", Kind::real, 8},
    {"F", Kind::complex, 8},
    {"csingle", Kind::complex, 8},
    {"singlecomplex", Kind::complex, 8},
    {"D", Kind::complex, 16},
    {"cdouble", Kind::complex, 16},
    {"cfloat", Kind::complex, 16},
    {"complex", Kind::complex, 16},
    {"complex_", Kind::complex, 16},
    {"g", Kind::extended, 16},
    {"longdouble", Kind::extended, 16},
    {"longfloat", Kind::extended, 16},
    {"float128", Kind::extended, 16},
    {"G", Kind::extended_complex, 32},
    {"clongdouble", Kind::extended_complex, 32},
    {"clongfloat", Kind::extended_complex, 32},
    {"longcomplex", Kind::extended_complex, 32},
    {"complex256", Kind::extended_complex, 32},
    {"M", Kind::datetime, 8},
    {"m", Kind::timedelta, 8},
    {"S", Kind::bytes, 0},
    {"a", Kind::bytes, 0},
    {"c", Kind::bytes, 1},
    {"bytes_", Kind::bytes, 0},
    {"bytes0", Kind::bytes, 0},
    {"string_", Kind::bytes, 0},
    {"U", Kind::text, 0},
    {"str", Kind::text, 0},
    {"str_", Kind::text, 0},
    {"str0", Kind::text, 0},
    {"unicode", Kind::text, 0},
    {"unicode_", Kind::text, 0},
    {"V", Kind::raw, 0},
    {"void", Kind::raw, 0},
    {"void0", Kind::raw, 0},
    {"O", Kind::object, 8},
    {"O4", Kind::object, 8},
    {"O8", Kind::object, 8},
    {"object", Kind::object, 8},
    {"object_", Kind::object, 8},
    {"object0", Kind::object, 8},
    {"string", Kind::variable_text, sizeof(VariableSlot)},
    {"bytes", Kind::variable_bytes, sizeof(VariableSlot)},
};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_order(char c) {
    return c == '<' || c == '>' || c == '=' || c == '|';
}
ByteOrder order_from(char c) {
    return c == '<' ? ByteOrder::little : c == '>' ? ByteOrder::big : native_order;  // '|' means '=' to NumPy
}

[[noreturn]] void not_understood(std::string_view text) {
    throw invalid_argument("'{}' is not understood; write a type as NumPy does, for example <i4, >f8, S5, M8[ns]",
                           text);
}

// The number that all of `digits` spells.
std::optional<std::int64_t> whole_number(std::string_view digits) {
    std::int64_t n = 0;
    if (digits.empty() || !is_digit(digits.front())) return std::nullopt;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return n;
}

// The unit that follows M8 or m8: nothing, or "[10ns]", or NumPy's "[D/12]", which is 2h.
TimeUnit parse_unit(std::string_view text) {
    if (text.empty()) return {};
    if (text.size() < 3 || text.front() != '[' || text.back() != ']') not_understood(text);
    auto rest = text.substr(1, text.size() - 2);
    std::int64_t multiple = 1;
    if (is_digit(rest.front())) {
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), multiple);
        if (error != std::errc{}) not_understood(text);
        rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    }
    std::int64_t divisor = 1;
    if (const auto slash = rest.find('/'); slash != std::string_view::npos) {
        divisor = whole_number(rest.substr(slash + 1)).value_or(0);
        rest = rest.substr(0, slash);
    }
    auto base = time_base(rest);
    if (!base || divisor < 1) not_understood(text);
    if (*base == TimeUnit::Base::generic) return {};
    if (divisor > 1) {
        const auto finer = divide_time_base(*base, divisor);
        if (!finer) throw invalid_argument("the time unit {} is no whole number of a smaller one", text);
        base = finer->base;
        multiple = checked_multiply(multiple, finer->multiple, "the time unit's multiple");
    }
    if (multiple < 1 || multiple > std::numeric_limits<std::int32_t>::max()) not_understood(text);
    return {*base, static_cast<std::int32_t>(multiple)};
}

// The names that a time unit follows.
constexpr std::pair<std::string_view, Kind> times[] = {
    {"M8", Kind::datetime}, {"datetime64", Kind::datetime}, {"m8", Kind::timedelta}, {"timedelta64", Kind::timedelta}};

// A type without repeats or commas; `order` is the sign before it, or 0.
DType parse_type(std::string_view body, char order_sign, std::string_view whole) {
    const auto order = order_from(order_sign);
    for (const auto& [name, kind] : times) {
        if (body.starts_with(name)) return DType::time(kind, parse_unit(body.substr(name.size())), order);
    }
    const NumberName* named = number_named(body);
    if (named == nullptr) {
        const auto* spelt = std::ranges::find(spellings, body, &NumberName::name);
        if (spelt != std::end(spellings)) named = spelt;
    }
    if (named != nullptr) {
        // As in NumPy a sign goes with a type code, not with a name.
        if (order_sign != 0 && body.size() > 1 && named->kind != Kind::bfloat16 && named->kind != Kind::object) {
            not_understood(whole);
        }
        return DType::scalar(named->kind, named->size, order);
    }
    if (const auto size = whole_number(body.empty() ? body : body.substr(1))) {
        const auto letter = body.front() == 'a' ? "S" : body.substr(0, 1);
        if (letter == "U") return DType::text(*size, order);
        for (const auto& row : kind_rows) {
            const bool fits = row.sizes == 0 || (*size < 64 && (row.sizes >> *size & 1) != 0);
            if (row.letter == letter && fits) return DType::scalar(row.kind, *size, order);
        }
    }
    not_understood(whole);
}

// Takes the sign of a byte order off `text`, if one is there.
void take_order(std::string_view& text, char& order, std::string_view whole) {
    if (text.empty() || !is_order(text.front())) return;
    if (order != 0 && order_from(order) != order_from(text.front())) {
        throw invalid_argument("two byte orders in the dtype '{}'", whole);
    }
    order = text.front();
    text.remove_prefix(1);
}

// "i4", "2i4", "(2,3)>f8", ">(2,)i4"
Item parse_repeated(std::string_view text) {
    const auto whole = text;
    char order = 0;
    Item item;
    take_order(text, order, whole);
    while (!text.empty() && (text.front() == '(' || is_digit(text.front()))) {
        if (text.front() == '(') {
            const auto close = text.find(')');
            if (close == std::string_view::npos) not_understood(whole);
            for (const auto n : parse_shape(text.substr(0, close + 1))) item.shape.push_back(n);
            text.remove_prefix(close + 1);
        } else {
            const auto length = std::min(text.find_first_not_of("0123456789"), text.size());
            const auto n = whole_number(text.substr(0, length));
            if (!n) not_understood(whole);
            if (*n != 1) item.shape.push_back(*n);  // NumPy: 1i4 is i4
            text.remove_prefix(length);
        }
        while (text.starts_with(' ')) text.remove_prefix(1);
        take_order(text, order, whole);
    }
    item.dtype = parse_type(text, order, whole);
    return item;
}

// One type, or several with commas between them: a structure of f0, f1, …
Item parse_text(std::string_view text) {
    std::vector<std::string_view> parts;
    int depth = 0;
    std::size_t start = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i == text.size() || (text[i] == ',' && depth == 0)) {
            parts.push_back(text.substr(start, i - start));
            start = i + 1;
        } else if (text[i] == '(' || text[i] == '[') {
            ++depth;
        } else if (text[i] == ')' || text[i] == ']') {
            --depth;
        }
    }
    if (parts.size() == 1) return parse_repeated(text);
    if (parts.back().empty()) parts.pop_back();  // a comma at the end
    std::vector<Field> fields;
    std::int64_t offset = 0;
    for (auto part : parts) {
        while (part.starts_with(' ')) part.remove_prefix(1);
        while (part.ends_with(' ')) part.remove_suffix(1);
        auto item = parse_repeated(part);
        if (parts.size() == 1) return item;
        Field field{fmt::format("f{}", fields.size()), {}, item.dtype, item.shape, offset};
        offset = checked_add(offset, field.size(), "the size of a structure");
        fields.push_back(std::move(field));
    }
    return {DType::structure(std::move(fields), offset), {}};
}

bool is_shape(const Value& v) {
    return v.is_integer() || (v.is_array() && std::ranges::all_of(v.as_array(), &Value::is_integer));
}

Shape shape_from(const Value& v) {
    Shape shape;
    if (v.is_integer()) {
        if (v.as_int64() != 1) shape.push_back(v.as_int64());  // NumPy: ('a', 'i4', 1) is no sub-array
    } else {
        for (const auto& n : v.as_array()) shape.push_back(n.as_int64());
    }
    return shape;
}

class DescrReader {
public:
    explicit DescrReader(DType::Padding padding) : padding_(padding) {}

    Item read(const Value& v, int depth = 0) const {
        if (depth > max_nesting) {
            throw invalid_argument("a dtype nested deeper than {} levels", max_nesting);
        }
        if (v.is_string()) return parse_text(v.as_string());
        if (v.is_object()) return {from_dict(v, depth), {}};
        if (!v.is_array()) {
            throw invalid_argument("a dtype must be text or a list of fields, found {}", v.kind_name());
        }
        const auto& items = v.as_array();
        // (type, shape); a field would be [name, …] inside one more list.
        if (items.size() == 2 && is_shape(items[1]) && (items[0].is_string() || items[0].is_array())) {
            return with_shape(read(items[0], depth + 1), shape_from(items[1]));
        }
        return {from_fields(items, depth), {}};
    }

private:
    static Item with_shape(Item item, Shape shape) {
        for (const auto n : item.shape) shape.push_back(n);
        return {std::move(item.dtype), shape};
    }

    DType from_fields(const Value::Array& items, int depth) const {
        std::vector<Field> fields;
        std::int64_t offset = 0;
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (!items[i].is_array() || items[i].as_array().size() < 2 || items[i].as_array().size() > 3) {
                throw invalid_argument("field {} of a dtype must be [name, type] or [name, type, shape], found {}", i,
                                       items[i].dump());
            }
            const auto& parts = items[i].as_array();
            Field field;
            set_name(field, parts[0]);
            auto item = read(parts[1], depth + 1);
            if (parts.size() == 3) item = with_shape(std::move(item), shape_from(parts[2]));
            field.dtype = std::move(item.dtype);
            field.shape = item.shape;
            field.offset = offset;
            offset = checked_add(offset, field.size(), "the size of a structure");
            if (field.name.empty()) {
                // NumPy's reader of .npy takes a sub-array for a V type, too.
                const bool is_raw = field.dtype.kind() == Kind::raw || !field.shape.empty();
                if (padding_ == DType::Padding::skip && is_raw) continue;
                field.name = fmt::format("f{}", i);
                field.unnamed = true;
            }
            fields.push_back(std::move(field));
        }
        return DType::structure(std::move(fields), offset);
    }

    // NumPy's other form: {'names': …, 'formats': …, 'offsets': …, 'titles': …, 'itemsize': …}
    DType from_dict(const Value& v, int depth) const {
        const auto& names = v.at("names").as_array();
        const auto& formats = v.at("formats").as_array();
        const auto list = [&](std::string_view key) {
            const auto* items = v.find(key);
            return items == nullptr ? nullptr : &items->as_array();
        };
        const auto* offsets = list("offsets");
        const auto* titles = list("titles");
        if (formats.size() != names.size() || (offsets != nullptr && offsets->size() != names.size()) ||
            (titles != nullptr && titles->size() != names.size())) {
            throw invalid_argument("names, formats, offsets and titles of a dtype must be equally long");
        }
        std::vector<Field> fields;
        std::int64_t end = 0;
        for (std::size_t i = 0; i < names.size(); ++i) {
            auto item = read(formats[i], depth + 1);
            Field field{names[i].as_string(), {}, std::move(item.dtype), item.shape, end};
            if (titles != nullptr && !(*titles)[i].is_null()) field.title = (*titles)[i].as_string();
            if (offsets != nullptr) field.offset = (*offsets)[i].as_int64();
            if (field.offset < 0) throw invalid_argument("the field '{}' has a negative offset", field.name);
            end = std::max(end, checked_add(field.offset, field.size(), "the size of a structure"));
            fields.push_back(std::move(field));
        }
        if (const auto* size = v.find("itemsize")) end = size->as_int64();
        return DType::structure(std::move(fields), end);
    }

    static void set_name(Field& field, const Value& name) {
        if (name.is_string()) {
            field.name = name.as_string();
            return;
        }
        if (!name.is_array() || name.as_array().size() != 2) {
            throw invalid_argument("a field's name must be text or [title, name], found {}", name.dump());
        }
        field.title = name.as_array()[0].as_string();
        field.name = name.as_array()[1].as_string();
    }

    DType::Padding padding_;
};

DType without_shape(Item item, std::string_view text) {
    if (!item.shape.empty()) {
        throw invalid_argument(
            "the dtype '{}' is a sub-array, which only a field can be; give its shape to the array instead", text);
    }
    return std::move(item.dtype);
}

}  // namespace

DType DType::parse(std::string_view text) {
    return in_context([&] { return fmt::format("dtype '{}'", text); },
                      [&] {
                          if (!text.starts_with('[') && !text.starts_with('{')) {
                              return without_shape(parse_text(text), text);
                          }
                          try {
                              return from_descr(parse_python_literal(text).to_value());
                          } catch (const Error& e) {
                              throw invalid_argument(e.what());
                          }
                      });
}

DType DType::from_descr(const Value& descr, Padding padding) {
    return without_shape(DescrReader(padding).read(descr), descr.is_string() ? descr.as_string() : descr.dump());
}

}  // namespace tessera
