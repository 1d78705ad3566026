#include <tessera/conventions.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/array.h>
#include <tessera/calendar.h>
#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/dimensions.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/packing.h>
#include <tessera/slices.h>

#include "converted_source.h"
#include "fill_attribute.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 7> cf_attributes{"_FillValue", "missing_value", "scale_factor", "add_offset",
                                                        "units",      "calendar",      "_Unsigned"};

/// The attributes with the names of the dimensions, and in Zarr v2 the fill, which is the missing value there.
Value attributes_of(const ArraySource& source) {
    Value values = source.attribute_values();
    const DimensionNames names = dimension_names_of(source);
    if (!names.empty()) values.set(dimensions_attribute, dimension_names_json(names));
    if (const auto* array = as_array(source)) {
        const ArrayMetadata m = array->metadata();
        const bool missing = array->dialect().fill_is_missing && m.fill.bytes && is_number(m.dtype);
        if (missing && values.find(fill_attribute) == nullptr) {
            values.set(fill_attribute, element_to_value(m.dtype, m.fill.bytes->data()));
        }
    }
    values.erase(null_fill_attribute);
    return values;
}

std::string text_in(const Value& attributes, std::string_view name) {
    const Value* value = attributes.find(name);
    return value != nullptr && value->is_string() ? value->as_string() : std::string();
}

bool is_integral(const DType& dtype) {
    return dtype.kind() == Kind::integer || dtype.kind() == Kind::unsigned_integer;
}

template <class T, class Each>
void each_packed(const std::vector<ElementBytes>& missing, const std::byte* from, std::int64_t n, const Each& each) {
    std::vector<T> lacking;
    for (const ElementBytes& one : missing) lacking.push_back(load_number<T>(one.data(), 0));
    for (std::int64_t i = 0; i < n; ++i) {
        const T v = load_number<T>(from, i);
        if constexpr (std::is_integral_v<T>) {
            each(i, v, std::ranges::find(lacking, v) != lacking.end());
        } else {
            const auto number = static_cast<double>(up(v));
            bool lacks = number != number;
            for (const T& one : lacking) lacks = lacks || static_cast<double>(up(one)) == number;
            each(i, number, lacks);
        }
    }
}

/// Calls each(index, number, whether it is missing) for elements in host order.
template <class Each>
void for_each_packed(const DType& dtype, const std::vector<ElementBytes>& missing, const std::byte* from,
                     std::int64_t n, const Each& each) {
    with_part(dtype, [&](auto kind) {
        using T = decltype(kind);
        if constexpr (std::is_same_v<T, Boolean>) {
            not_computed_with(dtype);
        } else {
            each_packed<T>(missing, from, n, each);
        }
    });
}

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

/// The attributes without those that are applied, which are kept with the dtype.
Value decoded_attributes(const Value& attributes, const DType& dtype, bool is_time) {
    Value left = attributes;
    Value kept = Value::object();
    kept.set("dtype", dtype.str());
    for (const std::string_view name : cf_attributes) {
        const Value* value = attributes.find(name);
        if (value == nullptr || (!is_time && (name == "units" || name == "calendar"))) continue;
        kept.set(name, *value);
        left.erase(name);
    }
    left.set(cf_encoding_attribute, std::move(kept));
    return left;
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

std::unique_ptr<ArraySource> decode_times(std::unique_ptr<ArraySource> array, const Value& attributes,
                                          const CfTime& cf) {
    const DType dtype = native_dtype(array->info().dtype);
    const Packing packing = packing_of(attributes).value_or(Packing());
    const bool whole = is_integral(dtype) && packing.scale == 1 && packing.offset == 0;
    const TimeUnit unit = datetime_unit(cf, whole);
    const auto missing = missing_elements(attributes, dtype);
    auto convert = [=](const std::byte* from, std::byte* to, std::int64_t n) {
        for_each_packed(dtype, missing, from, n, [&](std::int64_t i, auto v, bool lacks) {
            std::int64_t count = std::numeric_limits<std::int64_t>::min();
            if (!lacks) {
                using Number = decltype(v);
                std::optional<Int128> time;
                if constexpr (std::is_integral_v<Number>) {
                    const bool fits = !std::is_unsigned_v<Number> || static_cast<std::uint64_t>(v) <= INT64_MAX;
                    if (whole && fits) time = cf.time(static_cast<std::int64_t>(v));
                }
                if (!whole) time = cf.time(packing.decoded(static_cast<double>(v)));
                count = datetime_count(time, cf, unit);
            }
            store_number(to, i, count);
        });
    };
    return std::make_unique<ConvertedSource>(std::move(array), DType::time(Kind::datetime, unit),
                                             decoded_attributes(attributes, dtype, true), std::move(convert));
}

template <class Real>
ConvertedSource::Convert unpacking(const DType& dtype, const std::vector<ElementBytes>& missing, double scale,
                                   double offset) {
    return [=](const std::byte* from, std::byte* to, std::int64_t n) {
        for_each_packed(dtype, missing, from, n, [&](std::int64_t i, auto v, bool lacks) {
            Real made = static_cast<Real>(v);
            if (scale != 1) made = made * static_cast<Real>(scale);
            if (offset != 0) made = made + static_cast<Real>(offset);
            store_number(to, i, lacks ? std::numeric_limits<Real>::quiet_NaN() : made);
        });
    };
}

// ---- encoding

/// What a decoded array was.
struct CfEncoding {
    DType dtype;
    Value attributes;  ///< those that come back
    std::optional<ElementBytes> fill = std::nullopt;
    double scale = 1, offset = 0;
    std::optional<CfTime> time = std::nullopt;
};

CfEncoding encoding_of(const Value& kept, const std::string& name) {
    const std::string dtype = text_in(kept, "dtype");
    CfEncoding encoding{
        .dtype = in_context([&] { return name + ": cf_encoding"; }, [&] { return DType::parse(dtype); }),
        .attributes = kept};
    if (!is_number(encoding.dtype) || encoding.dtype.kind() == Kind::complex) {
        throw invalid_argument("{}: cf_encoding: expected a dtype of numbers, found '{}'", name, dtype);
    }
    encoding.attributes.erase("dtype");
    const auto missing = missing_elements(kept, native_dtype(encoding.dtype));
    if (!missing.empty()) encoding.fill = missing.front();
    const Packing packing = packing_of(kept).value_or(Packing());
    encoding.scale = packing.scale;
    encoding.offset = packing.offset;
    if (encoding.scale == 0) throw invalid_argument("{}: cf_encoding: a scale_factor of 0 keeps nothing", name);
    encoding.time = parse_cf_time(text_in(kept, "units"), text_in(kept, "calendar"));
    return encoding;
}

/// Of a datetime without one: a count of its own unit since 1970.
CfEncoding plain_encoding(TimeUnit unit, const std::string& name) {
    using Base = TimeUnit::Base;
    const char* word = unit.base == Base::h    ? "hours"
                       : unit.base == Base::m  ? "minutes"
                       : unit.base == Base::s  ? "seconds"
                       : unit.base == Base::ms ? "milliseconds"
                       : unit.base == Base::us ? "microseconds"
                       : unit.base == Base::ns ? "nanoseconds"
                                               : "days";
    if (unit.base == Base::generic || unit.base > Base::ns) {
        throw unsupported("{}: the CF conventions have no unit for these times; convert them to datetime64[ns]", name);
    }
    Value attributes = Value::object();
    attributes.set("units", fmt::format("{} since 1970-01-01", word));
    attributes.set("calendar", "proleptic_gregorian");
    return {.dtype = DType::of<std::int64_t>(),
            .attributes = std::move(attributes),
            .time = parse_cf_time(fmt::format("{} since 1970-01-01", word), "proleptic_gregorian")};
}

/// Stores a number that stands for an element, or throws.
void store_encoded(const CfEncoding& encoding, const DType& native, std::byte* to, std::int64_t i,
                   const std::optional<double>& number) {
    std::byte* const at = to + i * native.size();
    if (!number) {
        const bool real = native.kind() == Kind::real || native.kind() == Kind::bfloat16;
        if (!encoding.fill && !real) {
            throw invalid_argument("a missing element needs a _FillValue in cf_encoding, because {} has no NaN",
                                   native.to_string());
        }
        const double nan = std::numeric_limits<double>::quiet_NaN();
        if (encoding.fill) {
            std::copy(encoding.fill->begin(), encoding.fill->end(), at);
        } else {
            (void)cast_packed(DType::of<double>(), reinterpret_cast<const std::byte*>(&nan), native, at, 1,
                              Cast::unsafe);
        }
        return;
    }
    if (cast_packed(DType::of<double>(), reinterpret_cast<const std::byte*>(&*number), native, at, 1, Cast::round)) {
        throw invalid_argument("the value {} is {} when it is packed, which {} does not hold",
                               *number * encoding.scale + encoding.offset, *number, native.to_string());
    }
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
                missing.push_back(element_from_value(dtype, one, Assign::exact));
            } catch (const Error&) {
                continue;  // no element has this value
            }
        }
    }
    return missing;
}

std::unique_ptr<ArraySource> decode_cf(std::unique_ptr<ArraySource> array, std::string* why) {
    const DType dtype = native_dtype(array->info().dtype);
    if (!is_number(dtype) || dtype.kind() == Kind::complex || dtype.kind() == Kind::boolean) return array;
    const Value attributes = attributes_of(*array);
    const std::string calendar = text_in(attributes, "calendar");
    if (const auto cf = parse_cf_time(text_in(attributes, "units"), calendar)) {
        if (cf->calendar == Calendar::standard || cf->calendar == Calendar::proleptic_gregorian) {
            return decode_times(std::move(array), attributes, *cf);
        }
        if (why != nullptr) {
            *why = fmt::format("{}: times of the calendar {} stay numbers, because datetime64 does not have it",
                               array->name(), calendar_name(cf->calendar));
        }
        return array;
    }
    const Packing packing = packing_of(attributes).value_or(Packing());
    const auto missing = missing_elements(attributes, dtype);
    if (!packing.scaled && missing.empty()) return array;
    const bool real = !is_integral(dtype);
    const bool offset = attributes.find("add_offset") != nullptr;
    const bool small = (real && dtype.size() <= 4) || (!real && dtype.size() <= 2 && (!offset || !missing.empty()));
    auto convert = small ? unpacking<float>(dtype, missing, packing.scale, packing.offset)
                         : unpacking<double>(dtype, missing, packing.scale, packing.offset);
    return std::make_unique<ConvertedSource>(std::move(array), small ? DType::of<float>() : DType::of<double>(),
                                             decoded_attributes(attributes, dtype, false), std::move(convert));
}

std::unique_ptr<ArraySource> encode_cf(std::unique_ptr<ArraySource> array) {
    const DType dtype = native_dtype(array->info().dtype);
    Value attributes = attributes_of(*array);
    const Value* kept = attributes.find(cf_encoding_attribute);
    const bool times = dtype.kind() == Kind::datetime;
    if (!times && (kept == nullptr || !kept->is_object() || !is_number(dtype))) return array;
    const CfEncoding encoding = kept != nullptr && kept->is_object() ? encoding_of(*kept, array->name())
                                                                     : plain_encoding(dtype.time_unit(), array->name());
    if (times && !encoding.time) {
        throw invalid_argument("{}: cf_encoding: datetimes need units such as 'days since 1970-01-01'", array->name());
    }
    attributes.erase(cf_encoding_attribute);
    attributes.erase(fill_attribute);  // of the decoded array
    for (const auto& [name, value] : encoding.attributes.as_object()) attributes.set(name, value);
    const DType native = native_dtype(encoding.dtype);
    ConvertedSource::Convert convert;
    if (times) {
        const TimeUnit unit = dtype.time_unit();
        const bool whole = is_integral(native) && encoding.scale == 1 && encoding.offset == 0;
        convert = [=](const std::byte* from, std::byte* to, std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i) {
                const auto time = time_of_datetime(load_number<std::int64_t>(from, i), unit);
                if (!time) {
                    store_encoded(encoding, native, to, i, std::nullopt);
                    continue;
                }
                const Int128 distance = *time - encoding.time->start;
                if (whole && distance % encoding.time->unit == 0 &&
                    native.size() == 8) {  // exactly, beyond what doubles hold
                    const Int128 count = distance / encoding.time->unit;
                    if (count >= INT64_MIN && count <= INT64_MAX && (count >= 0 || native.kind() == Kind::integer)) {
                        store_number(to, i, static_cast<std::int64_t>(count));
                        continue;
                    }
                }
                if (whole && distance % encoding.time->unit != 0) {
                    throw invalid_argument("the time {} lies between two counts of '{}'",
                                           time_text(Calendar::proleptic_gregorian, *time),
                                           text_in(encoding.attributes, "units"));
                }
                const auto count = static_cast<double>(static_cast<long double>(distance) /
                                                       static_cast<long double>(encoding.time->unit));
                store_encoded(encoding, native, to, i, (count - encoding.offset) / encoding.scale);
            }
        };
    } else {
        convert = [=](const std::byte* from, std::byte* to, std::int64_t n) {
            for_each_packed(dtype, {}, from, n, [&](std::int64_t i, auto v, bool lacks) {
                const double number = (static_cast<double>(v) - encoding.offset) / encoding.scale;
                store_encoded(encoding, native, to, i, lacks ? std::nullopt : std::optional(number));
            });
        };
    }
    return std::make_unique<ConvertedSource>(std::move(array), native, std::move(attributes), std::move(convert));
}

}  // namespace tessera
