// An existing directory as a store. Private to the store module.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/descriptor.h>
#include <tessera/key_value_store.h>

namespace tessera {

/// directory_store() of an existing directory, opened at once; nullptr if `root` is absent or something else. Throws io
/// if it cannot be opened.
[[nodiscard]] std::shared_ptr<KeyValueStore> probe_directory_store(const std::filesystem::path& root,
                                                                   const StoreOptions& options);

/// sync() of several stores after their sync_later(), with one wait for each file system. May be called repeatedly.
void sync_together(std::span<KeyValueStore* const> stores);

/// The same for stores that are idle and of which no lock is held. Closes their descriptors, which are reopened by name
/// later.
void rest_together(std::span<KeyValueStore* const> stores);

/// Keeps what changes through a directory_store() replace in the array at `place`, as long as the result lives, which
/// must not outlive the store; see ChangeKeeper. At most one at a time for each store. Null for other stores. Sinks
/// that were created meanwhile must not be used afterwards.
[[nodiscard]] std::shared_ptr<const class ChangeKeeper> keep_changes(const PlaceRef& place, std::string what,
                                                                     bool keep);

/// For a directory_store() that becomes a copy or the successor of another one: its root gets the permissions of the
/// other root, and files without metadata beside them those of the other store's. `model` must outlive it. Does nothing
/// for other stores, or if `model` does not exist.
void share_like(KeyValueStore& store, const ReadableStore& model);

/// For a directory_store() that holds nothing but a new array: its files get the permissions that the mask leaves.
void follow_mask(KeyValueStore& store);

/// From now on a directory_store() writes values as temporary files in the folder `drafts`, which must be there, and
/// removes them by way of it, so that it changes no value once that folder has been removed. Only for put(), create()
/// and erase().
void draft_in(KeyValueStore& store, const std::string& drafts);

/// Closes the lock files of a directory_store() that this process has open but does not hold.
void close_idle_locks(KeyValueStore& store);

/// One of Tessera's own values, of the folder that is `levels` folders above the one at `place`; nullptr if it is
/// absent. In a directory_store() those are the real folders, even above its root, where nothing is read but this
/// value; in other stores the keys tell. Throws not_found if there is no such folder, or nothing of Tessera's own in
/// it.
[[nodiscard]] std::unique_ptr<ByteSource> open_above(const PlaceView& place, std::uint32_t levels,
                                                     std::string_view key);

/// Whether it is a directory_store().
[[nodiscard]] bool is_directory_store(const ReadableStore& store);

/// One of Tessera's own values in a directory_store(), open to be appended to. The store outlives it. Thread rule: any.
class OwnValue {
public:
    OwnValue(KeyValueStore& store, std::string_view key, Descriptor file, bool waits)
        : store_(store), key_(key), file_(std::move(file)), waits_(waits) {}

    /// Appends in place and by one call of the system, and waits for the disk unless the durability is none. Returns
    /// the size then. A value that cannot be appended to, or has further names, is removed instead, and 0 returned: the
    /// caller must prefer none to one without this text. Throws io if that fails, too.
    std::uint64_t append(std::string_view text);

private:
    KeyValueStore& store_;
    std::string key_;
    Descriptor file_;
    bool waits_;
};

/// nullptr if it is absent, or in other stores.
[[nodiscard]] std::unique_ptr<OwnValue> open_own(KeyValueStore& store, std::string_view key);

/// Whether the open directory of a directory_store() is no longer the one at its path.
[[nodiscard]] bool has_lost_its_name(const ReadableStore& store);

}  // namespace tessera
