// Places: path resolution, from a path that a user typed to a store and a prefix in it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/error.h>
#include <tessera/key_value_store.h>
#include <tessera/retry.h>
#include <tessera/store_kind.h>

namespace tessera {

/// The place that a path names: a directory, a zip store ("data.zarr.zip"), a path inside a zip store
/// ("data.zarr.zip/group/name"), or a place in another kind of store ("toy:group/name", see store_kind.h). A directory
/// is the root of its own store. A path inside a zip or another kind of store need not exist. nullopt if the path is
/// absent or another kind of file. A zip is read-only whatever the options say. Throws io, or corrupt for a zip that
/// cannot be read.
[[nodiscard]] std::optional<Place> probe_place(const std::filesystem::path& path, const StoreOptions& options = {});

/// The same, but throws not_found or invalid_argument, naming what is at the path instead.
[[nodiscard]] Place find_place(const std::filesystem::path& path, const StoreOptions& options = {});

/// Whether the path of the place's directory now leads to another directory, or to none: `copy --overwrite` and
/// restored snapshots exchange directories.
[[nodiscard]] bool was_replaced(const Place& place);
/// Throws not_found if it was replaced.
void require_present(const Place& place);

/// Calls look(place) with the result of find_place(). Retries if look() throws not_found because the directory was
/// replaced meanwhile, so that a path that always leads to some array is never reported as missing.
template <class Look>
auto at_place(const std::filesystem::path& path, const StoreOptions& options, const Look& look) {
    return retry_when_replaced([&] { return find_place(path, options); }, look);
}

/// The error text for a place that has no `wanted` ("array", "group", "array or group"): it states what was expected
/// and what is there.
[[nodiscard]] Error absence(const PlaceView& place, std::string_view wanted);

/// Whether anything is at a path: a file, a folder, or in another kind of store a value at it or below it.
[[nodiscard]] bool is_anything_at(const std::filesystem::path& path, const StoreOptions& options = {});

/// Text that changes when an array does, for much less than reading it: from the stamps of its documents, and the
/// number and sizes of the values directly at the place.
[[nodiscard]] std::string version_text(const Place& place);

/// A path, which need not exist, made absolute, with symbolic links resolved and no '/' at its end. One in another kind
/// of store stays as it is. Throws io.
[[nodiscard]] std::filesystem::path real_path(const std::filesystem::path& path);

/// A path in the file system, which need not exist, relative to the outermost group (with metadata) above it, or else
/// to its parent directory. One in another kind of store, relative to that store.
[[nodiscard]] Place enclosing_place(const std::filesystem::path& path, const StoreOptions& options = {});

}  // namespace tessera
