// MemoryAccount: limits the memory for data whose size a file dictates.
//
//     const MemoryScope scope(std::make_shared<MemoryAccount>(std::uint64_t{512} << 20));
//     array.read_into(region, out);  // Error(budget) before it takes more than that for chunks, strings, lists
//
// Buffers, and so arrays, arenas and the scratch of codecs, count against the account of the thread that makes them
// until they are freed. `parallel_for` passes its caller's account to its threads. The account belongs to the thread
// and is not an argument, so that no allocation can forget it. Without an account nothing is counted.
//
// Of the three limits on memory, only a MemoryScope bounds everything that is counted. IoOptions::max_memory plans the
// blocks and threads of work that goes block by block: copies, append, verify, digests, differences. A read or write of
// a region ignores it. ReduceOptions::memory is for one read_into() of a reduction, beside its result, and may be
// exceeded for one chunk. No limit follows from another. Give the scope's account more than the other two, because an
// operation that is planned for more than the account has throws Error(budget).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <tessera/error.h>

namespace tessera {

/// Thread rule: every member may be called from several threads at once.
class MemoryAccount {
public:
    /// Where the memory of freed Buffers goes: back to the system, because it is not counted any more, or to the C
    /// library, which keeps those below 8 MiB for the next call. That is faster where calls are many and small.
    enum class Freed : std::uint8_t { returned, kept };

    /// `limit` is the number that messages name as --max-memory. `beside` is granted in addition.
    explicit MemoryAccount(std::uint64_t limit, std::uint64_t beside = 0, Freed freed = Freed::returned)
        : limit_(limit), beside_(limit > UINT64_MAX / 2 ? 0 : beside), freed_(freed) {}

    [[nodiscard]] Freed freed() const { return freed_; }

    /// Counts `bytes` more. If they do not fit, drops spare memory (SpareMemory). If they still do not fit, throws
    /// Error(budget), naming a limit that would suffice.
    void take(std::uint64_t bytes);
    /// The error of take(): names a limit that suffices for `bytes` beside what is in use.
    [[nodiscard]] Error shortage(std::uint64_t bytes) const;
    [[nodiscard]] std::uint64_t limit() const { return limit_; }
    void give_back(std::uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
    /// The bytes left of `limit`, without `beside`, which is for unplanned needs.
    [[nodiscard]] std::uint64_t left() const;

    /// The account of this thread; nullptr if nothing is counted.
    [[nodiscard]] static const std::shared_ptr<MemoryAccount>& current();

private:
    [[nodiscard]] bool try_take(std::uint64_t bytes) noexcept;

    std::uint64_t limit_;
    std::uint64_t beside_;
    Freed freed_;
    std::atomic<std::uint64_t> used_ = 0;
};

/// Gives this thread an account for the lifetime of the scope; nullptr: nothing is counted.
class MemoryScope {
public:
    explicit MemoryScope(std::shared_ptr<MemoryAccount> account);
    ~MemoryScope();
    MemoryScope(const MemoryScope&) = delete;
    MemoryScope& operator=(const MemoryScope&) = delete;

private:
    std::shared_ptr<MemoryAccount> outer_;
};

/// Counts memory other than Buffers against this thread's account, and gives it back on destruction. Thread rule: a
/// move-only value.
class MemoryHold {
public:
    explicit MemoryHold(std::uint64_t bytes = 0) { add(bytes); }
    ~MemoryHold() { release(); }
    MemoryHold(MemoryHold&& o) noexcept;
    MemoryHold& operator=(MemoryHold&& o) noexcept;
    /// Takes more from the same account.
    void add(std::uint64_t bytes);

private:
    void release() noexcept;

    std::shared_ptr<MemoryAccount> account_;
    std::uint64_t bytes_ = 0;
};

/// "2.0 GiB"
[[nodiscard]] std::string memory_text(std::uint64_t bytes);

/// Bytes needed to turn such text into JSON and to print it. Escapes are up to six times as long.
[[nodiscard]] std::uint64_t text_memory(std::string_view content);

/// The bytes left in this thread's account; UINT64_MAX without one.
[[nodiscard]] std::uint64_t memory_left();

/// Throws as MemoryAccount::take if this thread's account has fewer bytes left. Called before work that takes these
/// bytes piece by piece, so that the error names the total.
void require_memory(std::uint64_t bytes);

/// Registers memory that is kept only for reuse. `drop` frees it and must not throw. Any thread may call it while this
/// object lives. (So this should be the last member of its owner, which is destroyed first.)
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
