// The locks of one array between the threads of this process.
#pragma once

#include <tessera/key_value_store.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>

namespace tessera {

/// Slot 0, the shape, is a shared mutex. The chunks' slots share a fixed number of mutexes, so that an array of any
/// size needs the same few kilobytes: two chunks may then wait for each other needlessly, but never for ever, because a
/// thread holds one chunk slot at a time.
class LockTable {
public:
    /// Blocks until the slot is held. The lock keeps the table alive.
    [[nodiscard]] static StoreLock lock(std::shared_ptr<LockTable> table, std::uint64_t slot, LockMode mode) {
        if (slot == 0 && mode == LockMode::shared) {
            table->shape_.lock_shared();
            return StoreLock([t = std::move(table)] { t->shape_.unlock_shared(); });
        }
        if (slot == 0) {
            table->shape_.lock();
            return StoreLock([t = std::move(table)] { t->shape_.unlock(); });
        }
        std::mutex& chunk = table->chunks_[(slot - 1) % table->chunks_.size()];
        chunk.lock();
        return StoreLock([t = std::move(table), &chunk] { chunk.unlock(); });
    }

private:
    std::shared_mutex shape_;
    std::array<std::mutex, 256> chunks_;
};

/// The locks of every array of a store that nobody else can reach.
class LockTables {
public:
    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) {
        std::shared_ptr<LockTable> table;
        {
            const std::lock_guard guard(mutex_);
            auto& entry = tables_[std::string(prefix)];
            if (!entry) entry = std::make_shared<LockTable>();
            table = entry;
        }
        return LockTable::lock(std::move(table), slot, mode);
    }

private:
    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<LockTable>> tables_;
};

}  // namespace tessera
