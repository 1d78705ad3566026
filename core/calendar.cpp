#include <tessera/calendar.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <tessera/error_text.h>

#include "time_units.h"

namespace tessera {
namespace {

Int128 floor_quotient(Int128 a, Int128 b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

struct CalendarName {
    std::string_view name;
    Calendar calendar;
};
// The first name of each calendar is the one that is written.
constexpr std::array<CalendarName, 9> calendar_names{{{"standard", Calendar::standard},
                                                      {"gregorian", Calendar::standard},
                                                      {"proleptic_gregorian", Calendar::proleptic_gregorian},
                                                      {"julian", Calendar::julian},
                                                      {"noleap", Calendar::noleap},
                                                      {"365_day", Calendar::noleap},
                                                      {"all_leap", Calendar::all_leap},
                                                      {"366_day", Calendar::all_leap},
                                                      {"360_day", Calendar::days_360}}};

constexpr std::array<int, 13> days_before_month{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
constexpr Int128 gregorian_start = -141427;  // 1582-10-15

std::string lower_case(std::string_view text) {
    std::string lower(text);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return lower;
}

/// Days from a year's first of March, and the year that begins there: Howard Hinnant's algorithms, whose eras are 400
/// years of 146097 days; Julian ones are 4 years of 1461 days.
int from_march(const CalendarDate& date) {
    return (153 * (date.month + (date.month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1;
}
CalendarDate date_from_march(Int128 year, int day_of_year) {
    const int march = (5 * day_of_year + 2) / 153;
    const int month = march + (march < 10 ? 3 : -9);
    return {year + (month <= 2 ? 1 : 0), month, day_of_year - (153 * march + 2) / 5 + 1};
}

Int128 gregorian_days(const CalendarDate& date) {
    const Int128 year = date.year - (date.month <= 2 ? 1 : 0);
    const Int128 era = floor_quotient(year, 400);
    const Int128 year_of_era = year - era * 400;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + from_march(date) - 719468;
}
CalendarDate gregorian_date(Int128 days) {
    days += 719468;
    const Int128 era = floor_quotient(days, 146097);
    const auto day_of_era = static_cast<int>(days - era * 146097);
    const int year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    return date_from_march(era * 400 + year_of_era,
                           day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100));
}

Int128 julian_days(const CalendarDate& date) {
    const Int128 year = date.year - (date.month <= 2 ? 1 : 0);
    const Int128 era = floor_quotient(year, 4);
    return era * 1461 + (year - era * 4) * 365 + from_march(date) - 719470;
}
CalendarDate julian_date(Int128 days) {
    days += 719470;
    const Int128 era = floor_quotient(days, 1461);
    const auto day_of_era = static_cast<int>(days - era * 1461);
    const int year_of_era = (day_of_era - day_of_era / 1460) / 365;
    return date_from_march(era * 4 + year_of_era, day_of_era - 365 * year_of_era);
}

/// Days before a month of a year of 365 or 366 days.
int days_before(int month, bool leap) {
    return days_before_month[static_cast<std::size_t>(month - 1)] + (leap && month > 2 ? 1 : 0);
}
CalendarDate fixed_date(Int128 days, int length) {
    const Int128 year = floor_quotient(days, length);
    const auto day = static_cast<int>(days - year * length);
    int month = 12;
    while (days_before(month, length == 366) > day) --month;
    return {year + 1970, month, day - days_before(month, length == 366) + 1};
}

template <Calendar calendar>
int month_length(std::int64_t year, int month) {
    const CalendarDate next = month == 12 ? CalendarDate{Int128{year} + 1, 1, 1} : CalendarDate{year, month + 1, 1};
    return static_cast<int>(days_of(calendar, next) - days_of(calendar, {year, month, 1}));
}
// In October 1582, whose days 5 to 14 are missing, the last one is the 31st.
template <>
int month_length<Calendar::standard>(std::int64_t year, int month) {
    if (year == 1582 && month == 10) return 31;
    return year < 1582 || (year == 1582 && month < 10) ? month_length<Calendar::julian>(year, month)
                                                       : month_length<Calendar::proleptic_gregorian>(year, month);
}

using MonthLength = int (*)(std::int64_t, int);
MonthLength month_length_of(Calendar calendar) {
    switch (calendar) {
        case Calendar::standard:
            return month_length<Calendar::standard>;
        case Calendar::proleptic_gregorian:
            return month_length<Calendar::proleptic_gregorian>;
        case Calendar::julian:
            return month_length<Calendar::julian>;
        case Calendar::noleap:
            return month_length<Calendar::noleap>;
        case Calendar::all_leap:
            return month_length<Calendar::all_leap>;
        default:
            return month_length<Calendar::days_360>;
    }
}

Int128 start_of(Calendar calendar, const Moment& m) {
    return days_of(calendar, {m.year, m.month, m.day}) * attoseconds_of_day +
           Int128{m.second_of_day} * attoseconds_of_second + m.attoseconds;
}

struct CfUnit {
    std::string_view name;
    Int128 attoseconds;
};
constexpr CfUnit cf_units[] = {
    {"days", attoseconds_of_day},
    {"day", attoseconds_of_day},
    {"d", attoseconds_of_day},
    {"hours", 3600 * attoseconds_of_second},
    {"hour", 3600 * attoseconds_of_second},
    {"hrs", 3600 * attoseconds_of_second},
    {"hr", 3600 * attoseconds_of_second},
    {"h", 3600 * attoseconds_of_second},
    {"minutes", 60 * attoseconds_of_second},
    {"minute", 60 * attoseconds_of_second},
    {"mins", 60 * attoseconds_of_second},
    {"min", 60 * attoseconds_of_second},
    {"seconds", attoseconds_of_second},
    {"second", attoseconds_of_second},
    {"secs", attoseconds_of_second},
    {"sec", attoseconds_of_second},
    {"s", attoseconds_of_second},
    {"milliseconds", attoseconds_of_second / 1000},
    {"millisecond", attoseconds_of_second / 1000},
    {"msecs", attoseconds_of_second / 1000},
    {"msec", attoseconds_of_second / 1000},
    {"ms", attoseconds_of_second / 1000},
    {"microseconds", attoseconds_of_second / 1'000'000},
    {"microsecond", attoseconds_of_second / 1'000'000},
    {"us", attoseconds_of_second / 1'000'000},
    {"nanoseconds", attoseconds_of_second / 1'000'000'000},
    {"nanosecond", attoseconds_of_second / 1'000'000'000},
    {"ns", attoseconds_of_second / 1'000'000'000},
};

/// The moment after "since", which may lack zeros, seconds and more: "1-1-1 0:0:0", "2000-01-01T00:00:00Z".
class SinceParser {
public:
    explicit SinceParser(std::string_view text) : rest_(text) {}

    std::optional<Int128> parse(Calendar calendar) {
        blanks();
        const bool negative = accept('-');
        if (!negative) accept('+');
        std::int64_t year = number(9);
        if (negative) year = -year;
        std::int64_t month = 1;
        std::int64_t day = 1;
        if (accept('-')) month = number(2);
        if (accept('-')) day = number(2);
        if (failed_ || month < 1 || month > 12 || day < 1) return std::nullopt;
        if (day > month_length_of(calendar)(year, static_cast<int>(month))) return std::nullopt;
        Int128 time = days_of(calendar, {year, static_cast<int>(month), static_cast<int>(day)}) * attoseconds_of_day;
        if (!accept('T')) blanks();
        if (!rest_.empty() && is_digit_here()) time += clock(24) * attoseconds_of_second + fraction_;
        blanks();
        zone(time);
        blanks();
        return failed_ || !rest_.empty() ? std::nullopt : std::optional(time);
    }

private:
    [[nodiscard]] bool is_digit_here() const { return rest_.front() >= '0' && rest_.front() <= '9'; }
    void blanks() {
        while (accept(' ')) {
        }
    }
    bool accept(char c) {
        if (!rest_.starts_with(c)) return false;
        rest_.remove_prefix(1);
        return true;
    }
    std::int64_t number(std::size_t most) {
        std::int64_t n = 0;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
        const auto used = static_cast<std::size_t>(end - rest_.data());
        failed_ = failed_ || error != std::errc() || used > most || !is_digit_here();
        rest_.remove_prefix(used);
        return failed_ ? 0 : n;
    }
    /// "12", "12:30", "12:30:15.25": seconds.
    std::int64_t clock(std::int64_t hours) {
        const std::int64_t hour = number(2);
        std::int64_t minute = 0;
        std::int64_t second = 0;
        if (accept(':')) minute = number(2);
        if (accept(':')) second = number(2);
        if (accept('.')) {
            Int128 scale = attoseconds_of_second;
            while (!rest_.empty() && is_digit_here()) {
                scale /= 10;
                fraction_ += scale * (rest_.front() - '0');
                rest_.remove_prefix(1);
            }
        }
        failed_ = failed_ || hour > hours || minute > 59 || second > 59;
        return hour * 3600 + minute * 60 + second;
    }
    void zone(Int128& time) {
        for (const std::string_view utc : {"UTC", "GMT", "Z"}) {
            if (!rest_.starts_with(utc)) continue;
            rest_.remove_prefix(utc.size());
            return;
        }
        const bool east = accept('+');
        if (!east && !accept('-')) return;
        if (rest_.size() == 4 && rest_.find(':') == rest_.npos) {  // +0530
            const std::int64_t hour = number_of(rest_.substr(0, 2));
            const std::int64_t minute = number_of(rest_.substr(2));
            rest_ = {};
            time -= (east ? 1 : -1) * Int128{hour * 3600 + minute * 60} * attoseconds_of_second;
            return;
        }
        time -= (east ? 1 : -1) * Int128{clock(23)} * attoseconds_of_second;
    }
    std::int64_t number_of(std::string_view digits) {
        std::int64_t n = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
        failed_ = failed_ || error != std::errc() || end != digits.data() + digits.size() || n < 0;
        return n;
    }

    std::string_view rest_;
    Int128 fraction_ = 0;
    bool failed_ = false;
};

/// Attoseconds of NumPy's units from weeks down; 0 of the others.
Int128 attoseconds_of(TimeUnit::Base base) {
    using Base = TimeUnit::Base;
    switch (base) {
        case Base::W:
            return 7 * attoseconds_of_day;
        case Base::D:
            return attoseconds_of_day;
        case Base::h:
            return 3600 * attoseconds_of_second;
        case Base::m:
            return 60 * attoseconds_of_second;
        case Base::s:
            return attoseconds_of_second;
        case Base::ms:
            return attoseconds_of_second / 1000;
        case Base::us:
            return attoseconds_of_second / 1'000'000;
        case Base::ns:
            return attoseconds_of_second / 1'000'000'000;
        case Base::ps:
            return 1'000'000;
        case Base::fs:
            return 1000;
        case Base::as:
            return 1;
        default:
            return 0;
    }
}

}  // namespace

std::optional<Calendar> parse_calendar(std::string_view name) {
    const auto found = std::ranges::find(calendar_names, lower_case(name), &CalendarName::name);
    return found == calendar_names.end() ? std::nullopt : std::optional(found->calendar);
}

std::string_view calendar_name(Calendar calendar) {
    return std::ranges::find(calendar_names, calendar, &CalendarName::calendar)->name;
}

Int128 days_of(Calendar calendar, const CalendarDate& date) {
    switch (calendar) {
        case Calendar::standard: {
            const Int128 days = gregorian_days(date);
            return days < gregorian_start ? std::min(julian_days(date), gregorian_start) : days;
        }
        case Calendar::proleptic_gregorian:
            return gregorian_days(date);
        case Calendar::julian:
            return julian_days(date);
        case Calendar::noleap:
        case Calendar::all_leap: {
            const bool leap = calendar == Calendar::all_leap;
            return (date.year - 1970) * (leap ? 366 : 365) + days_before(date.month, leap) + date.day - 1;
        }
        default:
            return (date.year - 1970) * 360 + (date.month - 1) * 30 + date.day - 1;
    }
}

CalendarDate date_of(Calendar calendar, Int128 days) {
    switch (calendar) {
        case Calendar::standard:
            return days < gregorian_start ? julian_date(days) : gregorian_date(days);
        case Calendar::proleptic_gregorian:
            return gregorian_date(days);
        case Calendar::julian:
            return julian_date(days);
        case Calendar::noleap:
            return fixed_date(days, 365);
        case Calendar::all_leap:
            return fixed_date(days, 366);
        default: {
            const Int128 year = floor_quotient(days, 360);
            const auto day = static_cast<int>(days - year * 360);
            return {year + 1970, day / 30 + 1, day % 30 + 1};
        }
    }
}

int day_of_year(Calendar calendar, const CalendarDate& date) {
    return static_cast<int>(days_of(calendar, date) - days_of(calendar, {date.year, 1, 1})) + 1;
}

TimePeriod parse_period(std::string_view text, Calendar calendar) {
    Moment m = parse_moment(text, month_length_of(calendar));
    constexpr std::int64_t most = 1'000'000'000;  // years, so that every number of attoseconds fits
    if (m.year > most || m.year < -most)
        throw invalid_argument("the time '{}' is beyond a thousand million years", text);
    TimePeriod period{.first = start_of(calendar, m), .fields = m.fields + (m.decimals > 0 ? 1 : 0)};
    Int128 length = m.fields == 3   ? attoseconds_of_day
                    : m.fields == 4 ? 3600 * attoseconds_of_second
                    : m.fields == 5 ? 60 * attoseconds_of_second
                                    : attoseconds_of_second;
    for (int i = 0; i < m.decimals; ++i) length /= 10;
    if (m.fields <= 2) {
        Moment next = m;
        if (m.fields == 1 || m.month == 12) {
            ++next.year;
            next.month = 1;
        } else {
            ++next.month;
        }
        length = start_of(calendar, next) - period.first;
    }
    period.last = period.first + length - 1;
    return period;
}

int fields_needed(Calendar calendar, Int128 time) {
    const Int128 days = floor_quotient(time, attoseconds_of_day);
    const Int128 clock = time - days * attoseconds_of_day;
    if (clock % attoseconds_of_second != 0) return 7;
    const auto seconds = static_cast<int>(clock / attoseconds_of_second);
    if (seconds % 60 != 0) return 6;
    if (seconds % 3600 != 0) return 5;
    if (seconds != 0) return 4;
    const CalendarDate date = date_of(calendar, days);
    return date.day != 1 ? 3 : date.month != 1 ? 2 : 1;
}

std::string time_text(Calendar calendar, Int128 time) {
    const Int128 days = floor_quotient(time, attoseconds_of_day);
    const Int128 clock = time - days * attoseconds_of_day;
    const CalendarDate date = date_of(calendar, days);
    std::string text = date.year < 0 ? fmt::format("-{:04}", -date.year) : fmt::format("{:04}", date.year);
    text += fmt::format("-{:02}-{:02}", date.month, date.day);
    if (clock == 0) return text;
    const auto seconds = static_cast<int>(clock / attoseconds_of_second);
    text += fmt::format("T{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
    const auto fraction = static_cast<std::int64_t>(clock % attoseconds_of_second);
    if (seconds % 60 == 0 && fraction == 0) return text;
    text += fmt::format(":{:02}", seconds % 60);
    if (fraction == 0) return text;
    std::string decimals = fmt::format("{:018}", fraction);
    decimals.resize(decimals.find_last_not_of('0') + 1);
    return text + "." + decimals;
}

std::optional<Int128> CfTime::time(std::int64_t number) const {
    Int128 there = 0;
    if (__builtin_mul_overflow(Int128{number}, unit, &there) || __builtin_add_overflow(there, start, &there)) {
        return std::nullopt;
    }
    return there;
}

std::optional<Int128> CfTime::time(double number) const {
    const Int128 grain = std::min(unit, attoseconds_of_second / 1'000'000);
    const Int128 grains_of_unit = unit / grain;  // without a rest: a microsecond, or the unit where that is less
    const long double grains = std::round(static_cast<long double>(number) * static_cast<long double>(grains_of_unit));
    // A million million years.
    if (!(std::fabs(grains) < 1e25L)) return std::nullopt;
    Int128 there = 0;
    if (__builtin_mul_overflow(static_cast<Int128>(grains), grain, &there) ||
        __builtin_add_overflow(there, start, &there)) {
        return std::nullopt;
    }
    return there;
}

namespace {

/// Attoseconds of a unit in a calendar: months and years have a length only where all have the same (as in xarray).
std::optional<Int128> length_of_unit(std::string_view name, Calendar calendar) {
    const auto* const unit = std::ranges::find(cf_units, name, &CfUnit::name);
    if (unit != std::end(cf_units)) return unit->attoseconds;
    if (calendar == Calendar::days_360 && (name == "month" || name == "months")) return 30 * attoseconds_of_day;
    if (calendar == Calendar::noleap && (name == "common_year" || name == "common_years")) {
        return 365 * attoseconds_of_day;
    }
    return std::nullopt;
}

}  // namespace

std::optional<CfTime> parse_cf_time(std::string_view units, std::string_view calendar) {
    const std::string text = lower_case(units);
    const std::size_t since = text.find(" since ");
    const auto known = parse_calendar(calendar.empty() ? "standard" : calendar);
    if (since == std::string::npos || !known) return std::nullopt;
    std::string_view name = std::string_view(text).substr(0, since);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    const auto unit = length_of_unit(name, *known);
    if (!unit) return std::nullopt;
    const auto start = SinceParser(units.substr(since + 7)).parse(*known);
    if (!start) return std::nullopt;
    return CfTime{.calendar = *known, .unit = *unit, .start = *start};
}

std::optional<Int128> time_of_datetime(std::int64_t count, TimeUnit unit) {
    using Base = TimeUnit::Base;
    if (count == not_a_time || unit.base == Base::generic) return std::nullopt;
    const Int128 units = Int128{count} * unit.multiple;
    Int128 time = units;
    Int128 length = attoseconds_of(unit.base);
    if (unit.base == Base::Y || unit.base == Base::M) {
        const Int128 year = unit.base == Base::Y ? units : floor_quotient(units, 12);
        const int month = unit.base == Base::Y ? 1 : static_cast<int>(units - year * 12) + 1;
        time = gregorian_days({year + 1970, month, 1});
        length = attoseconds_of_day;
    }
    if (__builtin_mul_overflow(time, length, &time)) return std::nullopt;
    return time;
}

std::optional<std::int64_t> datetime_of_time(Int128 time, TimeUnit unit) {
    const Int128 length = attoseconds_of(unit.base) * unit.multiple;
    if (length == 0 || time % length != 0) return std::nullopt;
    const Int128 count = time / length;
    if (count <= not_a_time || count > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
    return static_cast<std::int64_t>(count);
}

}  // namespace tessera
