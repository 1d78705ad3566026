// "transpose": reorders the dimensions. It moves no elements: the pipeline applies axes() to its views.
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>

#include <algorithm>

#include "codec_row.h"

namespace tessera {

namespace {

class TransposeCodec final : public ArrayToArrayCodec {
public:
    TransposeCodec(const ChunkSpec& in, const Dims& axes) : axes_(axes), inverse_(axes), encoded_(in) {
        encoded_.shape = permuted(in.shape, axes);
        for (int k = 0; k < axes.rank(); ++k) inverse_[static_cast<int>(axes[k])] = k;
    }

    [[nodiscard]] const ChunkSpec& encoded() const override { return encoded_; }
    [[nodiscard]] const Dims* axes() const override { return &axes_; }

    [[nodiscard]] NDArray encode(const ArrayView& in) const override { return NDArray::copy_of(in.transposed(axes_)); }
    void decode(const ArrayView& in, const MutableArrayView& out) const override {
        copy_elements(in.transposed(inverse_), out);
    }

private:
    Dims axes_;
    Dims inverse_;
    ChunkSpec encoded_;
};

Dims parse_order(const Value& order, int rank) {
    Dims axes;
    if (order.is_string()) {
        // The spelling in drafts of v3.
        const std::string& text = order.as_string();
        if (text != "C" && text != "F") throw invalid_argument("order is \"{}\"; give a list of axes", text);
        for (int d = 0; d < rank; ++d) axes.push_back(text == "C" ? d : rank - 1 - d);
        return axes;
    }
    for (const Value& axis : order.as_array()) axes.push_back(axis.as_int64());
    Dims sorted = axes;
    std::ranges::sort(sorted);
    bool permutation = sorted.rank() == rank;
    for (int d = 0; permutation && d < rank; ++d) permutation = sorted[d] == d;
    if (!permutation) {
        throw invalid_argument("order is {}, but must have each of the {} axes once, from 0", axes.to_string(), rank);
    }
    return axes;
}

std::unique_ptr<ArrayToArrayCodec> make_transpose_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"order"});
    return std::make_unique<TransposeCodec>(in, parse_order(configuration.at("order"), in.shape.rank()));
}

}  // namespace

extern constinit const CodecRow transpose_codec{
    .name = "transpose",
    .about = "dimensions in another order",
    .array_to_array = make_transpose_codec,
    .short_notation = false,
    .keeps_dtype = true,
};

}  // namespace tessera
