#include <gtest/gtest.h>
#include <tessera/error.h>
#include <tessera/selection.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

namespace tessera {
namespace {

TEST(Selection, ParsesNumPysBasicSlices) {
    const Shape shape{100, 50, 7};
    const Selection s = Selection::parse("10:20, ::2, -1", shape);
    EXPECT_EQ(s.shape(), (Shape{10, 25}));
    EXPECT_EQ(s.full_shape(), (Shape{10, 25, 1}));
    EXPECT_EQ(s.bounds(), Region({10, 0, 6}, {10, 49, 1}));
    EXPECT_FALSE(s.is_region());
    EXPECT_EQ(Selection::parse("", shape), Selection::all(shape));
    EXPECT_EQ(Selection::parse("...", shape), Selection::all(shape));
    EXPECT_EQ(Selection::parse("[..., 3]", shape).shape(), (Shape{100, 50}));
    EXPECT_EQ(Selection::parse("5, ..., 3", shape).shape(), Shape{50});
    EXPECT_EQ(Selection::parse("1,2,3", shape).shape(), Shape{});
    EXPECT_EQ(Selection::parse("", {}).shape(), Shape{});
    EXPECT_EQ(Selection::parse("...", {}).shape(), Shape{});
}

TEST(Selection, RefusesInWords) {
    const Shape shape{100, 50};
    const auto code = [&](const char* text) {
        try {
            (void)Selection::parse(text, shape);
        } catch (const Error& e) {
            return e.code();
        }
        return ErrorCode::io;
    };
    EXPECT_EQ(code("100"), ErrorCode::out_of_bounds);
    EXPECT_EQ(code("-101"), ErrorCode::out_of_bounds);
    EXPECT_EQ(code("::0"), ErrorCode::invalid_argument);
    EXPECT_EQ(code("1,2,3"), ErrorCode::invalid_argument);
    EXPECT_EQ(code("..., ..."), ErrorCode::invalid_argument);
    EXPECT_EQ(code("a:b"), ErrorCode::invalid_argument);
    EXPECT_EQ(code("1,,2"), ErrorCode::invalid_argument);
    EXPECT_EQ(code("1:2:3:4"), ErrorCode::invalid_argument);
    EXPECT_EQ(code("99999999999999999999"), ErrorCode::invalid_argument);
    EXPECT_EQ(code("3.5"), ErrorCode::invalid_argument);
}

// Python's own slices, for every combination of small and extreme bounds.
TEST(Selection, AgreesWithPythonForEverySlice) {
    const char* script =
        "import itertools\n"
        "ends=['']+[str(i) for i in range(-7,8)]+['-9223372036854775808','9223372036854775807']\n"
        "steps=['','1','2','3','7','-1','-2','-5','9223372036854775807','-9223372036854775808']\n"
        "for n in (0,1,2,5):\n"
        " for a,b,c in itertools.product(ends,ends,steps):\n"
        "  i=list(range(n))[slice(*[int(x) if x else None for x in (a,b,c)])]\n"
        "  print(f'{a}:{b}:{c}', n, len(i), *i)\n";
    const std::string path = testing::TempDir() + "slices.py";
    std::ofstream(path) << script;
    FILE* pipe = popen(("/usr/bin/python3 " + path).c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string output;
    char buffer[65536];
    for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
    ASSERT_EQ(pclose(pipe), 0);
    std::istringstream lines(output);
    std::string text;
    std::int64_t length = 0;
    std::int64_t count = 0;
    int checked = 0;
    while (lines >> text >> length >> count) {
        const Selection s = Selection::parse(text, Shape{length});
        ASSERT_EQ(s.shape(), Shape{count}) << text << " of " << length;
        for (std::int64_t i = 0; i < count; ++i) {
            std::int64_t place = 0;
            lines >> place;
            ASSERT_EQ(s.axes()[0].start + i * s.axes()[0].step, place) << text << " of " << length;
        }
        ASSERT_NO_THROW(require_inside(s.bounds(), Shape{length})) << text << " of " << length;
        ++checked;
    }
    EXPECT_EQ(checked, 4 * 18 * 18 * 10);
}

TEST(Selection, PrintsWhatParsesBack) {
    const Shape shape{10, 20, 30};
    for (const char* text : {"1:5, ::3, 7", "::-1, 5:2:-1, ...", "9, 3::-2, 0:0", "0:1, 19:, -1"}) {
        const Selection s = Selection::parse(text, shape);
        EXPECT_EQ(Selection::parse(s.to_string(), shape), s) << text << " -> " << s.to_string();
    }
}

}  // namespace
}  // namespace tessera
