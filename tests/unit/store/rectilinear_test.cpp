// Grids of chunks of different lengths: what zarr-python wrote is in tests/golden/zarr3 (rectilinear*), and random
// arrays are in tests/python/test_module_rectilinear.py; here are documents and chunks that are wrong, and what the
// library alone can do.
#include <gtest/gtest.h>
#include <tessera/array.h>
#include <tessera/cached_array.h>
#include <tessera/ndarray.h>

#include "dialect_test_util.h"

namespace tessera {
namespace {

Value document(const std::string& lengths, const std::string& kind = "inline") {
    return Value::parse(R"({"shape": [7, 5], "data_type": "uint8", "chunk_grid": {"name": "rectilinear",
        "configuration": {"kind": ")" +
                        kind + R"(", "chunk_shapes": )" + lengths + R"(}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 9, "codecs": [{"name": "bytes"}],
        "attributes": {"a": 1}, "dimension_names": ["y", null], "zarr_format": 3, "node_type": "array"})");
}

Array opened(const std::shared_ptr<KeyValueStore>& store, const Value& meta) {
    put_text(*store, "zarr.json", meta.dump());
    return Array::open(store);
}

std::string text_of_all(const Array& array) {
    const NDArray all = array.read("");
    return {reinterpret_cast<const char*>(all.bytes().data()), all.bytes().size()};
}

TEST(Rectilinear, parts_come_from_several_chunks) {
    const auto store = memory_store();
    Array array = opened(store, document("[[3, 4], [[1, 2], 3]]"));
    EXPECT_EQ(array.info().shape, (Shape{7, 5}));
    EXPECT_EQ(array.info().chunks, (Shape{4, 3}));
    put_text(*store, "c/0/1", "abc");
    put_text(*store, "c/1/2", "ABCDEFGHIJKL");
    EXPECT_EQ(text_of_all(array), "\ta\t\t\t\tb\t\t\t\tc\t\t\t\t\tABC\t\tDEF\t\tGHI\t\tJKL");
    NDArray part("|u1", {3, 2});
    array.read_into({{2, 1}, {3, 2}}, part.view(), {});
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(part.bytes().data()), 6), std::string_view("c\t\tA\tD"));
    // A part of a chunk is changed in place, and a whole chunk of another length is written in its own.
    array.write({{4, 4}, {1, 1}}, view(std::vector<std::uint8_t>{'!'}, {1, 1}));
    EXPECT_EQ(get_text(*store, "c/1/2"), "ABCDE!GHIJKL");
    array.write({{0, 0}, {3, 1}}, view(std::vector<std::uint8_t>{'x', 'y', 'z'}, {3, 1}));
    EXPECT_EQ(get_text(*store, "c/0/0"), "xyz");
    // A chunk of another length than the grid says.
    put_text(*store, "c/0/0", "ab");
    expect_error(ErrorCode::corrupt, "c/0/0", [&] { (void)text_of_all(array); });
}

TEST(Rectilinear, the_last_length_goes_on) {
    const auto store = memory_store();
    Array array = opened(store, document("[[3, 5], 5]"));
    const auto lengths = [&] {
        return Value::parse(get_text(*store, "zarr.json"))
            .at("chunk_grid")
            .at("configuration")
            .at("chunk_shapes")
            .dump();
    };
    array.resize({8, 5});  // what was cut off
    EXPECT_EQ(lengths(), "[[3, 5], 5]");
    array.resize({9, 11});
    EXPECT_EQ(lengths(), "[[3, [5, 2]], 5]");
    array.resize({1, 1});  // the lengths stay, as in zarr-python
    EXPECT_EQ(lengths(), "[[3, [5, 2]], 5]");
    array.resize({14, 5});
    EXPECT_EQ(lengths(), "[[3, [5, 3]], 5]");
    const Value before = Value::parse(get_text(*store, "zarr.json"));
    expect_error(ErrorCode::invalid_argument, "", [&] { array.resize({INT64_MAX, 5}); });
    EXPECT_EQ(Value::parse(get_text(*store, "zarr.json")), before);
}

TEST(Rectilinear, caches_hold_chunks_of_each_length) {
    const auto store = memory_store();
    Array array = opened(store, document("[[3, 4], [2, 3]]"));
    CachedArray cached(array, 1 << 20);
    for (std::int64_t n = 0; n < 35; ++n) {
        const auto letter = static_cast<std::uint8_t>('A' + n);
        cached.write({{n / 5, n % 5}, {1, 1}}, view(std::vector<std::uint8_t>{letter}, {1, 1}));
    }
    cached.flush();
    EXPECT_EQ(get_text(*store, "c/0/1"), "CDEHIJMNO");
    EXPECT_EQ(text_of_all(array), "ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abc");
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
    wrong(document("[[[1, 3], 9223372036854775807], 5]"), "");
    wrong(document("[7, 5]", "separate"), "inline", ErrorCode::unsupported);
    // Lengths that lie beyond the array cost nothing.
    EXPECT_EQ(opened(memory_store(), document("[[7, [4611686018427387904, 1]], [5, [1, 1000000000000000000]]]"))
                  .info()
                  .chunks,
              (Shape{7, 5}));
    Value shards = document("[[4, 2, 4], [6]]");
    shards.set("codecs", Value::parse(R"([{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3],
        "codecs": [{"name": "bytes"}], "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}}])"));
    EXPECT_EQ(opened(memory_store(), shards).info().chunks, (Shape{2, 3}));
    shards.set("chunk_grid", document("[[4, 3], [6]]").at("chunk_grid"));
    expect_error(ErrorCode::corrupt, "length 3 along dimension 0", [&] { (void)opened(memory_store(), shards); });
}

TEST(Rectilinear, other_formats_have_chunks_of_one_shape) {
    for (const char* format : {"zmeta", "v1", "v2"}) {
        expect_error(ErrorCode::unsupported, "differ in length", [&] {
            (void)Array::create(
                memory_store(),
                {.shape = {7}, .dtype = "|u1", .edges = parse_chunk_lengths("[3,4],").edges, .format = format});
        });
    }
    const Array made =
        Array::create(memory_store(), {.shape = {7}, .dtype = "|u1", .edges = parse_chunk_lengths("[3,4],").edges});
    EXPECT_EQ(made.dialect().name, "v3");
    const auto refused = [](const ArrayOptions& options, std::string_view message) {
        expect_error(ErrorCode::invalid_argument, message, [&] { (void)Array::create(memory_store(), options); });
    };
    const auto edges = parse_chunk_lengths("[3,4],").edges;
    refused({.shape = {8}, .dtype = "|u1", .edges = edges, .format = "v3"}, "add up to 7");
    refused({.shape = {7, 1}, .dtype = "|u1", .edges = edges, .format = "v3"}, "dimensions");
    refused({.shape = {7}, .chunks = {2}, .dtype = "|u1", .edges = edges, .format = "v3"}, "one shape");
    refused({.shape = {7}, .dtype = "|u1", .shards = {4}, .edges = edges, .format = "v3"}, "one shape");
    refused({.shape = {7}, .chunks = {2}, .dtype = "|u1", .shard_edges = edges, .format = "v3"}, "no multiple");
}

}  // namespace
}  // namespace tessera
