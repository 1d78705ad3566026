// Fields, casts and what is computed, through the library; tests/cli compares all of them with NumPy.
#include <gtest/gtest.h>
#include <tessera/derived_source.h>
#include <tessera/tessera.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "../../expect_error.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

Array prices() {
    return Array::create({memory_store(), "prices"},
                         {.shape = {5}, .chunks = {2}, .dtype = "[('day','<i4'),('close','<f8')]", .format = "v2"});
}

std::unique_ptr<ArraySource> grid() {
    static const std::vector<std::int32_t> values{1, 2, 3, 4, 5, 600};
    return view_source(view(values, {2, 3}), "grid");
}

template <class T>
std::vector<T> all_of(const ArraySource& source) {
    const NDArray read = read_selection(source, Selection::all(source.info().shape));
    const auto values = read.values<T>();
    return {values.begin(), values.end()};
}

TEST(ArrayField, IsReadAndWrittenByItself) {
    Array table = prices();
    ArrayField close = table.field("close");
    EXPECT_EQ(close.shape(), (Shape{5}));
    EXPECT_EQ(close.dtype(), DType("<f8"));
    close.write("1:4", view(std::vector{1.5, 2.5, 3.5}));
    table.field("day").write("::2", view(std::vector<std::int32_t>{7, 8, 9}));
    EXPECT_EQ(all_of<double>(close), (std::vector{0.0, 1.5, 2.5, 3.5, 0.0}));
    EXPECT_EQ(all_of<std::int32_t>(table.field("day")), (std::vector<std::int32_t>{7, 0, 8, 0, 9}));
    const NDArray part = close.read("::-2");
    EXPECT_EQ(part.values<double>()[1], 2.5);

    const NDArray whole = table.read();
    EXPECT_EQ(field_view(whole.view(), "close").strides, (Strides{12}));
}

TEST(ArrayField, RefusesWhatIsNotThere) {
    Array table = prices();
    expect_error(ErrorCode::not_found, "day, close", [&] { (void)table.field("volume"); });
    expect_error(ErrorCode::invalid_argument, "expected elements of <f8", [&] {
        table.field("close").write(":2", view(std::vector{1, 2}));
    });
    expect_error(ErrorCode::invalid_argument, "shape", [&] {
        table.field("close").write(":2", view(std::vector{1.0, 2.0, 3.0}));
    });
    Array plain = Array::create({memory_store(), "plain"}, {.shape = {2}, .dtype = "<i4"});
    expect_error(ErrorCode::invalid_argument, "without fields", [&] { (void)plain.field("x"); });
}

TEST(CastSource, NamesTheFirstValueThatDoesNotFit) {
    const CastSource narrow(grid(), "i1", Cast::same_kind);
    EXPECT_EQ(narrow.info().dtype, DType("i1"));
    expect_error(ErrorCode::invalid_argument, "600 at [1, 2] does not fit", [&] { (void)all_of<std::int8_t>(narrow); });
    expect_error(ErrorCode::invalid_argument, "same_kind", [&] { CastSource(grid(), "u1", Cast::same_kind); });
    EXPECT_EQ(all_of<std::uint8_t>(CastSource(grid(), "u1", Cast::clip)).back(), 255);
    EXPECT_EQ(all_of<std::uint8_t>(CastSource(grid(), "u1", Cast::unsafe)).back(), 600 % 256);
    expect_error(ErrorCode::invalid_argument, "safe", [&] { CastSource(grid(), "<f4", Cast::safe); });
}

TEST(Calc, BroadcastsAndPromotes) {
    static const std::vector<float> row{0.5F, 1.5F, 2.5F};
    std::vector<CalcOperand> operands;
    operands.push_back({"a", grid()});
    operands.push_back({"b", view_source(view(row, {3}), "row")});
    const auto source = calc_source("where(a > 100, -b, b * 2)", std::move(operands));
    EXPECT_EQ(source->info().dtype, DType("<f4"));
    EXPECT_EQ(all_of<float>(*source), (std::vector<float>{1, 3, 5, 1, 3, -2.5F}));
    expect_error(ErrorCode::invalid_argument, "unknown name 'c'", [] { (void)calc_source("c", {}); });
}

TEST(Calc, InPlaceIsOneBatch) {
    const TemporaryFolder folder;
    Array a = Array::create(folder / "a", {.shape = {2, 3}, .chunks = {1, 2}, .dtype = "<i4"});
    const auto operands = [&] {
        std::vector<CalcOperand> both;
        both.push_back({"a", std::make_shared<Array>(a)});
        both.push_back({"b", grid()});
        return both;
    };
    EXPECT_GT(calc_in_place(a, "a + b", operands(), {.selection = Selection::parse("1, ::2", a.shape())}), 0);
    EXPECT_EQ(all_of<std::int32_t>(a), (std::vector<std::int32_t>{0, 0, 0, 4, 0, 600}));
    expect_error(ErrorCode::invalid_argument, "same_kind", [&] { (void)calc_in_place(a, "a * 0.5 + b", operands()); });
    (void)calc_in_place(a, "a * 0.5 + b", operands(), {.cast = Cast::round, .keep_old = false});
    EXPECT_EQ(all_of<std::int32_t>(a), (std::vector<std::int32_t>{1, 2, 3, 6, 5, 900}));
    expect_error(ErrorCode::not_found, "nothing to take back", [&] { (void)undo(a); });
}

TEST(Reduce, AlongAnAxis) {
    EXPECT_EQ(all_of<double>(*reduce_source(grid(), {.with = Reduction::mean, .axes = {0}})),
              (std::vector<double>{2.5, 3.5, 301.5}));
    EXPECT_EQ(all_of<std::int64_t>(*reduce_source(grid(), {.with = Reduction::argmax})),
              (std::vector<std::int64_t>{5}));
}

TEST(Reduce, VariancesOfLargeNumbersThatDifferLittle) {
    const std::vector<double> values{1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
    const auto variance = [&](const ReduceOptions& options) {
        return all_of<double>(*reduce_source(view_source(view(values, {2, 2}), "values"), options));
    };
    EXPECT_EQ(variance({.with = Reduction::variance}), (std::vector<double>{22.5}));
    EXPECT_EQ(variance({.with = Reduction::variance, .axes = {1}}), (std::vector<double>{2.25, 2.25}));
    EXPECT_EQ(reduction_name(parse_reduction("var")), "var");
}

TEST(Coarsen, EdgeBlocksHoldWhatIsLeft) {
    EXPECT_EQ(all_of<std::int32_t>(*coarsen_source(grid(), {2, 2}, Coarsening::mean)),
              (std::vector<std::int32_t>{3, 302}));  // 12 / 4, and 603 / 2 to the even one
}

}  // namespace
}  // namespace tessera
