#include <tessera/copy_elements.h>
#include <tessera/parallel.h>
#include <tessera/pipeline.h>

#include <numeric>

#include "codec_test_util.h"

namespace tessera {
namespace {

CodecConfig blosc(std::string_view cname = "lz4") {
    return parse_codec("blosc:" + std::string(cname));
}

CodecPipeline pipeline(const DType& dtype, const Shape& shape, const std::vector<CodecConfig>& codecs) {
    return CodecPipeline({dtype, shape, {}}, codecs);
}

/// 0, 1, 2, … as <i4.
NDArray numbers(const Shape& shape) {
    NDArray a("<i4", shape);
    std::iota(a.values<std::int32_t>().begin(), a.values<std::int32_t>().end(), 0);
    return a;
}

/// The chains to try: none, one, two, three and four bytes→bytes codecs.
std::vector<std::vector<CodecConfig>> chains() {
    return {{{"bytes"}},
            {{"numcodecs.delta", Value::parse(R"({"dtype": "<i4"})")}, {"bytes"}},
            {{"bytes"}, blosc()},
            {{"bytes"}, blosc(), blosc("zlib")},
            {{"bytes"}, blosc("zstd"), blosc(), blosc("snappy")},
            {{"bytes"}, blosc("zstd"), blosc(), blosc("blosclz"), blosc()}};
}

TEST(Pipeline, settings_that_only_encoding_needs_do_not_matter_for_decoding) {
    const auto one = [](std::string_view name, std::string_view configuration) {
        return CodecConfig{std::string(name), Value::parse(configuration)};
    };
    const auto check = [](const DType& dtype, CodecConfig codec, const Value& wrong, std::string_view message) {
        SCOPED_TRACE(codec.name);
        const Shape shape{3, 4};
        const auto chain = [&](const CodecConfig& c) {
            return CodecPipeline({dtype, shape, {}}, complete_codecs(dtype, 2, Order::C, {c}));
        };
        NDArray a(dtype, shape);
        std::ranges::fill(a.bytes(), std::byte{0});
        const CodecPipeline right = chain(codec);
        right.require_encoder();
        const Buffer encoded = right.encoded(a);
        for (const auto& [member, value] : wrong.as_object()) codec.configuration.set(member, value);
        // complete_codecs is for new arrays, which must be written: it refuses what the pipeline takes.
        std::vector<CodecConfig> read = complete_codecs(dtype, 2, Order::C, {});
        read.insert(find_codec(codec.name)->array_to_array ? read.begin() : read.end(), codec);
        if (find_codec(codec.name)->array_to_bytes) read = {codec};
        const CodecPipeline pipeline({dtype, shape, {}}, read);
        NDArray out(dtype, shape);
        CodecScratch scratch;
        pipeline.decode(encoded, out, scratch);
        EXPECT_TRUE(elements_equal(out, a));
        expect_error(ErrorCode::invalid_argument, message, [&] { pipeline.require_encoder(); });
        expect_error(ErrorCode::invalid_argument, codec.name, [&] { (void)pipeline.encoded(a); });
        if (find_codec(codec.name)->bytes_to_bytes) {
            const std::string json = codec_to_json(codec).dump();
            expect_error(ErrorCode::invalid_argument, message.substr(message.find(':') + 1),
                         [&] { (void)parse_codecs(json); });
        }
    };
    const auto numbers = [&](CodecConfig codec, std::string_view wrong, std::string_view message) {
        check("<f4", std::move(codec), Value::parse(wrong), message);
    };
    numbers(one("zstd", "{}"), R"({"level": 100})", "zstd: level is 100, expected");
    numbers(one("zstd", "{}"), R"({"checksum": "yes"})", "checksum");
    numbers(one("numcodecs.zstd", "{}"), R"({"level": "best"})", "level");
    numbers(one("gzip", "{}"), R"({"level": 12})", "level is 12, expected -1 to 9");
    numbers(one("numcodecs.gzip", "{}"), R"({"level": 1.5})", "level");
    numbers(one("numcodecs.zlib", "{}"), R"({"level": -7})", "level is -7");
    numbers(one("numcodecs.bz2", "{}"), R"({"level": 0})", "level is 0");
    numbers(one("numcodecs.lz4", "{}"), R"({"acceleration": 99999999999})", "acceleration");
    numbers(one("numcodecs.lzma", "{}"), R"({"preset": 11})", "preset is 11");
    numbers(one("numcodecs.lzma", R"({"format": 2})"), R"({"check": 77})", "check");
    numbers(one("blosc", R"({"cname": "zstd"})"), R"({"cname": "lzo", "clevel": 22})", "no compressor \"lzo\"");
    numbers(one("blosc", R"({"cname": "zstd"})"), R"({"shuffle": "best", "typesize": 0})", "choose one of noshuffle");
    numbers(one("numcodecs.blosc", "{}"), R"({"shuffle": 3})", "shuffle is 3");
    numbers(one("numcodecs.bitround", R"({"keepbits": 3})"), R"({"keepbits": 60})", "keepbits is 60");
    numbers(one("numcodecs.quantize", R"({"digits": 3})"), R"({"digits": 1000})", "digits is 1000");
}

TEST(Pipeline, what_decoding_needs_is_still_refused) {
    const auto refused = [](std::string_view message, const char* codecs) {
        expect_error(ErrorCode::invalid_argument, message, [&] {
            const Value list = Value::parse(codecs);
            std::vector<CodecConfig> chain;
            for (const Value& codec : list.as_array()) chain.push_back(codec_from_json(codec));
            (void)CodecPipeline({"<f4", {2}, {}}, chain);
        });
    };
    refused("needs filters", R"(["bytes", {"name": "numcodecs.lzma", "configuration": {"format": 3}}])");
    refused("dist is 257", R"(["bytes", {"name": "numcodecs.lzma", "configuration":
            {"format": 3, "filters": [{"id": 3, "dist": 257}, {"id": 33}]}}])");
    refused("unknown member \"window\"", R"(["bytes", {"name": "zstd", "configuration": {"level": 1, "window": 9}}])");
}

TEST(Pipeline, round_trips_contiguous_and_strided) {
    const Shape shape{6, 50, 7};
    const NDArray whole = numbers(shape);
    const NDArray turned = numbers({7, 50, 6});
    const NDArray wide = numbers({12, 50, 14});
    for (const auto& codecs : chains()) {
        const CodecPipeline p = pipeline("<i4", shape, codecs);
        CodecScratch scratch;
        ArrayView strided = wide.view();  // every other row and column
        strided.shape = shape;
        strided.strides[0] *= 2;
        strided.strides[2] *= 2;
        const ArrayView transposed = std::as_const(turned).view().transposed({2, 1, 0});
        for (const ArrayView& in : {std::as_const(whole).view(), strided, transposed}) {
            const NDArray expected = NDArray::copy_of(in);
            const Buffer encoded(p.encode(in, scratch));
            for (const Order order : {Order::C, Order::F}) {
                NDArray out("<i4", shape, order);
                p.decode(encoded, out, scratch);
                EXPECT_TRUE(elements_equal(out, expected)) << codecs.size();
            }
            NDArray box("<i4", {12, 60, 7});
            p.decode(encoded, box.view().part({{3, 4, 0}, shape}), scratch);
            EXPECT_TRUE(elements_equal(box.view().part({{3, 4, 0}, shape}), expected));
        }
    }
}

TEST(Pipeline, encodes_into_scratch_and_the_chunk_may_be_there_too) {
    const Shape shape{40, 50};
    const NDArray a = numbers(shape);
    for (const auto& codecs : chains()) {
        const CodecPipeline p = pipeline("<i4", shape, codecs);
        CodecScratch scratch;
        const ByteSpan first = p.encode(a, scratch);
        const bool own = first.data() == a.bytes().data();  // nothing is encoded
        EXPECT_TRUE(own || first.data() == scratch.encoded.data());
        // As an editor does: decode into scratch.decoded what lies in scratch.encoded, change it, encode it again.
        scratch.decoded.reset(a.bytes().size());
        const MutableArrayView chunk = view_bytes(scratch.decoded.data(), "<i4", shape);
        p.decode(first, chunk, scratch);
        EXPECT_TRUE(elements_equal(chunk, a));
        chunk.typed<std::int32_t>()(3, 4) = -1;
        const Buffer again(p.encode(chunk, scratch));
        NDArray back("<i4", shape);
        p.decode(again, back, scratch);
        EXPECT_EQ(back.view().typed<std::int32_t>()(3, 4), -1);
        EXPECT_EQ(back.view().typed<std::int32_t>()(3, 5), 155);
    }
}

TEST(Pipeline, bytes_have_exactly_the_byte_order_of_the_dtype) {
    const NDArray a = numbers({2});
    CodecScratch scratch;
    const ByteSpan big = pipeline(">i4", {2}, {{"bytes"}}).encode(a, scratch);
    const std::array<std::uint8_t, 8> expected{0, 0, 0, 0, 0, 0, 0, 1};
    EXPECT_TRUE(same_bytes(big, std::as_bytes(std::span(expected))));
    NDArray back("<i4", {2});
    pipeline(">i4", {2}, {{"bytes"}, blosc()})
        .decode(pipeline(">i4", {2}, {{"bytes"}, blosc()}).encode(a, scratch), back, scratch);
    EXPECT_TRUE(elements_equal(back, a));
}

TEST(Pipeline, decodes_parts_from_memory_and_from_elsewhere) {
    class Unmapped final : public ByteSource {
    public:
        explicit Unmapped(ByteSpan bytes) : bytes_(memory_source(Buffer(bytes), "elsewhere")) {}
        [[nodiscard]] std::uint64_t size() const override { return bytes_->size(); }
        void read(std::uint64_t offset, MutableByteSpan out) const override { bytes_->read(offset, out); }
        [[nodiscard]] const std::string& name() const override { return bytes_->name(); }

    private:
        std::unique_ptr<ByteSource> bytes_;
    };
    const Shape shape{30, 40};
    const NDArray a = numbers(shape);
    const Region region({3, 5}, {20, 1});
    for (const auto& codecs : chains()) {
        const CodecPipeline p = pipeline("<i4", shape, codecs);
        CodecScratch scratch;
        const Buffer encoded(p.encode(a, scratch));
        NDArray out("<i4", region.extent);
        p.decode_part(*memory_source(Buffer(encoded.span()), "memory"), region, out, scratch);
        EXPECT_TRUE(elements_equal(out, a.view().part(region)));
        NDArray again("<i4", region.extent);
        p.decode_part(Unmapped(encoded), region, again, scratch);
        EXPECT_TRUE(elements_equal(again, a.view().part(region)));
        expect_error(ErrorCode::out_of_bounds, "", [&] {
            p.decode_part(Unmapped(encoded), Region({20, 0}, {20, 1}), again, scratch);
        });
    }
}

TEST(Pipeline, parts_of_what_nothing_compresses) {
    class Counted final : public ByteSource {
    public:
        explicit Counted(ByteSpan bytes) : bytes_(bytes) {}
        [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
        void read(std::uint64_t offset, MutableByteSpan out) const override {
            read_ += out.size();
            std::ranges::copy(bytes_.subspan(static_cast<std::size_t>(offset), out.size()), out.begin());
        }
        [[nodiscard]] const std::string& name() const override { return name_; }
        mutable std::size_t read_ = 0;

    private:
        ByteSpan bytes_;
        std::string name_ = "counted";
    };
    const Shape shape{30, 40};
    const Region region({3, 5}, {20, 10});
    const NDArray a = numbers(shape);
    for (const char* dtype : {"<i4", ">i4"}) {
        const CodecPipeline p = pipeline(dtype, shape, {{"bytes"}});
        CodecScratch scratch;
        const Buffer encoded(p.encode(a, scratch));
        for (const Order order : {Order::C, Order::F}) {
            const Counted source(encoded);
            NDArray out("<i4", region.extent, order);
            p.decode_part(source, region, out, scratch);
            EXPECT_TRUE(elements_equal(out, a.view().part(region)));
            EXPECT_EQ(source.read_, (19 * 40 + 10) * 4U) << "from the first byte to the last";
        }
        expect_error(ErrorCode::corrupt, "", [&] {
            NDArray out("<i4", region.extent);
            p.decode_part(Counted(encoded.span().first(encoded.size() - 1)), region, out, scratch);
        });
    }
}

TEST(Pipeline, a_part_of_what_nothing_compresses_is_replaced) {
    const Shape shape{30, 40};
    const Region region({3, 5}, {20, 10});
    const CodecConfig turn{"transpose", Value::parse(R"({"order": [1, 0]})")};
    for (const auto& codecs : {std::vector<CodecConfig>{{"bytes"}}, {turn, {"bytes"}}}) {
        for (const DType& dtype : {DType("<i4"), DType(">i4")}) {
            const CodecPipeline p = pipeline(dtype, shape, codecs);
            CodecScratch scratch;
            NDArray a = numbers(shape);
            const Buffer old(p.encode(a, scratch));
            NDArray added(dtype, region.extent);
            copy_elements(numbers(region.extent), added);
            EXPECT_FALSE(p.encode_part(old, region, added, scratch)) << "nothing is encoded";
            Buffer edited(old.span());
            const auto there = p.elements_in(edited);
            ASSERT_TRUE(there);
            EXPECT_EQ(static_cast<const void*>(there->data), edited.data());
            EXPECT_TRUE(elements_equal(*there, a));
            const MutableArrayView all{edited.data(), there->dtype, there->shape, there->strides, nullptr};
            copy_elements(added, all.part(region));
            copy_elements(added, a.view().part(region));
            EXPECT_TRUE(same_bytes(edited, p.encode(a, scratch)));
            EXPECT_FALSE(p.elements_in(old.span().first(8))) << "not a chunk";
        }
    }
}

TEST(Pipeline, one_serves_many_threads) {
    const Shape shape{50, 60};
    const NDArray a = numbers(shape);
    const CodecPipeline p = pipeline("<i4", shape, {{"bytes"}, blosc("blosclz"), blosc("zlib")});
    parallel_for(100, {.threads = 2}, [&](std::int64_t) {
        CodecScratch scratch;
        NDArray out("<i4", shape);
        p.decode(p.encode(a, scratch), out, scratch);
        if (!elements_equal(out, a)) throw corrupt("threads disturbed each other");
    });
}

TEST(Pipeline, errors_name_the_stage) {
    const CodecPipeline p = pipeline("<i4", {10}, {{"bytes"}, blosc()});
    CodecScratch scratch;
    NDArray out("<i4", {10});
    expect_error(ErrorCode::corrupt, "blosc: 3 bytes are too few", [&] { p.decode(counters(3), out, scratch); });
    const Buffer other(pipeline("<i4", {11}, {{"bytes"}, blosc()}).encode(numbers({11}), scratch));
    expect_error(ErrorCode::corrupt, "blosc: the header says that the frame decodes to 44 bytes, expected 40",
                 [&] { p.decode(other, out, scratch); });
    expect_error(ErrorCode::corrupt, "bytes: 44 bytes were found",
                 [&] { pipeline("<i4", {10}, {{"bytes"}}).decode(counters(44), out, scratch); });
}

TEST(Pipeline, chains_that_make_no_sense_are_refused) {
    const auto refused = [](ErrorCode code, std::string_view message, const std::vector<CodecConfig>& codecs,
                            const DType& dtype = "<i4", const Shape& shape = {10}) {
        expect_error(code, message, [&] { (void)pipeline(dtype, shape, codecs); });
    };
    refused(ErrorCode::invalid_argument, "lack one", {});
    refused(ErrorCode::invalid_argument, "blosc: a codec that turns the array into bytes must come before", {blosc()});
    refused(ErrorCode::invalid_argument, "bytes: it must come before \"bytes\"", {{"bytes"}, {"bytes"}});
    refused(ErrorCode::unsupported, "codec \"magic\" is not known; there are bytes, ", {{"magic"}});
    refused(ErrorCode::invalid_argument, "choose \"little\" or \"big\"",
            {{"bytes", Value::parse(R"({"endian": "middle"})")}});
    refused(ErrorCode::unsupported, "bytes: elements of", {{"bytes"}}, DType::variable_text());
    refused(ErrorCode::unsupported, "choose smaller chunks", {{"bytes"}, blosc()}, "<i4", {1 << 30});
    refused(ErrorCode::invalid_argument, "bytes: ", {{"bytes"}}, "<i4", {std::int64_t{1} << 62, 4});
    (void)pipeline("<i4", {10}, {{"bytes", Value::parse(R"({"endian": "little"})")}});
    (void)pipeline("|u1", {10}, {{"bytes", Value::parse(R"({"endian": "big"})")}});
}

TEST(Pipeline, the_byte_order_in_the_chunk_may_differ_from_the_dtypes) {
    const NDArray a = numbers({2});
    const CodecPipeline p = pipeline("<i4", {2}, {{"bytes", Value::parse(R"({"endian": "big"})")}});
    CodecScratch scratch;
    const Buffer encoded(p.encode(a, scratch));
    const std::array<std::uint8_t, 8> expected{0, 0, 0, 0, 0, 0, 0, 1};
    EXPECT_TRUE(same_bytes(encoded, std::as_bytes(std::span(expected))));
    NDArray back("<i4", {2});
    p.decode(encoded, back, scratch);
    EXPECT_TRUE(elements_equal(back, a));
}

TEST(Pipeline, scratch_covers_what_is_used) {
    const Shape shape{100, 1000};
    NDArray noise("<i4", shape);
    std::uint32_t state = 1;
    for (auto& v : noise.values<std::int32_t>()) v = static_cast<std::int32_t>(state = state * 1664525 + 1013904223);
    for (const auto& codecs : chains()) {
        const CodecPipeline p = pipeline("<i4", shape, codecs);
        CodecScratch scratch;
        const Buffer encoded(p.encode(noise.view(), scratch));
        NDArray out("<i4", shape, Order::F);
        p.decode(encoded, out, scratch);
        p.decode_part(*memory_source(Buffer(encoded.span()), "m"), Region::whole(shape), out, scratch);
        const std::size_t used = scratch.encoded.capacity() + scratch.decoded.capacity() + scratch.other.capacity();
        EXPECT_LE(used, p.scratch_bytes());
        EXPECT_GE(used + (std::size_t{16} << 20), p.scratch_bytes()) << "not absurdly more";
    }
}

/// Codecs by name and configuration.
CodecConfig configured(std::string_view name, std::string_view json) {
    return {std::string(name), Value::parse(json)};
}

TEST(Pipeline, several_array_to_array_codecs_in_a_row) {
    const Shape shape{5, 6, 7};
    const CodecConfig turn = configured("transpose", R"({"order": [2, 0, 1]})");
    const CodecConfig big = configured("bytes", R"({"endian": "big"})");
    const CodecConfig narrow = configured("numcodecs.delta", R"({"dtype": "<i4", "astype": "<i2"})");
    const CodecConfig delta = configured("numcodecs.delta", R"({"dtype": "<i2", "astype": "<i2"})");
    const Region region({1, 2, 3}, {3, 4, 2});
    const NDArray numbers_in = numbers(shape);
    NDArray flags("|b1", shape);
    for (std::size_t i = 0; i < flags.bytes().size(); ++i) flags.bytes()[i] = static_cast<std::byte>(i % 3 == 0);
    const NDArray* const in_order[] = {&numbers_in, &numbers_in, &numbers_in, &numbers_in, &numbers_in, &flags};
    const std::vector<CodecConfig> chains_to_try[] = {
        {turn, turn, big, blosc()},          {turn, big},
        {turn, narrow, delta, big, blosc()}, {narrow, turn, delta, {"bytes"}},
        {narrow, delta, turn, big, blosc()}, {turn, {"numcodecs.packbits"}, {"bytes"}, blosc()}};
    for (std::size_t n = 0; n < std::size(chains_to_try); ++n) {
        SCOPED_TRACE(n);
        const NDArray& in = *in_order[n];
        const CodecPipeline p = pipeline(in.dtype(), shape, chains_to_try[n]);
        CodecScratch scratch;
        const Buffer encoded(p.encode(in, scratch));
        for (const DType& dtype : {in.dtype(), in.dtype().with_order(ByteOrder::big)}) {
            NDArray whole(dtype, shape, Order::F);
            p.decode(encoded, whole, scratch);
            EXPECT_TRUE(elements_equal(in, whole));
            NDArray part(dtype, region.extent);
            p.decode_part(*memory_source(Buffer(encoded.span()), "memory"), region, part, scratch);
            EXPECT_TRUE(elements_equal(in.view().part(region), part));
            NDArray all(dtype, shape);
            p.decode_part(*memory_source(Buffer(encoded.span()), "memory"), Region::whole(shape), all, scratch);
            EXPECT_TRUE(elements_equal(in, all));
        }
    }
}

TEST(Pipeline, transposes_move_no_memory) {
    // A Fortran-ordered chunk, as zarr-python's order F, goes straight into Fortran-ordered memory.
    const CodecConfig turn = configured("transpose", R"({"order": [1, 0]})");
    const CodecPipeline p = pipeline("<i4", {300, 400}, {turn, {"bytes"}, blosc()});
    NDArray a("<i4", {300, 400}, Order::F);
    copy_elements(numbers({300, 400}), a);
    CodecScratch scratch;
    const Buffer encoded(p.encode(a, scratch));
    EXPECT_EQ(scratch.other.capacity() + scratch.decoded.capacity(), 0U);
    NDArray back("<i4", {300, 400}, Order::F);
    p.decode(encoded, back, scratch);
    EXPECT_TRUE(elements_equal(a, back));
    EXPECT_EQ(scratch.other.capacity() + scratch.decoded.capacity(), 0U);
}

TEST(Pipeline, elements_of_variable_length_are_planned_for_modestly) {
    const CodecPipeline p = pipeline("string", {1000}, {{"vlen-utf8"}, parse_codec("zstd")});
    EXPECT_FALSE(p.encoded_bound());
    EXPECT_FALSE(p.encoded_size());
    EXPECT_GE(p.encoded_limit(), std::uint64_t{1} << 30) << "a long text is no error";
    EXPECT_LT(p.scratch_bytes(), std::uint64_t{1} << 20);
    const CodecPipeline fixed = pipeline("<i4", {10}, {{"bytes"}, {"crc32c"}});
    EXPECT_EQ(fixed.encoded_size(), 44U);
    EXPECT_FALSE(pipeline("<i4", {10}, {{"bytes"}, blosc()}).encoded_size());
}

}  // namespace
}  // namespace tessera
