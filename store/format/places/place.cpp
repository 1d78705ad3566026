#include <tessera/action.h>
#include <tessera/place.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/address.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>
#include <tessera/zip_name.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "directories.h"
#include "directory_store.h"
#include "keys.h"
#include "n5_store.h"
#include "store_in_file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

/// The longest part of a path that exists.
fs::path existing_part(const fs::path& path) {
    std::error_code ignored;
    fs::path part = path;
    while (!part.empty() && !fs::exists(part, ignored) && part != part.parent_path()) part = part.parent_path();
    return part;
}

/// The rest of `path` after `part`, as a prefix of keys.
std::string prefix_after(const fs::path& part, const fs::path& path) {
    std::string prefix;
    for (const fs::path& name : path.lexically_normal().lexically_relative(part.lexically_normal())) {
        if (name != "." && !name.empty()) prefix = join_key(prefix, name.string());
    }
    return prefix;
}

/// For a path of which only `part` exists: the path to which a two-step replacement moves the next part. File systems
/// that cannot exchange directories need two steps (replace_directory.cpp).
fs::path moved_to(const fs::path& part, const fs::path& path) {
    const std::string rest = prefix_after(part, path);
    return rest.empty() ? fs::path() : part / hidden_name(rest.substr(0, rest.find('/')), "old");
}

bool is_between(const fs::path& part, const fs::path& path) {
    std::error_code ignored;
    const fs::path moved = moved_to(part, path);
    return !moved.empty() && fs::is_directory(fs::symlink_status(moved, ignored));
}

/// Waits for the end of a replacement: a moment, unless the run was killed in between.
void await_replacement(const fs::path& part, const fs::path& path) {
    constexpr int most = 200;
    for (int n = 0; n < most && is_between(part, path) && existing_part(path) == part; ++n) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

}  // namespace

std::optional<Place> probe_place(const fs::path& given, const StoreOptions& options) {
    const fs::path path = own_path(given.native());
    const StoreKind& kind = store_kind_of(path);
    if (!kind.scheme.empty()) return as_n5(kind.place(path, options), path);
    if (auto directory = probe_directory_store(path, options))
        return store_in_folder(std::move(directory), path, options);
    const fs::path part = existing_part(path);
    if (is_between(part, path)) {
        await_replacement(part, path);
        if (auto directory = probe_directory_store(path, options)) return Place{std::move(directory), ""};
    }
    std::error_code ignored;
    if (!fs::is_regular_file(part, ignored)) return std::nullopt;
    auto archive = store_in_file(*open_file(part));
    if (archive == nullptr) return std::nullopt;
    return Place{std::move(archive), prefix_after(part, path)};
}

Place find_place(const fs::path& path, const StoreOptions& options) {
    if (auto place = probe_place(path, options)) return *std::move(place);
    std::error_code ignored;
    const fs::path part = existing_part(path);
    if (is_between(part, path)) {
        throw not_found("{}: a command was killed while replacing it; move {} back, which is the old content",
                        path.string(), moved_to(part, path).string());
    }
    if (const std::size_t colons = path.string().find("::"); colons != std::string::npos) {
        const fs::path file = path.string().substr(0, colons);
        if (fs::exists(file, ignored)) {
            const bool is_store = fs::is_directory(file, ignored) || is_zip_name(file.string());
            throw not_found("{}: a part of {}{}, and no array or group that can be changed", path.string(),
                            is_store ? "" : "the array file ", file.string())
                .advising(Action::copy, "makes one of it", path.string());
        }
    }
    if (fs::is_directory(part, ignored) || part.empty()) {
        throw not_found("{}: no such file or directory", path.string());
    }
    throw invalid_argument("{}: a file, not the directory or zip archive of an array or group", part.string());
}

bool was_replaced(const Place& place) {
    return has_lost_its_name(*place.store);
}

void require_present(const Place& place) {
    if (!was_replaced(place)) return;
    throw not_found("{}: was removed, or replaced by another, while it was read", place.store->name());
}

bool is_anything_at(const fs::path& path, const StoreOptions& options) {
    if (is_local(path)) return fs::exists(path);
    const Place place = find_place(path, to_read(options));
    const Listing below = place.store->list(place.prefix);
    return !below.keys.empty() || !below.prefixes.empty() ||
           (!place.prefix.empty() && place.store->contains(place.prefix));
}

std::string version_text(const Place& place) {
    std::uint64_t values = 0;
    std::uint64_t bytes = 0;
    place.store->for_each(place.prefix, [&](std::string_view, const KeyValueStore::ValueSize& size) {
        ++values;
        bytes += size();
    });
    std::string text = fmt::format(" {} values of {} bytes", values, bytes);
    const Dialect* dialect = probe_dialect(place);
    if (dialect == nullptr) return text;
    for (const std::string_view name : dialect->documents) {
        const auto stamp = place.store->stamp(place.key(name)).value_or(ValueStamp{});
        text += fmt::format(" {}/{}/{}", stamp.modified, stamp.id, stamp.size);
    }
    return text;
}

fs::path real_path(const fs::path& path) {
    if (!is_local(path)) return path;
    std::error_code error;
    const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(path.c_str(), nullptr), &std::free);
    const fs::path real = whole ? fs::path(whole.get()) : fs::weakly_canonical(fs::absolute(path), error);
    if (error) throw io_error("cannot follow", path.string(), error.value());
    return real.has_filename() ? real : real.parent_path();
}

Place enclosing_place(const fs::path& path, const StoreOptions& options) {
    if (!is_local(path)) return find_place(path, options);
    const fs::path node = real_path(path);
    fs::path root = node.parent_path();
    for (fs::path above = root; above != above.root_path(); above = above.parent_path()) {
        if (is_group_at(above)) root = above;
    }
    return {directory_store(root, options), prefix_after(root, node)};
}

}  // namespace tessera
