#include "gdal_metadata.h"

#include <cmath>
#include <vector>

#include <fmt/format.h>

#include <tessera/number_text.h>

namespace tessera {

namespace {

constexpr std::string_view begin_of_item = "<Item ", end_of_item = "</Item>", end_of_all = "</GDALMetadata>";

struct Item {
    std::string_view whole, attributes, text;
};

std::vector<Item> items_of(std::string_view metadata) {
    std::vector<Item> items;
    for (std::size_t at = metadata.find(begin_of_item); at != std::string_view::npos;) {
        const std::size_t text = metadata.find('>', at), end = metadata.find(end_of_item, at);
        if (text == std::string_view::npos || end == std::string_view::npos || end < text) break;
        items.push_back({metadata.substr(at, end + end_of_item.size() - at), metadata.substr(at, text - at),
                         metadata.substr(text + 1, end - text - 1)});
        at = metadata.find(begin_of_item, end);
    }
    return items;
}

std::string_view attribute_of(const Item& item, std::string_view name) {
    const std::string begin = fmt::format(" {}=\"", name);
    const std::size_t at = item.attributes.find(begin);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = item.attributes.substr(at + begin.size());
    return rest.substr(0, rest.find('"'));
}

bool is_packing(const Item& item) {
    const std::string_view role = attribute_of(item, "role");
    return role == "scale" || role == "offset";
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
    Number number{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = number_from_text(text.data(), end, number);
    return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<GdalPacking> gdal_packing(std::string_view metadata, std::int64_t bands) {
    std::vector<GdalPacking> packings(static_cast<std::size_t>(bands));
    for (const Item& item : items_of(metadata)) {
        if (!is_packing(item)) continue;
        const auto number = number_in<double>(item.text);
        const auto band = number_in<std::size_t>(attribute_of(item, "sample"));
        if (!number || !std::isfinite(*number) || !band || *band >= packings.size()) return std::nullopt;
        (attribute_of(item, "role") == "scale" ? packings[*band].scale : packings[*band].offset) = *number;
    }
    for (const GdalPacking& one : packings) {
        if (one.scale != packings[0].scale || one.offset != packings[0].offset) return std::nullopt;
    }
    const bool packed = !packings.empty() && (packings[0].scale != 1 || packings[0].offset != 0);
    return packed ? std::optional(packings[0]) : std::nullopt;
}

std::string without_gdal_packing(std::string_view metadata) {
    std::string left(metadata);
    std::size_t others = 0;
    for (const Item& item : items_of(metadata)) {
        if (!is_packing(item)) {
            ++others;
            continue;
        }
        const std::size_t at = left.find(item.whole);
        const std::size_t line = left.find_last_not_of(' ', at == 0 ? 0 : at - 1) + 1;
        const std::size_t end = at + item.whole.size();
        left.erase(line, end - line + (left.compare(end, 1, "\n") == 0 ? 1 : 0));
    }
    return others == 0 ? std::string() : left;
}

std::string with_gdal_packing(std::string_view metadata, const GdalPacking& packing, std::int64_t bands) {
    std::string text(metadata);
    if (text.find(end_of_all) == std::string::npos) text = fmt::format("<GDALMetadata>\n{}\n", end_of_all);
    std::string items;
    for (std::int64_t band = 0; band < bands; ++band) {
        items += fmt::format(
            "  <Item name=\"OFFSET\" sample=\"{0}\" role=\"offset\">{1}</Item>\n"
            "  <Item name=\"SCALE\" sample=\"{0}\" role=\"scale\">{2}</Item>\n",
            band, packing.offset, packing.scale);
    }
    return text.insert(text.find(end_of_all), items);
}

}  // namespace tessera
