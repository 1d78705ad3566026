#include <tessera/chunk_grid.h>
#include <tessera/parallel.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "expect_error.h"

namespace tessera {
namespace {

TEST(Blocks, CoverEachElementOnce) {
    const Shape shape{7, 5};
    std::vector<int> seen(35, 0);
    for (const Block& block : Blocks(shape, {3, 2})) {
        for (std::int64_t n = 0; n < block.region.count(); ++n) {
            const Index at = index_in(block.region, n);
            ++seen[static_cast<std::size_t>(at[0] * 5 + at[1])];
        }
    }
    EXPECT_EQ(std::ranges::count(seen, 1), 35);
}

TEST(Blocks, HaloIsCutAtTheEdge) {
    const Blocks blocks({7, 5}, {3, 2}, {1, 3});
    ASSERT_EQ(blocks.count(), 9);
    const Block first = blocks[0];
    EXPECT_EQ(first.region, Region({0, 0}, {3, 2}));
    EXPECT_EQ(first.with_halo, Region({0, 0}, {4, 5}));
    EXPECT_EQ(first.in_halo, Region({0, 0}, {3, 2}));
    const Block last = blocks[8];
    EXPECT_EQ(last.index, (Index{2, 2}));
    EXPECT_EQ(last.region, Region({6, 4}, {1, 1}));
    EXPECT_EQ(last.with_halo, Region({5, 1}, {2, 4}));
    EXPECT_EQ(last.in_halo, Region({1, 3}, {1, 1}));
}

TEST(Blocks, AreARangeThatAlgorithmsAndThreadsTake) {
    static_assert(std::ranges::random_access_range<Blocks>);
    const Blocks blocks({10}, {3});
    EXPECT_EQ(std::ranges::distance(blocks), 4);
    EXPECT_EQ(blocks.begin()[3].region, Region({9}, {1}));
    EXPECT_TRUE(std::ranges::all_of(blocks, [](const Block& b) { return b.region == b.with_halo; }));
    std::mutex mutex;
    std::int64_t elements = 0;
    parallel_for(blocks.count(), {}, [&](std::int64_t i) {
        const std::lock_guard lock(mutex);
        elements += blocks[i].region.count();
    });
    EXPECT_EQ(elements, 10);
}

TEST(Blocks, OfNothingAndOfAScalar) {
    EXPECT_TRUE(Blocks({0, 4}, {1, 2}).empty());
    const Blocks scalar({}, {});
    ASSERT_EQ(scalar.count(), 1);
    EXPECT_EQ(scalar[0].region, Region({}, {}));
}

TEST(Blocks, RefuseAHaloThatFitsNoArray) {
    expect_error(ErrorCode::invalid_argument, "expected 2 lengths", [] { (void)Blocks({4, 4}, {2, 2}, {1}); });
    expect_error(ErrorCode::invalid_argument, "negative", [] { (void)Blocks({4}, {2}, {-1}); });
}

}  // namespace
}  // namespace tessera
