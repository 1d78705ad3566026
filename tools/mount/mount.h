// A mounted folder: what Mounted shows, as files that any program opens.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

#include "mounted.h"

namespace tessera::mount {

/// Whether this build can mount; else show() throws unsupported, saying what was missing.
[[nodiscard]] bool can_mount();

/// Shows an array or a group in an empty folder until `stop` is requested or somebody unmounts it. Calls `ready` once
/// files can be opened. `others`: users other than this one may read, too, where the system allows it. Throws
/// invalid_argument for a folder that is not empty, and io if the system refuses.
void show(const std::string& path, const std::filesystem::path& folder, const MountOptions& options, bool others,
          const std::stop_token& stop, const std::function<void()>& ready);

}  // namespace tessera::mount
