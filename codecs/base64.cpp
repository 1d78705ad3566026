// "numcodecs.base64": bytes as text of four characters for each three.
#include <tessera/error_text.h>

#include <array>

#include "codec_row.h"
#include "compressor.h"

namespace tessera {

namespace {

constexpr std::string_view base64_alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::uint8_t no_base64 = 64;
constexpr auto base64_values = [] {
    std::array<std::uint8_t, 256> values{};
    values.fill(no_base64);
    for (std::size_t i = 0; i < base64_alphabet.size(); ++i) {
        values[static_cast<unsigned char>(base64_alphabet[i])] = static_cast<std::uint8_t>(i);
    }
    return values;
}();

class Base64Codec final : public Compressor {
public:
    void encode(ByteSpan in, Buffer& out) const override {
        out.reset(static_cast<std::size_t>(encoded_bound(in.size())));
        std::byte* to = out.data();
        for (; !in.empty(); in = in.subspan(std::min<std::size_t>(3, in.size()))) {
            std::uint32_t bits = 0;
            for (std::size_t i = 0; i < 3; ++i) {
                bits = bits << 8 | (i < in.size() ? std::to_integer<std::uint32_t>(in[i]) : 0);
            }
            for (std::size_t i = 0; i < 4; ++i) {
                const char c = i <= in.size() ? base64_alphabet[bits >> (18 - 6 * i) & 63] : '=';
                *to++ = static_cast<std::byte>(c);
            }
        }
    }

    [[nodiscard]] std::uint64_t encoded_bound(std::uint64_t in_size) const override { return (in_size + 2) / 3 * 4; }
    [[nodiscard]] bool fixed_size() const override { return true; }

protected:
    [[nodiscard]] std::optional<std::size_t> decompress(ByteSpan in, MutableByteSpan out) const override {
        const std::size_t size = decoded_size(in);
        if (size > out.size()) return std::nullopt;
        std::uint32_t bits = 0;
        int held = 0;
        std::size_t written = 0;
        for (const std::byte c : in.first(in.size() - padding(in))) {
            const std::uint8_t value = base64_values[std::to_integer<std::size_t>(c)];
            if (value == no_base64) throw corrupt("the byte {:#04x} is no base64", std::to_integer<int>(c));
            bits = (bits << 6 | value) & 0xffff;
            held += 6;
            if (held < 8) continue;
            held -= 8;
            out[written++] = static_cast<std::byte>(bits >> held & 0xff);
        }
        return size;
    }

    [[nodiscard]] std::optional<std::uint64_t> claimed_size(ByteSpan in) const override { return decoded_size(in); }

private:
    static std::size_t padding(ByteSpan in) {
        if (in.empty() || in.back() != std::byte{'='}) return 0;
        return in[in.size() - 2] == std::byte{'='} ? 2 : 1;
    }
    static std::size_t decoded_size(ByteSpan in) {
        if (in.size() % 4 != 0) throw corrupt("{} bytes are no base64, which has a multiple of 4", in.size());
        return in.size() / 4 * 3 - padding(in);
    }
};

std::unique_ptr<BytesToBytesCodec> make_base64_codec(const Value& configuration, std::int64_t /*item_size*/) {
    require_known_members(configuration, {});
    return std::make_unique<Base64Codec>();
}

}  // namespace

extern constinit const CodecRow base64_codec{
    .name = "numcodecs.base64",
    .about = "bytes as text",
    .bytes_to_bytes = make_base64_codec,
};

}  // namespace tessera
