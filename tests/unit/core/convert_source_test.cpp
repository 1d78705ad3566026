#include "convert_source.h"

#include <bit>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/ndarray.h>

namespace tessera {
namespace {

const Shape shape{3, 700, 1000};

/// The bits of the element at these indices.
std::uint16_t bits_at(std::int64_t i, std::int64_t j, std::int64_t k) {
    return static_cast<std::uint16_t>(((i * 700 + j) * 1000 + k) % 0x7F80);
}

/// A bfloat16 array made up as it is read, which notes what is asked for.
class Made final : public ArraySource {
public:
    Made(const Shape& chunks, Order order) : info_{DType("bfloat16"), shape, chunks, order, Access::any} {}
    ArrayInfo info() const override { return info_; }
    const std::string& name() const override { return name_; }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions&) const override {
        asked.push_back(region);
        for (std::int64_t i = 0; i < region.extent[0]; ++i) {
            for (std::int64_t j = 0; j < region.extent[1]; ++j) {
                for (std::int64_t k = 0; k < region.extent[2]; ++k) {
                    const std::uint16_t bits = bits_at(region.start[0] + i, region.start[1] + j, region.start[2] + k);
                    auto* p = out.data + i * out.strides[0] + j * out.strides[1] + k * out.strides[2];
                    *reinterpret_cast<std::uint16_t*>(p) = bits;
                }
            }
        }
    }
    mutable std::vector<Region> asked;

private:
    ArrayInfo info_;
    std::string name_ = "made";
};

void expect_right(const Made& source, const Region& region) {
    const auto wide = widened_bfloat16(source);
    NDArray out(wide->info().dtype, region.extent);
    wide->read_into(region, out.view(), {});
    const auto floats = out.view().typed<float>();
    std::int64_t wrong = 0, covered = 0;
    for (std::int64_t i = 0; i < region.extent[0]; ++i) {
        for (std::int64_t j = 0; j < region.extent[1]; ++j) {
            for (std::int64_t k = 0; k < region.extent[2]; ++k) {
                const std::uint16_t bits = bits_at(region.start[0] + i, region.start[1] + j, region.start[2] + k);
                wrong += std::bit_cast<std::uint32_t>(floats(i, j, k)) != std::uint32_t{bits} << 16;
            }
        }
    }
    EXPECT_EQ(wrong, 0);
    for (const Region& r : source.asked) covered += r.count();
    EXPECT_EQ(covered, region.count());  // nothing is read twice
}

TEST(ConvertedSource, ConvertsInSmallSlicesInTheOrderOfTheFile) {
    for (const Order order : {Order::C, Order::F}) {
        const Made source({}, order);
        expect_right(source, {{1, 2, 3}, {2, 650, 900}});
        EXPECT_GT(source.asked.size(), 2U);
        std::int64_t last = -1;
        for (const Region& r : source.asked) {
            EXPECT_LE(r.count() * 6, 1 << 20);
            const Index& s = r.start;
            const std::int64_t place =
                order == Order::C ? (s[0] * 700 + s[1]) * 1000 + s[2] : (s[2] * 700 + s[1]) * 3 + s[0];
            EXPECT_GT(place, last);
            last = place;
        }
    }
}

TEST(ConvertedSource, CutsNoChunk) {
    const Made source({2, 300, 1000}, Order::C);
    expect_right(source, {{1, 2, 3}, {2, 650, 900}});
    for (const Region& r : source.asked) {
        for (int d = 0; d < 3; ++d) {
            const std::int64_t end = r.start[d] + r.extent[d], chunk = source.info().chunks[d];
            EXPECT_TRUE(r.start[d] % chunk == 0 || r.start[d] == d + 1) << r.to_string();
            EXPECT_TRUE(end % chunk == 0 || end == Shape({3, 652, 903})[d]) << r.to_string();
        }
    }
    EXPECT_EQ(source.asked.size(), 6U);
}

}  // namespace
}  // namespace tessera
