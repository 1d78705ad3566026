#include <tessera/regrid.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include <tessera/coordinates.h>
#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/dialect.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/geo_reference.h>
#include <tessera/meaning.h>
#include <tessera/multiscales.h>
#include <tessera/ndarray.h>
#include <tessera/number_text.h>
#include <tessera/numbers.h>
#include <tessera/selection_items.h>
#include <tessera/shared_source.h>
#include <tessera/slices.h>

#include "accumulate.h"
#include "converted_source.h"
#include "grid_axes.h"
#include "reduced_array.h"
#include "regrid_taps.h"
#include "windows.h"

namespace tessera {

namespace {

class RegridSource final : public ArraySource {
public:
    RegridSource(std::unique_ptr<ArraySource> array, GridTaps taps, int lat, int lon, std::int64_t memory)
        : array_(std::move(array)),
          taps_(std::move(taps)),
          lat_(lat),
          lon_(lon),
          memory_(memory),
          from_(array_->info()),
          native_(native_dtype(from_.dtype)) {
        info_ = from_;
        info_.shards = {};
        const bool keeps = taps_.how() == Regridding::nearest;
        info_.dtype = keeps ? native_ : native_dtype(reduced_dtype(from_.dtype, Reduction::mean));
        info_.marks_missing = keeps && from_.marks_missing;
        info_.shape[lat] = taps_.rows();
        info_.shape[lon] = taps_.columns();
        for (int d = 0; d < from_.shape.rank(); ++d) {
            if (d != lat && d != lon) others_.push_back(d);
        }
        coordinates_ = coordinates_off_grid();
        set_blocks();
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return array_->name(); }
    [[nodiscard]] Value attribute_values() const override {
        Value values = array_->attribute_values();
        erase_code_attributes(values);
        values.erase("cell_measures");  // of the other grid
        values.erase("coordinates");
        if (!coordinates_.empty()) values.set("coordinates", coordinates_);
        values.erase(dimensions_attribute);
        if (geo_reference_in(values)) erase_geo_place(values);
        if (info_.dtype.kind() == Kind::real) values.set(fill_attribute, missing_number);
        if (info_.marks_missing) values.set(fill_attribute, missing_integer);
        return values;
    }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (!region.empty()) divide(region, out, io);
    }

private:
    /// Of the coordinates that the array's attribute names, those along neither dimension of the grid.
    [[nodiscard]] std::string coordinates_off_grid() const {
        const DimensionNames names = dimension_names_of(*array_);
        const std::string all = text_attribute(array_->attribute_values(), "coordinates");
        std::string kept;
        for (const std::string_view word : unquoted_parts(all, ' ')) {
            const auto beside = array_beside(*array_, std::string(word));
            const DimensionNames along = beside == nullptr ? names : dimension_names_of(*beside);
            const bool on_grid = std::ranges::any_of(std::array{lat_, lon_}, [&](int d) {
                return std::ranges::count(along, names[static_cast<std::size_t>(d)]) > 0;
            });
            if (!on_grid) kept.append(kept.empty() ? "" : " ").append(word);
        }
        return kept;
    }

    /// As the chunks of the array along other dimensions; of the new ones as many rows as a few MiB hold.
    void set_blocks() {
        const int rank = from_.shape.rank();
        if (from_.chunks.rank() != rank) info_.chunks = Shape::filled(rank, 1);
        info_.chunks[lat_] = info_.chunks[lon_] = 1;
        const std::int64_t others = std::max<std::int64_t>(1, element_count(info_.chunks));
        constexpr std::int64_t block = std::int64_t{1} << 19;
        info_.chunks[lon_] = std::max<std::int64_t>(1, info_.shape[lon_]);
        info_.chunks[lat_] = std::clamp<std::int64_t>(block / others / info_.chunks[lon_], 1,
                                                      std::max<std::int64_t>(1, info_.shape[lat_]));
        const std::int64_t source_rows =
            ceil_div(from_.shape[lat_] * info_.chunks[lat_], std::max<std::int64_t>(1, info_.shape[lat_])) + 2;
        info_.working =
            reading_memory(from_) + std::min(memory_, (source_rows * from_.shape[lon_] + element_count(info_.chunks)) *
                                                          others * (native_.size() + 8));
    }

    void divide(const Region& region, const MutableArrayView& out, const IoOptions& io) const {
        if (io.stop.stop_requested()) throw cancelled("stopped on request");
        const std::int64_t places = region.extent[lat_] * region.extent[lon_];
        const std::int64_t lines = region.count() / places;
        const std::int64_t rows = taps_.source_rows(region.start[lat_], region.extent[lat_]);
        const std::int64_t bytes =
            lines * (rows * from_.shape[lon_] * native_.size() + places * 16) + rows * from_.shape[lon_] * 8;
        if (bytes > memory_) {
            for (const bool cut : {false, true}) {
                for (const std::int64_t k : others_) {
                    const int d = static_cast<int>(k);
                    const std::int64_t unit = cut || from_.chunks.rank() != from_.shape.rank() ? 1 : from_.chunks[d];
                    if (halve(region, out, d, unit, io)) return;
                }
                if (halve(region, out, lat_, 1, io) || (cut && halve(region, out, lon_, 1, io))) return;
            }
        }
        compute(region, out, io);
    }

    bool halve(const Region& region, const MutableArrayView& out, int d, std::int64_t unit, const IoOptions& io) const {
        const std::int64_t first = ceil_div(region.start[d] + region.extent[d] / 2, unit) * unit - region.start[d];
        if (first <= 0 || first >= region.extent[d]) return false;
        Region part = region, place = Region::whole(region.extent);
        part.extent[d] = place.extent[d] = first;
        divide(part, out.part(place), io);
        part.start[d] += first;
        place.start[d] = first;
        part.extent[d] = place.extent[d] = region.extent[d] - first;
        divide(part, out.part(place), io);
        return true;
    }

    void compute(const Region& region, const MutableArrayView& out, const IoOptions& io) const {
        const RegridBlock block =
            taps_.block(region.start[lat_], region.extent[lat_], region.start[lon_], region.extent[lon_]);
        Region read = region;
        read.start[lat_] = block.first_row;
        read.extent[lat_] = block.row_count;
        read.start[lon_] = block.first_column;
        read.extent[lon_] = block.column_count;
        NDArray elements(native_, Shape{0});
        const Dims grid{lat_, lon_};
        ReducedArray::read_ordered(*array_, native_, elements, read, others_, grid, io);
        const std::int64_t places = region.extent[lat_] * region.extent[lon_];
        const std::int64_t lines = region.count() / places;
        const std::int64_t there = block.row_count * block.column_count;
        NDArray results(info_.dtype, {lines * places});
        const std::byte* from = elements.bytes().data();
        std::byte* to = results.bytes().data();
        const ToDoubles widen = to_doubles(Elements{.dtype = native_, .marks = from_.marks_missing}.for_doubles());
        const bool keeps = taps_.how() == Regridding::nearest;
        NDArray numbers(DType::of<double>(), {keeps ? 0 : there}), made(DType::of<double>(), {keeps ? 0 : places});
        for (std::int64_t l = 0; l < lines; ++l, from += there * native_.size(), to += places * info_.dtype.size()) {
            if (io.stop.stop_requested()) throw cancelled("stopped on request");
            if (keeps) {
                block.choose(from, native_.size(), to);
                continue;
            }
            if (there > 0) widen(from, there, numbers.values<double>().data());
            block.apply(numbers.values<double>().data(), made.values<double>().data());
            (void)cast_packed(made.dtype(), made.bytes().data(), info_.dtype, to, places, Cast::unsafe);
        }
        ReducedArray::write_ordered(std::move(results), out, others_, grid);
    }

    std::unique_ptr<ArraySource> array_;
    GridTaps taps_;
    int lat_, lon_;
    std::int64_t memory_;
    ArrayInfo from_, info_;
    DType native_;
    Dims others_;
    std::string coordinates_;  ///< the attribute of the result
};

/// Degrees in memory.
class CoordinateValues final : public ArraySource {
public:
    CoordinateValues(std::string name, std::vector<double> values, Value attributes)
        : name_(std::move(name)), values_(std::move(values)), attributes_(std::move(attributes)) {}
    [[nodiscard]] ArrayInfo info() const override {
        return {.dtype = DType::of<double>(), .shape = {std::ssize(values_)}, .chunks = {}};
    }
    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] Value attribute_values() const override { return attributes_; }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& /*io*/) const override {
        require_inside(region, info().shape);
        const ArrayView all(reinterpret_cast<const std::byte*>(values_.data()), DType::of<double>(), info().shape, {8});
        copy_elements(all.part(region), out);
    }

private:
    std::string name_;
    std::vector<double> values_;
    Value attributes_;
};

GridAxis required(std::optional<GridAxis> axis, const ArraySource& array, std::string_view what) {
    if (axis) return *std::move(axis);
    throw invalid_argument(
        "{}: no dimension has {} (a coordinate beside it, of the dimension's name, in degrees); grids "
        "whose {} have two dimensions are not interpolated",
        array.name(), what, what);
}

double number_in(std::string_view text, std::string_view item) {
    double value = 0;
    const auto [stop, error] = number_from_text(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && stop == text.data() + text.size() && std::isfinite(value)) return value;
    throw invalid_argument("to: expected NAME=FIRST:LAST:STEP, such as lat=-90:90:1, found '{}'", item);
}

/// "-90:90:1": both ends are included.
std::vector<double> values_of_range(std::string_view range, std::string_view item) {
    const std::size_t one = range.find(':');
    const std::size_t two = one == std::string_view::npos ? one : range.find(':', one + 1);
    if (two == std::string_view::npos) (void)number_in("", item);
    const double first = number_in(range.substr(0, one), item);
    const double last = number_in(range.substr(one + 1, two - one - 1), item);
    const double step = number_in(range.substr(two + 1), item);
    const double count = step == 0 ? -1 : std::floor((last - first) / step + 1e-6) + 1;
    constexpr double most = 1e7;
    if (!(count >= 1 && count <= most)) {
        throw invalid_argument("to: expected a step that leads from the first to the last value, found '{}'", item);
    }
    std::vector<double> values;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i)
        values.push_back(first + static_cast<double>(i) * step);
    return values;
}

bool means(std::string_view name, const std::string& dimension, std::string_view shorter, std::string_view longer) {
    return name == dimension || name == shorter || name == longer;
}

/// The axes of the target by ranges; those that are not named stay as they are.
std::pair<GridAxis, GridAxis> axes_of_ranges(std::string_view text, const GridAxis& lat, const GridAxis& lon,
                                             const DimensionNames& names) {
    GridAxis new_lat = lat, new_lon = lon;
    const std::string& lat_name = *names[static_cast<std::size_t>(lat.dimension)];
    const std::string& lon_name = *names[static_cast<std::size_t>(lon.dimension)];
    while (!text.empty()) {
        const std::size_t comma = text.find(',');
        std::string_view item = text.substr(0, comma);
        text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
        while (item.starts_with(' ')) item.remove_prefix(1);
        const std::size_t equals = item.find('=');
        const std::string_view name = item.substr(0, equals);
        const bool is_lat = means(name, lat_name, "lat", "latitude");
        if (equals == std::string_view::npos || (!is_lat && !means(name, lon_name, "lon", "longitude"))) {
            throw invalid_argument("to: expected {}=FIRST:LAST:STEP,{}=FIRST:LAST:STEP, found '{}'", lat_name, lon_name,
                                   item);
        }
        GridAxis& axis = is_lat ? new_lat : new_lon;
        axis = {.dimension = axis.dimension, .name = "to", .centres = values_of_range(item.substr(equals + 1), item)};
        if (is_lat && std::ranges::any_of(axis.centres, [](double v) { return std::abs(v) > 90; })) {
            throw invalid_argument("to: expected latitudes from -90 to 90, found '{}'", item);
        }
        set_midpoints(axis, is_lat);
    }
    return {std::move(new_lat), std::move(new_lon)};
}

using Coordinates = decltype(Regridded::coordinates);

/// Attributes without what is about the cells of another grid.
Value attributes_of_points(Value attributes) {
    for (const char* of_cells : {"bounds", "actual_range", "valid_range"}) attributes.erase(of_cells);
    attributes.erase(dimensions_attribute);
    return attributes;
}

void add_values(Coordinates& coordinates, const std::string& name, GridAxis axis, bool latitudes) {
    Value attributes = attributes_of_points(std::move(axis.attributes));
    erase_code_attributes(attributes);
    if (attributes.find("units") == nullptr) attributes.set("units", latitudes ? "degrees_north" : "degrees_east");
    if (attributes.find("standard_name") == nullptr)
        attributes.set("standard_name", latitudes ? "latitude" : "longitude");
    coordinates.emplace_back(name,
                             std::make_shared<CoordinateValues>(name, std::move(axis.centres), std::move(attributes)));
}

/// The other grid's own elements, so that both are the same to the last bit.
void add_like(Coordinates& coordinates, const std::string& name, const ArraySource& like, int dimension) {
    const std::optional<std::string> there = dimension_names_of(like)[static_cast<std::size_t>(dimension)];
    std::unique_ptr<ArraySource> values = array_beside(like, *there);
    Value attributes = attributes_of_points(values->attribute_values());
    const DType dtype = native_dtype(values->info().dtype);
    coordinates.emplace_back(
        name, shared_source(std::make_shared<CastSource>(std::move(values), dtype, Cast::safe), std::move(attributes)));
}

}  // namespace

Regridding parse_regridding(std::string_view word) {
    if (word == "bilinear") return Regridding::bilinear;
    if (word == "nearest") return Regridding::nearest;
    if (word == "conservative") return Regridding::conservative;
    throw invalid_argument("expected bilinear, nearest or conservative, found '{}'", word);
}

Regridded regridded(std::unique_ptr<ArraySource> array, const RegridTarget& target, Regridding how,
                    std::int64_t memory) {
    const ArrayInfo info = array->info();
    if (!is_number(info.dtype) || info.dtype.kind() == Kind::complex) {
        throw unsupported("{}: real numbers are interpolated, and its elements are {}", array->name(),
                          info.dtype.to_string());
    }
    if ((target.like != nullptr) == target.ranges.has_value()) {
        throw invalid_argument(
            "like: choose it or `to`: a grid to take the coordinates from, or lat=-90:90:1,lon=0:359:1");
    }
    const GridAxis lat = required(latitudes_of(*array), *array, "latitudes");
    const GridAxis lon = required(longitudes_of(*array), *array, "longitudes");
    const DimensionNames names = dimension_names_of(*array);
    auto [new_lat, new_lon] = target.ranges
                                  ? axes_of_ranges(*target.ranges, lat, lon, names)
                                  : std::pair(required(latitudes_of(*target.like), *target.like, "latitudes"),
                                              required(longitudes_of(*target.like), *target.like, "longitudes"));
    Regridded result;
    const std::string& lat_name = *names[static_cast<std::size_t>(lat.dimension)];
    const std::string& lon_name = *names[static_cast<std::size_t>(lon.dimension)];
    if (target.like != nullptr) {
        add_like(result.coordinates, lat_name, *target.like, new_lat.dimension);
        add_like(result.coordinates, lon_name, *target.like, new_lon.dimension);
    } else {
        add_values(result.coordinates, lat_name, new_lat, true);
        add_values(result.coordinates, lon_name, new_lon, false);
    }
    result.source = std::make_unique<RegridSource>(std::move(array), GridTaps(how, lat, lon, new_lat, new_lon),
                                                   lat.dimension, lon.dimension, memory);
    return result;
}

}  // namespace tessera
