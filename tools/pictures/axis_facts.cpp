#include <tessera/axis_facts.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <tessera/calendar.h>
#include <tessera/dimensions.h>
#include <tessera/error.h>

namespace tessera {

namespace {

// Of longer coordinates, some are listed.
constexpr std::int64_t most_values = 4096;

std::string text_of(const Value& attributes, std::string_view name) {
    const Value* value = attributes.find(name);
    return value != nullptr && value->is_string() ? value->as_string() : std::string();
}

std::int64_t apart(std::int64_t length) {
    return std::max<std::int64_t>(1, ceil_div(length, most_values));
}

/// The distance of neighbours, unless it differs by more than a thousandth.
std::optional<double> even_step(const std::vector<double>& values, std::int64_t every) {
    if (values.size() < 2) return std::nullopt;
    const double step = (values.back() - values.front()) / static_cast<double>(values.size() - 1);
    constexpr double same = 1e-3;
    for (std::size_t k = 0; k + 1 < values.size(); ++k) {
        if (!(std::abs(values[k + 1] - values[k] - step) <= same * std::abs(step))) return std::nullopt;
    }
    if (step == 0 || !std::isfinite(step)) return std::nullopt;
    return std::abs(step) / static_cast<double>(every);
}

int rising(const std::vector<double>& values) {
    if (values.size() < 2) return 0;
    const auto sign = [&](std::size_t k) { return (values[k] < values[k + 1]) - (values[k] > values[k + 1]); };
    for (std::size_t k = 1; k + 1 < values.size(); ++k) {
        if (sign(k) != sign(0)) return 0;
    }
    return sign(0);
}

/// Whether y counts what maps count: of microscopes it goes down.
bool is_northing(const std::string& name, const std::string& units) {
    constexpr std::array<std::string_view, 6> lengths{"m", "metre", "meter", "metres", "meters", "km"};
    return name == "y" && std::ranges::count(lengths, units) > 0;
}

/// See AxisFacts::up; by the attributes of the CF conventions.
std::optional<bool> direction_of(const Value& attributes, const std::string& name, const std::vector<double>& values) {
    if (values.size() < 2 || values.front() == values.back()) return std::nullopt;
    const bool rises = values.back() > values.front();
    const std::string units = text_of(attributes, "units");
    const std::string standard = text_of(attributes, "standard_name");
    const std::string axis = text_of(attributes, "axis");
    const bool north = units.starts_with("degrees_n") || units.starts_with("degree_n") || standard == "latitude" ||
                       standard == "projection_y_coordinate" || axis == "Y" || name == "lat" || name == "latitude" ||
                       is_northing(name, units);
    const bool east = units.starts_with("degrees_e") || units.starts_with("degree_e") || standard == "longitude" ||
                      standard == "projection_x_coordinate" || axis == "X";
    const std::string positive = text_of(attributes, "positive");
    if (north || positive == "up") return rises;
    if (positive == "down") return !rises;
    return east && !rises ? std::optional(false) : std::nullopt;
}

/// Calls take(key) for every so many of a coordinate's values.
template <class Key>
void for_listed(const Coordinate& coordinate, std::int64_t every, const Coordinate::Take<Key>& take) {
    std::int64_t i = 0;
    coordinate.for_each<Key>(0, coordinate.length(), [&](const std::optional<Key>& key) {
        if (i++ % every == 0) take(key);
    });
}

void take_elements(const Coordinate& coordinate, AxisFacts& facts) {
    const auto add = [&](const std::optional<long double>& v) {
        facts.values.push_back(v ? static_cast<double>(*v) : std::numeric_limits<double>::quiet_NaN());
    };
    const auto add_text = [&](const std::optional<std::string>& text) { facts.texts.push_back(text.value_or("")); };
    switch (coordinate.kind()) {
        case Coordinate::Kind::numbers:
            for_listed<long double>(coordinate, facts.every, add);
            if (coordinate.source().info().dtype.kind() == Kind::timedelta) {
                for_listed<std::string>(coordinate, facts.every, add_text);
            }
            break;
        case Coordinate::Kind::times:
            for_listed<Int128>(coordinate, facts.every, [&](const std::optional<Int128>& time) {
                add(time ? std::optional(static_cast<long double>(*time) / attoseconds_of_second) : std::nullopt);
                facts.texts.push_back(time ? time_text(coordinate.calendar(), *time) : "NaT");
            });
            facts.units.clear();
            break;
        case Coordinate::Kind::texts:
            for_listed<std::string>(coordinate, facts.every, add_text);
            break;
    }
}

/// The number of dimension d in the first transformation of a kind; nullopt without one.
std::optional<double> transformation_of(const Value& dataset, const char* kind, std::size_t d) {
    const Value* list = dataset.find("coordinateTransformations");
    if (list == nullptr || !list->is_array()) return std::nullopt;
    for (const Value& one : list->as_array()) {
        const Value* numbers = one.is_object() && text_of(one, "type") == kind ? one.find(kind) : nullptr;
        if (numbers == nullptr || !numbers->is_array() || d >= numbers->as_array().size()) continue;
        const Value& number = numbers->as_array()[d];
        if (number.is_number() && std::isfinite(number.as_double())) return number.as_double();
    }
    return std::nullopt;
}

/// The first of the attribute "multiscales" of OME-Zarr 0.4 and 0.5.
const Value* first_multiscale(const Value& attributes) {
    if (!attributes.is_object()) return nullptr;
    const Value* ome = attributes.find("ome");
    const Value* scales = (ome != nullptr && ome->is_object() ? *ome : attributes).find("multiscales");
    if (scales == nullptr || !scales->is_array() || scales->as_array().empty()) return nullptr;
    const Value& first = scales->as_array().front();
    return first.is_object() ? &first : nullptr;
}

AxisFacts even_facts(const Value& axis, double start, double step, std::int64_t length) {
    AxisFacts facts{.label = text_of(axis, "name"), .units = text_of(axis, "unit"), .every = apart(length)};
    for (std::int64_t i = 0; i < length; i += facts.every) {
        facts.values.push_back(start + step * static_cast<double>(i));
    }
    facts.step = std::abs(step);
    facts.rising = rising(facts.values);
    return facts;
}

/// Whether a name says that a dimension holds colours.
bool names_colours(std::string name) {
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    constexpr std::array<std::string_view, 12> words{"c",    "ch",    "channel", "channels", "rgb",    "rgba",
                                                     "band", "bands", "color",   "colors",   "colour", "colours"};
    return std::ranges::count(words, name) > 0 || name == "sample" || name == "samples";
}

/// Of an array that may hold colours; 0: it may not.
double full_intensity(const DType& dtype) {
    constexpr double of_bytes = 255, of_words = 65535;
    if (dtype.kind() == Kind::real) return dtype.size() == 4 || dtype.size() == 8 ? 1 : 0;
    if (dtype.kind() != Kind::unsigned_integer) return 0;
    return dtype.size() == 1 ? of_bytes : dtype.size() == 2 ? of_words : 0;
}

}  // namespace

double AxisFacts::value(double index) const {
    const double at = index / static_cast<double>(every);
    const auto last = static_cast<double>(values.size() - 2);
    const auto k = static_cast<std::size_t>(std::clamp(std::floor(at), 0.0, last));
    return values[k] + (values[k + 1] - values[k]) * (at - static_cast<double>(k));
}

double AxisFacts::index(double value) const {
    std::size_t low = 0, high = values.size() - 1;
    while (high - low > 1) {
        const std::size_t middle = (low + high) / 2;
        ((values[middle] - value) * rising <= 0 ? low : high) = middle;
    }
    const double part = (value - values[low]) / (values[high] - values[low]);
    return (static_cast<double>(low) + part) * static_cast<double>(every);
}

std::string AxisFacts::text(std::int64_t index) const {
    const auto nearest = [&](std::size_t listed) {
        return std::min(static_cast<std::size_t>((index + every / 2) / every), listed - 1);
    };
    if (!texts.empty()) return texts[nearest(texts.size())];
    if (values.empty()) return "";
    return fmt::format("{:.9g}", rising != 0 ? value(static_cast<double>(index)) : values[nearest(values.size())]);
}

AxisFacts axis_facts(const Coordinate& coordinate, const std::string& name) {
    const Value attributes = coordinate.source().attribute_values();
    const std::string long_name = text_of(attributes, "long_name");
    AxisFacts facts{.label = long_name.empty() ? name : long_name,
                    .units = text_of(attributes, "units"),
                    .every = apart(coordinate.length())};
    take_elements(coordinate, facts);
    facts.up = direction_of(attributes, name, facts.values);
    facts.step = even_step(facts.values, facts.every);
    facts.rising = rising(facts.values);
    return facts;
}

std::optional<AxisFacts> pixel_facts(const Value& group_attributes, std::string_view path, int d, std::int64_t length) {
    const Value* const multiscale = first_multiscale(group_attributes);
    if (multiscale == nullptr) return std::nullopt;
    const Value* axes = multiscale->find("axes");
    const Value* datasets = multiscale->find("datasets");
    const auto number = static_cast<std::size_t>(d);
    if (axes == nullptr || !axes->is_array() || number >= axes->as_array().size()) return std::nullopt;
    if (datasets == nullptr || !datasets->is_array()) return std::nullopt;
    const Value& axis = axes->as_array()[number];
    if (!axis.is_object() || text_of(axis, "type") == "channel") return std::nullopt;
    for (const Value& dataset : datasets->as_array()) {
        if (!dataset.is_object() || text_of(dataset, "path") != path) continue;
        const std::optional<double> scale = transformation_of(dataset, "scale", number);
        if (!scale || *scale == 0) return std::nullopt;
        return even_facts(axis, transformation_of(dataset, "translation", number).value_or(0), *scale, length);
    }
    return std::nullopt;
}

std::optional<AxisFacts> find_axis_facts(const ArraySource& source, int d) {
    const DimensionNames names = dimension_names_of(source);
    const auto number = static_cast<std::size_t>(d);
    const std::int64_t length = source.info().shape[d];
    if (number >= names.size() || !names[number] || names[number]->empty() || length > longest_coordinate) {
        return std::nullopt;
    }
    try {
        const auto coordinate = Coordinate::find(source, *names[number], length);
        if (!coordinate || coordinate->name() == source.name()) return std::nullopt;
        return axis_facts(*coordinate, *names[number]);
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled || e.code() == ErrorCode::budget) throw;
        return std::nullopt;
    }
}

std::optional<ColourAxis> find_colour_axis(const ArraySource& source, const Meaning& meaning) {
    const Shape shape = source.info().shape;
    const double full = full_intensity(meaning.held);
    if (full == 0 || shape.rank() < 3 || meaning.packing.scaled || !(meaning.stored == meaning.held)) {
        return std::nullopt;
    }
    const DimensionNames names = dimension_names_of(source);
    for (const int d : {shape.rank() - 1, 0}) {
        if (shape[d] != 3 && shape[d] != 4) continue;
        int long_ones = 0;
        for (int k = 0; k < shape.rank(); ++k) long_ones += k != d && shape[k] > 4 ? 1 : 0;
        const bool says = meaning.held.size() == 1 || names_colours(dimension_name(names, d));
        if (long_ones >= 2 && says) return ColourAxis{d, shape[d], full};
    }
    return std::nullopt;
}

}  // namespace tessera
