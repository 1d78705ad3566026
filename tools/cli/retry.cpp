#include "retry.h"

#include <sys/stat.h>

#include <tessera/store_kind.h>

namespace tessera::cli {

Identities identities_of(const std::vector<std::string>& paths) {
    Identities identities;
    for (const std::string& path : paths) {
        struct stat status {};
        const bool there = is_local(path) && ::stat(path.c_str(), &status) == 0;
        identities.emplace_back(
            there ? std::optional(std::pair<std::uint64_t, std::uint64_t>(status.st_dev, status.st_ino))
                  : std::nullopt);
    }
    return identities;
}

}  // namespace tessera::cli
