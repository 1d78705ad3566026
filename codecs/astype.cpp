// "numcodecs.astype": elements cast to another type of number.
#include "codec_makers.h"
#include "numeric_filter.h"

namespace tessera {

namespace {

class AsTypeCodec final : public NumericFilter {
public:
    AsTypeCodec(const ChunkSpec& in, const DType& decode_dtype, const DType& encode_dtype)
        : NumericFilter(in, decode_dtype, encode_dtype) {
        for (const DType& dtype : {decode_dtype, encode_dtype}) with_number(dtype, [](auto) {});
    }

private:
    [[nodiscard]] NDArray forward(NDArray a) const override { return cast_numbers(std::move(a), native_encoded()); }
    [[nodiscard]] NDArray backward(NDArray a) const override { return cast_numbers(std::move(a), native_decoded()); }
};

}  // namespace

std::unique_ptr<ArrayToArrayCodec> make_astype_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"encode_dtype", "decode_dtype"});
    return std::make_unique<AsTypeCodec>(in, dtype_member(configuration, "decode_dtype", in.dtype),
                                         DType::parse(configuration.at("encode_dtype").as_string()));
}

}  // namespace tessera
