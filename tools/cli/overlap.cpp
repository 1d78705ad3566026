#include "overlap.h"

#include <tessera/array_file.h>
#include <tessera/error_text.h>
#include <tessera/locate.h>
#include <tessera/place.h>
#include <filesystem>
#include <optional>

namespace tessera::cli {

void require_apart(const std::vector<std::string>& sources, const std::string& destination) {
    const std::filesystem::path file = split_array_path(destination).path;
    const std::string to = real_path(file).string() + '/';
    const std::optional<PathFacts> written = is_local(file) ? path_facts(file) : std::nullopt;
    for (const std::string& source : sources) {
        const std::filesystem::path path = split_array_path(source).path;
        const std::string from = real_path(path).string() + '/';
        const std::optional<PathFacts> read = written && is_local(path) ? path_facts(path) : std::nullopt;
        const bool same = read && read->device == written->device && read->inode == written->inode;  // a hard link
        if (!from.starts_with(to) && !to.starts_with(from) && !same) continue;
        throw invalid_argument("{} is read, and cannot lie where {} is written; choose another place", source,
                               destination);
    }
}

}  // namespace tessera::cli
