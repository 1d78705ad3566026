// KeyValueStore: maps `/`-separated keys to bytes. Implemented by a directory, memory and a zip, and by other kinds of
// stores as store_kind.h says, among them HTTP and S3. Place: a store and a prefix in it.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/byte_io.h>
#include <tessera/far_store.h>
#include <tessera/local_files.h>
#include <tessera/store_locks.h>

namespace tessera {

/// The names directly below a prefix.
struct Listing {
    /// Names of values, sorted. In a directory, includes names that are neither file nor folder (a FIFO, a dangling
    /// link): they are not absent, but opening them fails.
    std::vector<std::string> keys;
    std::vector<std::string> prefixes;  ///< names of "folders", sorted
    std::vector<std::string> links;     ///< names of symbolic links to folders, or dangling ones; sorted
};

/// The data that a power failure may lose. In all three modes values are replaced as a whole, so that a program's crash
/// loses nothing.
enum class Durability : std::uint8_t {
    none,    ///< the system decides when to write: a power failure may lose the last half minute
    commit,  ///< each value is on the disk before it replaces the old one; all is durable when an operation returns
    each,    ///< every put and erase is durable by itself
};
/// By name. For an unknown one, throws invalid_argument, listing the names.
[[nodiscard]] Durability durability_named(std::string_view name);

/// Notified when an operation must wait for another run that makes the same destination (see DestinationLock), and of
/// what a person should know about files that were written.
class Waiter {
public:
    virtual ~Waiter() = default;
    /// Called once, when waiting begins. `builder` names the holder of the lock: "process 1234", "another thread".
    virtual void waits(const std::filesystem::path& destination, std::string_view builder) = 0;
    /// Polled several times a second while waiting; if true, the operation throws Error(cancelled).
    [[nodiscard]] virtual bool stopped() const { return false; }
    /// Called when something was written otherwise than it should be, in any thread: `text` says what and why.
    virtual void notes(std::string_view /*text*/) {}
};

struct RemoteOptions;

/// How a place is opened.
struct StoreOptions {
    bool read_only = false;
    Durability durability = Durability::commit;
    /// Whether locks exclude writers of other processes. Set to false only on file systems without locks; the caller
    /// must then ensure that no other process writes.
    bool process_locks = true;
    /// Not owned; must outlive everything opened with these options. Null: waits silently and without limit.
    Waiter* waiter = nullptr;
    /// Whether values are read, written and erased through all symbolic links below the opened path. If not, reading
    /// alone follows links: within an array's folder, outside of arrays in the opened one, and to arrays and groups.
    bool follow_links = false;
    /// If not empty, a real path (see real_path). Links that lead out of it are then not followed for reading either:
    /// everything behind one is absent, except that a chunk there throws unsupported and does not read as the fill. For
    /// servers, whose clients may see less than the user who runs them.
    std::filesystem::path within = {};
    /// Whether sealed arrays and groups may be changed (tessera/seal.h). The first change durably marks the seal as
    /// broken.
    bool break_seal = false;
    /// For places over the network; null: remote_options() (tessera/remote_options.h).
    std::shared_ptr<const RemoteOptions> remote = nullptr;
};

/// The same, for reading.
[[nodiscard]] inline StoreOptions to_read(StoreOptions options) {
    options.read_only = true;
    return options;
}

/// Identifies a version of a value: a replaced value has another stamp.
struct ValueStamp {
    std::uint64_t size = 0;
    std::int64_t modified = 0;  ///< nanoseconds since 1970; 0 where the store keeps no times
    std::uint64_t id = 0;       ///< of the file: its inode; 0 if there is none
    /// The file's time is too coarse to tell versions apart: `id` is then a hash of its bytes, and the time is ignored.
    bool by_content = false;
    /// When anything of the file changed, as `modified`. It tells a file that was rewritten in place with its old time.
    /// Not compared, because another link to the file changes it, too.
    std::int64_t changed = 0;

    friend bool operator==(const ValueStamp& a, const ValueStamp& b) {
        return a.size == b.size && a.id == b.id && a.by_content == b.by_content &&
               (a.by_content || a.modified == b.modified);
    }
};

/// What can be read of a store. Keys are UTF-8: parts joined by '/', none of them empty, "." or ".."; any other key
/// throws invalid_argument. Thread rule: every member may be called from several threads at once.
class ReadableStore {
public:
    virtual ~ReadableStore() = default;

    /// One pinned version of a value, or nullptr when the key is absent. Absence is not an error.
    [[nodiscard]] virtual std::unique_ptr<ByteSource> open(std::string_view key) const = 0;
    /// Reads a whole value into `out` (reusing its memory); false if the key is absent. For a value of more than
    /// `limit` bytes, throws corrupt before allocating memory.
    [[nodiscard]] virtual bool get(std::string_view key, Buffer& out, std::uint64_t limit = UINT64_MAX) const;
    /// What only a store over the network has; null for any other.
    [[nodiscard]] virtual const FarStore* far() const { return nullptr; }
    /// Whether each read is a request over the network, so that it pays to announce them.
    [[nodiscard]] bool is_far() const { return far() != nullptr; }
    /// How to open, for reading, what lies beside the store.
    [[nodiscard]] StoreOptions options_beside() const;
    /// Whether list() and for_each() name everything that is there; a server of files over HTTP does not say it.
    [[nodiscard]] virtual bool lists() const { return true; }
    /// Announces values that get() and open() will be asked for in about this order, each once. Values for get() have
    /// `usual` bytes at most; a longer one costs a second request. next() is called as requests become free, in any
    /// thread, one call at a time; it must not use the store. At most `room` bytes of memory are taken, and at most
    /// half of what is left. Null unless is_far(), or if there is no room for one value. The store must outlive the
    /// result.
    [[nodiscard]] std::unique_ptr<ReadAhead> read_ahead(std::uint64_t usual, NextWish next, std::uint64_t room) const {
        return is_far() ? far()->read_ahead(usual, std::move(next), room) : nullptr;
    }
    [[nodiscard]] std::unique_ptr<ReadAhead> read_ahead(std::uint64_t usual, NextWish next) const {
        return read_ahead(usual, std::move(next), UINT64_MAX);
    }
    /// For values that are read part by part, maybe through several open(): while the result lives, each part is
    /// fetched once, and the latest values are kept in files without names on this machine. A value that is replaced
    /// meanwhile reads as it was, or fails. `whole`: all of each value will be read, so more may be fetched at once
    /// than is asked for. Null unless that pays. The store must outlive the result.
    [[nodiscard]] std::unique_ptr<ReadAhead> keep_parts(bool whole) const {
        return is_far() ? far()->keep_parts(whole) : nullptr;
    }
    /// The stamp of the present value; nullopt if the key is absent. Reads the value if the file system does not record
    /// nanoseconds.
    [[nodiscard]] virtual std::optional<ValueStamp> stamp(std::string_view key) const;
    /// The same of many keys, which in a store far away are asked for at once.
    [[nodiscard]] std::vector<std::optional<ValueStamp>> stamps(std::span<const std::string> keys) const;
    /// Whether the key exists, as stamp() would say, but without reading the value.
    [[nodiscard]] virtual bool contains(std::string_view key) const;
    /// Lists the names directly below a prefix ("" is the root), without writers' temporary files.
    [[nodiscard]] virtual Listing list(std::string_view prefix) const = 0;
    /// Calls `each(name, size)` for every value directly below a prefix, in no order and without a list in memory.
    /// Within `each`, size() queries the size, which in a directory costs several times as much as the name. It is 0
    /// for a value removed meanwhile, and for a name that is not a file (see Listing::keys). `folder`, unless empty, is
    /// called for every folder, with whether it is a symbolic link.
    using ValueSize = std::function<std::uint64_t()>;
    using EachValue = std::function<void(std::string_view name, const ValueSize& size)>;
    using EachFolder = std::function<void(std::string_view name, bool link)>;
    virtual void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const = 0;
    void for_each(std::string_view prefix, const EachValue& each) const { for_each(prefix, each, nullptr); }
    /// The same, with the MD5 sum of each value in hexadecimal digits, if the store knows it without reading the value;
    /// else it is empty.
    using EachSum = std::function<void(std::string_view name, std::uint64_t size, std::string_view md5)>;
    void for_each_sum(std::string_view prefix, const EachSum& each, const EachFolder& folder) const;
    /// The same, with the stamp of each value, as stamp() gives it; only for stores with is_far().
    using EachStamp = std::function<void(std::string_view name, const ValueStamp& stamp)>;
    void for_each_stamp(std::string_view prefix, const EachStamp& each, const EachFolder& folder) const;

    using SeenTimes = tessera::SeenTimes;
    /// Since the store was opened; only stores with is_far() know any.
    [[nodiscard]] SeenTimes seen_times() const { return is_far() ? far()->seen_times() : SeenTimes(); }

    [[nodiscard]] virtual bool read_only() const { return false; }
    /// The name for messages: the directory's path, "memory".
    [[nodiscard]] virtual const std::string& name() const = 0;
    /// The name of a key, or of what lies at a prefix, for messages.
    [[nodiscard]] std::string name_of(std::string_view key) const;
    /// What the store knows of its values as files of this machine. In other kinds of stores, the answers that
    /// LocalFiles gives by default.
    [[nodiscard]] virtual const LocalFiles& local_files() const;
};

/// Maps keys to bytes: what can be read, and changed. Thread rule: every member may be called from several threads at
/// once.
class KeyValueStore : public ReadableStore, public StoreLocks {
public:
    /// Sets a value atomically: a reader sees the old bytes or the new ones.
    virtual void put(std::string_view key, ByteSpan value) = 0;
    /// The same unless the key has a value; false if it has. In a directory only one of several callers succeeds,
    /// whichever programs they are; elsewhere callers must not do this at once.
    virtual bool put_new(std::string_view key, ByteSpan value);
    /// A sink for a value that is written piece by piece; its finish() sets the value atomically. If the sink has
    /// random_access() (in a zip it does not), pieces may be written in any order. The store must outlive it.
    [[nodiscard]] virtual std::unique_ptr<ByteSink> create(std::string_view key) = 0;
    /// For many values at once, if each put() would wait for the disk; null if put() does not wait. The store must
    /// outlive it.
    [[nodiscard]] virtual std::unique_ptr<HeldValues> hold() { return nullptr; }
    /// Atomically replaces the value of `to` by that of `from`, and removes `from`; false if `from` is absent. Throws
    /// unsupported if the store cannot do this.
    virtual bool replace(std::string_view from, std::string_view to);
    /// The result of prepare_replace().
    struct Target {
        bool exists = false;   ///< the key has a value
        bool crosses = false;  ///< it is on another file system than the root, so that replace() has to copy
    };
    /// Checks, before an irreversible step, whether replace(), put() and erase() of a key can be expected to succeed.
    /// Creates the folder of the key. Throws io, naming the obstacle: a directory of that name, an immutable file, a
    /// folder that is not writable.
    virtual Target prepare_replace(std::string_view key) { return {.exists = contains(key)}; }
    /// Removes a value; false when it was absent.
    virtual bool erase(std::string_view key) = 0;
    /// Removes everything below a prefix ("" is everything).
    virtual void erase_below(std::string_view prefix) = 0;
    /// Removes what killed runs had sent of values at and below a prefix, and no listing shows. Nothing in most stores.
    void abandon_uploads(std::string_view prefix) {
        if (is_far()) far()->abandon_uploads(prefix);
    }
    /// Moves everything below the prefix `from` to the prefix `to`, which must be empty. Throws not_found,
    /// already_exists, invalid_argument for a move into itself, and unsupported if the store cannot do this.
    virtual void move(std::string_view from, std::string_view to);

    /// Makes earlier puts and erases through this object durable. Does nothing if they are durable already, or with
    /// Durability::none.
    virtual void sync() {}
    /// Defers forcing values to the disk to the next sync(). Only for data that nobody can read before then.
    virtual void sync_later() {}

    /// Makes all writes visible in stores that show them only together (a new zip); does nothing elsewhere.
    virtual void finish() {}
    using ReadableStore::local_files;
    /// The same, for changes.
    [[nodiscard]] virtual LocalFiles& local_files();
};

/// A directory. If it does not exist, it reads as empty, and the first put creates it. Values are files; put writes a
/// temporary file in the same directory and renames it. Reading follows symbolic links; writing follows those below the
/// root only if follow_links allows it.
[[nodiscard]] std::shared_ptr<KeyValueStore> directory_store(const std::filesystem::path& root,
                                                             const StoreOptions& options = {});
/// How a zip archive is opened.
enum class ZipMode : std::uint8_t {
    read,     ///< an existing archive, which is never changed
    create,   ///< a new one; no file may be there
    replace,  ///< a new one that replaces an old file, which stays until finish()
};
/// A zip archive. Reading: keys are the names of its members. Writing: members in order, each chunk once; finish()
/// completes the archive and makes it visible under its name.
[[nodiscard]] std::shared_ptr<KeyValueStore> zip_store(const std::filesystem::path& path, ZipMode mode);
/// Values in memory.
[[nodiscard]] std::shared_ptr<KeyValueStore> memory_store();

/// "a" + "b" is "a/b"; an empty side gives the other.
[[nodiscard]] std::string join_key(std::string_view prefix, std::string_view name);

/// A place in a store: where an array, a group or a folder lies, or would. PlaceView is one to be read, PlaceRef one to
/// be changed. Both are only passed down: they own neither the store nor the prefix.
template <class Store>
struct BorrowedPlace {
    // NOLINTNEXTLINE(google-explicit-constructor,hicpp-explicit-conversions): the root of a store is a place
    BorrowedPlace(Store& s, std::string_view p = {}) : store(s), prefix(p) {}
    template <class Other>
    requires(!std::is_same_v<Store, Other> && std::is_convertible_v<Other&, Store&>)
        // NOLINTNEXTLINE(google-explicit-constructor,hicpp-explicit-conversions): what can be changed can be read
        BorrowedPlace(const BorrowedPlace<Other>& other)
        : store(other.store), prefix(other.prefix) {}

    Store& store;
    std::string_view prefix;  ///< "" is the root

    /// The key of what has this name at the place; of the place itself for "".
    [[nodiscard]] std::string key(std::string_view below) const { return join_key(prefix, below); }
    /// The name of the place for messages, or of what lies below it.
    [[nodiscard]] std::string name() const { return store.name_of(prefix); }
    [[nodiscard]] std::string name_of(std::string_view below) const { return store.name_of(key(below)); }
};
using PlaceView = BorrowedPlace<const ReadableStore>;
using PlaceRef = BorrowedPlace<KeyValueStore>;

/// The same, together with the store.
struct Place {
    Place() = default;
    template <std::derived_from<KeyValueStore> Store>
    // NOLINTNEXTLINE(google-explicit-constructor,hicpp-explicit-conversions): the root of a store is a place
    Place(std::shared_ptr<Store> s, std::string_view p = {}) : store(std::move(s)), prefix(p) {}

    std::shared_ptr<KeyValueStore> store;
    std::string prefix;

    // NOLINTNEXTLINE(google-explicit-constructor,hicpp-explicit-conversions): lent to what only uses it
    operator PlaceRef() const { return {*store, prefix}; }
    // NOLINTNEXTLINE(google-explicit-constructor,hicpp-explicit-conversions)
    operator PlaceView() const { return {*store, prefix}; }
    [[nodiscard]] std::string key(std::string_view below) const { return join_key(prefix, below); }
    [[nodiscard]] std::string name() const { return store->name_of(prefix); }
    [[nodiscard]] std::string name_of(std::string_view below) const { return store->name_of(key(below)); }
};

}  // namespace tessera
