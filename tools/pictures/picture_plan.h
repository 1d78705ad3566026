// What of an array a picture takes, and how it is read. Private to the store module.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/axis_facts.h>
#include <tessera/meaning.h>
#include <tessera/picture.h>
#include <tessera/selection.h>

namespace tessera {

struct PicturePlan {
    /// The slice, its other dimensions dropped; with `stepped` only the first element of each cell.
    Selection selection{std::vector<Selection::Axis>{}};
    Shape windows;  ///< elements of a cell along each dimension of the selection
    PictureAxis rows, columns;
    bool line = false;
    bool stepped = false;
    bool sampled = false;
    Coarsening with = Coarsening::mean;
    std::string slice, how;
    std::optional<ColourAxis> colours;
    int colours_at = -1;  ///< which dimension of the selection holds them
};

/// The slice that options choose, before its axes are fitted into the picture.
struct SliceAxes {
    std::vector<Selection::Axis> axes;  ///< of every dimension, as selected
    std::vector<std::optional<std::string>> names;
    PictureAxis rows, columns;
    bool line = false;
};

/// `colours`: a dimension that is not shown as one of the two, or -1. Throws as read_picture().
[[nodiscard]] SliceAxes slice_axes(const ArraySource& source, const PictureOptions& options, int colours = -1);
/// Sets windows and zoom: the same along both axes, unless one of them would then be a mere line.
void fit_axes(PictureAxis& rows, PictureAxis& columns, std::int64_t height, std::int64_t width);

/// Throws as read_picture().
[[nodiscard]] PicturePlan plan_picture(const ArraySource& source, const Meaning& meaning,
                                       const PictureOptions& options);

}  // namespace tessera
