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

TEST(MemoryStore, gaps_of_what_is_written_are_zeros) {
    const auto store = memory_store();
    store_suite::put(*store, "k", std::string(64, 'x'));  // memory that may be used again
    store->erase("k");
    const auto sink = store->create("k");
    const std::string text = "ab";
    sink->write_at(60, std::as_bytes(std::span(text)));
    sink->write_at(0, std::as_bytes(std::span(text)));
    sink->finish();
    EXPECT_EQ(store_suite::text_of(store->open("k")->mapped()), "ab" + std::string(58, '\0') + "ab");
}

}  // namespace
}  // namespace tessera
