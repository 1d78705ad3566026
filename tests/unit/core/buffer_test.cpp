// BufferPool: memory of one size that is used again.
#include <gtest/gtest.h>
#include <tessera/buffer.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "expect_error.h"

namespace tessera {
namespace {

TEST(BufferPool, hands_out_pieces_that_do_not_overlap) {
    constexpr std::size_t size = (std::size_t{5} << 20) + 1;  // six to a slab
    BufferPool pool(size);
    std::vector<Buffer> buffers;
    for (int i = 0; i < 14; ++i) {
        buffers.push_back(pool.take());
        ASSERT_EQ(buffers.back().size(), size);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffers.back().data()) % 64, 0U);
        std::memset(buffers.back().data(), i, size);
    }
    for (int i = 0; i < 14; ++i) {
        for (const std::size_t at : {std::size_t{0}, size - 1}) {
            EXPECT_EQ(std::to_integer<int>(buffers[static_cast<std::size_t>(i)].data()[at]), i);
        }
    }
}

TEST(BufferPool, uses_memory_again) {
    BufferPool pool(1000);
    const std::byte* first = nullptr;
    {
        const Buffer buffer = pool.take();
        first = buffer.data();
    }
    Buffer again = pool.take();
    EXPECT_EQ(again.data(), first);
    again.resize(2000);  // memory of its own
    EXPECT_NE(again.data(), first);
    EXPECT_EQ(pool.take().data(), first);
    Buffer moved = pool.take();
    moved = Buffer(10);
    EXPECT_EQ(pool.take().data(), first);
}

TEST(BufferPool, serves_threads_at_once) {
    BufferPool pool(4096);
    std::vector<std::thread> threads;
    for (int t = 1; t <= 4; ++t) {
        threads.emplace_back([&pool, t] {
            for (int i = 0; i < 1000; ++i) {
                Buffer buffer = pool.take();
                std::memset(buffer.data(), t, buffer.size());
                EXPECT_EQ(std::to_integer<int>(buffer.data()[i % 4096]), t);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

TEST(BufferPool, refuses_sizes_that_are_none) {
    expect_error(ErrorCode::invalid_argument, "0 bytes", [] { BufferPool(0); });
    expect_error(ErrorCode::invalid_argument, "33554433 bytes", [] { BufferPool(BufferPool::slab_size + 1); });
}

}  // namespace
}  // namespace tessera
