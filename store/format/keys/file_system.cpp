#include <tessera/file_system.h>

#include <fmt/format.h>
#include <tessera/store_kind.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <istream>
#include <span>
#include <sstream>

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view no_locks = "it has no locks: nothing keeps other writers away";
constexpr std::string_view local_locks =
    "its locks reach only this machine: writers on other machines can lose each other's changes";
constexpr std::string_view late_readers =
    "programs on other machines may see a change some seconds late, as its caches are set";
constexpr std::string_view two_renames =
    "it exchanges no directories: while an array is replaced there is a moment without one, and a crash then leaves "
    "both beside it under hidden names";
constexpr std::string_view coarse_times =
    "it keeps times to whole seconds or two: versions of a chunk are told apart by their content";
constexpr std::string_view no_links =
    "it has no hard links: snapshots and `undo` of batches copy chunks, other commands cannot be undone";
constexpr std::string_view one_case = "it takes names that differ in case only for one name";
constexpr std::string_view own_rules = "what it promises is up to the program behind it";

/// A limit that applies if one of the mount options is set; without options it always applies.
struct Limit {
    std::string_view text;
    std::span<const std::string_view> options;
};

constexpr std::array<std::string_view, 1> lustre_no_locks{"noflock"};
constexpr std::array<std::string_view, 1> lustre_local_locks{"localflock"};
constexpr std::array<std::string_view, 3> nfs_local_locks{"nolock", "local_lock=all", "local_lock=posix"};
constexpr std::array<std::string_view, 1> cifs_local_locks{"nobrl"};

struct Row {
    std::string_view type;  ///< with '*' at the end: all types with this prefix
    std::vector<Limit> limits;
};

/// The limits of each type. Sources: the manual pages nfs(5), mount.lustre(8), mount.cifs(8), mount(8), rename(2).
const std::vector<Row>& table() {
    static const std::vector<Row> rows{
        {"lustre", {{no_locks, lustre_no_locks}, {local_locks, lustre_local_locks}, {two_renames, {}}}},
        {"nfs*", {{local_locks, nfs_local_locks}, {late_readers, {}}, {two_renames, {}}}},
        {"cifs", {{local_locks, cifs_local_locks}, {late_readers, {}}, {two_renames, {}}}},
        {"smb3", {{local_locks, cifs_local_locks}, {late_readers, {}}, {two_renames, {}}}},
        {"9p", {{local_locks, {}}, {late_readers, {}}, {two_renames, {}}}},
        {"fuse.sshfs", {{local_locks, {}}, {late_readers, {}}, {two_renames, {}}}},
        {"fuse*", {{own_rules, {}}}},
        {"vfat", {{coarse_times, {}}, {no_links, {}}, {one_case, {}}, {two_renames, {}}}},
        {"msdos", {{coarse_times, {}}, {no_links, {}}, {one_case, {}}, {two_renames, {}}}},
        {"exfat", {{no_links, {}}, {one_case, {}}, {two_renames, {}}}},
        {"hfs*", {{coarse_times, {}}, {two_renames, {}}}},
    };
    return rows;
}

bool is_type(std::string_view pattern, std::string_view type) {
    return pattern.ends_with('*') ? type.starts_with(pattern.substr(0, pattern.size() - 1)) : type == pattern;
}

/// A field of the table. Blank, tab, line feed and backslash are escaped as a backslash and three octal digits.
std::string unescaped(std::string_view field) {
    std::string text;
    for (std::size_t i = 0; i < field.size(); ++i) {
        const bool escape = field[i] == '\\' && field.size() - i > 3 &&
                            std::ranges::all_of(field.substr(i + 1, 3), [](char c) { return c >= '0' && c <= '7'; });
        if (!escape) {
            text += field[i];
            continue;
        }
        text += static_cast<char>((field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 + (field[i + 3] - '0'));
        i += 3;
    }
    return text;
}

bool is_below(std::string_view path, std::string_view folder) {
    return path == folder || folder == "/" ||
           (path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/');
}

bool has_option(std::string_view options, std::string_view wanted) {
    while (!options.empty()) {
        const std::size_t comma = std::min(options.find(','), options.size());
        if (options.substr(0, comma) == wanted) return true;
        options.remove_prefix(std::min(comma + 1, options.size()));
    }
    return false;
}

FileSystem described(const std::string& type, const std::string& options) {
    FileSystem found{.type = type, .limits = {}};
    const auto& rows = table();
    const auto row = std::ranges::find_if(rows, [&](const Row& r) { return is_type(r.type, type); });
    if (row == rows.end()) return found;
    for (const Limit& limit : row->limits) {
        const bool holds = limit.options.empty() || std::ranges::any_of(limit.options, [&](std::string_view option) {
                               return has_option(options, option);
                           });
        if (holds) found.limits.emplace_back(limit.text);
    }
    return found;
}

}  // namespace

FileSystem file_system_in(std::istream& mounts, std::string_view path) {
    FileSystem found;
    std::size_t longest = 0;
    for (std::string line; std::getline(mounts, line);) {
        // "36 35 98:0 /root /mount/point rw,noatime [more fields] - type source super,options"
        std::istringstream fields(line);
        std::string skipped, point, options, field;
        fields >> skipped >> skipped >> skipped >> skipped >> point >> options;
        while (fields >> field && field != "-") continue;
        std::string type, super_options;
        if (!(fields >> type >> skipped)) continue;
        fields >> super_options;
        point = unescaped(point);
        // The last mount on a folder hides the ones before it.
        if (!is_below(path, point) || point.size() < longest) continue;
        longest = point.size();
        found = described(type, fmt::format("{},{}", options, super_options));
    }
    return found;
}

FileSystem file_system_of(const fs::path& path) {
    if (!is_local(path)) return {};
    std::error_code error;
    const fs::path real = fs::weakly_canonical(fs::absolute(path, error), error);
    std::ifstream mounts("/proc/self/mountinfo");
    if (error || !mounts) return {};
    return file_system_in(mounts, real.native());
}

}  // namespace tessera
