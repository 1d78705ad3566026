// "bitround": numbers rounded to their first bits: floats to those of the significand, integers and times to those from
// the highest bit that is set. v3. ("numcodecs.bitround" is for floats only: bitround.cpp.)
#include <tessera/error_text.h>
#include <tessera/round_bits.h>

#include <bit>
#include <limits>

#include "codec_row.h"
#include "numeric_filter.h"

namespace tessera {

namespace {

/// At the end of the range down.
template <class Bits>
Bits rounded_to(Bits x, int dropped) {
    const auto mask = static_cast<Bits>(~Bits{0} << dropped);
    const Bits made = round_off(x, dropped);
    return made < static_cast<Bits>(x & mask) ? mask : made;
}

class RoundedBitsCodec final : public NumericFilter {
public:
    /// `significand` is the number of bits of a float's fraction; 0 for integers.
    RoundedBitsCodec(const ChunkSpec& in, std::int64_t keep, int significand, std::int64_t component)
        : NumericFilter(in, in.dtype, in.dtype), keep_(keep), significand_(significand), component_(component) {
        encode_fill(in);
    }

private:
    [[nodiscard]] NDArray forward(NDArray a) const override {
        switch (component_) {
            case 1:
                return round<std::uint8_t>(std::move(a));
            case 2:
                return round<std::uint16_t>(std::move(a));
            case 4:
                return round<std::uint32_t>(std::move(a));
            default:
                return round<std::uint64_t>(std::move(a));
        }
    }
    [[nodiscard]] NDArray backward(NDArray a) const override { return a; }

    template <class Bits>
    [[nodiscard]] NDArray round(NDArray a) const {
        const MutableByteSpan bytes = a.bytes();
        auto* const first = reinterpret_cast<Bits*>(bytes.data());
        for (Bits& x : std::span(first, bytes.size() / sizeof(Bits))) {
            const std::int64_t dropped = (significand_ > 0 ? significand_ : std::bit_width(x)) - keep_;
            if (dropped > 0) x = rounded_to(x, static_cast<int>(dropped));
        }
        return a;
    }

    std::int64_t keep_;
    int significand_;
    std::int64_t component_;
};

std::unique_ptr<ArrayToArrayCodec> make_rounded_bits_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"keepbits"});
    (void)configuration.at("keepbits");
    const std::int64_t keep = integer_member(configuration, "keepbits", 1, 1, INT32_MAX);
    std::int64_t size = in.dtype.size();
    switch (in.dtype.kind()) {
        case Kind::integer:
        case Kind::unsigned_integer:
        case Kind::datetime:
        case Kind::timedelta:
            return std::make_unique<RoundedBitsCodec>(in, keep, 0, size);
        case Kind::complex:
            size /= 2;
            [[fallthrough]];
        case Kind::bfloat16:
        case Kind::real:
            return std::make_unique<RoundedBitsCodec>(in, keep, fraction_bits(in.dtype), size);
        default:
            throw invalid_argument("it is for numbers and times, not for {}", in.dtype.to_string());
    }
}

}  // namespace

extern constinit const CodecRow rounded_bits_codec{
    .name = "bitround",
    .about = "numbers rounded to their first bits",
    .array_to_array = make_rounded_bits_codec,
    .short_notation = false,
    .keeps_dtype = true,
    .encoding_only = R"({"keepbits": 1})",
};

}  // namespace tessera
