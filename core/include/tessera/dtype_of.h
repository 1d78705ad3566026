// C++ types as elements, beyond those of dtype.h: a program's structs, and times of <chrono>.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ratio>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/dtype.h>

// TESSERA_STRUCTURE: a program's structs as elements of a structured dtype.
//
//     struct Reading {
//         std::int64_t time;
//         float value;
//         std::uint8_t quality;
//     };
//     TESSERA_STRUCTURE(Reading, time, value, quality);
//
//     auto log = Array::create("log.zarr", {.shape = {1000}, .dtype = DType::of<Reading>()});
//     log.write(":2", std::vector<Reading>{{0, 1.5F, 1}, {10, 1.75F, 1}});
//     for (const Reading& r : log.read().values<Reading>()) std::cout << r.value << '\n';
namespace tessera::detail {

/// Where a member lies, in bytes.
struct MemberPlace {
    std::size_t offset;
    std::size_t size;
    std::size_t alignment;
};

/// Whether the members, in this order, fill the struct and leave no gaps except the compiler's padding.
template <std::size_t N>
consteval bool all_members(const std::array<MemberPlace, N>& members, std::size_t size, std::size_t alignment) {
    const auto aligned = [](std::size_t at, std::size_t to) { return (at + to - 1) / to * to; };
    std::size_t end = 0;
    for (const MemberPlace& m : members) {
        if (m.offset != aligned(end, m.alignment)) return false;
        end = m.offset + m.size;
    }
    return aligned(end, alignment) == size;
}

template <class T>
struct is_std_array : std::false_type {};
template <class T, std::size_t N>
struct is_std_array<std::array<T, N>> : std::true_type {};

/// Describes a member of type T: arrays become sub-arrays, and arrays of char become text of NumPy's kind S.
template <class T>
void describe(Field& field) {
    if constexpr (std::is_array_v<T> && std::is_same_v<std::remove_cv_t<std::remove_extent_t<T>>, char>) {
        field.dtype = DType::bytes(sizeof(T));
    } else if constexpr (std::is_array_v<T>) {
        field.shape.push_back(static_cast<std::int64_t>(std::extent_v<T>));
        describe<std::remove_extent_t<T>>(field);
    } else if constexpr (is_std_array<T>::value) {
        field.shape.push_back(static_cast<std::int64_t>(std::tuple_size_v<T>));
        describe<typename T::value_type>(field);
    } else {
        field.dtype = DType::of<T>();
    }
}

template <class T>
Field member_field(const char* name, std::size_t offset) {
    Field field;
    field.name = name;
    field.offset = static_cast<std::int64_t>(offset);
    describe<std::remove_cv_t<T>>(field);
    return field;
}

}  // namespace tessera::detail

// Applies a macro of two arguments to a type and each of up to 256 members.
#define TESSERA_AGAIN_(...) TESSERA_AGAIN_1_(TESSERA_AGAIN_1_(TESSERA_AGAIN_1_(TESSERA_AGAIN_1_(__VA_ARGS__))))
#define TESSERA_AGAIN_1_(...) TESSERA_AGAIN_2_(TESSERA_AGAIN_2_(TESSERA_AGAIN_2_(TESSERA_AGAIN_2_(__VA_ARGS__))))
#define TESSERA_AGAIN_2_(...) TESSERA_AGAIN_3_(TESSERA_AGAIN_3_(TESSERA_AGAIN_3_(TESSERA_AGAIN_3_(__VA_ARGS__))))
#define TESSERA_AGAIN_3_(...) TESSERA_AGAIN_4_(TESSERA_AGAIN_4_(TESSERA_AGAIN_4_(TESSERA_AGAIN_4_(__VA_ARGS__))))
#define TESSERA_AGAIN_4_(...) __VA_ARGS__
#define TESSERA_NOTHING_()
#define TESSERA_EACH_(macro, type, first, ...) \
    macro(type, first) __VA_OPT__(, TESSERA_EACH_LATER_ TESSERA_NOTHING_()()(macro, type, __VA_ARGS__))
#define TESSERA_EACH_LATER_() TESSERA_EACH_
#define TESSERA_MEMBER_PLACE_(type, member)                                           \
    ::tessera::detail::MemberPlace {                                                  \
        offsetof(type, member), sizeof(type::member), alignof(decltype(type::member)) \
    }
#define TESSERA_MEMBER_FIELD_(type, member) \
    ::tessera::detail::member_field<decltype(type::member)>(#member, offsetof(type, member))

/// Registers a struct, once, outside of all namespaces. DType::of<type>() is then its structured dtype, with each field
/// at the offset of its member. Takes every member in the order of declaration: numbers, bool, complex numbers, arrays
/// of them, char arrays (NumPy's S), and structs that are registered themselves. Members that are omitted or in another
/// order do not compile, nor do types that cannot be copied byte by byte.
#define TESSERA_STRUCTURE(type, ...)                                                                                \
    template <>                                                                                                     \
    struct tessera::DTypeOf<type> {                                                                                 \
        static_assert(std::is_trivially_copyable_v<type> && std::is_standard_layout_v<type>,                        \
                      "TESSERA_STRUCTURE: elements are copied byte by byte, which this type does not allow");       \
        static_assert(::tessera::detail::all_members(std::array{TESSERA_AGAIN_(TESSERA_EACH_(TESSERA_MEMBER_PLACE_, \
                                                                                             type, __VA_ARGS__))},  \
                                                     sizeof(type), alignof(type)),                                  \
                      "TESSERA_STRUCTURE: name every member, in the order of their declaration");                   \
        static const ::tessera::DType& dtype() {                                                                    \
            static const ::tessera::DType made = ::tessera::DType::structure(                                       \
                {TESSERA_AGAIN_(TESSERA_EACH_(TESSERA_MEMBER_FIELD_, type, __VA_ARGS__))}, sizeof(type));           \
            return made;                                                                                            \
        }                                                                                                           \
    }

// Times of <chrono> as elements: DType::of<std::chrono::sys_seconds>() is datetime64[s], and of std::chrono::hours
// timedelta64[h].
//
//     auto log = Array::create("log.zarr", {.shape = {1000}, .dtype = DType::of<std::chrono::sys_seconds>()});
//     log.write(":10", std::chrono::sys_days{std::chrono::year{2026} / 1 / 31});
//     const NDArray read = log.read();
//     for (const std::chrono::sys_seconds t : read.values<std::chrono::sys_seconds>()) std::cout << (t > t.min());
//
// NumPy's NaT is the least count: std::chrono::sys_seconds::min().
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
