#include "csv_columns.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/csv_line.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/little_endian.h>
#include <tessera/number_text.h>
#include <tessera/view.h>

#include <tessera/unicode.h>
#include "time_units.h"

namespace tessera {

namespace {

void add_columns(const DType& dtype, const std::string& name, std::int64_t offset, CountedVector<CsvColumn>& columns) {
    if (dtype.kind() != Kind::structure) {
        if (dtype.kind() == Kind::extended || dtype.kind() == Kind::extended_complex || dtype.kind() == Kind::object) {
            throw unsupported("a .csv cannot hold elements of dtype {}", dtype.to_string());
        }
        columns.push_back({name, dtype, offset});
        return;
    }
    for (const Field& field : dtype.fields()) {
        if (field.unnamed) continue;
        const std::string own = name.empty() ? field.name : fmt::format("{}.{}", name, field.name);
        const std::int64_t count = element_count(field.shape);
        for (std::int64_t i = 0; i < count; ++i) {
            std::string index;
            std::int64_t rest = i;
            for (int d = field.shape.rank() - 1; d >= 0; --d) {
                index = fmt::format("{}{}{}", rest % field.shape[d], index.empty() ? "" : ",", index);
                rest /= field.shape[d];
            }
            add_columns(field.dtype, index.empty() ? own : fmt::format("{}[{}]", own, index),
                        offset + field.offset + i * field.dtype.size(), columns);
        }
    }
}

/// The bytes of a number in the order of this machine.
template <class T>
T load(const DType& dtype, const std::byte* p) {
    std::byte bytes[sizeof(T)];
    std::memcpy(bytes, p, sizeof(T));
    if (dtype.order() != ByteOrder::none && dtype.order() != native_order) std::reverse(bytes, bytes + sizeof(T));
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    return value;
}

template <class T>
void store(const DType& dtype, T value, std::byte* p) {
    std::memcpy(p, &value, sizeof(T));
    if (dtype.order() != ByteOrder::none && dtype.order() != native_order) std::reverse(p, p + sizeof(T));
}

template <class T>
void append_number(std::string& out, T value) {
    char text[32];
    out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void append_integer(std::string& out, const DType& dtype, const std::byte* p) {
    const bool is_signed = dtype.kind() == Kind::integer;
    switch (dtype.size()) {
        case 1:
            return is_signed ? append_number(out, int{load<std::int8_t>(dtype, p)})
                             : append_number(out, unsigned{load<std::uint8_t>(dtype, p)});
        case 2:
            return is_signed ? append_number(out, int{load<std::int16_t>(dtype, p)})
                             : append_number(out, unsigned{load<std::uint16_t>(dtype, p)});
        case 4:
            return is_signed ? append_number(out, load<std::int32_t>(dtype, p))
                             : append_number(out, load<std::uint32_t>(dtype, p));
        default:
            return is_signed ? append_number(out, load<std::int64_t>(dtype, p))
                             : append_number(out, load<std::uint64_t>(dtype, p));
    }
}

std::string_view trimmed(std::string_view text) {
    while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
    while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
    return text;
}

/// The whole text as one number; nullopt if it is none. `out_of_range` tells whether it is out of range.
template <class T>
std::optional<T> number_of(std::string_view text, bool* out_of_range = nullptr) {
    if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
    T value{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = number_from_text(text.data(), end, value);
    if (out_of_range != nullptr) *out_of_range = error == std::errc::result_out_of_range && stop == end;
    return error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

[[noreturn]] void refuse(const DType& dtype, std::string_view text, std::string_view why = "") {
    constexpr std::size_t most = 200;
    throw invalid_argument("expected {}, found '{}{}'{}", dtype.to_string(), text.substr(0, most),
                           text.size() > most ? "…" : "", why);
}

template <class T, class Wide>
void parse_integer(const DType& dtype, std::string_view text, std::byte* p) {
    bool out_of_range = false;
    const std::optional<Wide> value = number_of<Wide>(trimmed(text), &out_of_range);
    const bool fits = value && *value >= std::numeric_limits<T>::min() && *value <= std::numeric_limits<T>::max();
    if (!fits) refuse(dtype, text, value || out_of_range ? ", which does not fit" : "");
    store<T>(dtype, static_cast<T>(*value), p);
}

void parse_integers(const DType& dtype, std::string_view text, std::byte* p) {
    const bool is_signed = dtype.kind() == Kind::integer;
    switch (dtype.size()) {
        case 1:
            return is_signed ? parse_integer<std::int8_t, std::int64_t>(dtype, text, p)
                             : parse_integer<std::uint8_t, std::uint64_t>(dtype, text, p);
        case 2:
            return is_signed ? parse_integer<std::int16_t, std::int64_t>(dtype, text, p)
                             : parse_integer<std::uint16_t, std::uint64_t>(dtype, text, p);
        case 4:
            return is_signed ? parse_integer<std::int32_t, std::int64_t>(dtype, text, p)
                             : parse_integer<std::uint32_t, std::uint64_t>(dtype, text, p);
        default:
            return is_signed ? parse_integer<std::int64_t, std::int64_t>(dtype, text, p)
                             : parse_integer<std::uint64_t, std::uint64_t>(dtype, text, p);
    }
}

template <class T>
T real_of(const DType& dtype, std::string_view part, std::string_view text) {
    bool out_of_range = false;
    const std::optional<T> value = number_of<T>(trimmed(part), &out_of_range);
    if (!value) refuse(dtype, text, out_of_range ? ", which does not fit" : "");
    return *value;
}

void parse_real(const DType& dtype, std::string_view text, std::byte* p) {
    if (dtype.kind() == Kind::bfloat16) {
        store(dtype, double_to_bfloat16(real_of<double>(dtype, text, text)), p);
    } else if (dtype.size() == 2) {
        store(dtype, double_to_half(real_of<double>(dtype, text, text)), p);
    } else if (dtype.size() == 4) {
        store(dtype, real_of<float>(dtype, text, text), p);
    } else {
        store(dtype, real_of<double>(dtype, text, text), p);
    }
}

/// "1+2j", "(1+2j)", "2j" or "1".
template <class T>
void parse_complex(const DType& dtype, std::string_view text, std::byte* p) {
    std::string_view part = trimmed(text);
    if (part.starts_with('(') && part.ends_with(')')) part = part.substr(1, part.size() - 2);
    T real = 0;
    T imaginary = 0;
    if (!part.ends_with('j')) {
        real = real_of<T>(dtype, part, text);
    } else {
        part.remove_suffix(1);
        // The sign between the two parts, neither at the beginning nor in an exponent.
        std::size_t at = part.size();
        while (at-- > 1) {
            if ((part[at] == '+' || part[at] == '-') && part[at - 1] != 'e' && part[at - 1] != 'E') break;
        }
        if (at == 0 || at == std::string_view::npos) {
            imaginary = real_of<T>(dtype, part, text);
        } else {
            real = real_of<T>(dtype, part.substr(0, at), text);
            imaginary = real_of<T>(dtype, part.substr(at), text);
        }
    }
    store(dtype, real, p);
    store(dtype, imaginary, p + sizeof(T));
}

std::optional<bool> boolean_of(std::string_view text) {
    if (text == "true" || text == "True" || text == "TRUE") return true;
    if (text == "false" || text == "False" || text == "FALSE") return false;
    return std::nullopt;
}

void parse_value(const DType& dtype, std::string_view text, std::byte* p) {
    const bool times = dtype.kind() == Kind::datetime || dtype.kind() == Kind::timedelta;
    const std::string_view word = times ? trimmed(text) : text;
    Value value{std::string(word)};
    if (const auto count = times ? number_of<std::int64_t>(word) : std::nullopt;
        count && dtype.kind() == Kind::timedelta) {
        value = Value(*count);
    }
    const ElementBytes bytes = element_from_value(dtype, value, Assign::exact);
    std::memcpy(p, bytes.data(), bytes.size());
}

void parse_text(const DType& dtype, std::string_view text, std::byte* p) {
    const auto length = static_cast<std::size_t>(dtype.size() / 4);
    if (text.size() > length || std::ranges::any_of(text, [](char c) { return c <= 0; })) {
        return parse_value(dtype, text, p);
    }
    for (std::size_t i = 0; i < length; ++i) {
        store(dtype, static_cast<std::uint32_t>(i < text.size() ? text[i] : 0), p + 4 * i);
    }
}

/// The unit of a date of ISO 8601 with all of its days ("2020-01-31"), perhaps with a time of day, as fine as it is
/// written: D, m, s, ms, us or ns. nullopt for anything else. A bare year is a number, and a month may be any text.
std::optional<TimeUnit::Base> time_of(std::string_view text) {
    constexpr std::size_t day = 10;  // "2020-01-31"
    if (text.size() < day || text[4] != '-' || text[7] != '-' || text[0] < '0' || text[0] > '9') return {};
    if (text.size() > day && text[day] != 'T' && text[day] != ' ') return {};
    TimeUnit::Base base = TimeUnit::Base::D;
    if (text.size() > day) {
        const std::string_view clock = text.substr(day + 1);
        const std::size_t point = clock.find('.');
        const std::size_t digits =
            point == std::string_view::npos
                ? 0
                : std::min(clock.find_first_not_of("0123456789", point + 1), clock.size()) - point - 1;
        if (digits > 9) return {};
        base = digits > 6   ? TimeUnit::Base::ns
               : digits > 3 ? TimeUnit::Base::us
               : digits > 0 ? TimeUnit::Base::ms
                            : TimeUnit::Base::s;
    }
    try {
        (void)parse_datetime(text, {base, 1}, false);
        return base;
    } catch (const Error&) {
        return {};
    }
}

bool is_nat_text(std::string_view text) {
    return text == "NaT" || text == "nat" || text == "NAT";
}

}  // namespace

CountedVector<CsvColumn> csv_columns(const DType& dtype) {
    CountedVector<CsvColumn> columns;
    add_columns(dtype, "", 0, columns);
    if (columns.empty()) throw unsupported("a .csv cannot hold structures without fields");
    return columns;
}

void append_csv_text(std::string& out, std::string_view text, bool alone) {
    const bool plain = text.find_first_of(",\"\n\r") == std::string_view::npos && trimmed(text).size() == text.size() &&
                       !(alone && text.empty());
    if (plain) {
        out += text;
        return;
    }
    out += '"';
    for (const char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    out += '"';
}

void append_csv(std::string& out, const DType& dtype, const std::byte* p, bool alone) {
    switch (dtype.kind()) {
        case Kind::boolean:
            out += std::to_integer<int>(*p) != 0 ? "true" : "false";
            return;
        case Kind::integer:
        case Kind::unsigned_integer:
            return append_integer(out, dtype, p);
        case Kind::real:
            if (dtype.size() == 8) {
                out += python_float_repr(load<double>(dtype, p));
                return;
            }
            if (dtype.size() == 4) {
                out += python_float_repr(load<float>(dtype, p));
                return;
            }
            break;
        case Kind::timedelta:
        case Kind::bytes:
        case Kind::text:
        case Kind::raw:
        case Kind::variable_text:
        case Kind::variable_bytes: {
            const Value value = element_to_value(dtype, p);
            return append_csv_text(out, value.is_string() ? value.as_string() : value.dump(), alone);
        }
        default:
            break;
    }
    out += element_to_text(dtype, p);
}

bool is_missing_csv(std::string_view text) {
    constexpr std::array<std::string_view, 8> words{"", "NA", "N/A", "n/a", "<NA>", "NULL", "null", "None"};
    // Most fields begin with a digit.
    return (text.empty() || text.front() < '0' || text.front() > '9') &&
           std::ranges::find(words, trimmed(text)) != words.end();
}

namespace {

/// The text that is parsed in place of a missing number.
std::string_view in_place_of_missing(const DType& dtype, std::string_view text, const std::string* missing) {
    if (missing != nullptr && dtype.kind() != Kind::datetime && dtype.kind() != Kind::timedelta) return *missing;
    switch (dtype.kind()) {
        case Kind::real:
        case Kind::bfloat16:
        case Kind::complex:
            return "nan";
        case Kind::datetime:
        case Kind::timedelta:
            return "NaT";
        default:
            throw invalid_argument(
                "expected {}, found '{}': say what stands for missing numbers, such as -9999 or, for floats, nan",
                dtype.to_string(), text);
    }
}

bool takes_missing(const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::boolean:
        case Kind::integer:
        case Kind::unsigned_integer:
        case Kind::real:
        case Kind::bfloat16:
        case Kind::complex:
        case Kind::datetime:
        case Kind::timedelta:
            return true;
        default:
            return false;
    }
}

}  // namespace

void parse_csv(const DType& dtype, std::string_view text, std::byte* p, const std::string* missing) {
    if (is_missing_csv(text) && takes_missing(dtype)) text = in_place_of_missing(dtype, text, missing);
    switch (dtype.kind()) {
        case Kind::boolean: {
            const std::string_view word = trimmed(text);
            const auto value = word == "1"   ? std::optional(true)
                               : word == "0" ? std::optional(false)
                                             : boolean_of(word);
            if (!value) refuse(dtype, text);
            *p = static_cast<std::byte>(*value ? 1 : 0);
            return;
        }
        case Kind::integer:
        case Kind::unsigned_integer:
            return parse_integers(dtype, text, p);
        case Kind::real:
        case Kind::bfloat16:
            return parse_real(dtype, text, p);
        case Kind::complex:
            return dtype.size() == 8 ? parse_complex<float>(dtype, text, p) : parse_complex<double>(dtype, text, p);
        case Kind::text:
            return parse_text(dtype, text, p);
        default:
            return parse_value(dtype, text, p);
    }
}

// ---- the kind of a column

bool CsvKind::is_word(std::string_view text) {
    text = trimmed(text);
    bool out_of_range = false;
    return !is_missing_csv(text) && !number_of<double>(text, &out_of_range) && !out_of_range && !boolean_of(text) &&
           !time_of(text);
}

/// Notes an integer that no float64 is equal to.
void CsvKind::note_wide(std::string_view text) {
    const auto real = number_of<double>(text);
    constexpr double beyond = 18446744073709551616.0;  // 2^64
    if (!real || std::abs(*real) >= beyond) {
        ++wide_;
    } else if (const auto integer = number_of<std::int64_t>(text)) {
        constexpr double past = 9223372036854775808.0;  // 2^63
        if (*real >= past || static_cast<std::int64_t>(*real) != *integer) ++wide_;
    } else if (const auto large = number_of<std::uint64_t>(text)) {
        if (static_cast<std::uint64_t>(*real) != *large) ++wide_;
    }
}

/// The most frequent fields are told without a conversion: "-12", "3.25".
bool CsvKind::add_plain_number(std::string_view text) {
    constexpr std::size_t most = 18;          // digits that int64 holds
    constexpr std::size_t float_digits = 15;  // and float64
    const bool minus = text.starts_with('-');
    std::size_t digits = 0;
    std::size_t points = 0;
    char any = 0;
    for (const char c : text.substr(minus ? 1 : 0)) {
        if (c >= '0' && c <= '9') {
            ++digits;
            any |= c - '0';
        } else if (c != '.' || ++points > 1) {
            return false;
        }
    }
    if (digits == 0 || digits > most) return false;
    points == 0 ? ++integers_ : ++reals_;
    if (points == 0 && digits > float_digits) note_wide(text);
    if (minus && points == 0 && any != 0) ++negative_;
    longest_ = std::max(longest_, std::ssize(text));
    return true;
}

void CsvKind::add(std::string_view text) {
    ++fields_;
    if (add_plain_number(text)) return;
    if (const auto characters = count_utf8(text)) {
        longest_ = std::max(longest_, static_cast<std::int64_t>(*characters));
    } else {
        throw invalid_argument("found text that is not UTF-8");
    }
    text = trimmed(text);
    if (is_missing_csv(text)) {
        ++missing_;
    } else if (const auto integer = number_of<std::int64_t>(text)) {
        ++integers_;
        note_wide(text);
        if (*integer < 0) ++negative_;
    } else if (number_of<std::uint64_t>(text)) {
        ++integers_;
        note_wide(text);
        ++large_;
    } else if (number_of<double>(text)) {
        const bool digits_only = text.find_first_not_of("+-0123456789") == std::string_view::npos;
        if (digits_only)
            throw invalid_argument("no integer type holds {}", text).advising(Action::dtype, "rounds it", "f8");
        ++reals_;
    } else if (boolean_of(text)) {
        ++booleans_;
    } else if (const auto unit = time_of(text)) {
        ++times_;
        finest_ = std::max(finest_, static_cast<int>(*unit));
        // Nanoseconds reach from 1678 to 2261.
        const std::string_view year = text.substr(0, 4);
        if (year < "1679" || year > "2261") ++far_times_;
    } else if (is_nat_text(text)) {
        ++no_times_;
    }
}

void CsvKind::add(const CsvKind& o) {
    fields_ += o.fields_;
    missing_ += o.missing_;
    integers_ += o.integers_;
    large_ += o.large_;
    negative_ += o.negative_;
    wide_ += o.wide_;
    reals_ += o.reals_;
    booleans_ += o.booleans_;
    times_ += o.times_;
    far_times_ += o.far_times_;
    no_times_ += o.no_times_;
    finest_ = std::max(finest_, o.finest_);
    longest_ = std::max(longest_, o.longest_);
}

bool CsvKind::is_time() const {
    const bool fits = finest_ != static_cast<int>(TimeUnit::Base::ns) || far_times_ == 0;
    return times_ > 0 && times_ + no_times_ + missing_ == fields_ && fits;
}

bool CsvKind::is_text() const {
    const std::int64_t numbers = integers_ + reals_;
    return numbers + missing_ != fields_ && booleans_ + missing_ != fields_ && !is_time();
}

bool CsvKind::same_kind(const CsvKind& o) const {
    return is_text() == o.is_text() && is_time() == o.is_time() && (booleans_ > 0) == (o.booleans_ > 0);
}

DType CsvKind::dtype() const {
    if (is_text() || missing_ == fields_) return DType::text(longest_, ByteOrder::little);
    if (is_time()) {
        return DType::time(Kind::datetime, {static_cast<TimeUnit::Base>(finest_), 1}, ByteOrder::little);
    }
    if (booleans_ > 0) return DType::scalar(Kind::boolean, 1, ByteOrder::none);
    if (reals_ > 0 && wide_ > 0) {
        throw invalid_argument("integers of so many digits lose some as floats, which other fields need")
            .advising(Action::dtype, "rounds them", "f8");
    }
    if (reals_ > 0) return DType::scalar(Kind::real, 8, ByteOrder::little);
    if (large_ > 0 && negative_ > 0) {
        throw invalid_argument("no integer type holds all of these numbers")
            .advising(Action::dtype, "rounds them", "f8");
    }
    return DType::scalar(large_ > 0 ? Kind::unsigned_integer : Kind::integer, 8, ByteOrder::little);
}

}  // namespace tessera
