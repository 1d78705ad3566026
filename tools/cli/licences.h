// The licences of the libraries that the program holds.
#pragma once

#include <string_view>

namespace tessera::cli {

/// THIRD-PARTY.md, which the build makes (tools/release/third_party.py): Markdown in UTF-8. Safe from any thread.
[[nodiscard]] std::string_view third_party_licences();

}  // namespace tessera::cli
