// append_group: a dataset grows along a dimension by another one, such as a time series by the files of a new month.
#pragma once

#include <memory>
#include <optional>
#include <span>
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
    /// Leave out what is there already, by the coordinate of the dimension: the first indices of a source whose values
    /// do not go on from the last one.
    bool skip_old = false;
    EditOptions edit = {};
    IoOptions io = {};
};

/// An array that grew.
struct AppendedArray {
    std::string path;  ///< below the group
    int axis = 0;
    Shape before, after;
};

/// Appends to each array below the group that has the dimension the arrays of the same path in `sources`, one after the
/// other: groups, folders, or array files of several arrays. All of them grow, in one batch, or none; arrays without
/// the dimension stay. Far away they grow together, too, by the lease of the group; nothing is kept for undo(). The
/// values of the dimension's coordinate must go on: rise, or fall where those that are there do. Numbers are packed and
/// times counted as those that are there. Consolidated metadata that the group has are renewed.
///
/// Throws invalid_argument, naming the arrays, if no array has the dimension, if one that has it is missing on either
/// side, or if a coordinate of another dimension differs, or that of this one does not go on from its last value; and
/// what fitting_source() and Array::append throw. Nothing has changed then. Throws recorded, as Edit::commit(), for a
/// failure after the arrays have grown.
std::vector<AppendedArray> append_group(const Group& group, std::span<const Located> sources,
                                        const std::string& dimension, const AppendGroupOptions& options = {});

/// What is appended to the array along an axis, with its dtype, packing, units and calendar. Throws invalid_argument
/// for what these lose, for units that are no times and a place on the earth that differ, and for another dtype without
/// a rule to convert it; reading throws it for a value that does not fit.
[[nodiscard]] std::unique_ptr<ArraySource> fitting_source(std::unique_ptr<ArraySource> more, const Array& array,
                                                          int axis, const std::optional<Cast>& cast);

}  // namespace tessera
