#include "tiff_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <tessera/error.h>
#include <tessera/value.h>

namespace tessera {

namespace {

/// The value of an attribute in the text of one XML element, or of "name=" in a list of lines.
std::optional<std::string_view> named_value(std::string_view element, std::string_view name, std::string_view end) {
    for (std::size_t at = element.find(name); at != std::string_view::npos; at = element.find(name, at + 1)) {
        const bool begins = at > 0 && std::string_view(" \t\r\n").find(element[at - 1]) != std::string_view::npos;
        std::string_view rest = element.substr(at + name.size());
        const std::string_view mark = end == "\"" ? "=\"" : "=";
        if (!begins || !rest.starts_with(mark)) continue;
        rest.remove_prefix(mark.size());
        return rest.substr(0, rest.find(end));
    }
    return std::nullopt;
}

std::optional<std::int64_t> named_length(std::string_view element, std::string_view name, std::string_view end) {
    const auto text = named_value(element, name, end);
    std::int64_t n = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), n).ec != std::errc() || n < 0) {
        return std::nullopt;
    }
    return n;
}

/// The next element of this name from `at` on, without its '<' and '>'.
std::string_view next_element(std::string_view xml, std::string_view name, std::size_t& at) {
    for (at = xml.find(name, at); at != std::string_view::npos; at = xml.find(name, at + 1)) {
        const bool opens = at > 0 && (xml[at - 1] == '<' || xml[at - 1] == ':');
        const std::size_t end = xml.find('>', at);
        const std::size_t behind = at + name.size();
        if (!opens || end == std::string_view::npos || std::string_view(" \t\r\n/>").find(xml[behind]) > 5) continue;
        const std::string_view element = xml.substr(at, end - at);
        at = end;
        return element;
    }
    return {};
}

/// The axes of an OME-TIFF's pages, the slowest first.
struct OmeOrder {
    std::array<std::size_t, 3> which{};  ///< of z, c, t
    std::array<std::int64_t, 3> lengths{};

    [[nodiscard]] std::int64_t product() const { return lengths[0] * lengths[1] * lengths[2]; }
};

std::optional<OmeOrder> ome_order(std::string_view pixels, std::int64_t count) {
    const std::string_view order = named_value(pixels, "DimensionOrder", "\"").value_or("");
    if (order.size() != 5 || !order.starts_with("XY")) return std::nullopt;
    constexpr std::array<std::string_view, 3> sizes{"SizeZ", "SizeC", "SizeT"};
    OmeOrder axes;
    auto& [which, lengths] = axes;
    for (std::size_t i = 0; i < 3; ++i) {
        which[i] = std::string_view("ZCT").find(order[4 - i]);
        if (which[i] > 2) return std::nullopt;
        lengths[i] = named_length(pixels, sizes[which[i]], "\"").value_or(1);
    }
    if (std::ranges::any_of(lengths, [](std::int64_t n) { return n < 1 || n > 1 << 20; })) return std::nullopt;
    // Samples of a pixel count as channels, too.
    for (std::size_t i = 0; i < 3; ++i) {
        if (axes.product() != count && which[i] == 1 && axes.product() / lengths[i] == count) lengths[i] = 1;
    }
    return axes.product() == count ? std::optional(axes) : std::nullopt;
}

/// Orders the pages as <TiffData> of single planes says, from `at` on. Returns false if what it says cannot be.
bool order_pages(std::string_view xml, std::size_t at, const OmeOrder& order, std::vector<std::size_t>& pages) {
    constexpr std::array<std::string_view, 3> firsts{"FirstZ", "FirstC", "FirstT"};
    for (std::string_view data = next_element(xml, "TiffData", at); !data.empty();
         data = next_element(xml, "TiffData", at)) {
        const auto page = named_length(data, "IFD", "\"");
        if (!page || named_length(data, "PlaneCount", "\"").value_or(1) != 1) continue;
        std::int64_t place = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            const std::int64_t first = named_length(data, firsts[order.which[i]], "\"").value_or(0);
            if (first >= order.lengths[i]) return false;
            place = place * order.lengths[i] + first;
        }
        if (*page >= std::ssize(pages)) return false;
        pages[static_cast<std::size_t>(place)] = static_cast<std::size_t>(*page);
    }
    return true;
}

TiffAxes ome_axes(std::string_view xml, std::int64_t count, std::int64_t height, std::int64_t width) {
    std::size_t at = 0;
    const std::string_view pixels = next_element(xml, "Pixels", at);
    const std::optional<OmeOrder> order = ome_order(pixels, count);
    if (!order || named_length(pixels, "SizeX", "\"") != width || named_length(pixels, "SizeY", "\"") != height) {
        return {};
    }
    TiffAxes axes;
    axes.pages.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < axes.pages.size(); ++i) axes.pages[i] = i;
    if (!order_pages(xml, at, *order, axes.pages)) return {};
    constexpr std::array<const char*, 3> names{"z", "c", "t"};
    for (std::size_t i = 0; i < 3; ++i) {
        if (order->lengths[i] == 1) continue;
        axes.lengths.push_back(order->lengths[i]);
        axes.names.emplace_back(names[order->which[i]]);
    }
    return axes;
}

TiffAxes json_axes(std::string_view description, std::int64_t count) {
    try {
        const Value json = Value::parse(description);
        TiffAxes axes;
        std::int64_t product = 1;
        for (const Value& length : json.at("shape").as_array()) {
            if (product == count) break;  // what follows is the page
            axes.lengths.push_back(length.as_int64());
            axes.names.emplace_back();
            if (axes.lengths.back() < 1 || axes.lengths.back() > count || std::ssize(axes.lengths) > max_rank - 3) {
                return {};
            }
            product *= axes.lengths.back();
            if (product > count) return {};
        }
        return axes;
    } catch (const Error&) {
        return {};
    }
}

TiffAxes imagej_axes(std::string_view text, std::int64_t count) {
    TiffAxes axes;
    constexpr std::array<std::pair<std::string_view, const char*>, 3> keys{
        {{"frames", "t"}, {"slices", "z"}, {"channels", "c"}}};
    for (const auto& [key, name] : keys) {
        const std::int64_t n = named_length(text, key, "\n").value_or(1);
        if (n <= 1) continue;
        if (n > count) return {};
        axes.lengths.push_back(n);
        axes.names.emplace_back(name);
    }
    return axes;
}

}  // namespace

bool is_ome_xml(std::string_view description) {
    return description.starts_with("<") && description.find("<OME") < 4096;
}

std::int64_t imagej_images(std::string_view description) {
    return description.starts_with("ImageJ=") ? named_length(description, "images", "\n").value_or(1) : 1;
}

TiffAxes tiff_axes(std::string_view description, std::int64_t count, std::int64_t height, std::int64_t width) {
    if (count == 1) return {};
    if (is_ome_xml(description)) return ome_axes(description, count, height, width);
    if (description.starts_with("{\"shape\"")) return json_axes(description, count);
    if (description.starts_with("ImageJ=")) return imagej_axes(description, count);
    return {};
}

}  // namespace tessera
