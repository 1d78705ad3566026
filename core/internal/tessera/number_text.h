// Numbers of text, as std::from_chars reads them: in no locale, from "1.5e3" and not from " 1.5" or "+1.5". libc++
// before 20 has it for integers alone.
#pragma once

#include <charconv>

namespace tessera {

/// As std::from_chars, by the C library: `number` is left as it is on an error. Of a number too large or too small the
/// error is result_out_of_range, and `ptr` is behind it. Any thread may call it.
[[nodiscard]] std::from_chars_result real_from_text(const char* first, const char* last, float& number);
[[nodiscard]] std::from_chars_result real_from_text(const char* first, const char* last, double& number);

/// As std::from_chars; by real_from_text where the standard library has no such function.
template <class Number>
[[nodiscard]] std::from_chars_result number_from_text(const char* first, const char* last, Number& number) {
    if constexpr (requires { std::from_chars(first, last, number); }) {
        return std::from_chars(first, last, number);
    } else {
        return real_from_text(first, last, number);
    }
}

}  // namespace tessera
