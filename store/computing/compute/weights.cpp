#include <tessera/weights.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/coordinates.h>
#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/slices.h>

#include "grid_axes.h"

namespace tessera {

namespace {

/// Between the equator and the great circle from one meridian to another, both ends at one latitude (on a sphere of
/// radius 1). Negative in the south.
double area_below(double latitude, double width) {
    const double sine = std::sin(latitude * degree);
    if (std::abs(width) >= 180) return std::abs(width) * degree * sine;  // the shortest way would be the other one
    return 2 * std::atan(std::tan(std::abs(width) * degree / 2) * sine);
}

/// Weights that are computed from an index along each of two dimensions, or one.
class ComputedWeights final : public ArraySource {
public:
    /// Weights of `n` elements of a row from `first` on.
    using Row = std::function<void(std::int64_t row, std::int64_t first, std::int64_t n, double* to)>;
    /// Without columns: `rows` alone.
    ComputedWeights(std::string name, const Shape& like, int rows, std::optional<int> columns, Row row)
        : name_(std::move(name)), rows_(rows), columns_(columns), row_(std::move(row)) {
        info_ = {.dtype = DType::of<double>(), .shape = Shape::filled(like.rank(), 1), .chunks = {}};
        info_.shape[rows] = like[rows];
        if (columns) info_.shape[*columns] = like[*columns];
    }
    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& /*io*/) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        const std::int64_t n = columns_ ? region.extent[*columns_] : 1;
        const std::int64_t first = columns_ ? region.start[*columns_] : 0;
        Shape row_shape = Shape::filled(region.rank(), 1);
        if (columns_) row_shape[*columns_] = n;
        NDArray row(DType::of<double>(), row_shape);
        for (std::int64_t i = 0; i < region.extent[rows_]; ++i) {
            row_(region.start[rows_] + i, first, n, row.values<double>().data());
            Region place = Region::whole(region.extent);
            place.start[rows_] = i;
            place.extent[rows_] = 1;
            copy_elements(row.view(), out.part(place));
        }
    }

private:
    std::string name_;
    int rows_;
    std::optional<int> columns_;
    Row row_;
    ArrayInfo info_;
};

std::shared_ptr<const ArraySource> areas(const ArraySource& array) {
    auto lat = latitudes_of(array);
    if (!lat) {
        throw invalid_argument(
            "{}: no dimension has latitudes (a coordinate beside it, of the dimension's name and in "
            "degrees_north), of which areas are computed",
            array.name());
    }
    const auto lon = longitudes_of(array);
    std::vector<double> widths;
    for (std::size_t i = 0; lon && i < lon->bounds.size(); ++i) {
        widths.push_back(std::abs(lon->bounds[i].second - lon->bounds[i].first));
    }
    const bool zones = widths.empty();
    if (zones) widths.push_back(360);
    const auto row = [bounds = std::move(lat->bounds), widths = std::move(widths)](std::int64_t i, std::int64_t first,
                                                                                   std::int64_t n, double* to) {
        const auto& [low, high] = bounds[static_cast<std::size_t>(i)];
        double last = -1;
        for (std::int64_t j = 0; j < n; ++j) {
            const double width = widths[static_cast<std::size_t>(first + j)];
            const bool same = std::abs(width - last) <= 1e-10 * width;  // but for the rounding of coordinates
            to[j] = same ? to[j - 1] : std::abs(area_below(high, width) - area_below(low, width));
            last = same ? last : width;
        }
    };
    return std::make_shared<ComputedWeights>("areas of cells", array.info().shape, lat->dimension,
                                             zones ? std::nullopt : std::optional(lon->dimension), row);
}

std::shared_ptr<const ArraySource> cosines(const ArraySource& array, const std::string& name) {
    const int dimension = find_dimension(name, array);
    const Shape shape = array.info().shape;
    const auto coordinate = Coordinate::find(array, name, shape[dimension]);
    if (!coordinate || coordinate->kind() != Coordinate::Kind::numbers) {
        throw invalid_argument(
            "{}: {} has no coordinate in degrees, of which the cosine is the weight: an array beside "
            "it, of the dimension's name",
            array.name(), name);
    }
    const Value attributes = coordinate->source().attribute_values();
    const Value* const units = attributes.find("units");
    const bool in_degrees = units == nullptr || !units->is_string() || units->as_string().starts_with("degree");
    if (!in_degrees) {
        throw invalid_argument("{}: expected degrees, of which the cosine is the weight, found the units {}",
                               coordinate->name(), units->dump());
    }
    std::vector<double> weights;
    MemoryHold held(static_cast<std::uint64_t>(shape[dimension]) * sizeof(double));
    coordinate->for_each<long double>(0, shape[dimension], [&](const std::optional<long double>& value) {
        if (!value || !(std::abs(*value) <= 90.0001L)) {
            throw invalid_argument("{}: expected degrees from -90 to 90, found {}", coordinate->name(),
                                   value ? static_cast<double>(*value) : std::nan(""));
        }
        weights.push_back(std::max(0.0, std::cos(static_cast<double>(*value) * degree)));
    });
    const auto row = [weights = std::move(weights), held = std::make_shared<MemoryHold>(std::move(held))](
                         std::int64_t i, std::int64_t /*first*/, std::int64_t /*n*/, double* to) {
        to[0] = weights[static_cast<std::size_t>(i)];
    };
    return std::make_shared<ComputedWeights>("cosines of " + name, shape, dimension, std::nullopt, row);
}

/// An array as one with more dimensions, of length 1, in another order.
class PlacedSource final : public ArraySource {
public:
    /// `places`: of each of its dimensions.
    PlacedSource(std::unique_ptr<ArraySource> of, int rank, Dims places)
        : of_(std::make_unique<CastSource>(std::move(of), DType::of<double>(), Cast::unsafe)), places_(places) {
        const ArrayInfo from = of_->info();
        info_ = {.dtype = from.dtype, .shape = Shape::filled(rank, 1), .chunks = {}};
        info_.working = reading_memory(from);
        for (int k = 0; k < places.rank(); ++k) info_.shape[static_cast<int>(places[k])] = from.shape[k];
    }
    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return of_->name(); }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        Region own;
        MutableArrayView there = out;
        there.shape = Shape();
        there.strides = Strides();
        for (const std::int64_t place : places_) {
            const int d = static_cast<int>(place);
            own.start.push_back(region.start[d]);
            own.extent.push_back(region.extent[d]);
            there.shape.push_back(out.shape[d]);
            there.strides.push_back(out.strides[d]);
        }
        of_->read_into(own, there, io);
    }

private:
    std::unique_ptr<ArraySource> of_;
    Dims places_;
    ArrayInfo info_;
};

/// Throws if both have numbers along a dimension, and other ones.
void require_same_places(const ArraySource& array, const ArraySource& weights, const std::string& dimension,
                         std::int64_t length) {
    const auto own = Coordinate::find(array, dimension, length);
    const auto others = Coordinate::find(weights, dimension, length);
    if (!own || !others) return;
    if (own->kind() != Coordinate::Kind::numbers || others->kind() != Coordinate::Kind::numbers) return;
    std::vector<long double> values;
    const MemoryHold held(static_cast<std::uint64_t>(length) * sizeof(long double));
    own->for_each<long double>(0, length, [&](const auto& value) { values.push_back(value.value_or(0)); });
    std::size_t i = 0;
    others->for_each<long double>(0, length, [&](const std::optional<long double>& value) {
        const long double wanted = values[i++];
        const long double found = value.value_or(0);
        constexpr long double rounded = 1e-6L;  // as float32
        if (std::abs(wanted - found) <= rounded * std::max({1.0L, std::abs(wanted), std::abs(found)})) return;
        throw invalid_argument("{}: its {} at {} is {}, and that of {} is {}: the weights are of other cells",
                               weights.name(), dimension, i - 1, static_cast<double>(found), array.name(),
                               static_cast<double>(wanted));
    });
}

}  // namespace

bool is_weights_name(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
}

std::shared_ptr<const ArraySource> weights_named(const ArraySource& array, const std::string& name) {
    const DimensionNames names = dimension_names_of(array);
    if (std::ranges::count(names, std::optional(name)) > 0) return cosines(array, name);
    if (name == "area") return areas(array);
    std::string list;
    for (const auto& one : names) list += fmt::format("{}{}", list.empty() ? "" : ", ", one.value_or("-"));
    throw invalid_argument(
        "expected area, a dimension whose coordinate holds degrees (there {}), or the path of an array "
        "(./{}), found '{}'",
        list.empty() ? "are no names" : "are " + list, name, name);
}

std::shared_ptr<const ArraySource> weights_from(const ArraySource& array, std::unique_ptr<ArraySource> weights) {
    const Shape shape = array.info().shape;
    const ArrayInfo info = weights->info();
    const bool real = is_number(info.dtype) && info.dtype.kind() != Kind::complex;
    if (!real) throw invalid_argument("{}: elements of {} are no weights", weights->name(), info.dtype.to_string());
    const DimensionNames names = dimension_names_of(array);
    const DimensionNames own = dimension_names_of(*weights);
    const bool named = !own.empty() && !names.empty();
    Dims places;
    bool fits = info.shape.rank() > 0 && info.shape.rank() <= shape.rank();
    for (int k = 0; fits && k < info.shape.rank(); ++k) {
        int place = shape.rank() - info.shape.rank() + k;
        if (named) {
            const auto found = std::ranges::find(names, own[static_cast<std::size_t>(k)]);
            fits = own[static_cast<std::size_t>(k)].has_value() && found != names.end();
            place = static_cast<int>(found - names.begin());
        }
        const bool depends = info.shape[k] != 1;
        fits = fits && (!depends || shape[place] == info.shape[k]) && std::ranges::count(places, place) == 0;
        places.push_back(place);
        if (fits && named && depends)
            require_same_places(array, *weights, *own[static_cast<std::size_t>(k)], info.shape[k]);
    }
    if (!fits) {
        throw invalid_argument("{}: expected dimensions that {} has too ({}), of the same lengths, found {}",
                               weights->name(), array.name(), shape.to_string(), info.shape.to_string());
    }
    return std::make_shared<PlacedSource>(std::move(weights), shape.rank(), places);
}

}  // namespace tessera
