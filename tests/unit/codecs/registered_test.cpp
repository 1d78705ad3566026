// The codecs registered for Zarr v3 by July 2026. What zarr-python, zarrs and the registry wrote with them is in
// tests/golden/zarr3 (ext_*); here is what those cannot show.
#include <tessera/copy_elements.h>
#include <tessera/pipeline.h>

#include <array>
#include <cmath>
#include <random>

#include "codec_test_util.h"

namespace tessera {
namespace {

std::vector<CodecConfig> chain_of(std::string_view json) {
    const Value list = Value::parse(json);
    std::vector<CodecConfig> chain;
    for (const Value& codec : list.as_array()) chain.push_back(codec_from_json(codec));
    return chain;
}

CodecPipeline pipeline_of(const DType& dtype, const Shape& shape, std::string_view json) {
    return CodecPipeline({dtype, shape, {}}, complete_codecs(dtype, shape.rank(), Order::C, chain_of(json)));
}

NDArray decoded(const CodecPipeline& pipeline, ByteSpan bytes) {
    NDArray out(pipeline.chunk().dtype, pipeline.chunk().shape);
    CodecScratch scratch;
    pipeline.decode(bytes, out, scratch);
    return out;
}

NDArray random_bytes(const DType& dtype, const Shape& shape, unsigned seed) {
    NDArray a(dtype, shape);
    std::mt19937 draw(seed);
    for (std::byte& b : a.bytes()) b = static_cast<std::byte>(draw() & (dtype.kind() == Kind::boolean ? 1U : 255U));
    return a;
}

/// Encoded, decoded and the same; every shorter or longer chunk is an error, or so many bytes are never read.
void check_round_trip(const DType& dtype, const Shape& shape, std::string_view json) {
    SCOPED_TRACE(std::string(json) + dtype.str());
    const CodecPipeline pipeline = pipeline_of(dtype, shape, json);
    for (unsigned seed = 0; seed < 8; ++seed) {
        const NDArray a = random_bytes(dtype, shape, seed);
        const Buffer encoded = pipeline.encoded(a);
        EXPECT_TRUE(elements_equal(decoded(pipeline, encoded), a));
        if (pipeline.encoded_bound()) {
            EXPECT_LE(encoded.size(), *pipeline.encoded_bound());
        }
        for (const std::size_t n : {std::size_t{0}, encoded.size() / 2, encoded.size() - 1}) {
            expect_error(ErrorCode::corrupt, "", [&] { (void)decoded(pipeline, encoded.span().first(n)); });
        }
        Buffer longer(encoded.span());
        longer.append(encoded.span());
        expect_error(ErrorCode::corrupt, "", [&] { (void)decoded(pipeline, longer); });
    }
}

TEST(Registered, round_trips_of_every_type) {
    for (const char* dtype : {"|b1", "|i1", "<i2", ">i4", "<i8", "|u1", ">u2", "<u4", "<u8", "<f2", ">f4", "<f8", "<c8",
                              ">c16", "bfloat16", "<M8[s]", ">m8[ns]"}) {
        for (const Shape& shape : {Shape{3, 5}, Shape{1, 1}, Shape{2, 16}}) {
            for (const char* padding : {"none", "first_byte", "last_byte"}) {
                check_round_trip(dtype, shape,
                                 std::string(R"([{"name": "packbits", "configuration": {"padding_encoding": ")") +
                                     padding + "\"}}]");
            }
            check_round_trip(dtype, shape, R"([{"name": "reshape", "configuration": {"shape": [[0, 1], 1]}}])");
            check_round_trip(dtype, shape, R"([{"name": "n5_default", "configuration": {"codecs": [
                {"name": "transpose", "configuration": {"order": [1, 0]}},
                {"name": "bytes", "configuration": {"endian": "big"}}]}}])");
            check_round_trip(dtype, shape, R"([{"name": "conditional", "configuration": {"codecs": []}}])");
        }
    }
    check_round_trip("|b1", {3, 5}, R"(["numcodecs.delta"])");
    check_round_trip("<i4", {3, 5}, R"(["numcodecs.base64"])");
}

TEST(Registered, bits_and_a_range_of_them) {
    const CodecPipeline bits = pipeline_of("|b1", {10}, R"([{"name": "packbits"}])");
    const std::array<bool, 10> flags{true, false, false, false, false, false, false, true, false, true};
    EXPECT_TRUE(same_bytes(bits.encoded(view(flags)), std::as_bytes(std::span("\x81\x02", 2)))) << "the lowest first";
    const CodecPipeline five =
        pipeline_of("<i2", {3}, R"([{"name": "packbits", "configuration": {"first_bit": 1, "last_bit": 5}}])");
    const std::array<std::int16_t, 3> in{-32, 30, 63};
    const std::array<std::int16_t, 3> out{-32, 30, -2};
    EXPECT_TRUE(elements_equal(decoded(five, five.encoded(view(in))), view(out))) << "integers keep their sign";
    const auto refused = [](const char* dtype, const char* configuration, std::string_view message) {
        expect_error(ErrorCode::invalid_argument, message, [&] {
            (void)pipeline_of(dtype, {3},
                              std::string(R"([{"name": "packbits", "configuration": )") + configuration + "}]");
        });
    };
    refused("<i2", R"({"first_bit": 16})", "first_bit is 16, expected 0 to 15");
    refused("<i2", R"({"first_bit": 5, "last_bit": 4})", "last_bit is 4, expected 5 to 15");
    refused("|b1", R"({"last_bit": 1})", "last_bit is 1, expected 0 to 0");
    refused("<c8", R"({"last_bit": 32})", "expected 0 to 31");
    refused("<U3", "{}", "for booleans and numbers");
    const CodecPipeline first =
        pipeline_of("|b1", {10}, R"([{"name": "packbits", "configuration": {"padding_encoding": "first_byte"}}])");
    Buffer wrong = first.encoded(view(flags));
    wrong.data()[0] = std::byte{7};
    expect_error(ErrorCode::corrupt, "says that 7 bits are padding", [&] { (void)decoded(first, wrong); });
}

TEST(Registered, shapes_that_reshape_makes) {
    const auto made = [](const char* shape) {
        const std::string configuration = std::string(R"({"shape": )") + shape + "}";
        const ChunkSpec spec{"<i4", {2, 3, 4}, {}};
        return find_codec("reshape")->array_to_array(Value::parse(configuration), spec)->encoded().shape;
    };
    EXPECT_EQ(made("[24]"), (Shape{24}));
    EXPECT_EQ(made("[-1, 2]"), (Shape{12, 2}));
    EXPECT_EQ(made("[[0, 1], [2]]"), (Shape{6, 4}));
    EXPECT_EQ(made("[[0], 12]"), (Shape{2, 12}));
    EXPECT_EQ(made("[1, [0, 1], 2, -1]"), (Shape{1, 6, 2, 2}));
    const auto refused = [&](const char* shape, std::string_view message) {
        expect_error(ErrorCode::invalid_argument, message, [&] { (void)made(shape); });
    };
    refused("[5, -1]", "has 24");
    refused("[-1, -1]", "expected at least 1, or -1 once");
    refused("[0, -1]", "expected at least 1");
    refused("[[1], [0], [2]]", "shape names dimension 0");
    refused("[[0, 0], 12]", "shape names dimension 0");
    refused("[[3]]", "shape names dimension 3");
    refused("[12, [0]]", "is not what");
    refused("[9223372036854775807, 3]", "");
}

TEST(Registered, numbers_that_cannot_be_cast_are_errors) {
    const auto cast = [](const DType& dtype, double x, const char* configuration) {
        const std::array<double, 1> in{x};
        const auto codec = find_codec("cast_value")->array_to_array(Value::parse(configuration), {dtype, {1}, {}});
        return codec->encode(view(in));
    };
    const auto refused = [&](double x, const char* configuration) {
        expect_error(ErrorCode::invalid_argument, "cannot be cast to", [&] { (void)cast("<f8", x, configuration); });
    };
    refused(128, R"({"data_type": "int8"})");
    refused(std::nan(""), R"({"data_type": "int8", "out_of_range": "clamp"})");
    refused(std::numeric_limits<double>::infinity(), R"({"data_type": "int8", "out_of_range": "wrap"})");
    refused(1e39, R"({"data_type": "float32"})");
    refused(65520, R"({"data_type": "float16"})");
    EXPECT_NO_THROW((void)cast("<f8", 65519, R"({"data_type": "float16"})"));
    const auto wrong = [&](ErrorCode code, std::string_view message, const char* configuration) {
        expect_error(code, message, [&] { (void)cast("<f8", 1, configuration); });
    };
    wrong(ErrorCode::unsupported, "data_type is", R"({"data_type": "bool"})");
    wrong(ErrorCode::invalid_argument, "is for integers", R"({"data_type": "float32", "out_of_range": "wrap"})");
    wrong(ErrorCode::invalid_argument, "choose one of", R"({"data_type": "int8", "rounding": "up"})");
    wrong(ErrorCode::invalid_argument, "", R"({"data_type": "int8", "scalar_map": {"encode": [["NaN", 300]]}})");
    // A fill that has no encoding.
    const ElementBytes nan = element_from_value("<f8", "NaN", Assign::exact);
    expect_error(ErrorCode::invalid_argument, "the fill value", [&] {
        (void)find_codec("cast_value")->array_to_array(Value::parse(R"({"data_type": "int8"})"), {"<f8", {1}, nan});
    });
}

TEST(Registered, blocks_of_n5_may_be_cut) {
    constexpr const char* chain = R"([{"name": "n5_default", "configuration": {"codecs": [
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        {"name": "bytes", "configuration": {"endian": "big"}}]}}])";
    const CodecPipeline whole = pipeline_of("<i2", {2, 3}, chain);
    // As N5's text has it: mode 0, 2 dimensions, 2 and 1 of them, as the array's, then 7 and 8.
    const auto block = [](std::string_view bytes) { return Buffer(std::as_bytes(std::span(bytes))); };
    using namespace std::string_view_literals;
    const NDArray cut = decoded(whole, block("\0\0\0\2\0\0\0\2\0\0\0\1\0\7\0\10"sv));
    const std::array<std::int16_t, 6> expected{7, 0, 0, 8, 0, 0};
    EXPECT_TRUE(elements_equal(cut, view(expected.data(), {2, 3})));
    const auto refused = [&](std::string_view bytes, std::string_view message, ErrorCode code = ErrorCode::corrupt) {
        expect_error(code, message, [&] { (void)decoded(whole, block(bytes)); });
    };
    refused("\0\1\0\2\0\0\0\2\0\0\0\1\0\7\0\10"sv, "has mode 1", ErrorCode::unsupported);
    refused("\0\0\0\3\0\0\0\2\0\0\0\1\0\7\0\10"sv, "has 3 dimensions");
    refused("\0\0\0\2\377\377\377\377\377\377\377\377\0\7\0\10"sv, "expected at most the chunk's");
    refused("\0\0\0\2\0\0\0\0\0\0\0\1"sv, "expected at most the chunk's");
    refused("\0\0\0\2\0\0\0"sv, "too few for a block's header");
    expect_error(ErrorCode::invalid_argument, "a transpose of order [1, 0]", [] {
        (void)pipeline_of("<i2", {2, 3}, R"([{"name": "n5_default", "configuration": {"codecs": ["bytes"]}}])");
    });
}

TEST(Registered, elements_of_zarrs_may_be_missing) {
    constexpr const char* chain = R"([{"name": "optional", "configuration": {"mask_codecs": ["packbits"],
        "data_codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]}}])";
    const std::int16_t fill = -9;
    const auto* bytes_of_fill = reinterpret_cast<const std::byte*>(&fill);
    const CodecPipeline pipeline({"<i2", {2, 3}, ElementBytes(bytes_of_fill, bytes_of_fill + 2)}, chain_of(chain));
    const auto chunk = [](std::string_view bytes) { return Buffer(std::as_bytes(std::span(bytes))); };
    using namespace std::string_view_literals;
    const NDArray some = decoded(pipeline, chunk("\1\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\x12\0\7\1\0"sv));
    const std::array<std::int16_t, 6> expected{-9, 7, -9, -9, 256, -9};
    EXPECT_TRUE(elements_equal(some, view(expected.data(), {2, 3})));
    const NDArray none = decoded(pipeline, chunk("\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"sv));
    EXPECT_TRUE(elements_equal(none, view(std::array<std::int16_t, 6>{-9, -9, -9, -9, -9, -9}.data(), {2, 3})));
    const auto refused = [&](std::string_view bytes, std::string_view message) {
        expect_error(ErrorCode::corrupt, message, [&] { (void)decoded(pipeline, chunk(bytes)); });
    };
    refused("\1\0\0\0\0\0\0\0\4\0\0\0\0\0\0"sv, "15 bytes are too few");
    refused("\377\377\377\377\377\377\377\377\6\0\0\0\0\0\0\0\x12\0\7\1\0"sv, "a mask of 18446744073709551615 bytes");
    refused("\1\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\x13\0\7\1\0"sv, "data_codecs");
    refused("\1\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\0\0\7\1\0"sv, "no element is there, but 4 bytes of data are");
    expect_error(ErrorCode::unsupported, "Tessera has no encoder for it", [&] { pipeline.require_encoder(); });
    expect_error(ErrorCode::unsupported, "Tessera has no encoder for it", [&] { (void)pipeline.encoded(some); });
}

TEST(Registered, conditions_say_which_codecs_a_chunk_has) {
    constexpr const char* chain = R"([{"name": "conditional", "configuration": {"header_bits": 16, "codecs": [
        "numcodecs.shuffle", {"name": "zstd", "configuration": {"level": 1}}]}}])";
    const CodecPipeline pipeline = pipeline_of("<i4", {1000}, chain);
    NDArray zeros("<i4", {1000});
    std::ranges::fill(zeros.bytes(), std::byte{0});
    const Buffer small = pipeline.encoded(zeros);
    EXPECT_LT(small.size(), 100U);
    EXPECT_EQ(small.data()[0], std::byte{2}) << "the shuffle makes nothing smaller";
    EXPECT_TRUE(elements_equal(decoded(pipeline, small), zeros));
    const NDArray noise = random_bytes("<i4", {1000}, 1);
    const Buffer stored = pipeline.encoded(noise);
    EXPECT_EQ(stored.size(), 4002U);
    EXPECT_TRUE(elements_equal(decoded(pipeline, stored), noise));
    Buffer bad(stored.span());
    bad.data()[1] = std::byte{1};
    expect_error(ErrorCode::corrupt, "the mask has bit 8, but there are 2 codecs",
                 [&] { (void)decoded(pipeline, bad); });
    const auto refused = [](ErrorCode code, std::string_view message, const std::string& configuration) {
        expect_error(code, message,
                     [&] { (void)find_codec("conditional")->bytes_to_bytes(Value::parse(configuration), 1); });
    };
    refused(ErrorCode::unsupported, "does not make bytes of bytes", R"({"codecs": ["bytes"]})");
    refused(ErrorCode::invalid_argument, "a multiple of 8", R"({"codecs": [], "header_bits": 9})");
    refused(ErrorCode::invalid_argument, "header_bits is 0", R"({"codecs": ["gzip"], "header_bits": 0})");
    std::string nested = R"({"codecs": ["gzip"]})";
    for (int depth = 0; depth < 5; ++depth) {
        nested = R"({"codecs": [{"name": "conditional", "configuration": )" + nested + "}]}";
    }
    refused(ErrorCode::unsupported, "nested more than", nested);
    // Each chunk of a bomb is refused at the size that it should have.
    const CodecPipeline bomb = pipeline_of("<i4", {10}, chain);
    expect_error(ErrorCode::corrupt, "", [&] { (void)decoded(bomb, small); });
}

// Elements of Python's object arrays that are no text stay as they are; json is json2 without the shape at its end.
TEST(Registered, objects_in_json_and_msgpack2) {
    const auto codec = [](std::string_view name) {
        return find_codec(name)->array_to_bytes(Value::object(), {DType::variable_text(), {2, 2}, {}});
    };
    const auto again = [&](std::string_view name, ByteSpan bytes) {
        NDArray out(DType::variable_text(), {2, 2});
        codec(name)->decode(bytes, out);
        Buffer encoded;
        codec(name)->encode(out, encoded);
        return encoded;
    };
    const auto kept = [&](std::string_view name, std::string_view bytes) {
        const ByteSpan in = std::as_bytes(std::span(bytes));
        EXPECT_TRUE(same_bytes(again(name, in), in)) << name;
    };
    using namespace std::string_view_literals;
    kept("numcodecs.json", R"([["a","b"],["",null],"|O"])");
    kept("numcodecs.json2", R"([["a","b"],[{"k": [1.5]},-3],"|O",[2,2]])");
    kept("numcodecs.msgpack2",
         "\x94\x92\xa1"
         "a\xa1"
         "b\x92\xa0\xa1"
         "d\xa2|O\x92\2\2"sv);
    kept("numcodecs.msgpack2",
         "\x94\x92\xc0\xc3\x92\xcb\x3f\xf8\0\0\0\0\0\0\x82\xa1k\x91\xe0\xa1l\xd0\x80\xa2|O\x92\2\2"sv);
    kept("numcodecs.msgpack2", "\x94\x92\x7f\xcc\x80\x92\xcd\1\0\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xa2|O\x92\2\2"sv);
    const auto refused = [&](std::string_view name, std::string_view bytes, std::string_view message,
                             ErrorCode code = ErrorCode::corrupt) {
        expect_error(code, message, [&] { (void)again(name, std::as_bytes(std::span(bytes))); });
    };
    refused("numcodecs.json", R"([["a","b"],"|O"])", "has 1 items, expected 2");
    refused("numcodecs.json", R"({})", "no JSON list that ends with a dtype");
    refused("numcodecs.msgpack2", "\xdd\xff\xff\xff\xff"sv, "a list of 4294967295 values");
    refused("numcodecs.msgpack2", "\xdf\xff\xff\xff\xff"sv, "a map of 4294967295 values");
    refused("numcodecs.msgpack2", "\xdb\xff\xff\xff\xff"sv, "ends beyond the end");
    refused("numcodecs.msgpack2", "\xc4\1a"sv, "holds bytes", ErrorCode::unsupported);
    refused("numcodecs.msgpack2",
            "\x94\x92\xa1\xff\xa1"
            "b\x92\xa0\xa1"
            "d\xa2|O\x92\2\2"sv,
            "is not UTF-8");
    refused("numcodecs.msgpack2",
            "\x94\x92\xa1"
            "a\xa1"
            "b\x92\xa0\xa1"
            "d\xa2|O\x92\2\3"sv,
            "the shape at its end");
    refused("numcodecs.msgpack2", std::string(10000, '\x91'), "nested more than");
}

TEST(Registered, base64_as_published) {
    using namespace std::string_view_literals;
    const auto codec = find_codec("numcodecs.base64")->bytes_to_bytes(Value::object(), 1);
    for (const auto& [plain, text] : {std::pair(""sv, ""sv),
                                      {"f"sv, "Zg=="sv},
                                      {"fo"sv, "Zm8="sv},
                                      {"foo"sv, "Zm9v"sv},
                                      {"foobar"sv, "Zm9vYmFy"sv},
                                      {"\xff\xfe\x3f"sv, "//4/"sv}}) {
        Buffer out;
        codec->encode(std::as_bytes(std::span(plain)), out);
        EXPECT_TRUE(same_bytes(out, std::as_bytes(std::span(text)))) << text;
        Buffer back(plain.size());
        codec->decode(out, back.span());
        EXPECT_TRUE(same_bytes(back, std::as_bytes(std::span(plain)))) << text;
    }
    for (const std::string_view bad : {"Zg="sv, "Z*=="sv, "===="sv, "Zg==Zg=="sv}) {
        Buffer out(3);
        expect_error(ErrorCode::corrupt, "", [&] { codec->decode(std::as_bytes(std::span(bad)), out.span()); });
    }
}

}  // namespace
}  // namespace tessera
