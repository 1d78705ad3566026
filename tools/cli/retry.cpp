#include "retry.h"

#include <tessera/locate.h>
#include <tessera/store_kind.h>

namespace tessera::cli {

Identities identities_of(const std::vector<std::string>& paths) {
    Identities identities;
    for (const std::string& path : paths) {
        const std::optional<PathFacts> facts = is_local(path) ? path_facts(path) : std::nullopt;
        identities.push_back(facts ? std::optional(std::pair(facts->device, facts->inode)) : std::nullopt);
    }
    return identities;
}

}  // namespace tessera::cli
