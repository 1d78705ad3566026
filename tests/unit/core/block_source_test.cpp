#include <tessera/block_source.h>

#include <atomic>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "files.h"

namespace tessera {
namespace {

using namespace test;

/// What is asked of a file, as a server would count it.
struct Asked {
    std::atomic<int> reads = 0;
    std::atomic<std::uint64_t> bytes = 0;
    std::atomic<int> hints = 0;
    std::atomic<bool> fails = false;
};

class CountingSource final : public ByteSource {
public:
    CountingSource(Buffer bytes, Asked& asked) : bytes_(memory_source(std::move(bytes), "far")), asked_(asked) {}
    [[nodiscard]] std::uint64_t size() const override { return bytes_->size(); }
    [[nodiscard]] const std::string& name() const override { return bytes_->name(); }
    void expect(std::span<const Extent> extents) const override { asked_.hints += static_cast<int>(extents.size()); }
    void read(std::uint64_t offset, MutableByteSpan out) const override {
        ++asked_.reads;
        asked_.bytes += out.size();
        if (asked_.fails) throw Error(ErrorCode::io, "far: no answer");
        bytes_->read(offset, out);
    }

private:
    std::unique_ptr<const ByteSource> bytes_;
    Asked& asked_;
};

constexpr std::uint64_t kib = 1024;

Buffer random_bytes(std::size_t size) {
    std::minstd_rand random(38);
    Buffer bytes(size);
    for (std::byte& b : bytes.span()) b = static_cast<std::byte>(random());
    return bytes;
}

std::vector<std::byte> part(const ByteSource& file, std::uint64_t offset, std::uint64_t length) {
    const Buffer b = read_range(file, offset, length);
    return {b.data(), b.data() + b.size()};
}

TEST(BlockSource, SmallPiecesOfOneBlockAreOneRead) {
    Asked asked;
    const Buffer bytes = random_bytes(300 * kib + 17);
    const auto file = block_source(std::make_unique<CountingSource>(Buffer(bytes.span()), asked));
    const auto whole = memory_source(Buffer(bytes.span()), "near");
    EXPECT_EQ(file->size(), bytes.size());
    for (std::uint64_t at = 0; at < 64 * kib; at += 997) EXPECT_EQ(part(*file, at, 9), part(*whole, at, 9));
    EXPECT_LE(asked.reads, 2);  // the last piece may reach into the next block
    const int before = asked.reads;
    EXPECT_EQ(part(*file, 300 * kib, 17), part(*whole, 300 * kib, 17));  // the last block is short
    EXPECT_EQ(part(*file, bytes.size(), 0).size(), 0U);
    EXPECT_EQ(asked.reads, before + 1);
    EXPECT_EQ(error_of([&] { (void)part(*file, bytes.size() - 3, 4); }), ErrorCode::corrupt);
    EXPECT_EQ(error_of([&] { (void)part(*file, UINT64_MAX, 2); }), ErrorCode::corrupt);
}

TEST(BlockSource, LongPiecesAndAnnouncedOnesPassAsTheyAre) {
    Asked asked;
    const Buffer bytes = random_bytes(512 * kib);
    const auto file = block_source(std::make_unique<CountingSource>(Buffer(bytes.span()), asked));
    (void)part(*file, 5, 100 * kib);
    EXPECT_EQ(std::pair(asked.reads.load(), asked.bytes.load()), std::pair(1, 100 * kib));
    const ByteSource::Extent extents[] = {{400 * kib, 400 * kib + 300}, {7, 20}};
    file->expect(extents);
    EXPECT_EQ(asked.hints, 2);
    (void)part(*file, 400 * kib, 300);
    (void)part(*file, 7, 13);
    EXPECT_EQ(asked.bytes, 100 * kib + 313);
    (void)part(*file, 7, 14);  // one more than was announced
    EXPECT_EQ(asked.bytes, 164 * kib + 313);
}

TEST(BlockSource, KeepsTheBlocksThatWereReadLastAndNoMore) {
    Asked asked;
    const auto file = block_source(std::make_unique<CountingSource>(random_bytes(40 * 64 * kib), asked));
    const auto touch = [&](std::uint64_t block) { (void)part(*file, block * 64 * kib, 1); };
    for (std::uint64_t i = 0; i < 32; ++i) touch(i);
    touch(0);
    EXPECT_EQ(asked.reads, 32);
    touch(32);  // in the place of 1, because 0 was read since
    touch(0);
    EXPECT_EQ(asked.reads, 33);
    touch(1);
    EXPECT_EQ(asked.reads, 34);
}

TEST(BlockSource, AFailedReadIsNotKept) {
    Asked asked;
    const Buffer bytes = random_bytes(64 * kib);
    const auto file = block_source(std::make_unique<CountingSource>(Buffer(bytes.span()), asked));
    asked.fails = true;
    EXPECT_EQ(error_of([&] { (void)part(*file, 3, 4); }, "no answer"), ErrorCode::io);
    asked.fails = false;
    EXPECT_EQ(part(*file, 3, 4), part(*memory_source(Buffer(bytes.span()), "near"), 3, 4));
}

TEST(BlockSource, ManyThreadsReadTheSame) {
    Asked asked;
    const Buffer bytes = random_bytes(50 * 64 * kib + 1);
    const auto file = block_source(std::make_unique<CountingSource>(Buffer(bytes.span()), asked));
    const auto whole = memory_source(Buffer(bytes.span()), "near");
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (unsigned seed = 1; seed <= 4; ++seed) {
        threads.emplace_back([&, seed] {
            std::minstd_rand random(seed);
            for (int i = 0; i < 500; ++i) {
                const std::uint64_t length = random() % (100 * kib);
                const std::uint64_t offset = random() % (bytes.size() - length);
                if (part(*file, offset, length) != part(*whole, offset, length)) ++wrong;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tessera
