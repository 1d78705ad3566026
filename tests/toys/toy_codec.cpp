// A codec as one would add it: this file, and its name in codecs/codec_table.cpp. It adds a number to each byte.
#include <tessera/error.h>

#include <algorithm>
#include <optional>

#include "codec_row.h"
#include "compressor.h"

namespace tessera {

namespace {

class ToyCodec final : public Compressor {
public:
    explicit ToyCodec(std::int64_t by) : by_(static_cast<unsigned char>(by)) {}

    void encode(ByteSpan in, Buffer& out) const override {
        out.reset(in.size() + 1);
        std::ranges::transform(in, out.data(), [&](std::byte b) { return turned(b, by_); });
        out.data()[in.size()] = end;
    }
    [[nodiscard]] std::uint64_t encoded_bound(std::uint64_t in_size) const override { return in_size + 1; }

protected:
    [[nodiscard]] std::optional<std::size_t> decompress(ByteSpan in, MutableByteSpan out) const override {
        if (in.empty() || in.back() != end) throw corrupt("the toy's end is missing");
        const ByteSpan data = in.first(in.size() - 1);
        if (data.size() > out.size()) return std::nullopt;
        const auto back = static_cast<unsigned char>(256 - by_);
        std::ranges::transform(data, out.begin(), [&](std::byte b) { return turned(b, back); });
        return data.size();
    }
    [[nodiscard]] std::optional<std::uint64_t> claimed_size(ByteSpan in) const override {
        return in.empty() ? 0 : in.size() - 1;
    }

private:
    static constexpr std::byte end{0x2e};
    static std::byte turned(std::byte b, unsigned char by) {
        return static_cast<std::byte>(std::to_integer<unsigned char>(b) + by);
    }
    unsigned char by_;
};

std::unique_ptr<BytesToBytesCodec> make_toy_codec(const Value& configuration, std::int64_t /*item_size*/) {
    require_known_members(configuration, {"by"});
    return std::make_unique<ToyCodec>(integer_member(configuration, "by", 1, 0, 255));
}

constexpr CodecPart toy_parts[] = {{"by", CodecPart::Type::whole, "1"}};

}  // namespace

extern constinit const CodecRow toy_codec{
    .name = "numcodecs.toy",
    .about = "each byte plus a number: toy:BY",
    .bytes_to_bytes = make_toy_codec,
    .parts = toy_parts,
    .compressor = true,
};

}  // namespace tessera
