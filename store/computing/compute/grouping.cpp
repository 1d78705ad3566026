#include <tessera/reduce.h>

#include <tessera/array_file.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <tessera/calendar.h>
#include <tessera/coordinates.h>
#include <tessera/counted.h>
#include <tessera/dimensions.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/slices.h>

namespace tessera {

namespace {

constexpr std::string_view season_names[] = {"DJF", "JJA", "MAM", "SON"};  // as xarray sorts them
constexpr int season_of_month[] = {0, 0, 2, 2, 2, 1, 1, 1, 3, 3, 3, 0};

/// A year, a month since year 0, or what recurs each year.
std::int64_t calendar_key(std::string_view by, Calendar calendar, Int128 time) {
    Int128 days = time / attoseconds_of_day;
    if (time % attoseconds_of_day < 0) --days;
    const CalendarDate date = date_of(calendar, days);
    const auto year = static_cast<std::int64_t>(date.year);
    if (by == "year") return year;
    if (by == "month") return year * 12 + date.month - 1;
    if (by == "month-of-year") return date.month;
    if (by == "day-of-year") return day_of_year(calendar, date);
    if (by == "hour-of-day")
        return static_cast<std::int64_t>((time - days * attoseconds_of_day) / (attoseconds_of_day / 24));
    return season_of_month[date.month - 1];
}

Value calendar_label(std::string_view by, std::int64_t key) {
    if (by == "season") return std::string(season_names[key]);
    if (by != "month") return key;
    const std::int64_t year = (key - (key % 12 + 12) % 12) / 12;
    return fmt::format("{:04}-{:02}", year, key - year * 12 + 1);
}

std::optional<Coordinate> times_along(const ArraySource& array, int axis, const DimensionNames& names) {
    if (names.empty() || !names[static_cast<std::size_t>(axis)]) return std::nullopt;
    auto coordinate = Coordinate::find(array, *names[static_cast<std::size_t>(axis)], array.info().shape[axis]);
    if (coordinate && coordinate->kind() != Coordinate::Kind::times) coordinate.reset();
    return coordinate;
}

/// The groups of keys, one for each index, without those that have none.
template <class Key>
void number_groups(Grouping& grouping, const std::vector<std::optional<Key>>& keys, std::vector<Key>& sorted) {
    for (const auto& key : keys) {
        if (key) sorted.push_back(*key);
    }
    std::ranges::sort(sorted);
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (const auto& key : keys) {
        const auto found = key ? std::ranges::lower_bound(sorted, *key) : sorted.end();
        grouping.of.push_back(found == sorted.end() ? -1 : static_cast<std::int32_t>(found - sorted.begin()));
    }
    grouping.count = std::ssize(sorted);
}

void require_countable(const ArraySource& array, std::int64_t length) {
    constexpr std::int64_t most = 1 << 30;
    if (length > most) throw unsupported("{}: more than {} indices are not grouped", array.name(), most);
}

}  // namespace

const std::vector<std::string_view>& grouping_words() {
    static const std::vector<std::string_view> words{
        "year", "month", "month-of-year", "day-of-year", "hour-of-day", "season", "dayofyear", "hour", "year-month"};
    return words;
}

std::string_view grouping_name(std::string_view word) {
    // As xarray calls them.
    if (word == "year-month") return "month";
    return word == "dayofyear" ? "day-of-year" : word == "hour" ? "hour-of-day" : word;
}

int time_dimension(const ArraySource& array) {
    const DimensionNames names = dimension_names_of(array);
    std::optional<int> found;
    for (int d = 0; d < static_cast<int>(names.size()); ++d) {
        if (!times_along(array, d, names)) continue;
        if (found) {
            throw invalid_argument("{}: {} and {} both have times; name one of them", array.name(),
                                   dimension_name(names, *found), dimension_name(names, d));
        }
        found = d;
    }
    if (!found) {
        throw invalid_argument(
            "{}: no dimension has a coordinate that holds times: an array beside it, of the "
            "dimension's name, of datetimes or with units such as 'days since 2000-01-01'",
            array.name());
    }
    return *found;
}

namespace {

/// Lets each year or month between the first and the last have a group.
void add_empty_groups(Grouping& grouping, const std::string& name, const std::vector<std::optional<std::int64_t>>& keys,
                      std::vector<std::int64_t>& sorted) {
    const std::int64_t first = sorted.front();
    grouping.count = sorted.back() - first + 1;
    constexpr std::int64_t most = 1'000'000;
    if (grouping.count > most) {
        throw invalid_argument("{}: its times lie {} {}s apart, of which most would be empty", name, grouping.count,
                               grouping.by);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (keys[i]) grouping.of[i] = static_cast<std::int32_t>(*keys[i] - first);
    }
    sorted.clear();
    for (std::int64_t k = 0; k < grouping.count; ++k) sorted.push_back(first + k);
}

}  // namespace

std::shared_ptr<const Grouping> group_by_time(const ArraySource& array, int axis, std::string_view word) {
    const std::string_view by = grouping_name(word);
    const auto& words = grouping_words();
    if (std::ranges::find(words, by) == words.end()) {
        throw invalid_argument(
            "expected year, month (or year-month), month-of-year, day-of-year, hour-of-day or season, found '{}'", by);
    }
    const DimensionNames names = dimension_names_of(array);
    const std::optional<Coordinate> coordinate = times_along(array, axis, names);
    if (!coordinate) {
        throw invalid_argument(
            "{}: {} has no coordinate that holds times: an array beside it, of the dimension's "
            "name, of datetimes or with units such as 'days since 2000-01-01'",
            array.name(), dimension_name(names, axis));
    }
    const std::int64_t length = coordinate->length();
    require_countable(array, length);
    MemoryHold held;
    held.add(static_cast<std::uint64_t>(length) * (sizeof(std::optional<std::int64_t>) + 12));
    auto grouping = std::make_shared<Grouping>();
    grouping->axis = axis;
    grouping->by = by;
    std::vector<std::optional<std::int64_t>> keys;
    keys.reserve(static_cast<std::size_t>(length));
    coordinate->for_each<Int128>(0, length, [&](const std::optional<Int128>& time) {
        keys.push_back(time ? std::optional(calendar_key(by, coordinate->calendar(), *time)) : std::nullopt);
    });
    std::vector<std::int64_t> sorted;
    number_groups(*grouping, keys, sorted);
    if ((by == "year" || by == "month") && !sorted.empty())
        add_empty_groups(*grouping, coordinate->name(), keys, sorted);
    for (const std::int64_t key : sorted) grouping->labels.push_back(calendar_label(by, key));
    return grouping;
}

namespace {

/// Labels of one array, each a text once: they are few, and repeat.
class LabelNumbers {
public:
    LabelNumbers(const DType& dtype, std::int64_t length)
        : dtype_(dtype),
          kind_(dtype.kind()),
          text_(kind_ == Kind::bytes || kind_ == Kind::text || dtype.is_variable()) {
        held_.add(static_cast<std::uint64_t>(length) * 8);
    }

    void add(const std::byte* element) {
        Value value = element_to_value(dtype_, element);
        if (value.is_double() && value.as_double() == 0) value = 0.0;  // -0.0 equals 0.0, so they are one label
        const std::string shown = value.is_double() ? value.dump() : element_to_text(dtype_, element);
        const bool missing = (value.is_double() && std::isnan(value.as_double())) || shown == "NaT";
        if (missing && !text_) {
            numbers_.push_back(-1);
            return;
        }
        if (value.is_bool()) value = value.as_bool() ? 1 : 0;
        const auto [at, is_new] = known_.try_emplace(shown, std::move(value), static_cast<std::int32_t>(known_.size()));
        if (is_new) held_.add(shown.size() + 200);
        numbers_.push_back(at->second.second);
    }

    /// In the order of the labels.
    void group(Grouping& grouping) const {
        std::vector<std::pair<std::string, std::pair<Value, std::int32_t>>> sorted(known_.begin(), known_.end());
        std::ranges::stable_sort(
            sorted, [&](const auto& a, const auto& b) { return sorts_before(a.second.first, b.second.first); });
        std::vector<std::int32_t> place(sorted.size());
        const bool is_time = kind_ == Kind::datetime || kind_ == Kind::timedelta;
        for (std::size_t i = 0; i < sorted.size(); ++i) {
            place[static_cast<std::size_t>(sorted[i].second.second)] = static_cast<std::int32_t>(i);
            grouping.labels.push_back(is_time ? Value(sorted[i].first) : sorted[i].second.first);
        }
        for (const std::int32_t number : numbers_) {
            grouping.of.push_back(number < 0 ? -1 : place[static_cast<std::size_t>(number)]);
        }
        grouping.count = std::ssize(sorted);
    }

private:
    [[nodiscard]] bool sorts_before(const Value& a, const Value& b) const {
        if (text_) return a.as_string() < b.as_string();
        if (kind_ == Kind::unsigned_integer) return a.as_uint64() < b.as_uint64();
        return a.as_double() < b.as_double() || (a.is_integer() && b.is_integer() && a.as_int64() < b.as_int64());
    }

    DType dtype_;
    Kind kind_;
    bool text_;
    std::map<std::string, std::pair<Value, std::int32_t>> known_;
    std::vector<std::int32_t> numbers_;
    MemoryHold held_;
};

void require_labels(const ArraySource& array, int axis, const ArraySource& labels) {
    const ArrayInfo info = labels.info();
    const std::int64_t length = array.info().shape[axis];
    if (info.shape.rank() != 1 || info.shape[0] != length) {
        throw invalid_argument("{}: expected one label for each index of {}, of the shape ({}), found {}",
                               labels.name(), dimension_name(dimension_names_of(array), axis), length,
                               info.shape.to_string());
    }
    const Kind kind = info.dtype.kind();
    if (kind == Kind::structure || kind == Kind::complex || kind == Kind::object) {
        throw invalid_argument("{}: elements of {} are no labels", labels.name(), info.dtype.to_string());
    }
    require_countable(array, length);
}

}  // namespace

std::shared_ptr<const Grouping> group_by_labels(const ArraySource& array, int axis,
                                                std::unique_ptr<ArraySource> labels) {
    require_labels(array, axis, *labels);
    const ArrayInfo info = labels->info();
    const std::int64_t length = info.shape[0];
    auto grouping = std::make_shared<Grouping>();
    grouping->axis = axis;
    // The result need not say on whose machine, and below which folder, the labels lay.
    const ArrayPath lies = split_array_path(labels->name());
    grouping->by = lies.member ? *lies.member : lies.path.filename().string();
    const DType native = native_dtype(info.dtype);
    LabelNumbers numbers(native, length);
    for_each_slice(info, native.size(), Region({0}, {length}), {}, [&](const Region& slice) {
        NDArray elements(native, slice.extent);
        labels->read_into(slice, elements.view(), {});
        const std::byte* p = elements.bytes().data();
        for (std::int64_t i = 0; i < elements.count(); ++i, p += native.size()) numbers.add(p);
    });
    numbers.group(*grouping);
    return grouping;
}

}  // namespace tessera
