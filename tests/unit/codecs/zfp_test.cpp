// zfp: what zarrs and numcodecs wrote is in tests/golden; here are bounds, types and hostile chunks.
#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/pipeline.h>

#include <cmath>
#include <random>

#include "codec_test_util.h"

namespace tessera {
namespace {

CodecPipeline zfp_pipeline(const DType& dtype, const Shape& shape, const std::string& configuration,
                           const std::string& name = "zfp") {
    return CodecPipeline(
        {dtype, shape, {}},
        complete_codecs(dtype, shape.rank(), Order::C,
                        parse_codecs(R"([{"name": ")" + name + R"(", "configuration": )" + configuration + "}]")));
}

NDArray zfp_decoded(const CodecPipeline& pipeline, ByteSpan bytes) {
    NDArray out(pipeline.chunk().dtype, pipeline.chunk().shape);
    CodecScratch scratch;
    pipeline.decode(bytes, out, scratch);
    return out;
}

/// Whether this build has libzfp.
bool has_zfp() {
    try {
        (void)zfp_pipeline("<f4", {4}, R"({"mode": "reversible"})");
        return true;
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::unsupported);
        return false;
    }
}

class Zfp : public testing::Test {
protected:
    void SetUp() override {
        if (!has_zfp()) GTEST_SKIP() << "built without libzfp";
    }
};

NDArray waves(const DType& dtype, const Shape& shape) {
    NDArray numbers("<f8", shape);
    for (std::size_t i = 0; i < numbers.values<double>().size(); ++i) {
        numbers.values<double>()[i] = 50 + 40 * std::sin(static_cast<double>(i) / 7);
    }
    return cast_elements(numbers, dtype, Cast::unsafe);
}

TEST_F(Zfp, reversible_keeps_every_type_and_shape) {
    for (const char* dtype : {"<i4", ">i4", "<i8", "<u4", "<u8", "|i1", "|u1", "<i2", ">u2", "<f4", ">f8", "<f2"}) {
        for (const Shape& shape : {Shape{}, Shape{1}, Shape{37}, Shape{5, 9}, Shape{3, 4, 5}, Shape{2, 3, 4, 5}}) {
            SCOPED_TRACE(dtype + shape.to_string());
            const CodecPipeline pipeline = zfp_pipeline(dtype, shape, R"({"mode": "reversible"})");
            const NDArray a = waves(dtype, shape);
            const Buffer encoded = pipeline.encoded(a);
            EXPECT_TRUE(elements_equal(zfp_decoded(pipeline, encoded), a));
            expect_error(ErrorCode::corrupt, "zfp", [&] { (void)zfp_decoded(pipeline, encoded.span().first(0)); });
        }
    }
}

TEST_F(Zfp, bounds_hold) {
    const Shape shape{20, 30};
    const NDArray a = waves("<f8", shape);
    std::size_t last = SIZE_MAX;
    for (const double tolerance : {1e-9, 1e-3, 0.5}) {
        const CodecPipeline pipeline =
            zfp_pipeline("<f8", shape, R"({"mode": "fixed_accuracy", "tolerance": )" + Value(tolerance).dump() + "}");
        const Buffer encoded = pipeline.encoded(a);
        EXPECT_LT(encoded.size(), last);
        last = encoded.size();
        const NDArray b = zfp_decoded(pipeline, encoded);
        for (std::int64_t i = 0; i < a.count(); ++i) {
            ASSERT_LE(std::abs(a.values<double>()[i] - b.values<double>()[i]), tolerance);
        }
    }
    // 8 bits a value, in whole blocks of 16 and whole words of 8 bytes.
    EXPECT_EQ(zfp_pipeline("<f8", shape, R"({"mode": "fixed_rate", "rate": 8})").encoded(a).size(), 5U * 8 * 16);
}

TEST_F(Zfp, is_refused_by_name) {
    const auto refused = [](const DType& dtype, const Shape& shape, const std::string& configuration,
                            std::string_view message, ErrorCode code = ErrorCode::invalid_argument,
                            const std::string& name = "zfp") {
        SCOPED_TRACE(configuration);
        expect_error(code, message, [&] { (void)zfp_pipeline(dtype, shape, configuration, name); });
    };
    refused("<c8", {4}, R"({"mode": "reversible"})", "<c8");
    refused("<f4", {1, 1, 1, 1, 1}, R"({"mode": "reversible"})", "at most 4", ErrorCode::unsupported);
    refused("<f4", {4}, R"({"mode": "best"})", "mode");
    refused("<f4", {4}, R"({"mode": "fixed_rate", "rate": 1e9})", "rate");
    refused("<f4", {4}, R"({"mode": "fixed_accuracy", "tolerance": -1})", "tolerance");
    refused("<f4", {4}, R"({"mode": "fixed_precision", "precision": 65})", "precision");
    refused("<f4", {4}, R"({"mode": "expert", "minbits": 20000, "maxbits": 20000, "maxprec": 64, "minexp": 0})",
            "minbits");
    refused("<f4", {4}, R"({"mode": "reversible", "rate": 3})", "rate");
    refused("<i2", {4}, R"({"mode": 4})", "<i2", ErrorCode::invalid_argument, "numcodecs.zfpy");
    // What zarrs would clamp.
    NDArray big("<u4", {1});
    big.values<std::uint32_t>()[0] = 1U << 31;
    expect_error(ErrorCode::invalid_argument, "2147483648",
                 [&] { (void)zfp_pipeline("<u4", {1}, R"({"mode": "reversible"})").encoded(big); });
}

TEST_F(Zfp, hostile_chunks_are_errors_or_numbers) {
    std::mt19937 draw(7);
    const std::string settings[] = {R"({"mode": "reversible"})", R"({"mode": "fixed_accuracy", "tolerance": 0.1})",
                                    R"({"mode": "fixed_rate", "rate": 5})",
                                    R"({"mode": "fixed_precision", "precision": 11})"};
    for (const char* dtype : {"<i4", "<i8", "<f4", "<f8"}) {
        for (const Shape& shape : {Shape{50}, Shape{9, 9}, Shape{5, 6, 7}, Shape{3, 4, 5, 6}}) {
            for (const std::string& setting : settings) {
                const bool header = draw() % 2 == 0;
                const CodecPipeline pipeline = header ? zfp_pipeline(dtype, shape, R"({"mode": 4})", "numcodecs.zfpy")
                                                      : zfp_pipeline(dtype, shape, setting);
                Buffer bytes = pipeline.encoded(waves(dtype, shape));
                for (int n = 0; n < 20; ++n) {
                    Buffer damaged(bytes.span().first(n % 2 == 0 ? bytes.size() : draw() % (bytes.size() + 1)));
                    for (int k = 0; k < 1 + n % 4 && damaged.size() > 0; ++k) {
                        damaged.data()[draw() % damaged.size()] = static_cast<std::byte>(draw());
                    }
                    try {
                        (void)zfp_decoded(pipeline, damaged);
                    } catch (const Error& e) {
                        EXPECT_EQ(e.code(), ErrorCode::corrupt) << e.what();
                    }
                }
            }
        }
    }
}

TEST_F(Zfp, headers_say_how_to_decode) {
    const NDArray a = waves("<f4", {6, 7});
    const CodecPipeline writer = zfp_pipeline("<f4", {6, 7}, R"({"mode": 2, "rate": 16})", "numcodecs.zfpy");
    const Buffer encoded = writer.encoded(a);
    // Whatever the configuration says; and of a flat shape.
    const CodecPipeline reader = zfp_pipeline("<f4", {6, 7}, R"({"mode": 4, "tolerance": 1})", "numcodecs.zfpy");
    EXPECT_TRUE(elements_equal(zfp_decoded(reader, encoded), zfp_decoded(writer, encoded)));
    NDArray flat("<f4", {42});
    std::ranges::copy(a.bytes(), flat.bytes().begin());
    const Buffer flattened = zfp_pipeline("<f4", {42}, "{}", "numcodecs.zfpy").encoded(flat);
    EXPECT_TRUE(elements_equal(zfp_decoded(reader, flattened), a));
    expect_error(ErrorCode::corrupt, "42 elements", [&] {
        (void)zfp_decoded(zfp_pipeline("<f4", {6, 8}, "{}", "numcodecs.zfpy"), encoded);
    });
    expect_error(ErrorCode::corrupt, "type", [&] {
        (void)zfp_decoded(zfp_pipeline("<i4", {6, 7}, "{}", "numcodecs.zfpy"), encoded);
    });
    expect_error(ErrorCode::corrupt, "header", [&] {
        (void)zfp_decoded(reader, zfp_pipeline("<f4", {6, 7}, R"({"mode": "reversible"})").encoded(a));
    });
}

}  // namespace
}  // namespace tessera
