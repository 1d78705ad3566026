// Small data types: what TensorStore wrote is in tests/golden/zarr3 (small_*); here are the types that it lacks, and
// rounding.
#include <tessera/copy_elements.h>
#include <tessera/pipeline.h>
#include <tessera/small_type.h>

#include <bit>
#include <cmath>
#include <random>
#include <set>

#include "codec_test_util.h"

namespace tessera {
namespace {

constexpr const char* small_floats[] = {"float4_e2m1fn",   "float6_e2m3fn",   "float6_e3m2fn",      "float8_e3m4",
                                        "float8_e4m3",     "float8_e4m3fn",   "float8_e4m3b11fnuz", "float8_e4m3fnuz",
                                        "float8_e5m2",     "float8_e5m2fnuz", "float8_e8m0fnu",     "complex_float16",
                                        "complex_bfloat16"};

CodecPipeline small_pipeline(const std::string& name, const DType& dtype, const Shape& shape,
                             const std::string& after = "") {
    return CodecPipeline({dtype, shape, {}},
                         complete_codecs(dtype, shape.rank(), Order::C,
                                         parse_codecs(R"([{"name": "data_type", "configuration": {"name": ")" + name +
                                                      "\"}}" + after + "]")));
}

NDArray small_decoded(const CodecPipeline& pipeline, ByteSpan bytes) {
    NDArray out(pipeline.chunk().dtype, pipeline.chunk().shape);
    CodecScratch scratch;
    pipeline.decode(bytes, out, scratch);
    return out;
}

Buffer all_codes(int bits) {
    Buffer bytes(std::size_t{1} << bits);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes.data()[i] = static_cast<std::byte>(i);
    return bytes;
}

TEST(SmallTypes, each_code_is_a_number_and_back) {
    for (const std::string name : {"int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn",
                                   "float8_e3m4", "float8_e4m3", "float8_e4m3fn", "float8_e4m3b11fnuz",
                                   "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"}) {
        SCOPED_TRACE(name);
        const auto type = small_type(name);
        ASSERT_TRUE(type);
        const Buffer codes = all_codes(type->bits);
        const CodecPipeline pipeline =
            small_pipeline(name, type->in_memory(), {static_cast<std::int64_t>(codes.size())});
        const NDArray numbers = small_decoded(pipeline, codes);
        Buffer again = pipeline.encoded(numbers);
        // Of several NaN one is written; where the type has payloads, each comes back.
        if (name == "float8_e4m3fn") again.data()[0xff] = std::byte{0xff};
        EXPECT_TRUE(same_bytes(again, codes));
        // The bits above the type's are ignored.
        Buffer high(codes.span());
        for (std::size_t i = 0; i < high.size() && type->bits < 8; ++i) high.data()[i] |= std::byte{0xc0};
        if (type->bits < 7) {
            EXPECT_TRUE(elements_equal(small_decoded(pipeline, high), numbers));
        }
    }
}

float at(const std::string& name, int code) {
    const CodecPipeline pipeline = small_pipeline(name, "<f4", {1});
    const std::byte byte{static_cast<std::uint8_t>(code)};
    return small_decoded(pipeline, {&byte, 1}).values<float>()[0];
}

TEST(SmallTypes, are_what_their_registrations_say) {
    EXPECT_EQ(at("float4_e2m1fn", 0x7), 6);
    EXPECT_EQ(at("float4_e2m1fn", 0x9), -0.5);
    EXPECT_EQ(at("float6_e2m3fn", 0x1f), 7.5);
    EXPECT_EQ(at("float6_e2m3fn", 0x01), 0.125);
    EXPECT_EQ(at("float6_e3m2fn", 0x1f), 28);
    EXPECT_EQ(at("float6_e3m2fn", 0x21), -0.0625);
    EXPECT_EQ(at("float8_e4m3", 0x77), 240);
    EXPECT_TRUE(std::isinf(at("float8_e4m3", 0xf8)));
    EXPECT_TRUE(std::isnan(at("float8_e4m3", 0x7c)));
    EXPECT_TRUE(std::isnan(at("float8_e3m4", 0x78)));
    EXPECT_EQ(at("float8_e3m4", 0x6f), 15.5);
    EXPECT_EQ(at("float8_e4m3fn", 0x7e), 448);
    EXPECT_TRUE(std::isnan(at("float8_e4m3fn", 0xff)));
    EXPECT_EQ(at("float8_e4m3b11fnuz", 0x7f), 30);
    EXPECT_TRUE(std::isnan(at("float8_e4m3b11fnuz", 0x80)));
    EXPECT_EQ(at("float8_e5m2", 0x7b), 57344);
    EXPECT_EQ(at("float8_e8m0fnu", 0), std::ldexp(1.0F, -127));
    EXPECT_EQ(at("float8_e8m0fnu", 0xfe), std::ldexp(1.0F, 127));
}

TEST(SmallTypes, numbers_round_to_the_nearest_ties_to_even) {
    std::mt19937 draw(39);
    for (const std::string name : small_floats) {
        if (name.starts_with("complex")) continue;
        SCOPED_TRACE(name);
        const auto type = small_type(name);
        const Buffer codes = all_codes(type->bits);
        const auto count = static_cast<std::int64_t>(codes.size());
        const NDArray all = small_decoded(small_pipeline(name, "<f4", {count}), codes);
        std::vector<std::pair<double, int>> finite;
        for (int code = 0; code < count; ++code) {
            const float v = all.values<float>()[code];
            if (std::isfinite(v)) finite.emplace_back(v, code);
        }
        std::ranges::sort(finite);
        const double most = finite.back().first;
        const CodecPipeline one = small_pipeline(name, "<f4", {1});
        for (int n = 0; n < 200; ++n) {
            // Numbers of every size, and those half way between two.
            NDArray v("<f4", {1});
            const auto at = std::uniform_int_distribution<std::size_t>(0, finite.size() - 2)(draw);
            const double low = finite[at].first;
            const double high = finite[at + 1].first;
            const double share = n % 2 == 0 ? 0.5 : std::uniform_real_distribution(0.0, 1.0)(draw);
            v.values<float>()[0] = static_cast<float>(low + (high - low) * share);
            const double given = v.values<float>()[0];
            if (given == 0 || std::abs(given) > most) continue;
            const double found = small_decoded(one, one.encoded(v)).values<float>()[0];
            EXPECT_LE(std::abs(found - given), std::min(given - low, high - given) * (1 + 1e-6)) << given;
            const bool tie = given - low == high - given;
            if (tie && low != high) {
                EXPECT_EQ(std::to_integer<int>(one.encoded(v).data()[0]) % 2, 0) << given;
            }
        }
    }
}

TEST(SmallTypes, what_they_do_not_have_is_refused) {
    const auto write = [](const std::string& name, const DType& dtype, auto value) {
        NDArray one(dtype, {1});
        one.values<decltype(value)>()[0] = value;
        return small_pipeline(name, dtype, {1}).encoded(one);
    };
    expect_error(ErrorCode::invalid_argument, "int4 has no 8", [&] { write("int4", "|i1", std::int8_t{8}); });
    expect_error(ErrorCode::invalid_argument, "int2 has no -3", [&] { write("int2", "|i1", std::int8_t{-3}); });
    expect_error(ErrorCode::invalid_argument, "uint4 has no 16", [&] { write("uint4", "|u1", std::uint8_t{16}); });
    expect_error(ErrorCode::invalid_argument, "448", [&] { write("float8_e4m3fn", "<f4", 500.0F); });
    expect_error(ErrorCode::invalid_argument, "6", [&] { write("float4_e2m1fn", "<f4", NAN); });
    expect_error(ErrorCode::invalid_argument, "", [&] { write("float8_e8m0fnu", "<f4", 0.0F); });
    expect_error(ErrorCode::invalid_argument, "", [&] { write("float8_e8m0fnu", "<f4", -2.0F); });
    EXPECT_EQ(write("float8_e5m2", "<f4", 1e9F).data()[0], std::byte{0x7c});  // infinity
    EXPECT_EQ(write("float8_e4m3fnuz", "<f4", -0.0F).data()[0], std::byte{0});
    expect_error(ErrorCode::invalid_argument, "<f4", [] { (void)small_pipeline("float8_e5m2", "<f8", {1}); });
    expect_error(ErrorCode::invalid_argument, "float8_e5m2fnuz", [] { (void)small_pipeline("float7", "<f4", {1}); });
    // Their bits are no numbers to other codecs.
    expect_error(ErrorCode::unsupported, "|V1", [] {
        (void)small_pipeline("int4", "|i1", {1}, R"(, {"name": "scale_offset", "configuration": {"offset": 1}})");
    });
}

TEST(SmallTypes, are_packed) {
    NDArray numbers("|i1", {3});
    const std::int8_t values[] = {1, -1, -8};
    std::memcpy(numbers.bytes().data(), values, 3);
    const CodecPipeline packed =
        small_pipeline("int4", "|i1", {3}, R"(, {"name": "packbits", "configuration": {"last_bit": 3}})");
    const Buffer encoded = packed.encoded(numbers);
    const std::byte expected[] = {std::byte{0xf1}, std::byte{0x08}};
    EXPECT_TRUE(same_bytes(encoded, expected));
    EXPECT_TRUE(elements_equal(small_decoded(packed, encoded), numbers));

    NDArray pair("<c8", {1});
    pair.values<std::complex<float>>()[0] = {1.5F, -3.0F};
    const CodecPipeline complex = small_pipeline("complex_float4_e2m1fn", "<c8", {1},
                                                 R"(, {"name": "packbits", "configuration": {"last_bit": 3}})");
    const std::byte parts[] = {std::byte{0xd3}};
    EXPECT_TRUE(same_bytes(complex.encoded(pair), parts));
    EXPECT_TRUE(elements_equal(small_decoded(complex, complex.encoded(pair)), pair));

    // Parts of two bytes, in either order.
    const std::byte little[] = {std::byte{0x00}, std::byte{0x3e}, std::byte{0x00}, std::byte{0xc2}};
    const std::byte big[] = {std::byte{0x3e}, std::byte{0x00}, std::byte{0xc2}, std::byte{0x00}};
    EXPECT_TRUE(same_bytes(small_pipeline("complex_float16", "<c8", {1}).encoded(pair), little));
    EXPECT_TRUE(same_bytes(small_pipeline("complex_float16", ">c8", {1}).encoded(pair), big));
    const std::byte brain[] = {std::byte{0xc0}, std::byte{0x3f}, std::byte{0x40}, std::byte{0xc0}};
    EXPECT_TRUE(same_bytes(small_pipeline("complex_bfloat16", "<c8", {1}).encoded(pair), brain));
}

}  // namespace
}  // namespace tessera
