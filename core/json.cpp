#include <tessera/json.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include <tessera/element.h>
#include <tessera/unicode.h>
#include "time_units.h"

namespace tessera {

namespace {

using Base = TimeUnit::Base;

std::int64_t host_count(const DType& dtype, const std::byte* p) {
    return element_to_value(dtype, p).as_int64();
}

Value sub_array_json(const DType& dtype, std::span<const std::int64_t> shape, const std::byte* p) {
    if (shape.empty()) return element_to_json(dtype, p);
    const auto rest = shape.subspan(1);
    const std::int64_t stride = byte_count(Shape(rest), dtype.size());
    Value list = Value::array();
    for (std::int64_t i = 0; i < shape.front(); ++i) list.push_back(sub_array_json(dtype, rest, p + i * stride));
    return list;
}

// Doubles hold every whole number up to here.
constexpr double exact_limit = 9007199254740992.0;

/// The units below the second, each a thousandth of the one before.
constexpr Base small_units[] = {Base::s, Base::ms, Base::us, Base::ns, Base::ps, Base::fs, Base::as};

/// Seconds in a unit of fixed length from the week to the second.
double seconds_in(Base base) {
    switch (base) {
        case Base::W:
            return 604800;
        case Base::D:
            return 86400;
        case Base::h:
            return 3600;
        case Base::m:
            return 60;
        default:
            return 1;
    }
}

/// Seconds from 1970 to the beginning of a month, counted from January 1970.
double month_start(std::int64_t month) {
    const std::int64_t year = month >= 0 ? month / 12 : -((11 - month) / 12);
    const auto in_year = static_cast<unsigned>(month - year * 12);
    const std::chrono::sys_days day =
        std::chrono::year(static_cast<int>(1970 + year)) / std::chrono::month(in_year + 1) / 1;
    return static_cast<double>(day.time_since_epoch().count()) * 86400;
}

/// `count` units of one of small_units as text, in the finest unit up to `finest` whose counts are exact doubles.
std::string small_text(double count, std::size_t unit, std::size_t finest) {
    while (unit < finest && std::abs(count) * 1000 < exact_limit) {
        count *= 1000;
        ++unit;
    }
    while (unit > 0 && std::abs(count) >= exact_limit) {
        count /= 1000;
        --unit;
    }
    return format_datetime(std::llround(count), {small_units[unit], 1});
}

}  // namespace

bool is_utf8(std::string_view text) {
    return count_utf8(text).has_value();
}

Value standard_json(Value value) {
    if (value.is_double()) {
        const double v = value.as_double();
        if (std::isnan(v)) return "NaN";
        if (std::isinf(v)) return v < 0 ? "-Infinity" : "Infinity";
    } else if (value.is_array()) {
        for (Value& item : value.as_array()) item = standard_json(std::move(item));
    } else if (value.is_object()) {
        Value::Object members = value.as_object();
        for (auto& [name, member] : members) member = standard_json(std::move(member));
        return members;
    }
    return value;
}

Value element_to_json(const DType& dtype, const std::byte* p) {
    switch (dtype.kind()) {
        case Kind::structure: {
            Value list = Value::array();
            for (const Field& f : dtype.fields()) list.push_back(sub_array_json(f.dtype, f.shape, p + f.offset));
            return list;
        }
        case Kind::datetime:
        case Kind::timedelta: {
            const std::int64_t count = host_count(dtype, p);
            if (count == not_a_time) return "NaT";
            const bool date = dtype.kind() == Kind::datetime && dtype.time_unit().base != Base::generic;
            return date ? Value(format_datetime(count, dtype.time_unit())) : Value(count);
        }
        default:
            return standard_json(element_to_value(dtype, p));
    }
}

std::optional<std::string> mean_date_text(const DType& dtype, double mean) {
    const TimeUnit unit = dtype.time_unit();
    if (dtype.kind() != Kind::datetime || unit.base == Base::generic || !std::isfinite(mean)) return std::nullopt;
    double count = mean * unit.multiple;
    if (unit.base == Base::Y || unit.base == Base::M) {
        const std::int64_t months = unit.base == Base::Y ? 12 : 1;
        // The calendar of <chrono> ends in the year 32767.
        if (std::abs(count) * static_cast<double>(months) > 300'000) return format_datetime(std::llround(mean), unit);
        const double whole = std::floor(count);
        const double begin = month_start(static_cast<std::int64_t>(whole) * months);
        const double end = month_start((static_cast<std::int64_t>(whole) + 1) * months);
        return small_text(begin + (count - whole) * (end - begin), 0, 0);
    }
    const auto* const small = std::ranges::find(small_units, unit.base);
    if (small == std::end(small_units)) {
        count *= seconds_in(unit.base);
        if (std::abs(count) >= exact_limit) return format_datetime(std::llround(mean), unit);
        return small_text(count, 0, 0);
    }
    const auto index = static_cast<std::size_t>(small - std::begin(small_units));
    return small_text(count, index, std::min(index + 1, std::size(small_units) - 1));
}

}  // namespace tessera
