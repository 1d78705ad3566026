// StoreKind: what kind of store a path leads to, by its scheme: "toy:survey/depth". Place: a store and a prefix in it.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <tessera/key_value_store.h>

namespace tessera {

/// Where a node (an array or a group) lies, or would.
struct Place {
    std::shared_ptr<KeyValueStore> store;
    std::string prefix;
};

/// A kind of store, as a row in the table of store_kinds.cpp. A path that begins with the scheme of a row and ':' leads
/// there; every other path is one of this machine, also if it contains ':'. "./toy:x" is always a path of this machine.
struct StoreKind {
    std::string_view scheme;  ///< "toy"; empty for the folders and files of this machine
    std::string_view about;   ///< for messages: "folders of this machine"
    /// The place that such a path names, which need not exist; changes nothing. Joined with the prefix by '/', the
    /// store's name() is the path, so that what messages name can be typed. The locks of all stores of the same name
    /// exclude each other within the process. Throws invalid_argument for a path that names no place, and io.
    Place (*place)(const std::filesystem::path& path, const StoreOptions& options);
};

/// All kinds; the folders and files of this machine are the first.
[[nodiscard]] std::span<const StoreKind> store_kinds();
/// The kind of the place that a path names. Looks at nothing but the text.
[[nodiscard]] const StoreKind& store_kind_of(const std::filesystem::path& path);
/// Whether a path is one of this machine.
[[nodiscard]] bool is_local(const std::filesystem::path& path);
/// Throws unsupported, naming `what` ("`snapshot`", "a bag"), if a path is not one of this machine.
void require_local(const std::filesystem::path& path, std::string_view what);

}  // namespace tessera
