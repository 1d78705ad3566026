// Moving folders where the file system cannot rename them. Private to the store module.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

namespace tessera {

/// Copies the first `size` bytes of one open file to another, empty one, without taking them through memory. `clones`
/// says whether a reflink is tried first, and is cleared once one has failed. False if the kernel cannot copy between
/// these two (EXDEV, EINVAL, …); the new file may then hold a part. Throws io if a write fails.
[[nodiscard]] bool copy_in_kernel(int from, int to, std::uint64_t size, std::atomic<bool>& clones);

/// renameat() to a name that must not exist yet. False, with errno, if it fails: EEXIST, EXDEV, ….
[[nodiscard]] bool rename_new(int from_folder, const char* from, int to_folder, const char* to);

/// Moves a folder that cannot be renamed (EXDEV) as mv does: copies it, with times, permissions and links, under a
/// hidden name beside the new one, makes that durable, renames it, and removes the old folder. False with errno EEXIST
/// if `to` exists. `path` is that of the old folder, for messages. Throws io, and then the old folder is as it was,
/// unless the new one is complete.
[[nodiscard]] bool move_across(int from_folder, const char* from, int to_folder, const char* to,
                               const std::string& path);

/// move_across() by paths. Throws io if `to` exists.
void move_folder(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace tessera
