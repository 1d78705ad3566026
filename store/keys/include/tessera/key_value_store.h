// KeyValueStore: `/`-separated keys to bytes. Directory, memory, zip; later HTTP, S3.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/byte_io.h>

namespace tessera {

/// What lies directly below a prefix.
struct Listing {
    /// Names of values, sorted. In a directory also of what is neither a file nor a folder (a FIFO, a link that leads
    /// nowhere): a name that is there is not absent, and opening it fails.
    std::vector<std::string> keys;
    std::vector<std::string> prefixes;  ///< names of "folders", sorted
    std::vector<std::string> links;     ///< names that are symbolic links to folders, or to nothing; sorted
};

/// What a folder is, however its name is reached.
struct FolderId {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    friend bool operator==(const FolderId&, const FolderId&) = default;
    friend bool operator<(const FolderId& a, const FolderId& b) {
        return std::pair(a.device, a.inode) < std::pair(b.device, b.inode);
    }
};

enum class LockMode : std::uint8_t { shared, exclusive };

/// What a power failure may cost. That a value is replaced as a whole, so that a crash of a program loses nothing,
/// holds for all three.
enum class Durability : std::uint8_t {
    none,    ///< the system writes when it likes: a power failure may cost what was written in the last half minute
    commit,  ///< each value is on the disk before it replaces the old one; all is durable when an operation returns
    each,    ///< every put and erase is durable by itself
};
/// By name; throws invalid_argument that lists the names.
[[nodiscard]] Durability durability_named(std::string_view name);

/// Told when an operation has to wait for another run that makes the same destination (see DestinationLock).
class Waiter {
public:
    virtual ~Waiter() = default;
    /// Called once, when the waiting begins. `builder` says whom it is for: "process 1234", "another thread".
    virtual void waits(const std::filesystem::path& destination, std::string_view builder) = 0;
    /// Asked several times a second while waiting; true ends the operation with Error(cancelled).
    [[nodiscard]] virtual bool stopped() const { return false; }
};

/// How a place is opened.
struct StoreOptions {
    bool read_only = false;
    Durability durability = Durability::commit;
    /// Whether writers of other processes are kept away. Only for file systems that have no locks, and then the caller
    /// answers for there being no other writer.
    bool process_locks = true;
    /// Not owned; outlives what is opened with these options. Null: waiting is silent and has no end.
    Waiter* waiter = nullptr;
    /// Whether values are written and erased through symbolic links to directories below the path that was named.
    /// Reading follows them always; removing what holds a link, and moving it, never does.
    bool follow_links = false;
};

/// Tells whether a value was replaced: those of two versions differ.
struct ValueStamp {
    std::uint64_t size = 0;
    std::int64_t modified = 0;  ///< nanoseconds since 1970; 0 where the store keeps no times
    std::uint64_t id = 0;       ///< of the file: its inode; 0 where there is none
    /// The file's time is too coarse to tell versions apart: `id` is of its bytes, and the time does not count.
    bool by_content = false;

    friend bool operator==(const ValueStamp& a, const ValueStamp& b) {
        return a.size == b.size && a.id == b.id && a.by_content == b.by_content &&
               (a.by_content || a.modified == b.modified);
    }
};

/// A held lock; released on destruction, on the thread that took it.
class StoreLock {
public:
    StoreLock() = default;
    explicit StoreLock(std::function<void()> release) : release_(std::move(release)) {}
    StoreLock(StoreLock&& o) noexcept : release_(std::exchange(o.release_, nullptr)) {}
    StoreLock& operator=(StoreLock&& o) noexcept {
        if (this != &o) {
            unlock();
            release_ = std::exchange(o.release_, nullptr);
        }
        return *this;
    }
    ~StoreLock() { unlock(); }
    void unlock() {
        if (auto f = std::exchange(release_, nullptr)) f();
    }

private:
    std::function<void()> release_;
};

/// Values that are put in place once all of them are on the disk: one wait for it, however many they are. Destruction
/// removes those that were not put in place. Thread rule: create() and place() from several threads at once.
class HeldValues {
public:
    virtual ~HeldValues() = default;
    /// As KeyValueStore::create(), but finish() leaves the key as it is.
    [[nodiscard]] virtual std::unique_ptr<ByteSink> create(std::string_view key) = 0;
    /// Waits until all that was finished is on the disk.
    virtual void sync() = 0;
    /// Puts the value that was finished for a key in its place, in one step; false where there is none. After sync().
    virtual bool place(std::string_view key) = 0;
};

/// Keys to bytes. Keys are UTF-8, parts joined by '/', no part empty, "." or ".."; anything else is invalid_argument.
/// Thread rule: every member may be called from several threads at once.
class KeyValueStore {
public:
    virtual ~KeyValueStore() = default;

    /// One pinned version of a value, or nullptr when the key is absent. Absence is no error.
    [[nodiscard]] virtual std::unique_ptr<ByteSource> open(std::string_view key) const = 0;
    /// Reads a whole value into `out` (its memory is reused); false when the key is absent.
    /// Throws corrupt for a value of more than `limit` bytes, before any memory is taken for it.
    [[nodiscard]] virtual bool get(std::string_view key, Buffer& out, std::uint64_t limit = UINT64_MAX) const;
    /// Sets a value, all or nothing: a reader sees the old bytes or the new ones.
    virtual void put(std::string_view key, ByteSpan value) = 0;
    /// A value that is written piece by piece and set, all or nothing, by its finish(). Written to at any place where
    /// random_access(); a zip is not. The store must outlive it.
    [[nodiscard]] virtual std::unique_ptr<ByteSink> create(std::string_view key) = 0;
    /// For many values at once where each put() would wait for the disk; null where none does. The store must outlive
    /// it.
    [[nodiscard]] virtual std::unique_ptr<HeldValues> hold() { return nullptr; }
    /// Makes a key the very file that a key of another store is, by a hard link, if the key is absent; false where that
    /// is not possible (other kinds of stores, another file system) or the key is there.
    virtual bool link(std::string_view /*key*/, const KeyValueStore& /*other*/, std::string_view /*other_key*/) {
        return false;
    }
    /// Makes a key a copy of another store's that shares its blocks on the disk until one of both changes (a reflink);
    /// false where that is not possible, or the other key is absent.
    virtual bool clone(std::string_view /*key*/, const KeyValueStore& /*other*/, std::string_view /*other_key*/) {
        return false;
    }
    /// Puts the value of `from` in the place of that of `to`, in one step, and removes `from`; false when `from` is
    /// absent. Throws unsupported for a store that cannot.
    virtual bool replace(std::string_view from, std::string_view to);
    /// What prepare_replace() finds at a key.
    struct Target {
        bool exists = false;   ///< there is a value
        bool crosses = false;  ///< it lies on another file system than the root: replace() has to copy
    };
    /// Looks whether replace() or put() can be expected to put a value there, and erase() to remove it, before
    /// something is done that cannot be taken back. Makes the folder of the key. Throws io, saying what stands in the
    /// way: a directory that has the name, a file that is immutable, a folder that cannot be written.
    virtual Target prepare_replace(std::string_view key) { return {.exists = contains(key)}; }
    /// Of the value that is there now; nothing when the key is absent. Where a file system keeps no nanoseconds, the
    /// value is read.
    [[nodiscard]] virtual std::optional<ValueStamp> stamp(std::string_view key) const;
    /// Whether the key is there: what stamp() says, without reading anything.
    [[nodiscard]] virtual bool contains(std::string_view key) const;
    /// Removes a value; false when it was absent.
    virtual bool erase(std::string_view key) = 0;
    /// Removes everything below a prefix ("" is everything).
    virtual void erase_below(std::string_view prefix) = 0;
    /// Moves everything below the prefix `from` to the prefix `to`, where nothing may be. Throws not_found,
    /// already_exists, invalid_argument for a move into itself, unsupported for a store that cannot.
    virtual void move(std::string_view from, std::string_view to);
    /// What lies directly below a prefix ("" is the root). Temporary files of writers are left out.
    [[nodiscard]] virtual Listing list(std::string_view prefix) const = 0;
    /// Calls `each(name, size)` for every value directly below a prefix, unsorted, holding nothing in memory. A size is
    /// asked for by calling size(), within `each`: in a directory that costs several times as much as the name. It is 0
    /// for a value that is gone meanwhile, and for what is no file (see Listing::keys). `folder`, unless empty, gets
    /// the names of folders, and whether each is a symbolic link to one.
    using ValueSize = std::function<std::uint64_t()>;
    using EachValue = std::function<void(std::string_view name, const ValueSize& size)>;
    using EachFolder = std::function<void(std::string_view name, bool link)>;
    virtual void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const = 0;
    void for_each(std::string_view prefix, const EachValue& each) const { for_each(prefix, each, nullptr); }

    /// Names of the temporary files directly below a prefix, of writers that are at work or were killed. They are no
    /// keys.
    [[nodiscard]] virtual std::vector<std::string> temporaries(std::string_view /*prefix*/) const { return {}; }
    /// Removes one of them once its writer has ended: it was a process of this machine, and none has its number. Of any
    /// other nothing is known, so that it goes when nobody has written to it for an hour. Returns whether it is gone.
    virtual bool remove_temporary(std::string_view /*prefix*/, std::string_view /*name*/) { return false; }

    /// Locks of the array at `prefix`: slot 0 is the shape, slot 1 + i is chunk i. Blocks until it is held. Between
    /// the threads of this process, whichever store objects they use for the same place, and in a directory between
    /// processes too. One chunk slot per thread at a time, taken while the shape slot is held: never nested otherwise.
    [[nodiscard]] virtual StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) = 0;
    /// The shape slot, exclusively; nothing where somebody else has it in any way.
    [[nodiscard]] virtual std::optional<StoreLock> try_lock(std::string_view prefix) = 0;

    /// The DestinationLock of the array or group at `prefix`, for what is made or removed as a whole. Holds nothing in
    /// stores that no other run can reach.
    [[nodiscard]] virtual StoreLock lock_destination(std::string_view /*prefix*/) { return {}; }

    /// Makes durable what was put and erased through this object before; does nothing where that is so already, or
    /// where Durability::none was asked for.
    virtual void sync() {}
    /// Defers forcing values to the disk to the next sync(). Only for data that nobody can read before then.
    virtual void sync_later() {}

    /// Whether a prefix leads back to one above it (a symbolic link to a directory above), so that a walk ends there.
    [[nodiscard]] virtual bool leads_back(std::string_view /*prefix*/) const { return false; }

    /// Of the folder that a prefix is or, by symbolic links, leads to; nothing where there is none, and in stores
    /// without links, in which each folder has one name.
    [[nodiscard]] virtual std::optional<FolderId> folder_id(std::string_view /*prefix*/) const { return std::nullopt; }
    /// Whether a prefix itself is a symbolic link: what removes a hierarchy does not go through it.
    [[nodiscard]] virtual bool is_link(std::string_view /*prefix*/) const { return false; }
    /// What is written in a symbolic link; empty for anything else.
    [[nodiscard]] virtual std::string link_target(std::string_view /*prefix*/) const { return {}; }
    /// Throws invalid_argument, naming it, where a link on the way to a key keeps it from being written or erased (see
    /// StoreOptions::follow_links): for operations that ask before they change anything. A link at the key itself is
    /// none on the way: it is replaced.
    virtual void require_direct(std::string_view /*key*/) const {}

    /// Makes visible what was written where that happens all at once (a new zip); does nothing elsewhere.
    virtual void finish() {}

    [[nodiscard]] virtual bool read_only() const { return false; }
    /// What a person calls this store: the directory's path, "memory".
    [[nodiscard]] virtual const std::string& name() const = 0;
};

/// A directory. It need not exist when it is only read (then it is empty); the first put makes it. Values are files;
/// put writes a temporary file in the same directory and renames it. Reading follows symbolic links; nothing is changed
/// through one below the root unless follow_links allows it.
[[nodiscard]] std::shared_ptr<KeyValueStore> directory_store(const std::filesystem::path& root,
                                                             const StoreOptions& options = {});
/// Of a zip archive: what may be done with it.
enum class ZipMode : std::uint8_t {
    read,     ///< an archive that is there; it is never changed
    create,   ///< a new one, where no file is
    replace,  ///< a new one, in the place of an old file, which stays until finish()
};
/// A zip archive. Reading: keys are the names of its members. Writing: one archive in order, each chunk once, complete
/// and visible under its name by finish(), as zip_store.cpp explains.
[[nodiscard]] std::shared_ptr<KeyValueStore> zip_store(const std::filesystem::path& path, ZipMode mode);
/// Values in memory.
[[nodiscard]] std::shared_ptr<KeyValueStore> memory_store();

/// "a" + "b" is "a/b"; an empty side gives the other.
[[nodiscard]] std::string join_key(std::string_view prefix, std::string_view name);

}  // namespace tessera
