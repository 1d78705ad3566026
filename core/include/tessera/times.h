// Times of <chrono> as elements: DType::of<std::chrono::sys_seconds>() is datetime64[s], and of std::chrono::hours
// timedelta64[h].
//
//     auto log = Array::create("log.zarr", {.shape = {1000}, .dtype = DType::of<std::chrono::sys_seconds>()});
//     log.write(":10", std::chrono::sys_days{std::chrono::year{2026} / 1 / 31});
//     const NDArray read = log.read();
//     for (const std::chrono::sys_seconds t : read.values<std::chrono::sys_seconds>()) std::cout << (t > t.min());
//
// NumPy's NaT is the least count: std::chrono::sys_seconds::min().
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <ratio>
#include <type_traits>

#include <tessera/dtype.h>

namespace tessera {

namespace detail {

/// NumPy's unit of this period. Years and months of <chrono> are spans of seconds and have none.
template <class Period>
consteval TimeUnit time_unit() {
    using Base = TimeUnit::Base;
    if (std::ratio_equal_v<Period, std::ratio<604800>>) return {Base::W};
    if (std::ratio_equal_v<Period, std::ratio<86400>>) return {Base::D};
    if (std::ratio_equal_v<Period, std::ratio<3600>>) return {Base::h};
    if (std::ratio_equal_v<Period, std::ratio<60>>) return {Base::m};
    if (std::ratio_equal_v<Period, std::ratio<1>>) return {Base::s};
    if (std::ratio_equal_v<Period, std::milli>) return {Base::ms};
    if (std::ratio_equal_v<Period, std::micro>) return {Base::us};
    if (std::ratio_equal_v<Period, std::nano>) return {Base::ns};
    if (std::ratio_equal_v<Period, std::pico>) return {Base::ps};
    return {};
}

/// Whether a duration has the memory of NumPy's times: a count of 64 bits in one of its units.
template <class Duration>
concept TimeCount = std::signed_integral<typename Duration::rep> && sizeof(Duration) == sizeof(std::int64_t) &&
                    time_unit<typename Duration::period>() != TimeUnit{};

}  // namespace detail

template <detail::TimeCount Duration>
struct DTypeOf<std::chrono::time_point<std::chrono::system_clock, Duration>> {
    static DType dtype() { return DType::time(Kind::datetime, detail::time_unit<typename Duration::period>()); }
};

template <class Rep, class Period>
requires detail::TimeCount<std::chrono::duration<Rep, Period>>
struct DTypeOf<std::chrono::duration<Rep, Period>> {
    static DType dtype() { return DType::time(Kind::timedelta, detail::time_unit<Period>()); }
};

}  // namespace tessera
