#include "conformance/store_suite.h"

namespace tessera {
namespace {

TESSERA_STORE_SUITE(MemoryStore, memory_store())

TEST(MemoryStore, open_values_are_in_memory) {
    const auto store = memory_store();
    store_suite::put(*store, "k", "value");
    EXPECT_EQ(store_suite::text_of(store->open("k")->mapped()), "value");
    EXPECT_EQ(store->name(), "memory");
    EXPECT_FALSE(store->read_only());
}

}  // namespace
}  // namespace tessera
