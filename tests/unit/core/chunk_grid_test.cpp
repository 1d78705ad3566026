#include <gtest/gtest.h>
#include <tessera/chunk_grid.h>
#include <tessera/error.h>

#include <random>
#include <vector>

namespace tessera {
namespace {

TEST(ChunkGrid, RefusesWhatIsNoGrid) {
    EXPECT_THROW(ChunkGrid({4}, {0}), Error);
    EXPECT_THROW(ChunkGrid({4}, {-2}), Error);
    EXPECT_THROW(ChunkGrid({-4}, {2}), Error);
    EXPECT_THROW(ChunkGrid({4, 4}, {2}), Error);
    EXPECT_THROW(ChunkGrid({4}, {INT64_MAX, 2}), Error);
    EXPECT_THROW(ChunkGrid({4, 4}, {INT64_MAX, 2}), Error);
}

TEST(ChunkGrid, EdgesAndEmptyDimensions) {
    const ChunkGrid grid({10, 7}, {4, 7});
    EXPECT_EQ(grid.grid(), (Shape{3, 1}));
    EXPECT_EQ(grid.chunk_region({2, 0}), Region({8, 0}, {2, 7}));
    EXPECT_EQ(ChunkGrid({0, 5}, {3, 3}).chunk_count(), 0);
    EXPECT_EQ(ChunkGrid({}, {}).chunk_count(), 1);
    for (std::int64_t n = 0; n < grid.chunk_count(); ++n) EXPECT_EQ(grid.linear(grid.index(n)), n);
}

// Every element of a random region is taken exactly once, and from the right place of the right chunk.
TEST(ChunkGrid, PartsCoverARegionOnce) {
    std::mt19937 random(1);
    const auto draw = [&](std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    for (int round = 0; round < 300; ++round) {
        const int rank = static_cast<int>(draw(1, 3));
        Shape shape;
        Shape chunks;
        Region region;
        for (int d = 0; d < rank; ++d) {
            shape.push_back(draw(1, 12));
            chunks.push_back(draw(1, 14));
            region.start.push_back(draw(0, shape[d] - 1));
            region.extent.push_back(draw(0, shape[d] - region.start[d]));
        }
        const ChunkGrid grid(shape, chunks);
        const Region overlapped = grid.overlapping(region);
        std::vector<int> seen(static_cast<std::size_t>(region.count()), 0);
        for (std::int64_t n = 0; n < overlapped.count(); ++n) {
            const ChunkPart part = chunk_part(grid, region, overlapped, n);
            const Region chunk = grid.chunk_region(part.chunk);
            ASSERT_EQ(part.in_chunk.extent, part.in_request.extent);
            ASSERT_EQ(part.whole, part.in_chunk.extent == chunk.extent);
            const ChunkGrid elements(part.in_request.extent, Shape::filled(rank, 1));
            for (std::int64_t e = 0; e < elements.chunk_count(); ++e) {
                const Index at = elements.index(e);
                std::int64_t flat = 0;
                for (int d = 0; d < rank; ++d) {
                    const std::int64_t in_array = region.start[d] + part.in_request.start[d] + at[d];
                    ASSERT_EQ(in_array, chunk.start[d] + part.in_chunk.start[d] + at[d]);
                    flat = flat * region.extent[d] + part.in_request.start[d] + at[d];
                }
                ++seen[static_cast<std::size_t>(flat)];
            }
        }
        for (const int times : seen) ASSERT_EQ(times, 1);
    }
}

TEST(ChooseChunks, AboutAMebibyteAndNeverAboveTheShape) {
    const Shape chunks = choose_chunks({1'000'000, 1'000}, 4);
    const std::int64_t bytes = byte_count(chunks, 4);
    EXPECT_LE(bytes, 1 << 20);
    EXPECT_GE(bytes, 1 << 18);
    EXPECT_EQ(choose_chunks({3, 5}, 8), (Shape{3, 5}));
    EXPECT_EQ(choose_chunks({0, 5}, 8), (Shape{16384, 5}));  // an empty dimension will grow
    EXPECT_EQ(choose_chunks({}, 8), Shape{});
    EXPECT_EQ(choose_chunks({10}, std::int64_t{1} << 30), Shape{1});
}

}  // namespace
}  // namespace tessera
