// Directories by their paths, outside of any store. Private to the store module.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>

namespace tessera {

/// What is at `path`, at the end of links. Throws io when that cannot be found out, which is not to be taken for
/// nothing.
[[nodiscard]] std::filesystem::file_status status_of(const std::filesystem::path& path);

/// The directory itself where `path` is a link to it, so that the link stays; without a '/' at the end.
[[nodiscard]] std::filesystem::path resolved(const std::filesystem::path& path);

/// What lies beside an array or group for a moment: ".grid.zarr.tessera-new". Of a long name the end gives way to a
/// hash of it, so that file systems take it.
[[nodiscard]] std::string hidden_name(const std::filesystem::path& node, std::string_view what);

/// Makes a directory and those above it that are missing, durably unless nothing is to be; returns those that were
/// made, the lowest first. Throws io.
std::vector<std::filesystem::path> make_directories(const std::filesystem::path& path, Durability durability);

/// Removes everything at `path`, if anything. Throws io.
void remove_tree(const std::filesystem::path& path);

/// Which directory it is, whatever its name becomes.
struct DirectoryId {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    friend bool operator==(const DirectoryId&, const DirectoryId&) = default;
};
/// Of what a path leads to; nothing when there is nothing.
[[nodiscard]] std::optional<DirectoryId> directory_id(const std::filesystem::path& path);

}  // namespace tessera
