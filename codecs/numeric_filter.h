// Base of numcodecs' filters over numbers. They see a chunk as a flat sequence in C order, and reinterpret its bytes as
// elements of the dtype in their configuration.
#pragma once

#include <span>

#include <tessera/codec.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>

namespace tessera {

/// CodecRow::complete of arithmetic filters: "dtype" defaults to that of the elements, "astype" to "dtype".
void complete_number_dtypes(Value& configuration, const DType& dtype);

/// Throws unsupported, naming the member, unless `dtype` is an integer or a float, or `complex` numbers if allowed.
void require_numbers(const DType& dtype, std::string_view member, bool complex = false);

/// All elements of a packed array in host order. T is the type that with_number gives for its dtype.
template <class T>
[[nodiscard]] std::span<T> elements(NDArray& a) {
    return {reinterpret_cast<T*>(a.bytes().data()), static_cast<std::size_t>(a.count())};
}
template <class T>
[[nodiscard]] std::span<const T> elements(const NDArray& a) {
    return {reinterpret_cast<const T*>(a.bytes().data()), static_cast<std::size_t>(a.count())};
}

/// Converts numbers to `dtype`, as Cast::unsafe does. Both dtypes are in host order.
[[nodiscard]] NDArray cast_numbers(NDArray a, const DType& dtype);

class NumericFilter : public ArrayToArrayCodec {
public:
    [[nodiscard]] const ChunkSpec& encoded() const final { return encoded_; }
    [[nodiscard]] NDArray encode(const ArrayView& in) const final;
    /// `out` may have the other byte order too.
    void decode(const ArrayView& in, const MutableArrayView& out) const final;

protected:
    /// Elements of `in.dtype` are reinterpreted as `decoded`, as NumPy's view() does. Encoded elements have dtype
    /// `encoded`. Throws invalid_argument, naming both dtypes, if their sizes differ.
    NumericFilter(const ChunkSpec& in, const DType& decoded, const DType& encoded);

    /// For filters that change each element by itself, in their constructor: the fill of encoded chunks is the encoded
    /// fill, so that inner chunks that a shard leaves out are decoded to the array's fill. Throws if it has no
    /// encoding.
    void encode_fill(const ChunkSpec& in);

    [[nodiscard]] DType native_decoded() const { return decoded_.with_order(native_order); }
    [[nodiscard]] DType native_encoded() const { return encoded_.dtype.with_order(native_order); }

private:
    /// Encodes elements of native_decoded() as native_encoded(), both in host order; backward() decodes them.
    [[nodiscard]] virtual NDArray forward(NDArray a) const = 0;
    [[nodiscard]] virtual NDArray backward(NDArray a) const = 0;
    /// Whether the codec implements forward_to() and backward_to(), which take one pass for any byte orders.
    [[nodiscard]] virtual bool at_once() const { return false; }
    /// Encodes elements of decoded() as packed elements of encoded(); backward_to() decodes them. Both return false if
    /// the memory has an unsuitable layout.
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
