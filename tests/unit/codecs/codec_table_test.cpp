#include <set>

#include "codec_test_util.h"

namespace tessera {
namespace {

TEST(CodecTable, each_row_has_one_name_and_one_maker) {
    std::set<std::string_view> names;
    for (const CodecRow& row : codec_table()) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_FALSE(row.about.empty()) << row.name;
        EXPECT_EQ((row.array_to_array != nullptr) + (row.array_to_bytes != nullptr) + (row.bytes_to_bytes != nullptr),
                  1)
            << row.name;
    }
    EXPECT_TRUE(names.contains("bytes"));
    EXPECT_TRUE(names.contains("blosc"));
}

TEST(CodecTable, notation) {
    const auto json = [](std::string_view text) {
        const CodecConfig codec = parse_codec(text);
        EXPECT_EQ(codec.name, "blosc");
        return codec.configuration.dump();
    };
    EXPECT_EQ(json("blosc"), R"({"cname": "lz4", "clevel": 5, "shuffle": "shuffle"})");
    EXPECT_EQ(json("blosc:zstd"), R"({"cname": "zstd", "clevel": 5, "shuffle": "shuffle"})");
    EXPECT_EQ(json("blosc:zlib:9"), R"({"cname": "zlib", "clevel": 9, "shuffle": "shuffle"})");
    EXPECT_EQ(json("blosc:snappy:0:bitshuffle"), R"({"cname": "snappy", "clevel": 0, "shuffle": "bitshuffle"})");
    for (const char* text : {"blosc:lz4:5:shuffle", "blosc:zstd:9:noshuffle"}) {
        EXPECT_EQ(codec_text(parse_codec(text)), text);
    }
    EXPECT_EQ(codec_text({"bytes"}), "bytes");
    EXPECT_EQ(codec_text({"blosc", Value::parse(R"({"cname": "zlib", "typesize": 4})")}), "blosc:zlib:5:shuffle");
}

TEST(CodecTable, notation_that_is_wrong_says_what_there_is) {
    const auto refused = [](std::string_view text, std::string_view message) {
        expect_error(ErrorCode::invalid_argument, message, [&] { (void)parse_codec(text); });
    };
    refused("", "choose one of blosc");
    refused("lzma", "choose one of blosc");
    refused("bytes", "choose one of blosc");
    refused("blosc:LZ4", "choose one of blosclz, lz4");
    refused("blosc:", "choose one of blosclz, lz4");
    refused("blosc:lz4:x", "clevel is \"x\", expected a whole number");
    refused("blosc:lz4:", "whole number");
    refused("blosc:lz4:10", "expected 0 to 9");
    refused("blosc:lz4:5:2", "choose one of noshuffle, shuffle, bitshuffle");
    refused("blosc:lz4:5:shuffle:1", "\":1\" is left over");
    refused("blosc:lz4:5:shuffle:1", "codec \"blosc:lz4:5:shuffle:1\"");
}

}  // namespace
}  // namespace tessera
