// MemoryAccount: a limit on the memory that work takes, for everything whose size a file dictates.
//
//     const MemoryScope scope(std::make_shared<MemoryAccount>(std::uint64_t{512} << 20));
//     array.read_into(region, out);  // Error(budget) before it takes more than that for chunks, strings, lists
//
// Buffers, and with them arrays, arenas and the scratch of codecs, count against the account of the thread that makes
// them, until they are freed; `parallel_for` hands the account of its caller on to its threads. It is the thread's, and
// no argument, so that no place where memory is taken can forget it. Without one nothing is counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tessera {

/// Thread rule: every member may be called from several threads at once.
class MemoryAccount {
public:
    /// `limit` is the number that messages name as --max-memory; so much `beside` it is given, too.
    explicit MemoryAccount(std::uint64_t limit, std::uint64_t beside = 0)
        : limit_(limit), beside_(limit > UINT64_MAX / 2 ? 0 : beside) {}

    /// Counts `bytes` more. Where they do not fit, spare memory is dropped (SpareMemory); where that does not help
    /// either, throws Error(budget) that says what would.
    void take(std::uint64_t bytes);
    void give_back(std::uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
    /// Of the limit alone: what is given beside it is for what nobody plans.
    [[nodiscard]] std::uint64_t left() const;

    /// The account of this thread; nullptr where nothing is counted.
    [[nodiscard]] static const std::shared_ptr<MemoryAccount>& current();

private:
    [[nodiscard]] bool try_take(std::uint64_t bytes) noexcept;

    std::uint64_t limit_;
    std::uint64_t beside_;
    std::atomic<std::uint64_t> used_ = 0;
};

/// Makes an account this thread's for as long as the scope lives; nullptr: nothing is counted.
class MemoryScope {
public:
    explicit MemoryScope(std::shared_ptr<MemoryAccount> account);
    ~MemoryScope();
    MemoryScope(const MemoryScope&) = delete;
    MemoryScope& operator=(const MemoryScope&) = delete;

private:
    std::shared_ptr<MemoryAccount> outer_;
};

/// Bytes taken from this thread's account for memory that is no Buffer, given back at the end. Thread rule: a move-only
/// value.
class MemoryHold {
public:
    explicit MemoryHold(std::uint64_t bytes = 0) { add(bytes); }
    ~MemoryHold() { release(); }
    MemoryHold(MemoryHold&& o) noexcept;
    MemoryHold& operator=(MemoryHold&& o) noexcept;
    /// Takes more, from the account that it began with.
    void add(std::uint64_t bytes);

private:
    void release() noexcept;

    std::shared_ptr<MemoryAccount> account_;
    std::uint64_t bytes_ = 0;
};

/// "2.0 GiB"
[[nodiscard]] std::string memory_text(std::uint64_t bytes);

/// Bytes that it takes to turn such text into JSON and to print that: escapes are up to six times as long.
[[nodiscard]] std::uint64_t text_memory(std::string_view content);

/// How many bytes this thread's account has left; UINT64_MAX without one.
[[nodiscard]] std::uint64_t memory_left();

/// Throws as MemoryAccount::take where this thread's account has not so many bytes left: before work that will take
/// them piece by piece, so that the error names all of it.
void require_memory(std::uint64_t bytes);

/// Somebody who keeps memory only to use it again: `drop`, which must not throw, frees it. It may be called from any
/// thread for as long as this lives. (The last member of its owner is the first to go.)
class SpareMemory {
public:
    explicit SpareMemory(std::function<void()> drop);
    ~SpareMemory();
    SpareMemory(const SpareMemory&) = delete;
    SpareMemory& operator=(const SpareMemory&) = delete;

private:
    friend class MemoryAccount;
    static void drop_all() noexcept;

    std::function<void()> drop_;
    SpareMemory* before_ = nullptr;
    SpareMemory* after_ = nullptr;
};

}  // namespace tessera
