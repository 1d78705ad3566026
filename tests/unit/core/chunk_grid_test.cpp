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
        std::vector<ChunkEdges> edges;
        for (int d = 0; d < rank; ++d) {
            std::vector<ChunkEdges::Run> runs;
            for (std::int64_t end = 0; end < shape[d]; end += runs.back().length * runs.back().count) {
                runs.push_back({draw(1, 5), draw(1, 3)});
            }
            edges.push_back(draw(0, 3) == 0 ? ChunkEdges(chunks[d]) : ChunkEdges(runs));
        }
        const ChunkGrid grid = round % 2 == 0 ? ChunkGrid(shape, chunks) : ChunkGrid::of_edges(shape, edges);
        for (std::int64_t n = 0; n < grid.chunk_count(); ++n) {
            const Region whole = Region::whole(grid.chunk_shape(grid.index(n)));
            Region inside = grid.chunk_region(grid.index(n));
            for (int d = 0; d < rank; ++d) {
                ASSERT_EQ(grid.chunk_at(d, inside.start[d] + inside.extent[d] - 1), grid.index(n)[d]);
                ASSERT_LE(whole.extent[d], grid.chunks()[d]);
                const bool last = inside.start[d] + inside.extent[d] == shape[d];
                ASSERT_EQ(whole.extent[d] - inside.extent[d], last ? grid.beyond_edge(d) : 0);
            }
        }
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

TEST(ChunkEdges, AreFoundFromRuns) {
    const std::vector<ChunkEdges::Run> runs{{2, 1}, {3, 2}, {4, 1}, {1, 1'000'000'000'000'000'000}};
    const ChunkEdges edges(runs);
    EXPECT_EQ(edges.longest(20), 4);
    EXPECT_EQ(edges.longest(0), 2);
    EXPECT_EQ(edges.count(20), 12);
    const std::vector<std::int64_t> starts{0, 2, 5, 8, 12, 13, 14, 15, 16, 17, 18, 19};
    for (std::int64_t n = 0; n < std::ssize(starts); ++n) {
        const ChunkEdges::Chunk chunk = edges.numbered(n);
        EXPECT_EQ(chunk.index, n);
        EXPECT_EQ(chunk.start, starts[static_cast<std::size_t>(n)]);
        for (std::int64_t at = chunk.start; at < chunk.start + chunk.length; ++at) EXPECT_EQ(edges.at(at).index, n);
    }
    const ChunkEdges endless(3);
    EXPECT_EQ(endless.at(9).index, 3);
    EXPECT_EQ(endless.numbered(2).start, 6);
    EXPECT_EQ(endless.reaching(INT64_MAX), endless);
    EXPECT_THROW(ChunkEdges(0), Error);
    EXPECT_THROW(ChunkEdges(std::vector<ChunkEdges::Run>{}), Error);
    EXPECT_THROW(ChunkEdges(std::vector<ChunkEdges::Run>{{INT64_MAX, 2}}), Error);
    EXPECT_THROW(ChunkEdges(std::vector<ChunkEdges::Run>{{1, INT64_MAX}, {2, 1}}), Error);
    EXPECT_THROW(ChunkEdges(std::vector<ChunkEdges::Run>{{1, 0}}), Error);
    EXPECT_THROW((void)ChunkGrid::of_edges({4}, parse_chunk_lengths("[3],").edges), Error);
}

TEST(ChunkEdges, GoOnWithTheLastLength) {
    const auto read = [](std::string_view text) { return parse_chunk_lengths(text).edges.at(0); };
    EXPECT_EQ(read("[10,10,5],").reaching(25), read("[10,10,5],"));
    EXPECT_EQ(read("[10,10,5],").reaching(26), read("[10,10,5,5],"));
    EXPECT_EQ(read("[10],").reaching(1'000'000), read("[10]*100000"));
    EXPECT_TRUE(read("[10,10,5],").continues(read("[10,10,5,5],")));
    EXPECT_TRUE(read("[10,10,5,5],").continues(read("[10,10,5],")));
    EXPECT_TRUE(read("[10]*2").continues(read("[10]*2+[5]")));
    EXPECT_TRUE(read("[10],").continues(read("[10]*2+[5]")));
    EXPECT_FALSE(read("[10]*3").continues(read("[10]*2+[5]")));
    EXPECT_FALSE(read("[10,5],").continues(read("[10,6,5],")));
}

TEST(ChunkLengths, AreReadAsPythonWritesThem) {
    EXPECT_EQ(parse_chunk_lengths("[10,20]").shape, (Shape{10, 20}));
    EXPECT_EQ(parse_chunk_lengths(" (10, 20) ").shape, (Shape{10, 20}));
    EXPECT_EQ(parse_chunk_lengths(" [10,20] ").shape, (Shape{10, 20}));
    for (const auto& [text, shown] : std::initializer_list<std::pair<const char*, const char*>>{
             {"[10,10,5]*2,32", "[10,10,5,10,10,5],32"},
             {"[[10, 10, 5], 32]", "[10,10,5],32"},
             {"([3],)", "[3],"},
             {"[[3,4]]", "[3,4],"},
             {"[9]*1000000000000000000, [1]+[2]*4+[3]", "[9]*1000000000000000000,[1]+[2]*4+[3]"},
             {"[7]*4", "[7]*4,"},
             {"[7,7]*4,5", "[7]*8,5"}}) {
        const ChunkLengths read = parse_chunk_lengths(text);
        EXPECT_EQ(lengths_text(read.edges), shown);
        EXPECT_EQ(parse_chunk_lengths(shown).edges, read.edges) << shown;
    }
    for (const char* wrong : {"[10,0],3", "[],3", "[10", "[10]*", "[10]*0,3", "[10,5]*9999999999999,3", "[10]x,3",
                              "[a],3", "[-1],3", "[10]5", "[[1],[2]", "[9223372036854775807,2]*2,3", "[1.5],2"}) {
        EXPECT_THROW((void)parse_chunk_lengths(wrong), Error) << wrong;
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
