// Operations on directories by path, outside any store. Private to the store module.
#pragma once

#include <sys/stat.h>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>

namespace tessera {

/// The status of `path`, following links. Throws io if it cannot be determined, because that does not mean that nothing
/// is there.
[[nodiscard]] std::filesystem::file_status status_of(const std::filesystem::path& path);

/// `path` without a '/' at the end. If it is a link to a directory, that directory, so that the link stays.
[[nodiscard]] std::filesystem::path resolved(const std::filesystem::path& path);

/// The name of a temporary thing beside an array or group: ".grid.zarr.tessera-new". The end of a long name is replaced
/// by a hash, so that file systems accept it.
[[nodiscard]] std::string hidden_name(const std::filesystem::path& node, std::string_view what);

/// Creates a directory and missing ones above it, durably except with Durability::none. Returns the created ones, the
/// lowest first. Throws io.
std::vector<std::filesystem::path> make_directories(const std::filesystem::path& path, Durability durability);

/// Removes everything at `path`, if anything. Throws io.
void remove_tree(const std::filesystem::path& path);

/// Throws io if a lock file in a folder in which this user may write is one that its owner alone may open.
void require_shared(int folder, const char* name, const std::string& path);

/// The identity of a folder or file, independent of its name.
[[nodiscard]] inline FileId id_of(const struct stat& status) {
    return {.device = status.st_dev, .inode = status.st_ino};
}
/// The identity of the target of a path; nullopt if there is none.
[[nodiscard]] std::optional<FileId> folder_id(const std::filesystem::path& path);

}  // namespace tessera
