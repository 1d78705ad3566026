// Which elements stand for missing data. Private to the store module.
#pragma once

#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/element.h>

namespace tessera {

/// An element (in its dtype's byte order) as pictures show it: a complex number by its magnitude, NaT as NaN.
[[nodiscard]] double element_number(const DType& dtype, const ElementBytes& element);

/// The values that pictures and tiles show apart, as elements are converted to doubles: see PictureOptions::missing.
/// Throws invalid_argument if `missing` is no word or number that is known, or names an undefined fill value.
[[nodiscard]] std::vector<double> missing_values(const ArraySource& source, const std::string& missing);

}  // namespace tessera
