// Which indices along a dimension belong together: by the calendar of its coordinate, or by labels.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/value.h>

namespace tessera {

struct Grouping {
    int axis = 0;
    std::string by;                ///< "month", or the name of the labels
    std::vector<std::int32_t> of;  ///< the group of each index along the axis; -1: in none
    std::int64_t count = 0;
    Value labels = Value::array();  ///< of the groups: years, "2020-01", "DJF", or the labels themselves
};

/// The words that group_by_time() takes.
[[nodiscard]] const std::vector<std::string_view>& grouping_words();

/// Groups by the times of a dimension's coordinate (parse_selection() says which array that is), in its calendar:
/// `by` is "year", "month" (each month of each year), "month-of-year", "day-of-year" or "season" (DJF, JJA, MAM, SON,
/// each over all years). Years and months follow each other without a gap, as in xarray's resample, so that some may
/// be empty; of the others there are those that occur, sorted, as in xarray's groupby. Indices without a time are in no
/// group. Throws invalid_argument for another word, and for a dimension without a coordinate that holds times.
[[nodiscard]] std::shared_ptr<const Grouping> group_by_time(const ArraySource& array, int axis, std::string_view by);

/// Groups by a one-dimensional array of integers, texts, booleans, times or floats, one for each index along the axis:
/// a group for each label, sorted. NaN and NaT are in no group. Throws invalid_argument for labels of another shape or
/// dtype.
[[nodiscard]] std::shared_ptr<const Grouping> group_by_labels(const ArraySource& array, int axis,
                                                              std::unique_ptr<ArraySource> labels);

/// The only dimension whose coordinate holds times. Throws invalid_argument if there is none, or more than one.
[[nodiscard]] int time_dimension(const ArraySource& array);

}  // namespace tessera
