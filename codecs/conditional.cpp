// "conditional": bytes→bytes codecs; each chunk says which of them were applied. v3. The chunk begins with a mask, in
// which bit i of the first byte on, the lowest first, is set if codec i was.
#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>

#include <algorithm>
#include <vector>

#include "codec_row.h"

namespace tessera {

namespace {

/// A codec whose list is nested deeper than this is refused.
constexpr int deepest_condition = 4;
constexpr std::size_t most_codecs = 64;

class ConditionalCodec final : public BytesToBytesCodec {
public:
    struct Stage {
        std::string name;
        std::unique_ptr<BytesToBytesCodec> codec;
    };

    ConditionalCodec(std::vector<Stage> stages, std::size_t header, std::optional<Error> encoder_error)
        : stages_(std::move(stages)), header_(header), encoder_error_(std::move(encoder_error)) {}

    /// Applies each codec that makes the bytes fewer.
    void encode(ByteSpan in, Buffer& out) const override {
        if (encoder_error_) throw *encoder_error_;
        std::vector<std::byte> mask(header_);
        Buffer held;
        Buffer made;
        ByteSpan bytes = in;
        for (std::size_t i = 0; i < stages_.size(); ++i) {
            stages_[i].codec->encode(bytes, made);
            if (made.size() >= bytes.size()) continue;
            mask[i / 8] |= std::byte{1} << i % 8;
            std::swap(held, made);
            bytes = held;
        }
        out.reset(header_ + bytes.size());
        std::ranges::copy(mask, out.data());
        std::ranges::copy(bytes, out.data() + header_);
    }

    void decode(ByteSpan in, MutableByteSpan out) const override {
        Buffer held;
        std::size_t last = 0;
        ByteSpan bytes = decode_outer(in, held, out.size(), last);
        if (last < stages_.size()) {
            in_context([&] { return stages_[last].name; }, [&] { stages_[last].codec->decode(bytes, out); });
        } else {
            if (bytes.size() != out.size()) {
                throw corrupt("{} bytes were found, which no codec was applied to, expected {}", bytes.size(),
                              out.size());
            }
            std::ranges::copy(bytes, out.begin());
        }
    }

    [[nodiscard]] bool decode_unsized(ByteSpan in, Buffer& out, std::uint64_t limit) const override {
        Buffer held;
        std::size_t last = 0;
        ByteSpan bytes = decode_outer(in, held, limit, last);
        if (last < stages_.size()) {
            return in_context([&] { return stages_[last].name; },
                              [&] { return stages_[last].codec->decode_unsized(bytes, out, limit); });
        }
        if (bytes.size() > limit) return false;
        out = Buffer(bytes);
        return true;
    }

    [[nodiscard]] std::uint64_t encoded_bound(std::uint64_t in_size) const override {
        std::uint64_t most = in_size;
        for (const Stage& stage : stages_) most = std::max(most, stage.codec->encoded_bound(most));
        return header_ + most;
    }

private:
    [[nodiscard]] bool applied(ByteSpan mask, std::size_t i) const {
        return (mask[i / 8] >> i % 8 & std::byte{1}) != std::byte{0};
    }

    /// Undoes all codecs that were applied but the innermost, which is `last` (the number of codecs if none was).
    [[nodiscard]] ByteSpan decode_outer(ByteSpan in, Buffer& held, std::uint64_t decoded, std::size_t& last) const {
        if (in.size() < header_) throw corrupt("{} bytes are too few for the mask, which has {}", in.size(), header_);
        const ByteSpan mask = in.first(header_);
        for (std::size_t i = stages_.size(); i < 8 * header_; ++i) {
            if (applied(mask, i)) throw corrupt("the mask has bit {}, but there are {} codecs", i, stages_.size());
        }
        last = 0;
        while (last < stages_.size() && !applied(mask, last)) ++last;
        ByteSpan bytes = in.subspan(header_);
        Buffer made;
        for (std::size_t i = stages_.size(); i-- > last + 1;) {
            if (!applied(mask, i)) continue;
            in_context([&] { return stages_[i].name; },
                       [&] {
                           if (stages_[i].codec->decode_unsized(bytes, made, bound_before(i, decoded))) return;
                           throw corrupt("the data decode to more than the {} bytes expected",
                                         bound_before(i, decoded));
                       });
            std::swap(held, made);
            bytes = held;
        }
        return bytes;
    }

    /// The most bytes that go into codec `i`.
    [[nodiscard]] std::uint64_t bound_before(std::size_t i, std::uint64_t decoded) const {
        std::uint64_t most = decoded;
        for (std::size_t k = 0; k < i; ++k) most = std::max(most, stages_[k].codec->encoded_bound(most));
        return most;
    }

    std::vector<Stage> stages_;
    std::size_t header_;  ///< bytes of the mask
    std::optional<Error> encoder_error_;
};

int depth_of(const Value& configuration) {
    int deepest = 1;
    const Value* list = configuration.find("codecs");
    if (list == nullptr || !list->is_array()) return deepest;
    for (const Value& codec : list->as_array()) {
        const Value* inner = codec.is_object() ? codec.find("configuration") : nullptr;
        if (inner != nullptr && inner->is_object()) deepest = std::max(deepest, 1 + depth_of(*inner));
    }
    return deepest;
}

std::unique_ptr<BytesToBytesCodec> make_conditional_codec(const Value& configuration, std::int64_t item_size) {
    require_known_members(configuration, {"codecs", "header_bits"});
    if (depth_of(configuration) > deepest_condition) {
        throw unsupported("conditions are nested more than {} deep", deepest_condition);
    }
    const std::size_t count = configuration.at("codecs").as_array().size();
    if (count > most_codecs) throw unsupported("there are {} codecs; at most {} are read", count, most_codecs);
    std::vector<ConditionalCodec::Stage> stages;
    std::optional<Error> encoder_error;
    for (const Value& json : configuration.at("codecs").as_array()) {
        const CodecConfig codec = codec_from_json(json);
        const CodecRow* row = find_codec(codec.name);
        if (row == nullptr || !row->bytes_to_bytes) {
            throw unsupported("codec \"{}\" is not known, or does not make bytes of bytes", codec.name);
        }
        const auto make = [&](const Value& settings) { return row->bytes_to_bytes(settings, item_size); };
        stages.push_back(
            {codec.name, in_context([&] { return codec.name; },
                                    [&] { return made_to_decode(*row, codec.configuration, encoder_error, make); })});
    }
    const auto least = static_cast<std::int64_t>(stages.size());
    constexpr std::int64_t most = std::int64_t{1} << 16;
    const std::int64_t bits = integer_member(configuration, "header_bits", (least + 7) / 8 * 8, least, most);
    if (bits % 8 != 0) throw invalid_argument("header_bits is {}, expected a multiple of 8", bits);
    return std::make_unique<ConditionalCodec>(std::move(stages), static_cast<std::size_t>(bits / 8),
                                              std::move(encoder_error));
}

}  // namespace

extern constinit const CodecRow conditional_codec{
    .name = "conditional",
    .about = "codecs that each chunk has or has not",
    .bytes_to_bytes = make_conditional_codec,
    .short_notation = false,
};

}  // namespace tessera
