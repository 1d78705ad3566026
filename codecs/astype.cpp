// "numcodecs.astype": elements cast to another type of number.
#include "codec_row.h"
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

std::unique_ptr<ArrayToArrayCodec> make_astype_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"encode_dtype", "decode_dtype"});
    return std::make_unique<AsTypeCodec>(in, dtype_member(configuration, "decode_dtype", in.dtype),
                                         DType::parse(configuration.at("encode_dtype").as_string()));
}

constexpr CodecPart astype_parts[] = {{"encode_dtype", CodecPart::Type::text, {}, true}};

/// "decode_dtype" defaults to the dtype of the elements that enter the codec.
void complete_astype(Value& configuration, const DType& dtype) {
    set_missing(configuration, "decode_dtype", dtype.str());
}

}  // namespace

extern constinit const CodecRow astype_codec{
    .name = "numcodecs.astype",
    .about = "numbers cast: astype:DTYPE",
    .array_to_array = make_astype_codec,
    .parts = astype_parts,
    .complete = complete_astype,
    .decoded_dtype = "decode_dtype",
};

}  // namespace tessera
