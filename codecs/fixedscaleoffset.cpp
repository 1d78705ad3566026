// "numcodecs.fixedscaleoffset": (x − offset) × scale, rounded to whole numbers.
#include <tessera/error_text.h>

#include "codec_row.h"
#include "numeric_filter.h"
#include "scaling.h"

namespace tessera {

namespace {

class FixedScaleOffsetCodec final : public NumericFilter {
public:
    FixedScaleOffsetCodec(const ChunkSpec& in, const DType& dtype, const DType& astype, Value offset, Value scale)
        : NumericFilter(in, dtype, astype), offset_(std::move(offset)), scale_(std::move(scale)) {
        require_numbers(dtype, "dtype");
        require_numbers(astype, "astype");
    }

private:
    [[nodiscard]] NDArray forward(NDArray a) const override {
        a = compute(std::move(a), Operation::subtract, offset_);
        a = compute(std::move(a), Operation::multiply, scale_);
        return cast_numbers(rounded(std::move(a)), native_encoded());
    }

    [[nodiscard]] NDArray backward(NDArray a) const override {
        a = compute(std::move(a), Operation::divide, scale_);
        a = compute(std::move(a), Operation::add, offset_);
        return cast_numbers(std::move(a), native_decoded());
    }

    Value offset_;
    Value scale_;
};

Value number_member(const Value& configuration, std::string_view name) {
    const Value& v = configuration.at(name);
    if (!v.is_integer() && !v.is_double()) {
        throw invalid_argument("{} is {}, expected a number of at most 64 bits", name, v.dump());
    }
    return v;
}

std::unique_ptr<ArrayToArrayCodec> make_fixedscaleoffset_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"offset", "scale", "dtype", "astype"});
    const DType dtype = dtype_member(configuration, "dtype", in.dtype);
    return std::make_unique<FixedScaleOffsetCodec>(in, dtype, dtype_member(configuration, "astype", dtype),
                                                   number_member(configuration, "offset"),
                                                   number_member(configuration, "scale"));
}

constexpr CodecPart fixedscaleoffset_parts[] = {{"offset", CodecPart::Type::number, {}, true},
                                                {"scale", CodecPart::Type::number, {}, true},
                                                {"astype", CodecPart::Type::text}};

}  // namespace

extern constinit const CodecRow fixedscaleoffset_codec{
    .name = "numcodecs.fixedscaleoffset",
    .about = "scaled and rounded: fixedscaleoffset:OFFSET:SCALE:ASTYPE",
    .array_to_array = make_fixedscaleoffset_codec,
    .parts = fixedscaleoffset_parts,
    .complete = complete_number_dtypes,
    .decoded_dtype = "dtype",
};

}  // namespace tessera
