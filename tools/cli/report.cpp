#include "report.h"

#include <fmt/format.h>

#include <tessera/json.h>
#include <tessera/secrets.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "advice.h"
#include "command.h"

namespace tessera::cli {

namespace {

[[noreturn]] void throw_output_error(int error_number) {
    if (error_number == EPIPE) throw ClosedPipe{};
    throw io_error("writing", "standard output", error_number);
}

/// A character of UTF-8.
struct Character {
    std::uint32_t code = 0;
    std::size_t length = 0;  ///< in bytes; 0 if the text does not begin with a valid character
};

/// The first character of the text. Overlong forms and surrogates are invalid.
Character first_character(std::string_view text) {
    const auto first = static_cast<unsigned char>(text[0]);
    if (first < 0x80) return {first, 1};
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < length) return {};
    std::uint32_t code = first & (0x7fU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        const auto next = static_cast<unsigned char>(text[i]);
        if ((next & 0xc0U) != 0x80) return {};
        code = code << 6U | (next & 0x3fU);
    }
    constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < least[length] || surrogate || code > 0x10ffff ? Character{} : Character{code, length};
}

/// U+0000 to U+001F and U+007F to U+009F.
bool is_control(std::uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

/// Characters that change the direction of text, so that a name can look like another one.
bool is_direction(std::uint32_t code) {
    return code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

/// Copies text, with all characters except printable ASCII replaced by the result of `how`.
template <class How>
std::string replaced(std::string_view text, const How& how) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        if (text[i] >= ' ' && text[i] < '\x7f') {
            out += text[i++];
            continue;
        }
        const Character c = first_character(text.substr(i));
        const std::size_t length = std::max<std::size_t>(c.length, 1);
        out += how(c, text.substr(i, length));
        i += length;
    }
    return out;
}

std::string hex_bytes(std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    return text;
}

/// The text with invalid UTF-8 as \xNN.
std::string utf8_only(std::string_view text) {
    return replaced(text, [](Character c, std::string_view bytes) {
        return c.length == 0 ? hex_bytes(bytes) : std::string(bytes);
    });
}

/// Applies utf8_only to all strings in a value, including names of members.
Value all_utf8(Value value) {
    if (value.is_string()) return utf8_only(value.as_string());
    if (value.is_array()) {
        for (Value& item : value.as_array()) item = all_utf8(std::move(item));
    } else if (value.is_object()) {
        Value::Object members = value.as_object();
        for (auto& [name, member] : members) {
            name = utf8_only(name);
            member = all_utf8(std::move(member));
        }
        return members;
    }
    return value;
}

}  // namespace

namespace {

/// What may be secrets in the URLs that were typed.
std::vector<std::string> typed_secrets;

}  // namespace

void hide_secrets_of(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
        for (const std::string_view secret : secrets_in(word)) typed_secrets.emplace_back(secret);
    }
}

std::string without_typed_secrets(std::string_view text) {
    std::string shown(text);
    for (const std::string& secret : typed_secrets) {
        for (std::size_t at = 0; (at = shown.find(secret, at)) != shown.npos;) shown.erase(at, secret.size());
    }
    return shown;
}

void print(std::string_view text) {
    print_as_is(typed_secrets.empty() ? text : without_typed_secrets(text));
}

void print_as_is(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw_output_error(errno);
}

void flush_output() {
    if (std::fflush(stdout) != 0) throw_output_error(errno);
}

std::string unsteering(std::string_view json) {
    // Outside strings there is only ASCII, and control characters inside them are already escaped.
    return replaced(json, [](Character c, std::string_view bytes) {
        const bool steers = is_direction(c.code) || (c.code >= 0x7f && c.code < 0xa0);
        return steers ? fmt::format("\\u{:04x}", c.code) : std::string(bytes);
    });
}

std::string json_text(const Value& value, JsonStyle style) {
    return unsteering(all_utf8(standard_json(value)).dump(style));
}

namespace {

/// What comes before the next item of a list; null outside lists.
const char* before_item = nullptr;

}  // namespace

void print_json(const Value& value) {
    const std::string text = json_text(value, {.indent = 2});
    if (before_item == nullptr) return print(text + "\n");
    print(before_item + text);
    before_item = ",\n";
}

JsonList::JsonList(bool json) {
    if (json) before_item = "[\n";
}

void JsonList::end() {
    if (before_item != nullptr) print(*before_item == '[' ? "[]\n" : "\n]\n");
    before_item = nullptr;
}

JsonList::~JsonList() {
    before_item = nullptr;
}

int complain(bool json, std::string_view code, int exit_code, std::string message) {
    message = without_secrets(without_typed_secrets(message));
    if (json) {
        fmt::print(stderr, "{}\n", error_json(code, exit_code, message));
        return exit_code;
    }
    std::ranges::replace(message, '\n', ' ');
    fmt::print(stderr, "tessera: {}\n", printable(message));
    return exit_code;
}

int complain(bool json, const Error& error) {
    const int exit_code = error.code() == ErrorCode::recorded    ? exit_recorded
                          : error.code() == ErrorCode::cancelled ? exit_interrupted
                                                                 : exit_error;
    return complain(json, code_name(error.code()), exit_code, message_of(error));
}

std::string error_json(std::string_view code, int exit_code, std::string_view message) {
    Value value = Value::object();
    value.set("level", "error");
    value.set("code", code);
    value.set("exit_code", exit_code);
    value.set("message", message);
    return json_text(value);
}

std::string note_json(std::string_view message) {
    Value value = Value::object();
    value.set("level", "note");
    value.set("message", message);
    return json_text(value);
}

std::string bytes_text(std::uint64_t bytes) {
    constexpr std::array units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) return fmt::format("{} bytes", bytes);
    double number = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    // 1023.96 would be rounded to "1024.0".
    while (number >= 1023.95 && unit + 1 < units.size()) {
        number /= 1024;
        ++unit;
    }
    return fmt::format("{:.1f} {}", number, units[unit]);
}

std::string bytes_exactly(std::uint64_t bytes) {
    return bytes < 1024 ? bytes_text(bytes) : fmt::format("{} ({} bytes)", bytes_text(bytes), grouped(bytes));
}

std::string grouped(std::uint64_t number) {
    std::string text = fmt::format("{}", number);
    for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
    return text;
}

std::string abbreviated(std::string text, std::size_t most) {
    if (text.size() <= most) return text;
    while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;  // not inside a character
    return text.substr(0, most) + "…";
}

std::string layout_text(const ChunkLayout& layout) {
    const auto text = [&](const Shape& shape, bool differ) {
        return differ ? abbreviated(lengths_text(layout.edges)) : shape_text(shape);
    };
    const bool differ = !layout.edges.empty();
    if (layout.shards.empty()) return "chunks " + text(layout.chunks, differ);
    return fmt::format("chunks {} in shards of {}", text(layout.chunks, false), text(layout.shards, differ));
}

std::string shape_text(const Shape& shape) {
    return shape.empty() ? "0-d" : fmt::format("{}", fmt::join(shape.begin(), shape.end(), "×"));
}

std::string ratio_text(std::uint64_t logical, std::uint64_t stored) {
    if (stored == 0) return "–";
    const double r = ratio(logical, stored);
    return r >= 0.1 ? fmt::format("{:.1f}", r) : fmt::format("{:.2g}", r);
}

std::string count_text(std::int64_t n, std::string_view singular) {
    return fmt::format("{} {}{}", grouped(static_cast<std::uint64_t>(n)), singular, n == 1 ? "" : "s");
}

std::string printable(std::string_view text) {
    return replaced(text, [](Character c, std::string_view bytes) {
        if (c.length == 0 || is_control(c.code)) return hex_bytes(bytes);
        return is_direction(c.code) ? fmt::format("\\u{:04x}", c.code) : std::string(bytes);
    });
}

Value path_value(std::string_view path) {
    return utf8_only(path);
}

void Facts::add(std::string_view key, std::string_view value) {
    lines_.emplace_back(key, value);
}

void Facts::print() const {
    std::size_t width = 0;
    for (const auto& [key, value] : lines_) width = std::max(width, key.size());
    for (const auto& [key, value] : lines_) {
        cli::print(fmt::format("{:<{}}  {}\n", printable(key), width, printable(value)));
    }
}

}  // namespace tessera::cli
