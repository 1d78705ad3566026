// What only a store of folders and files of this machine can do.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/byte_io.h>

namespace tessera {

class ReadableStore;

/// The identity of a file or folder, by whatever path it is reached.
struct FileId {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    friend bool operator==(const FileId&, const FileId&) = default;
    friend bool operator<(const FileId& a, const FileId& b) {
        return std::pair(a.device, a.inode) < std::pair(b.device, b.inode);
    }
};

/// What only folders and files of this machine can do: an optional second interface of a store.
/// Thread rule: as KeyValueStore.
class LocalFiles {
public:
    virtual ~LocalFiles() = default;

    /// Makes `key` a hard link to the file of another store's key. False if that is impossible (other kinds of stores,
    /// another file system) or `key` exists.
    virtual bool link(std::string_view /*key*/, const ReadableStore& /*other*/, std::string_view /*other_key*/) {
        return false;
    }
    /// Makes `key` a reflink of another store's key: a copy that shares disk blocks until one of the two changes. False
    /// if that is impossible or the other key is absent.
    virtual bool clone(std::string_view /*key*/, const ReadableStore& /*other*/, std::string_view /*other_key*/) {
        return false;
    }

    /// Copies another store's value to `key`, which has none, without taking the bytes through memory: as a reflink if
    /// the file system can. The copy is independent of the original. Not atomic: a crash may leave a shorter value.
    /// Only for an array that nobody can open yet. Nothing is changed and false returned if that is impossible, the
    /// other key is absent or empty, or `key` exists.
    virtual bool copy_new(std::string_view /*key*/, const ReadableStore& /*other*/, std::string_view /*other_key*/) {
        return false;
    }

    /// The identity of the folder at a prefix, after following symbolic links; nullopt if there is none.
    [[nodiscard]] virtual std::optional<FileId> folder_id(std::string_view /*prefix*/) const { return std::nullopt; }
    /// Whether a prefix itself is a symbolic link, which the removal of a hierarchy does not follow.
    [[nodiscard]] virtual bool is_link(std::string_view /*prefix*/) const { return false; }
    /// The text of a symbolic link; empty for anything else.
    [[nodiscard]] virtual std::string link_target(std::string_view /*prefix*/) const { return {}; }
    /// Whether a prefix leads back to one above it (a symbolic link to a directory above), so that a walk ends there.
    [[nodiscard]] virtual bool leads_back(std::string_view /*prefix*/) const { return false; }
    /// For operations that check before they change anything. If a link on the way to a key forbids writing or erasing
    /// it (see StoreOptions::follow_links), throws invalid_argument, naming the link. A link at the key itself does not
    /// count: it is replaced.
    virtual void require_direct(std::string_view /*key*/) const {}

    /// Names of the temporary files directly below a prefix, of active or killed writers. They are not keys.
    [[nodiscard]] virtual std::vector<std::string> temporaries(std::string_view /*prefix*/) const { return {}; }
    /// Removes one of them if its writer has ended, which means a process of this machine whose number no process has
    /// now. If the writer is unknown, removes the file if it was not written to for an hour. Returns whether the file
    /// is gone.
    virtual bool remove_temporary(std::string_view /*prefix*/, std::string_view /*name*/) { return false; }
};

/// Values that are put in place only once all of them are on the disk, with one wait for all. Destruction removes those
/// that were not put in place. Thread rule: create() and place() may be called from several threads at once.
class HeldValues {
public:
    virtual ~HeldValues() = default;
    /// As KeyValueStore::create(), but finish() leaves the key as it is.
    [[nodiscard]] virtual std::unique_ptr<ByteSink> create(std::string_view key) = 0;
    /// Waits until all finished values are on the disk.
    virtual void sync() = 0;
    /// Atomically puts the finished value of a key in place; false if there is none. Call after sync().
    virtual bool place(std::string_view key) = 0;
};

}  // namespace tessera
