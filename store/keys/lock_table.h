// The locks of one array between the threads of this process.
#pragma once

#include <tessera/error.h>
#include <tessera/key_value_store.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>

namespace tessera {

/// Slot 0, the shape, is a shared mutex. The chunks' slots share a fixed number of mutexes, so that an array of any
/// size needs the same few kilobytes. Two chunks may therefore wait for each other needlessly, but cannot deadlock,
/// because a thread holds one chunk slot at a time.
class ThreadLocks {
public:
    void lock_shape(LockMode mode) {
        // A waiting exclusive locker holds the gate, so that a stream of writers cannot starve it.
        if (owner_ == std::this_thread::get_id()) {
            throw invalid_argument(
                "this thread has the array to itself, for a batch of edits: write through that, or commit it first");
        }
        const std::lock_guard gate(gate_);
        if (mode == LockMode::shared) {
            shape_.lock_shared();
        } else {
            shape_.lock();
            owner_ = std::this_thread::get_id();
        }
    }
    [[nodiscard]] bool try_lock_shape() {
        const std::unique_lock gate(gate_, std::try_to_lock);
        if (!gate.owns_lock() || !shape_.try_lock()) return false;
        owner_ = std::this_thread::get_id();
        return true;
    }
    void unlock_shape(LockMode mode) {
        if (mode == LockMode::shared) {
            shape_.unlock_shared();
        } else {
            owner_ = std::thread::id();
            shape_.unlock();
        }
    }
    [[nodiscard]] std::mutex& chunk(std::uint64_t slot) { return chunks_[(slot - 1) % chunks_.size()]; }

private:
    std::mutex gate_;
    std::shared_mutex shape_;
    std::atomic<std::thread::id> owner_ = {};  ///< the thread that holds the shape exclusively
    std::array<std::mutex, 256> chunks_;
};

/// The locks of all arrays of a store that no other process can reach.
class LockTables {
public:
    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) {
        std::shared_ptr<ThreadLocks> table = table_of(prefix);
        if (slot == 0) {
            table->lock_shape(mode);
            return StoreLock([t = std::move(table), mode] { t->unlock_shape(mode); });
        }
        std::mutex& chunk = table->chunk(slot);
        chunk.lock();
        return StoreLock([t = std::move(table), &chunk] { chunk.unlock(); });
    }
    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view prefix) {
        std::shared_ptr<ThreadLocks> table = table_of(prefix);
        if (!table->try_lock_shape()) return std::nullopt;
        return StoreLock([t = std::move(table)] { t->unlock_shape(LockMode::exclusive); });
    }

private:
    [[nodiscard]] std::shared_ptr<ThreadLocks> table_of(std::string_view prefix) {
        const std::lock_guard guard(mutex_);
        auto& entry = tables_[std::string(prefix)];
        if (!entry) entry = std::make_shared<ThreadLocks>();
        return entry;
    }

    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<ThreadLocks>> tables_;
};

}  // namespace tessera
