// "scale_offset": (x − offset) × scale, computed in the array's own dtype. v3. A value that the dtype cannot hold is an
// error, as the registered text requires, and so is a quotient of integers with a remainder.
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "codec_row.h"
#include "numeric_filter.h"

namespace tessera {

namespace {

__extension__ using Wide = __int128;  // holds all but the largest products of 64-bit integers

template <class T>
bool fits(Wide v) {
    return v >= Wide{std::numeric_limits<T>::min()} && v <= Wide{std::numeric_limits<T>::max()};
}

class ScaleOffsetCodec final : public NumericFilter {
public:
    ScaleOffsetCodec(const ChunkSpec& in, const Value& offset, const Value& scale)
        : NumericFilter(in, in.dtype, in.dtype) {
        require_numbers(in.dtype, "the dtype");
        offset_ = scalar_member(native_decoded(), offset, "offset");
        scale_ = scalar_member(native_decoded(), scale, "scale");
        encode_fill(in);
    }

private:
    /// Applies body(x, offset, scale) to every x.
    template <class Body>
    [[nodiscard]] NDArray each(NDArray a, const Body& body) const {
        with_number(a.dtype(), [&](auto type) {
            using T = decltype(type);
            if constexpr (std::convertible_to<T, double>) {
                T offset;
                T scale;
                std::memcpy(&offset, offset_.data(), sizeof offset);
                std::memcpy(&scale, scale_.data(), sizeof scale);
                for (T& x : elements<T>(a)) x = body(x, offset, scale);
            }
        });
        return a;
    }

    template <class T>
    static T encoded_integer(T x, T offset, T scale) {
        Wide product = 0;
        const bool overflows = __builtin_mul_overflow(Wide{x} - Wide{offset}, Wide{scale}, &product);
        if (overflows || !fits<T>(product)) {
            throw invalid_argument("({} - {}) × {} is beyond the range of the elements", x, offset, scale);
        }
        return static_cast<T>(product);
    }

    template <class T>
    static T decoded_integer(T x, T offset, T scale) {
        if (scale == T(0) || Wide{x} % Wide{scale} != 0) {
            throw corrupt("{} is no multiple of the scale {}", x, scale);
        }
        const Wide sum = Wide{x} / Wide{scale} + Wide{offset};
        if (!fits<T>(sum)) {
            throw corrupt("{} / {} + {} is beyond the range of the elements", x, scale, offset);
        }
        return static_cast<T>(sum);
    }

    [[nodiscard]] NDArray forward(NDArray a) const override {
        return each(std::move(a), []<class T>(T x, T offset, T scale) {
            if constexpr (std::integral<T>)
                return encoded_integer(x, offset, scale);
            else
                return times(minus(x, offset), scale);
        });
    }
    [[nodiscard]] NDArray backward(NDArray a) const override {
        return each(std::move(a), []<class T>(T x, T offset, T scale) {
            if constexpr (std::integral<T>)
                return decoded_integer(x, offset, scale);
            else
                return plus(T(x / scale), offset);
        });
    }

    ElementBytes offset_;
    ElementBytes scale_;
};

std::unique_ptr<ArrayToArrayCodec> make_scale_offset_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"offset", "scale"});
    const Value* offset = given_member(configuration, "offset");
    const Value* scale = given_member(configuration, "scale");
    return std::make_unique<ScaleOffsetCodec>(in, offset ? *offset : Value(0), scale ? *scale : Value(1));
}

constexpr CodecPart scale_offset_parts[] = {{"offset", CodecPart::Type::number, "0"},
                                            {"scale", CodecPart::Type::number, "1"}};

}  // namespace

extern constinit const CodecRow scale_offset_codec{
    .name = "scale_offset",
    .about = "scaled: scale_offset:OFFSET:SCALE",
    .array_to_array = make_scale_offset_codec,
    .parts = scale_offset_parts,
    .keeps_dtype = true,
};

}  // namespace tessera
