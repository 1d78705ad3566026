#include <tessera/action.h>
#include <tessera/memory_account.h>

#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/fork.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace tessera {

namespace {

thread_local std::shared_ptr<MemoryAccount> current_account;

/// Every SpareMemory there is.
struct Spares {
    std::mutex& mutex = library_mutex(LibraryMutex::spare_memory);
    SpareMemory* first = nullptr;
};

Spares& spares() {
    static Spares list;
    return list;
}

}  // namespace

std::string memory_text(std::uint64_t bytes) {
    constexpr std::uint64_t gib = std::uint64_t{1} << 30, mib = std::uint64_t{1} << 20, kib = std::uint64_t{1} << 10;
    const auto in = [&](std::uint64_t unit) { return static_cast<double>(bytes) / static_cast<double>(unit); };
    if (bytes >= gib) return fmt::format("{:.1f} GiB", in(gib));
    if (bytes >= mib) return fmt::format("{:.0f} MiB", in(mib));
    return bytes >= kib ? fmt::format("{:.0f} KiB", in(kib)) : fmt::format("{} bytes", bytes);
}

const std::shared_ptr<MemoryAccount>& MemoryAccount::current() {
    return current_account;
}

std::uint64_t MemoryAccount::left() const {
    return limit_ - std::min(used(), limit_);
}

bool MemoryAccount::try_take(std::uint64_t bytes) noexcept {
    std::uint64_t taken = used();
    do {
        if (taken > limit_ + beside_ || bytes > limit_ + beside_ - taken) return false;
    } while (!used_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
    return true;
}

void MemoryAccount::take(std::uint64_t bytes) {
    if (try_take(bytes)) return;
    // Each time more goes: what is worth most is dropped last, and by halves.
    constexpr int rounds = 8;
    for (int round = 0; round < rounds; ++round) {
        SpareMemory::drop_all();
        if (try_take(bytes)) return;
    }
    throw shortage(bytes);
}

Error MemoryAccount::shortage(std::uint64_t bytes) const {
    const std::uint64_t held = used();
    const std::uint64_t all = held + std::min(bytes, UINT64_MAX - held);
    constexpr std::uint64_t worth_saying = std::uint64_t{1} << 20;
    // Not less what is granted beside the limit: a larger limit may come with less of that.
    return over_budget("{} of memory are needed{}; the limit is {}", memory_text(bytes),
                       held < worth_saying ? "" : fmt::format(" beside {} in use", memory_text(held)),
                       memory_text(limit_))
        .advising(Action::max_memory, "", fmt::format("{}M", (std::max(all, limit_) >> 20U) + 1));
}

MemoryScope::MemoryScope(std::shared_ptr<MemoryAccount> account)
    : outer_(std::exchange(current_account, std::move(account))) {}

MemoryScope::~MemoryScope() {
    current_account = std::move(outer_);
}

MemoryHold::MemoryHold(MemoryHold&& o) noexcept : account_(std::move(o.account_)), bytes_(std::exchange(o.bytes_, 0)) {}

MemoryHold& MemoryHold::operator=(MemoryHold&& o) noexcept {
    if (this == &o) return *this;
    release();
    account_ = std::move(o.account_);
    bytes_ = std::exchange(o.bytes_, 0);
    return *this;
}

void MemoryHold::add(std::uint64_t bytes) {
    if (bytes == 0) return;
    if (!account_) account_ = current_account;
    if (!account_) return;
    account_->take(bytes);
    bytes_ += bytes;
}

void MemoryHold::release() noexcept {
    if (account_) account_->give_back(std::exchange(bytes_, 0));
}

std::uint64_t text_memory(std::string_view content) {
    constexpr std::size_t small = std::size_t{64} << 10;
    if (content.size() < small) return 0;
    constexpr std::uint64_t escape = 5;  // extra bytes of "\u0000"
    const auto escaped = std::ranges::count_if(
        content, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '"' || c == '\\' || c == '\x7f'; });
    return 4 * (content.size() + escape * static_cast<std::uint64_t>(escaped));
}

std::uint64_t memory_left() {
    return current_account ? current_account->left() : UINT64_MAX;
}

void require_memory(std::uint64_t bytes) {
    if (bytes > memory_left()) const MemoryHold taken(bytes);  // throws, unless spare memory makes room
}

SpareMemory::SpareMemory(std::function<void()> drop) : drop_(std::move(drop)) {
    const std::lock_guard lock(spares().mutex);
    after_ = std::exchange(spares().first, this);
    if (after_ != nullptr) after_->before_ = this;
}

SpareMemory::~SpareMemory() {
    const std::lock_guard lock(spares().mutex);
    (before_ != nullptr ? before_->after_ : spares().first) = after_;
    if (after_ != nullptr) after_->before_ = before_;
}

void SpareMemory::drop_all() noexcept {
    const std::lock_guard lock(spares().mutex);
    for (const SpareMemory* spare = spares().first; spare != nullptr; spare = spare->after_) spare->drop_();
}

}  // namespace tessera
