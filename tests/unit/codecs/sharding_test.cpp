// The sharding codec: layout byte by byte, round trips of every kind of index, parts, transposes, hostile indexes, and
// the writer that keeps untouched inner chunks as they are.
#include <fmt/format.h>
#include <tessera/copy_elements.h>
#include <tessera/shard.h>

#include <atomic>
#include <limits>
#include <numeric>
#include <random>

#include "codec_test_util.h"

namespace tessera {
namespace {

CodecConfig configured(std::string_view name, std::string_view json) {
    return {std::string(name), Value::parse(json)};
}

/// sharding_indexed with inner codecs and index codecs as JSON lists.
CodecConfig sharding(const Shape& inner, std::string_view codecs, std::string_view index_codecs,
                     std::string_view location = "end") {
    CodecConfig shard{"sharding_indexed"};
    shard.configuration.set("chunk_shape", Value::Array(inner.begin(), inner.end()));
    shard.configuration.set("codecs", Value::parse(codecs));
    shard.configuration.set("index_codecs", Value::parse(index_codecs));
    shard.configuration.set("index_location", location);
    return shard;
}

constexpr std::string_view little = R"([{"name": "bytes", "configuration": {"endian": "little"}}])";
constexpr std::string_view big = R"([{"name": "bytes", "configuration": {"endian": "big"}}])";
constexpr std::string_view checked = R"([{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"])";
constexpr std::string_view compressed =
    R"([{"name": "bytes", "configuration": {"endian": "big"}},
        {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 1, "shuffle": "shuffle"}}, "crc32c"])";

ElementBytes element(std::int32_t v) {
    ElementBytes bytes(sizeof v);
    std::memcpy(bytes.data(), &v, sizeof v);
    return bytes;
}

/// Random <i4 of few values, so that inner chunks full of 0 occur.
NDArray random_numbers(const Shape& shape, std::mt19937& random, int values = 2) {
    NDArray a("<i4", shape);
    for (std::int32_t& v : a.values<std::int32_t>()) v = static_cast<std::int32_t>(random() % values);
    return a;
}

/// A source that is not in memory, and counts what is read of it.
class CountingSource final : public ByteSource {
public:
    explicit CountingSource(ByteSpan bytes) : bytes_(memory_source(Buffer(bytes), "elsewhere")) {}
    [[nodiscard]] std::uint64_t size() const override { return bytes_->size(); }
    void read(std::uint64_t offset, MutableByteSpan out) const override {
        bytes_->read(offset, out);
        reads += 1;
        read_bytes += out.size();
    }
    [[nodiscard]] const std::string& name() const override { return bytes_->name(); }

    mutable std::atomic<std::uint64_t> reads = 0;
    mutable std::atomic<std::uint64_t> read_bytes = 0;

private:
    std::unique_ptr<ByteSource> bytes_;
};

/// Collects what is written.
class CollectingSink final : public ByteSink {
public:
    CollectingSink(Buffer& out, bool random_access) : out_(out), random_access_(random_access) { out_.resize(0); }
    [[nodiscard]] bool random_access() const override { return random_access_; }
    void append(ByteSpan bytes) override { out_.append(bytes); }
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
        ASSERT_TRUE(random_access_);
        std::ranges::copy(bytes, out_.data() + offset);
    }
    void finish() override { finished = true; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    bool finished = false;

private:
    Buffer& out_;
    bool random_access_;
    std::string name_ = "collected";
};

Region random_region(const Shape& shape, std::mt19937& random) {
    Region r = Region::whole(shape);
    for (int d = 0; d < shape.rank(); ++d) {
        r.start[d] = static_cast<std::int64_t>(random() % static_cast<unsigned>(shape[d]));
        r.extent[d] = 1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(shape[d] - r.start[d]));
    }
    return r;
}

TEST(Sharding, is_laid_out_as_the_specification_says) {
    NDArray a("<u2", {2, 4});
    std::iota(a.values<std::uint16_t>().begin(), a.values<std::uint16_t>().end(), std::uint16_t{1});
    for (const int k : {2, 3, 6, 7}) a.values<std::uint16_t>()[static_cast<std::size_t>(k)] = 0;  // chunk (0, 1)
    const ChunkSpec spec{"<u2", {2, 4}, ElementBytes(2)};
    CodecScratch scratch;
    std::vector<std::uint8_t> expected = {1, 0, 2, 0, 5, 0, 6, 0};
    const auto word = [](std::uint8_t v, bool big_endian) {
        std::vector<std::uint8_t> bytes(8, 0);
        bytes[big_endian ? 7 : 0] = v;
        return bytes;
    };
    const std::vector<std::uint8_t> absent(16, 0xff);
    std::vector<std::uint8_t> at_end = expected;
    for (const auto& part : {word(0, false), word(8, false), absent})
        at_end.insert(at_end.end(), part.begin(), part.end());
    EXPECT_TRUE(same_bytes(CodecPipeline(spec, {{sharding({2, 2}, little, little)}}).encode(a, scratch),
                           std::as_bytes(std::span(at_end))));
    std::vector<std::uint8_t> at_start;
    for (const auto& part : {word(32, true), word(8, true), absent, expected}) {
        at_start.insert(at_start.end(), part.begin(), part.end());
    }
    EXPECT_TRUE(same_bytes(CodecPipeline(spec, {{sharding({2, 2}, little, big, "start")}}).encode(a, scratch),
                           std::as_bytes(std::span(at_start))));
}

TEST(Sharding, round_trips_whole_and_in_parts) {
    std::mt19937 random(5);
    const std::string nested =
        fmt::format("[{}]", codec_to_json(sharding({1, 3}, compressed, checked, "start")).dump());
    for (const std::string_view codecs : {little, big, compressed, std::string_view(nested)}) {
        for (const std::string_view index : {little, big, checked}) {
            for (const std::string_view location : {"start", "end"}) {
                for (const std::optional<ElementBytes>& fill :
                     {std::optional(element(0)), std::optional<ElementBytes>()}) {
                    const CodecPipeline p({"<i4", {6, 12}, fill}, {{sharding({2, 6}, codecs, index, location)}});
                    ASSERT_NE(p.shard(), nullptr);
                    EXPECT_EQ(p.shard()->innermost(), codecs == nested ? (Shape{1, 3}) : (Shape{2, 6}));
                    const NDArray a = random_numbers({6, 12}, random, 1 + static_cast<int>(random() % 3));
                    CodecScratch scratch;
                    const Buffer encoded(p.encode(a, scratch));
                    EXPECT_LE(encoded.size(), *p.encoded_bound());
                    for (const DType& dtype : {DType("<i4"), DType(">i4")}) {
                        NDArray back(dtype, {6, 12}, Order::F);
                        p.decode(encoded, back, scratch);
                        EXPECT_TRUE(elements_equal(a, back));
                        const Region part = random_region({6, 12}, random);
                        NDArray some(dtype, part.extent);
                        p.decode_part(CountingSource(encoded), part, some, scratch);
                        EXPECT_TRUE(elements_equal(a.view().part(part), some));
                    }
                }
            }
        }
    }
}

TEST(Sharding, of_no_dimensions_and_of_text) {
    CodecScratch scratch;
    NDArray one("<i4", {});
    one.values<std::int32_t>()[0] = 7;
    const CodecPipeline scalar({"<i4", {}, {}}, {{sharding({}, little, checked)}});
    NDArray back("<i4", {});
    const Buffer encoded(scalar.encode(one, scratch));
    EXPECT_EQ(encoded.size(), 4 + 16 + 4);
    scalar.decode(encoded, back, scratch);
    EXPECT_EQ(back.values<std::int32_t>()[0], 7);

    const DType text = DType::variable_text();
    NDArray words(text, {6});
    const MutableArrayView v = words.view();
    for (int i = 0; i < 6; ++i) {
        const VariableSlot slot =
            v.arena->add(i < 2 ? "fill" : fmt::format("word {}", std::string(static_cast<std::size_t>(i) * 9, 'x')));
        std::memcpy(v.data + i * 16, &slot, sizeof slot);
    }
    const std::string_view fill = "fill";
    const auto* begin = reinterpret_cast<const std::byte*>(fill.data());
    const CodecPipeline p(
        {text, {6}, ElementBytes(begin, begin + fill.size())},
        {{sharding({2}, R"(["vlen-utf8", {"name": "zstd", "configuration": {"level": 1}}])", checked)}});
    const Buffer shard(p.encode(words, scratch));
    NDArray all(text, {6});
    p.decode(shard, all, scratch);
    EXPECT_TRUE(elements_equal(words, all));
    NDArray some(text, {3});
    p.decode_part(CountingSource(shard), {{1}, {3}}, some, scratch);
    EXPECT_TRUE(elements_equal(words.view().part({{1}, {3}}), some));
    EXPECT_FALSE(p.shard()->read_index(CountingSource(shard))[0].present());
    EXPECT_FALSE(p.encoded_bound());
    EXPECT_LT(p.scratch_bytes(), std::uint64_t{1} << 20);
}

TEST(Sharding, transposes_before_a_shard_go_into_its_inner_chunks) {
    std::mt19937 random(6);
    const NDArray a = random_numbers({4, 6, 10}, random, 3);
    const CodecConfig turn = configured("transpose", R"({"order": [2, 0, 1]})");
    const CodecConfig back = configured("transpose", R"({"order": [1, 0, 2]})");
    const CodecConfig shard = sharding({2, 5, 3}, compressed, checked);
    const CodecPipeline p({"<i4", {4, 6, 10}, element(0)}, {{turn, back, shard}});
    ASSERT_NE(p.shard(), nullptr);
    EXPECT_EQ(p.shard()->grid().chunks(), (Shape{2, 3, 5}));
    // What a reader makes that knows nothing of this: the array transposed first, and then put into a plain shard.
    const ArrayView turned = std::as_const(a).view().transposed({2, 0, 1}).transposed({1, 0, 2});
    CodecScratch scratch;
    const CodecPipeline plain({"<i4", turned.shape, element(0)}, {{shard}});
    const Buffer encoded(p.encode(a, scratch));
    NDArray other("<i4", turned.shape);
    plain.decode(encoded, other, scratch);
    EXPECT_TRUE(elements_equal(turned, other));
    NDArray same("<i4", {4, 6, 10});
    p.decode(plain.encode(turned, scratch), same, scratch);
    EXPECT_TRUE(elements_equal(a, same));
    for (int n = 0; n < 20; ++n) {
        const Region part = random_region({4, 6, 10}, random);
        NDArray some("<i4", part.extent);
        p.decode_part(CountingSource(encoded), part, some, scratch);
        EXPECT_TRUE(elements_equal(a.view().part(part), some));
    }
}

TEST(Sharding, compressed_as_a_whole_is_decoded_as_a_whole) {
    std::mt19937 random(7);
    const NDArray a = random_numbers({10, 6}, random);
    const CodecPipeline p({"<i4", {10, 6}, element(0)},
                          {{sharding({5, 3}, compressed, checked), parse_codec("gzip:1")}});
    EXPECT_EQ(p.shard(), nullptr);
    CodecScratch scratch;
    const Buffer encoded(p.encode(a, scratch));
    NDArray some("<i4", {4, 4});
    p.decode_part(CountingSource(encoded), {{3, 1}, {4, 4}}, some, scratch);
    EXPECT_TRUE(elements_equal(a.view().part({{3, 1}, {4, 4}}), some));
}

TEST(Sharding, one_inner_chunk_is_read_by_two_reads) {
    std::mt19937 random(8);
    const NDArray a = random_numbers({256, 256}, random, 1000);
    const CodecPipeline p({"<i4", {256, 256}, element(0)}, {{sharding({16, 16}, little, checked)}});
    CodecScratch scratch;
    const CountingSource shard(p.encode(a, scratch));
    NDArray some("<i4", {16, 5});
    p.decode_part(shard, {{32, 81}, {16, 5}}, some, scratch);
    EXPECT_TRUE(elements_equal(a.view().part({{32, 81}, {16, 5}}), some));
    EXPECT_EQ(shard.reads, 2U);
    EXPECT_EQ(shard.read_bytes, (15U * 16 + 5) * 4 + 256 * 16 + 4) << "the index, and from the first byte to the last";
}

TEST(Sharding, configurations_that_are_wrong_are_refused) {
    const auto make = [](const CodecConfig& shard, const Shape& shape = {6, 12}) {
        CodecPipeline({"<i4", shape, element(0)}, {{shard}});
    };
    const auto without = [](std::string_view member) {
        CodecConfig shard = sharding({2, 6}, little, checked);
        shard.configuration.erase(member);
        return shard;
    };
    make(without("index_location"));
    for (const std::string_view member : {"chunk_shape", "codecs", "index_codecs"}) {
        expect_error(ErrorCode::invalid_argument, member, [&] { make(without(member)); });
    }
    CodecConfig more = without("");
    more.configuration.set("speed", 3);
    expect_error(ErrorCode::invalid_argument, "speed", [&] { make(more); });
    expect_error(ErrorCode::invalid_argument, "middle", [&] { make(sharding({2, 6}, little, checked, "middle")); });
    expect_error(ErrorCode::invalid_argument, "does not divide", [&] { make(sharding({4, 6}, little, checked)); });
    expect_error(ErrorCode::invalid_argument, "does not divide", [&] { make(sharding({12, 6}, little, checked)); });
    expect_error(ErrorCode::invalid_argument, "at least 1", [&] { make(sharding({0, 6}, little, checked)); });
    expect_error(ErrorCode::invalid_argument, "dimensions", [&] { make(sharding({6}, little, checked)); });
    expect_error(ErrorCode::unsupported, "index_codecs: the index", [&] {
        make(sharding({2, 6}, little, compressed));
    });
    expect_error(ErrorCode::unsupported, "no such codec", [&] {
        make(sharding({2, 6}, R"(["no such codec"])", checked));
    });
    expect_error(ErrorCode::unsupported, "inner chunks in one shard", [&] {
        make(sharding({1, 1}, little, checked), {std::int64_t{1} << 20, 1 << 20});
    });
    // Each level could double the work of the one around it.
    std::string deep(little);
    for (int level = 0; level < 30; ++level) {
        CodecConfig shard = sharding({1, 1}, deep, checked);
        deep = fmt::format(R"([{{"name": "transpose", "configuration": {{"order": [1, 0]}}}}, {}])",
                           codec_to_json(shard).dump());
    }
    CodecPipeline({"<i4", {1, 1}, element(0)}, {{sharding({1, 1}, deep, checked)}});
}

/// A shard of four inner chunks of {2} <i4, whose index is changed by `change` before it is read.
void read_changed(const std::function<void(std::vector<ShardCodec::Place>&)>& change,
                  std::string_view index_codecs = little, std::string_view location = "end") {
    NDArray a("<i4", {8});
    std::iota(a.values<std::int32_t>().begin(), a.values<std::int32_t>().end(), 1);
    const CodecPipeline p({"<i4", {8}, element(0)}, {{sharding({2}, little, index_codecs, location)}});
    CodecScratch scratch;
    Buffer shard(p.encode(a, scratch));
    std::vector<ShardCodec::Place> places = p.shard()->read_index(CountingSource(shard));
    change(places);
    const Buffer index = p.shard()->encode_index(places);
    std::ranges::copy(index.span(), shard.data() + (location == "start" ? 0 : shard.size() - index.size()));
    NDArray back("<i4", {8});
    p.decode(shard, back, scratch);
}

TEST(Sharding, indexes_that_cannot_be_true_are_corrupt) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    using Places = std::vector<ShardCodec::Place>;
    read_changed([](Places& p) { std::swap(p[0], p[3]); });  // in any order
    read_changed([](Places& p) { p[2] = {}; });
    for (const std::string_view index : {little, big, checked}) {
        for (const std::string_view location : {"end", "start"}) {
            const auto refused = [&](std::string_view why, std::uint64_t offset, std::uint64_t size) {
                expect_error(ErrorCode::corrupt, why, [&] {
                    read_changed([&](Places& p) { p[1] = {offset, size}; }, index, location);
                });
            };
            const std::string_view outside = "does not lie between";
            refused(outside, 1000, 8);
            refused(outside, 97, 8);
            refused(outside, 8, 1000);
            refused(outside, 8, most - 4);
            refused(outside, most - 4, 8);
            refused(outside, most, 8);
            refused(outside, 8, most);
            refused(outside, 0, 40);  // over the index, at whichever end
            const std::uint64_t data = location == "end" ? 0 : index == checked ? 68 : 64;
            refused("overlap", data, 8);
            refused("overlap", data + 9, 8);
            refused("inner chunk (1,): bytes:", data + 8, 7);
        }
    }
}

TEST(Sharding, shards_that_were_cut_short_or_changed_are_corrupt) {
    std::mt19937 random(9);
    const NDArray a = random_numbers({6, 12}, random, 100);
    CodecScratch scratch;
    NDArray back("<i4", {6, 12});
    for (const std::string_view location : {"end", "start"}) {
        const CodecPipeline p({"<i4", {6, 12}, element(0)}, {{sharding({2, 6}, compressed, checked, location)}});
        const Buffer shard(p.encode(a, scratch));
        for (std::size_t size = 0; size < shard.size(); size += 7) {
            expect_error(ErrorCode::corrupt, "", [&] { p.decode(shard.span().first(size), back, scratch); });
        }
        for (std::size_t at = 0; at < shard.size(); ++at) {
            Buffer changed(shard.span());
            changed.data()[at] ^= std::byte{0x10};
            expect_error(ErrorCode::corrupt, "sharding_indexed: ", [&] { p.decode(changed, back, scratch); });
        }
    }
    // An index larger than the file, for which no memory may be taken.
    const CodecPipeline vast({"u1", {1 << 24}, {}}, {{sharding({1}, R"(["bytes"])", little)}});
    expect_error(ErrorCode::corrupt, "the whole shard has only", [&] {
        NDArray one("u1", {1});
        vast.decode_part(CountingSource(a.bytes()), {{5}, {1}}, one, scratch);
    });
}

TEST(ShardWriter, changes_what_is_edited_and_keeps_the_rest_as_it_is) {
    std::mt19937 random(10);
    const Shape shape{12, 20};
    for (int round = 0; round < 60; ++round) {
        const std::string_view location = round % 2 == 0 ? "end" : "start";
        const CodecPipeline p({"<i4", shape, element(0)}, {{sharding({3, 5}, compressed, checked, location)}});
        const ShardCodec& codec = *p.shard();
        NDArray model = random_numbers(shape, random);
        CodecScratch scratch;
        const Buffer before(p.encode(model, scratch));
        const auto old_places = codec.read_index(CountingSource(before));
        const Region part = random_region(shape, random);
        const NDArray in = random_numbers(part.extent, random);
        copy_elements(in, model.view().part(part));

        std::vector<Buffer> results;
        for (const int threads : {1, 2}) {
            for (const bool random_access : {true, false}) {
                Buffer& after = results.emplace_back();
                auto old = std::make_unique<const Shard>(codec, std::make_shared<CountingSource>(before));
                ShardWriter writer(codec, std::move(old), Region::whole(shape),
                                   [&] { return std::make_unique<CollectingSink>(after, random_access); });
                const ShardWriter::Edit edit = [&](const Index& inner, const ShardWriter::ChunkMemory& memory) {
                    const Region place = codec.grid().chunk_region(inner);
                    const Region common = intersection(place, part);
                    const MutableArrayView chunk = memory(!(common == place));
                    Region in_chunk = common;
                    Region in_part = common;
                    for (int d = 0; d < 2; ++d) {
                        in_chunk.start[d] -= place.start[d];
                        in_part.start[d] -= part.start[d];
                    }
                    copy_elements(in.view().part(in_part), chunk.part(in_chunk));
                    return std::optional<ArrayView>(chunk);
                };
                writer.write(codec.grid().overlapping(part), edit, {.threads = threads});
                expect_error(ErrorCode::invalid_argument, "twice",
                             [&] { writer.write(codec.grid().overlapping(part), edit, {.threads = threads}); });
                if (writer.empty()) {
                    EXPECT_TRUE(all_elements_equal(model, element(0).data()));
                    after = Buffer(results.front().span());
                    continue;
                }
                writer.finish();
            }
        }
        for (const Buffer& result : results) EXPECT_TRUE(same_bytes(result, results.front()));
        if (all_elements_equal(model, element(0).data())) continue;
        const Buffer& after = results.front();
        NDArray back("<i4", shape);
        p.decode(after, back, scratch);
        EXPECT_TRUE(elements_equal(model, back));
        const auto places = codec.read_index(CountingSource(after));
        const Region touched = codec.grid().overlapping(part);
        for (std::int64_t n = 0; n < codec.grid().chunk_count(); ++n) {
            const Index inner = codec.grid().index(n);
            const auto& now = places[codec.number(inner)];
            const ArrayView elements = model.view().part(codec.grid().chunk_region(inner));
            EXPECT_EQ(now.present(), !all_elements_equal(elements, element(0).data())) << inner.to_string();
            if (!intersection({inner, {1, 1}}, touched).empty() || !now.present()) continue;
            const auto& then = old_places[codec.number(inner)];
            EXPECT_TRUE(
                same_bytes(after.span().subspan(now.offset, now.size), before.span().subspan(then.offset, then.size)));
        }
    }
}

TEST(ShardWriter, nothing_is_created_for_what_is_all_fill) {
    const CodecPipeline p({"<i4", {4}, element(3)}, {{sharding({2}, little, checked)}});
    const NDArray other = [] {
        NDArray a("<i4", {4});
        fill_elements(a, element(3).data());
        a.values<std::int32_t>()[3] = 8;  // beyond the edge of an array of 3
        return a;
    }();
    ShardWriter writer(*p.shard(), nullptr, {{0}, {3}}, []() -> std::unique_ptr<ByteSink> {
        ADD_FAILURE() << "a sink was asked for";
        return nullptr;
    });
    writer.write(
        {{0}, {2}},
        [&](const Index& inner, const auto&) { return other.view().part(p.shard()->grid().chunk_region(inner)); }, {});
    EXPECT_TRUE(writer.empty());
}

}  // namespace
}  // namespace tessera
