// Array::read_points beside reading everything: each codec, byte order, order of dimensions, shards, memory with gaps.
#include <gtest/gtest.h>
#include <tessera/copy_elements.h>
#include <tessera/tessera.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../../expect_error.h"
#include "../../temporary_folder.h"

namespace tessera {
namespace {

struct Case {
    std::string dtype;
    std::string memory;  ///< the dtype that is read into
    std::string codec;
    Order order = Order::C;
    Shape shards = {};
};

void PrintTo(const Case& c, std::ostream* out) {
    *out << c.dtype << " as " << c.memory << ", " << c.codec << (c.order == Order::F ? ", F" : "")
         << (c.shards.empty() ? "" : ", shards");
}

const Shape shape{41, 37, 5};  // no multiple of the chunks

/// Bytes without a pattern that every other byte would hide.
NDArray noise(const DType& dtype) {
    NDArray a(dtype, shape);
    std::uint32_t state = 1;
    for (std::byte& b : a.bytes()) {
        state = state * 1664525 + 1013904223;
        b = static_cast<std::byte>((state >> 24) % 60 + 1);  // no zero, which would end a text, and no NaN
    }
    return a;
}

/// `n` indices, in no order, some of them twice.
std::vector<std::int64_t> indices(std::int64_t n) {
    std::vector<std::int64_t> all;
    std::uint64_t state = 7;
    for (std::int64_t i = 0; i < n; ++i) {
        for (const std::int64_t length : shape) {
            state = state * 6364136223846793005 + 1442695040888963407;
            all.push_back(static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(length)));
        }
    }
    return all;
}

class Points : public testing::TestWithParam<Case> {};

TEST_P(Points, EqualsReadingEverything) {
    const Case& c = GetParam();
    const TemporaryFolder dir;
    Array a = Array::create(dir.path() / "a", {.shape = shape,
                                               .chunks = {16, 8, 3},
                                               .dtype = c.dtype,
                                               .shards = c.shards,
                                               .codec = c.codec,
                                               .format = c.codec.starts_with("delta") ? "v2" : "v3",
                                               .order = c.order});
    // The chunks of the last rows are absent.
    const Region stored{{0, 0, 0}, {32, 37, 5}};
    const NDArray elements = noise(a.dtype());
    a.write(stored, elements.view().part(stored));
    const DType dtype = DType::parse(c.memory);
    NDArray all(dtype, shape);
    a.read_into(Region::whole(shape), all.view());
    for (const std::int64_t n : {1, 2, 40, 3000}) {
        const std::vector<std::int64_t> at = indices(n);
        NDArray two(dtype, {n, 2});
        MutableArrayView out = two.view();  // every other element
        out.shape = {n};
        out.strides = Strides{2 * dtype.size()};
        for (const int threads : {1, 2}) {
            std::ranges::fill(two.bytes(), std::byte{0xEE});
            a.read_points(at, out, {.threads = threads});
            for (std::int64_t i = 0; i < n; ++i) {
                const auto* place = at.data() + 3 * i;
                const auto size = static_cast<std::size_t>(dtype.size());
                const std::byte* expected =
                    all.bytes().data() + ((place[0] * 37 + place[1]) * 5 + place[2]) * dtype.size();
                const std::byte* read = two.bytes().data() + 2 * i * dtype.size();
                ASSERT_EQ(std::memcmp(read, expected, size), 0) << "number " << i << " of " << n;
                ASSERT_EQ(read[size], std::byte{0xEE}) << "what lies beside number " << i;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, Points,
    testing::Values(Case{"<i4", "<i4", "blosc:lz4:5:shuffle:256"}, Case{"<i4", ">i4", "blosc:lz4:5:shuffle:256"},
                    Case{">f8", "<f8", "blosc:lz4:5:shuffle"}, Case{"<i4", "<i4", "blosc:lz4:5:shuffle", Order::F},
                    Case{"<i2", "<i2", "blosc:lz4:5:bitshuffle:256"}, Case{"|u1", "|u1", "blosc:lz4:5:noshuffle"},
                    Case{"<f8", "<f8", "blosc:zstd:3:shuffle"}, Case{"<c16", "<c16", "blosc:lz4:5:shuffle:512"},
                    Case{">c16", "<c16", "blosc:lz4:5:shuffle"}, Case{"<i4", "<i4", "none"},
                    Case{"<i4", ">i4", "none", Order::F}, Case{"|V11", "|V11", "blosc:lz4:5:shuffle:256"},
                    Case{"<i4", "<i4", "zstd:3"}, Case{"<i4", ">i4", "gzip:1", Order::F},
                    Case{"<f4", "<f4", "blosc:lz4:5:shuffle,crc32c"}, Case{"<i4", "<i4", "delta,zstd:1"},
                    Case{"<i4", "<i4", "blosc:lz4:5:shuffle:256", Order::C, {32, 16, 6}},
                    Case{"<i4", ">i4", "zstd:1", Order::F, {32, 16, 6}},
                    Case{"<i8", "<i8", "none", Order::C, {16, 8, 6}}));

TEST(PointsTest, ChecksIndicesAndMemory) {
    const Array a = Array::create(memory_store(), {.shape = {4, 5}, .chunks = {2, 2}, .dtype = "<i4"});
    NDArray out("<i4", {2});
    const auto read = [&](const std::vector<std::int64_t>& at, const MutableArrayView& to) { a.read_points(at, to); };
    expect_error(ErrorCode::out_of_bounds, "(0, 5) lies outside the shape (4, 5)", [&] { read({1, 1, 0, 5}, out); });
    expect_error(ErrorCode::out_of_bounds, "(-1, 0) lies outside", [&] { read({-1, 0, 0, 0}, out); });
    expect_error(ErrorCode::invalid_argument, "3 numbers are no indices of 2 dimensions for 2 elements", [&] {
        read({1, 1, 0}, out);
    });
    NDArray floats("<f4", {2});
    expect_error(ErrorCode::invalid_argument, "elements of <f4; the array is <i4", [&] { read({1, 1, 0, 0}, floats); });
    NDArray square("<i4", {2, 1});
    expect_error(ErrorCode::invalid_argument, "one dimension", [&] { read({1, 1, 0, 0}, square); });
    expect_error(ErrorCode::invalid_argument, "(1,) is no index",
                 [&] { (void)a.read_points(std::vector<Index>{Index{1}}); });
    NDArray none("<i4", {0});
    read({}, none);
}

TEST(PointsTest, NamesADamagedChunk) {
    for (const char* codec : {"blosc:lz4:5:shuffle:256", "zstd:3", "none"}) {
        const TemporaryFolder dir;
        Array a = Array::create(
            dir.path() / "a", {.shape = {40, 40}, .chunks = {20, 40}, .dtype = "<i4", .codec = codec, .format = "v2"});
        NDArray all("<i4", {40, 40});
        for (std::int64_t i = 0; i < 1600; ++i) reinterpret_cast<std::int32_t*>(all.bytes().data())[i] = int(i * i);
        a.write(Region::whole({40, 40}), all.view());
        std::filesystem::resize_file(dir.path() / "a" / "1.0", 100);
        NDArray out("<i4", {2});
        expect_error(ErrorCode::corrupt, "chunk (1, 0), key 1.0", [&] {
            a.read_points(std::vector<std::int64_t>{39, 39, 0, 0}, out.view());
        });
        a.read_points(std::vector<std::int64_t>{19, 39, 0, 1}, out.view());
        EXPECT_EQ(reinterpret_cast<const std::int32_t*>(out.bytes().data())[0], 799 * 799) << codec;
        EXPECT_EQ(reinterpret_cast<const std::int32_t*>(out.bytes().data())[1], 1) << codec;
    }
}

}  // namespace
}  // namespace tessera
