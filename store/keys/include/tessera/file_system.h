// What the file system that holds a path lacks of what Tessera's promises rest on.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct FileSystem {
    std::string type;                 ///< as the system calls it: "ext4", "nfs4", "lustre"; empty where it does not say
    std::vector<std::string> limits;  ///< a sentence for each promise that does not hold there in full
};

/// The file system that holds `path`, or will hold it where nothing is there yet, by Linux's table of mounts. Elsewhere
/// nothing is known, and the result is empty. Any thread may call it. Throws nothing but bad_alloc.
[[nodiscard]] FileSystem file_system_of(const std::filesystem::path& path);

/// The same by a table of mounts in the format of /proc/self/mountinfo (proc(5)). `path` is absolute, without links.
[[nodiscard]] FileSystem file_system_in(std::istream& mounts, std::string_view path);

}  // namespace tessera
