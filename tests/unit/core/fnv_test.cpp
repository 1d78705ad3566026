#include <gtest/gtest.h>

#include <tessera/fnv.h>

namespace tessera {
namespace {

TEST(Fnv, IsAsItsAuthorsPublishedIt) {
    EXPECT_EQ(fnv1a<std::uint32_t>(""), 0x811c9dc5U);
    EXPECT_EQ(fnv1a<std::uint32_t>("foobar"), 0xbf9cf968U);
    EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
    EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
    EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
}

}  // namespace
}  // namespace tessera
