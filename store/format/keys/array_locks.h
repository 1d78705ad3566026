// The locks of one array directory, between threads and between processes. Private to the store module.
#pragma once

#include <memory>
#include <string>

#include <tessera/key_value_store.h>

namespace tessera {

/// Locks of the array in one directory. All stores of this process for that directory share one object.
class ArrayLocks {
public:
    virtual ~ArrayLocks() = default;
    [[nodiscard]] virtual StoreLock lock(std::uint64_t slot, LockMode mode) = 0;
    [[nodiscard]] virtual std::optional<StoreLock> try_lock() = 0;
    /// Closes the lock file if nobody in this process holds or awaits a lock; the next lock opens it again. For a
    /// folder that is about to be removed, because some file systems keep deleted files in it while they are open.
    virtual void close_idle() = 0;
};

/// The locks of the open directory `directory`; `name` is its path, for messages. If `processes` is false, they exclude
/// threads only. Throws io_error if there is no directory or no lock file can be opened.
[[nodiscard]] std::shared_ptr<ArrayLocks> array_locks(int directory, const std::string& name, bool processes);

}  // namespace tessera
