#include "missing.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <tessera/array.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/numbers.h>
#include <tessera/slices.h>

#include "fill_attribute.h"

namespace tessera {

double element_number(const DType& dtype, const ElementBytes& element) {
    double numbers[2];
    const DType native = native_dtype(dtype);
    ElementBytes copy = element;
    if (!(native == dtype)) swap_elements(dtype, copy.data(), 1);
    to_doubles(native)(copy.data(), 1, numbers);
    return dtype.kind() == Kind::complex ? std::hypot(numbers[0], numbers[1]) : numbers[0];
}

std::vector<double> missing_values(const ArraySource& source, const std::string& missing) {
    if (missing == "none") return {};
    const DType dtype = source.info().dtype;
    std::optional<double> fill;
    if (const auto bytes = source.fill_bytes()) fill = element_number(dtype, *bytes);
    if (missing == "fill") {
        if (!fill) throw invalid_argument(source.name() + ": it has no fill value that missing could name");
        return {*fill};
    }
    if (missing != "auto") {
        try {
            return {Value::parse(missing).as_double()};
        } catch (const Error&) {
            throw invalid_argument("missing: expected auto, fill, none or a number, found '{}'", missing);
        }
    }
    std::vector<double> values;
    if (fill && *fill != 0 && *fill == *fill) values.push_back(*fill);
    Value attributes = source.attribute_values();
    fill_attribute_as_number(dtype, attributes);
    for (const char* key : {"_FillValue", "missing_value"}) {
        const Value* value = attributes.find(key);
        if (value == nullptr || !value->is_number()) continue;
        // The attribute of an array of floats is often the double that was rounded to the element: 1e20.
        const bool narrow = dtype.kind() == Kind::real && dtype.size() == 4;
        const double number = narrow ? static_cast<float>(value->as_double()) : value->as_double();
        if (std::ranges::count(values, number) == 0) values.push_back(number);
    }
    return values;
}

}  // namespace tessera
