// What people say of a bag: labels of bag-info.txt, and a DataCite record.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/byte_io.h>
#include <tessera/error_text.h>
#include <tessera/json.h>
#include <tessera/seal.h>
#include <tessera/value.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

namespace {

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blank = " \t\r";
    const std::size_t begin = text.find_first_not_of(blank);
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(blank) + 1 - begin);
}

void add_label(BagInfo& info, std::string_view label, std::string_view value) {
    constexpr std::array<std::string_view, 3> computed{"bag-software-agent", "bagging-date", "payload-oxum"};
    std::string folded(label);
    std::ranges::transform(folded, folded.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (std::ranges::count(computed, folded) > 0) throw invalid_argument("{}: is computed, and cannot be set", label);
    const auto is_line = [](std::string_view text) {
        return is_utf8(text) && std::ranges::none_of(text, [](char c) { return c >= 0 && c < ' ' && c != '\t'; });
    };
    if (label.empty() || label.find(':') != label.npos || value.empty() || !is_line(label) || !is_line(value)) {
        throw invalid_argument(
            "\"{}\", \"{}\": no label and value of bag-info.txt: one line of UTF-8 each, and no "
            "':' in the label",
            label, value);
    }
    info.labels.emplace_back(label, value);
}

void add_lines(BagInfo& info, std::string_view text) {
    std::vector<std::pair<std::string, std::string>> found;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (trimmed(line).empty()) continue;
        const std::size_t colon = line.find(':');
        if (line.front() == ' ' || line.front() == '\t') {
            if (found.empty()) throw invalid_argument("begins with a blank, as a line that another one continues in");
            found.back().second += fmt::format(" {}", trimmed(line));
        } else if (colon == line.npos) {
            throw invalid_argument("\"{}\" is no line \"LABEL: VALUE\"", line.substr(0, 100));
        } else {
            found.emplace_back(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
        }
    }
    for (const auto& [label, value] : found) add_label(info, label, value);
}

/// The first text of a member: itself, its `name` or its `title`, or that of its first item.
std::string text_of(const Value& record, std::string_view member, std::string_view part) {
    const Value* value = record.is_object() ? record.find(member) : nullptr;
    if (value != nullptr && value->is_array()) value = value->as_array().empty() ? nullptr : &value->as_array().front();
    if (value != nullptr && value->is_object()) value = value->find(part);
    return value != nullptr && value->is_string() ? value->as_string() : std::string();
}

/// The attributes of a record, which the answers of DataCite's service hold in data.attributes.
const Value& attributes_of(const Value& document) {
    const Value* const data = document.is_object() ? document.find("data") : nullptr;
    const Value* const inner = data != nullptr && data->is_object() ? data->find("attributes") : nullptr;
    return inner != nullptr ? *inner : document;
}

void add_datacite(BagInfo& info, std::string text) {
    if (!info.datacite.empty()) throw invalid_argument("a second DataCite record: a bag has one");
    const Value document = Value::parse(text);
    const Value& record = attributes_of(document);
    std::vector<std::string_view> missing;
    const auto has = [&](std::string_view member) {
        const Value* const value = record.is_object() ? record.find(member) : nullptr;
        return value != nullptr && !value->is_null();
    };
    for (const std::string_view member : {"creators", "titles", "publisher", "publicationYear", "types"}) {
        if (!has(member)) missing.push_back(member);
    }
    if (!has("doi") && !has("identifiers")) missing.push_back("doi");
    if (!missing.empty()) {
        throw invalid_argument("no DataCite record: it lacks {}, which DataCite demands", fmt::join(missing, ", "));
    }
    info.datacite = std::move(text);
    const std::string doi = text_of(record, "doi", "");
    const std::array<std::pair<std::string_view, std::string>, 3> labels{
        {{"External-Identifier", doi.empty() ? text_of(record, "identifiers", "identifier") : "doi:" + doi},
         {"Source-Organization", text_of(record, "publisher", "name")},
         {"External-Description", text_of(record, "titles", "title")}}};
    for (const auto& [label, value] : labels) {
        const auto is_given = [&name = label](const auto& given) { return given.first == name; };
        if (value.empty() || std::ranges::any_of(info.labels, is_given)) continue;
        add_label(info, label, value);
    }
}

std::string content_of(const std::filesystem::path& path) {
    constexpr std::uint64_t most = std::uint64_t{16} << 20;
    const auto file = open_file(path);
    if (file->size() > most) throw invalid_argument("more than 16 MiB");
    const Buffer bytes = read_all(*file);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

BagInfo parse_bag_info(std::span<const std::string> words) {
    BagInfo info;
    std::vector<std::pair<std::string, std::string>> records;
    std::error_code ignored;
    for (const std::string& word : words) {
        const std::size_t equals = word.find('=');
        if (std::filesystem::is_regular_file(word, ignored)) {
            in_context([&] { return word; },
                       [&] {
                           std::string text = content_of(word);
                           if (!trimmed(text).starts_with('{')) return add_lines(info, text);
                           records.emplace_back(word, std::move(text));
                       });
        } else if (equals == std::string::npos) {
            throw invalid_argument("{}: neither a file nor LABEL=VALUE", word);
        } else {
            add_label(info, trimmed(std::string_view(word).substr(0, equals)),
                      trimmed(std::string_view(word).substr(equals + 1)));
        }
    }
    // These come last: what is given in words counts more.
    for (auto& [path, text] : records) {
        in_context([&name = path] { return name; },
                   [&content = text, &info] { add_datacite(info, std::move(content)); });
    }
    return info;
}

}  // namespace tessera
