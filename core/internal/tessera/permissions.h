// Who may read and write a file: given from one file to another. For the modules above, too, but not installed.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>

namespace tessera {

/// Mode, owner, group and access list of a file or a folder.
struct Permissions {
    mode_t mode = 0;  ///< 07777
    uid_t owner = 0;
    gid_t group = 0;
    std::string list = {};  ///< the attribute system.posix_acl_access; empty if there is none
    friend bool operator==(const Permissions&, const Permissions&) = default;
};

[[nodiscard]] Permissions permissions_from(const struct stat& status);

/// The access list of an open file or folder, and the one that new files in an open folder get. Empty if there is none.
/// `supported`, if given, becomes false if the file system has no such lists.
[[nodiscard]] std::string access_list(int file, bool* supported = nullptr);
[[nodiscard]] std::string default_list(int folder, bool* supported = nullptr);
/// The same of a name in an open folder. A link is not followed.
[[nodiscard]] std::string access_list_at(int folder, const char* name, bool* supported = nullptr);

/// Gives an open file that this process made the permissions `wanted`, as far as this user may; `now` is what it has.
/// Only root gives the owner. False if the group cannot be given: then nobody gets the group's rights, because they
/// would go to another group.
bool give_permissions(int file, const Permissions& now, const Permissions& wanted);

/// The permissions of a folder made in `above`: the same, without the sticky bit. nullopt if an access list for what is
/// made there decides.
[[nodiscard]] std::optional<Permissions> permissions_below(int above);

/// For a file or folder that this process made in `folder`: whoever may read or change names there may also read or
/// write it. `file` is open and has the status `status`. Does nothing for another user's file. False as in
/// give_permissions().
bool share_with_folder(int file, const struct stat& status, int folder);

/// mkdirat() with permissions_below(). The same result; false with errno EEXIST if the name exists.
bool make_folder_like_above(int above, const char* name);

}  // namespace tessera
