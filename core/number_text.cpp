#include <tessera/number_text.h>

#include <locale.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace tessera {

namespace {

bool is_decimal_digit(char c) {
    return c >= '0' && c <= '9';
}

bool begins_in_any_case(std::string_view text, std::string_view word) {
    const auto same = [](char a, char b) { return a == b || (a >= 'A' && a <= 'Z' && a - 'A' + 'a' == b); };
    return text.size() >= word.size() &&
           std::equal(word.begin(), word.end(), text.begin(), [&](char b, char a) { return same(a, b); });
}

/// How long "nan" is, or "nan(letters)".
std::size_t nan_text_length(std::string_view text) {
    const std::size_t close = text.size() > 3 && text[3] == '(' ? text.find(')', 4) : std::string_view::npos;
    if (close == std::string_view::npos) return 3;
    const auto is_word = [](char c) {
        return is_decimal_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    return std::ranges::all_of(text.substr(4, close - 4), is_word) ? close + 1 : 3;
}

/// How long a number without its sign is; 0 if there is none.
std::size_t real_length(std::string_view text) {
    if (begins_in_any_case(text, "infinity")) return 8;
    if (begins_in_any_case(text, "inf")) return 3;
    if (begins_in_any_case(text, "nan")) return nan_text_length(text);
    std::size_t at = 0;
    const auto digits = [&] {
        const std::size_t begin = at;
        while (at < text.size() && is_decimal_digit(text[at])) ++at;
        return at - begin;
    };
    std::size_t count = digits();
    if (at < text.size() && text[at] == '.') {
        ++at;
        count += digits();
    }
    if (count == 0) return 0;
    const std::size_t end = at;
    if (at == text.size() || (text[at] != 'e' && text[at] != 'E')) return end;
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    return digits() > 0 ? at : end;
}

template <class Real>
std::from_chars_result read_real_text(const char* first, const char* last, Real& number,
                                      Real (*of_text)(const char*, char**, locale_t)) {
    const std::string_view text(first, static_cast<std::size_t>(last - first));
    const std::size_t sign = text.starts_with('-') ? 1 : 0;
    const std::size_t length = real_length(text.substr(sign));
    if (length == 0) return {first, std::errc::invalid_argument};
    // Never freed: threads may still read when the process ends.
    static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
    const std::string copy(text.substr(0, sign + length));  // which ends with a zero
    const int before = std::exchange(errno, 0);
    const Real found = of_text(copy.c_str(), nullptr, plain);
    // Of numbers below the normal ones errno tells, too, though they are right.
    const bool beyond = errno == ERANGE && (found == 0 || std::isinf(found));
    errno = before;
    if (beyond) return {first + sign + length, std::errc::result_out_of_range};
    number = found;
    return {first + sign + length, std::errc()};
}

}  // namespace

std::from_chars_result real_from_text(const char* first, const char* last, float& number) {
    return read_real_text<float>(first, last, number, ::strtof_l);
}

std::from_chars_result real_from_text(const char* first, const char* last, double& number) {
    return read_real_text<double>(first, last, number, ::strtod_l);
}

}  // namespace tessera
