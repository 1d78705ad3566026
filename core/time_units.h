// NumPy's time units: their names, and counts of them to and from ISO 8601 text. Private to the library.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/dtype.h>

namespace tessera {

inline constexpr std::int64_t not_a_time = std::numeric_limits<std::int64_t>::min();

/// "ns" and so on, also "generic"; nullopt for an unknown name.
[[nodiscard]] std::optional<TimeUnit::Base> time_base(std::string_view name);
/// "10ns", "s"; "" for generic.
[[nodiscard]] std::string time_unit_name(TimeUnit unit);
/// 1/divisor of a base as a whole number of one of the next smaller bases, as NumPy reads [D/12].
[[nodiscard]] std::optional<TimeUnit> divide_time_base(TimeUnit::Base base, std::int64_t divisor);

/// A moment as ISO 8601 writes it, in a calendar that the reader knows.
struct Moment {
    std::int64_t year = 1970;
    int month = 1, day = 1;
    std::int64_t second_of_day = 0;  ///< the offset of a time zone may move it out of the day
    std::int64_t attoseconds = 0;
    int fields = 1;    ///< how many were given: the year, the month, the day, the hour, the minute, the second
    int decimals = 0;  ///< of the second
};
/// Throws invalid_argument. `days_in_month` is the calendar's.
[[nodiscard]] Moment parse_moment(std::string_view text, int (*days_in_month)(std::int64_t year, int month));

/// ISO 8601 text ("2020", "2020-01-31", "2020-01-31T12:34:56.789", optionally Z or +01:00), or "NaT" or "", as a count
/// of `unit` since 1970. Parts finer than the unit are cut when `may_cut`. Throws invalid_argument.
[[nodiscard]] std::int64_t parse_datetime(std::string_view text, TimeUnit unit, bool may_cut);
/// "5", "5 ns", "NaT" as a count of `unit`; a bare number counts `unit`. Throws invalid_argument, also where the time
/// is no whole number of units.
[[nodiscard]] std::int64_t parse_timedelta(std::string_view text, TimeUnit unit);

/// As numpy.datetime_as_string: as fine as the unit. Generic units have no calendar: the bare count.
[[nodiscard]] std::string format_datetime(std::int64_t count, TimeUnit unit);
/// "50 ns" for 5 of 10ns.
[[nodiscard]] std::string format_timedelta(std::int64_t count, TimeUnit unit);

}  // namespace tessera
