// DestinationLock: one destination has one builder.
#pragma once

#include <filesystem>
#include <memory>

#include <tessera/key_value_store.h>

namespace tessera {

/// The right to make what lies, or is to lie, at one path: an array, a group, a folder of snapshots, a bag, a zip.
/// Taken before the first look at the path and held until the new one is in place, it keeps away every other process
/// and thread that makes something there. Everything in Tessera that makes a node or replaces one takes it; who only
/// writes into an array does not.
///
/// It is an advisory lock (flock) on the hidden file `.NAME.tessera-lock` beside the destination, which exists only
/// while somebody holds it. A process that ends in any way drops it, and its file is taken over by the next run. Where
/// the folder above cannot be written to, the destination's own directory is locked instead.
///
/// Thread rule: used by one thread. A thread that wants a destination while it holds others waits only if the path
/// comes after theirs; else it is refused when somebody else has it, so that two runs never wait for each other.
class DestinationLock {
public:
    /// Holds nothing.
    DestinationLock() noexcept;
    /// Waits, as options.waiter says, for whoever makes the same destination; without process locks, only for other
    /// threads of this process. Folders above it that do not exist are made; they go again with the lock when they are
    /// empty. Throws cancelled when the waiter gives up, already_exists when this thread holds the same destination or
    /// would have to wait out of order, io when there can be no lock.
    explicit DestinationLock(const std::filesystem::path& path, const StoreOptions& options = {});
    ~DestinationLock();
    DestinationLock(DestinationLock&&) noexcept;
    DestinationLock& operator=(DestinationLock&&) noexcept;

    /// The destination itself where `path` is a link to a directory, without a '/' at the end.
    [[nodiscard]] const std::filesystem::path& place() const;
    /// Throws io when the lock keeps nobody away any more: somebody removed its file, or moved the folder.
    void require_held() const;
    void unlock() noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tessera
