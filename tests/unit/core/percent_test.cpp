#include <gtest/gtest.h>

#include <tessera/percent.h>

namespace tessera {
namespace {

TEST(Percent, EncodesAllButWhatIsUnreserved) {
    EXPECT_EQ(percent_encoded("aZ09-._~/ ü%"), "aZ09-._~%2F%20%C3%BC%25");
    EXPECT_EQ(percent_encoded("a/b c", true), "a/b%20c");
}

TEST(Percent, DecodesWhatIsWhole) {
    bool broken = false;
    EXPECT_EQ(percent_decoded("a%2Fb%20%c3%BC+", &broken), "a/b ü+");
    EXPECT_FALSE(broken);
    for (const char* text : {"%", "a%4", "%4g", "%0x", "%+1", "%-1", "%%41"}) {
        broken = false;
        const std::string decoded = percent_decoded(text, &broken);
        EXPECT_EQ(decoded, text == std::string_view("%%41") ? "%A" : text);
        EXPECT_TRUE(broken) << text;
    }
    EXPECT_EQ(percent_decoded("100%"), "100%");
}

}  // namespace
}  // namespace tessera
