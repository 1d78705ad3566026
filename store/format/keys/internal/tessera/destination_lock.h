// DestinationLock: ensures that each destination has only one builder at a time.
#pragma once

#include <filesystem>
#include <memory>

#include <tessera/key_value_store.h>

namespace tessera {

/// The exclusive right to create or replace an array, a group, a folder of snapshots, a bag or a zip at one path. The
/// holder takes it before the first look at the path and holds it until the new content is in place. Meanwhile no other
/// process or thread of Tessera creates anything there. Everything in Tessera that creates or replaces a node takes it;
/// mere writes into an array do not.
///
/// It is an advisory lock (flock) on the hidden file `.NAME.tessera-lock` beside the destination. The file exists only
/// while the lock is held. When a process ends in any way, the system releases its lock, and the next run reuses its
/// file. If the folder above is not writable, the destination's own directory is locked instead.
///
/// In another kind of store (store_kind.h) it excludes the threads of this process, and other processes as far as
/// KeyValueStore::lock_destination() does.
///
/// Thread rule: used by one thread. A thread that already holds other destinations waits only if the new path sorts
/// after theirs. Otherwise, if the destination is taken, the constructor throws, so that two runs never wait for each
/// other.
class DestinationLock {
public:
    /// Holds nothing.
    DestinationLock() noexcept;
    /// Waits for any other builder of the same destination, with options.waiter; without process locks, only for
    /// threads of this process. Creates missing folders above it, and removes them on release if they are empty. Throws
    /// cancelled if the waiter gives up, already_exists if this thread holds the same destination or would have to wait
    /// out of order, and io if no lock can be taken.
    explicit DestinationLock(const std::filesystem::path& path, const StoreOptions& options = {});
    ~DestinationLock();
    DestinationLock(DestinationLock&&) noexcept;
    DestinationLock& operator=(DestinationLock&&) noexcept;

    /// The destination without a '/' at the end. If `path` is a link to a directory, that directory.
    [[nodiscard]] const std::filesystem::path& place() const;
    /// Throws io if the lock is no longer effective because its file was removed or the folder moved.
    void require_held() const;
    void unlock() noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tessera
