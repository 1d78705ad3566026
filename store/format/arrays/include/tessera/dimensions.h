// The names of an array's dimensions, the coordinates along them, and selections by both.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/selection.h>

namespace tessera {

/// One for each dimension, nullopt for one without a name; or empty, if none has one.
using DimensionNames = std::vector<std::optional<std::string>>;

/// The names of an array's dimensions: v3's, or xarray's attribute; empty for none.
[[nodiscard]] DimensionNames dimension_names_of(const ArraySource& source);
/// The name of a dimension, or "axis 1".
[[nodiscard]] std::string dimension_name(const DimensionNames& names, int dimension);
/// For messages about a name that none of several arrays has: "there are lat, lon, time".
[[nodiscard]] std::string names_there(const std::set<std::string>& names);

/// The dimension that a word names, of `rank`: by its name, or by its number, where -1 is the last. Throws
/// invalid_argument, listing those that there are.
[[nodiscard]] int find_dimension(std::string_view word, const DimensionNames& names, int rank);
[[nodiscard]] int find_dimension(std::string_view word, const ArraySource& source);
/// The same for several words between commas.
[[nodiscard]] std::vector<int> find_dimensions(std::string_view words, const ArraySource& source);

/// Parses a selection as Selection::parse, and by the names of dimensions:
/// - "time=2020-01:2020-06, lat=45:50": values of the coordinates; both ends are included
/// - "lat=45, lon~7.3": the value itself; the nearest value
/// - "z@4:9": indices, as in NumPy's slices
///
/// A coordinate is the one-dimensional array in the array's group that has the dimension's name, with the attributes of
/// the CF conventions applied. Values compare in its dtype. A range takes the values between its ends, whichever of
/// them is first; an end that is left out is the array's. It may have a step: "lat=45:50:2". A date stands for all of
/// its period: "2020-06" as an end is the whole month, and as a value everything in it, if the coordinate is finer. A
/// value that holds a colon or a comma stands in quotes: "time='2020-01-01T12:30'". Longitudes that run once around the
/// earth have any turn: "lon=-7" of 0 to 359 is 353. A range beyond their ends is two parts, which this refuses, as no
/// Selection holds them. Values of a dimension without a coordinate are refused: indices have an "@".
///
/// Names stand in any order if every item has one; otherwise each at its dimension's place.
///
/// `said` becomes what the named items were taken for, for a person; empty without any.
///
/// Throws also invalid_argument for a name that no dimension has, for a coordinate that is not sorted where a range or
/// the nearest value is asked for, and for text that is no value of the coordinate; out_of_bounds for a value that it
/// does not have; and what reading the coordinate throws.
[[nodiscard]] Selection parse_selection(std::string_view text, const ArraySource& source, std::string* said = nullptr);

/// One selection of several arrays, such as those of a group: each takes the items whose dimensions it has.
class SharedSelection {
public:
    /// Throws invalid_argument for an item without a name.
    explicit SharedSelection(std::string text);

    /// The items for this array, for parse_selection(); empty: all of it.
    [[nodiscard]] std::string items_for(const ArraySource& source);
    /// Of what parse_selection() said of an array, that which was not said of another one.
    [[nodiscard]] std::string unsaid(std::string_view said);
    /// Throws invalid_argument for a name that none of the arrays so far had.
    void require_found() const;

private:
    std::string text_;
    std::set<std::string> found_, known_, said_;
};

/// The selected part of a source, without dropped dimensions. It has the given attributes.
[[nodiscard]] std::unique_ptr<ArraySource> selected_source(std::unique_ptr<ArraySource> source, Selection selection,
                                                           Value attributes = Value::object());
/// Attributes of an array as those of its part: `_ARRAY_DIMENSIONS` without the names of dropped dimensions, and a
/// georeference of the part. `names` are those of the array; empty: those in the attributes.
[[nodiscard]] Value attributes_of_part(Value attributes, const Selection& selection, DimensionNames names = {});

}  // namespace tessera
