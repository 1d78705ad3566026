#include <tessera/measure.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <tessera/derived_source.h>
#include <tessera/meaning.h>
#include <tessera/numbers.h>
#include <tessera/shared_source.h>

#include "calc_times.h"
#include "converted_source.h"

namespace tessera {

namespace {

struct Meant {
    explicit Meant(const ArraySource& source)
        : codes(source), meaning(meaning_of(source)), encoded(meaning.is_encoded(source.info().dtype)) {}
    [[nodiscard]] bool says_more() const { return encoded || meaning.time; }
    /// With other calendars' times as the counts that they are.
    [[nodiscard]] std::unique_ptr<ArraySource> values() const {
        return decoded_source(borrowed_source(codes, meaning.attributes), Times::dates);
    }
    const ArraySource& codes;
    Meaning meaning;
    bool encoded;
};

std::string calendar_and_units(const Meaning& meaning) {
    if (!meaning.time) return meaning.units;
    return fmt::format("{} ({})", meaning.units, calendar_name(meaning.time->calendar));
}

/// Whether both are moments that datetime64 counts, or numbers of the same units; without units, of any.
bool same_units(const Meaning& a, const Meaning& b) {
    if (a.has_datetimes() && b.has_datetimes()) return true;
    if (a.time && b.time) {
        return a.time->calendar == b.time->calendar && a.time->unit == b.time->unit && a.time->start == b.time->start;
    }
    return a.units.empty() || b.units.empty() || a.units == b.units;
}

bool same_packing(const Packing& a, const Packing& b) {
    return a.scale == b.scale && a.offset == b.offset;
}

/// Whether equal codes mean equal values.
bool same_encoding(const Meant& a, const Meant& b) {
    const Meaning& x = a.meaning;
    const Meaning& y = b.meaning;
    const bool same_times = x.time.has_value() == y.time.has_value() && (!x.time || x.units == y.units);
    return x.stored == y.stored && x.held == y.held && same_packing(x.packing, y.packing) && x.missing == y.missing &&
           same_times && same_units(x, y);
}

/// Times in the finer of two units.
std::unique_ptr<ArraySource> in_unit_of(std::unique_ptr<ArraySource> times, const ArraySource& other) {
    const auto from = time_type_of(times->info().dtype), to = time_type_of(other.info().dtype);
    if (!from || !to || from->kind != to->kind || from->unit.base >= to->unit.base) return times;
    auto convert = [from = *from, unit = to->unit](const std::byte* in, std::byte* out, std::int64_t n) {
        convert_times(from, unit, in, out, n);
    };
    Value attributes = times->attribute_values();
    return std::make_unique<ConvertedSource>(std::move(times), DType::time(Kind::datetime, to->unit),
                                             std::move(attributes), std::move(convert));
}

/// What unpacking rounds: some last places of the largest number in it.
Tolerance rounding_of(const Meaning& a, const Meaning& b) {
    constexpr double some = 8 * std::numeric_limits<double>::epsilon();
    return {.atol = some * (std::fabs(a.packing.offset) + std::fabs(b.packing.offset)), .rtol = some};
}

/// Missing elements as get shows them, where every NaN is one.
void show_missing(const Meant& of, std::string& text, Value& json) {
    const Kind kind = of.meaning.stored.kind();
    if (!of.encoded || (kind != Kind::integer && kind != Kind::unsigned_integer)) return;
    if (!(json == Value("NaN")) && !(of.meaning.marks_missing() && text == fmt::format("{}", missing_integer))) return;
    text = "--";
    json = Value();
}

/// How codes differ that mean the same.
std::string codes_text(const Meant& a, const Meant& b, const IoOptions& io) {
    const DType& x = a.meaning.held;
    const DType& y = b.meaning.held;
    if (!(x == y)) return fmt::format("{} is not {}", x.to_string(), y.to_string());
    const Difference codes = difference(a.codes, b.codes, {}, 0, io);
    return codes.different == 0 ? "" : fmt::format("{} of {} differ", codes.different, codes.elements);
}

Difference difference_of_values(const Meant& a, const Meant& b, const Tolerance& tolerance, int places,
                                const IoOptions& io) {
    auto values = a.values(), others = b.values();
    values = in_unit_of(std::move(values), *others);
    others = in_unit_of(std::move(others), *values);
    const bool given = tolerance.atol != 0 || tolerance.rtol != 0;
    const bool rounds = !given && !same_packing(a.meaning.packing, b.meaning.packing);
    Difference found = difference(*values, *others, rounds ? rounding_of(a.meaning, b.meaning) : tolerance, places, io);
    for (Difference::Place& place : found.first) {
        show_missing(a, place.a, place.json_a);
        show_missing(b, place.b, place.json_b);
    }
    return found;
}

}  // namespace

Difference difference_by_meaning(const ArraySource& a, const ArraySource& b, const Tolerance& tolerance, int places,
                                 const IoOptions& io) {
    const Meant one(a);
    const Meant other(b);
    const bool plain = !one.says_more() && !other.says_more();
    const bool alike = same_encoding(one, other);
    Difference found;
    if (plain || alike) found = difference(a, b, plain ? tolerance : Tolerance(), places, io);  // codes have none
    const bool settled = plain || (alike && (found.none() || !found.compared));
    if (!settled) found = difference_of_values(one, other, tolerance, places, io);
    if (!same_units(one.meaning, other.meaning)) {
        found.structure.push_back(
            fmt::format("units '{}' are not '{}'", calendar_and_units(one.meaning), calendar_and_units(other.meaning)));
    }
    if (!settled && found.none()) found.codes = codes_text(one, other, io);
    return found;
}

}  // namespace tessera
