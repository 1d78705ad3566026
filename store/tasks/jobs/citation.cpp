#include "citation.h"

#include <fmt/format.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

namespace {

std::string_view unpadded(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t\r");
    return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

struct Line {
    std::size_t number = 0;
    std::size_t indent = 0;
    std::string_view text;
};

std::vector<Line> lines_of(std::string_view text) {
    std::vector<Line> lines;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const std::string_view inner = unpadded(line);
        if (inner.empty() || inner.starts_with('#') || inner == "---") continue;
        lines.push_back({number, line.find_first_not_of(' '), inner});
    }
    return lines;
}

/// A plain or quoted text.
std::string scalar(std::string_view text) {
    if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'') {
        std::string plain(text.substr(1, text.size() - 2));
        for (std::size_t at = plain.find("''"); at != std::string::npos; at = plain.find("''", at + 1))
            plain.erase(at, 1);
        return plain;
    }
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
        const Value value = Value::parse(text);  // JSON's escapes are YAML's
        return value.is_string() ? value.as_string() : std::string(text);
    }
    return std::string(unpadded(text.substr(0, text.find(" #"))));
}

class CitationReader {
public:
    explicit CitationReader(std::string_view text) : lines_(lines_of(text)) {}

    Value read() {
        Value::Object found;
        while (at_ < lines_.size()) {
            const Line line = lines_[at_++];
            const auto key = key_of(line);
            if (line.indent != 0 || !key) {
                throw invalid_argument("line {}: \"{}\" is no \"KEY: VALUE\"", line.number, line.text.substr(0, 100));
            }
            found.emplace_back(*key, value_after(line, *key));
        }
        return Value(std::move(found));
    }

private:
    /// The key of "KEY: VALUE"; nullopt if it is no such line.
    static std::optional<std::string> key_of(const Line& line) {
        const std::size_t colon = line.text.find(':');
        if (colon == 0 || colon == line.text.npos) return std::nullopt;
        if (colon + 1 < line.text.size() && line.text[colon + 1] != ' ') return std::nullopt;
        return scalar(line.text.substr(0, colon));
    }

    Value value_after(const Line& line, const std::string& key) {
        const std::string_view rest = unpadded(line.text.substr(line.text.find(':') + 1));
        if (rest.empty()) {
            if (at_ < lines_.size() && lines_[at_].text.starts_with('-') && lines_[at_].indent >= line.indent) {
                return items(lines_[at_].indent);
            }
            return Value(deeper(line.indent, ""));
        }
        if (rest.front() == '>' || rest.front() == '|') return Value(deeper(line.indent, ""));
        if (rest.front() == '[' || rest.front() == '{') {
            throw invalid_argument(
                "line {}: the value of {} in brackets is not read: write its items on lines of their own", line.number,
                key);
        }
        return Value(scalar(deeper(line.indent, std::string(rest))));
    }

    /// The text and the more indented lines after it, in one line.
    std::string deeper(std::size_t indent, std::string text) {
        for (; at_ < lines_.size() && lines_[at_].indent > indent; ++at_) {
            if (!text.empty()) text += ' ';
            text += lines_[at_].text;
        }
        return text;
    }

    Value items(std::size_t indent) {
        Value list = Value::array();
        while (at_ < lines_.size() && lines_[at_].indent == indent && lines_[at_].text.starts_with('-')) {
            Line line = lines_[at_++];
            const std::string_view rest = unpadded(line.text.substr(1));
            line.indent += static_cast<std::size_t>(rest.data() - line.text.data());
            line.text = rest;
            const auto key = rest.starts_with('"') || rest.starts_with('\'') ? std::nullopt : key_of(line);
            if (!key) {
                list.push_back(Value(scalar(deeper(indent, std::string(rest)))));
                continue;
            }
            Value item = Value::object();
            item.set(*key, value_after(line, *key));
            while (at_ < lines_.size() && lines_[at_].indent > indent) {
                const Line next = lines_[at_++];
                if (const auto more = key_of(next)) item.set(*more, value_after(next, *more));
            }
            list.push_back(std::move(item));
        }
        return list;
    }

    std::vector<Line> lines_;
    std::size_t at_ = 0;
};

}  // namespace

Value parse_citation(std::string_view text) {
    return CitationReader(text).read();
}

}  // namespace tessera
