#include "seal_mark.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <tessera/error.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <ctime>
#include <filesystem>
#include <span>

namespace tessera {

namespace {

/// The path of an open directory as it is now; empty if the system does not tell.
std::string path_of_open(int directory) {
    const std::string link = fmt::format("/proc/self/fd/{}", directory);
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
    if (size <= 0 || target[0] != '/' || static_cast<std::size_t>(size) == target.size()) return "";
    return {target.data(), static_cast<std::size_t>(size)};
}

/// "/a" of "/a/b", "/" of "/a", "" of "/".
std::string above(const std::string& folder) {
    return folder == "/" ? "" : folder.substr(0, std::max<std::size_t>(folder.rfind('/'), 1));
}

/// The last part of a key.
std::string_view last(std::string_view key) {
    return key.substr(key.rfind('/') + 1);
}

bool exists(const std::string& folder, std::string_view name) {
    const std::string path = fmt::format("{}/{}", folder, name);
    return ::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_EACCESS) == 0;
}

/// Also where nothing else is durable: a seal that was broken must never look as if it was not.
void mark_broken(const std::string& folder, const StoreOptions& options) {
    StoreOptions durable = options;
    durable.read_only = false;
    durable.durability = Durability::each;
    const std::time_t now = std::time(nullptr);
    std::tm date{};
    ::gmtime_r(&now, &date);
    const std::string text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z\n", date.tm_year + 1900, date.tm_mon + 1,
                                         date.tm_mday, date.tm_hour, date.tm_min, date.tm_sec);
    directory_store(folder, durable)->put(last(seal_mark_key), std::as_bytes(std::span(text)));
}

/// `seal` is the folder in which the seal of `what` would be.
void require(const std::string& what, const std::string& seal, const StoreOptions& options) {
    if (!exists(seal, last(seal_sums_key)) || exists(seal, last(seal_mark_key))) return;
    if (!options.break_seal) {
        throw Error(ErrorCode::sealed, fmt::format("{}: is sealed, and a change would make its seal void", what));
    }
    mark_broken(seal, options);
}

}  // namespace

void require_unsealed(int directory, std::string_view prefix, const StoreOptions& options) {
    std::string folder = path_of_open(directory);
    if (folder.empty()) return;
    if (!prefix.empty()) folder = fmt::format("{}/{}", folder == "/" ? "" : folder, prefix);
    // A link on the way leads to other folders above. Without follow_links nothing is written behind one.
    std::error_code absent;
    if (options.follow_links && !prefix.empty()) {
        const auto real = std::filesystem::weakly_canonical(folder, absent);
        if (!absent) folder = real.string();
    }
    const std::string_view own_folder = seal_sums_key.substr(0, seal_sums_key.find('/'));
    require(folder, folder + std::string(seal_file_suffix), options);
    for (; !folder.empty(); folder = above(folder)) {
        require(folder, fmt::format("{}/{}", folder == "/" ? "" : folder, own_folder), options);
    }
}

}  // namespace tessera
