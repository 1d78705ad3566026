#include "numeric_filter.h"

#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>

#include "codec_row.h"

namespace tessera {

namespace {

/// The elements of `from` as `dtype`, which differs only in byte order.
NDArray copy_as(const ArrayView& from, const DType& dtype) {
    NDArray a(dtype, from.shape);
    copy_elements(from, a);
    return a;
}

template <class View>
View taken_as(View v, const DType& dtype) {
    v.dtype = dtype;
    return v;
}

}  // namespace

void complete_number_dtypes(Value& configuration, const DType& dtype) {
    // NumPy does no arithmetic on times, so integers stand in for them.
    const bool time = dtype.kind() == Kind::datetime || dtype.kind() == Kind::timedelta;
    set_missing(configuration, "dtype", (time ? DType::scalar(Kind::integer, 8, dtype.order()) : dtype).str());
    set_missing(configuration, "astype", *configuration.find("dtype"));
}

void require_numbers(const DType& dtype, std::string_view member, bool complex) {
    const Kind kind = dtype.kind();
    if (kind == Kind::integer || kind == Kind::unsigned_integer || kind == Kind::real) return;
    if (complex && kind == Kind::complex) return;
    throw unsupported("{} is {}, expected integers or floats", member, dtype.to_string());
}

NDArray cast_numbers(NDArray a, const DType& dtype) {
    if (a.dtype() == dtype) return a;
    NDArray out(dtype, a.shape());
    (void)cast_packed(a.dtype(), a.bytes().data(), dtype, out.bytes().data(), a.count(), Cast::unsafe);
    return out;
}

NumericFilter::NumericFilter(const ChunkSpec& in, const DType& decoded, const DType& encoded)
    : in_dtype_(in.dtype), decoded_(decoded), encoded_{encoded, in.shape, std::nullopt} {
    if (in.dtype.is_variable() || in.dtype.kind() == Kind::object || in.dtype.size() != decoded.size()) {
        throw invalid_argument("the codec is for elements of {}, but they are of {}", decoded.to_string(),
                               in.dtype.to_string());
    }
}

void NumericFilter::encode_fill(const ChunkSpec& in) {
    if (!in.fill) return;
    const NDArray fill =
        in_context([] { return "the fill value"; }, [&] { return encode(view_bytes(in.fill->data(), in_dtype_, {})); });
    encoded_.fill.emplace(fill.bytes().begin(), fill.bytes().end());
}

NDArray NumericFilter::encode(const ArrayView& in) const {
    // A view may have the other byte order, but its bytes can be reinterpreted only in the chunk's order.
    NDArray ordered;
    const bool in_order = in.dtype == in_dtype_;
    if (at_once() && in.dtype.equal_but_order(decoded_) && in_dtype_ == decoded_) {
        NDArray out(encoded_.dtype, in.shape);
        if (forward_to(in, out)) return out;
    }
    if (!in_order) ordered = copy_as(in, in_dtype_);
    NDArray a = forward(copy_as(taken_as(in_order ? in : ordered.view(), decoded_), native_decoded()));
    return a.dtype() == encoded_.dtype ? std::move(a) : copy_as(a, encoded_.dtype);
}

void NumericFilter::decode(const ArrayView& in, const MutableArrayView& out) const {
    if (at_once() && out.dtype.equal_but_order(decoded_) && in_dtype_ == decoded_ && in.contiguous()) {
        if (backward_to(in, out)) return;
        NDArray packed(out.dtype, out.shape);
        if (backward_to(in, packed)) return copy_elements(packed, out);
    }
    const NDArray a = backward(copy_as(in, native_encoded()));
    if (out.dtype == in_dtype_) {
        copy_elements(a, taken_as(out, decoded_));
        return;
    }
    NDArray ordered(in_dtype_, encoded_.shape);
    copy_elements(a, taken_as(ordered.view(), decoded_));
    copy_elements(ordered, out);
}

}  // namespace tessera
