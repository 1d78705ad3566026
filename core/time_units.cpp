#include "time_units.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include <tessera/calendar.h>
#include <tessera/error_text.h>

namespace tessera {
namespace {

using Base = TimeUnit::Base;

struct Divisor {
    Base base;
    int factor;
};

// One row per base, in the order of the enumeration.
struct BaseRow {
    std::string_view name;
    std::int64_t seconds;             // in one, from weeks to seconds; else 0
    int decimals;                     // of a second, below one; else 0
    std::array<Divisor, 3> divisors;  // the smaller units that NumPy tries for [D/12]; factor 0 ends
};
constexpr BaseRow base_rows[] = {
    {"generic", 0, 0, {}},
    {"Y", 0, 0, {{{Base::M, 12}, {Base::W, 52}, {Base::D, 365}}}},
    {"M", 0, 0, {{{Base::W, 4}, {Base::D, 30}, {Base::h, 720}}}},
    {"W", 604800, 0, {{{Base::D, 7}, {Base::h, 168}, {Base::m, 10080}}}},
    {"D", 86400, 0, {{{Base::h, 24}, {Base::m, 1440}, {Base::s, 86400}}}},
    {"h", 3600, 0, {{{Base::m, 60}, {Base::s, 3600}}}},
    {"m", 60, 0, {{{Base::s, 60}, {Base::ms, 60000}}}},
    {"s", 1, 0, {{{Base::ms, 1000}, {Base::us, 1000000}}}},
    {"ms", 0, 3, {{{Base::us, 1000}, {Base::ns, 1000000}}}},
    {"us", 0, 6, {{{Base::ns, 1000}, {Base::ps, 1000000}}}},
    {"ns", 0, 9, {{{Base::ps, 1000}, {Base::fs, 1000000}}}},
    {"ps", 0, 12, {{{Base::fs, 1000}, {Base::as, 1000000}}}},
    {"fs", 0, 15, {{{Base::as, 1000}}}},
    {"as", 0, 18, {}},
};
constexpr int all_decimals = 18;

const BaseRow& row_of(Base base) {
    return base_rows[static_cast<std::size_t>(base)];
}

Int128 power_of_ten(int n) {
    Int128 v = 1;
    while (n-- > 0) v *= 10;
    return v;
}

Int128 floor_div(Int128 a, Int128 b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
Int128 floor_mod(Int128 a, Int128 b) {
    return a - floor_div(a, b) * b;
}

int gregorian_month(std::int64_t year, int month) {
    const CalendarDate next = month == 12 ? CalendarDate{Int128{year} + 1, 1, 1} : CalendarDate{year, month + 1, 1};
    return static_cast<int>(days_of(Calendar::proleptic_gregorian, next) -
                            days_of(Calendar::proleptic_gregorian, {year, month, 1}));
}

bool is_nat(std::string_view text) {
    return text.empty() ||
           (text.size() == 3 && (text[0] | 0x20) == 'n' && (text[1] | 0x20) == 'a' && (text[2] | 0x20) == 't');
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

class MomentParser {
public:
    MomentParser(std::string_view text, int (*days)(std::int64_t year, int month))
        : text_(text), rest_(text), days_in_month_(days) {}

    Moment parse() {
        Moment m;
        const bool negative = accept('-');
        if (!negative) accept('+');
        std::int64_t year = 0;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), year);
        if (error != std::errc{} || rest_.empty() || !is_digit(rest_.front())) fail("a year");
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        m.year = negative ? -year : year;
        if (accept('-')) {
            m.month = two_digits(1, 12, "a month");
            m.fields = 2;
            if (accept('-')) {
                m.day = two_digits(1, days_in_month_(m.year, m.month), "a day of that month");
                m.fields = 3;
                if (accept('T') || accept(' ')) time(m);
            }
        }
        if (!rest_.empty()) fail("the end");
        return m;
    }

private:
    [[noreturn]] void fail(std::string_view expected) const {
        throw invalid_argument("'{}' is not a time in ISO 8601: expected {} before '{}'", text_, expected, rest_);
    }
    bool accept(char c) {
        if (!rest_.starts_with(c)) return false;
        rest_.remove_prefix(1);
        return true;
    }
    int two_digits(int least, int most, std::string_view what) {
        if (rest_.size() < 2 || !is_digit(rest_[0]) || !is_digit(rest_[1])) fail(what);
        const int v = (rest_[0] - '0') * 10 + rest_[1] - '0';
        if (v < least || v > most) fail(what);
        rest_.remove_prefix(2);
        return v;
    }
    void time(Moment& m) {
        m.second_of_day = two_digits(0, 23, "an hour") * 3600;
        m.fields = 4;
        if (accept(':')) {
            m.second_of_day += two_digits(0, 59, "a minute") * 60;
            m.fields = 5;
            if (accept(':')) {
                m.second_of_day += two_digits(0, 59, "a second");
                m.fields = 6;
                if (accept('.')) fraction(m);
            }
        }
        if (accept('Z')) return;
        const bool east = accept('+');
        if (!east && !accept('-')) return;
        int offset = two_digits(0, 23, "a time zone's hours") * 3600;
        accept(':');
        if (!rest_.empty()) offset += two_digits(0, 59, "a time zone's minutes") * 60;
        m.second_of_day += east ? -offset : offset;
    }
    void fraction(Moment& m) {
        int decimals = 0;
        while (!rest_.empty() && is_digit(rest_.front())) {
            if (decimals++ == all_decimals) fail("at most 18 decimals");
            m.attoseconds = m.attoseconds * 10 + (rest_.front() - '0');
            rest_.remove_prefix(1);
        }
        if (decimals == 0) fail("decimals");
        m.attoseconds *= static_cast<std::int64_t>(power_of_ten(all_decimals - decimals));
        m.decimals = decimals;
    }

    std::string_view text_, rest_;
    int (*days_in_month_)(std::int64_t year, int month);
};

std::int64_t fit(Int128 count, std::string_view text, TimeUnit unit) {
    if (count <= not_a_time || count > std::numeric_limits<std::int64_t>::max()) {
        throw invalid_argument("the time '{}' is beyond what 64 bits of {} hold", text, time_unit_name(unit));
    }
    return static_cast<std::int64_t>(count);
}

bool is_months(Base base) {
    return base == Base::Y || base == Base::M;
}

// The length of one unit: in months, or in attoseconds.
Int128 length_of(Base base) {
    if (is_months(base)) return base == Base::Y ? 12 : 1;
    const auto& row = row_of(base);
    return row.decimals > 0 ? power_of_ten(all_decimals - row.decimals) : row.seconds * power_of_ten(all_decimals);
}

// A moment as seconds and decimals of a second: `count` in the unit `base`, from weeks down.
struct Scaled {
    Int128 seconds;
    Int128 fraction;  // in units of the base
};
Scaled scaled(Int128 count, const BaseRow& row) {
    if (row.decimals == 0) return {count * row.seconds, 0};
    const Int128 per_second = power_of_ten(row.decimals);
    return {floor_div(count, per_second), floor_mod(count, per_second)};
}

// How often the base of `unit` fits between 1970 and the moment that `text` spells, and whether something is left over.
std::pair<Int128, bool> count_bases(const Moment& m, TimeUnit unit, std::string_view text) {
    const bool in_day = m.second_of_day != 0 || m.attoseconds != 0;
    if (unit.base == Base::Y) return {Int128{m.year} - 1970, m.month != 1 || m.day != 1 || in_day};
    if (unit.base == Base::M) return {(Int128{m.year} - 1970) * 12 + m.month - 1, m.day != 1 || in_day};
    const auto& row = row_of(unit.base);
    const Int128 seconds = days_of(Calendar::proleptic_gregorian, {m.year, m.month, m.day}) * 86400 + m.second_of_day;
    if (row.decimals > 0) {
        const Int128 smallest = length_of(unit.base);
        return {Int128{fit(seconds, text, unit)} * power_of_ten(row.decimals) + m.attoseconds / smallest,
                m.attoseconds % smallest != 0};
    }
    // Weeks begin on Thursdays, as 1970 did, and every day belongs to one. As in NumPy, a day cut to its week is no
    // loss.
    const Int128 grain = unit.base == Base::W ? 86400 : row.seconds;
    return {floor_div(seconds, row.seconds), seconds % grain != 0 || m.attoseconds != 0};
}

}  // namespace

std::optional<Base> time_base(std::string_view name) {
    if (name == "μs" || name == "µs") name = "us";  // both of Unicode's mu
    const auto* row = std::ranges::find(base_rows, name, &BaseRow::name);
    if (row == std::end(base_rows)) return std::nullopt;
    return static_cast<Base>(row - base_rows);
}

std::string time_unit_name(TimeUnit unit) {
    if (unit.base == Base::generic) return {};
    const auto name = row_of(unit.base).name;
    return unit.multiple == 1 ? std::string(name) : fmt::format("{}{}", unit.multiple, name);
}

std::optional<TimeUnit> divide_time_base(Base base, std::int64_t divisor) {
    for (const auto& d : row_of(base).divisors) {
        if (d.factor != 0 && d.factor % divisor == 0)
            return TimeUnit{d.base, static_cast<std::int32_t>(d.factor / divisor)};
    }
    return std::nullopt;
}

Moment parse_moment(std::string_view text, int (*days_in_month)(std::int64_t year, int month)) {
    return MomentParser(text, days_in_month).parse();
}

std::int64_t parse_datetime(std::string_view text, TimeUnit unit, bool may_cut) {
    if (is_nat(text)) return not_a_time;
    if (unit.base == Base::generic) {
        throw invalid_argument("the time '{}' needs a unit, and this dtype has none", text);
    }
    const auto [count, left_over] = count_bases(parse_moment(text, gregorian_month), unit, text);
    if (!may_cut && (left_over || floor_mod(count, unit.multiple) != 0)) {
        throw invalid_argument("the time '{}' is no whole number of {}", text, time_unit_name(unit));
    }
    return fit(floor_div(count, unit.multiple), text, unit);
}

std::int64_t parse_timedelta(std::string_view text, TimeUnit unit) {
    if (is_nat(text)) return not_a_time;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    auto name = text.substr(static_cast<std::size_t>(end - text.data()));
    if (name.starts_with(' ')) name.remove_prefix(1);
    const auto base = name.empty() ? unit.base : time_base(name);
    if (error != std::errc{} || !base) {
        throw invalid_argument("'{}' is not a duration such as '5 ns'", text);
    }
    if (name.empty() || unit.base == Base::generic) return fit(number, text, unit);

    if (is_months(*base) != is_months(unit.base)) {
        throw invalid_argument("'{}' is no fixed number of {}", text, time_unit_name(unit));
    }
    Int128 total = 0;
    if (__builtin_mul_overflow(Int128{number}, length_of(*base), &total)) {
        throw invalid_argument("the duration '{}' is too long", text);
    }
    const Int128 one = length_of(unit.base) * unit.multiple;
    if (total % one != 0) {
        throw invalid_argument("'{}' is no whole number of {}", text, time_unit_name(unit));
    }
    return fit(total / one, text, unit);
}

std::string format_datetime(std::int64_t count, TimeUnit unit) {
    if (count == not_a_time) return "NaT";
    if (unit.base == Base::generic) return std::to_string(count);
    const Int128 units = Int128{count} * unit.multiple;
    const auto year_text = [](Int128 year) {
        return year < 0 ? fmt::format("-{:04}", -year) : fmt::format("{:04}", year);
    };
    if (unit.base == Base::Y) return year_text(units + 1970);
    if (unit.base == Base::M) {
        return fmt::format("{}-{:02}", year_text(floor_div(units, 12) + 1970),
                           static_cast<int>(floor_mod(units, 12)) + 1);
    }
    const auto& row = row_of(unit.base);
    const auto [seconds, fraction] = scaled(units, row);
    const auto date = date_of(Calendar::proleptic_gregorian, floor_div(seconds, 86400));
    const auto second = static_cast<int>(floor_mod(seconds, 86400));
    auto text = fmt::format("{}-{:02}-{:02}", year_text(date.year), date.month, date.day);
    if (unit.base <= Base::D) return text;
    text += fmt::format("T{:02}", second / 3600);
    if (unit.base >= Base::m) text += fmt::format(":{:02}", second / 60 % 60);
    if (unit.base >= Base::s) text += fmt::format(":{:02}", second % 60);
    if (row.decimals > 0) text += fmt::format(".{:0{}}", fraction, row.decimals);
    return text;
}

std::string format_timedelta(std::int64_t count, TimeUnit unit) {
    if (count == not_a_time) return "NaT";
    if (unit.base == Base::generic) return std::to_string(count);
    return fmt::format("{} {}", Int128{count} * unit.multiple, row_of(unit.base).name);
}

}  // namespace tessera
