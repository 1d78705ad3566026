// Calendars, and times as the CF conventions write them: numbers of "days since 1850-01-01" in a calendar.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/dtype.h>

namespace tessera {

// Years reach 2^63 and seconds are counted in attoseconds: int64 is too small.
__extension__ using Int128 = __int128;

enum class Calendar : std::uint8_t {
    standard,  ///< Julian until 1582-10-04, Gregorian from 1582-10-15
    proleptic_gregorian,
    julian,
    noleap,    ///< 365 days
    all_leap,  ///< 366 days
    days_360,  ///< 12 months of 30 days
};

/// A name of the CF conventions in any case, such as "gregorian" or "365_day"; nullopt for another one.
[[nodiscard]] std::optional<Calendar> parse_calendar(std::string_view name);
/// The name of the CF conventions.
[[nodiscard]] std::string_view calendar_name(Calendar calendar);

struct CalendarDate {
    Int128 year = 1970;
    int month = 1, day = 1;
    bool operator==(const CalendarDate&) const = default;
};

/// Days since a day that is the calendar's own; for `standard` and `proleptic_gregorian` 1970-01-01.
[[nodiscard]] Int128 days_of(Calendar calendar, const CalendarDate& date);
[[nodiscard]] CalendarDate date_of(Calendar calendar, Int128 days);
/// 1 on the first of January.
[[nodiscard]] int day_of_year(Calendar calendar, const CalendarDate& date);

inline constexpr Int128 attoseconds_of_second = 1'000'000'000'000'000'000;
inline constexpr Int128 attoseconds_of_day = 86400 * attoseconds_of_second;

/// The first and the last moment of what a text names, in attoseconds since the calendar's day 0: of "2020-02" the
/// whole month.
struct TimePeriod {
    Int128 first = 0, last = 0;
    int fields = 1;  ///< how exact the text is: 1 for a year, 3 for a day, 6 for a second, 7 for less
};
/// Throws invalid_argument for what is no date of the calendar in ISO 8601.
[[nodiscard]] TimePeriod parse_period(std::string_view text, Calendar calendar);
/// How exact a text has to be to name this moment, as TimePeriod::fields.
[[nodiscard]] int fields_needed(Calendar calendar, Int128 time);
/// ISO 8601, as short as it can be from the day on: "2020-02-01", "2020-02-01T12:30".
[[nodiscard]] std::string time_text(Calendar calendar, Int128 time);

/// How numbers stand for times: "hours since 1900-01-01 00:00:00".
struct CfTime {
    Calendar calendar = Calendar::standard;
    Int128 unit = attoseconds_of_day;  ///< attoseconds of one
    Int128 start = 0;                  ///< the moment of zero

    /// The moment of a number; nullopt if it does not fit.
    [[nodiscard]] std::optional<Int128> time(std::int64_t number) const;
    /// To the microsecond, because a fraction of a day is no exact number. nullopt for NaN and what does not fit.
    [[nodiscard]] std::optional<Int128> time(double number) const;
};
/// From the attributes `units` and `calendar`. nullopt for units that are no time since a moment of the calendar, for
/// months and years, which have no length, and for an unknown calendar.
[[nodiscard]] std::optional<CfTime> parse_cf_time(std::string_view units, std::string_view calendar = "standard");

/// NumPy's datetimes as attoseconds of proleptic_gregorian; nullopt for NaT, generic units and what does not fit.
[[nodiscard]] std::optional<Int128> time_of_datetime(std::int64_t count, TimeUnit unit);
/// The reverse; nullopt if the moment is no whole number of units or does not fit.
[[nodiscard]] std::optional<std::int64_t> datetime_of_time(Int128 time, TimeUnit unit);

}  // namespace tessera
