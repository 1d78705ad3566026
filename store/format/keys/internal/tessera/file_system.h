// Which of Tessera's guarantees the file system of a path cannot keep.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct FileSystem {
    std::string type;                 ///< the system's name for it: "ext4", "nfs4", "lustre"; empty if unknown
    std::vector<std::string> limits;  ///< a sentence for each guarantee that does not fully hold there
};

/// The file system that holds `path`, or would hold it if nothing is there yet, according to Linux's table of mounts.
/// Empty on other systems. Any thread may call it. Throws only bad_alloc.
[[nodiscard]] FileSystem file_system_of(const std::filesystem::path& path);

/// The same by a table of mounts in the format of /proc/self/mountinfo (proc(5)). `path` is absolute, without links.
[[nodiscard]] FileSystem file_system_in(std::istream& mounts, std::string_view path);

}  // namespace tessera
