// What pictures and tiles show of elements, by their meaning. Both work with the stored codes as doubles, because means
// and extremes of packed numbers are packed ones: what is drawn is decoded at last. Private to the store module.
#pragma once

#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/element.h>
#include <tessera/meaning.h>
#include <tessera/reduce.h>

namespace tessera {

/// The meaning of an array, or none for its codes.
[[nodiscard]] Meaning shown_meaning(const ArraySource& source, bool raw);

/// An element (in its dtype's byte order) as pictures show it, its sign read as `stored` has it: a complex number by
/// its magnitude, NaT as NaN.
[[nodiscard]] double element_number(const DType& dtype, const DType& stored, const ElementBytes& element);

/// The codes that pictures and tiles show apart, as doubles: see PictureOptions::missing. Throws invalid_argument if
/// `missing` is no word or number that is known, or names an undefined fill value.
[[nodiscard]] std::vector<double> missing_codes(const ArraySource& source, const Meaning& meaning,
                                                const std::string& missing);

/// The reduction of codes that gives that of decoded numbers: a negative scale turns minima into maxima.
[[nodiscard]] Coarsening reduction_of_codes(const Meaning& meaning, Coarsening with);

/// From codes, or means of them, to numbers.
struct LinearPart {
    double scale = 1, offset = 0;
    [[nodiscard]] double operator()(double code) const { return code * scale + offset; }
    [[nodiscard]] bool changes() const { return scale != 1 || offset != 0; }
};
/// `dates`: to counts of decoded_dtype(), where times have one.
[[nodiscard]] LinearPart linear_part(const Meaning& meaning, bool dates);

}  // namespace tessera
