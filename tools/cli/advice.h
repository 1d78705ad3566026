// What the library advises, in the program's options and commands.
#pragma once

#include <string>
#include <vector>

#include <tessera/error.h>

namespace tessera::cli {

/// A message and what can be done: "…; --overwrite replaces it".
[[nodiscard]] std::string advised(const std::string& message, const std::vector<Advice>& advice);
[[nodiscard]] std::string message_of(const Error& error);

}  // namespace tessera::cli
