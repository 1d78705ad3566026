#include <tessera/dimensions.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include <tessera/array.h>
#include <tessera/cached_array.h>
#include <tessera/key_value_store.h>

#include "expect_error.h"

namespace tessera {
namespace {

/// A group in memory: rows 0 to 4 of a(lat, z), with lat falling from 60 to 20.
class Dimensions : public ::testing::Test {
protected:
    Dimensions() {
        Array lat = Array::create({store_, "g/lat"}, {.shape = {5}, .dtype = DType::of<float>(), .format = "v3"});
        lat.write("", std::vector<float>{60, 50, 40, 30, 20});
        a_.write("", std::vector<std::int32_t>{0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32, 40, 41, 42});
    }
    [[nodiscard]] std::vector<std::int32_t> read(std::string_view selection) const {
        const NDArray read = a_.read(selection);
        const auto values = read.values<std::int32_t>();
        return {values.begin(), values.end()};
    }

    std::shared_ptr<KeyValueStore> store_ = memory_store();
    Array a_ = Array::create(
        {store_, "g/a"},
        {.shape = {5, 3}, .dtype = DType::of<std::int32_t>(), .format = "v3", .dimension_names = {"lat", "z"}});
};

TEST_F(Dimensions, SelectsByNamesAndValues) {
    EXPECT_EQ(read("lat=50, z@1"), (std::vector<std::int32_t>{11}));
    EXPECT_EQ(read("z@1, lat=35:50"), (std::vector<std::int32_t>{11, 21}));
    EXPECT_EQ(read("lat~44, z@1:"), (std::vector<std::int32_t>{21, 22}));
    EXPECT_EQ(read("lat=:40, z@0"), (std::vector<std::int32_t>{0, 10, 20}));
    EXPECT_EQ(read("1:3, 'z'@2"), (std::vector<std::int32_t>{12, 22}));
    a_.fill("lat=60:50, z@0", -1);
    EXPECT_EQ(read("z@0"), (std::vector<std::int32_t>{-1, -1, 20, 30, 40}));
    a_.write("lat=30:20, z@2", std::vector<std::int32_t>{7, 8});
    a_.write("lat~58, z@2", 9);
    a_.write("lat=40, z@2", std::vector<double>{5}, Cast::unsafe);
    EXPECT_EQ(read("z@2"), (std::vector<std::int32_t>{9, 12, 5, 7, 8}));
    CachedArray cached(a_);
    EXPECT_EQ(cached.read("lat=30, z@0").values<std::int32_t>()[0], 30);
    cached.write("lat=30, z@0", 31);
    cached.write("lat=30:20, z@1", std::vector<std::int32_t>{1, 2});
    cached.flush();
    EXPECT_EQ(read("lat=30"), (std::vector<std::int32_t>{31, 1, 7}));
}

TEST_F(Dimensions, TheEnvironmentChoosesNoFormat) {
    ASSERT_EQ(::setenv("TESSERA_FORMAT", "v9", 1), 0);
    const Array made = Array::create({store_, "b"}, {.shape = {2}, .dtype = DType::of<float>()});
    ASSERT_EQ(::unsetenv("TESSERA_FORMAT"), 0);
    EXPECT_EQ(made.dialect().name, "zmeta");
}

TEST_F(Dimensions, SaysWhatWasMeant) {
    std::string said;
    EXPECT_EQ(parse_selection("lat=50:30, z@0:2", a_, &said), Selection::parse("1:4, 0:2", {5, 3}));
    EXPECT_EQ(said, "lat=50:30 means indices 1:4; z@0:2 means indices 0:2");
    (void)parse_selection("1:4", a_, &said);
    EXPECT_EQ(said, "");
}

TEST_F(Dimensions, Refuses) {
    expect_error(ErrorCode::invalid_argument, "there are lat, z", [&] { (void)a_.read("x=1"); });
    expect_error(ErrorCode::out_of_bounds, "its neighbours are 40 and 50", [&] { (void)a_.read("lat=45"); });
    expect_error(ErrorCode::invalid_argument, "stands at the place of", [&] { (void)a_.read("z@1, 2"); });
    for (const char* text : {"lat=", "lat@", "=3", "lat=1:2:3:4", "lat=50, lat=50", "lat='50", "z~1", "lat=x"}) {
        expect_error(ErrorCode::invalid_argument, "", [&] { (void)a_.read(text); });
    }
    EXPECT_EQ(find_dimension("z", a_), 1);
    EXPECT_EQ(find_dimension("-1", a_), 1);
    expect_error(ErrorCode::invalid_argument, "of lat, z, found 'x'", [&] { (void)find_dimension("x", a_); });
}

}  // namespace
}  // namespace tessera
