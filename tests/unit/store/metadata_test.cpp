#include <gtest/gtest.h>
#include <tessera/dialect.h>
#include <tessera/error.h>

namespace tessera {
namespace {

TEST(KeyScheme, keys) {
    const KeyScheme zmeta{.prefix = "__zdata__/", .separator = ".", .suffix = ".blosc", .zero_d = "__zdata__/0.blosc"};
    EXPECT_EQ(zmeta.key({0}), "__zdata__/0.blosc");
    EXPECT_EQ(zmeta.key({12, 0, 9'000'000'000}), "__zdata__/12.0.9000000000.blosc");
    EXPECT_EQ(zmeta.key({}), "__zdata__/0.blosc");
    const KeyScheme v3{.prefix = "c/", .separator = "/", .suffix = "", .zero_d = "c"};
    EXPECT_EQ(v3.key({1, 2}), "c/1/2");
}

TEST(KeyScheme, parse_undoes_key) {
    for (const KeyScheme& scheme : {KeyScheme{"__zdata__/", ".", ".blosc", "__zdata__/0.blosc"},
                                    KeyScheme{"", ".", "", "0"}, KeyScheme{"c/", "/", "", "c"}}) {
        for (const Index& chunk : {Index{}, Index{0}, Index{7}, Index{0, 0}, Index{10, 200, 3}, Index{INT64_MAX, 1}}) {
            EXPECT_EQ(scheme.parse(scheme.key(chunk), chunk.rank()), chunk) << scheme.key(chunk);
        }
    }
}

TEST(KeyScheme, what_key_does_not_write_is_no_chunk) {
    const KeyScheme scheme{.prefix = "__zdata__/", .separator = ".", .suffix = ".blosc", .zero_d = "__zdata__/0.blosc"};
    for (const char* key :
         {"__zdata__/1.blosc", "__zdata__/1.2.3.blosc", "__zdata__/1.2", "__zdata__/01.2.blosc", "__zdata__/-1.2.blosc",
          "__zdata__/-0.2.blosc", "__zdata__/+1.2.blosc", "__zdata__/1.2.blosc.lock", "__zdata__/1..blosc",
          "__zdata__/ 1.2.blosc", "1.2.blosc", "__zdata__/9223372036854775808.0.blosc", "__zdata__/1,2.blosc", "",
          "__zdata__/.blosc", "__zdata__/blosc", "__zdata__/1.2.blosc.abc.partial"}) {
        EXPECT_EQ(scheme.parse(key, 2), std::nullopt) << key;
    }
    EXPECT_EQ(scheme.parse("__zdata__/1.blosc", 0), std::nullopt);
    // A prefix and a suffix that overlap in a short key.
    EXPECT_EQ((KeyScheme{"aba", ".", "aba", "0"}).parse("aba", 1), std::nullopt);
}

TEST(FillElement, bytes_zeros_or_the_reason_why_not) {
    ArrayMetadata m;
    m.dtype = "<i2";
    EXPECT_EQ(fill_element(m), ElementBytes(2));
    m.fill.bytes = {std::byte{1}, std::byte{2}};
    EXPECT_EQ(fill_element(m), *m.fill.bytes);
    m.fill = {.bytes = {}, .spelling = Value("text"), .error = "because"};
    try {
        (void)fill_element(m);
        ADD_FAILURE();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
        EXPECT_NE(std::string(e.what()).find("\"text\""), std::string::npos) << e.what();
        EXPECT_NE(std::string(e.what()).find("because"), std::string::npos) << e.what();
    }
}

}  // namespace
}  // namespace tessera
