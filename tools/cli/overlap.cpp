#include "overlap.h"

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/error.h>
#include <tessera/place.h>
#include <filesystem>

namespace tessera::cli {

void require_apart(const std::vector<std::string>& sources, const std::string& destination) {
    const std::filesystem::path file = split_array_path(destination).path;
    const std::string to = real_path(file).string();  // ends in '/'
    for (const std::string& source : sources) {
        const std::filesystem::path path = split_array_path(source).path;
        const std::string from = real_path(path).string();
        std::error_code ignored;  // a hard link is the same file too
        if (!from.starts_with(to) && !to.starts_with(from) && !std::filesystem::equivalent(path, file, ignored))
            continue;
        throw invalid_argument(
            fmt::format("{} is read, and cannot lie where {} is written; choose another place", source, destination));
    }
}

}  // namespace tessera::cli
