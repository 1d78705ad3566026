// Times in expressions.
//
// As in NumPy, operands of different units are computed in the largest unit that divides both. Years and months have no
// fixed number of days: datetimes are converted by the calendar, timedeltas not at all.
#include "calc_times.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <tessera/error_text.h>

#include "operations.h"

namespace tessera {

namespace {

__extension__ using Wide = __int128;

using Base = TimeUnit::Base;

constexpr std::int64_t nat = std::numeric_limits<std::int64_t>::min();

// ---- loops

struct AddTimes {
    static std::int64_t of(std::int64_t a, std::int64_t b) {
        return a == nat || b == nat ? nat : operations::Add::of(a, b);
    }
};
struct SubtractTimes {
    static std::int64_t of(std::int64_t a, std::int64_t b) {
        return a == nat || b == nat ? nat : operations::Subtract::of(a, b);
    }
};
/// NaT is neither equal to, nor before, nor after anything.
template <class Op, bool of_nat>
struct CompareTimes {
    static bool of(std::int64_t a, std::int64_t b) { return a == nat || b == nat ? of_nat : Op::of(a, b); }
};
template <bool largest, bool times_win>
struct ExtremeTime {
    static std::int64_t of(std::int64_t a, std::int64_t b) {
        if (a == nat) return times_win ? b : nat;
        if (b == nat) return times_win ? a : nat;
        return (largest ? a >= b : a <= b) ? a : b;
    }
};

template <class Op, class To>
void run_times(const std::byte* const* in, std::byte* out, std::int64_t n) {
    const auto* a = reinterpret_cast<const std::int64_t*>(in[0]);
    const auto* b = reinterpret_cast<const std::int64_t*>(in[1]);
    To* to = reinterpret_cast<To*>(out);
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(Op::of(a[i], b[i]));
}

template <bool of_nat>
void test_times(const std::byte* const* in, std::byte* out, std::int64_t n) {
    const auto* a = reinterpret_cast<const std::int64_t*>(in[0]);
    for (std::int64_t i = 0; i < n; ++i) out[i] = std::byte{(a[i] == nat) == of_nat};
}

void no_time(const std::byte* const* /*in*/, std::byte* out, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = std::byte{0};
}

struct Row {
    std::string_view function;
    Kernel kernel;
};

template <class Op, bool of_nat = false>
constexpr Kernel compare = run_times<CompareTimes<Op, of_nat>, std::uint8_t>;

constexpr std::array<Row, 6> comparisons{{{"equal", compare<operations::Equal>},
                                          {"not_equal", compare<operations::NotEqual, true>},
                                          {"less", compare<operations::Less>},
                                          {"less_equal", compare<operations::LessEqual>},
                                          {"greater", compare<operations::Greater>},
                                          {"greater_equal", compare<operations::GreaterEqual>}}};
constexpr std::array<Row, 4> extremes{{{"minimum", run_times<ExtremeTime<false, false>, std::int64_t>},
                                       {"maximum", run_times<ExtremeTime<true, false>, std::int64_t>},
                                       {"fmin", run_times<ExtremeTime<false, true>, std::int64_t>},
                                       {"fmax", run_times<ExtremeTime<true, true>, std::int64_t>}}};
constexpr std::array<Row, 4> tests{
    {{"isnat", test_times<true>}, {"isnan", test_times<true>}, {"isfinite", test_times<false>}, {"isinf", no_time}}};

template <std::size_t n>
Kernel found_in(const std::array<Row, n>& rows, std::string_view function) {
    for (const Row& row : rows) {
        if (row.function == function) return row.kernel;
    }
    return nullptr;
}

// ---- units

bool has_calendar(Base base) {
    return base == Base::Y || base == Base::M;
}

/// How many `fine` are one `coarse`. For years and months, NumPy's factors for the common unit, which are no lengths.
Wide factor(Base coarse, Base fine) {
    // The number of the next smaller unit, from years on.
    constexpr std::array<int, 12> steps{1, 1, 7, 24, 60, 60, 1000, 1000, 1000, 1000, 1000, 1000};
    Wide product = 1;
    const auto first = static_cast<std::size_t>(Base::Y);
    for (auto i = static_cast<std::size_t>(coarse); i < static_cast<std::size_t>(fine); ++i) {
        product *= steps.at(i - first);
    }
    return product;
}

Wide divisor(Wide a, Wide b) {
    while (b != 0) a = std::exchange(b, a % b);
    return a;
}

/// The largest unit that divides both; nullopt if there is none.
std::optional<TimeUnit> common_unit(const TimeType& a, const TimeType& b) {
    if (a.unit.base == Base::generic) return b.unit;
    if (b.unit.base == Base::generic) return a.unit;
    if (a.unit.base > b.unit.base) return common_unit(b, a);  // a is the coarser one
    const bool months = a.unit.base == Base::Y && b.unit.base == Base::M;
    // No number of days is a month: datetimes have the calendar, timedeltas nothing.
    if (has_calendar(a.unit.base) && b.unit.base != a.unit.base && !months && a.kind == Kind::timedelta) {
        return std::nullopt;
    }
    const Wide multiple = a.unit.multiple * (months ? Wide{12} : factor(a.unit.base, b.unit.base));
    return TimeUnit{b.unit.base, static_cast<std::int32_t>(divisor(multiple, b.unit.multiple))};
}

Wide floor_divided(Wide a, Wide b) {
    return a / b - (a % b < 0 ? 1 : 0);
}

/// Days from 1970-01-01 to the first of a month, counted from January 1970.
Wide day_of_month(Wide month) {
    // Years that begin in March: each century and each four years end with the leap day.
    const Wide march = month + 1970 * 12 - 2;
    const Wide year = floor_divided(march, 12);
    const Wide in_year = march - 12 * year;
    const Wide era = floor_divided(year, 400);
    const Wide of_era = year - 400 * era;
    constexpr int era_days = 146'097;
    constexpr int epoch = 719'468;  // 1970-01-01, from 0000-03-01
    return era * era_days + of_era * 365 + of_era / 4 - of_era / 100 + (153 * in_year + 2) / 5 - epoch;
}

/// A count of `from` as one of `to`, rounded down; far beyond 64 bits if it does not fit.
Wide converted(std::int64_t count, TimeUnit from, TimeUnit to) {
    constexpr Wide too_much = Wide{1} << 100;
    Wide value = Wide{count} * from.multiple;
    Base base = from.base;
    if (base == Base::Y && to.base != Base::Y) {
        value *= 12;
        base = Base::M;
    }
    if (base == Base::M && to.base != Base::M) {
        constexpr Wide months = Wide{1} << 70;
        if (value > months || value < -months) return too_much;
        value = day_of_month(value);
        base = Base::D;
        if (to.base == Base::W) return floor_divided(value, Wide{7} * to.multiple);
    }
    const Wide scale = base == to.base ? 1 : factor(base, to.base);
    const Wide common = divisor(scale, to.multiple);
    const Wide up = scale / common;
    if (value != 0 && up > too_much / (value < 0 ? -value : value)) return too_much;
    return floor_divided(value * up, to.multiple / common);
}

}  // namespace

std::string TimeType::name() const {
    const std::string text = dtype().to_string();
    const std::size_t unit_at = text.find('[');
    return fmt::format("{}64{}", kind == Kind::datetime ? "datetime" : "timedelta",
                       unit_at == std::string::npos ? "" : text.substr(unit_at));
}

std::optional<TimeType> time_type_of(const DType& dtype) {
    if (dtype.kind() != Kind::datetime && dtype.kind() != Kind::timedelta) return std::nullopt;
    return TimeType{dtype.kind(), dtype.time_unit()};
}

std::optional<TimeOperation> time_operation(std::string_view function, const TimeType& a, const TimeType& b) {
    const auto unit = common_unit(a, b);
    if (!unit) return std::nullopt;
    const bool points = a.kind == Kind::datetime && b.kind == Kind::datetime;
    const bool spans = a.kind == Kind::timedelta && b.kind == Kind::timedelta;
    if (function == "add" && !points) {
        return TimeOperation{run_times<AddTimes, std::int64_t>, *unit, spans ? Kind::timedelta : Kind::datetime};
    }
    if (function == "subtract" && (points || b.kind == Kind::timedelta)) {
        return TimeOperation{run_times<SubtractTimes, std::int64_t>, *unit,
                             points || spans ? Kind::timedelta : Kind::datetime};
    }
    if (a.kind != b.kind) return std::nullopt;
    if (function == "where") return TimeOperation{find_function("where")->find(Number::i8), *unit, a.kind};
    if (const Kernel kernel = found_in(extremes, function)) return TimeOperation{kernel, *unit, a.kind};
    if (const Kernel kernel = found_in(comparisons, function)) return TimeOperation{kernel, *unit, std::nullopt};
    return std::nullopt;
}

Kernel time_test(std::string_view function) {
    return found_in(tests, function);
}

void convert_times(const TimeType& from, TimeUnit to, const std::byte* in, std::byte* out, std::int64_t n) {
    const auto* counts = reinterpret_cast<const std::int64_t*>(in);
    auto* made = reinterpret_cast<std::int64_t*>(out);
    for (std::int64_t i = 0; i < n; ++i) {
        if (counts[i] == nat || from.unit.base == Base::generic) {
            made[i] = counts[i];
            continue;
        }
        const Wide value = converted(counts[i], from.unit, to);
        // The least number is NaT.
        if (value > std::numeric_limits<std::int64_t>::max() || value <= Wide{nat}) {
            throw invalid_argument("{} of {} does not fit {}, the common unit", counts[i], from.name(),
                                   TimeType{from.kind, to}.name());
        }
        made[i] = static_cast<std::int64_t>(value);
    }
}

TimeUnit unit_of_text(std::string_view text) {
    const std::size_t time = text.find_first_of("T ");
    const std::string_view date = text.substr(0, time);
    const auto dashes = std::count(date.begin() + (date.empty() ? 0 : 1), date.end(), '-');
    if (time == std::string_view::npos) {
        constexpr std::array<Base, 3> bases{Base::Y, Base::M, Base::D};
        return dashes > 2 || date.empty() ? TimeUnit{} : TimeUnit{bases.at(static_cast<std::size_t>(dashes)), 1};
    }
    const std::string_view clock = text.substr(time + 1);
    const std::size_t point = clock.find('.');
    if (point == std::string_view::npos) {
        const auto colons = std::count(clock.begin(), clock.end(), ':');
        constexpr std::array<Base, 3> bases{Base::h, Base::m, Base::s};
        return colons > 2 ? TimeUnit{} : TimeUnit{bases.at(static_cast<std::size_t>(colons)), 1};
    }
    constexpr std::array<Base, 6> bases{Base::ms, Base::us, Base::ns, Base::ps, Base::fs, Base::as};
    const std::size_t digits = clock.size() - point - 1;
    return digits == 0 || digits > 18 ? TimeUnit{} : TimeUnit{bases.at((digits - 1) / 3), 1};
}

}  // namespace tessera
