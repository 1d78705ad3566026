// Parts of chunks: every way to decode, pick or replace them gives the elements that decoding the whole chunk gives.
#include <tessera/copy_elements.h>
#include <tessera/pipeline.h>

#include <algorithm>
#include <random>
#include <vector>

#include "codec_test_util.h"

namespace tessera {
namespace {

class Unmapped final : public ByteSource {
public:
    explicit Unmapped(ByteSpan bytes, std::uint64_t worth_skipping = 4096)
        : bytes_(bytes), worth_skipping_(worth_skipping) {}
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    [[nodiscard]] std::uint64_t worth_skipping() const override { return worth_skipping_; }
    void read(std::uint64_t offset, MutableByteSpan out) const override {
        ++reads;
        bytes_read += out.size();
        std::ranges::copy(bytes_.subspan(static_cast<std::size_t>(offset), out.size()), out.begin());
    }
    [[nodiscard]] const std::string& name() const override { return name_; }

    mutable std::size_t reads = 0;
    mutable std::size_t bytes_read = 0;

private:
    ByteSpan bytes_;
    std::uint64_t worth_skipping_;
    std::string name_ = "elsewhere";
};

/// Draws chunks and parts of them.
class Draw {
public:
    explicit Draw(unsigned seed) : random_(seed) {}

    std::int64_t below(std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_); }

    NDArray chunk(const DType& dtype) {
        const std::vector<Shape> shapes{{40, 50, 17}, {7, 3000}, {30000}, {9, 8, 7, 50}, {50, 1, 300}, {2000, 5}};
        NDArray a(dtype, shapes[static_cast<std::size_t>(below(std::ssize(shapes)))]);
        std::size_t i = 0;
        for (std::byte& b : a.bytes()) b = static_cast<std::byte>(i++ / 3 * 7 + static_cast<std::size_t>(below(3)));
        return a;
    }

    /// A part, often nearly whole or of length 1, and how far apart its elements are.
    std::pair<Region, Dims> part(const Shape& shape) {
        Region region = Region::whole(shape);
        Dims steps = Dims::filled(shape.rank(), 1);
        for (int d = 0; d < shape.rank(); ++d) {
            const std::int64_t kind = below(5);
            if (kind == 0) continue;
            region.start[d] = below(kind == 1 ? std::min<std::int64_t>(shape[d], 3) : shape[d]);
            const std::int64_t left = shape[d] - region.start[d];
            region.extent[d] = kind == 2 ? 1 : kind == 3 ? 1 + below(left) : left;
            if (kind == 4) steps[d] = 1 + below(12);
            region.extent[d] = (region.extent[d] - 1) / steps[d] + 1;
        }
        return {region, std::ranges::all_of(steps, [](std::int64_t n) { return n == 1; }) ? Dims() : steps};
    }

    /// Memory for elements of a shape: packed, in Fortran order, in a larger array, or reversed.
    MutableArrayView memory(const DType& dtype, const Shape& shape) {
        Shape wide = shape;
        for (int d = 0; d < wide.rank(); ++d) wide[d] += d == 0 ? 0 : below(2) * (d + 300 / wide.rank());
        memory_ = NDArray(dtype, wide, below(4) == 0 ? Order::F : Order::C);
        std::size_t i = 0;
        for (std::byte& b : memory_.bytes()) b = static_cast<std::byte>(i++ / 5 * 3);
        MutableArrayView v = memory_.view().part(Region::whole(shape));
        for (int d = 0; d < shape.rank(); ++d) {
            if (below(8) != 0) continue;
            v.data += (v.shape[d] - 1) * v.strides[d];
            v.strides[d] = -v.strides[d];
        }
        return v;
    }

private:
    std::mt19937 random_;
    NDArray memory_;
};

ArrayView picked_of(const NDArray& chunk, const Region& region, const Dims& steps) {
    ArrayView v = chunk.view();
    v.shape = region.extent;
    for (int d = 0; d < region.rank(); ++d) {
        v.data += region.start[d] * v.strides[d];
        if (!steps.empty()) v.strides[d] *= steps[d];
    }
    return v;
}

constexpr std::array chains{"none",
                            "blosc:lz4:5:shuffle:4096",
                            "blosc:lz4:5:shuffle",
                            "blosc:lz4:1:bitshuffle:4096",
                            "blosc:lz4:5:noshuffle:4096",
                            "blosc:zstd:1:shuffle:4096",
                            "blosc:lz4:0",
                            "zstd:1",
                            "blosc:lz4:5:shuffle:4096,crc32c"};
constexpr std::array dtypes{"|u1", "<i2", ">i2", "<f4", ">f8", "<c16", "|V6"};

TEST(Parts, AnyPartWithAnyStepsIsThatOfTheWhole) {
    Draw draw(1);
    for (int round = 0; round < 700; ++round) {
        const DType dtype = DType::parse(dtypes[static_cast<std::size_t>(round) % dtypes.size()]);
        const char* const chain = chains[static_cast<std::size_t>(draw.below(std::ssize(chains)))];
        const NDArray chunk = draw.chunk(dtype);
        const Order order = draw.below(4) == 0 ? Order::F : Order::C;
        const CodecPipeline p({dtype, chunk.shape(), {}},
                              complete_codecs(dtype, chunk.shape().rank(), order, parse_codecs(chain)));
        CodecScratch scratch;
        const Buffer encoded(p.encode(chunk, scratch));
        const auto [region, steps] = draw.part(chunk.shape());
        const ArrayView expected = picked_of(chunk, region, steps);
        const DType there = draw.below(3) == 0 ? dtype.with_order(ByteOrder::little) : dtype;
        const MutableArrayView out = draw.memory(there, region.extent);
        if (draw.below(2) == 0) {
            const std::uint64_t worth_skipping = std::array{1, 64, 4096}[static_cast<std::size_t>(draw.below(3))];
            p.decode_part(Unmapped(encoded, worth_skipping), region, out, scratch, steps);
        } else {
            p.decode_part(*memory_source(Buffer(encoded.span()), "memory"), region, out, scratch, steps);
        }
        ASSERT_TRUE(elements_equal(out, expected)) << round << ' ' << chain << ' ' << dtype.to_string() << ' '
                                                   << chunk.shape() << ' ' << region.to_string() << " steps " << steps;
    }
}

TEST(Parts, OfUncompressedBytesOnlyWhatLiesCloseIsRead) {
    const Shape shape{40, 30, 50};
    const CodecPipeline p({DType::of<float>(), shape, {}},
                          complete_codecs(DType::of<float>(), shape.rank(), Order::C, {}));
    const Buffer encoded(static_cast<std::size_t>(byte_count(shape, 4)));
    CodecScratch scratch;
    struct Case {
        Region region;
        Dims steps;
        std::size_t reads;
        std::size_t bytes;
    };
    const std::size_t row = 50 * 4;
    const std::size_t plane = 30 * row;
    for (const Case& c : {Case{{{7, 0, 0}, {1, 30, 50}}, {}, 1, plane},                     //
                          Case{{{0, 7, 0}, {40, 1, 50}}, {}, 40, 40 * row},                 // rows, a plane apart
                          Case{{{3, 7, 5}, {4, 2, 10}}, {}, 4, 4 * (row + 40)},             // two rows are close
                          Case{{{0, 0, 7}, {40, 30, 1}}, {}, 1, 40 * plane - 4 * 49},       // elements, a row apart
                          Case{{{0, 0, 7}, {10, 1, 1}}, {4, 1, 1}, 10, 10 * 4},             //
                          Case{{{0, 28, 0}, {10, 2, 50}}, {4, 1, 1}, 10, 10 * 2 * row}}) {  // a run
        NDArray out(DType::of<float>(), c.region.extent);
        const Unmapped source(encoded, 4096);
        p.decode_part(source, c.region, out, scratch, c.steps);
        EXPECT_EQ(source.reads, c.reads) << c.region;
        EXPECT_EQ(source.bytes_read, c.bytes) << c.region;
    }
}

TEST(Parts, SingleElementsAreThoseOfTheWholeHoweverMany) {
    Draw draw(2);
    for (int round = 0; round < 300; ++round) {
        const DType dtype = DType::parse(dtypes[static_cast<std::size_t>(round) % dtypes.size()]);
        const char* const chain = chains[static_cast<std::size_t>(draw.below(std::ssize(chains)))];
        const NDArray chunk = draw.chunk(dtype);
        const CodecPipeline p({dtype, chunk.shape(), {}},
                              complete_codecs(dtype, chunk.shape().rank(), Order::C, parse_codecs(chain)));
        CodecScratch scratch;
        const Buffer encoded(p.encode(chunk, scratch));
        const std::int64_t count = draw.below(round % 3 == 0 ? 20000 : 30) + 1;
        const auto size = static_cast<std::size_t>(dtype.size());
        NDArray out(dtype, {count});
        std::vector<ElementPlace> places;
        std::vector<std::byte> expected;
        for (std::int64_t i = 0; i < count; ++i) {
            const std::size_t from = static_cast<std::size_t>(draw.below(chunk.count())) * size;
            places.push_back({from, out.bytes().data() + static_cast<std::size_t>(i) * size});
            expected.insert(expected.end(), chunk.bytes().data() + from, chunk.bytes().data() + from + size);
        }
        p.decode_elements(Unmapped(encoded), places, dtype, scratch);
        ASSERT_TRUE(same_bytes(out.bytes(), expected)) << round << ' ' << chain << ' ' << dtype.to_string();
    }
}

TEST(Parts, ReplacingAPartGivesTheBytesOfEncodingTheWhole) {
    Draw draw(3);
    int replaced = 0;
    for (int round = 0; round < 400; ++round) {
        const DType dtype = DType::parse(dtypes[static_cast<std::size_t>(round) % dtypes.size()]);
        const char* const chain = chains[static_cast<std::size_t>(draw.below(std::ssize(chains)))];
        NDArray chunk = draw.chunk(dtype);
        const CodecPipeline p({dtype, chunk.shape(), {}},
                              complete_codecs(dtype, chunk.shape().rank(), Order::C, parse_codecs(chain)));
        CodecScratch scratch;
        const Buffer old(p.encode(chunk, scratch));
        const Region region = draw.part(chunk.shape()).first;
        const MutableArrayView news = draw.memory(dtype, region.extent);
        const auto encoded = p.encode_part(old, region, news, scratch);
        if (!encoded) continue;
        ++replaced;
        const Buffer part(*encoded);
        copy_elements(news, chunk.view().part(region));
        ASSERT_TRUE(same_bytes(part, p.encode(chunk, scratch)))
            << round << ' ' << chain << ' ' << chunk.shape() << ' ' << region.to_string();
    }
    EXPECT_GT(replaced, 20);
}

}  // namespace
}  // namespace tessera
