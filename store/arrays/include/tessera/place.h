// Places: what a path that somebody typed means, as a store and a prefix in it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/error.h>
#include <tessera/key_value_store.h>

namespace tessera {

/// Where a node (an array or a group) lies, or would.
struct Place {
    std::shared_ptr<KeyValueStore> store;
    std::string prefix;
};

/// The place that a path names: a directory, a zip store ("data.zarr.zip"), or something inside a zip store
/// ("data.zarr.zip/group/name"). A directory is the root of its own store; what is inside a zip need not be there.
/// Nothing when the path is none of these: absent, or another kind of file. A zip is for reading whatever the
/// options say, for an archive is never changed. Throws io, or corrupt for a zip that cannot be read.
[[nodiscard]] std::optional<Place> probe_place(const std::filesystem::path& path, const StoreOptions& options = {});

/// The same; throws not_found or invalid_argument, saying what is there instead.
[[nodiscard]] Place find_place(const std::filesystem::path& path, const StoreOptions& options = {});

/// Whether the path of the place's directory leads to another directory, or nowhere, since it was opened: `copy
/// --overwrite` and restored snapshots exchange directories.
[[nodiscard]] bool was_replaced(const Place& place);
/// Throws not_found where it was.
void require_present(const Place& place);

/// Calls look(place) with what find_place() finds, and anew where that ended with not_found because the directory was
/// replaced meanwhile: a path that leads to an array before and after always leads to one.
template <class Look>
auto at_place(const std::filesystem::path& path, const StoreOptions& options, const Look& look) {
    constexpr int most = 100;
    for (int tries = 1;; ++tries) {
        const Place place = find_place(path, options);
        try {
            return look(place);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::not_found || tries == most || !was_replaced(place)) throw;
        }
    }
}

/// What lies at a place that holds no `wanted` ("array", "group", "array or group"), for an error: what was looked for
/// and found.
[[nodiscard]] std::string absence_message(const KeyValueStore& store, std::string_view prefix, std::string_view wanted);

/// A path, which need not exist, as an absolute one without symbolic links and a '/' at its end. Throws io.
[[nodiscard]] std::filesystem::path real_path(const std::filesystem::path& path);

/// A path in the file system, which need not exist, as seen from the outermost group (with metadata) above it; from its
/// parent directory where there is none.
[[nodiscard]] Place enclosing_place(const std::filesystem::path& path, const StoreOptions& options = {});

}  // namespace tessera
