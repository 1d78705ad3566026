// "scale_offset": (x − offset) × scale, computed in the array's own dtype. v3.
#include <cstring>

#include "codec_row.h"
#include "numeric_filter.h"

namespace tessera {

namespace {

/// Python's //.
template <class T>
T divide(T a, T b) {
    if constexpr (std::integral<T>) {
        return floor_quotient(a, b);
    } else {
        return T(a / b);
    }
}

class ScaleOffsetCodec final : public NumericFilter {
public:
    ScaleOffsetCodec(const ChunkSpec& in, const Value& offset, const Value& scale)
        : NumericFilter(in, in.dtype, in.dtype) {
        require_numbers(in.dtype, "the dtype");
        offset_ = element(offset, "offset");
        scale_ = element(scale, "scale");
    }

private:
    [[nodiscard]] ElementBytes element(const Value& v, std::string_view name) const {
        return in_context([&] { return std::string(name); },
                          [&] { return element_from_value(native_decoded(), v, Assign::exact); });
    }

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

    [[nodiscard]] NDArray forward(NDArray a) const override {
        return each(std::move(a), []<class T>(T x, T offset, T scale) { return times(minus(x, offset), scale); });
    }
    [[nodiscard]] NDArray backward(NDArray a) const override {
        return each(std::move(a), []<class T>(T x, T offset, T scale) { return plus(divide(x, scale), offset); });
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
