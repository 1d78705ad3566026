#include <tessera/meaning.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/array.h>
#include <tessera/conventions.h>
#include <tessera/coordinates.h>
#include <tessera/derived_source.h>
#include <tessera/dimensions.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/nodata.h>
#include <tessera/numbers.h>
#include <tessera/slices.h>

#include "converted_source.h"
#include "fill_attribute.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 7> cf_attributes{"_FillValue", "missing_value", "scale_factor", "add_offset",
                                                        "_Unsigned",  "units",         "calendar"};
constexpr std::array<std::string_view, 5> of_codes{"valid_min", "valid_max", "valid_range", "actual_range",
                                                   cf_encoding_attribute};

/// The dtype that the attribute _Unsigned makes of one.
DType with_sign(const DType& dtype, const Value& attributes) {
    const std::string text = text_attribute(attributes, "_Unsigned");
    const bool flips = (dtype.kind() == Kind::integer && text == "true") ||
                       (dtype.kind() == Kind::unsigned_integer && text == "false");
    if (!flips) return dtype;
    return DType::parse(fmt::format("{}{}", text == "true" ? 'u' : 'i', dtype.size())).with_order(native_order);
}

/// Bounds of a coordinate count as it does (CF 7.1), where they have no units of their own.
void take_units_of_coordinate(const ArraySource& source, Value& values) {
    const Shape shape = source.info().shape;
    const Value* const names = values.find(dimensions_attribute);
    if (shape.rank() != 2 || shape[1] != 2 || names == nullptr || values.find("units") != nullptr) return;
    if (!names->is_array() || names->as_array().empty() || !names->as_array()[0].is_string()) return;
    const std::string& whole = source.name();
    const std::string_view name = std::string_view(whole).substr(whole.find_last_of("/:") + 1);
    try {
        const auto coordinate = Coordinate::find(source, names->as_array()[0].as_string(), shape[0]);
        if (!coordinate) return;
        const Value attributes = coordinate->source().attribute_values();
        if (text_attribute(attributes, "bounds") != name && text_attribute(attributes, "climatology") != name) return;
        for (const char* key : {"units", "calendar"}) {
            if (const Value* value = attributes.find(key)) values.set(key, *value);
        }
    } catch (const Error&) {
        return;  // what is no coordinate gives none
    }
}

Value attributes_of(const ArraySource& source) {
    Value values = attributes_as_meant(source);
    take_units_of_coordinate(source, values);
    values.erase(null_fill_attribute);
    return values;
}

// ---- loops over elements

template <class T>
struct Markers {
    std::vector<T> values;
    double tolerance = 0;  ///< Meaning::tolerance
};

/// Calls each(index, element, whether it is missing).
template <class T, class Each>
void each_element(const Markers<T>& marks, const std::byte* from, std::int64_t n, const Each& each) {
    const std::vector<T>& markers = marks.values;
    const auto go = [&](const auto& is_marker) {
        for (std::int64_t i = 0; i < n; ++i) {
            const auto v = up(load_number<T>(from, i));
            each(i, v, is_marker(v) || v != v);
        }
    };
    if (markers.empty()) return go([](auto /*v*/) { return false; });
    if constexpr (!std::is_integral_v<T>) {
        if (marks.tolerance > 0) {  // then there is one
            const auto marker = static_cast<double>(up(markers[0]));
            const double near = marks.tolerance * std::abs(marker);
            return go([=](auto v) { return std::abs(static_cast<double>(v) - marker) <= near; });
        }
    }
    if (markers.size() == 1) return go([m = up(markers[0])](auto v) { return v == m; });
    go([&](auto v) { return std::ranges::any_of(markers, [v](const T& m) { return up(m) == v; }); });
}

/// A conversion whose loop is chosen once: make(T{}, markers) gives it, for elements in host order of a dtype of
/// numbers that is not complex.
template <class Make>
ConvertedSource::Convert by_type(const Meaning& meaning, const Make& make) {
    return with_part(meaning.stored, [&](auto kind) -> ConvertedSource::Convert {
        using T = decltype(kind);
        if constexpr (std::is_same_v<T, Boolean>) {
            not_computed_with(meaning.stored);
        } else {
            Markers<T> markers{.values = {}, .tolerance = meaning.tolerance};
            for (const ElementBytes& one : meaning.missing) markers.values.push_back(load_number<T>(one.data(), 0));
            return make(kind, std::move(markers));
        }
    });
}

template <class To>
ConvertedSource::Convert unpacking(const Meaning& meaning) {
    return by_type(meaning, [&](auto kind, auto markers) -> ConvertedSource::Convert {
        using T = decltype(kind);
        constexpr To nan = std::numeric_limits<To>::quiet_NaN();
        const auto scale = static_cast<To>(meaning.packing.scale), offset = static_cast<To>(meaning.packing.offset);
        if (!meaning.packing.scaled) {
            return [markers](const std::byte* from, std::byte* to, std::int64_t n) {
                each_element<T>(markers, from, n, [&](std::int64_t i, auto v, bool lacks) {
                    store_number(to, i, lacks ? nan : static_cast<To>(v));
                });
            };
        }
        return [=](const std::byte* from, std::byte* to, std::int64_t n) {
            const To a = scale, b = offset;  // in registers: a byte that is stored might be one of the closure
            each_element<T>(markers, from, n, [to, a, b](std::int64_t i, auto v, bool lacks) {
                const To made = static_cast<To>(v) * a + b;
                store_number(to, i, lacks ? nan : made);
            });
        };
    });
}

/// Reals that stay what they are, without markers.
ConvertedSource::Convert unmarking(const Meaning& meaning) {
    return by_type(meaning, [](auto kind, auto markers) -> ConvertedSource::Convert {
        using T = decltype(kind);
        return [markers](const std::byte* from, std::byte* to, std::int64_t n) {
            if constexpr (!std::is_integral_v<T>) {
                const T nan(std::numeric_limits<double>::quiet_NaN());
                each_element<T>(markers, from, n, [&](std::int64_t i, auto v, bool lacks) {
                    store_number(to, i, lacks && v == v ? nan : load_number<T>(from, i));
                });
            }
        };
    });
}

/// Integers of 8 bytes, whose markers become the least one.
ConvertedSource::Convert marking(const Meaning& meaning) {
    return by_type(meaning, [](auto kind, auto markers) -> ConvertedSource::Convert {
        using T = decltype(kind);
        return [markers](const std::byte* from, std::byte* to, std::int64_t n) {
            if constexpr (std::is_integral_v<T>) {
                each_element<T>(markers, from, n, [&](std::int64_t i, T v, bool lacks) {
                    const auto made = lacks ? missing_integer : static_cast<std::int64_t>(v);
                    const bool fits = !std::is_unsigned_v<T> || static_cast<std::uint64_t>(v) <= INT64_MAX;
                    if (!lacks && (!fits || made == missing_integer)) {
                        throw unsupported(
                            "the integer {} cannot be computed with beside missing ones: use the codes (raw)", v);
                    }
                    store_number(to, i, made);
                });
            }
        };
    });
}

/// Elements as they are, of which only the sign is read in another way.
ConvertedSource::Convert resigning(const Meaning& meaning) {
    return [size = meaning.stored.size()](const std::byte* from, std::byte* to, std::int64_t n) {
        std::copy_n(from, n * size, to);
    };
}

ConvertedSource::Convert conversion(const Meaning& meaning) {
    if (meaning.marks_missing()) return marking(meaning);
    const DType decoded = meaning.decoded();
    if (decoded == meaning.stored && !meaning.packing.scaled) {
        return is_integral(decoded) ? resigning(meaning) : unmarking(meaning);
    }
    return decoded.size() == 4 ? unpacking<float>(meaning) : unpacking<double>(meaning);
}

// ---- times

/// The coarsest unit that holds whole counts of the encoding.
TimeUnit datetime_unit(const CfTime& cf, bool whole) {
    using Base = TimeUnit::Base;
    for (const Base base : {Base::D, Base::h, Base::m, Base::s, Base::ms, Base::us, Base::ns}) {
        if (!whole && base < Base::us) continue;
        const bool unit_fits = cf.unit % *time_of_datetime(1, {base}) == 0;
        if (whole ? unit_fits && cf.start % *time_of_datetime(1, {base}) == 0 : unit_fits) return {base};
    }
    return {Base::ns};
}

std::int64_t datetime_count(const std::optional<Int128>& time, const CfTime& cf, TimeUnit unit) {
    constexpr Int128 reform = -141427 * attoseconds_of_day;  // 1582-10-15
    if (time && cf.calendar == Calendar::standard && *time < reform) {
        throw invalid_argument(
            "the time {} of the calendar standard lies before 1582-10-15, which datetime64 counts "
            "in another calendar",
            time_text(cf.calendar, *time));
    }
    const auto count = time ? datetime_of_time(*time, unit) : std::nullopt;
    if (!count) throw invalid_argument("a time is beyond what datetime64 holds in its unit");
    return *count;
}

bool counts_whole(const Meaning& meaning) {
    return is_integral(meaning.stored) && meaning.packing.scale == 1 && meaning.packing.offset == 0;
}

ConvertedSource::Convert dating(const Meaning& meaning, TimeUnit unit) {
    const CfTime cf = *meaning.time;
    const Packing packing = meaning.packing;
    const bool whole = counts_whole(meaning);
    return by_type(meaning, [&](auto kind, auto markers) -> ConvertedSource::Convert {
        using T = decltype(kind);
        return [=](const std::byte* from, std::byte* to, std::int64_t n) {
            each_element<T>(markers, from, n, [&](std::int64_t i, auto v, bool lacks) {
                std::optional<Int128> time;
                if constexpr (std::is_integral_v<T>) {
                    const bool fits = !std::is_unsigned_v<T> || static_cast<std::uint64_t>(v) <= INT64_MAX;
                    if (whole && fits && !lacks) time = cf.time(static_cast<std::int64_t>(v));
                }
                if (!whole && !lacks) time = cf.time(packing.decoded(static_cast<double>(v)));
                store_number(to, i, lacks ? missing_integer : datetime_count(time, cf, unit));  // the former is NaT
            });
        };
    });
}

// ---- sources

/// The attributes without those that are applied, which are kept with the dtype.
Value encoded_attributes(const Meaning& meaning, const DType& stored, bool dates) {
    Value left = meaning.attributes;
    Value kept = Value::object();
    kept.set("dtype", stored.str());
    for (const std::string_view name : cf_attributes) {
        const Value* value = meaning.attributes.find(name);
        if (value == nullptr || (!dates && (name == "units" || name == "calendar"))) continue;
        kept.set(name, *value);
        left.erase(name);
    }
    left.set(cf_encoding_attribute, std::move(kept));
    return left;
}

/// Those of a decoded array that is not encoded again.
Value plain_attributes(const Meaning& meaning, bool dates) {
    Value left = meaning.attributes;
    erase_code_attributes(left);
    if (dates) {
        left.erase("units");
        left.erase("calendar");
    } else if (meaning.marks_missing()) {
        left.set(fill_attribute, missing_integer);
    } else if (!meaning.missing.empty()) {
        left.set(fill_attribute, std::numeric_limits<double>::quiet_NaN());
    }
    return left;
}

std::unique_ptr<ArraySource> by_meaning(std::unique_ptr<ArraySource> array, const Meaning& meaning, bool dates,
                                        Value attributes) {
    if (!dates) {
        const bool marks = meaning.marks_missing();
        return std::make_unique<ConvertedSource>(std::move(array), meaning.decoded(), std::move(attributes),
                                                 conversion(meaning), 0, marks);
    }
    const TimeUnit unit = datetime_unit(*meaning.time, counts_whole(meaning));
    return std::make_unique<ConvertedSource>(std::move(array), DType::time(Kind::datetime, unit), std::move(attributes),
                                             dating(meaning, unit));
}

/// How near to GDAL's nodata an element is missing, which a TIFF gave, if that is what the attributes mark.
double nodata_tolerance(const Meaning& meaning) {
    const Value* const tags = meaning.attributes.find("tiff");
    const Value* const text = tags != nullptr && tags->is_object() ? tags->find("GDAL_NODATA") : nullptr;
    if (text == nullptr || !text->is_string() || meaning.missing.size() != 1) return 0;
    const auto nodata = parse_nodata(text->as_string(), meaning.stored);
    return nodata && nodata->element == meaning.missing.front() ? nodata->tolerance : 0;
}

}  // namespace

std::vector<ElementBytes> missing_elements(const Value& given, const DType& dtype) {
    Value attributes = given;
    fill_attribute_as_number(dtype, attributes);
    std::vector<ElementBytes> missing;
    for (const std::string_view name : {cf_attributes[0], cf_attributes[1]}) {
        const Value* value = attributes.find(name);
        if (value == nullptr) continue;
        for (const Value& one : value->is_array() ? value->as_array() : Value::Array{*value}) {
            try {
                ElementBytes element = element_from_value(dtype, one, Assign::exact);
                if (std::ranges::count(missing, element) == 0) missing.push_back(std::move(element));
            } catch (const Error&) {
                continue;  // no element has this value
            }
        }
    }
    return missing;
}

void erase_code_attributes(Value& attributes) {
    for (const std::string_view name : cf_attributes) {
        if (name != "units" && name != "calendar") attributes.erase(name);
    }
    for (const std::string_view name : of_codes) attributes.erase(name);
}

DType Meaning::decoded() const {
    if (packing.scaled) return DType::of<double>();
    if (missing.empty() || !is_integral(stored)) return stored;
    if (stored.size() == 8) return DType::of<std::int64_t>();
    return stored.size() <= 2 ? DType::of<float>() : DType::of<double>();
}

bool Meaning::marks_missing() const {
    return is_integral(stored) && stored.size() == 8 && !packing.scaled && !missing.empty();
}

bool Meaning::has_datetimes() const {
    return time && (time->calendar == Calendar::standard || time->calendar == Calendar::proleptic_gregorian);
}

bool Meaning::is_encoded(const DType& dtype) const {
    return packing.scaled || !missing.empty() || !(stored == native_dtype(dtype));
}

Meaning meaning_by(const DType& dtype, Value attributes) {
    Meaning meaning{.stored = dtype, .held = dtype, .attributes = std::move(attributes)};
    const bool real = dtype.kind() == Kind::real || dtype.kind() == Kind::bfloat16;
    if (!real && !is_integral(dtype)) return meaning;
    meaning.units = text_attribute(meaning.attributes, "units");
    meaning.time = parse_cf_time(meaning.units, text_attribute(meaning.attributes, "calendar"));
    meaning.packing = packing_of(meaning.attributes).value_or(Packing());
    meaning.stored = with_sign(dtype, meaning.attributes);
    meaning.missing = missing_elements(meaning.attributes, meaning.stored);
    if (const Value* const fill = meaning.attributes.find(fill_attribute);
        fill != nullptr && !(meaning.stored == dtype)) {
        // _FillValue is an element as stored, missing_value is compared with the sign that is meant.
        Value alone = Value::object();
        alone.set(fill_attribute, *fill);
        for (ElementBytes& more : missing_elements(alone, dtype)) {
            if (std::ranges::count(meaning.missing, more) == 0) meaning.missing.push_back(std::move(more));
        }
    }
    if (real) meaning.tolerance = nodata_tolerance(meaning);
    if (real) {  // which needs no mark for NaN
        std::erase_if(meaning.missing, [&](const ElementBytes& one) {
            double number = 0;
            to_doubles(meaning.stored)(one.data(), 1, &number);
            meaning.marks_nan = meaning.marks_nan || number != number;
            return number != number;
        });
    }
    return meaning;
}

namespace {

/// What is not decoded though it looks as if it could be; empty: nothing.
std::string what_stays(const Meaning& meaning, const std::string& name) {
    if (meaning.time && !meaning.has_datetimes()) {
        return fmt::format("{}: times of the calendar {} stay numbers, because datetime64 does not have it", name,
                           calendar_name(meaning.time->calendar));
    }
    if (!meaning.time && meaning.units.find(" since ") != std::string::npos) {
        const std::string calendar = text_attribute(meaning.attributes, "calendar");
        return fmt::format(
            "{}: times in '{}'{} stay numbers: the unit has no fixed length (days, hours, minutes and seconds have, "
            "months only in 360_day, common_years only in noleap), or the date or the calendar is none of CF's",
            name, meaning.units, calendar.empty() ? "" : fmt::format(" of the calendar '{}'", calendar));
    }
    for (const char* const key : {"scale_factor", "add_offset"}) {
        if (!text_attribute(meaning.attributes, key).empty()) {
            return fmt::format("{}: its attribute {} is text and no number, and is not applied", name, key);
        }
    }
    return {};
}

}  // namespace

Meaning meaning_of(const ArraySource& source) {
    const DType dtype = native_dtype(source.info().dtype);
    const bool counts = is_number(dtype) && dtype.kind() != Kind::complex && dtype.kind() != Kind::boolean;
    Meaning meaning = meaning_by(dtype, counts ? attributes_of(source) : source.attribute_values());
    meaning.why = what_stays(meaning, source.name());
    return meaning;
}

Value attributes_of_result(const ArraySource& of, const ArrayInfo& result, const ResultMeaning& meaning,
                           const std::vector<int>& axes) {
    Value attributes = of.attribute_values();
    const bool marked = of.converted_from() != nullptr && attributes.find(fill_attribute) != nullptr;
    erase_code_attributes(attributes);
    if (marked && result.marks_missing) attributes.set(fill_attribute, missing_integer);
    if (marked && result.dtype.kind() == Kind::real) {
        attributes.set(fill_attribute, std::numeric_limits<double>::quiet_NaN());
    }
    std::string units = text_attribute(attributes, "units");
    const std::size_t since = units.find(" since ");
    if (since != std::string::npos && meaning.units != UnitsKept::all) units = units.substr(0, since);
    if (meaning.units != UnitsKept::all) {
        attributes.erase("calendar");
        attributes.erase("units");
    }
    if (meaning.units == UnitsKept::squared && !units.empty()) units = fmt::format("({})2", units);
    if (meaning.units != UnitsKept::all && meaning.units != UnitsKept::none && !units.empty()) {
        attributes.set("units", units);
    }
    const DimensionNames names = dimension_names_of(of);
    std::string method;
    for (const int axis : axes) {
        const auto d = static_cast<std::size_t>(axis);
        if (d < names.size() && names[d]) method += fmt::format("{}: ", *names[d]);
    }
    if (!meaning.method.empty() && !method.empty()) {
        const std::string before = text_attribute(attributes, "cell_methods");
        attributes.set("cell_methods",
                       fmt::format("{}{}{}{}", before, before.empty() ? "" : " ", method, meaning.method));
    }
    return attributes;
}

std::unique_ptr<ArraySource> decode_cf(std::unique_ptr<ArraySource> array, std::string* why) {
    const DType stored = native_dtype(array->info().dtype);
    const Meaning meaning = meaning_of(*array);
    if (why != nullptr) *why = meaning.why;
    const bool dates = meaning.has_datetimes();
    if (!dates && (meaning.time || meaning.marks_missing() || !meaning.is_encoded(stored))) return array;
    return by_meaning(std::move(array), meaning, dates, encoded_attributes(meaning, stored, dates));
}

std::unique_ptr<ArraySource> decoded_source(std::unique_ptr<ArraySource> array, Times times) {
    const Meaning meaning = meaning_of(*array);
    const bool dates = times == Times::dates && meaning.has_datetimes();
    if (!dates && !meaning.is_encoded(array->info().dtype)) return array;
    return by_meaning(std::move(array), meaning, dates, plain_attributes(meaning, dates));
}

std::unique_ptr<ArraySource> moments_source(std::unique_ptr<ArraySource> array, Calendar into) {
    Meaning meaning = meaning_of(*array);
    if (meaning.time->calendar == into) meaning.time->calendar = Calendar::proleptic_gregorian;
    return by_meaning(std::move(array), meaning, true, plain_attributes(meaning, true));
}

std::unique_ptr<ArraySource> marks_as_nan(std::unique_ptr<ArraySource> array, bool lossy) {
    if (!array->info().marks_missing) return array;
    Value attributes = array->attribute_values();
    attributes.set(fill_attribute, std::numeric_limits<double>::quiet_NaN());
    auto convert = [lossy](const std::byte* from, std::byte* to, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) {
            const auto v = load_number<std::int64_t>(from, i);
            const auto number = static_cast<double>(v);
            constexpr double beyond = 9223372036854775808.0;
            if (!lossy && v != missing_integer && (number == beyond || static_cast<std::int64_t>(number) != v)) {
                throw invalid_argument("the integer {} loses digits as a float, which missing elements beside it need",
                                       v)
                    .advising(Action::dtype, "takes it", "f8");
            }
            store_number(to, i, v == missing_integer ? std::numeric_limits<double>::quiet_NaN() : number);
        }
    };
    return std::make_unique<ConvertedSource>(std::move(array), DType::of<double>(), std::move(attributes),
                                             std::move(convert));
}

std::unique_ptr<ArraySource> coarsened_as_stored(std::unique_ptr<ArraySource> array, const Shape& by, Coarsening with,
                                                 bool skip_missing) {
    const Meaning meaning = meaning_of(*array);
    if (with == Coarsening::nearest || !meaning.is_encoded(array->info().dtype)) {
        return coarsen_source(std::move(array), by, with, skip_missing);
    }
    const Value codes = array->attribute_values();
    auto values = coarsen_source(decoded_source(std::move(array)), by, with, skip_missing);
    Value attributes = values->attribute_values();
    attributes.erase(fill_attribute);
    for (const std::string_view name : cf_attributes) {
        if (const Value* value = codes.find(name)) attributes.set(name, *value);
    }
    return encoded_source(std::move(values), meaning, std::move(attributes));
}

std::unique_ptr<ArraySource> decoded(std::unique_ptr<ArraySource> array) {
    return decoded_source(std::move(array), Times::dates);
}

std::optional<std::string> DecodedElements::date(std::int64_t i) const {
    if (!time) return std::nullopt;
    double count = 0;
    to_doubles(values.dtype())(values.bytes().data() + i * values.dtype().size(), 1, &count);
    const auto moment = time->time(count);
    return moment ? std::optional(time_text(time->calendar, *moment)) : std::nullopt;
}

namespace {

NDArray in_host_order(NDArray codes) {
    const DType native = native_dtype(codes.dtype());
    if (codes.dtype() == native) return codes;
    NDArray elements(native, codes.shape());
    CastSource(view_source(codes.view(), ""), native, Cast::safe)
        .read_into(Region::whole(codes.shape()), elements.view(), {});
    return elements;
}

/// In host order. `nan`: whether NaN is among the missing ones.
std::vector<bool> missing_among(const Meaning& meaning, const NDArray& codes, bool nan) {
    std::vector<bool> missing(static_cast<std::size_t>(codes.count()));
    const auto find = by_type(meaning, [&](auto kind, auto markers) -> ConvertedSource::Convert {
        using T = decltype(kind);
        return [&missing, markers, nan](const std::byte* from, std::byte* /*to*/, std::int64_t n) {
            each_element<T>(markers, from, n, [&](std::int64_t i, auto v, bool lacks) {
                missing[static_cast<std::size_t>(i)] = lacks && (v == v || nan);
            });
        };
    });
    find(codes.bytes().data(), nullptr, codes.count());
    return missing;
}

}  // namespace

DecodedElements decoded_elements(const Meaning& meaning, NDArray codes) {
    const DType native = native_dtype(codes.dtype());
    if (!meaning.says_more(native)) return {std::move(codes), {}};
    NDArray elements = in_host_order(std::move(codes));
    std::vector<bool> missing;
    if (!meaning.missing.empty() || meaning.marks_nan) missing = missing_among(meaning, elements, meaning.marks_nan);
    const bool dates = meaning.has_datetimes();
    DecodedElements made{std::move(elements), std::move(missing), dates ? std::nullopt : meaning.time};
    if (dates || meaning.is_encoded(native)) {
        const auto source = by_meaning(view_source(made.values.view(), ""), meaning, dates, Value::object());
        NDArray values(source->info().dtype, made.values.shape());
        source->read_into(Region::whole(values.shape()), values.view(), {});
        made.values = std::move(values);
    }
    return made;
}

DType decoded_dtype(const Meaning& meaning) {
    return meaning.has_datetimes() ? DType::time(Kind::datetime, datetime_unit(*meaning.time, counts_whole(meaning)))
                                   : meaning.decoded();
}

bool several_codes(const Meaning& meaning) {
    const bool real = meaning.stored.kind() == Kind::real;
    if (meaning.packing.scaled && (real || meaning.stored.size() == 8)) return true;
    return !meaning.missing.empty() && (real || meaning.missing.size() > 1);
}

void keep_codes(const Meaning& meaning, NDArray present, NDArray& codes) {
    const NDArray there = in_host_order(std::move(present));
    const std::vector<bool> was = missing_among(meaning, there, true);
    const std::vector<bool> becomes = missing_among(meaning, codes, true);
    const auto number = to_doubles(meaning.stored);
    const std::int64_t size = meaning.stored.size();
    const auto value = [&](const NDArray& of, std::int64_t at) {
        double code = 0;
        number(of.bytes().data() + at, 1, &code);
        return meaning.packing.decoded(code);
    };
    const auto are_one = [&](std::int64_t at) {
        const double a = value(there, at), b = value(codes, at);
        constexpr double digits = 4 * std::numeric_limits<double>::epsilon();  // packing it again rounds
        return std::abs(a - b) <= digits * std::max({std::abs(a), std::abs(b), std::abs(meaning.packing.offset)});
    };
    for (std::size_t i = 0; i < was.size(); ++i) {
        const std::int64_t at = static_cast<std::int64_t>(i) * size;
        const bool same = was[i] ? becomes[i] : !becomes[i] && meaning.packing.scaled && are_one(at);
        if (same) std::copy_n(there.bytes().data() + at, size, codes.bytes().data() + at);
    }
}

ElementBytes code_from_text(const Meaning& meaning, std::string_view text) {
    constexpr std::array<std::string_view, 5> none{"null", "--", "NaN", "nan", "NaT"};
    const bool lacks = std::ranges::count(none, text) > 0;
    const bool number = text.find_first_not_of("+-.0123456789eE") == std::string_view::npos &&
                        text.find('-', 1) == std::string_view::npos;
    if (meaning.time && number && !lacks) {
        throw invalid_argument("expected a time such as {}, found {}: its count is a stored code (raw)",
                               time_text(meaning.time->calendar, meaning.time->start), text);
    }
    DType dtype = decoded_dtype(meaning);
    const bool counts = meaning.time && !meaning.has_datetimes();
    // Floats as doubles, so that they are rounded once.
    if (lacks || counts || (is_integral(meaning.stored) && dtype.kind() == Kind::real)) dtype = DType::of<double>();
    NDArray value(dtype, {1});
    if (counts && !lacks) {
        const Int128 distance = parse_period(text, meaning.time->calendar).first - meaning.time->start;
        store_number(
            value.bytes().data(), 0,
            static_cast<double>(static_cast<long double>(distance) / static_cast<long double>(meaning.time->unit)));
    } else {
        const ElementBytes parsed = element_from_text(dtype, lacks ? "NaN" : text);
        std::copy(parsed.begin(), parsed.end(), value.bytes().data());
    }
    const auto code = encoded_source(view_source(value.view(), "the value"), meaning, Value::object());
    NDArray made(code->info().dtype, {1});
    code->read_into(Region::whole(made.shape()), made.view(), {});
    return {made.bytes().begin(), made.bytes().end()};
}

std::unique_ptr<ArraySource> text_source(std::unique_ptr<ArraySource> array) {
    const Meaning meaning = meaning_of(*array);
    const DType native = native_dtype(array->info().dtype);
    if (!meaning.says_more(native)) return array;
    constexpr std::size_t longest = 40;
    const auto convert_some = [meaning, native](const std::byte* from, std::byte* to, std::int64_t n) {
        NDArray codes(native, {n});
        std::copy_n(from, n * native.size(), codes.bytes().data());
        const DecodedElements found = decoded_elements(meaning, std::move(codes));
        const DType& dtype = found.values.dtype();
        std::fill_n(to, static_cast<std::size_t>(n) * longest * 4, std::byte{});
        for (std::int64_t i = 0; i < n; ++i) {
            if (found.lacks(i)) continue;
            const std::byte* const element = found.values.bytes().data() + i * dtype.size();
            const std::string text = found.date(i).value_or(element_to_text(dtype, element)).substr(0, longest);
            for (std::size_t k = 0; k < text.size(); ++k) {
                store_number(to + static_cast<std::size_t>(i) * longest * 4, static_cast<std::int64_t>(k),
                             static_cast<std::uint32_t>(static_cast<unsigned char>(text[k])));
            }
        }
    };
    auto convert = [convert_some, size = native.size()](const std::byte* from, std::byte* to, std::int64_t n) {
        constexpr std::int64_t most = 1024;  // at once, which bounds the memory
        for (std::int64_t i = 0; i < n; i += most) {
            convert_some(from + i * size, to + i * static_cast<std::int64_t>(longest) * 4, std::min(most, n - i));
        }
    };
    return std::make_unique<ConvertedSource>(std::move(array), DType::parse(fmt::format("U{}", longest)),
                                             Value::object(), std::move(convert));
}

}  // namespace tessera
