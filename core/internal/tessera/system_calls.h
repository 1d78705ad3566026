// The calls that only Linux has, or only new systems: all of them stand in system_calls.cpp, which has for each what
// POSIX has in its place. That is compiled on other systems, and with TESSERA_POSIX_ONLY. tools/docs/portability.md
// says what is weaker then.
//
// As those of the system, they set errno where they fail. Any thread may call them.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace tessera::os {

/// Whether there is a call that writes one file system to the disk.
extern const bool syncs_file_systems;

/// Flag of a folder or file that is opened only to look at it and from it: O_PATH, or O_RDONLY, which takes the right
/// to read.
extern const int lookup;

/// Two names change places in one step. False, and ENOSYS, where there is no such call; EINVAL from some file systems.
[[nodiscard]] bool exchange(const char* one, const char* other);
/// renameat() that replaces nothing; false, and ENOSYS or EINVAL, where that cannot be had.
[[nodiscard]] bool rename_new(int from_folder, const char* from, int to_folder, const char* to);
/// A new file without a name in this folder; negative where that cannot be had. `flags` are O_WRONLY or O_RDWR.
[[nodiscard]] int open_unnamed(int at, const char* folder, int flags, mode_t mode);
/// Opens a path below a folder, through no link. nullopt where no single call does so.
[[nodiscard]] std::optional<int> open_beneath(int directory, const char* path, int flags, mode_t mode);

/// Makes a file share the room of another one; false where that cannot be had.
[[nodiscard]] bool clone(int to, int from);
/// Bytes copied by the system from where both files stand; negative, and EXDEV, where it cannot.
[[nodiscard]] ssize_t copy_range(int from, int to, std::size_t size);
/// Gives room of a file back, which then reads as zeros; false where that cannot be had.
bool punch(int file, std::uint64_t offset, std::uint64_t size);

/// fcntl() with a lock that belongs to the open file. -1, and EINVAL, where there are only locks of a process, which
/// any close of the file drops.
[[nodiscard]] int lock(int file, struct flock& range, bool wait);

/// What a name is, a link itself.
struct Facts {
    mode_t mode = 0;
    bool immutable = false;  ///< as far as the system tells
    std::uint64_t device = 0,
                  mount = 0;  ///< renaming takes the same of both; `mount` is 0 where the system does not tell
};
[[nodiscard]] bool facts_of(int folder, const char* name, Facts& facts);
/// Asks the server behind a file system for what it now knows of a name.
void refresh(int folder, const char* name);

/// Whether a folder is on FUSE.
[[nodiscard]] bool is_fuse(int folder);
/// Whether sync_file_system() writes all of this folder's file system to the disk, and waits.
[[nodiscard]] bool syncs_as_a_whole(int folder);
/// Writes the file system of an open file to the disk. Where there is no such call, it is sync(), which POSIX lets
/// return before all is written.
[[nodiscard]] bool sync_file_system(int file);

/// Memory to share with another process by its descriptor, which exec() closes. It cannot become shorter where the
/// system has seals. `name` is for people.
[[nodiscard]] int shared_memory(const char* name);
/// Limits the address space of another process, as far as its hard limit; false where only a process itself can.
bool limit_memory(pid_t process, std::uint64_t bytes, bool as_far_as_may_be);
/// Closes all descriptors from this one on.
void close_from(unsigned first);
/// The name that this process shows to others.
void name_process(const char* name);
/// The path by which this program was started, if the system keeps it.
[[nodiscard]] std::string started_by();

/// An extended attribute, as ssize_t fgetxattr() and lgetxattr() of `path`; -1, and EOPNOTSUPP, where there are none.
[[nodiscard]] ssize_t attribute(int file, const char* name, char* to, std::size_t size);
[[nodiscard]] ssize_t attribute(const char* path, const char* name, char* to, std::size_t size);
[[nodiscard]] bool set_attribute(int file, const char* name, const std::string& value);
void remove_attribute(int file, const char* name);

}  // namespace tessera::os
