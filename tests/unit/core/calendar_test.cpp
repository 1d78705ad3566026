#include <tessera/calendar.h>

#include <gtest/gtest.h>

#include "expect_error.h"

namespace tessera {
namespace {

std::int64_t day(Calendar calendar, std::int64_t year, int month, int d) {
    return static_cast<std::int64_t>(days_of(calendar, {year, month, d}));
}

TEST(CalendarTest, KnownDays) {
    EXPECT_EQ(day(Calendar::proleptic_gregorian, 1970, 1, 1), 0);
    EXPECT_EQ(day(Calendar::proleptic_gregorian, 2000, 3, 1), 11017);
    // The day after Thursday, 1582-10-04, was Friday, 1582-10-15.
    EXPECT_EQ(day(Calendar::standard, 1582, 10, 15), day(Calendar::standard, 1582, 10, 4) + 1);
    EXPECT_EQ(day(Calendar::standard, 1582, 10, 15), -141427);
    EXPECT_EQ(day(Calendar::julian, 1582, 10, 5), -141427);
    EXPECT_EQ(day(Calendar::julian, 1970, 1, 1), 13);
    EXPECT_EQ(day(Calendar::noleap, 2001, 1, 1) - day(Calendar::noleap, 2000, 1, 1), 365);
    EXPECT_EQ(day(Calendar::all_leap, 2001, 1, 1) - day(Calendar::all_leap, 2000, 1, 1), 366);
    EXPECT_EQ(day(Calendar::days_360, 2001, 1, 1) - day(Calendar::days_360, 2000, 2, 30), 301);
    EXPECT_EQ(day_of_year(Calendar::proleptic_gregorian, {2000, 12, 31}), 366);
    EXPECT_EQ(day_of_year(Calendar::noleap, {2000, 12, 31}), 365);
}

TEST(CalendarTest, EveryDayThereAndBack) {
    for (const Calendar calendar : {Calendar::standard, Calendar::proleptic_gregorian, Calendar::julian,
                                    Calendar::noleap, Calendar::all_leap, Calendar::days_360}) {
        CalendarDate before = date_of(calendar, -800'001);
        for (std::int64_t d = -800'000; d < 200'000; d += 1 + (d % 3 == 0 ? 17 : 0)) {
            const CalendarDate date = date_of(calendar, d);
            ASSERT_TRUE(days_of(calendar, date) == d) << calendar_name(calendar) << ' ' << d;
            ASSERT_TRUE(std::tuple(before.year, before.month, before.day) <
                        std::tuple(date.year, date.month, date.day));
            before = date;
        }
    }
}

TEST(CalendarTest, Periods) {
    const auto text = [](std::string_view period, Calendar calendar = Calendar::proleptic_gregorian) {
        const TimePeriod p = parse_period(period, calendar);
        return time_text(calendar, p.first) + " " + time_text(calendar, p.last + 1);
    };
    EXPECT_EQ(text("2020"), "2020-01-01 2021-01-01");
    EXPECT_EQ(text("2020-02"), "2020-02-01 2020-03-01");
    EXPECT_EQ(text("2020-12"), "2020-12-01 2021-01-01");
    EXPECT_EQ(text("2020-02-29"), "2020-02-29 2020-03-01");
    EXPECT_EQ(text("2020-02-30", Calendar::days_360), "2020-02-30 2020-03-01");
    EXPECT_EQ(text("2020-01-01T12"), "2020-01-01T12:00 2020-01-01T13:00");
    EXPECT_EQ(text("2020-01-01T12:30+01:00"), "2020-01-01T11:30 2020-01-01T11:31");
    EXPECT_EQ(text("2020-01-01T12:30:15.25"), "2020-01-01T12:30:15.25 2020-01-01T12:30:15.26");
    expect_error(ErrorCode::invalid_argument, "day of that month",
                 [] { (void)parse_period("2020-02-29", Calendar::noleap); });
    expect_error(ErrorCode::invalid_argument, "thousand million",
                 [] { (void)parse_period("9223372036854775807", Calendar::standard); });
}

TEST(CalendarTest, Units) {
    const auto text = [](std::string_view units, double number, std::string_view calendar = "standard") {
        const auto cf = parse_cf_time(units, calendar);
        const auto time = cf ? cf->time(number) : std::nullopt;
        return time ? time_text(cf->calendar, *time) : std::string("none");
    };
    EXPECT_EQ(text("days since 2000-01-01", 1.5), "2000-01-02T12:00");
    EXPECT_EQ(text("Days Since 1-1-1 0:0:0.0", 0, "noleap"), "0001-01-01");
    EXPECT_EQ(text("hours since 1900-01-01 00:00:00.0", 1), "1900-01-01T01:00");
    EXPECT_EQ(text("seconds since 1970-01-01T00:00:00Z", 86461), "1970-01-02T00:01:01");
    EXPECT_EQ(text("minutes since 2000-01-01 12:00 UTC", 30), "2000-01-01T12:30");
    EXPECT_EQ(text("hours since 2000-01-01 12:00 +0530", 0), "2000-01-01T06:30");
    EXPECT_EQ(text("hours since 2000-01-01 12:00 -5:30", 0), "2000-01-01T17:30");
    EXPECT_EQ(text("days since 2000-02-30", 1, "360_day"), "2000-03-01");
    EXPECT_EQ(text("days since 1582-10-04", 1), "1582-10-15");
    EXPECT_EQ(text("days since 0000-01-01", 59, "366_day"), "0000-02-29");
    for (const char* units : {"days", "months since 2000-01-01", "days since 2000-13-01", "days since 2000-02-30",
                              "days since ", "days since x", "metres", "days since 2000-01-01 25:00",
                              "days since 99999999999-01-01", "days since 2000-01-01 12:00 nonsense"}) {
        EXPECT_EQ(text(units, 1), "none") << units;
    }
    EXPECT_EQ(text("days since 2000-01-01", 1, "martian"), "none");
    EXPECT_EQ(text("days since 2000-01-01", 1e300), "none");
    EXPECT_FALSE(parse_cf_time("days since 2000-01-01")->time(std::int64_t{INT64_MAX}).has_value());
}

TEST(CalendarTest, Datetimes) {
    using Base = TimeUnit::Base;
    for (const TimeUnit unit :
         {TimeUnit{Base::D}, TimeUnit{Base::h}, TimeUnit{Base::ns}, TimeUnit{Base::as}, TimeUnit{Base::s, 25}}) {
        for (const std::int64_t count : {-5, 0, 7}) {
            EXPECT_EQ(datetime_of_time(*time_of_datetime(count, unit), unit), count);
        }
    }
    EXPECT_EQ(time_text(Calendar::proleptic_gregorian, *time_of_datetime(-1, {Base::M})), "1969-12-01");
    EXPECT_EQ(time_text(Calendar::proleptic_gregorian, *time_of_datetime(50, {Base::Y})), "2020-01-01");
    EXPECT_FALSE(time_of_datetime(INT64_MIN, {Base::s}).has_value());
    EXPECT_FALSE(datetime_of_time(1, {Base::s}).has_value());
}

}  // namespace
}  // namespace tessera
