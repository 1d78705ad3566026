#include "group_labels.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/calendar.h>
#include <tessera/coordinates.h>
#include <tessera/derived_source.h>
#include <tessera/dialect.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>
#include <tessera/shared_source.h>
#include <tessera/value.h>

#include "dialects.h"

namespace tessera {

namespace {

CalendarDate month_of(const std::string& label) {
    const std::size_t dash = label.rfind('-');
    std::int64_t year = 0;
    int month = 1;
    std::from_chars(label.data(), label.data() + dash, year);
    std::from_chars(label.data() + dash + 1, label.data() + label.size(), month);
    return {.year = year, .month = month, .day = 1};
}

/// Days since the first of them.
std::unique_ptr<ArraySource> months(const Grouping& grouping, Calendar calendar, const std::string& name,
                                    Value attributes) {
    std::vector<std::int64_t> days;
    Int128 first = 0;
    for (const Value& label : grouping.labels.as_array()) {
        const Int128 day = days_of(calendar, month_of(label.as_string()));
        if (days.empty()) first = day;
        days.push_back(static_cast<std::int64_t>(day - first));
    }
    const std::string begin = days.empty() ? "1970-01" : grouping.labels.as_array().front().as_string();
    attributes.set("units", fmt::format("days since {}-01", begin));
    attributes.set("calendar", std::string(calendar_name(calendar)));
    attributes.set("standard_name", "time");
    return held_source(NDArray(days), name, std::move(attributes));
}

DType dtype_of(const Value::Array& labels) {
    const auto all = [&](auto is) { return std::ranges::all_of(labels, is); };
    if (all([](const Value& v) { return v.is_integer(); })) return DType::of<std::int64_t>();
    if (all([](const Value& v) { return v.is_integer() || v.is_double(); })) return DType::of<double>();
    std::size_t longest = 1;
    for (const Value& label : labels) longest = std::max(longest, label.as_string().size());
    return DType::parse(fmt::format("<U{}", longest));
}

}  // namespace

std::unique_ptr<ArraySource> labels_source(const Grouping& grouping, const ArraySource& coordinate,
                                           const std::string& name) {
    Value attributes = Value::object();
    attributes.set(dimensions_attribute, dimension_names_json(std::vector<std::optional<std::string>>{name}));
    if (grouping.by == "month") {
        const Coordinate times(borrowed_source(coordinate));
        return months(grouping, times.calendar(), name, std::move(attributes));
    }
    const Value::Array& labels = grouping.labels.as_array();
    NDArray elements(dtype_of(labels), Shape{std::ssize(labels)});
    std::byte* to = elements.bytes().data();
    for (const Value& label : labels) {
        std::ranges::copy(element_from_value(elements.dtype(), label, Assign::exact), to);
        to += elements.dtype().size();
    }
    return held_source(std::move(elements), name, std::move(attributes));
}

}  // namespace tessera
