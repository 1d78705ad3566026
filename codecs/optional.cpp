// "optional": elements that may be missing, as zarrs stores them; only read. The lengths of the mask and of the data,
// of 8 little-endian bytes each, the mask, true for each element that is there, and those elements in C order. Mask and
// data each have a chain of codecs of their own. v3. Missing elements read as the fill value.
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/little_endian.h>
#include <tessera/pipeline.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "codec_row.h"

namespace tessera {

namespace {

std::vector<CodecConfig> codecs_member(const Value& configuration, std::string_view name) {
    std::vector<CodecConfig> codecs;
    for (const Value& codec : configuration.at(name).as_array()) codecs.push_back(codec_from_json(codec));
    return codecs;
}

bool is_there(std::byte mask) {
    return mask != std::byte{0};
}

class OptionalCodec final : public ArrayToBytesCodec {
public:
    OptionalCodec(const ChunkSpec& in, std::span<const CodecConfig> mask_codecs, std::vector<CodecConfig> data_codecs)
        : chunk_(in),
          mask_(in_context([] { return "mask_codecs"; },
                           [&] {
                               return CodecPipeline({DType::scalar(Kind::boolean, 1), in.shape, {}}, mask_codecs);
                           })),
          data_codecs_(std::move(data_codecs)) {
        in_context([] { return "data_codecs"; }, [&] { (void)data_pipeline(1); });
    }

    void encode(const ArrayView& /*in*/, Buffer& /*out*/) const override { throw no_encoder(); }

    void decode(ByteSpan in, const MutableArrayView& out) const override {
        constexpr std::size_t header = 16;
        if (in.size() < header) throw corrupt("{} bytes are too few for two lengths", in.size());
        const std::uint64_t mask_size = load_little<std::uint64_t>(in.data());
        const std::uint64_t data_size = load_little<std::uint64_t>(in.data() + 8);
        const std::uint64_t rest = in.size() - header;
        if (mask_size > rest || data_size != rest - mask_size) {
            throw corrupt("a mask of {} bytes and data of {} are in {}", mask_size, data_size, rest);
        }
        CodecScratch scratch;
        NDArray mask(DType::scalar(Kind::boolean, 1), chunk_.shape);
        const ByteSpan mask_bytes = in.subspan(header, static_cast<std::size_t>(mask_size));
        in_context([] { return "mask_codecs"; }, [&] { mask_.decode(mask_bytes, mask, scratch); });
        const auto count = static_cast<std::int64_t>(std::ranges::count_if(mask.bytes(), is_there));
        NDArray present(chunk_.dtype, {count});
        const ByteSpan data = in.subspan(header + static_cast<std::size_t>(mask_size));
        if (count > 0) {
            in_context([] { return "data_codecs"; }, [&] { data_pipeline(count).decode(data, present, scratch); });
        } else if (!data.empty()) {
            throw corrupt("no element is there, but {} bytes of data are", data.size());
        }
        copy_elements(spread(present, mask), out);
    }

    [[nodiscard]] std::optional<std::uint64_t> encoded_size() const override { return std::nullopt; }

private:
    /// The elements of the chunk, of which `present` are those that the mask says are there.
    [[nodiscard]] NDArray spread(const NDArray& present, const NDArray& mask) const {
        const ElementBytes fill = chunk_.fill.value_or(zero_element(chunk_.dtype));
        NDArray elements(chunk_.dtype, chunk_.shape);
        const std::byte* from = present.bytes().data();
        std::byte* to = elements.bytes().data();
        const auto size = static_cast<std::size_t>(chunk_.dtype.size());
        for (const std::byte b : mask.bytes()) {
            std::memcpy(to, is_there(b) ? from : fill.data(), size);
            if (is_there(b)) from += size;
            to += size;
        }
        return elements;
    }

    [[nodiscard]] CodecPipeline data_pipeline(std::int64_t count) const {
        return CodecPipeline({chunk_.dtype, {count}, chunk_.fill}, data_codecs_);
    }

    ChunkSpec chunk_;
    CodecPipeline mask_;
    std::vector<CodecConfig> data_codecs_;
};

std::unique_ptr<ArrayToBytesCodec> make_optional_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"mask_codecs", "data_codecs"});
    if (in.dtype.is_variable()) throw unsupported("elements of {} that may be missing", in.dtype.to_string());
    return std::make_unique<OptionalCodec>(in, codecs_member(configuration, "mask_codecs"),
                                           codecs_member(configuration, "data_codecs"));
}

}  // namespace

extern constinit const CodecRow optional_codec{
    .name = "optional",
    .about = "elements that may be missing, of zarrs; only read",
    .array_to_bytes = make_optional_codec,
    .short_notation = false,
    .only_decodes = true,
};

extern constinit const CodecRow zarrs_optional_codec{
    .name = "zarrs.optional",
    .about = "the same under its newer name",
    .array_to_bytes = make_optional_codec,
    .short_notation = false,
    .only_decodes = true,
};

}  // namespace tessera
