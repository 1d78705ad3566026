// Datetimes and timedeltas in expressions, by NumPy's rules. Private to the store module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/dtype.h>

#include "kernels.h"

namespace tessera {

/// The type of a row of times: counts of a unit, as int64.
struct TimeType {
    Kind kind = Kind::datetime;  ///< or timedelta
    TimeUnit unit;
    [[nodiscard]] DType dtype() const { return DType::time(kind, unit); }
    [[nodiscard]] std::string name() const;  ///< "datetime64[D]"
    bool operator==(const TimeType&) const = default;
};

/// nullopt if the dtype holds no times.
[[nodiscard]] std::optional<TimeType> time_type_of(const DType& dtype);

/// How a function of two times is computed.
struct TimeOperation {
    Kernel kernel = nullptr;
    TimeUnit unit;               ///< to which both are converted before
    std::optional<Kind> result;  ///< datetime or timedelta; nullopt: bool
};

/// Of the functions of two operands, and `where` of its last two. nullopt if it has no meaning for them, or if they
/// have no common unit (months and days).
[[nodiscard]] std::optional<TimeOperation> time_operation(std::string_view function, const TimeType& a,
                                                          const TimeType& b);
/// Of isnat, isnan, isfinite and isinf; nullptr for others.
[[nodiscard]] Kernel time_test(std::string_view function);

/// Converts `n` counts of `from` to `to`, a unit that divides it or that the calendar allows, rounded down. NaT stays
/// NaT. Throws invalid_argument for a time that does not fit.
void convert_times(const TimeType& from, TimeUnit to, const std::byte* in, std::byte* out, std::int64_t n);

/// The unit of ISO 8601 text as NumPy finds it: "2020-01" has months. Generic for anything else.
[[nodiscard]] TimeUnit unit_of_text(std::string_view text);

}  // namespace tessera
