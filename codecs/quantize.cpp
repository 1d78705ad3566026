// "numcodecs.quantize": floats rounded to a number of decimal digits, with a power of two as the scale.
#include <cmath>

#include <tessera/error_text.h>

#include "codec_row.h"
#include "numeric_filter.h"
#include "scaling.h"

namespace tessera {

namespace {

/// numcodecs' formula, with Python's log(x, base) = log(x) / log(base).
double scale_for(std::int64_t digits) {
    const double precision = std::pow(10.0, static_cast<double>(-digits));
    double exponent = std::log(precision) / std::log(10.0);
    exponent = exponent < 0 ? std::floor(exponent) : std::ceil(exponent);
    return std::exp2(std::ceil(std::log(std::pow(10.0, -exponent)) / std::log(2.0)));
}

class QuantizeCodec final : public NumericFilter {
public:
    QuantizeCodec(const ChunkSpec& in, const DType& dtype, const DType& astype, std::int64_t digits)
        : NumericFilter(in, dtype, astype), scale_(scale_for(digits)) {
        for (const DType& d : {dtype, astype}) {
            if (d.kind() != Kind::real) throw invalid_argument("it is for floats, not for {}", d.str());
        }
    }

private:
    [[nodiscard]] NDArray forward(NDArray a) const override {
        a = rounded(compute(std::move(a), Operation::multiply, scale_));
        return cast_numbers(compute(std::move(a), Operation::divide, scale_), native_encoded());
    }
    [[nodiscard]] NDArray backward(NDArray a) const override { return cast_numbers(std::move(a), native_decoded()); }

    double scale_;
};

std::unique_ptr<ArrayToArrayCodec> make_quantize_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"digits", "dtype", "astype"});
    const DType dtype = dtype_member(configuration, "dtype", in.dtype);
    (void)configuration.at("digits");
    return std::make_unique<QuantizeCodec>(in, dtype, dtype_member(configuration, "astype", dtype),
                                           integer_member(configuration, "digits", 0, -300, 300));
}

constexpr CodecPart quantize_parts[] = {{"digits", CodecPart::Type::whole, {}, true},
                                        {"astype", CodecPart::Type::text}};

}  // namespace

extern constinit const CodecRow quantize_codec{
    .name = "numcodecs.quantize",
    .about = "floats rounded to decimal digits: quantize:DIGITS:ASTYPE",
    .array_to_array = make_quantize_codec,
    .parts = quantize_parts,
    .complete = complete_number_dtypes,
    .decoded_dtype = "dtype",
    .encoding_only = R"({"digits": 0})",
};

}  // namespace tessera
