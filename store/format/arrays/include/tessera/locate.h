// locate: what lies at a path, found in one look at the file system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/array.h>
#include <tessera/array_file.h>
#include <tessera/error.h>
#include <tessera/key_value_store.h>
#include <tessera/retry.h>
#include <tessera/store_kind.h>

namespace tessera {

/// What a path names.
enum class PathKind : std::uint8_t {
    nothing,
    array,       ///< in a directory, a zip or another kind of store
    unfinished,  ///< a copy that was interrupted
    group,       ///< with metadata
    folder,      ///< a directory, or a part of a store, without metadata; it may hold arrays
    array_file,  ///< a whole one
    part,        ///< after "::" a member of an array file, or a field. Whether it is there, only opening tells
    other,       ///< a file or device that holds no array
};

/// What the system says of a file or directory, following links.
struct PathFacts {
    bool directory = false;
    bool regular = false;  ///< neither a directory nor a device nor a pipe
    FileId id;             ///< of a file, too
    std::uint64_t size = 0;
    std::int64_t modified = 0;  ///< nanoseconds since 1970
    std::int64_t changed = 0;   ///< the same, of anything about it: its content, its times, its links
};
/// nullopt if nothing is there, or the system does not say.
[[nodiscard]] std::optional<PathFacts> path_facts(const std::filesystem::path& path);
/// Their `id`; nullopt in another kind of store, too.
[[nodiscard]] std::optional<FileId> file_id(const std::filesystem::path& path);

/// What lies at a path, at the moment of locate(). It keeps what was opened and read to find out, so that whoever gets
/// it asks nothing again. Thread rule: const members may be called from several threads.
struct Located {
    std::string path;  ///< as it was given
    PathKind kind = PathKind::nothing;
    /// The path without what follows "::". `opened` if it is a regular file outside stores.
    ArrayPath file;
    const ArrayFileFormat* format = nullptr;    ///< of an array file, or of the one with that part
    std::optional<Place> place = std::nullopt;  ///< unless it is nothing or a file; opened as locate() was told to
    const Dialect* dialect = nullptr;           ///< of an array, a group, or the array with that field
    /// Of `file.path`; of the zip for a path inside one. nullopt in other kinds of stores.
    std::optional<PathFacts> facts = std::nullopt;

    [[nodiscard]] bool is_directory() const { return facts && facts->directory; }
    /// The array, or the one with that field, from the metadata that locate() read. Throws not_found, naming what is
    /// there instead, and the errors of Array::open().
    [[nodiscard]] Array array() const;

private:
    friend Located locate(std::string_view path, const StoreOptions& options);
    [[nodiscard]] static Located look(std::string_view path, const StoreOptions& options);
    void look_in_place();
    Place settled_;                           ///< of the array: without an interrupted batch
    std::shared_ptr<const Buffer> document_;  ///< its metadata, not parsed yet
};

/// Resolves a path as a user types it. Throws io, and corrupt for a zip that cannot be read; damaged metadata are no
/// error before array(). A directory that is replaced meanwhile is looked at again.
[[nodiscard]] Located locate(std::string_view path, const StoreOptions& options = {.read_only = true});

/// Whether the path now leads to another file or directory, or to none.
[[nodiscard]] bool was_replaced(const Located& at);

/// Calls look(located). Repeats both if look() throws not_found because the file or directory was replaced meanwhile.
template <class Look>
auto at_located(std::string_view path, const Look& look, const StoreOptions& options = {.read_only = true}) {
    return retry_when_replaced([&] { return locate(path, options); }, look);
}

/// Calls work(), which looks at the path itself and prints nothing before it succeeds; again if it throws not_found
/// because the file or directory was replaced meanwhile.
template <class Work>
auto again_when_replaced(const std::string& path, const Work& work) {
    const auto look = [&] { return file_id(path); };
    return retry_when_replaced(
        look, [&](const auto&) { return work(); },
        [&](const auto& before, const Error& e) { return e.code() == ErrorCode::not_found && look() != before; });
}

}  // namespace tessera
