// How a store keeps writers apart: by locks, or by the versions of values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tessera {

enum class LockMode : std::uint8_t { shared, exclusive };

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

/// Below an array or group of a store far away, while lock_destination() holds it.
inline constexpr std::string_view lease_key = ".tessera/lease";

/// A change of a value that depends on what it was, where other programs are not kept away by locks: while it lives,
/// every read of the value notes its version, and setting it fails unless it still has that version. See
/// KeyValueStore::begin_change().
class ValueChange {
public:
    virtual ~ValueChange() = default;
    /// Somebody else was faster: read again, and begin a new change. Setting the value threw an error, unless it was
    /// read twice and differed.
    [[nodiscard]] virtual bool conflicted() const = 0;
    /// Whether there was no value when it was read; asks for it if it was not read.
    [[nodiscard]] virtual bool was_absent() = 0;
};

/// How a store keeps writers apart. Thread rule: every member may be called from several threads at once.
class StoreLocks {
public:
    virtual ~StoreLocks() = default;

    /// Locks of the array at `prefix`: slot 0 is the shape, slot 1 + i is chunk i. Blocks until it is held. Excludes
    /// other threads of this process, even through other store objects for the same place, and in a directory other
    /// processes too. A thread holds at most one chunk slot, and takes it while it holds the shape slot. No other
    /// nesting is allowed.
    [[nodiscard]] virtual StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) = 0;
    /// Locks the shape slot exclusively; nullopt if anybody else holds it in either mode.
    [[nodiscard]] virtual std::optional<StoreLock> try_lock(std::string_view prefix) = 0;

    /// Begins a change of the value of `key`, and of the metadata documents directly below it, by one thread, that
    /// holds its lock. `keeps`: a part of the old value is kept. Null in stores whose locks keep all writers away.
    /// Throws unsupported if the store cannot keep others' changes from being lost, and the change needs that.
    [[nodiscard]] virtual std::unique_ptr<ValueChange> begin_change(std::string_view /*key*/, bool /*keeps*/) {
        return nullptr;
    }
    /// Whether writers of other programs are told apart by versions (begin_change()), not by locks. They may then
    /// change the shape, and write to new elements, while a chunk is being changed.
    [[nodiscard]] virtual bool has_versions() const { return false; }
    /// What is known of how far the store keeps writers apart, for people; empty where its locks do that.
    [[nodiscard]] virtual std::string promise() const { return {}; }

    /// The DestinationLock of the array or group at `prefix`, for creating or removing it as a whole. Holds nothing in
    /// stores that no other run can reach.
    [[nodiscard]] virtual StoreLock lock_destination(std::string_view /*prefix*/) { return {}; }

    /// Called before a change to the array or group at `prefix`, with its lock held. Throws Error(sealed) if it, or a
    /// folder above it, is sealed and StoreOptions::break_seal does not permit the change. Sealing holds the same lock.
    virtual void require_unsealed(std::string_view /*prefix*/) {}
};

}  // namespace tessera
