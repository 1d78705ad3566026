// What a programmer guesses right: selections as text everywhere, elements without view(), formats by name.
#include <gtest/gtest.h>
#include <tessera/tessera.h>

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "expect_error.h"
#include "temporary_folder.h"

namespace {

struct Reading {
    std::int64_t time;
    float value;
    std::uint8_t quality;

    bool operator==(const Reading&) const = default;
};

}  // namespace

TESSERA_STRUCTURE(Reading, time, value, quality);

namespace tessera {
namespace {

Array numbers() {
    return Array::create({memory_store(), "a"}, {.shape = {4, 5}, .chunks = {2, 2}, .dtype = "<i4"});
}

std::vector<std::int32_t> elements_of(const Array& a, std::string_view selection) {
    const NDArray read = a.read(selection);
    const auto values = read.values<std::int32_t>();
    return {values.begin(), values.end()};
}

TEST(Interface, ContiguousElementsAreWrittenWithoutView) {
    Array a = numbers();
    a.write("1, :3", std::vector<std::int32_t>{1, 2, 3});
    a.write({{2, 1}, {2, 2}}, std::array<std::int32_t, 4>{4, 5, 6, 7});
    const std::int32_t plain[] = {8, 9};
    a.write(Selection::parse("0, 3:", a.shape()), plain);
    EXPECT_EQ(elements_of(a, ""),
              (std::vector<std::int32_t>{0, 0, 0, 8, 9, 1, 2, 3, 0, 0, 0, 4, 5, 0, 0, 0, 6, 7, 0, 0}));
    expect_error(ErrorCode::invalid_argument, "", [&] { a.write("1, :3", std::vector<std::int32_t>{1, 2}); });
    expect_error(ErrorCode::invalid_argument, "", [&] { a.write("1, :3", std::vector<float>{1, 2, 3}); });
}

TEST(Interface, BracesAreARegionOfAnyRank) {
    Array line = Array::create({memory_store(), "a"}, {.shape = {6}, .dtype = "<i4"});
    line.write({{0}, {3}}, std::vector<std::int32_t>{1, 2, 3});
    EXPECT_EQ(line.read({{0}, {6}}).to_string(), "[1 2 3 0 0 0]");
    Array point = Array::create({memory_store(), "a"}, {.shape = {}, .dtype = "<i4"});
    point.write({}, 5);
    EXPECT_EQ(point.read({}).to_string(), "5");
}

TEST(Interface, PointsAreReadFromBracesAndVectorsAreAppended) {
    Array a = numbers();
    a.write("1", std::vector<std::int32_t>{1, 2, 3, 4, 5});
    EXPECT_EQ(a.read_points({{1, 4}, {0, 0}, {1, 1}}).to_string(), "[5 0 2]");
    EXPECT_EQ(a.append(std::vector<std::int32_t>{6, 7, 8, 9, 10}), 4);
    EXPECT_EQ(elements_of(a, "4"), (std::vector<std::int32_t>{6, 7, 8, 9, 10}));
    EXPECT_EQ(a.append(std::array<std::int32_t, 5>{1, 1, 1, 1, 1}, 1), 5);
    EXPECT_EQ(elements_of(a, "1"), (std::vector<std::int32_t>{1, 2, 3, 4, 5, 1}));
    expect_error(ErrorCode::invalid_argument, "", [&] { a.append(std::vector<float>(6)); });
}

TEST(Interface, ErrorsOfOptionsNameTheArray) {
    const TemporaryFolder folder;
    const std::string path = folder / "a.zarr";
    for (const Value& attributes : {Value::object(), Value::parse(R"({"units": "m"})")}) {
        ArrayOptions options{.shape = {10, 10}, .chunks = {5}, .dtype = "<f4", .attributes = attributes};
        expect_error(ErrorCode::invalid_argument, path + ": chunks (5,) have 1 dimensions",
                     [&] { (void)Array::create(path, options); });
        options.chunks = {5, 5};
        options.dtype = {};
        expect_error(ErrorCode::invalid_argument, path + ": the dtype is missing",
                     [&] { (void)Array::create(path, options); });
    }
    EXPECT_EQ(code_name(ErrorCode::not_found), "not_found");
}

TEST(Interface, ElementsOfAnotherTypeAreWrittenByARule) {
    Array a = numbers();
    a.write("1, :3", std::vector{1.4, -2.6, 3.0}, Cast::round);
    a.write({{0, 0}, {1, 2}}, std::array<std::int64_t, 2>{7, 8}, Cast::same_kind);
    a.write(Selection::parse("3, ::2", a.shape()), NDArray(std::vector{1e30, 2.0, 3.0}), Cast::clip);
    EXPECT_EQ(elements_of(a, "0"), (std::vector<std::int32_t>{7, 8, 0, 0, 0}));
    EXPECT_EQ(elements_of(a, "1"), (std::vector<std::int32_t>{1, -3, 3, 0, 0}));
    EXPECT_EQ(elements_of(a, "3"), (std::vector<std::int32_t>{2147483647, 0, 2, 0, 3}));
    const std::vector<std::int32_t> before = elements_of(a, "");
    expect_error(ErrorCode::invalid_argument, "the value 1e+30 at [0, 4]", [&] {
        a.write("2", std::vector{1.0, 2.0, 3.0, 4.0, 1e30}, Cast::round);
    });
    expect_error(ErrorCode::invalid_argument, "", [&] { a.write("2", std::vector<double>(5), Cast::safe); });
    EXPECT_EQ(elements_of(a, ""), before);
    a.write("2, 0", std::vector<std::int32_t>{4}, Cast::safe);  // the array's own type
    EXPECT_EQ(elements_of(a, "2, 0"), (std::vector<std::int32_t>{4}));
}

TEST(Interface, TimesOfChronoAreElements) {
    using namespace std::chrono;
    EXPECT_EQ(DType::of<sys_seconds>(), DType("M8[s]"));
    EXPECT_EQ(DType::of<sys_days>(), DType("M8[D]"));
    EXPECT_EQ(DType::of<sys_time<milliseconds>>(), DType("M8[ms]"));
    EXPECT_EQ(DType::of<hours>(), DType("m8[h]"));
    EXPECT_EQ(DType::of<nanoseconds>(), DType("m8[ns]"));
    EXPECT_FALSE(RegisteredType<years>);
    EXPECT_FALSE((RegisteredType<duration<double>>));
    for (const char* const dtype : {"<M8[s]", ">M8[s]"}) {
        Array a = Array::create({memory_store(), "a"}, {.shape = {4}, .chunks = {3}, .dtype = dtype, .format = "v2"});
        const sys_days day = year(2026) / 1 / 31;
        a.write("", day);
        a.write("1", sys_seconds(day) + hours(3));
        a.write("2:", std::vector<sys_seconds>{day + days(1), day - days(1)});
        a.write("3", std::vector{sys_seconds::min()});
        EXPECT_EQ(a.read().to_string(),
                  "['2026-01-31T00:00:00' '2026-01-31T03:00:00' '2026-02-01T00:00:00'\n"
                  "                 'NaT']");
        const NDArray read = a.read("::2");
        EXPECT_EQ(read.dtype(), DType(dtype));
        EXPECT_EQ(a.read<sys_seconds>("::2").values<sys_seconds>()[1], day + days(1));
        std::vector<sys_seconds> memory(2);
        a.read_into(":2", view(memory));
        EXPECT_EQ(memory[1], sys_seconds(day) + hours(3));
        expect_error(ErrorCode::invalid_argument, "",
                     [&] { a.write("0", sys_time<milliseconds>(milliseconds(1500))); });
    }
}

TEST(Interface, AStructureIsOneValueToo) {
    Array a = Array::create({memory_store(), "a"}, {.shape = {3}, .dtype = DType::of<Reading>(), .format = "v2"});
    a.write("1:", Reading{5, 1.5F, 2});
    const NDArray read = a.read();
    EXPECT_EQ(read.values<Reading>()[2], (Reading{5, 1.5F, 2}));
    EXPECT_EQ(read.values<Reading>()[0].time, 0);
}

TEST(Interface, OneValueIsWrittenEverywhere) {
    Array a = numbers();
    a.write("1:3, 1", 7);
    a.write({{0, 0}, {1, 2}}, std::int16_t{-1});
    a.write(Selection::parse("3, ::2", a.shape()), 2.0);
    EXPECT_EQ(elements_of(a, ""),
              (std::vector<std::int32_t>{-1, -1, 0, 0, 0, 0, 7, 0, 0, 0, 0, 7, 0, 0, 0, 2, 0, 2, 0, 2}));
    expect_error(ErrorCode::invalid_argument, "", [&] { a.write("0", 0.5); });
    expect_error(ErrorCode::invalid_argument, "", [&] { a.write("0", std::int64_t{1} << 40); });
    Array text = Array::create({memory_store(), "t"}, {.shape = {3}, .dtype = "S4"});
    text.write("1:", "abc");
    const NDArray written = text.read();
    const auto bytes = written.bytes();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
              std::string("\0\0\0\0abc\0abc\0", 12));
}

TEST(Interface, SelectionsAreTextEverywhere) {
    Array a = numbers();
    a.fill("::2, 1", 3);
    a.update("0, :2", [](const Region&, const MutableArrayView& part) {
        const auto values = part.typed<std::int32_t>();
        for (std::int64_t i = 0; i < part.shape[1]; ++i) ++values(0, i);
    });
    std::vector<std::int32_t> out(2);
    a.read_into("0, :2", view(out));
    EXPECT_EQ(out, (std::vector<std::int32_t>{1, 4}));
    // What another handle appended is there.
    Array first = Array::create({memory_store(), "b"}, {.shape = {2}, .chunks = {2}, .dtype = "<i4"});
    first.append(view(std::vector<std::int32_t>{5}));
    first.write("-1", std::vector<std::int32_t>{6});
    EXPECT_EQ(elements_of(first, ""), (std::vector<std::int32_t>{0, 0, 6}));
}

TEST(Interface, ElementsAreReadAsAnotherType) {
    Array a = numbers();
    a.write("1, :3", std::vector<std::int32_t>{1, -2, 3000});
    const NDArray floats = a.read<float>("1, ::2");
    EXPECT_EQ(floats.shape(), Shape{3});
    EXPECT_EQ(floats.values<float>()[1], 3000.0F);
    EXPECT_EQ(a.read<std::int16_t>("1, 1").values<std::int16_t>()[0], -2);
    expect_error(ErrorCode::invalid_argument, "3000", [&] { (void)a.read<std::int8_t>("1"); });
    EXPECT_EQ(a.read<std::int8_t>("1, 2", Cast::clip).values<std::int8_t>()[0], 127);
    const Array halves = Array::create({memory_store(), "h"}, {.shape = {2}, .dtype = ">f8"});
    Array(halves).write("", 1.5);
    expect_error(ErrorCode::invalid_argument, "same_kind", [&] { (void)halves.read<int>(); });
    EXPECT_EQ(halves.read<int>("0", Cast::round).values<int>()[0], 2);
    EXPECT_EQ(halves.read<double>("0").values<double>()[0], 1.5);  // in the order of this machine
}

TEST(Interface, StructsGoInAndOut) {
    for (const char* const format : {"zmeta", "v1", "v2"}) {  // v3 cannot express padding
        SCOPED_TRACE(format);
        const std::vector<Reading> readings{{-1, 0.5F, 1}, {std::numeric_limits<std::int64_t>::max(), -2.0F, 255}};
        auto store = memory_store();
        Array log = Array::create({store, "log"},
                                  {.shape = {3}, .chunks = {2}, .dtype = DType::of<Reading>(), .format = format});
        log.write("1:", readings);
        const NDArray back = Array::open({store, "log"}).read("1:");
        const auto values = back.values<Reading>();
        EXPECT_EQ(std::vector<Reading>(values.begin(), values.end()), readings);
    }
}

/// As Eigen::MatrixXf has its elements: column-major, data(), rows(), cols(), size().
struct ColumnMajorMatrix {
    std::vector<float> elements = {1, 2, 3, 4, 5, 6};
    float* data() { return elements.data(); }
    [[nodiscard]] std::size_t size() const { return elements.size(); }
    [[nodiscard]] std::int64_t rows() const { return 2; }
    [[nodiscard]] std::int64_t cols() const { return 3; }
};

/// As a strided std::mdspan.
struct EveryOther {
    float* first;
    [[nodiscard]] std::size_t rank() const { return 1; }
    [[nodiscard]] std::size_t extent(std::size_t) const { return 3; }
    [[nodiscard]] std::size_t stride(std::size_t) const { return 2; }
    [[nodiscard]] float* data_handle() const { return first; }
};

TEST(Interface, MemoryOfOtherLibrariesIsViewed) {
    Array a = Array::create({memory_store(), "a"}, {.shape = {2, 3}, .dtype = "<f4"});
    ColumnMajorMatrix m;
    a.write("", view(std::span(m.data(), m.size()), {m.rows(), m.cols()}, Order::F));
    const NDArray read = a.read();
    EXPECT_EQ(read.view().typed<float>()(1, 0), 2.0F);
    EXPECT_EQ(read.view().typed<float>()(0, 1), 3.0F);
    a.write("0", view(EveryOther{m.data()}));
    EXPECT_EQ(a.read("0").values<float>()[2], 5.0F);
}

TEST(Interface, BlocksAreChunksAndShards) {
    Array a = numbers();
    a.write("3, 4", 1);
    std::vector<Region> stored;
    for (const Block& block : a.blocks()) {
        if (a.is_stored(block.region)) stored.push_back(block.region);
    }
    EXPECT_EQ(stored, std::vector<Region>{Region({2, 4}, {2, 1})});
    const Array sharded = Array::create(
        {memory_store(), "s"}, {.shape = {8, 8}, .chunks = {2, 2}, .dtype = "<i4", .shards = {4, 8}, .format = "v3"});
    EXPECT_EQ(sharded.blocks().count(), 2);
    EXPECT_EQ(sharded.blocks({1, 0})[1].with_halo, Region({3, 0}, {5, 8}));
}

TEST(Interface, GroupsAreMadeByTheNameOfTheirFormat) {
    const TemporaryFolder folder;
    const Group group = Group::create(folder.path() / "g", "v2", {{"title", "x"}});
    EXPECT_EQ(group.dialect()->name, "v2");
    EXPECT_EQ(group.attributes().get("title"), Value("x"));
    EXPECT_EQ(Group::create(folder.path() / "h").dialect()->name, "v3");
    expect_error(ErrorCode::unsupported, "zmeta", [&] { (void)Group::create(folder.path() / "i", "zmeta"); });
    expect_error(ErrorCode::invalid_argument, "v9", [&] { (void)Group::create(folder.path() / "i", "v9"); });
}

}  // namespace
}  // namespace tessera
