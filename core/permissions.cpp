#include <tessera/permissions.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <tessera/system_calls.h>

namespace tessera {

namespace {

constexpr const char* access_name = "system.posix_acl_access";
constexpr const char* default_name = "system.posix_acl_default";
constexpr mode_t all_bits = 07777;
constexpr mode_t group_bits = 070;
constexpr mode_t read_write = 0666;

/// What a call of the getxattr family reads; empty if there is no such attribute.
template <class Get>
std::string attribute(bool* supported, const Get& get) {
    std::array<char, 512> some{};  // 63 entries
    ssize_t size = get(some.data(), some.size());
    if (size >= 0) return {some.data(), static_cast<std::size_t>(size)};
    if (supported != nullptr && (errno == EOPNOTSUPP || errno == ENOSYS)) *supported = false;
    if (errno != ERANGE) return {};
    constexpr std::size_t most = 65536;  // of Linux
    std::string all(most, '\0');
    size = get(all.data(), all.size());
    all.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return all;
}

/// Takes the rights of the owning group out of an access list: a version, then entries of tag, rights and id.
void withhold_group(std::string& list) {
    constexpr std::size_t header = 4;
    constexpr std::size_t entry = 8;
    constexpr char group_tag = 4;
    for (std::size_t at = header; at + entry <= list.size(); at += entry) {
        if (list[at] == group_tag && list[at + 1] == 0) list[at + 2] = list[at + 3] = 0;
    }
}

}  // namespace

Permissions permissions_from(const struct stat& status) {
    return {.mode = status.st_mode & all_bits, .owner = status.st_uid, .group = status.st_gid};
}

std::string access_list(int file, bool* supported) {
    return attribute(supported, [&](char* to, std::size_t size) { return os::attribute(file, access_name, to, size); });
}

std::string default_list(int folder, bool* supported) {
    return attribute(supported,
                     [&](char* to, std::size_t size) { return os::attribute(folder, default_name, to, size); });
}

std::string access_list_at(int folder, const char* name, bool* supported) {
    // No system call takes a folder and a name.
    std::array<char, 512> path{};
    const auto end = folder == AT_FDCWD
                         ? fmt::format_to_n(path.data(), path.size() - 1, "{}", name)
                         : fmt::format_to_n(path.data(), path.size() - 1, "/proc/self/fd/{}/{}", folder, name);
    if (end.size < path.size()) {
        bool here = true;
        std::string list = attribute(
            &here, [&](char* to, std::size_t size) { return os::attribute(path.data(), access_name, to, size); });
        if (!here && supported != nullptr) *supported = false;
        if (!list.empty() || errno != ENOENT) return list;
    }
    // Without /proc. A file that may not be read keeps its list to itself.
    const int file = ::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0) return {};
    std::string list = access_list(file, supported);
    ::close(file);
    return list;
}

bool give_permissions(int file, const Permissions& now, const Permissions& wanted) {
    Permissions target = wanted;
    bool has_group = now.group == wanted.group;
    bool changed = false;
    const bool root = ::geteuid() == 0;
    if (!has_group || (root && now.owner != wanted.owner)) {
        changed = ::fchown(file, root ? wanted.owner : static_cast<uid_t>(-1), wanted.group) == 0;
        has_group = has_group || changed;
    }
    if (!has_group) {
        if (target.list.empty()) target.mode &= ~(group_bits | static_cast<mode_t>(S_ISGID));
        withhold_group(target.list);
    }
    const bool kept = has_group || (wanted.list.empty() ? (wanted.mode & group_bits) == 0 : target.list == wanted.list);
    if (target.list == now.list) {
        if (changed || target.mode != now.mode) (void)::fchmod(file, target.mode);
        return kept;
    }
    if (target.list.empty()) {
        os::remove_attribute(file, access_name);
    } else if (os::set_attribute(file, access_name, target.list)) {
        return kept;  // the mode is in the list
    } else {
        target.mode &= ~group_bits;  // the group's bits are those of all in the list
    }
    (void)::fchmod(file, target.mode);
    return kept;
}

std::optional<Permissions> permissions_below(int above) {
    struct stat status {};
    bool supported = true;
    if (::fstat(above, &status) != 0 || !default_list(above, &supported).empty()) return std::nullopt;
    Permissions below = permissions_from(status);
    below.mode &= ~static_cast<mode_t>(S_ISVTX | S_ISUID);
    if (supported) below.list = access_list(above);
    return below;
}

bool share_with_folder(int file, const struct stat& status, int folder) {
    if (status.st_uid != ::geteuid()) return true;
    struct stat around {};
    if (::fstat(folder, &around) != 0) return true;
    Permissions now = permissions_from(status);
    Permissions wanted = now;
    wanted.mode |= around.st_mode & read_write;
    if ((around.st_mode & S_IWGRP) != 0) wanted.group = around.st_gid;
    if (::geteuid() == 0) wanted.owner = around.st_uid;
    if (now == wanted) return true;
    now.list = wanted.list = access_list(file);
    return give_permissions(file, now, wanted);
}

bool make_folder_like_above(int above, const char* name) {
    constexpr mode_t for_all = 0777;
    if (::mkdirat(above, name, for_all) != 0) return false;
    const int made = ::openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (made < 0) return true;  // by a mask that forbids its owner to look at it
    struct stat status {};
    const auto wanted = permissions_below(above);
    if (wanted && ::fstat(made, &status) == 0) (void)give_permissions(made, permissions_from(status), *wanted);
    ::close(made);
    return true;
}

}  // namespace tessera
