#include <tessera/dimensions.h>

#include <tessera/coordinates.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/array.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>
#include <tessera/geo_reference.h>
#include <tessera/number_text.h>
#include <tessera/selection_items.h>
#include <tessera/turned.h>

namespace tessera {

namespace {

/// The text without the quotes that stand around it.
std::string_view without_quotes(std::string_view text) {
    const bool quoted =
        text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front();
    return quoted ? text.substr(1, text.size() - 2) : text;
}

/// What an item says of the dimension that it names.
struct NamedItem {
    std::string_view text;  ///< the whole
    std::string_view name;
    char how = '=';  ///< '=' values, '~' the nearest value, '@' indices
    std::string_view what;
};

/// nullopt for an item without a name.
std::optional<NamedItem> named_item(std::string_view item, std::string_view text) {
    char quote = 0;
    for (std::size_t i = 0; i < item.size(); ++i) {
        const char c = item[i];
        if (quote != 0) {
            if (c == quote) quote = 0;
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c == '=' || c == '~' || c == '@') {
            NamedItem named{.text = item,
                            .name = without_quotes(without_blanks(item.substr(0, i))),
                            .how = c,
                            .what = without_blanks(item.substr(i + 1))};
            if (named.name.empty() || named.what.empty()) {
                throw invalid_argument("selection \"{}\": expected NAME{}VALUE, found \"{}\"", text, c, item);
            }
            return named;
        }
    }
    return std::nullopt;
}

// ---- values of a coordinate

std::string key_text(const Coordinate&, long double key) {
    return fmt::format("{}", static_cast<double>(key));
}
std::string key_text(const Coordinate& coordinate, Int128 key) {
    return time_text(coordinate.calendar(), key);
}
std::string key_text(const Coordinate&, const std::string& key) {
    return fmt::format("'{}'", key);
}

/// The first and the last key that a value stands for, and how exact it is, where that means anything.
template <class Key>
struct Keys {
    Key first, last;
    int fields = 0;
};

template <class Key>
Keys<Key> keys_of(const Coordinate& coordinate, std::string_view value) {
    const std::string_view text = without_quotes(value);
    if constexpr (std::is_same_v<Key, std::string>) {
        return {std::string(text), std::string(text)};
    } else if constexpr (std::is_same_v<Key, Int128>) {
        const bool bare = text.size() == value.size();
        if (bare && text.size() <= 2) {
            throw invalid_argument("'{}' is no date; a time that holds a colon stands in quotes", text);
        }
        const TimePeriod period = parse_period(text, coordinate.calendar());
        return {period.first, period.last, period.fields};
    } else {
        const long double number = coordinate.number_of(text);
        return {number, number};
    }
}

bool is_longitude(const Value& attributes) {
    constexpr std::array<std::string_view, 6> units{"degrees_east", "degree_east", "degrees_E",
                                                    "degree_E",     "degreesE",    "degreeE"};
    const auto text = [&](std::string_view name) {
        const Value* const value = attributes.find(name);
        return value != nullptr && value->is_string() ? value->as_string() : std::string();
    };
    return text("standard_name") == "longitude" || std::ranges::count(units, text("units")) > 0;
}

/// The values of a coordinate that runs once around the earth: longitudes by units or standard_name that rise, and
/// whose span and one step are 360 degrees within a hundredth of a step. Empty: it does not.
std::vector<long double> cycle_of(const Coordinate& coordinate) {
    constexpr std::int64_t most = 10'000'000;
    const std::int64_t n = coordinate.length();
    if (coordinate.kind() != Coordinate::Kind::numbers || n < 2 || n > most) return {};
    if (!is_longitude(coordinate.source().attribute_values())) return {};
    std::vector<long double> values;
    bool rises = true;
    coordinate.for_each<long double>(0, n, [&](const std::optional<long double>& value) {
        rises = rises && value && (values.empty() || *value > values.back());
        values.push_back(value.value_or(0));
    });
    const long double step = (values.back() - values.front()) / static_cast<long double>(n - 1);
    const bool around = std::fabs(values.back() - values.front() + step - whole_turn) <= step / 100;
    return rises && around ? values : std::vector<long double>{};
}

/// Of a value, or of the same longitude in the turn that the coordinate has.
template <class Key>
Keys<Key> keys_in_turn(const Coordinate& coordinate, std::string_view value) {
    Keys<Key> keys = keys_of<Key>(coordinate, value);
    if constexpr (std::is_same_v<Key, long double>) keys.first = keys.last = in_turn(cycle_of(coordinate), keys.first);
    return keys;
}

/// Whether the keys that passed rise, fall, or neither.
template <class Key>
class Sorting {
public:
    void add(const std::optional<Key>& key) {
        if (!key) {
            rising_ = falling_ = false;
        } else if (before_) {
            if (*key < *before_) rising_ = false;
            if (*key > *before_) falling_ = false;
        }
        before_ = key;
    }
    [[nodiscard]] bool is_sorted() const { return rising_ || falling_; }

private:
    bool rising_ = true, falling_ = true;
    std::optional<Key> before_;
};

template <class Key>
void require_sorted(const Coordinate& coordinate, const Sorting<Key>& order, std::string_view item) {
    if (order.is_sorted()) return;
    throw invalid_argument(
        "{}: its values neither rise nor fall throughout, so that \"{}\" picks no range; select by indices, or single "
        "values",
        coordinate.name(), item);
}

/// The indices whose keys lie in a range.
struct Matches {
    std::int64_t first = 0, last = -1, count = 0;
    void add(std::int64_t at) {
        if (count++ == 0) first = at;
        last = at;
    }
};

/// The keys of a range, both included; nullopt: it goes to the end.
template <class Key>
struct KeyRange {
    std::optional<Key> low, high;
};

template <class Key>
bool falls_at_all(const Coordinate& coordinate) {
    const std::int64_t n = coordinate.length();
    std::optional<Key> at_start;
    std::optional<Key> at_end;
    if (n > 0) {
        coordinate.for_each<Key>(0, 1, [&](const std::optional<Key>& key) { at_start = key; });
        coordinate.for_each<Key>(n - 1, 1, [&](const std::optional<Key>& key) { at_end = key; });
    }
    return at_start && at_end && *at_end < *at_start;
}

template <class Key>
KeyRange<Key> range_of(const Coordinate& coordinate, const std::vector<std::string_view>& ends, bool falls) {
    std::optional<Keys<Key>> from;
    std::optional<Keys<Key>> to;
    if (!ends[0].empty()) from = keys_of<Key>(coordinate, ends[0]);
    if (!ends[1].empty()) to = keys_of<Key>(coordinate, ends[1]);
    std::optional<Key> low;
    std::optional<Key> high;
    if (from && to) {
        low = std::min(from->first, to->first);
        high = std::max(from->last, to->last);
        // Of two periods of which one lies within the other, as in 2020:2020-03-18, the first end begins the range.
        const auto covers = [](const Keys<Key>& a, const Keys<Key>& b) {
            return a.first <= b.first && b.last <= a.last;
        };
        if (covers(*from, *to) || covers(*to, *from)) {
            low = (falls ? to : from)->first;
            high = (falls ? from : to)->last;
        }
    } else if (from) {
        (falls ? high : low) = falls ? from->last : from->first;
    } else if (to) {
        (falls ? low : high) = falls ? to->first : to->last;
    }
    return {low, high};
}

/// Where a range of longitudes lies that goes beyond the ends of the coordinate.
std::optional<Turn> turn_for(const Coordinate& coordinate, const std::vector<std::string_view>& ends) {
    if (coordinate.kind() != Coordinate::Kind::numbers || ends[0].empty() || ends[1].empty()) return std::nullopt;
    const auto [low, high] = range_of<long double>(coordinate, ends, false);
    return low && high ? turn_of_range(cycle_of(coordinate), *low, *high) : std::nullopt;
}

/// Throws if a range that takes nothing would take longitudes a turn on: 350 is -10.
void require_no_other_turn(const Coordinate& coordinate, const NamedItem& item, const KeyRange<long double>& range) {
    if (!range.low || !range.high || !is_longitude(coordinate.source().attribute_values())) return;
    std::optional<long double> turn;
    coordinate.for_each<long double>(0, coordinate.length(), [&](const std::optional<long double>& key) {
        if (!key) return;
        const long double on = whole_turn * std::ceil((*range.low - *key) / whole_turn);
        if (*key + on <= *range.high) turn = -on;
    });
    if (!turn) return;
    throw out_of_bounds("{}: nothing lies in \"{}\"; its longitudes are counted otherwise: {}={}:{}", coordinate.name(),
                        item.text, item.name, key_text(coordinate, *range.low + *turn),
                        key_text(coordinate, *range.high + *turn));
}

template <class Key>
Selection::Axis pick_range(const Coordinate& coordinate, const NamedItem& item, std::string_view text,
                           const std::vector<std::string_view>& ends) {
    const std::int64_t n = coordinate.length();
    const KeyRange<Key> range = range_of<Key>(coordinate, ends, falls_at_all<Key>(coordinate));
    if (const auto turn = turn_for(coordinate, ends)) {
        throw invalid_argument(
            "\"{}\" goes beyond the ends of {}, and lies at indices {}: take its parts one after the other, by {}@ and "
            "indices",
            item.text, coordinate.name(), turn->to_string(), item.name);
    }
    Matches matches;
    Sorting<Key> order;
    std::int64_t i = 0;
    coordinate.for_each<Key>(0, n, [&](const std::optional<Key>& key) {
        order.add(key);
        if (key && (!range.low || *key >= *range.low) && (!range.high || *key <= *range.high)) matches.add(i);
        ++i;
    });
    require_sorted(coordinate, order, item.text);
    if constexpr (std::is_same_v<Key, long double>) {
        if (matches.count == 0) require_no_other_turn(coordinate, item, range);
    }
    return stepped_axis(matches.first, matches.count, ends.size() > 2 ? ends[2] : std::string_view(), text);
}

/// The values next to one that is not there, for an error.
template <class Key>
struct Neighbours {
    std::optional<Key> below, above;
    void add(const Key& key, const Key& value) {
        if (key < value && (!below || key > *below)) below = key;
        if (key > value && (!above || key < *above)) above = key;
    }
    [[nodiscard]] std::string text(const Coordinate& coordinate) const {
        if (!below && !above) return "it has no values";
        if (!below) return "the least is " + key_text(coordinate, *above);
        if (!above) return "the greatest is " + key_text(coordinate, *below);
        return fmt::format("its neighbours are {} and {}", key_text(coordinate, *below), key_text(coordinate, *above));
    }
};

template <class Key>
Selection::Axis pick_value(const Coordinate& coordinate, const NamedItem& item) {
    const Keys<Key> value = keys_in_turn<Key>(coordinate, item.what);
    Matches within;
    Matches exact;
    int finest = 0;
    Neighbours<Key> neighbours;
    std::int64_t i = 0;
    coordinate.for_each<Key>(0, coordinate.length(), [&](const std::optional<Key>& key) {
        if (key) {
            if (*key >= value.first && *key <= value.last) within.add(i);
            if (*key == value.first) exact.add(i);
            neighbours.add(*key, value.first);
            if constexpr (std::is_same_v<Key, Int128>) {
                finest = std::max(finest, fields_needed(coordinate.calendar(), *key));
            }
        }
        ++i;
    });
    const bool period = value.fields < finest;  // "2020-01" of days is all of that month
    const Matches& found = period ? within : exact;
    if (found.count == 0) {
        throw out_of_bounds("{}: there is no value {}; {}", coordinate.name(), item.what, neighbours.text(coordinate));
    }
    if (found.last - found.first + 1 != found.count || (!period && found.count > 1)) {
        throw invalid_argument("{}: the value {} is there {} times, first at {} and last at {}; select by indices",
                               coordinate.name(), item.what, found.count, found.first, found.last);
    }
    return {.start = found.first, .step = 1, .count = found.count, .dropped = !period};
}

template <class Key>
Selection::Axis pick_nearest(const Coordinate& coordinate, const NamedItem& item) {
    if constexpr (std::is_same_v<Key, std::string>) {
        throw invalid_argument("{}: texts have no nearest value; \"{}={}\" is the one that is equal", coordinate.name(),
                               item.name, item.what);
    } else {
        const Key value = keys_in_turn<Key>(coordinate, item.what).first;
        const bool around = is_longitude(coordinate.source().attribute_values());
        std::optional<Key> least;
        std::int64_t nearest = 0;
        Sorting<Key> order;
        std::int64_t i = 0;
        coordinate.for_each<Key>(0, coordinate.length(), [&](const std::optional<Key>& key) {
            order.add(key);
            if (key) {
                Key distance = *key > value ? *key - value : value - *key;
                if constexpr (std::is_same_v<Key, long double>) {
                    if (around) distance = std::fabs(std::remainder(distance, whole_turn));
                }
                if (!least || distance <= *least) {  // of two, the later one, as in pandas
                    least = distance;
                    nearest = i;
                }
            }
            ++i;
        });
        require_sorted(coordinate, order, item.text);
        if (!least) throw out_of_bounds("{}: it has no values", coordinate.name());
        return {.start = nearest, .step = 1, .count = 1, .dropped = true};
    }
}

template <class Key>
Selection::Axis pick_of(const Coordinate& coordinate, const NamedItem& item, std::string_view text) {
    if (item.how == '~') return pick_nearest<Key>(coordinate, item);
    const std::vector<std::string_view> ends = unquoted_parts(item.what, ':');
    if (ends.size() == 1) return pick_value<Key>(coordinate, item);
    if (ends.size() > 3) {
        throw invalid_argument("\"{}\" has {} colons; a value that holds a colon stands in quotes", item.text,
                               ends.size() - 1);
    }
    return pick_range<Key>(coordinate, item, text, ends);
}

std::string axis_text(const Selection::Axis& axis) {
    return Selection(std::vector{axis}).to_string();
}

/// What an item picks of an array that was turned for it.
std::optional<Selection::Axis> pick_turned(const NamedItem& item, std::string_view text, const ArraySource& source,
                                           int d, std::string& said) {
    const Turn* const turn = turn_of(source);
    if (turn == nullptr || turn->dimension != d) return std::nullopt;
    const std::vector<std::string_view> ends = unquoted_parts(item.what, ':');
    said = fmt::format("{} means indices {}", item.text, turn->to_string());
    return stepped_axis(0, turn->count, ends.size() > 2 ? ends[2] : std::string_view(), text);
}

/// What a named item picks, and in `said` what it was taken for.
Selection::Axis pick(const NamedItem& item, std::string_view text, const ArraySource& source, int d,
                     std::int64_t length, std::string& said) {
    if (const auto turned = pick_turned(item, text, source, d, said)) return *turned;
    std::optional<Coordinate> coordinate;
    if (item.how != '@') coordinate = Coordinate::find(source, std::string(item.name), length);
    if (!coordinate) {
        if (item.how == '~') {
            throw invalid_argument("{}: no coordinate {} lies beside it, so that nothing is nearest to {}",
                                   source.name(), item.name, item.what);
        }
        if (item.how == '=') {
            throw invalid_argument(
                "{}: no coordinate {} lies beside it, so that it has no values along it; indices are "
                "{}@{}",
                source.name(), item.name, item.name, item.what);
        }
        const Selection::Axis axis = index_axis(item.what, text, d, length);
        said = fmt::format("{} means indices {}", item.text, axis_text(axis));
        return axis;
    }
    Selection::Axis axis;
    try {
        switch (coordinate->kind()) {
            case Coordinate::Kind::numbers:
                axis = pick_of<long double>(*coordinate, item, text);
                break;
            case Coordinate::Kind::times:
                axis = pick_of<Int128>(*coordinate, item, text);
                break;
            default:
                axis = pick_of<std::string>(*coordinate, item, text);
        }
    } catch (const Error& e) {
        if (e.code() != ErrorCode::invalid_argument || std::string_view(e.what()).starts_with("selection ")) throw;
        throw e.within(fmt::format("selection \"{}\"", text));
    }
    said = fmt::format("{} means {} {}", item.text, axis.dropped ? "index" : "indices", axis_text(axis));
    return axis;
}

int named_dimension(const NamedItem& item, const DimensionNames& names, int rank, const ArraySource& source) {
    const auto found = std::ranges::find(names, std::optional(std::string(item.name)));
    if (found != names.end()) return static_cast<int>(found - names.begin());
    std::string known;
    for (int d = 0; d < rank; ++d) known += (d == 0 ? "" : ", ") + dimension_name(names, d);
    throw invalid_argument("{}: no dimension has the name '{}'; {}", source.name(), item.name,
                           names.empty() ? "they have no names" : "there are " + known);
}

}  // namespace

DimensionNames dimension_names_of(const ArraySource& source) {
    if (const CastSource* const cast = as_cast(source)) return dimension_names_of(cast->array());
    if (source.model() != nullptr) return dimension_names_of(*source.model());
    const auto* array = as_array(source);
    if (array != nullptr) {
        DimensionNames names = array->metadata().dimension_names;
        if (!names.empty()) return names;
    }
    const Value attributes = source.attribute_values();
    const Value* listed = attributes.find(dimensions_attribute);
    DimensionNames names;
    if (listed == nullptr || !listed->is_array()) return names;
    for (const Value& name : listed->as_array()) {
        names.push_back(name.is_string() ? std::optional(name.as_string()) : std::nullopt);
    }
    return std::cmp_equal(names.size(), source.info().shape.rank()) ? names : DimensionNames{};
}

std::string dimension_name(const DimensionNames& names, int dimension) {
    const auto d = static_cast<std::size_t>(dimension);
    return names.empty() || !names[d] || names[d]->empty() ? fmt::format("axis {}", dimension) : *names[d];
}

int find_dimension(std::string_view word, const DimensionNames& names, int rank) {
    const auto named = std::ranges::find(names, std::optional(std::string(word)));
    if (named != names.end()) return static_cast<int>(named - names.begin());
    int d = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, d);
    if (error != std::errc() || stop != end || d < -rank || d >= rank) {
        std::string known;
        for (int k = 0; k < rank; ++k) known += (k == 0 ? "" : ", ") + dimension_name(names, k);
        throw invalid_argument("expected dimensions by name or number, of {}, found '{}'", rank == 0 ? "none" : known,
                               word);
    }
    return d < 0 ? d + rank : d;
}

int find_dimension(std::string_view word, const ArraySource& source) {
    return find_dimension(word, dimension_names_of(source), source.info().shape.rank());
}

std::vector<int> find_dimensions(std::string_view words, const ArraySource& source) {
    const DimensionNames names = dimension_names_of(source);
    const int rank = source.info().shape.rank();
    std::vector<int> found;
    for (std::size_t at = 0; at <= words.size();) {
        const std::size_t end = std::min(words.find(',', at), words.size());
        found.push_back(find_dimension(without_blanks(words.substr(at, end - at)), names, rank));
        at = end + 1;
    }
    return found;
}

namespace {

/// The items of a selection in which dimensions have names, and which of them have.
struct NamedItems {
    std::vector<std::string_view> items;
    std::vector<std::optional<NamedItem>> named;  ///< of each; nullopt: by its place
    int given = 0;                                ///< without "..."
    bool all_named = false;
};

NamedItems named_items(std::string_view text, const Shape& shape) {
    NamedItems all{.items = selection_items(text), .named = {}};
    const auto dots = std::ranges::count(all.items, "...");
    if (dots > 1) throw invalid_argument("selection \"{}\": only one \"...\" is possible", text);
    for (const std::string_view item : all.items) all.named.push_back(named_item(item, text));
    all.given = static_cast<int>(std::ssize(all.items) - dots);
    all.all_named = std::ranges::count_if(all.named, [](const auto& n) { return n.has_value(); }) == all.given;
    if (all.given > shape.rank()) {
        throw invalid_argument("selection \"{}\" has {} indices, but the array has {} dimensions, shape {}", text,
                               all.given, shape.rank(), shape.to_string());
    }
    return all;
}

}  // namespace

Selection parse_selection(std::string_view text, const ArraySource& source, std::string* said) {
    const Shape shape = source.info().shape;
    if (said != nullptr) said->clear();
    if (text.find_first_of("=~@") == std::string_view::npos) return Selection::parse(text, shape);
    const auto [items, named, given, all_named] = named_items(text, shape);
    const DimensionNames names = dimension_names_of(source);
    std::vector<Selection::Axis> axes;
    for (const std::int64_t n : shape) axes.push_back({.start = 0, .step = 1, .count = n});
    std::vector<bool> taken(axes.size(), false);
    int place = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (items[i] == "...") {
            place += shape.rank() - given;
            continue;
        }
        const int d = named[i] ? named_dimension(*named[i], names, shape.rank(), source) : place;
        if (!all_named && d != place) {
            throw invalid_argument(
                "selection \"{}\": {} is dimension {}, and stands at the place of {}; where all items have names, "
                "their order is free",
                text, named[i]->name, d, dimension_name(names, place));
        }
        const auto at = static_cast<std::size_t>(d);
        if (taken[at]) throw invalid_argument("selection \"{}\": {} is named twice", text, dimension_name(names, d));
        taken[at] = true;
        std::string meaning;
        axes[at] =
            named[i] ? pick(*named[i], text, source, d, shape[d], meaning) : index_axis(items[i], text, d, shape[d]);
        if (said != nullptr && named[i]) *said += (said->empty() ? "" : "; ") + meaning;
        ++place;
    }
    return Selection(std::move(axes));
}

namespace {

/// A turn and the names that it goes by.
struct NamedTurn {
    Turn turn;
    std::string name, bounds;
};

bool is_decimal(std::string_view text) {
    double number = 0;
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = number_from_text(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
}

std::optional<NamedTurn> turn_asked(const ArraySource& source, std::string_view text) {
    const DimensionNames names = dimension_names_of(source);
    for (const std::string_view each : selection_items(text)) {
        const auto item = named_item(each, text);
        if (!item || item->how != '=') continue;
        const std::vector<std::string_view> ends = unquoted_parts(item->what, ':');
        const std::string name(item->name);
        const auto found = std::ranges::find(names, std::optional(name));
        if (ends.size() < 2 || ends.size() > 3 || found == names.end()) continue;
        if (!is_decimal(ends[0]) || !is_decimal(ends[1])) continue;  // a date: nothing is opened for it
        const auto d = static_cast<int>(found - names.begin());
        const auto coordinate = Coordinate::find(source, name, source.info().shape[d]);
        if (!coordinate) continue;
        if (auto turn = turn_for(*coordinate, ends)) {
            turn->dimension = d;
            const Value attributes = coordinate->source().attribute_values();
            const Value* const bounds = attributes.find("bounds");
            return NamedTurn{*turn, name,
                             bounds != nullptr && bounds->is_string() ? bounds->as_string() : std::string()};
        }
    }
    return std::nullopt;
}

}  // namespace

std::unique_ptr<ArraySource> turned_source(std::unique_ptr<ArraySource> array, std::string_view text) {
    if (text.find('=') == std::string_view::npos || text.find(':') == std::string_view::npos) return array;
    try {
        if (const auto asked = turn_asked(*array, text)) {
            return turned_by(std::move(array), asked->turn, asked->name, asked->bounds);
        }
    } catch (const Error&) {
        return array;  // parse_selection() says what is wrong
    }
    return array;
}

// ---- one selection of several arrays

SharedSelection::SharedSelection(std::string text) : text_(std::move(text)) {
    for (const std::string_view item : selection_items(text_)) {
        if (item == "..." || named_item(item, text_)) continue;
        throw invalid_argument(
            "selection \"{}\": \"{}\" has no name; of several arrays, each item names its dimension, as in "
            "time=2020-01 or time@0:10",
            text_, item);
    }
}

std::string SharedSelection::items_for(const ArraySource& source) {
    const DimensionNames names = dimension_names_of(source);
    for (const auto& name : names) {
        if (name) known_.insert(*name);
    }
    std::string items;
    for (const std::string_view item : selection_items(text_)) {
        const auto named = named_item(item, text_);
        if (!named || std::ranges::count(names, std::optional(std::string(named->name))) == 0) continue;
        found_.emplace(named->name);
        items.append(items.empty() ? "" : ", ").append(item);
    }
    return items;
}

std::string SharedSelection::unsaid(std::string_view said) {
    std::string left;
    for (const std::string_view part : unquoted_parts(said, ';')) {
        const std::string_view meaning = without_blanks(part);
        if (meaning.empty() || !said_.emplace(meaning).second) continue;
        left.append(left.empty() ? "" : "; ").append(meaning);
    }
    return left;
}

std::string names_there(const std::set<std::string>& names) {
    return names.empty() ? "their dimensions have no names" : fmt::format("there are {}", fmt::join(names, ", "));
}

void SharedSelection::require_found() const {
    for (const std::string_view item : selection_items(text_)) {
        const auto named = named_item(item, text_);
        if (!named || found_.contains(std::string(named->name))) continue;
        throw invalid_argument("selection \"{}\": no array has a dimension '{}'; {}", text_, named->name,
                               names_there(known_));
    }
}

namespace {

class SelectedSource final : public ArraySource {
public:
    SelectedSource(std::unique_ptr<ArraySource> source, Selection selection, Value attributes)
        : source_(std::move(source)),
          selection_(std::move(selection)),
          attributes_(std::move(attributes)),
          info_(source_->info()) {
        const Shape chunks = info_.chunks;
        const bool chunked = chunks.rank() == info_.shape.rank() && selection_.is_region();
        info_.shape = selection_.shape();
        info_.chunks = info_.shards = Shape();
        for (int d = 0; chunked && d < chunks.rank(); ++d) {
            if (!selection_.axes()[static_cast<std::size_t>(d)].dropped) info_.chunks.push_back(chunks[d]);
        }
        // A stream cannot be read backwards in memory order.
        if (!selection_.is_region() && info_.access != Access::any) info_.access = Access::sequential;
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        Region box;
        MutableArrayView full = out;
        full.shape = Shape();
        full.strides = Strides();
        int k = 0;
        for (const Selection::Axis& axis : selection_.axes()) {
            box.start.push_back(axis.dropped ? 0 : region.start[k]);
            box.extent.push_back(axis.dropped ? 1 : region.extent[k]);
            full.shape.push_back(box.extent[box.rank() - 1]);
            full.strides.push_back(axis.dropped ? 0 : out.strides[k]);
            if (!axis.dropped) ++k;
        }
        read_selection_into(*source_, selection_.part(box), full, io);
    }

    [[nodiscard]] const std::string& name() const override { return source_->name(); }
    [[nodiscard]] Value attribute_values() const override { return attributes_; }

private:
    std::unique_ptr<ArraySource> source_;
    Selection selection_;
    Value attributes_;
    ArrayInfo info_;
};

}  // namespace

std::unique_ptr<ArraySource> selected_source(std::unique_ptr<ArraySource> source, Selection selection,
                                             Value attributes) {
    return std::make_unique<SelectedSource>(std::move(source), std::move(selection), std::move(attributes));
}

namespace {

/// What TIFF's tags say of the place, where it is no transform of the plane, holds for the same first element alone.
void erase_tags_of_place(Value& attributes) {
    const Value* const tags = attributes.find("tiff");
    if (tags == nullptr || !tags->is_object()) return;
    Value kept = *tags;
    for (const char* const tag : {"ModelPixelScale", "ModelTiepoint", "ModelTransformation"}) kept.erase(tag);
    attributes.set("tiff", std::move(kept));
}

void place_part(Value& attributes, const Selection& selection, const DimensionNames& names) {
    const GeoReference whole = geo_reference_in(attributes).value_or(GeoReference{});
    std::array<Selection::Axis, 2> axes;  // of rows and columns
    for (std::size_t d = 0; d < 2; ++d) {
        const auto named = std::ranges::find(names, std::optional(whole.dimensions[d]));
        const bool plain = names.empty() && selection.rank() == 2;
        if (!plain && named == names.end()) return;
        axes[d] = selection.axes()[plain ? d : static_cast<std::size_t>(named - names.begin())];
    }
    const auto& [rows, columns] = axes;
    const bool flat = rows.dropped || columns.dropped || rows.count == 0 || columns.count == 0;
    if (flat || rows.start != 0 || columns.start != 0 || rows.step != 1 || columns.step != 1) {
        erase_tags_of_place(attributes);
    }
    if (!whole.transform) return;
    if (flat) return erase_geo_place(attributes);
    set_geo_reference(attributes, selected(whole, {rows.start, columns.start}, {rows.step, columns.step},
                                           {rows.count, columns.count}));
}

}  // namespace

Value attributes_of_part(Value attributes, const Selection& selection, DimensionNames names) {
    const Value* const listed = attributes.find(dimensions_attribute);
    const bool told =
        listed != nullptr && listed->is_array() && std::cmp_equal(listed->as_array().size(), selection.rank());
    if (told) {
        names.clear();
        Value kept = Value::array();
        for (std::size_t d = 0; d < selection.axes().size(); ++d) {
            const Value& name = listed->as_array()[d];
            names.push_back(name.is_string() ? std::optional(name.as_string()) : std::nullopt);
            if (!selection.axes()[d].dropped) kept.push_back(name);
        }
        attributes.set(dimensions_attribute, std::move(kept));
    }
    if (names.empty() || std::cmp_equal(names.size(), selection.rank())) place_part(attributes, selection, names);
    return attributes;
}

}  // namespace tessera
