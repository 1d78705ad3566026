// The locks of one array between the threads of this process.
#pragma once

#include <tessera/caller.h>
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
#include <vector>

namespace tessera {

/// A thread that waits for a chunk's lock for longer than usual, for the lifetime of the object. Each knows the locks
/// that it holds itself. If threads wait for each other, all of them are known once the last one begins to wait.
class LockWait {
public:
    /// Throws invalid_argument if the thread that holds `wanted` waits, maybe by way of others, for this one.
    explicit LockWait(const HeldLock& wanted);
    ~LockWait();
    LockWait(const LockWait&) = delete;
    LockWait& operator=(const LockWait&) = delete;

private:
    [[nodiscard]] bool holds(const HeldLock& wanted) const;
    [[nodiscard]] bool leads_to(const LockWait& first, std::vector<const LockWait*>& passed) const;

    HeldLock wanted_;
    std::vector<HeldLock> held_;
};

/// Slot 0, the shape, is a shared mutex. The chunks' slots share a fixed number of mutexes, so that an array of any
/// size needs the same few kilobytes. Two chunks may therefore wait for each other needlessly, but cannot deadlock,
/// because a thread holds one chunk slot at a time. A thread that would wait for itself gets an error, also when it
/// runs a job for the one that holds the lock. So does a thread that would wait for one that waits for it, with locks
/// of several arrays. Waits end when the thread is asked to stop (StopScope).
class ThreadLocks {
public:
    /// A hold of the shape, to be given back.
    struct Shape {
        LockMode mode = LockMode::shared;
        /// This thread holds the shape shared already. It then waits for nobody: whoever waits to have the shape
        /// exclusively waits for this thread.
        bool again = false;
        std::shared_ptr<std::atomic<bool>> released = nullptr;
    };

    [[nodiscard]] Shape lock_shape(LockMode mode) {
        if (held(exclusive_shape)) {
            throw invalid_argument(
                "this thread has the array to itself, for a batch of edits: write through that, or commit it first");
        }
        require_no_chunk();
        const bool again = held(shared_shape);
        if (again && mode == LockMode::exclusive) {
            throw invalid_argument(
                "the array is being written to by what calls this function, which cannot have the "
                "array to itself before that has ended");
        }
        // A waiting exclusive locker holds the gate, so that a stream of writers cannot starve it.
        std::unique_lock gate(gate_, std::defer_lock);
        if (!again) lock_or_stop(gate);
        if (mode == LockMode::shared) {
            lock_shared_or_stop(shape_);
        } else {
            lock_or_stop(shape_);
        }
        return hold(mode, again);
    }
    [[nodiscard]] std::optional<Shape> try_lock_shape() {
        const std::unique_lock gate(gate_, std::try_to_lock);
        if (!gate.owns_lock() || held(shared_shape) || !shape_.try_lock()) return std::nullopt;
        return hold(LockMode::exclusive, false);
    }
    void unlock_shape(const Shape& shape) {
        *shape.released = true;
        std::erase_if(Caller::current().locks, [](const HeldLock& lock) { return lock.released && *lock.released; });
        if (shape.mode == LockMode::shared) {
            shape_.unlock_shared();
        } else {
            shape_.unlock();
        }
    }

    void lock_chunk(std::uint64_t slot) {
        require_no_chunk();
        std::timed_mutex& mutex = chunks_[static_cast<std::size_t>(number(slot))];
        const HeldLock lock{.table = this, .kind = first_chunk + number(slot)};
        if (!mutex.try_lock() && !mutex.try_lock_until(WaitClock::now() + between_stops)) {
            const LockWait wait(lock);
            lock_or_stop(mutex);
        }
        Caller::current().locks.push_back(lock);
    }
    void unlock_chunk(std::uint64_t slot) {
        Caller::current().drop(this, first_chunk + number(slot));
        chunks_[static_cast<std::size_t>(number(slot))].unlock();
    }

private:
    enum Kind : int { shared_shape, exclusive_shape, first_chunk };

    /// That of the chunk's mutex.
    [[nodiscard]] int number(std::uint64_t slot) const { return static_cast<int>((slot - 1) % chunks_.size()); }
    [[nodiscard]] bool held(Kind kind) const {
        return Caller::current().holds([&](const HeldLock& lock) { return lock.table == this && lock.kind == kind; });
    }
    void require_no_chunk() const {
        const auto any = [&](const HeldLock& lock) { return lock.table == this && lock.kind >= first_chunk; };
        if (!Caller::current().holds(any)) return;
        throw invalid_argument(
            "a chunk of the array is locked for the function that update() has called, which "
            "changes the elements that it was given, and cannot write to the array otherwise");
    }
    [[nodiscard]] Shape hold(LockMode mode, bool again) {
        Shape shape{mode, again, std::make_shared<std::atomic<bool>>(false)};
        const Kind kind = mode == LockMode::shared ? shared_shape : exclusive_shape;
        Caller::current().locks.push_back({this, kind, shape.released});
        return shape;
    }

    std::timed_mutex gate_;
    std::shared_timed_mutex shape_;
    std::array<std::timed_mutex, 256> chunks_;
};

/// The locks of all arrays of a store that no other process can reach.
class LockTables {
public:
    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) {
        std::shared_ptr<ThreadLocks> table = table_of(prefix);
        if (slot == 0) {
            auto shape = table->lock_shape(mode);
            return StoreLock([t = std::move(table), shape = std::move(shape)] { t->unlock_shape(shape); });
        }
        table->lock_chunk(slot);
        return StoreLock([t = std::move(table), slot] { t->unlock_chunk(slot); });
    }
    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view prefix) {
        std::shared_ptr<ThreadLocks> table = table_of(prefix);
        auto shape = table->try_lock_shape();
        if (!shape) return std::nullopt;
        return StoreLock([t = std::move(table), shape = *std::move(shape)] { t->unlock_shape(shape); });
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
