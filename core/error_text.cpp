#include <tessera/error_text.h>

namespace tessera {

Error error_text(ErrorCode code, fmt::string_view format, fmt::format_args arguments) {
    return {code, fmt::vformat(format, arguments)};
}

}  // namespace tessera
