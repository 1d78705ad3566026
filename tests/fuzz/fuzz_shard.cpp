// Shards: the first byte chooses one of the configurations below, the rest is a shard. It is decoded as a whole, in
// parts, and written anew with one inner chunk replaced.
#include <tessera/copy_elements.h>
#include <tessera/shard.h>

#include <array>
#include <cstring>
#include <string_view>

#include "fuzz.h"

using namespace tessera;

namespace {

// Most without a checksum over the index, which no fuzzer would guess.
constexpr std::array configurations{
    R"([{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3], "codecs": ["bytes"],
         "index_codecs": ["bytes"]}}])",
    R"([{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 2], "codecs": ["bytes", "zstd"],
         "index_codecs": [{"name": "bytes", "configuration": {"endian": "big"}}], "index_location": "start"}}])",
    R"([{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2], "codecs": ["bytes", "gzip"],
         "index_codecs": ["bytes", "crc32c"]}}])",
    R"([{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 6], "index_codecs": ["bytes"], "codecs": [
         {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2], "codecs": ["bytes"],
          "index_codecs": ["bytes"], "index_location": "start"}}]}}])",
    R"([{"name": "transpose", "configuration": {"order": [1, 0]}},
        {"name": "sharding_indexed", "configuration": {"chunk_shape": [6, 2], "codecs": ["bytes"],
         "index_codecs": [{"name": "transpose", "configuration": {"order": [2, 0, 1]}}, "bytes"]}}])",
    R"([{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3], "codecs": ["bytes"],
         "index_codecs": ["bytes"]}}, "gzip"])",
};

const Shape shape{4, 6};

std::unique_ptr<ByteSource> source_of(ByteSpan bytes) {
    return memory_source(Buffer(bytes), "the shard");
}

/// What decodes whole decodes in parts, to the same.
void decode_parts(const CodecPipeline& pipeline, ByteSpan shard, const NDArray* whole) {
    CodecScratch scratch;
    for (const Region& part : {Region({0, 0}, {1, 1}), Region({1, 2}, {3, 4}), Region({3, 5}, {1, 1})}) {
        NDArray out("<i2", part.extent);
        try {
            pipeline.decode_part(*source_of(shard), part, out, scratch);
        } catch (const Error&) {
            if (whole != nullptr) __builtin_trap();
            continue;
        }
        if (whole != nullptr && !elements_equal(whole->view().part(part), out)) __builtin_trap();
    }
}

/// Keeps the bytes that a ShardWriter makes.
class Kept final : public ByteSink {
public:
    explicit Kept(Buffer& out) : out_(out) {}
    [[nodiscard]] bool random_access() const override { return false; }
    void append(ByteSpan bytes) override { out_.append(bytes); }
    void write_at(std::uint64_t, ByteSpan) override { __builtin_trap(); }
    void finish() override {}
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    Buffer& out_;
    std::string name_ = "kept";
};

/// A shard whose first inner chunk is replaced has that, and what it had before, and is not much larger.
void rewrite(const CodecPipeline& pipeline, ByteSpan shard) {
    const ShardCodec& codec = *pipeline.shard();
    auto old = std::make_unique<const Shard>(codec, source_of(shard));
    const auto places = old->places();
    NDArray ones("<i2", codec.grid().chunks());
    std::memset(ones.bytes().data(), 1, ones.bytes().size());
    Buffer anew;
    ShardWriter writer(codec, std::move(old), Region::whole(shape), [&] { return std::make_unique<Kept>(anew); });
    writer.write({{0, 0}, {1, 1}}, [&](const Index&, const auto&) { return std::as_const(ones).view(); },
                 {.threads = 1});
    writer.finish();
    if (anew.size() > shard.size() + 1024) __builtin_trap();
    const Shard back(codec, source_of(anew));
    CodecScratch scratch;
    NDArray first("<i2", codec.grid().chunks());
    back.read({0, 0}, Region::whole(codec.grid().chunks()), first, scratch);
    if (!elements_equal(first, ones)) __builtin_trap();
    for (std::size_t n = 0; n < places.size(); ++n) {
        if (n == codec.number({0, 0})) continue;
        const auto& now = back.places()[n];
        if (now.present() != places[n].present()) __builtin_trap();
        if (!now.present()) continue;
        if (!std::ranges::equal(anew.span().subspan(now.offset, now.size),
                                shard.subspan(places[n].offset, places[n].size))) {
            __builtin_trap();
        }
    }
}

}  // namespace

void fuzz_one(ByteSpan input) {
    if (input.empty()) return;
    const auto* json = configurations[std::to_integer<std::size_t>(input[0]) % configurations.size()];
    const ByteSpan shard = input.subspan(1);
    const CodecPipeline pipeline({"<i2", shape, ElementBytes(2)}, parse_codecs(json));
    CodecScratch scratch;
    NDArray whole("<i2", shape);
    bool decoded = false;
    try {
        pipeline.decode(shard, whole, scratch);
        decoded = true;
    } catch (const Error&) {
        decoded = false;
    }
    decode_parts(pipeline, shard, decoded ? &whole : nullptr);
    if (pipeline.shard() != nullptr) rewrite(pipeline, shard);
}
