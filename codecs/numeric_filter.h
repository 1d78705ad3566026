// What numcodecs' filters over numbers share: they see a chunk as a flat sequence in C order, whose bytes they take as
// elements of the dtype that they are configured with.
#pragma once

#include <tessera/codec.h>

#include "numbers.h"

namespace tessera {

/// CodecRow::complete of the filters that count: "dtype" is that of the elements, "astype" the same.
void complete_number_dtypes(Value& configuration, const DType& dtype);

class NumericFilter : public ArrayToArrayCodec {
public:
    [[nodiscard]] const ChunkSpec& encoded() const final { return encoded_; }
    [[nodiscard]] NDArray encode(const ArrayView& in) const final;
    /// `out` may have the other byte order too.
    void decode(const ArrayView& in, const MutableArrayView& out) const final;

protected:
    /// Elements of `in.dtype` are taken as elements of `decoded`, as NumPy's view() does; throws invalid_argument
    /// naming both where their sizes differ. Encoded, they are of dtype `encoded`.
    NumericFilter(const ChunkSpec& in, const DType& decoded, const DType& encoded);

    [[nodiscard]] DType native_decoded() const { return decoded_.with_order(native_order); }
    [[nodiscard]] DType native_encoded() const { return encoded_.dtype.with_order(native_order); }

private:
    /// Elements in host order: of native_decoded(), to give ones of native_encoded(), and back.
    [[nodiscard]] virtual NDArray forward(NDArray a) const = 0;
    [[nodiscard]] virtual NDArray backward(NDArray a) const = 0;
    /// Whether the codec has a way to do so at once, in whatever byte orders elements come and go.
    [[nodiscard]] virtual bool at_once() const { return false; }
    /// That way: `in` are elements of decoded(), to give packed ones of encoded(), and back. false where it does not
    /// lead to such memory.
    [[nodiscard]] virtual bool forward_to(const ArrayView& /*in*/, const MutableArrayView& /*out*/) const {
        return false;
    }
    [[nodiscard]] virtual bool backward_to(const ArrayView& /*in*/, const MutableArrayView& /*out*/) const {
        return false;
    }

    DType in_dtype_;
    DType decoded_;
    ChunkSpec encoded_;
};

}  // namespace tessera
