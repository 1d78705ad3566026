// "reshape": the elements in C order under another shape. v3.
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>

#include <limits>
#include <optional>

#include "codec_row.h"

namespace tessera {

namespace {

/// The same elements in C order, under another shape.
ArrayView with_shape(ArrayView packed, const Shape& shape) {
    packed.shape = shape;
    packed.strides = contiguous_strides(shape, packed.dtype.size());
    return packed;
}

class ReshapeCodec final : public ArrayToArrayCodec {
public:
    ReshapeCodec(const ChunkSpec& in, const Shape& shape) : shape_(in.shape), encoded_(in) { encoded_.shape = shape; }

    [[nodiscard]] const ChunkSpec& encoded() const override { return encoded_; }
    [[nodiscard]] NDArray encode(const ArrayView& in) const override {
        return NDArray::copy_of(in).reshaped(encoded_.shape);
    }
    void decode(const ArrayView& in, const MutableArrayView& out) const override {
        if (in.contiguous()) return copy_elements(with_shape(in, shape_), out);
        const NDArray packed = NDArray::copy_of(in);
        copy_elements(with_shape(packed.view(), shape_), out);
    }

private:
    Shape shape_;
    ChunkSpec encoded_;
};

/// The product of the lengths of dimensions [first, last).
std::int64_t product(const Shape& shape, std::int64_t first, std::int64_t last) {
    std::int64_t n = 1;
    for (auto d = first; d < last; ++d) n *= shape[static_cast<int>(d)];  // a part of a checked product
    return n;
}

/// The length that a list of input dimensions stands for. `next` is the first that may be named.
std::int64_t merged_length(const Value& list, const Shape& in, std::int64_t& next) {
    std::int64_t length = 1;
    for (const Value& item : list.as_array()) {
        const std::int64_t d = item.as_int64();
        if (d < next || d >= in.rank()) {
            throw invalid_argument("shape names dimension {} of {}, expected {} to {}: each once, in their order", d,
                                   in.to_string(), next, in.rank() - 1);
        }
        length *= in[static_cast<int>(d)];
        next = d + 1;
    }
    return length;
}

/// Throws unless each list of input dimensions lies where those are in C order.
void require_places(const Value::Array& lengths, const Shape& in, const Shape& out) {
    for (int i = 0; i < out.rank(); ++i) {
        const Value& length = lengths[static_cast<std::size_t>(i)];
        if (!length.is_array() || length.as_array().empty()) continue;
        const std::int64_t first = length.as_array().front().as_int64();
        const std::int64_t last = length.as_array().back().as_int64();
        if (product(out, 0, i) != product(in, 0, first) ||
            product(out, i + 1, out.rank()) != product(in, last + 1, in.rank())) {
            throw invalid_argument("shape makes {} of {}: dimension {} is not what {} are", out.to_string(),
                                   in.to_string(), i, length.dump());
        }
    }
}

Shape reshaped_shape(const Value::Array& lengths, const Shape& in) {
    if (lengths.size() > static_cast<std::size_t>(max_rank)) {
        throw unsupported("shape has {} dimensions; at most {} are supported", lengths.size(), max_rank);
    }
    const std::int64_t count = element_count(in);
    Shape out;
    std::optional<int> open;
    std::int64_t known = 1;
    std::int64_t next = 0;
    for (const Value& length : lengths) {
        std::int64_t n = 1;
        if (length == Value(-1) && !open) {
            open = out.rank();
        } else {
            n = length.is_array() ? merged_length(length, in, next) : length.as_int64();
            if (n < 1) throw invalid_argument("shape has the length {}, expected at least 1, or -1 once", n);
            known = checked_multiply(known, n, "the number of elements");
        }
        out.push_back(n);
    }
    if (open && count % known == 0) out[*open] = count / known;
    if (element_count(out) != count) {
        throw invalid_argument("shape {} makes {} elements, but a chunk of {} has {}", Value(lengths).dump(),
                               element_count(out), in.to_string(), count);
    }
    require_places(lengths, in, out);
    return out;
}

std::unique_ptr<ArrayToArrayCodec> make_reshape_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"shape"});
    return std::make_unique<ReshapeCodec>(in, reshaped_shape(configuration.at("shape").as_array(), in.shape));
}

}  // namespace

extern constinit const CodecRow reshape_codec{
    .name = "reshape",
    .about = "the elements in C order under another shape",
    .array_to_array = make_reshape_codec,
    .short_notation = false,
    .keeps_dtype = true,
};

}  // namespace tessera
