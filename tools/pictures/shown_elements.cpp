#include "shown_elements.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <tessera/array.h>
#include <tessera/calendar.h>
#include <tessera/error_text.h>
#include <tessera/numbers.h>
#include <tessera/slices.h>

namespace tessera {

namespace {

/// What a user calls missing, as a code: the nearest one that integers have.
double code_of(const Meaning& meaning, double value) {
    const LinearPart decoded = linear_part(meaning, false);
    if (!decoded.changes()) return value;
    const double code = (value - decoded.offset) / decoded.scale;
    constexpr double near = 1e-6;
    const double whole = std::nearbyint(code);
    const bool real = meaning.stored.kind() == Kind::real || meaning.stored.kind() == Kind::bfloat16;
    return !real && std::abs(code - whole) < near * std::max(1.0, std::abs(whole)) ? whole : code;
}

}  // namespace

Meaning shown_meaning(const ArraySource& source, bool raw) {
    const DType dtype = native_dtype(source.info().dtype);
    return raw ? Meaning{.stored = dtype, .held = dtype} : meaning_of(source);
}

double element_number(const DType& dtype, const DType& stored, const ElementBytes& element) {
    double numbers[2];
    ElementBytes copy = element;
    if (!(native_dtype(dtype) == dtype)) swap_elements(dtype, copy.data(), 1);
    to_doubles(stored)(copy.data(), 1, numbers);
    return stored.kind() == Kind::complex ? std::hypot(numbers[0], numbers[1]) : numbers[0];
}

std::vector<double> missing_codes(const ArraySource& source, const Meaning& meaning, const std::string& missing) {
    if (missing == "none") return {};
    std::optional<double> fill;
    if (const auto bytes = source.fill_bytes()) fill = element_number(source.info().dtype, meaning.stored, *bytes);
    if (missing == "fill") {
        if (!fill) throw invalid_argument(source.name() + ": it has no fill value that missing could name");
        return {*fill};
    }
    if (missing != "auto") {
        try {
            return {code_of(meaning, Value::parse(missing).as_double())};
        } catch (const Error&) {
            throw invalid_argument("missing: expected auto, fill, none or a number, found '{}'", missing);
        }
    }
    std::vector<double> codes;
    if (fill && *fill != 0 && *fill == *fill) codes.push_back(*fill);
    for (const ElementBytes& marker : meaning.missing) {
        const double code = element_number(meaning.stored, meaning.stored, marker);
        if (std::ranges::count(codes, code) == 0) codes.push_back(code);
    }
    return codes;
}

Coarsening reduction_of_codes(const Meaning& meaning, Coarsening with) {
    if (!(meaning.packing.scale < 0)) return with;
    return with == Coarsening::min ? Coarsening::max : with == Coarsening::max ? Coarsening::min : with;
}

LinearPart linear_part(const Meaning& meaning, bool dates) {
    LinearPart part{meaning.packing.scale, meaning.packing.offset};
    if (!dates || !meaning.has_datetimes()) return part;
    const auto seconds = [](Int128 time) {
        return static_cast<double>(static_cast<long double>(time) / attoseconds_of_second);
    };
    const double unit = seconds(*time_of_datetime(1, decoded_dtype(meaning).time_unit()));
    const double count = seconds(meaning.time->unit) / unit;
    return {part.scale * count, part.offset * count + seconds(meaning.time->start) / unit};
}

}  // namespace tessera
