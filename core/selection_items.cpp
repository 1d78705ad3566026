#include <tessera/selection_items.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include <tessera/error_text.h>

namespace tessera {

namespace {

std::optional<std::int64_t> number(std::string_view item, std::string_view whole) {
    item = without_blanks(item);
    if (item.empty()) return std::nullopt;
    std::string_view digits = item;
    if (digits.size() > 1 && digits.front() == '+') digits.remove_prefix(1);
    std::int64_t n = 0;
    const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    if (ec != std::errc() || end != digits.data() + digits.size()) {
        throw invalid_argument(
            "selection \"{}\": \"{}\" is no index; write NumPy's basic slices, such as 10:20, ::2, 5, ...", whole,
            item);
    }
    return n;
}

// Python's slice.indices(length), and the count.
Selection::Axis slice_axis(std::optional<std::int64_t> from, std::optional<std::int64_t> to, std::int64_t step,
                           std::int64_t length) {
    const std::int64_t low = step > 0 ? 0 : -1;
    const std::int64_t high = step > 0 ? length : length - 1;
    const auto clip = [&](std::int64_t v) {
        if (v < 0) v = v < -length ? low - 1 : v + length;  // below every index
        return std::clamp(v, low, high);
    };
    const std::int64_t start = from ? clip(*from) : (step > 0 ? low : high);
    const std::int64_t stop = to ? clip(*to) : (step > 0 ? high : low);
    Selection::Axis axis{.start = start, .step = step, .count = 0};
    if (step > 0 && start < stop) axis.count = (stop - start - 1) / step + 1;
    if (step < 0 && start > stop) {
        // -(step+1) cannot overflow, -step can.
        const std::uint64_t size = static_cast<std::uint64_t>(-(step + 1)) + 1;
        axis.count = static_cast<std::int64_t>(static_cast<std::uint64_t>(start - stop - 1) / size) + 1;
    }
    if (axis.count == 0) axis.start = std::clamp<std::int64_t>(axis.start, 0, length);
    if (axis.count <= 1) axis.step = 1;
    return axis;
}

}  // namespace

std::string_view without_blanks(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

std::vector<std::string_view> unquoted_parts(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    std::size_t begin = 0;
    char quote = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        const char c = i < text.size() ? text[i] : separator;
        if (quote != 0 && i < text.size()) {
            if (c == quote) quote = 0;
        } else if (quote != 0) {
            throw invalid_argument("selection \"{}\": the quote {} is not closed", text, quote);
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c == separator) {
            parts.push_back(without_blanks(text.substr(begin, i - begin)));
            begin = i + 1;
        }
    }
    return parts;
}

std::vector<std::string_view> selection_items(std::string_view text) {
    std::string_view s = without_blanks(text);
    const bool bracketed = s.size() >= 2 && s.front() == '[' && s.back() == ']';
    if (bracketed) s = without_blanks(s.substr(1, s.size() - 2));
    // To NumPy x[[1, 2]] is two rows, and x[1, 2] one element: '[1, 2]' may mean either.
    const bool list = bracketed && s.find(',') != s.npos && s.find_first_not_of("-0123456789, ") == s.npos;
    const bool quoted = s.find_first_of("'\"") != s.npos;
    if (list || (!quoted && s.find_first_of("[]") != s.npos)) {
        throw invalid_argument(
            "selection \"{}\": lists of indices are not taken; without brackets \"1, 2\" is one element, and \"1:3\" "
            "rows 1 and 2",
            text);
    }
    if (s.empty()) return {};
    std::vector<std::string_view> items = unquoted_parts(s, ',');
    if (items.back().empty() && items.size() > 1) items.pop_back();
    for (const std::string_view item : items) {
        if (item.empty()) throw invalid_argument("selection \"{}\": nothing between two commas", text);
    }
    return items;
}

Selection::Axis index_axis(std::string_view item, std::string_view text, int d, std::int64_t length) {
    const std::size_t first = item.find(':');
    if (first == std::string_view::npos) {
        std::int64_t i = *number(item, text);
        if (i < -length || i >= length) {
            throw out_of_bounds("selection \"{}\": index {} is out of bounds for dimension {} with length {}", text, i,
                                d, length);
        }
        if (i < 0) i += length;
        return {.start = i, .step = 1, .count = 1, .dropped = true};
    }
    const std::size_t second = item.find(':', first + 1);
    const auto from = number(item.substr(0, first), text);
    const auto to =
        number(item.substr(first + 1, second == std::string_view::npos ? second : second - first - 1), text);
    const auto step = second == std::string_view::npos ? std::nullopt : number(item.substr(second + 1), text);
    if (step == 0) throw invalid_argument("selection \"{}\": a step cannot be 0", text);
    return slice_axis(from, to, step.value_or(1), length);
}

Selection::Axis stepped_axis(std::int64_t first, std::int64_t count, std::string_view step, std::string_view text) {
    const std::int64_t by = number(step, text).value_or(1);
    if (by < 1) throw invalid_argument("selection \"{}\": the step of a range of values is at least 1", text);
    const std::int64_t picked = count == 0 ? 0 : (count - 1) / by + 1;
    return {.start = first, .step = picked > 1 ? by : 1, .count = picked};
}

Selection Selection::parse(std::string_view text, const Shape& shape) {
    const std::vector<std::string_view> items = selection_items(text);
    const auto dots = std::count(items.begin(), items.end(), "...");
    if (dots > 1) throw invalid_argument("selection \"{}\": only one \"...\" is possible", text);
    const std::int64_t given = static_cast<std::int64_t>(items.size()) - dots;
    if (given > shape.rank()) {
        throw invalid_argument("selection \"{}\" has {} indices, but the array has {} dimensions, shape {}", text,
                               given, shape.rank(), shape.to_string());
    }
    Selection result{std::vector<Axis>{}};
    const auto take_whole = [&](std::int64_t n) {
        for (; n > 0; --n) result.axes_.push_back({.start = 0, .step = 1, .count = shape[result.rank()]});
    };
    for (const std::string_view item : items) {
        if (item == "...") {
            take_whole(shape.rank() - given);
        } else {
            result.axes_.push_back(index_axis(item, text, result.rank(), shape[result.rank()]));
        }
    }
    take_whole(shape.rank() - result.rank());
    return result;
}

}  // namespace tessera
