// What of an array a picture takes, and how it is read. Private to the store module.
#pragma once

#include <string>

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
};

/// Throws as read_picture().
[[nodiscard]] PicturePlan plan_picture(const ArraySource& source, const PictureOptions& options);

}  // namespace tessera
