// "n5_default": a block of N5: its mode, its number of dimensions and their lengths, big-endian, and then the elements
// through a chain of codecs of its own: a transpose of all dimensions, "bytes" and at most one compressor. v3. A block
// at the edge of an array may be cut to it or not. The dimensions are in N5's order, the fastest first, and those of
// the array are, too: the transpose makes the first one the fastest.
#include <fmt/format.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/pipeline.h>

#include <algorithm>
#include <limits>

#include "codec_row.h"

namespace tessera {

namespace {

std::uint32_t load_big(ByteSpan in, std::size_t at, std::size_t size) {
    std::uint32_t v = 0;
    for (std::size_t i = 0; i < size; ++i) v = v << 8 | std::to_integer<std::uint32_t>(in[at + i]);
    return v;
}

class N5Codec final : public ArrayToBytesCodec {
public:
    N5Codec(const ChunkSpec& in, std::vector<CodecConfig> codecs)
        : chunk_(in),
          codecs_(std::move(codecs)),
          whole_(in, codecs_),
          header_(4 + 4 * static_cast<std::size_t>(in.shape.rank())) {
        for (const std::int64_t n : in.shape) {
            if (n > std::numeric_limits<std::uint32_t>::max()) {
                throw unsupported("a chunk of {} is longer than 4 bytes count", in.shape.to_string());
            }
        }
    }

    void encode(const ArrayView& in, Buffer& out) const override {
        CodecScratch scratch;
        const ByteSpan data = whole_.encode(in, scratch);
        out.reset(header_ + data.size());
        const auto put = [&](std::size_t at, std::size_t size, std::uint64_t v) {
            for (std::size_t i = size; i-- > 0; v >>= 8) out.data()[at + i] = static_cast<std::byte>(v & 0xff);
        };
        const int rank = chunk_.shape.rank();
        put(0, 2, 0);
        put(2, 2, static_cast<std::uint64_t>(rank));
        for (int d = 0; d < rank; ++d) {
            put(4 + 4 * static_cast<std::size_t>(d), 4, static_cast<std::uint64_t>(chunk_.shape[d]));
        }
        std::ranges::copy(data, out.data() + header_);
    }

    void decode(ByteSpan in, const MutableArrayView& out) const override {
        const Shape block = block_shape(in);
        CodecScratch scratch;
        if (block == chunk_.shape) return whole_.decode(in.subspan(header_), out, scratch);
        const CodecPipeline pipeline({chunk_.dtype, block, chunk_.fill}, codecs_);
        NDArray elements(chunk_.dtype, block);
        pipeline.decode(in.subspan(header_), elements, scratch);
        Region part = Region::whole(block);
        for (int d = 0; d < block.rank(); ++d) part.extent[d] = std::min(block[d], chunk_.shape[d]);
        if (part.extent != chunk_.shape) fill(out);
        copy_elements(std::as_const(elements).view().part(part), out.part(part));
    }

    /// Blocks may be cut.
    [[nodiscard]] std::optional<std::uint64_t> encoded_size() const override { return std::nullopt; }

private:
    /// Checks the header. A block that takes more than a chunk is refused before anything is allocated for it.
    [[nodiscard]] Shape block_shape(ByteSpan in) const {
        const int rank = chunk_.shape.rank();
        if (in.size() < header_) throw corrupt("{} bytes are too few for a block's header, {}", in.size(), header_);
        if (const auto mode = load_big(in, 0, 2); mode != 0) {
            throw unsupported("the block has mode {}; only 0, the default one, is read", mode);
        }
        if (const auto found = load_big(in, 2, 2); std::cmp_not_equal(found, rank)) {
            throw corrupt("the block has {} dimensions, expected {}", found, rank);
        }
        Shape block;
        for (int d = 0; d < rank; ++d) block.push_back(load_big(in, 4 + 4 * static_cast<std::size_t>(d), 4));
        for (int d = 0; d < rank; ++d) {
            if (block[d] < 1 || block[d] > chunk_.shape[d]) {
                throw corrupt("the block is of {}, expected at most the chunk's {}", block.to_string(),
                              chunk_.shape.to_string());
            }
        }
        return block;
    }

    void fill(const MutableArrayView& out) const {
        const ElementBytes element = chunk_.fill.value_or(zero_element(chunk_.dtype));
        ArrayView all = view_bytes(element.data(), chunk_.dtype, {});
        all.shape = out.shape;
        all.strides = Strides::filled(out.shape.rank(), 0);
        copy_elements(all, out);
    }

    ChunkSpec chunk_;
    std::vector<CodecConfig> codecs_;
    CodecPipeline whole_;
    std::size_t header_;
};

std::unique_ptr<ArrayToBytesCodec> make_n5_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"codecs"});
    std::vector<CodecConfig> codecs;
    for (const Value& codec : configuration.at("codecs").as_array()) codecs.push_back(codec_from_json(codec));
    const int rank = in.shape.rank();
    Value reversed = Value::array();
    for (int d = rank; d-- > 0;) reversed.push_back(d);
    const Value* order = codecs.empty() ? nullptr : codecs[0].configuration.find("order");
    const Value* endian = codecs.size() < 2 ? nullptr : codecs[1].configuration.find("endian");
    const bool big = in.dtype.order() == ByteOrder::none || (endian != nullptr && *endian == Value("big"));
    const bool known = codecs.size() >= 2 && codecs.size() <= 3 && codecs[0].name == "transpose" && order != nullptr &&
                       (*order == reversed || *order == Value("F")) && codecs[1].name == "bytes" && big;
    if (!known || in.dtype.is_variable()) {
        throw invalid_argument(
            "codecs of numbers are a transpose of order {}, bytes with endian big, and at most one compressor; found "
            "{}",
            reversed.dump(), configuration.at("codecs").dump());
    }
    return std::make_unique<N5Codec>(in, std::move(codecs));
}

}  // namespace

extern constinit const CodecRow n5_default_codec{
    .name = "n5_default",
    .about = "a block of N5",
    .array_to_bytes = make_n5_codec,
    .short_notation = false,
};

}  // namespace tessera
