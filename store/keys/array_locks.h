// The locks of one array directory, between threads and between processes. Private to the store module.
#pragma once

#include <memory>
#include <string>

#include <tessera/key_value_store.h>

namespace tessera {

/// Locks of the array in one directory; all stores of this process that lead to that directory share one.
class ArrayLocks {
public:
    virtual ~ArrayLocks() = default;
    [[nodiscard]] virtual StoreLock lock(std::uint64_t slot, LockMode mode) = 0;
    [[nodiscard]] virtual std::optional<StoreLock> try_lock() = 0;
};

/// Of the directory that is open as `directory`; `name` is its path, for messages. `processes` false leaves other
/// processes alone. Throws io_error where there is no directory, or no lock file can be had.
[[nodiscard]] std::shared_ptr<ArrayLocks> array_locks(int directory, const std::string& name, bool processes);

}  // namespace tessera
