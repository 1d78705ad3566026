// What repair has set aside, when the array that it belongs to is replaced. Private to the store module.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <tessera/key_value_store.h>

namespace tessera {

/// Where repair puts what is damaged, below an array or group.
inline constexpr std::string_view damaged_folder = ".tessera/damaged";

/// Where `key`, of an array or group at `place` or below, would be set aside in it: a key where nothing is yet.
[[nodiscard]] std::string aside_key(const PlaceView& place, const std::string& key);
/// Gives whatever has the name `key`, of an array or group at `place` or below, a second name where it is set aside,
/// which it returns: a hard link where the store has these. Empty if there is nothing. What cannot be read is moved.
[[nodiscard]] std::string keep_aside(const PlaceRef& place, const std::string& key);
/// Moves a directory that stands in the place of the file `key`, of an array or group at `place`, to where it is set
/// aside. Returns its new name; empty if there is no directory. Throws io.
std::string move_directory_aside(const PlaceRef& place, const std::string& key);

/// Moves what repair has set aside in `from`, and in all nodes below, on into the directory `to` beside it, each to the
/// node of the same path, or to the root where there is none. `from` is an array or group that is to be removed,
/// because `to` took its place. What is in the way there stays too. Throws io.
void carry_set_aside(const std::filesystem::path& from, const std::filesystem::path& to, const StoreOptions& options);
/// The same of what a run left that was killed after the exchange: `from` need not be there. The caller holds the
/// DestinationLock of `to`.
void rescue_set_aside(const std::filesystem::path& from, const std::filesystem::path& to, const StoreOptions& options);

}  // namespace tessera
