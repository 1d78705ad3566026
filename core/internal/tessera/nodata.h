// The text in which GDAL keeps the marker of missing elements: TIFF's tag 42113.
#pragma once

#include <optional>
#include <string_view>

#include <tessera/dtype.h>
#include <tessera/element.h>

namespace tessera {

struct Nodata {
    ElementBytes element;
    /// Elements within this part of the marker are missing, too, because its text has fewer digits than the dtype. 0:
    /// equal ones alone.
    double tolerance = 0;
};

/// What the text marks among elements of this dtype; nullopt if it is no number, or none that the dtype can hold. A
/// decimal comma counts as a point, and NaN and infinity may be spelt as C libraries do (-1.#IND). Beyond a float's
/// range it is infinite, and a text that is the dtype's extreme, rounded, is that extreme.
[[nodiscard]] std::optional<Nodata> parse_nodata(std::string_view text, const DType& dtype);

}  // namespace tessera
