// Helpers (which use libhdf5 and libtiff) as programs see them. Programs without files beside them are their own
// helper.
#pragma once

#include <string>
#include <vector>

namespace tessera {

/// From now on helpers are this program, started with the arguments that is_helper() knows.
void be_own_helper();
/// Whether this program was started so: it then has to return what serve_as_helper() returns.
[[nodiscard]] bool is_helper(int argc, const char* const* argv);
/// Answers requests until the connection ends; returns the program's exit code. In tessera_own_helper, which is linked
/// with those libraries.
int serve_as_helper(int argc, const char* const* argv);
/// Of paths of files that are going to be read: if one of them needs a helper, starts it in the background.
void expect_files(const std::vector<std::string>& paths) noexcept;

}  // namespace tessera
