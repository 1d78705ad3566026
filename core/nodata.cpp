#include <tessera/nodata.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <fmt/format.h>

#include <tessera/error.h>
#include <tessera/number_text.h>
#include <tessera/value.h>

namespace tessera {

namespace {

/// Trimmed, in small letters, with a point.
std::string plain_number(std::string_view text) {
    constexpr std::string_view blanks = " \t\r\n\0";
    const std::size_t begin = text.find_first_not_of(blanks);
    if (begin == std::string_view::npos) return {};
    std::string plain(text.substr(begin, text.find_last_not_of(blanks) + 1 - begin));
    for (char& c : plain) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (plain.find('.') == std::string::npos && std::ranges::count(plain, ',') == 1) plain[plain.find(',')] = '.';
    if (plain.starts_with('+')) plain.erase(0, 1);
    return plain;
}

std::optional<double> number_of(const std::string& plain) {
    const bool minus = plain.starts_with('-');
    const std::string_view size = std::string_view(plain).substr(minus ? 1 : 0);
    if (size == "nan" || size.starts_with("1.#ind") || size.starts_with("1.#qnan") || size.starts_with("1.#snan")) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    if (size == "inf" || size == "infinity" || size.starts_with("1.#inf")) {
        return minus ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    }
    double number = 0;
    const char* const end = plain.data() + plain.size();
    const auto [stop, error] = number_from_text(plain.data(), end, number);
    if (stop != end || plain.empty() || error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc::result_out_of_range) {
        const std::size_t exponent = plain.find('e');
        if (exponent != std::string::npos && plain[exponent + 1] == '-') return 0.0;
        return minus ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    }
    return number;
}

int digits_of(std::string_view plain) {
    int digits = 0;
    for (const char c : plain.substr(0, plain.find('e'))) {
        if (c >= '0' && c <= '9' && (c != '0' || digits > 0)) ++digits;
    }
    return digits;
}

std::optional<Value> integer_of(const std::string& plain) {
    const char* const end = plain.data() + plain.size();
    std::int64_t n = 0;
    if (const auto [stop, error] = std::from_chars(plain.data(), end, n); stop == end && error == std::errc()) return n;
    std::uint64_t large = 0;
    if (const auto [stop, error] = std::from_chars(plain.data(), end, large); stop == end && error == std::errc()) {
        return large;
    }
    const auto number = number_of(plain);
    constexpr double most = 9007199254740992.0;  // up to which doubles are integers
    if (!number || std::trunc(*number) != *number || std::abs(*number) > most) return std::nullopt;
    return static_cast<std::int64_t>(*number);
}

/// nullopt if the dtype cannot hold the value.
std::optional<Nodata> assigned(const DType& dtype, const Value& value, Assign rule) {
    try {
        return Nodata{.element = element_from_value(dtype, value, rule)};
    } catch (const Error&) {
        return std::nullopt;
    }
}

}  // namespace

std::optional<Nodata> parse_nodata(std::string_view text, const DType& dtype) {
    const std::string plain = plain_number(text);
    if (dtype.kind() != Kind::real) {
        const auto integer = plain.empty() ? std::nullopt : integer_of(plain);
        if (!integer) return std::nullopt;
        if (dtype.kind() != Kind::boolean) return assigned(dtype, *integer, Assign::exact);
        return *integer == Value(0) || *integer == Value(1) ? assigned(dtype, *integer == Value(1), Assign::exact)
                                                            : std::nullopt;
    }
    const auto number = number_of(plain);
    if (!number) return std::nullopt;
    const int all_digits = dtype.size() == 2 ? 5 : dtype.size() == 4 ? 9 : 17;
    const double extreme = dtype.size() == 2   ? 65504
                           : dtype.size() == 4 ? double{std::numeric_limits<float>::max()}
                                               : std::numeric_limits<double>::max();
    const int digits = digits_of(plain);
    constexpr int least_digits = 6;  // as %g prints
    if (digits >= least_digits && std::isfinite(*number) &&
        fmt::format("{:.{}e}", std::abs(*number), digits - 1) == fmt::format("{:.{}e}", extreme, digits - 1)) {
        return assigned(dtype, std::copysign(extreme, *number), Assign::numpy);
    }
    auto nodata = assigned(dtype, *number, Assign::numpy);
    constexpr double few_digits = 4.8e-7;  // as GDAL compares
    if (nodata && std::isfinite(*number) && digits < all_digits) nodata->tolerance = few_digits;
    return nodata;
}

}  // namespace tessera
