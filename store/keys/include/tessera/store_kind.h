// StoreKind: what kind of store a path leads to, by its scheme: "toy:survey/depth".
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/key_value_store.h>
#include <tessera/row_function.h>

namespace tessera {

/// A kind of store, as a row in the table of store_kinds.cpp. A path that begins with the scheme of a row and ':' leads
/// there; every other path is one of this machine, also if it contains ':'. "./toy:x" is always a path of this machine.
struct StoreKind {
    std::string_view scheme;  ///< "toy"; empty for the folders and files of this machine
    std::string_view about;   ///< for messages: "folders of this machine"
    /// The place that such a path names, which need not exist; changes nothing. Joined with the prefix by '/', the
    /// store's name() is the path, so that what messages name can be typed. The locks of all stores of the same name
    /// exclude each other within the process. Throws invalid_argument for a path that names no place, and io.
    RowFunction<Place(const std::filesystem::path& path, const StoreOptions& options)> place;
};

/// All kinds; the folders and files of this machine are the first. The first call ends add_store_kind().
[[nodiscard]] std::span<const StoreKind> store_kinds();
/// Adds a kind of store of a program's own to the table, for the whole process. Call it at the start: once anything was
/// opened or created by path, the table stays as it is, and this throws invalid_argument. So does a scheme that is
/// taken, or that is not made of two or more of a-z, 0-9, '+', '-' and '.', the first a letter. Whatever the row points
/// to has to stay until the process ends. SimpleStore (simple_store.h) makes most of a store from five functions. Any
/// thread.
void add_store_kind(const StoreKind& kind);
/// The parts of a path "SCHEME:NAME/PREFIX", which the first '/' separates: the store, "SCHEME:NAME", and the prefix in
/// it. For the place() of kinds with such paths. Throws invalid_argument without a NAME, and for a PREFIX that is no
/// prefix.
[[nodiscard]] std::pair<std::string, std::string> split_store_path(const std::filesystem::path& path);
/// The kind of the place that a path names. Looks at nothing but the text.
[[nodiscard]] const StoreKind& store_kind_of(const std::filesystem::path& path);
/// Whether a path is one of this machine.
[[nodiscard]] bool is_local(const std::filesystem::path& path);
/// Throws unsupported, naming `what` ("`snapshot`", "a bag"), if a path is not one of this machine.
void require_local(const std::filesystem::path& path, std::string_view what);

}  // namespace tessera
