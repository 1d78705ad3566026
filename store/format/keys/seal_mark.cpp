#include "seal_mark.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error.h>
#include <tessera/own_names.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <ctime>
#include <filesystem>
#include <span>

namespace tessera {

namespace {

/// The path of an open directory as it is now; empty if the system does not tell.
std::string path_of_open(int directory) {
    std::array<char, 32> link{};
    fmt::format_to_n(link.data(), link.size() - 1, "/proc/self/fd/{}", directory);
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlink(link.data(), target.data(), target.size());
    if (size <= 0 || target[0] != '/' || static_cast<std::size_t>(size) == target.size()) return "";
    return {target.data(), static_cast<std::size_t>(size)};
}

bool exists(const std::string& path) {
    return ::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_EACCESS) == 0;
}

/// The last part of a key.
std::string_view last(std::string_view key) {
    return key.substr(key.rfind('/') + 1);
}

/// When a seal was broken.
std::string mark_text() {
    return fmt::format("{:%FT%TZ}\n", fmt::gmtime(std::time(nullptr)));
}

[[noreturn]] void refuse_change(std::string_view sealed) {
    throw Error(ErrorCode::sealed, fmt::format("{}: is sealed, and a change would make its seal void", sealed))
        .advising(Action::break_seal, "permits changes until the next seal");
}

/// Durable even if nothing else is: a broken seal must never look whole.
void mark_broken(const std::string& folder, const StoreOptions& options) {
    StoreOptions durable = options;
    durable.read_only = false;
    durable.durability = Durability::each;
    const std::string text = mark_text();
    directory_store(folder, durable)->put(last(seal_mark_key), std::as_bytes(std::span(text)));
}

/// Throws unless changes are allowed. `path` is the folder of a seal; its first `size` bytes are the path of the sealed
/// data. Changes `path` rather than copying it, because every write calls this.
void require(std::string& path, std::size_t size, const StoreOptions& options) {
    const std::size_t seal = path.size();
    path.append("/").append(last(seal_sums_key));
    if (!exists(path)) return;
    path.resize(seal);
    path.append("/").append(last(seal_mark_key));
    if (exists(path)) return;
    if (!options.break_seal) refuse_change(std::string_view(path).substr(0, size));
    path.resize(seal);
    mark_broken(path, options);
}

/// Whether a folder of this name may be one of content, in a bag or an OCFL object.
bool may_be_content(std::string_view name) {
    if (name == "data") return true;
    return name.size() > 1 && name[0] == 'v' && name.find_first_not_of("0123456789", 1) == name.npos;
}

}  // namespace

std::string package_holding(std::string_view path) {
    while (!path.empty()) {
        const std::size_t slash = path.rfind('/');
        if (slash == path.npos) break;
        const std::string_view name = path.substr(slash + 1);
        path = path.substr(0, slash);
        if (!may_be_content(name)) continue;
        const bool bag = name == "data";
        for (const std::string_view mark : {"bagit.txt", "0=ocfl_object_1.0", "0=ocfl_object_1.1"}) {
            if (bag == (mark == "bagit.txt") && exists(fmt::format("{}/{}", path, mark))) return std::string(path);
        }
    }
    return {};
}

static void refuse_in_package(const std::string& folder) {
    if (const std::string package = package_holding(folder); !package.empty()) {
        throw Error(
            ErrorCode::sealed,
            fmt::format("{}: lies in {}, a bag or an OCFL object, whose lists name each of its files: nothing is "
                        "changed or added there; a copy can be changed",
                        folder, package));
    }
}

void require_no_package(int directory, std::string_view prefix) {
    refuse_in_package(fmt::format("{}/{}", path_of_open(directory), prefix));
}

void require_unsealed(int directory, std::string_view prefix, const StoreOptions& options) {
    std::string folder = path_of_open(directory);
    if (folder.empty()) return;
    if (!prefix.empty()) folder.append(folder == "/" ? "" : "/").append(prefix);
    // Behind a link, other folders are above. Without follow_links nothing is written there.
    std::error_code absent;
    if (options.follow_links && !prefix.empty()) {
        const auto real = std::filesystem::weakly_canonical(folder, absent);
        if (!absent) folder = real.string();
    }
    refuse_in_package(folder);
    std::size_t size = folder == "/" ? 0 : folder.size();
    constexpr std::size_t room = 64;
    folder.reserve(size + room);
    folder.resize(size);
    folder.append(seal_file_suffix);
    require(folder, size, options);
    for (;;) {
        folder.resize(size);
        folder.append("/").append(own_folder);
        require(folder, size, options);
        if (size == 0) return;
        size = folder.rfind('/', size - 1);
    }
}

void require_unsealed(const PlaceRef& place, bool break_seal) {
    for (std::string_view above = place.prefix;;) {
        const std::string mark = join_key(above, seal_mark_key);
        if (place.store.contains(join_key(above, seal_sums_key)) && !place.store.contains(mark)) {
            if (!break_seal) refuse_change(place.store.name_of(above));
            const std::string text = mark_text();
            place.store.put(mark, std::as_bytes(std::span(text)));
            place.store.sync();
        }
        if (above.empty()) return;
        const std::size_t slash = above.rfind('/');
        above = slash == std::string_view::npos ? std::string_view() : above.substr(0, slash);
    }
}

}  // namespace tessera
