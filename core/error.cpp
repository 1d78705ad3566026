#include <fmt/format.h>

#include <tessera/error_text.h>

#include <cerrno>
#include <system_error>

namespace tessera {

Error io_error(std::string_view doing, std::string_view path, int error_number) {
    std::string message = std::string(doing) + " " + std::string(path) + ": ";
    message += std::generic_category().message(error_number);
    if (error_number == ENOSPC || error_number == EDQUOT) {
        message += " (free some space and try again; what was there before is unchanged)";
    }
    return {error_number == ENOENT ? ErrorCode::not_found : ErrorCode::io, message};
}

Error error_text(ErrorCode code, fmt::string_view format, fmt::format_args arguments) {
    return {code, fmt::vformat(format, arguments)};
}

}  // namespace tessera
