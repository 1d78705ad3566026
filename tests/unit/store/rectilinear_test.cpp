// Grids of chunks of different lengths: what zarr-python wrote is in tests/golden/zarr3 (rectilinear*); here are the
// lengths themselves, and documents and chunks that are wrong.
#include <gtest/gtest.h>
#include <tessera/ndarray.h>

#include "dialect_test_util.h"
#include "rectilinear.h"

namespace tessera {
namespace {

Value document(const std::string& lengths, const std::string& kind = "inline") {
    return Value::parse(R"({"shape": [7, 5], "data_type": "uint8", "chunk_grid": {"name": "rectilinear",
        "configuration": {"kind": ")" +
                        kind + R"(", "chunk_shapes": )" + lengths + R"(}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 9, "codecs": [{"name": "bytes"}],
        "attributes": {"a": 1}, "dimension_names": ["y", null], "zarr_format": 3, "node_type": "array"})");
}

std::unique_ptr<ArraySource> opened(const std::shared_ptr<KeyValueStore>& store, const Value& meta) {
    const std::string text = meta.dump();
    return rectilinear_source(store, "", std::as_bytes(std::span(text)), "here");
}

TEST(ChunkEdges, are_found_from_runs) {
    const ChunkEdges edges(Value::parse("[2, [3, 2], 4, [1, 1000000000000000000]]"), 20);
    EXPECT_EQ(edges.longest(), 4);
    const std::vector<std::int64_t> starts{0, 2, 5, 8, 12, 13, 14, 15, 16, 17, 18, 19};
    for (std::int64_t n = 0; n < std::ssize(starts); ++n) {
        const ChunkEdges::Chunk chunk = edges.numbered(n);
        EXPECT_EQ(chunk.index, n);
        EXPECT_EQ(chunk.start, starts[static_cast<std::size_t>(n)]);
        for (std::int64_t at = chunk.start; at < chunk.start + chunk.length; ++at) EXPECT_EQ(edges.at(at).index, n);
    }
    const ChunkEdges regular(Value(3), 10);
    EXPECT_EQ(regular.at(9).index, 3);
    EXPECT_EQ(regular.numbered(2).start, 6);
}

TEST(Rectilinear, parts_come_from_several_chunks) {
    const auto store = memory_store();
    const auto source = opened(store, document("[[3, 4], [[1, 2], 3]]"));
    ASSERT_NE(source, nullptr);
    EXPECT_EQ(source->info().shape, (Shape{7, 5}));
    EXPECT_EQ(source->info().chunks, (Shape{4, 3}));
    EXPECT_EQ(source->attribute_values(), Value::parse(R"({"a": 1, "_ARRAY_DIMENSIONS": ["y", null]})"));
    put_text(*store, "c/0/1", "abc");
    put_text(*store, "c/1/2", "ABCDEFGHIJKL");
    NDArray all("|u1", {7, 5});
    source->read_into(Region::whole({7, 5}), all.view(), {});
    const std::string_view text(reinterpret_cast<const char*>(all.bytes().data()), 35);
    EXPECT_EQ(text, "\ta\t\t\t\tb\t\t\t\tc\t\t\t\t\tABC\t\tDEF\t\tGHI\t\tJKL");
    NDArray part("|u1", {3, 2});
    source->read_into({{2, 1}, {3, 2}}, part.view(), {});
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(part.bytes().data()), 6), std::string_view("c\t\tA\tD"));
    // A chunk of another length than the grid says.
    put_text(*store, "c/0/0", "ab");
    expect_error(ErrorCode::corrupt, "c/0/0", [&] { source->read_into(Region::whole({7, 5}), all.view(), {}); });
}

TEST(Rectilinear, wrong_lengths_are_errors) {
    const auto wrong = [](const Value& meta, std::string_view message, ErrorCode code = ErrorCode::corrupt) {
        SCOPED_TRACE(meta.at("chunk_grid").dump());
        expect_error(code, message, [&] { (void)opened(memory_store(), meta); });
        expect_error(code, "zarr.json", [&] { (void)opened(memory_store(), meta); });
    };
    wrong(document("[[3, 3], 5]"), "add up to 6");
    wrong(document("[[3, 0, 4], 5]"), "expected 1");
    wrong(document("[[3, -1, 5], 5]"), "expected 1");
    wrong(document("[0, 5]"), "expected 1");
    wrong(document("[[], 5]"), "no lengths");
    wrong(document("[[[7, 1, 1]], 5]"), "pair");
    wrong(document("[[[7, 0]], 5]"), "expected 1");
    wrong(document("[7]"), "dimensions");
    wrong(document("7"), "");
    wrong(document("[[[9223372036854775807, 9223372036854775807]], 5]"), "");
    wrong(document("[[[1, 9223372036854775807], 1], 5]"), "");
    wrong(document("[7, 5]", "separate"), "inline", ErrorCode::unsupported);
    Value regular = document("[7, 5]");
    regular.set("chunk_grid", Value::parse(R"({"name": "regular", "configuration": {"chunk_shape": [7, 5]}})"));
    regular.set("attributes", Value::parse(R"({"about": "rectilinear"})"));
    EXPECT_EQ(opened(memory_store(), regular), nullptr);
}

}  // namespace
}  // namespace tessera
