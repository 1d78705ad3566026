#include "python_literal.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/number_text.h>

#include <tessera/unicode.h>

namespace tessera {
namespace {

constexpr int max_depth = 200;

class Parser {
public:
    explicit Parser(std::string_view text) : text_(text) {}

    PythonLiteral parse_all() {
        auto result = literal(0);
        skip_space();
        if (at_ < text_.size()) fail("expected the end");
        return result;
    }

private:
    [[noreturn]] void fail(std::string_view expected) const {
        const auto found = at_ < text_.size() ? python_repr(text_.substr(at_, 12)) : std::string("the end of the text");
        throw corrupt("not a Python literal at character {}: {}, found {}", at_ + 1, expected, found);
    }

    [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    void skip_space() {
        while (at_ < text_.size() && std::string_view(" \t\r\n\f").find(text_[at_]) != std::string_view::npos) ++at_;
    }

    bool accept(char c) {
        skip_space();
        if (peek() != c || at_ >= text_.size()) return false;
        ++at_;
        return true;
    }

    bool accept_word(std::string_view word) {
        if (!text_.substr(at_).starts_with(word)) return false;
        at_ += word.size();
        return true;
    }

    [[nodiscard]] bool at_string() const {
        std::size_t i = at_;
        if (i < text_.size() && std::string_view("ubUB").find(text_[i]) != std::string_view::npos) ++i;
        return i < text_.size() && (text_[i] == '\'' || text_[i] == '"');
    }

    PythonLiteral literal(int depth) {
        if (depth > max_depth) fail(fmt::format("expected at most {} levels", max_depth));
        skip_space();
        if (accept('{')) return dict(depth);
        if (accept('[')) return items(PythonLiteral::Kind::list, ']', depth);
        if (accept('(')) return items(PythonLiteral::Kind::tuple, ')', depth);
        if (at_string()) return scalar(joined_strings());
        if (accept_word("True")) return scalar(true);
        if (accept_word("False")) return scalar(false);
        if (accept_word("None")) return scalar(nullptr);
        return scalar(number());
    }

    static PythonLiteral scalar(Value v) { return {PythonLiteral::Kind::scalar, std::move(v), {}, {}}; }

    PythonLiteral items(PythonLiteral::Kind kind, char close, int depth) {
        PythonLiteral result;
        result.kind = kind;
        while (!accept(close)) {
            result.items.push_back(literal(depth + 1));
            if (accept(',')) continue;
            if (!accept(close)) fail(fmt::format("expected ',' or '{}'", close));
            // Parentheses without a comma only group.
            if (kind == PythonLiteral::Kind::tuple && result.items.size() == 1) {
                return PythonLiteral(std::move(result.items.front()));
            }
            break;
        }
        return result;
    }

    PythonLiteral dict(int depth) {
        PythonLiteral result;
        result.kind = PythonLiteral::Kind::dict;
        std::set<std::string> keys;
        while (!accept('}')) {
            skip_space();
            if (!at_string()) fail("expected a key in quotes");
            auto key = joined_strings();
            if (!keys.insert(key).second) fail(fmt::format("the key {} occurs twice", python_repr(key)));
            if (!accept(':')) fail("expected ':'");
            result.members.push_back({std::move(key), literal(depth + 1)});
            if (accept(',')) continue;
            if (!accept('}')) fail("expected ',' or '}'");
            break;
        }
        return result;
    }

    std::string joined_strings() {
        std::string result;
        for (; at_string(); skip_space()) string(result);
        return result;
    }

    void string(std::string& out) {
        const bool is_bytes = peek() == 'b' || peek() == 'B';
        if (peek() != '\'' && peek() != '"') ++at_;
        const char quote = text_[at_++];
        while (peek() != quote) {
            if (at_ >= text_.size() || peek() == '\n') fail("expected the closing quote");
            if (peek() == '\\') {
                ++at_;
                escape(out, is_bytes);
            } else {
                out += text_[at_++];
            }
        }
        ++at_;
    }

    void escape(std::string& out, bool is_bytes) {
        if (at_ >= text_.size()) fail("expected the rest of an escape");
        const char c = text_[at_++];
        constexpr std::string_view letters = "\\'\"abfnrtv";
        constexpr std::string_view meanings = "\\'\"\a\b\f\n\r\t\v";
        if (const auto i = letters.find(c); i != std::string_view::npos) {
            out += meanings[i];
        } else if (c == 'x') {
            append_utf8(out, code(2, 16));
        } else if (c >= '0' && c <= '7') {
            --at_;
            std::size_t digits = 1;
            while (digits < 3 && at_ + digits < text_.size() && text_[at_ + digits] >= '0' &&
                   text_[at_ + digits] <= '7') {
                ++digits;
            }
            append_utf8(out, code(digits, 8));
        } else if (!is_bytes && (c == 'u' || c == 'U')) {
            const char32_t v = code(c == 'u' ? 4 : 8, 16);
            if (v > 0x10FFFF || (v >= 0xD800 && v <= 0xDFFF)) fail("expected an escape of a Unicode character");
            append_utf8(out, v);
        } else if (!is_bytes && c == 'N') {
            fail("expected no escape by name");
        } else if (c != '\n') {  // a backslash before anything else stands for itself
            out += '\\';
            out += c;
        }
    }

    char32_t code(std::size_t digits, int base) {
        std::uint32_t v = 0;
        const auto part = text_.substr(at_, digits);
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), v, base);
        if (error != std::errc{} || part.size() != digits || end != part.data() + digits)
            fail("expected an escape's digits");
        at_ += digits;
        return v;
    }

    Value number() {
        std::size_t end = at_;
        while (end < text_.size() && std::string_view("+-.0123456789eE").find(text_[end]) != std::string_view::npos)
            ++end;
        auto digits = text_.substr(at_, end - at_);
        if (digits.empty()) fail("expected a constant, text or a container");
        if (digits.front() == '+') digits.remove_prefix(1);
        const char* last = digits.data() + digits.size();

        const auto body = digits.substr(digits.starts_with('-') ? 1 : 0);
        if (!body.empty() && body.find_first_not_of("0123456789") == std::string_view::npos) {
            Value result = Value::BigInteger{std::string(digits)};
            if (std::int64_t v = 0; std::from_chars(digits.data(), last, v).ec == std::errc{}) {
                result = v;
            } else if (std::uint64_t u = 0; std::from_chars(digits.data(), last, u).ec == std::errc{}) {
                result = u;
            }
            at_ = end;
            if (peek() == 'L' || peek() == 'l') ++at_;  // Python 2
            return result;
        }
        double v = 0;
        const auto [stop, error] = number_from_text(digits.data(), last, v);
        if (error != std::errc{} || stop != last) fail("expected a number");
        at_ = end;
        return v;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

// Characters that Python's str.isprintable refuses: controls, formats, separators, surrogates, private use. Code points
// that no Unicode version has assigned yet are kept.
bool is_printable(char32_t c) {
    struct Range {
        char32_t first, last;
    };
    constexpr Range hidden[] = {{0, 0x1F},          {0x7F, 0xA0},       {0xAD, 0xAD},       {0x600, 0x605},
                                {0x61C, 0x61C},     {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},
                                {0x8E2, 0x8E2},     {0x1680, 0x1680},   {0x180E, 0x180E},   {0x2000, 0x200F},
                                {0x2028, 0x202F},   {0x205F, 0x206F},   {0x3000, 0x3000},   {0xD800, 0xF8FF},
                                {0xFEFF, 0xFEFF},   {0xFFF0, 0xFFFB},   {0xFFFE, 0xFFFF},   {0x110BD, 0x110BD},
                                {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A},
                                {0xE0000, 0xE00FF}, {0xE01F0, 0x10FFFF}};
    return std::ranges::none_of(hidden, [c](const Range& r) { return c >= r.first && c <= r.last; });
}

}  // namespace

Value PythonLiteral::to_value() const {
    switch (kind) {
        case Kind::scalar:
            return scalar;
        case Kind::dict: {
            Value::Object object;
            for (const auto& [key, item] : members) object.emplace_back(key, item.to_value());
            return object;
        }
        default: {
            Value::Array array;
            for (const auto& item : items) array.push_back(item.to_value());
            return array;
        }
    }
}

PythonLiteral parse_python_literal(std::string_view text) {
    return Parser(text).parse_all();
}

std::uint64_t literal_memory(std::string_view text) {
    constexpr std::size_t small = std::size_t{32} << 10;
    constexpr std::uint64_t of_value = 320;    // as a literal, as a Value and as a part of a field
    constexpr std::uint64_t of_character = 8;  // copies in other encodings
    if (text.size() < small) return 0;
    const auto values =
        std::ranges::count_if(text, [](char c) { return c == ',' || c == ':' || c == '(' || c == '[' || c == '{'; });
    return of_value * static_cast<std::uint64_t>(values) + of_character * text.size();
}

std::string python_repr(std::string_view utf8) {
    const char quote =
        utf8.find('\'') != std::string_view::npos && utf8.find('"') == std::string_view::npos ? '"' : '\'';
    std::string out(1, quote);
    const auto characters = from_utf8(utf8);
    // Bytes that are not UTF-8 (in messages only) are shown one by one.
    const auto text = characters ? *characters : *from_utf8(latin1_to_utf8(utf8));
    for (const char32_t c : text) {
        if (c == static_cast<unsigned char>(quote) || c == '\\') {
            out += '\\';
            out += static_cast<char>(c);
        } else if (c == '\n') {
            out += "\\n";
        } else if (c == '\r') {
            out += "\\r";
        } else if (c == '\t') {
            out += "\\t";
        } else if (is_printable(c)) {
            append_utf8(out, c);
        } else {
            const auto n = static_cast<std::uint32_t>(c);
            out += n < 0x100     ? fmt::format("\\x{:02x}", n)
                   : n < 0x10000 ? fmt::format("\\u{:04x}", n)
                                 : fmt::format("\\U{:08x}", n);
        }
    }
    out += quote;
    return out;
}

}  // namespace tessera
