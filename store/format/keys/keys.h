// Checks of keys and prefixes, which every store makes before using them.
#pragma once

#include <cstdint>
#include <string_view>

#include <tessera/own_names.h>

namespace tessera {

/// Whether it is made of parts joined by '/', none of them empty, "." or "..", without NUL.
[[nodiscard]] bool is_key(std::string_view key);
/// Throws invalid_argument unless is_key().
void require_key(std::string_view key);
/// The same for a prefix, which may also be empty.
void require_prefix(std::string_view prefix);
/// Throws invalid_argument unless `from` and `to` are prefixes other than the root, different, and neither below the
/// other. `store` is the store's name.
void require_movable(std::string_view store, std::string_view from, std::string_view to);
/// Throws corrupt if a value is larger than its reader's limit.
void require_size(std::string_view name, std::uint64_t size, std::uint64_t limit);

/// The prefix above one; "" of a first part.
[[nodiscard]] inline std::string_view parent_of(std::string_view prefix) {
    const std::size_t slash = prefix.rfind('/');
    return slash == std::string_view::npos ? std::string_view() : prefix.substr(0, slash);
}

/// The journal of a batch that is recorded: see batch.cpp.
inline constexpr std::string_view batch_journal_key = ".tessera/batch/journal";
/// Marks a directory as an unfinished copy: see new_array.cpp.
inline constexpr std::string_view unfinished_marker_key = ".tessera/unfinished.json";

/// The lock files of zarr 0.4 and similar programs; Tessera's own is `.tessera/lock`.
[[nodiscard]] inline bool is_lock_name(std::string_view name) {
    return name.ends_with(".lock");
}

/// Whether a name is that of a file which was deleted while a program has it open: libfuse and NFS rename it, and
/// remove it when it is closed. Its folder cannot be removed before.
[[nodiscard]] inline bool is_deleted_open(std::string_view name) {
    constexpr std::size_t nfs_name = 28;  // ".nfs" and 24 digits
    if (name.empty() || name.front() != '.') return false;
    return name.starts_with(".fuse_hidden") || (name.starts_with(".nfs") && name.size() == nfs_name);
}

/// Whether a name looks like that of a chunk or a folder of chunks: "3", "3.0", "c.3.0", "3.0.blosc". Excludes "c",
/// v3's only chunk of a 0-d array, because other things have that name too.
[[nodiscard]] inline bool looks_like_chunk(std::string_view name) {
    if (name.starts_with("c.")) name.remove_prefix(2);
    return !name.empty() && name.front() >= '0' && name.front() <= '9';
}

}  // namespace tessera
