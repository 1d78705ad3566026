// append_group: a dataset grows along a dimension by another one, such as a time series by the files of a new month.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/derived_source.h>
#include <tessera/edit.h>
#include <tessera/group.h>
#include <tessera/locate.h>

namespace tessera {

struct AppendGroupOptions {
    std::optional<Cast> cast = std::nullopt;  ///< converts elements of other dtypes, which are an error without it
    EditOptions edit = {};
    IoOptions io = {};
};

/// An array that grew.
struct AppendedArray {
    std::string path;  ///< below the group
    int axis = 0;
    Shape before, after;
};

/// Appends to each array below the group that has the dimension the array of the same path in `source`: a group, a
/// folder, or an array file of several arrays. All of them grow, in one batch, or none; arrays without the dimension
/// stay. Times in other units ("days since 2020-02-01") are counted as those that are there. Consolidated metadata that
/// the group has are renewed.
///
/// Throws invalid_argument, naming the arrays, if no array has the dimension, if one that has it is missing on either
/// side, if an attribute that gives the values their meaning differs (units, calendar, scale_factor, add_offset,
/// _FillValue), or if a coordinate of another dimension does; and what Array::append throws. Nothing has changed then.
/// Throws recorded, as Edit::commit(), for a failure after the arrays have grown.
std::vector<AppendedArray> append_group(const Group& group, const Located& source, const std::string& dimension,
                                        const AppendGroupOptions& options = {});

/// What is appended to the array, with its dtype. Throws invalid_argument for another one without a rule to convert it.
[[nodiscard]] std::unique_ptr<ArraySource> fitting_source(std::unique_ptr<ArraySource> more, const Array& array,
                                                          const std::optional<Cast>& cast);

}  // namespace tessera
