#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <locale>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/number_text.h>
#include <tessera/value.h>

namespace tessera {
namespace {

constexpr int max_levels = 200;

// ---- reading

[[noreturn]] void fail_at(std::string_view json, std::size_t position, std::string_view why) {
    const auto before = json.substr(0, std::min(position, json.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const auto newline = before.rfind('\n');
    const auto column = 1 + (newline == std::string_view::npos ? before.size() : before.size() - newline - 1);
    // The reason cites the token, such as a text without end. A long one is cut, between two characters.
    constexpr std::size_t most = 400;
    std::size_t length = std::min(why.size(), most);
    while (length > 0 && length < why.size() && (static_cast<unsigned char>(why[length]) & 0xC0U) == 0x80) --length;
    throw corrupt("not valid JSON at line {}, column {}: {}{}", line, column, why.substr(0, length),
                  length < why.size() ? " …" : "");
}

bool is_number_char(char c) {
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

// The length of the JSON number that `text` starts with; 0 when it starts with none.
std::size_t number_length(std::string_view text) {
    std::size_t i = 0;
    const auto digits = [&] {
        const auto first = i;
        while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
        return i - first;
    };
    if (i < text.size() && text[i] == '-') ++i;
    const auto whole = i;
    if (digits() == 0 || (text[whole] == '0' && i > whole + 1)) return 0;
    if (i < text.size() && text[i] == '.') {
        ++i;
        if (digits() == 0) return 0;
    }
    if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
        ++i;
        if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
        if (digits() == 0) return 0;
    }
    return i;
}

double read_double(std::string_view text) {
    double v = 0;
    if (number_from_text(text.data(), text.data() + text.size(), v).ec == std::errc{}) return v;
    // Out of range. from_chars does not say whether too large or too small; a stream does.
    std::istringstream stream{std::string(text)};
    stream.imbue(std::locale::classic());
    stream >> v;
    if (std::abs(v) > 1) v = std::copysign(std::numeric_limits<double>::infinity(), v);
    return v;
}

/// JsonDecimal digits without zeros at either end, and the exponent of the first one: 0.0120 is {"12", -2}.
struct JsonDecimal {
    std::string digits;
    std::int64_t exponent = 0;

    explicit JsonDecimal(std::string_view number) {
        const std::size_t e = number.find_first_of("eE");
        if (e != std::string_view::npos) {
            const std::string_view text = number.substr(e + (number[e + 1] == '+' ? 2 : 1));
            std::from_chars(text.data(), text.data() + text.size(), exponent);
        }
        std::int64_t whole = 0;
        bool in_fraction = false;
        for (const char c : number.substr(0, e)) {
            in_fraction = in_fraction || c == '.';
            if (c < '0' || c > '9') continue;
            digits += c;
            if (!in_fraction) ++whole;
        }
        const std::size_t first = digits.find_first_not_of('0');
        if (first == std::string::npos) {
            digits.clear();
            return;
        }
        exponent += whole - 1 - static_cast<std::int64_t>(first);
        digits = digits.substr(first, digits.find_last_not_of('0') + 1 - first);
    }
};

/// Whether a double may be halfway between two smaller floats. All others are rounded as any number nearest to them.
bool may_be_halfway(double v) {
    constexpr std::uint64_t beyond_float = (std::uint64_t{1} << 28) - 1;
    return v != 0 && std::isfinite(v) && (std::bit_cast<std::uint64_t>(v) & beyond_float) == 0;
}

/// Whether a JSON number lies below (-1), at (0) or above (1) the double nearest to it; 0 unless that may be halfway.
int side_of(std::string_view number, double nearest) {
    if (!may_be_halfway(nearest)) return 0;
    constexpr int most_digits = 767;  // of any double
    char text[most_digits + 16];
    const auto end =
        std::to_chars(std::begin(text), std::end(text), std::abs(nearest), std::chars_format::scientific, most_digits);
    const JsonDecimal is(number);
    const JsonDecimal there({text, end.ptr});
    const int side =
        is.exponent != there.exponent ? (is.exponent < there.exponent ? -1 : 1) : is.digits.compare(there.digits);
    return std::signbit(nearest) ? (side < 0) - (side > 0) : (side > 0) - (side < 0);
}

bool is_plain_integer(std::string_view number) {
    return number.find_first_of(".eE") == std::string_view::npos;
}

struct SpecialToken {
    std::size_t length = 0;
    double value = 0;
};

// The bare NaN, Infinity or -Infinity at `at`, standing by itself.
SpecialToken special_token(std::string_view json, std::size_t at) {
    if (std::string_view("NI-").find(json[at]) == std::string_view::npos) return {};
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr std::pair<std::string_view, double> tokens[] = {
        {"NaN", std::numeric_limits<double>::quiet_NaN()}, {"Infinity", infinity}, {"-Infinity", -infinity}};
    for (const auto& [name, value] : tokens) {
        if (json.substr(at, name.size()) != name) continue;
        const auto end = at + name.size();
        if ((at > 0 && is_number_char(json[at - 1])) || (end < json.size() && is_number_char(json[end]))) continue;
        return {name.size(), value};
    }
    return {};
}

// Replaces tokens that Python reads and nlohmann/json does not: NaN, Infinity, -Infinity and numbers beyond double's
// range. Each becomes a zero and spaces, so that positions in messages stay true, and its value is remembered.
struct Prepared {
    std::string text;
    std::vector<std::pair<std::size_t, Value>> specials;  // with how many numbers come before each
};

class Preparation {
public:
    explicit Preparation(std::string_view json) : json_(json), out_{std::string(json), {}} {}

    Prepared run() && {
        int depth = 0;
        for (std::size_t i = 0; i < json_.size();) {
            const char c = json_[i];
            if (c == '"') {
                i = end_of_text(i);
            } else if (c == '[' || c == '{') {
                if (++depth > max_levels) fail_at(json_, i, fmt::format("nested deeper than {} levels", max_levels));
                ++i;
            } else if (c == ']' || c == '}') {
                --depth;
                ++i;
            } else if (c == '\0') {
                fail_at(json_, i, "a zero byte");  // nlohmann/json would take it for the end
            } else if (const auto special = special_token(json_, i); special.length > 0) {
                substitute(i, special.length, special.value);
                i += special.length;
            } else if (is_number_char(c)) {
                i = number(i);
            } else {
                ++i;
            }
        }
        return std::move(out_);
    }

private:
    [[nodiscard]] std::size_t end_of_text(std::size_t i) const {
        for (++i; i < json_.size() && json_[i] != '"'; ++i) {
            if (json_[i] == '\\') ++i;
        }
        return i + 1;
    }

    /// Returns where the number ends.
    std::size_t number(std::size_t begin) {
        auto end = begin;
        while (end < json_.size() && is_number_char(json_[end])) ++end;
        const auto number = json_.substr(begin, end - begin);
        if (number_length(number) != number.size()) return end;
        if (const double v = read_double(number); std::isinf(v)) {
            substitute(begin, number.size(),
                       is_plain_integer(number) ? Value(Value::BigInteger{std::string(number)}) : Value(v));
        } else {
            ++numbers_;
        }
        return end;
    }

    void substitute(std::size_t at, std::size_t length, Value v) {
        out_.text.replace(at, length, "0" + std::string(length - 1, ' '));
        out_.specials.emplace_back(numbers_++, std::move(v));
    }

    std::string_view json_;
    Prepared out_;
    std::size_t numbers_ = 0;
};

// A repeated key keeps its first place and its last value, as in a Python dict. Not quadratic: a hostile text may have
// a million keys.
void unite_repeated_keys(Value::Object& members) {
    std::map<std::string_view, std::size_t> first_place;
    std::vector<bool> repeated(members.size());
    bool any = false;
    for (std::size_t i = 0; i < members.size(); ++i) {
        const auto [at, is_new] = first_place.try_emplace(members[i].first, i);
        if (is_new) continue;
        members[at->second].second = std::move(members[i].second);
        any = repeated[i] = true;
    }
    if (!any) return;
    Value::Object kept;
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (!repeated[i]) kept.push_back(std::move(members[i]));
    }
    members = std::move(kept);
}

// Receives nlohmann/json's events and builds a Value.
class Builder : public nlohmann::json_sax<nlohmann::json> {
public:
    Builder(std::string_view json, std::vector<std::pair<std::size_t, Value>> specials)
        : json_(json), specials_(std::move(specials)), next_(specials_.begin()) {}

    bool null() override { return add(nullptr); }
    bool boolean(bool v) override { return add(v); }
    bool number_integer(std::int64_t v) override { return add_number(v); }
    bool number_unsigned(std::uint64_t v) override { return add_number(v); }
    bool number_float(double v, const std::string& raw) override {
        if (is_plain_integer(raw)) return add_number(Value::BigInteger{raw});
        return add_number(may_be_halfway(v) ? Value::from_digits(raw) : Value(v));
    }
    bool string(std::string& v) override { return add(std::move(v)); }
    bool binary(nlohmann::json::binary_t&) override { return false; }  // JSON text has none
    bool start_object(std::size_t) override {
        open_.push_back({true, {}, {}});
        return true;
    }
    bool key(std::string& v) override {
        open_.back().members.emplace_back(std::move(v), nullptr);
        return true;
    }
    bool end_object() override {
        auto members = std::move(open_.back().members);
        open_.pop_back();
        unite_repeated_keys(members);
        return add(std::move(members));
    }
    bool start_array(std::size_t) override {
        open_.push_back({false, {}, {}});
        return true;
    }
    bool end_array() override {
        auto items = std::move(open_.back().items);
        open_.pop_back();
        return add(std::move(items));
    }
    bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& e) override {
        std::string_view why = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: why"
        if (const auto colon = why.find(": "); colon != std::string_view::npos) why.remove_prefix(colon + 2);
        fail_at(json_, position == 0 ? 0 : position - 1, why);
    }

    Value result;

private:
    struct Open {
        bool is_object;
        Value::Array items;
        Value::Object members;
    };
    bool add_number(Value v) {
        const bool special = next_ != specials_.end() && next_->first == numbers_;
        ++numbers_;
        return add(special ? std::move((next_++)->second) : std::move(v));
    }
    bool add(Value v) {
        if (open_.empty()) {
            result = std::move(v);
        } else if (open_.back().is_object) {
            open_.back().members.back().second = std::move(v);
        } else {
            open_.back().items.push_back(std::move(v));
        }
        return true;
    }

    std::string_view json_;
    std::vector<std::pair<std::size_t, Value>> specials_;
    std::vector<std::pair<std::size_t, Value>>::iterator next_;
    std::size_t numbers_ = 0;
    std::vector<Open> open_;
};

// ---- writing

void append_string(std::string& out, const std::string& s, const JsonStyle& style) {
    try {
        out += nlohmann::json(s).dump(-1, ' ', style.ascii);
    } catch (const nlohmann::json::exception&) {
        throw invalid_argument("text that is not UTF-8 cannot be written as JSON");
    }
}

std::string json_double(double v) {
    if (std::isnan(v)) return "NaN";
    if (std::isinf(v)) return v < 0 ? "-Infinity" : "Infinity";
    return python_float_repr(v);
}

// UTF-8 sorts bytewise as its code points do.
std::vector<const Value::Member*> members_of(const Value& object, bool sorted) {
    std::vector<const Value::Member*> members;
    for (const auto& m : object.as_object()) members.push_back(&m);
    if (sorted) {
        std::ranges::sort(
            members, {}, [](auto* m) -> auto& { return m->first; });
    }
    return members;
}

class Printer {
public:
    explicit Printer(const JsonStyle& style) : style_(style) {}

    void append(const Value& v, int level) {
        if (v.is_null()) {
            out += "null";
        } else if (v.is_bool()) {
            out += v.as_bool() ? "true" : "false";
        } else if (v.is_double()) {
            out += json_double(v.as_double());
        } else if (v.is_big_integer()) {
            out += v.as_big_integer().digits;
        } else if (v.is_integer()) {
            append_integer(v);
        } else if (v.is_string()) {
            append_string(out, v.as_string(), style_);
        } else if (v.is_array()) {
            list('[', ']', v.as_array(), level, [&](const Value& item) { append(item, level + 1); });
        } else {
            list('{', '}', members_of(v, style_.sort_keys), level, [&](const Value::Member* m) {
                append_string(out, m->first, style_);
                out += ": ";
                append(m->second, level + 1);
            });
        }
    }

    std::string out;

private:
    void append_integer(const Value& v) {
        try {
            out += std::to_string(v.as_int64());
        } catch (const Error&) {
            out += std::to_string(v.as_uint64());
        }
    }
    void new_line(int level) {
        out += '\n';
        out.append(static_cast<std::size_t>(style_.indent) * static_cast<std::size_t>(level), ' ');
    }
    template <class Items, class Append>
    void list(char open, char close, const Items& items, int level, Append append_item) {
        out += open;
        bool first = true;
        for (const auto& item : items) {
            if (!first) out += style_.indent < 0 ? ", " : ",";
            if (style_.indent >= 0) new_line(level + 1);
            append_item(item);
            first = false;
        }
        if (!first && style_.indent >= 0) new_line(level);
        out += close;
    }

    JsonStyle style_;
};

// Formats the shortest digits as Python does: with an exponent below 1e-4 and from 1e16 on, else as a plain decimal.
template <class T>
std::string float_repr(T v) {
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    char buffer[64];
    const auto end = std::to_chars(std::begin(buffer), std::end(buffer), v, std::chars_format::scientific).ptr;
    const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));  // "-1.25e-07", just as Python
    const auto e = text.find('e');
    int exponent = 0;
    std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), end, exponent);
    if (exponent < -4 || exponent >= 16) return std::string(text);

    std::string digits;
    for (const char c : text.substr(0, e)) {
        if (c >= '0' && c <= '9') digits += c;
    }
    if (exponent < 0) {
        digits.insert(0, static_cast<std::size_t>(-exponent), '0');
        exponent = 0;
    }
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() < whole + 1) digits.resize(whole + 1, '0');
    digits.insert(whole, 1, '.');
    if (std::signbit(v)) digits.insert(0, 1, '-');
    return digits;
}

[[noreturn]] void fail_kind(std::string_view expected, const Value& found) {
    throw invalid_argument("expected {}, found {}", expected, found.kind_name());
}

}  // namespace

bool Value::as_bool() const {
    if (const auto* v = std::get_if<bool>(&data_)) return *v;
    fail_kind("true or false", *this);
}

std::int64_t Value::as_int64() const {
    if (const auto* v = std::get_if<std::int64_t>(&data_)) return *v;
    if (is_integer() || is_big_integer()) throw invalid_argument("expected an integer of 64 bits, found a larger one");
    fail_kind("an integer", *this);
}

std::uint64_t Value::as_uint64() const {
    if (const auto* v = std::get_if<std::uint64_t>(&data_)) return *v;
    if (const auto* v = std::get_if<std::int64_t>(&data_)) {
        if (*v >= 0) return static_cast<std::uint64_t>(*v);
        throw invalid_argument("expected an integer of 0 or more, found {}", *v);
    }
    if (is_big_integer()) throw invalid_argument("expected an unsigned integer of 64 bits, found one outside");
    fail_kind("an integer", *this);
}

double Value::as_double() const {
    if (const auto* v = std::get_if<Double>(&data_)) return v->value;
    if (const auto* v = std::get_if<std::int64_t>(&data_)) return static_cast<double>(*v);
    if (const auto* v = std::get_if<std::uint64_t>(&data_)) return static_cast<double>(*v);
    if (const auto* v = std::get_if<BigInteger>(&data_)) return read_double(v->digits);
    fail_kind("a number", *this);
}

double Value::as_double_to_round() const {
    const double nearest = as_double();
    int side = 0;
    if (const auto* v = std::get_if<Double>(&data_)) side = v->side;
    if (is_big_integer()) side = side_of(as_big_integer().digits, nearest);
    if (is_integer()) side = side_of(dump(), nearest);
    if (side == 0 || std::isinf(nearest)) return nearest;
    return std::nextafter(nearest, side * std::numeric_limits<double>::infinity());
}

Value Value::from_digits(std::string_view number) {
    const double nearest = read_double(number);
    Value v(nearest);
    v.data_ = Double{nearest, side_of(number, nearest)};
    return v;
}

const std::string& Value::as_string() const {
    if (const auto* v = std::get_if<std::string>(&data_)) return *v;
    fail_kind("a string", *this);
}

const Value::Array& Value::as_array() const {
    if (const auto* v = std::get_if<Array>(&data_)) return *v;
    fail_kind("an array", *this);
}

Value::Array& Value::as_array() {
    if (auto* v = std::get_if<Array>(&data_)) return *v;
    fail_kind("an array", *this);
}

const Value::Object& Value::as_object() const {
    if (const auto* v = std::get_if<Object>(&data_)) return *v;
    fail_kind("an object", *this);
}

const Value::BigInteger& Value::as_big_integer() const {
    if (const auto* v = std::get_if<BigInteger>(&data_)) return *v;
    fail_kind("an integer beyond 64 bits", *this);
}

const Value* Value::find(std::string_view key) const {
    const auto& members = as_object();
    const auto it = std::ranges::find(members, key, &Member::first);
    return it == members.end() ? nullptr : &it->second;
}

const Value& Value::at(std::string_view key) const {
    if (const auto* v = find(key)) return *v;
    throw not_found("there is no member '{}'", key);
}

Value::Value(std::initializer_list<Member> members) : data_(Object{}) {
    for (const auto& [key, value] : members) set(key, value);
}

Value& Value::set(std::string_view key, Value v) {
    if (is_null()) data_ = Object{};
    auto* members = std::get_if<Object>(&data_);
    if (members == nullptr) fail_kind("an object", *this);
    const auto it = std::ranges::find(*members, key, &Member::first);
    if (it != members->end()) return it->second = std::move(v);
    return members->emplace_back(std::string(key), std::move(v)).second;
}

bool Value::erase(std::string_view key) {
    auto* members = std::get_if<Object>(&data_);
    if (members == nullptr) fail_kind("an object", *this);
    return std::erase_if(*members, [&](const Member& m) { return m.first == key; }) > 0;
}

void Value::push_back(Value v) {
    if (is_null()) data_ = Array{};
    as_array().push_back(std::move(v));
}

namespace {

/// About the most memory that parsing a text takes, for the text itself and its values. There is at most one value for
/// each of these characters. 0 for small texts.
std::uint64_t parsed_memory(std::string_view json) {
    constexpr std::size_t small = std::size_t{32} << 10;
    constexpr std::uint64_t of_value = 128;
    if (json.size() < small || memory_left() == UINT64_MAX) return 0;
    const auto values =
        std::ranges::count_if(json, [](char c) { return c == ',' || c == ':' || c == '[' || c == '{'; });
    return of_value * static_cast<std::uint64_t>(values) + 3 * std::uint64_t{json.size()};
}

}  // namespace

Value Value::parse(std::string_view json) {
    const MemoryHold held(parsed_memory(json));
    auto prepared = Preparation(json).run();
    Builder builder(json, std::move(prepared.specials));
    nlohmann::json::sax_parse(prepared.text, &builder);
    return std::move(builder.result);
}

std::string Value::dump(JsonStyle style) const {
    Printer printer(style);
    printer.append(*this, 0);
    return std::move(printer.out);
}

std::string_view Value::kind_name() const {
    constexpr std::string_view names[] = {
        "null",     "true or false", "an integer", "an integer", "a float", "a string", "an integer beyond 64 bits",
        "an array", "an object"};
    return names[data_.index()];
}

std::ostream& operator<<(std::ostream& out, const Value& v) {
    return out << v.dump();
}

bool operator==(const Value& a, const Value& b) {
    if (a.is_double() && b.is_double()) {
        const double x = a.as_double(), y = b.as_double();
        return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
    }
    if (!a.is_object() || !b.is_object()) return a.data_ == b.data_;
    if (a.as_object().size() != b.as_object().size()) return false;
    return std::ranges::equal(members_of(a, true), members_of(b, true), [](auto* x, auto* y) { return *x == *y; });
}

std::string python_float_repr(double v) {
    return float_repr(v);
}
std::string python_float_repr(float v) {
    return float_repr(v);
}

}  // namespace tessera
