// "numcodecs.shuffle": the first bytes of all elements, then the second ones, and so on.
#include <fmt/format.h>
#include <tessera/error.h>

#include <algorithm>

#include "codec_row.h"
#include "compressor.h"

namespace tessera {

namespace {

/// A matrix of `rows` × `columns` bytes, transposed.
void transpose_bytes(ByteSpan in, MutableByteSpan out, std::size_t rows, std::size_t columns) {
    for (std::size_t c = 0; c < columns; ++c) {
        for (std::size_t r = 0; r < rows; ++r) out[c * rows + r] = in[r * columns + c];
    }
}

class ShuffleCodec final : public Compressor {
public:
    explicit ShuffleCodec(std::size_t element_size) : element_size_(element_size) {}

    void encode(ByteSpan in, Buffer& out) const override {
        if (in.size() % element_size_ != 0) throw invalid_argument(not_whole(in.size()));
        out.reset(in.size());
        transpose_bytes(in, out.span(), in.size() / element_size_, element_size_);
    }

    [[nodiscard]] std::uint64_t encoded_bound(std::uint64_t in_size) const override { return in_size; }
    [[nodiscard]] bool fixed_size() const override { return true; }

protected:
    [[nodiscard]] std::optional<std::size_t> decompress(ByteSpan in, MutableByteSpan out) const override {
        if (in.size() % element_size_ != 0) throw corrupt(not_whole(in.size()));
        if (in.size() > out.size()) return std::nullopt;
        transpose_bytes(in, out, element_size_, in.size() / element_size_);
        return in.size();
    }

    [[nodiscard]] std::optional<std::uint64_t> claimed_size(ByteSpan in) const override { return in.size(); }

private:
    [[nodiscard]] std::string not_whole(std::size_t size) const {
        return fmt::format("{} bytes are not a whole number of elements of {}", size, element_size_);
    }

    std::size_t element_size_;
};

std::unique_ptr<BytesToBytesCodec> make_shuffle_codec(const Value& configuration, std::int64_t /*item_size*/) {
    require_known_members(configuration, {"elementsize"});
    const std::int64_t size = integer_member(configuration, "elementsize", 4, 0, INT32_MAX);
    return std::make_unique<ShuffleCodec>(static_cast<std::size_t>(std::max<std::int64_t>(size, 1)));
}

constexpr CodecPart shuffle_parts[] = {{"elementsize", CodecPart::Type::whole}};

void complete_elementsize(Value& configuration, const DType& dtype) {
    set_missing(configuration, "elementsize", dtype.size());
}

}  // namespace

extern constinit const CodecRow shuffle_codec{
    .name = "numcodecs.shuffle",
    .about = "bytes of elements grouped by place: shuffle:ELEMENTSIZE",
    .bytes_to_bytes = make_shuffle_codec,
    .parts = shuffle_parts,
    .complete = complete_elementsize,
};

}  // namespace tessera
