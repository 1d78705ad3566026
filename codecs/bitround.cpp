// "numcodecs.bitround": floats rounded to the first bits of their significand.
#include <tessera/error_text.h>
#include <tessera/round_bits.h>

#include "codec_row.h"
#include "numeric_filter.h"

namespace tessera {

namespace {

template <class Bits>
void round_bits(std::span<Bits> v, int dropped) {
    for (Bits& x : v) x = round_off(x, dropped);
}

class BitRoundCodec final : public NumericFilter {
public:
    BitRoundCodec(const ChunkSpec& in, int dropped) : NumericFilter(in, in.dtype, in.dtype), dropped_(dropped) {}

private:
    [[nodiscard]] NDArray forward(NDArray a) const override {
        if (dropped_ == 0) return a;
        switch (a.dtype().size()) {
            case 2:
                round_bits(elements<std::uint16_t>(a), dropped_);
                break;
            case 4:
                round_bits(elements<std::uint32_t>(a), dropped_);
                break;
            default:
                round_bits(elements<std::uint64_t>(a), dropped_);
                break;
        }
        return a;
    }
    [[nodiscard]] NDArray backward(NDArray a) const override { return a; }

    int dropped_;
};

std::unique_ptr<ArrayToArrayCodec> make_bitround_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"keepbits"});
    if (in.dtype.kind() != Kind::real) {
        throw invalid_argument("it is for floats, not for {}", in.dtype.to_string());
    }
    const int bits = fraction_bits(in.dtype);
    (void)configuration.at("keepbits");
    return std::make_unique<BitRoundCodec>(
        in, bits - static_cast<int>(integer_member(configuration, "keepbits", 0, 0, bits)));
}

constexpr CodecPart bitround_parts[] = {{"keepbits", CodecPart::Type::whole, {}, true}};

}  // namespace

extern constinit const CodecRow bitround_codec{
    .name = "numcodecs.bitround",
    .about = "floats rounded to bits: bitround:KEEPBITS",
    .array_to_array = make_bitround_codec,
    .parts = bitround_parts,
    .keeps_dtype = true,
    .encoding_only = R"({"keepbits": 0})",
};

}  // namespace tessera
