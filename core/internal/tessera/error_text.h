// The makers of error.h with a format and its arguments for a message: `throw corrupt("{}: {} bytes", key, size)`.
//
// Not installed: whoever uses the library need not have fmt.
#pragma once

#include <tessera/error.h>

#include <fmt/core.h>

namespace tessera {

/// An error whose message is `format` with `arguments`.
[[nodiscard]] Error error_text(ErrorCode code, fmt::string_view format, fmt::format_args arguments);

template <class First, class... Rest>
[[nodiscard]] Error invalid_argument(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
    return error_text(ErrorCode::invalid_argument, format, fmt::make_format_args(first, rest...));
}
template <class First, class... Rest>
[[nodiscard]] Error out_of_bounds(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
    return error_text(ErrorCode::out_of_bounds, format, fmt::make_format_args(first, rest...));
}
template <class First, class... Rest>
[[nodiscard]] Error not_found(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
    return error_text(ErrorCode::not_found, format, fmt::make_format_args(first, rest...));
}
template <class First, class... Rest>
[[nodiscard]] Error already_exists(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
    return error_text(ErrorCode::already_exists, format, fmt::make_format_args(first, rest...));
}
template <class First, class... Rest>
[[nodiscard]] Error corrupt(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
    return error_text(ErrorCode::corrupt, format, fmt::make_format_args(first, rest...));
}
template <class First, class... Rest>
[[nodiscard]] Error unsupported(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
    return error_text(ErrorCode::unsupported, format, fmt::make_format_args(first, rest...));
}
template <class First, class... Rest>
[[nodiscard]] Error over_budget(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
    return error_text(ErrorCode::budget, format, fmt::make_format_args(first, rest...));
}
template <class First, class... Rest>
[[nodiscard]] Error cancelled(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
    return error_text(ErrorCode::cancelled, format, fmt::make_format_args(first, rest...));
}

}  // namespace tessera
