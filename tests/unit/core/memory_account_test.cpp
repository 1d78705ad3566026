#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/action.h>
#include <tessera/buffer.h>
#include <tessera/error.h>
#include <tessera/memory_account.h>
#include <tessera/ndarray.h>
#include <tessera/parallel.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace tessera {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

std::shared_ptr<MemoryAccount> account_of(std::uint64_t limit) {
    return std::make_shared<MemoryAccount>(limit);
}

std::string refusal(std::size_t bytes) {
    try {
        const Buffer buffer(bytes);
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::budget);
        constexpr std::array names{ActionName{Action::max_memory, "max_memory", "max_memory={}"}};
        return e.what() + advice_text(e.advice(), names);
    }
    return "";
}

TEST(MemoryAccount, CountsBuffersUntilTheyAreFreed) {
    const auto account = account_of(8 * mib);
    Buffer outer;
    {
        const MemoryScope scope(account);
        Buffer a(3 * mib);
        EXPECT_EQ(account->used(), 3 * mib);
        a.reset(5 * mib);  // the old memory goes first
        EXPECT_EQ(account->used(), 5 * mib);
        outer = std::move(a);
        EXPECT_EQ(refusal(4 * mib),
                  "4 MiB of memory are needed beside 5 MiB in use; the limit is 8 MiB; give max_memory=10M");
        EXPECT_EQ(account->used(), 5 * mib);
    }
    EXPECT_EQ(MemoryAccount::current(), nullptr);
    EXPECT_EQ(refusal(16 * mib), "");
    outer = Buffer();
    EXPECT_EQ(account->used(), 0);
}

TEST(MemoryAccount, CountsArraysAndWhatTheirElementsLeadTo) {
    const auto account = account_of(8 * mib);
    const MemoryScope scope(account);
    {
        NDArray strings(DType::variable_text(), {1024});
        const std::uint64_t slots = account->used();
        EXPECT_GE(slots, 1024 * sizeof(VariableSlot));
        strings.view().arena->add(std::string(mib, 'x'));
        EXPECT_EQ(account->used(), slots + mib);
        EXPECT_THROW(strings.view().arena->add(std::string(8 * mib, 'x')), Error);
    }
    EXPECT_EQ(account->used(), 0);
    EXPECT_THROW(NDArray("<f8", {1 << 20, 2}), Error);
}

TEST(MemoryAccount, HoldsAndWhatIsLeft) {
    EXPECT_EQ(memory_left(), UINT64_MAX);
    const auto account = account_of(10);
    const MemoryScope scope(account);
    MemoryHold a(4);
    MemoryHold b(std::move(a));
    b.add(3);
    EXPECT_EQ(memory_left(), 3);
    EXPECT_NO_THROW(require_memory(3));
    EXPECT_THROW(require_memory(4), Error);
    EXPECT_THROW(b.add(4), Error);
    EXPECT_EQ(account->used(), 7);
    b = MemoryHold(1);
    EXPECT_EQ(account->used(), 1);
}

TEST(MemoryAccount, DropsSpareMemoryBeforeItRefuses) {
    const auto account = account_of(8 * mib);
    const MemoryScope scope(account);
    Buffer spare(6 * mib);
    int dropped = 0;
    {
        const SpareMemory owner([&] {
            spare = Buffer();
            ++dropped;
        });
        EXPECT_EQ(refusal(2 * mib), "");
        EXPECT_EQ(dropped, 0);
        EXPECT_EQ(refusal(3 * mib), "");
        EXPECT_EQ(dropped, 1);
    }
    EXPECT_NE(refusal(9 * mib), "");
    EXPECT_EQ(dropped, 1);
}

TEST(MemoryAccount, IsThatOfTheThreadsOfParallelFor) {
    const auto account = account_of(mib);
    const MemoryScope scope(account);
    std::atomic<int> with = 0;
    parallel_for(100, {}, [&](std::int64_t) { with += MemoryAccount::current() == account ? 1 : 0; });
    EXPECT_EQ(with, 100);
}

TEST(ParallelInMemory, WhatDoesNotFitBesideOthersIsDoneAlone) {
    const auto account = account_of(8 * mib);
    const MemoryScope scope(account);
    constexpr std::int64_t count = 200;
    std::vector<std::atomic<int>> done(count);
    parallel_in_memory(count, {}, [&](std::int64_t n) {
        const Buffer small(mib);
        const Buffer large(static_cast<std::size_t>((n % 7 + 1)) * mib);
        ++done[static_cast<std::size_t>(n)];
    });
    for (const auto& n : done) EXPECT_EQ(n, 1);
    EXPECT_EQ(account->used(), 0);
    EXPECT_THROW(parallel_in_memory(count, {}, [&](std::int64_t n) { const Buffer b(n == 150 ? 9 * mib : mib); }),
                 Error);
    std::atomic<int> tried = 0;
    EXPECT_THROW(parallel_in_memory(count, {},
                                    [&](std::int64_t) {
                                        ++tried;
                                        throw corrupt("not for want of memory");
                                    }),
                 Error);
    EXPECT_LE(tried, thread_count({}));
}

}  // namespace
}  // namespace tessera
