#include "overlap.h"

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/error.h>
#include <tessera/place.h>
#include <filesystem>

namespace tessera::cli {

void require_apart(const std::vector<std::string>& sources, const std::string& destination) {
    const std::filesystem::path file = split_array_path(destination).path;
    const std::string to = real_path(file).string() + '/';
    for (const std::string& source : sources) {
        const std::filesystem::path path = split_array_path(source).path;
        const std::string from = real_path(path).string() + '/';
        std::error_code ignored;
        const bool local = is_local(path) && is_local(file);
        const bool same = local && std::filesystem::equivalent(path, file, ignored);  // or a hard link of it
        if (!from.starts_with(to) && !to.starts_with(from) && !same) continue;
        throw invalid_argument(
            fmt::format("{} is read, and cannot lie where {} is written; choose another place", source, destination));
    }
}

}  // namespace tessera::cli
