#include "grid_axes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <memory>
#include <string_view>

#include <tessera/coordinates.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/meaning.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/slices.h>

#include "converted_source.h"

namespace tessera {

namespace {

constexpr std::int64_t most_cells = 10'000'000;

struct AxisWords {
    std::string_view standard_name;
    std::array<std::string_view, 2> names;
    std::array<std::string_view, 6> units;
};
constexpr AxisWords latitude_words{
    "latitude", {"lat", "latitude"}, {"degrees_north", "degree_north", "degrees_N", "degree_N", "degreesN", "degreeN"}};
constexpr AxisWords longitude_words{
    "longitude", {"lon", "longitude"}, {"degrees_east", "degree_east", "degrees_E", "degree_E", "degreesE", "degreeE"}};

bool is_named(const AxisWords& words, const std::string& dimension) {
    std::string lower = dimension;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    return std::ranges::count(words.names, lower) > 0;
}

bool is_meant(const AxisWords& words, const std::string& dimension, const Value& attributes) {
    const std::string units = text_attribute(attributes, "units");
    if (text_attribute(attributes, "standard_name") == words.standard_name)
        return units != "radians" && units != "radian";
    if (std::ranges::count(words.units, units) > 0) return true;
    const bool plain = units.empty() || units == "degrees" || units == "degree";
    return plain && text_attribute(attributes, "standard_name").empty() && is_named(words, dimension);
}

/// Bounds that a coordinate names, if they are there.
std::vector<std::pair<double, double>> named_bounds(const Coordinate& coordinate) {
    const std::string name = text_attribute(coordinate.source().attribute_values(), "bounds");
    auto source = name.empty() ? nullptr : array_beside(coordinate.source(), name);
    if (source == nullptr) return {};
    source = decoded_source(std::move(source));
    const ArrayInfo info = source->info();
    if (info.shape.rank() != 2 || info.shape[0] != coordinate.length() || info.shape[1] != 2) {
        throw invalid_argument("{}: bounds of {} need the shape ({}, 2), and it is {}", source->name(),
                               coordinate.name(), coordinate.length(), info.shape.to_string());
    }
    NDArray elements(native_dtype(info.dtype), info.shape);
    source->read_into(Region::whole(info.shape), elements.view(), {});
    std::vector<double> numbers(static_cast<std::size_t>(elements.count()));
    to_doubles(elements.dtype())(elements.bytes().data(), elements.count(), numbers.data());
    std::vector<std::pair<double, double>> bounds;
    for (std::size_t i = 0; i < numbers.size(); i += 2) {
        if (!std::isfinite(numbers[i]) || !std::isfinite(numbers[i + 1])) {
            throw invalid_argument("{}: expected finite bounds, found {} and {}", source->name(), numbers[i],
                                   numbers[i + 1]);
        }
        bounds.emplace_back(numbers[i], numbers[i + 1]);
    }
    return bounds;
}

GridAxis axis_of(const Coordinate& coordinate, int dimension, bool latitudes) {
    GridAxis axis{
        .dimension = dimension, .name = coordinate.name(), .attributes = coordinate.source().attribute_values()};
    if (coordinate.length() > most_cells) {
        throw unsupported("{}: more than {} cells along it are not weighed", axis.name, most_cells);
    }
    coordinate.for_each<long double>(0, coordinate.length(), [&](const std::optional<long double>& found) {
        if (!found || !std::isfinite(*found)) throw invalid_argument("{}: it has missing values", axis.name);
        auto value = static_cast<double>(*found);
        constexpr double rounded = 1e-4;  // of float32
        if (latitudes && std::abs(value) > 90 + rounded) {
            throw invalid_argument("{}: expected latitudes from -90 to 90, found {}", axis.name, value);
        }
        if (latitudes) value = std::clamp(value, -90.0, 90.0);
        if (!latitudes && !axis.centres.empty())
            value = axis.centres.back() + std::remainder(value - axis.centres.back(), 360.0);
        axis.centres.push_back(value);
    });
    axis.bounds = named_bounds(coordinate);
    if (axis.bounds.empty()) set_midpoints(axis, latitudes);
    for (std::size_t i = 0; i < axis.bounds.size(); ++i) {
        for (double* const end : {&axis.bounds[i].first, &axis.bounds[i].second}) {
            const double centre = axis.centres[i];
            if (latitudes) *end = std::clamp(*end, -90.0, 90.0);
            // 359.5 and 0.5 around 0.
            if (!latitudes && axis.bounds.size() > 1) *end = centre + std::remainder(*end - centre, 360.0);
        }
    }
    return axis;
}

std::optional<GridAxis> found_axis(const ArraySource& array, const AxisWords& words, bool latitudes) {
    const DimensionNames names = dimension_names_of(array);
    const Shape shape = array.info().shape;
    std::optional<GridAxis> found;
    for (int d = 0; d < static_cast<int>(names.size()); ++d) {
        const auto& name = names[static_cast<std::size_t>(d)];
        const auto coordinate = name ? Coordinate::find(array, *name, shape[d]) : std::nullopt;
        if (!coordinate || coordinate->kind() != Coordinate::Kind::numbers || shape[d] == 0) continue;
        if (!is_meant(words, *name, coordinate->source().attribute_values())) continue;
        if (found) {
            throw invalid_argument("{}: {} and {} are both {}s", array.name(), found->name, coordinate->name(),
                                   words.standard_name);
        }
        found = axis_of(*coordinate, d, latitudes);
    }
    return found;
}

}  // namespace

void set_midpoints(GridAxis& axis, bool latitudes) {
    const std::vector<double>& v = axis.centres;
    axis.bounds.clear();
    if (v.size() == 1) {  // the whole of it
        axis.bounds.emplace_back(latitudes ? -90 : v[0] - 180, latitudes ? 90 : v[0] + 180);
        return;
    }
    const bool rises = v[1] > v[0];
    std::vector<double> edges(v.size() + 1);
    for (std::size_t i = 1; i < v.size(); ++i) {
        if (rises ? v[i] <= v[i - 1] : v[i] >= v[i - 1]) {
            throw invalid_argument(
                "{}: its values neither rise nor fall, so that nothing says where cells end; bounds "
                "would, which it names by an attribute",
                axis.name);
        }
        edges[i] = (v[i - 1] + v[i]) / 2;
    }
    edges.front() = 2 * v.front() - edges[1];
    edges.back() = 2 * v.back() - edges[v.size() - 1];
    if (latitudes) {
        constexpr double near_pole = 88;
        for (double* end : {&edges.front(), &edges.back()}) {
            if (std::abs(*end) > near_pole) *end = std::copysign(90.0, *end);
        }
    }
    for (std::size_t i = 0; i < v.size(); ++i) axis.bounds.emplace_back(edges[i], edges[i + 1]);
}

std::optional<GridAxis> latitudes_of(const ArraySource& array) {
    return found_axis(array, latitude_words, true);
}

std::optional<GridAxis> longitudes_of(const ArraySource& array) {
    return found_axis(array, longitude_words, false);
}

}  // namespace tessera
