#include "directories.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <fmt/format.h>
#include <tessera/descriptor.h>
#include <tessera/error.h>
#include <tessera/fnv.h>
#include <tessera/system_calls.h>

#include <unistd.h>

#include <cerrno>

#include "beneath.h"

namespace tessera {

namespace fs = std::filesystem;

fs::file_status status_of(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::status_known(status)) throw io_error("looking at", path.string(), error.value());
    return status;
}

fs::path resolved(const fs::path& path) {
    std::error_code error;
    fs::path real = fs::exists(status_of(path)) ? fs::canonical(path, error) : fs::path();
    if (real.empty() || error) real = path;
    if (!real.has_filename()) real = real.parent_path();  // a trailing '/'
    return real;
}

std::string hidden_name(const fs::path& node, std::string_view what) {
    const std::string name = node.filename().string();
    std::string hidden = fmt::format(".{}.tessera-{}", name, what);
    if (hidden.size() <= NAME_MAX) return hidden;
    const std::string end = fmt::format("~{:016x}.tessera-{}", fnv1a(name), what);
    std::size_t kept = NAME_MAX - 1 - end.size();
    while (kept > 0 && (static_cast<unsigned char>(name[kept]) & 0xc0U) == 0x80U) --kept;  // whole characters
    return fmt::format(".{}{}", std::string_view(name).substr(0, kept), end);
}

std::vector<fs::path> make_directories(const fs::path& path, Durability durability) {
    std::vector<fs::path> missing;
    for (fs::path p = path; !p.empty() && !fs::exists(status_of(p)) && p != p.parent_path(); p = p.parent_path()) {
        missing.push_back(p);
    }
    std::error_code error;
    fs::create_directories(path, error);
    if (error) throw io_error("making the directory", path.string(), error.value());
    for (const fs::path& made : missing) {
        const fs::path above = made.has_parent_path() ? made.parent_path() : ".";
        if (durability != Durability::none && !sync_directory(AT_FDCWD, above.c_str()) && !is_absent(errno)) {
            throw io_error("writing to the disk", above.string(), errno);
        }
    }
    return missing;
}

void remove_tree(const fs::path& path) {
    const fs::path above = path.has_parent_path() ? path.parent_path() : fs::path(".");
    const Descriptor directory(open_at(AT_FDCWD, above.c_str(), os::lookup | O_DIRECTORY));
    if (!directory && is_absent(errno)) return;
    if (!directory) throw io_error("opening", above.string(), errno);
    remove_beneath(directory.get(), path.filename().c_str(), path.string());
}

void require_shared(int folder, const char* name, const std::string& path) {
    constexpr mode_t others = 0066;
    struct stat status {};
    if (::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || (status.st_mode & others) != 0 ||
        status.st_uid == ::geteuid() || ::faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) != 0) {
        return;
    }
    throw io_error("a run that was killed left this lock file to its owner alone; if none is at work, remove it:", path,
                   EACCES);
}

std::optional<FileId> folder_id(const fs::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return std::nullopt;
    return id_of(status);
}

}  // namespace tessera
