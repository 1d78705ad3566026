// Replaces mount.cpp if libfuse was missing at build time.
#include <tessera/error.h>

#include "../mount.h"

namespace tessera::mount {

bool can_mount() {
    return false;
}

void show(const std::string& /*path*/, const std::filesystem::path& /*folder*/, const MountOptions& /*options*/,
          bool /*others*/, const std::stop_token& /*stop*/, const std::function<void()>& /*ready*/) {
    throw unsupported("this build cannot mount: libfuse (libfuse3-dev) was not there when it was made");
}

}  // namespace tessera::mount
