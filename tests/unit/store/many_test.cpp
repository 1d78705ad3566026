// read_many, write_many and points beside one call after another, with chunks and with shards.
#include <gmock/gmock.h>
#include <tessera/copy_elements.h>
#include <tessera/tessera.h>

#include <vector>

#include "../../expect_error.h"

namespace tessera {
namespace {

/// Counts on the elements: each holds its number.
NDArray numbered(const Shape& shape) {
    NDArray a("<i4", shape);
    auto* p = reinterpret_cast<std::int32_t*>(a.bytes().data());
    for (std::int64_t i = 0; i < a.count(); ++i) p[i] = static_cast<std::int32_t>(i);
    return a;
}

std::vector<std::int32_t> elements_of(const NDArray& a) {
    const auto* p = reinterpret_cast<const std::int32_t*>(a.bytes().data());
    return {p, p + a.count()};
}

const Shape shape{50, 70};

Array make(const Shape& shards) {
    Array a = Array::create(memory_store(),
                            {.shape = shape, .chunks = {8, 16}, .dtype = "<i4", .shards = shards, .format = "v3"});
    a.write(Region::whole(shape), numbered(shape).view());
    return a;
}

const std::vector<Region> regions{{{40, 3}, {10, 60}}, {{0, 0}, {1, 1}},  {{45, 60}, {5, 10}},
                                  {{5, 5}, {0, 3}},    {{0, 0}, {50, 2}}, {{8, 16}, {8, 16}}};

class Many : public testing::TestWithParam<Shape> {};

TEST_P(Many, ReadsAsOneAfterAnother) {
    const Array a = make(GetParam());
    std::vector<NDArray> out;
    for (const Region& region : regions) out.emplace_back(a.dtype(), region.extent);
    std::vector<RegionRead> parts;
    for (std::size_t i = 0; i < regions.size(); ++i) parts.push_back({regions[i], out[i].view()});
    for (const int threads : {1, 2}) {
        a.read_many(parts, {.threads = threads});
        for (std::size_t i = 0; i < regions.size(); ++i) EXPECT_TRUE(elements_equal(out[i], a.read(regions[i]))) << i;
    }
}

TEST_P(Many, WritesAsOneAfterAnother) {
    Array together = make(GetParam());
    Array apart = make(GetParam());
    std::vector<NDArray> in;
    std::vector<RegionWrite> parts;
    for (const Region& region : regions) {
        in.emplace_back(together.dtype(), region.extent);
        const auto value = static_cast<std::int32_t>(in.size() * 1000000);
        fill_elements(in.back(), reinterpret_cast<const std::byte*>(&value));
    }
    for (std::size_t i = 0; i < regions.size(); ++i) {
        parts.push_back({regions[i], in[i].view()});
        apart.write(regions[i], in[i].view());
    }
    together.write_many(parts, {.threads = 2});
    EXPECT_TRUE(elements_equal(together.read(), apart.read()));
}

TEST_P(Many, Points) {
    Array a = make(GetParam());
    const std::vector<Index> points{{49, 69}, {0, 0}, {8, 15}, {8, 16}, {8, 15}};
    const NDArray read = a.read_points(points);
    EXPECT_THAT(elements_of(read), testing::ElementsAre(49 * 70 + 69, 0, 8 * 70 + 15, 8 * 70 + 16, 8 * 70 + 15));
    a.write_points(points, view(std::vector<std::int32_t>{-1, -2, -3, -4, -5}));
    EXPECT_THAT(elements_of(a.read_points(points)), testing::ElementsAre(-1, -2, -5, -4, -5));
}

INSTANTIATE_TEST_SUITE_P(ChunksAndShards, Many, testing::Values(Shape{}, Shape{16, 32}));

TEST(ManyTest, SaysWhichPartIsWrong) {
    const Array a = make({});
    NDArray out("<i4", {2, 2});
    const std::vector<RegionRead> outside{{{{0, 0}, {2, 2}}, out.view()}, {{{49, 0}, {2, 2}}, out.view()}};
    expect_error(ErrorCode::out_of_bounds, "part 1 of 2", [&] { a.read_many(outside); });
    const std::vector<RegionRead> shaped{{{{0, 0}, {2, 3}}, out.view()}};
    expect_error(ErrorCode::invalid_argument, "shape (2, 2), the region has shape (2, 3)",
                 [&] { a.read_many(shaped); });
    expect_error(ErrorCode::invalid_argument, "there are 2 places", [&] {
        Array b = a;
        b.write_points(std::vector<Index>{{0, 0}, {1, 1}}, view(std::vector<std::int32_t>{1}));
    });
}

}  // namespace
}  // namespace tessera
