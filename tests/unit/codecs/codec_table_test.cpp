#include <set>

#include "codec_test_util.h"

namespace tessera {
namespace {

TEST(CodecTable, each_row_has_one_name_and_one_maker) {
    std::set<std::string_view> names;
    for (const CodecRow& row : codec_table()) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_FALSE(row.about.empty()) << row.name;
        EXPECT_EQ(int{bool(row.array_to_array)} + int{bool(row.array_to_bytes)} + int{bool(row.bytes_to_bytes)}, 1)
            << row.name;
    }
    EXPECT_TRUE(names.contains("bytes"));
    EXPECT_TRUE(names.contains("blosc"));
}

// tools/examples/extensions.cpp adds a codec in time.
TEST(CodecTable, takes_no_more_codecs_once_it_is_read) {
    CodecRow row = *find_codec("zstd");
    expect_error(ErrorCode::invalid_argument, "\"zstd\": there is one of that name", [&] { add_codec(row); });
    row.name = "late";
    expect_error(ErrorCode::invalid_argument, "add it before anything is opened", [&] { add_codec(row); });
    expect_error(ErrorCode::invalid_argument, "one maker", [] { add_codec({.name = "none", .about = "nothing"}); });
    EXPECT_EQ(find_codec("late"), nullptr);
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
    EXPECT_EQ(json("blosc:lz4:5:shuffle:16384"),
              R"({"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 16384})");
    // And back.
    for (const char* text : {"blosc:lz4:5:shuffle",
                             "blosc:lz4:5:shuffle:16384",
                             "blosc:zstd:9:noshuffle",
                             "gzip:9",
                             "zstd:-5",
                             "zstd:3:true",
                             "zlib:1",
                             "lz4:1",
                             "bz2:9",
                             "lzma",
                             "lzma:6",
                             "numcodecs.blosc:zstd:5:-1",
                             "numcodecs.zstd:3",
                             "shuffle",
                             "shuffle:8",
                             "crc32c",
                             "numcodecs.crc32c",
                             "crc32",
                             "adler32",
                             "fletcher32",
                             "jenkins_lookup3",
                             "delta",
                             "delta:<i2",
                             "astype:>f4",
                             "bitround:10",
                             "packbits",
                             "quantize:3",
                             "quantize:3:<f4",
                             "fixedscaleoffset:0.5:100:<u2",
                             "fixedscaleoffset:1:2",
                             "scale_offset:5:0.25",
                             "bytes",
                             "bytes:big",
                             "vlen-utf8",
                             "vlen-bytes",
                             "vlen-array:<i4",
                             "json2"}) {
        EXPECT_EQ(codec_text(parse_codec(text)), text);
    }
    EXPECT_EQ(parse_codec("zlib"), (CodecConfig{"numcodecs.zlib", Value::parse(R"({"level": 1})")}));
    EXPECT_EQ(parse_codec("numcodecs.zlib:3"), (CodecConfig{"numcodecs.zlib", Value::parse(R"({"level": 3})")}));
    EXPECT_EQ(parse_codec("zstd"), (CodecConfig{"zstd", Value::parse(R"({"level": 3, "checksum": false})")}));
    // What the notation cannot say is JSON; what follows from the rest is not said.
    const auto text_of = [](std::string_view v3) { return codec_text(codec_from_json(Value::parse(v3))); };
    EXPECT_EQ(text_of(R"({"name": "numcodecs.lzma", "configuration": {"format": 3, "filters": []}})"),
              R"({"name": "numcodecs.lzma", "configuration": {"format": 3, "filters": []}})");
    EXPECT_EQ(text_of(R"({"name": "transpose", "configuration": {"order": [1, 0]}})"),
              R"({"name": "transpose", "configuration": {"order": [1, 0]}})");
    EXPECT_EQ(text_of(R"({"name": "magic"})"), R"({"name": "magic"})");
    EXPECT_EQ(text_of(R"({"name": "numcodecs.delta", "configuration": {"dtype": "<i4", "astype": "<i4"}})"), "delta");
    EXPECT_EQ(text_of(R"({"name": "numcodecs.lzma", "configuration": {"preset": 1, "filters": null}})"), "lzma:1");
    EXPECT_EQ(codec_text({"blosc", Value::parse(R"({"cname": "zlib", "typesize": 4})")}), "blosc:zlib:5:shuffle");
}

TEST(CodecTable, notation_that_is_wrong_says_what_there_is) {
    const auto refused = [](std::string_view text, std::string_view message) {
        expect_error(ErrorCode::invalid_argument, message, [&] { (void)parse_codec(text); });
    };
    refused("", "choose one of bytes, ");
    refused("magic", "choose one of bytes, ");
    refused("magic", "lzma");
    refused("transpose", "give it as JSON");
    refused("categorize", "\"numcodecs.categorize\"");
    refused("bitround", "keepbits is missing");
    refused("fixedscaleoffset:1", "scale is missing");
    refused("fixedscaleoffset:1:x", "expected a number");
    refused("zstd:1:maybe", "expected true or false");
    refused("zstd:23", "level is 23, expected");
    refused("gzip:10", "level is 10, expected -1 to 9");
    refused("bz2:0", "level is 0, expected 1 to 9");
    refused("lzma:10", "preset is 10, expected 0 to 9");
    refused("blosc:LZ4", "choose one of blosclz, lz4");
    refused("blosc:", "choose one of blosclz, lz4");
    refused("blosc:lz4:x", "clevel is \"x\", expected a whole number");
    refused("blosc:lz4:", "whole number");
    refused("blosc:lz4:10", "expected 0 to 9");
    refused("blosc:lz4:5:2", "choose one of noshuffle, shuffle, bitshuffle");
    refused("blosc:lz4:5:shuffle:-1", "blocksize is -1, expected 0 to");
    refused("blosc:lz4:5:shuffle:0:1", "\":1\" is left over");
    refused("blosc:lz4:5:shuffle:0:1", "codec \"blosc:lz4:5:shuffle:0:1\"");
}

std::string completed(const DType& dtype, int rank, Order order, std::string_view chain) {
    Value list = Value::array();
    for (const CodecConfig& c : complete_codecs(dtype, rank, order, parse_codecs(chain)))
        list.push_back(codec_to_json(c));
    return list.dump();
}

TEST(CodecTable, chains_are_completed) {
    EXPECT_EQ(completed("<i4", 2, Order::C, "none"), R"([{"name": "bytes"}])");
    EXPECT_EQ(completed("<i4", 2, Order::F, "crc32c"),
              R"([{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes"}, {"name": "crc32c"}])");
    EXPECT_EQ(completed("<i4", 1, Order::F, "none"), R"([{"name": "bytes"}])");
    EXPECT_EQ(completed("string", 1, Order::C, "crc32c"), R"([{"name": "vlen-utf8"}, {"name": "crc32c"}])");
    EXPECT_EQ(completed("bytes", 1, Order::C, "none"), R"([{"name": "vlen-bytes"}])");
    // Filters in front, whatever the order in which they were given, with what the dtype there says.
    EXPECT_EQ(completed(">i8", 1, Order::C, "zlib,shuffle,delta:<i2"),
              R"([{"name": "numcodecs.delta", "configuration": {"astype": "<i2", "dtype": ">i8"}}, {"name": "bytes"}, )"
              R"({"name": "numcodecs.zlib", "configuration": {"level": 1}}, )"
              R"({"name": "numcodecs.shuffle", "configuration": {"elementsize": 2}}])");
    EXPECT_EQ(completed("<f8", 1, Order::C, "astype:<f4,quantize:2"),
              R"([{"name": "numcodecs.astype", "configuration": {"encode_dtype": "<f4", "decode_dtype": "<f8"}}, )"
              R"({"name": "numcodecs.quantize", "configuration": {"digits": 2, "dtype": "<f4", "astype": "<f4"}}, )"
              R"({"name": "bytes"}])");
    EXPECT_EQ(
        completed(">M8[s]", 1, Order::C, "delta"),
        R"([{"name": "numcodecs.delta", "configuration": {"dtype": ">i8", "astype": ">i8"}}, {"name": "bytes"}])");
    // Texts that a filter made numbers are laid out as such.
    const char* categorize = R"([{"name": "numcodecs.categorize", "configuration": {"labels": ["a"]}}])";
    EXPECT_EQ(
        completed("string", 1, Order::C, categorize),
        R"([{"name": "numcodecs.categorize", "configuration": {"labels": ["a"], "dtype": "|O", "astype": "|u1"}}, )"
        R"({"name": "bytes"}])");
    // What was given stays as it is.
    const char* own = R"([{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "magic"}])";
    EXPECT_EQ(completed("<i4", 1, Order::C, own), own);
    expect_error(ErrorCode::invalid_argument, "numcodecs.packbits: it is for booleans",
                 [] { (void)completed("<i4", 1, Order::C, "packbits"); });
}

}  // namespace
}  // namespace tessera
