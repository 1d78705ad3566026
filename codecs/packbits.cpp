// "numcodecs.packbits": Booleans as bits, the first in the highest bit. The first byte holds the number of unused bits
// in the last byte.
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>

#include "codec_row.h"

namespace tessera {

namespace {

class PackBitsCodec final : public ArrayToArrayCodec {
public:
    explicit PackBitsCodec(const ChunkSpec& in)
        : shape_(in.shape), encoded_{"|u1", {1 + ceil_div(element_count(in.shape), 8)}, std::nullopt} {}

    [[nodiscard]] const ChunkSpec& encoded() const override { return encoded_; }

    [[nodiscard]] NDArray encode(const ArrayView& in) const override {
        const NDArray bits = NDArray::copy_of(in);
        NDArray out(encoded_.dtype, encoded_.shape);
        const auto bytes = out.values<std::uint8_t>();
        std::ranges::fill(bytes, 0);
        bytes[0] = padding();
        for (std::size_t i = 0; i < bits.bytes().size(); ++i) {
            if (bits.bytes()[i] != std::byte{0}) bytes[1 + i / 8] |= static_cast<std::uint8_t>(0x80 >> i % 8);
        }
        return out;
    }

    void decode(const ArrayView& in, const MutableArrayView& out) const override {
        const NDArray packed = NDArray::copy_of(in);
        const auto bytes = packed.values<std::uint8_t>();
        if (bytes[0] != padding()) {
            throw corrupt("the first byte says that {} bits are padding, but a chunk of {} elements has {}", bytes[0],
                          element_count(shape_), padding());
        }
        NDArray bits("|b1", shape_);
        for (std::size_t i = 0; i < bits.bytes().size(); ++i) {
            bits.bytes()[i] = static_cast<std::byte>(bytes[1 + i / 8] >> (7 - i % 8) & 1);
        }
        copy_elements(bits, out);
    }

private:
    [[nodiscard]] std::uint8_t padding() const { return static_cast<std::uint8_t>(-element_count(shape_) & 7); }

    Shape shape_;
    ChunkSpec encoded_;
};

std::unique_ptr<ArrayToArrayCodec> make_packbits_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {});
    if (in.dtype.kind() != Kind::boolean) {
        throw invalid_argument("it is for booleans, not for {}", in.dtype.to_string());
    }
    return std::make_unique<PackBitsCodec>(in);
}

}  // namespace

extern constinit const CodecRow packbits_codec{
    .name = "numcodecs.packbits",
    .about = "booleans as bits",
    .array_to_array = make_packbits_codec,
};

}  // namespace tessera
