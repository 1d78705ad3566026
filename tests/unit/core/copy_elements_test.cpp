#include <gtest/gtest.h>
#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/ndarray.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace tessera {
namespace {

NDArray counting(const DType& dtype, const Shape& shape, Order order = Order::C) {
    NDArray a(dtype, shape, order);
    std::mt19937 random(7);
    for (std::byte& b : a.bytes()) b = static_cast<std::byte>(random());
    return a;
}

/// The plainest possible copy, element by element through index arithmetic.
void slow_copy(const ArrayView& from, const MutableArrayView& to) {
    for (std::int64_t n = 0; n < from.count(); ++n) {
        std::int64_t rest = n;
        const std::byte* f = from.data;
        std::byte* t = to.data;
        for (int d = from.shape.rank() - 1; d >= 0; --d) {
            f += rest % from.shape[d] * from.strides[d];
            t += rest % from.shape[d] * to.strides[d];
            rest /= from.shape[d];
        }
        std::memcpy(t, f, static_cast<std::size_t>(from.dtype.size()));
    }
}

/// Turns each `unit` bytes of all elements round.
void slow_turn(const MutableArrayView& v, std::int64_t unit) {
    for (std::int64_t n = 0; n < v.count(); ++n) {
        std::int64_t rest = n;
        std::byte* p = v.data;
        for (int d = v.shape.rank() - 1; d >= 0; --d) {
            p += rest % v.shape[d] * v.strides[d];
            rest /= v.shape[d];
        }
        for (std::int64_t i = 0; i < v.dtype.size(); i += unit) std::reverse(p + i, p + i + unit);
    }
}

TEST(CopyElements, EveryLayoutAgreesWithThePlainLoop) {
    std::mt19937 random(3);
    const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    const std::vector<DType> dtypes = {"u1", "<u2", "<i4", "<f8", "<c16", "<c8", "S3", "V7", "<U5"};
    for (int round = 0; round < 400; ++round) {
        const DType dtype = dtypes[static_cast<std::size_t>(draw(0, 8))];
        const int rank = draw(0, 4);
        Shape shape;
        for (int d = 0; d < rank; ++d) shape.push_back(rank == 2 ? draw(1, 90) : draw(0, 9));
        // A permuted, partly reversed window of a larger array on either side.
        const auto window = [&](NDArray& big, std::uint32_t seed) {
            std::mt19937 own(seed);
            Dims order;
            for (int d = 0; d < rank; ++d) order.push_back(d);
            std::shuffle(order.begin(), order.end(), own);
            Shape larger = Shape::filled(rank, 0);
            for (int d = 0; d < rank; ++d) larger[static_cast<int>(order[d])] = shape[d] + static_cast<int>(own() % 3);
            big = counting(dtype, larger, own() % 2 ? Order::C : Order::F);
            MutableArrayView v = big.view().transposed(order).part({Index::filled(rank, 0), shape});
            for (int d = 0; d < rank; ++d) {
                if (own() % 2 && shape[d] > 0) {
                    if (v.data != nullptr) v.data += (shape[d] - 1) * v.strides[d];  // null: another dimension is empty
                    v.strides[d] = -v.strides[d];
                }
            }
            return v;
        };
        NDArray a;
        NDArray b;
        NDArray c;
        const MutableArrayView from = window(a, random());
        const std::uint32_t seed = random();
        const MutableArrayView fast = window(b, seed);
        const MutableArrayView slow = window(c, seed);
        copy_elements(from, fast);
        slow_copy(from, slow);
        // (Nothing is compared as equal by itself: memcmp, behind ranges::equal, takes no null pointer.)
        ASSERT_TRUE(b.bytes().empty() || std::ranges::equal(b.bytes(), c.bytes())) << round;
        ASSERT_TRUE(elements_equal(from, fast));
        MutableArrayView turned = fast;
        turned.dtype = dtype.with_order(ByteOrder::big);
        copy_elements(from, turned);
        slow_turn(turned, dtype.swap_unit());
        ASSERT_TRUE(b.bytes().empty() || std::ranges::equal(b.bytes(), c.bytes())) << round;
    }
}

TEST(CopyElements, SwapsByteOrderOnTheWay) {
    const std::vector<std::int32_t> values = {1, -2, 0x01020304};
    NDArray big(DType(">i4"), {3});
    copy_elements(view(values), big.view());
    EXPECT_EQ(element_to_value(big.dtype(), big.bytes().data() + 8).as_int64(), 0x01020304);
    EXPECT_EQ(big.bytes()[8], std::byte{1});
    NDArray back(DType::of<std::int32_t>(), {3});
    copy_elements(big.view(), back.view());
    EXPECT_TRUE(std::ranges::equal(back.values<std::int32_t>(), values));
}

TEST(CopyElements, SwapsOnlyTheFieldsThatDiffer) {
    const DType from("[('a', '<i4'), ('b', '>i2', (2,)), ('c', 'S2')]");
    const DType to("[('a', '>i4'), ('b', '>i2', (2,)), ('c', 'S2')]");
    NDArray a(from, {2});
    for (std::size_t i = 0; i < a.bytes().size(); ++i) a.bytes()[i] = static_cast<std::byte>(i);
    NDArray b(to, {2});
    copy_elements(a.view(), b.view());
    const std::vector<int> expected = {3, 2, 1, 0, 4, 5, 6, 7, 8, 9, 13, 12, 11, 10, 14, 15, 16, 17, 18, 19};
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(std::to_integer<int>(b.bytes()[i]), expected[i]) << i;
}

TEST(CopyElements, RefusesOtherShapesAndDtypes) {
    NDArray a("<i4", {3});
    NDArray b("<i4", {4});
    NDArray c("<u4", {3});
    EXPECT_THROW(copy_elements(a.view(), b.view()), Error);
    EXPECT_THROW(copy_elements(a.view(), c.view()), Error);
}

TEST(FillElements, ContiguousStridedAndOneByteAlike) {
    for (const char* text : {"u1", "<i4", "S3", "<c16"}) {
        const DType dtype(text);
        const NDArray element = counting(dtype, {});
        NDArray a = counting(dtype, {13, 9});
        const NDArray untouched = NDArray::copy_of(a);
        const Region window({2, 3}, {7, 4});
        fill_elements(a.view().part(window), element.bytes().data());
        EXPECT_TRUE(all_elements_equal(a.view().part(window), element.bytes().data()));
        EXPECT_FALSE(all_elements_equal(a.view(), element.bytes().data()));
        EXPECT_TRUE(elements_equal(a.view().part({{9, 0}, {4, 9}}), untouched.view().part({{9, 0}, {4, 9}})));
        fill_elements(a.view(), element.bytes().data());
        EXPECT_TRUE(all_elements_equal(a.view(), element.bytes().data()));
    }
}

TEST(AllElementsEqual, IsBitForBit) {
    std::vector<double> zeros(100, 0.0);
    const double zero = 0.0;
    const auto* element = reinterpret_cast<const std::byte*>(&zero);
    EXPECT_TRUE(all_elements_equal(view(zeros), element));
    zeros[99] = -0.0;
    EXPECT_FALSE(all_elements_equal(view(zeros), element));
}

TEST(VariableLength, ContentIsCopiedIntoTheOwnersArena) {
    NDArray copy;
    {
        NDArray text(DType::variable_text(), {3});
        auto* slots = reinterpret_cast<VariableSlot*>(text.bytes().data());
        slots[0] = text.view().arena->add("first");
        slots[2] = text.view().arena->add(std::string(100'000, 'x'));
        copy = NDArray::copy_of(text);
    }
    const auto* slots = reinterpret_cast<const VariableSlot*>(copy.bytes().data());
    EXPECT_EQ(slots[0].view(), "first");
    EXPECT_EQ(slots[1].view(), "");
    EXPECT_EQ(slots[2].size, 100'000U);
    EXPECT_EQ(slots[2].view().back(), 'x');
    MutableArrayView no_arena = copy.view();
    no_arena.arena = nullptr;
    NDArray other(DType::variable_text(), {3});
    EXPECT_THROW(copy_elements(other.view(), no_arena), Error);
}

TEST(View, TypedAccessChecksOnce) {
    std::vector<float> values(12);
    std::iota(values.begin(), values.end(), 0.0F);
    const auto typed = view(values, {3, 4}).typed<float>();
    EXPECT_EQ(typed(2, 3), 11.0F);
    EXPECT_THROW((void)view(values, {3, 4}).typed<double>(), Error);
    EXPECT_THROW((void)view(values, {5, 4}), Error);
    NDArray big(DType(">f4"), {3});
    EXPECT_THROW((void)big.values<float>(), Error);
    const ArrayView off{reinterpret_cast<const std::byte*>(values.data()) + 1, "<f4", {2}, {4}};
    EXPECT_THROW((void)off.typed<float>(), Error);
}

struct Mdspan {  // stands for std::mdspan, which GCC 12 lacks
    const double* p;
    [[nodiscard]] std::size_t rank() const { return 2; }
    [[nodiscard]] long extent(std::size_t i) const { return i == 0 ? 2 : 3; }
    [[nodiscard]] long stride(std::size_t i) const { return i == 0 ? 1 : 2; }
    [[nodiscard]] const double* data_handle() const { return p; }
};

TEST(View, TakesAnythingShapedLikeMdspan) {
    const double values[] = {0, 1, 2, 3, 4, 5};
    const ArrayView v = view(Mdspan{values});
    EXPECT_EQ(v.shape, (Shape{2, 3}));
    EXPECT_EQ(v.typed<double>()(1, 2), 5.0);
    EXPECT_TRUE(v.contiguous(Order::F));
    EXPECT_FALSE(v.contiguous(Order::C));
}

}  // namespace
}  // namespace tessera
