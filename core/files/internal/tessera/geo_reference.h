// Georeferences in attributes, by GeoZarr's conventions "spatial" and "proj" (v0.1 of June 2026).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/value.h>

namespace tessera {

/// GeoZarr's conventions.
enum class GeoConvention : std::uint8_t { multiscales, proj, spatial };
/// Their entry in a list `zarr_conventions`.
[[nodiscard]] Value geo_convention(GeoConvention convention);
/// Whether an entry of such a list is of the convention, in whatever version.
[[nodiscard]] bool is_geo_convention(const Value& entry, GeoConvention convention);

/// Where the elements of an array lie. Of other dimensions than two it says nothing.
struct GeoReference {
    /// The names of the dimensions along which y and x run.
    std::array<std::string, 2> dimensions{"y", "x"};
    /// a, b, c, d, e, f: x = a·column + b·row + c, y = d·column + e·row + f. Column and row 0 are the outer edges of
    /// the first elements, or with `nodes` their centres.
    std::optional<std::array<double, 6>> transform = std::nullopt;
    std::optional<std::array<std::int64_t, 2>> shape = std::nullopt;  ///< along y and x
    bool nodes = false;
    Value crs = Value::object();  ///< the coordinate reference system: "proj:code", "proj:wkt2", "proj:projjson"

    /// [xmin, ymin, xmax, ymax]; nullopt unless transform and shape are known.
    [[nodiscard]] std::optional<std::array<double, 4>> bounds() const;
    /// The system in a few words: its code, or the name in its text. Empty if there is none.
    [[nodiscard]] std::string crs_name() const;
};

/// The georeference in attributes; members that are not as the conventions say count as absent. nullopt if there is
/// neither a transform nor a system of coordinates.
[[nodiscard]] std::optional<GeoReference> geo_reference_in(const Value& attributes);
/// Sets the members of attributes, which replace those of another georeference, and lists the conventions.
void set_geo_reference(Value& attributes, const GeoReference& reference);
/// Adds an entry to the list `zarr_conventions`, in place of one of another version.
void add_geo_convention(Value& attributes, GeoConvention convention);

/// That of an array whose elements stand for blocks of rows and columns: of the middle of each block, or with
/// `of_first` of its first element. `shape` is the new one.
[[nodiscard]] GeoReference coarsened(const GeoReference& reference, std::array<std::int64_t, 2> by,
                                     std::array<std::int64_t, 2> shape, bool of_first);

/// That of a part: its first row and column, and how many it goes on by, which may be negative.
[[nodiscard]] GeoReference selected(const GeoReference& reference, std::array<std::int64_t, 2> start,
                                    std::array<std::int64_t, 2> step, std::array<std::int64_t, 2> shape);
/// For elements that lie nowhere in the plane any more. The system of coordinates stays.
void erase_geo_place(Value& attributes);

/// A system of coordinates as a person says it: "EPSG:4326", a text of WKT2, or PROJJSON. Throws invalid_argument.
[[nodiscard]] Value parse_crs(std::string_view text);
/// "EPSG:4326": an authority's name in capitals, and a number.
[[nodiscard]] bool is_crs_code(std::string_view text);

/// Of a grid mapping, as GDAL writes it: see geo_transform_in().
inline constexpr std::string_view geo_transform_attribute = "GeoTransform";
/// The numbers of that attribute, which may be text: x of the corner, its steps along a row and along a column; the
/// same of y. Empty: there is none.
[[nodiscard]] std::vector<double> geo_transform_in(const Value& attributes);
/// The variable that is the grid mapping of an array with these attributes (CF 1.11, 5.6); empty: none.
[[nodiscard]] std::string grid_mapping_in(const Value& attributes);

}  // namespace tessera
