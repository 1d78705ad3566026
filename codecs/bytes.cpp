// The "bytes" codec: the elements packed in C order, in the byte order of "endian", or without that, of the dtype.
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>

#include "byte_runs.h"
#include "codec_row.h"

namespace tessera {

namespace {

class BytesCodec final : public ArrayToBytesCodec {
public:
    BytesCodec(DType dtype, const Shape& shape)
        : dtype_(std::move(dtype)), shape_(shape), size_(byte_count(shape_, dtype_.size())) {}

    void encode(const ArrayView& in, Buffer& out) const override {
        out.reset(static_cast<std::size_t>(size_));
        copy_elements(in, view_bytes(out.data(), dtype_, shape_));
    }

    void decode(ByteSpan in, const MutableArrayView& out) const override {
        if (in.size() != static_cast<std::size_t>(size_)) {
            throw corrupt("{} bytes were found, but a chunk of {} elements of {} has {}", in.size(), shape_.to_string(),
                          dtype_.to_string(), size_);
        }
        if (const auto runs = ByteRuns::of(dtype_, shape_, Region::whole(shape_), out)) {
            copy_runs(in, *runs);
        } else {
            copy_elements(view_bytes(in.data(), dtype_, shape_), out);
        }
    }

    [[nodiscard]] std::optional<std::uint64_t> encoded_size() const override {
        return static_cast<std::uint64_t>(size_);
    }
    [[nodiscard]] const DType* memory_dtype() const override { return &dtype_; }

private:
    DType dtype_;
    Shape shape_;
    std::int64_t size_;
};

std::unique_ptr<ArrayToBytesCodec> make_bytes_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"endian"});
    if (in.dtype.is_variable() || in.dtype.kind() == Kind::object) {
        throw unsupported("elements of {} have no fixed size, which this codec needs", in.dtype.str());
    }
    if (const Value* endian = configuration.find("endian")) {
        const std::string& text = endian->as_string();
        if (text != "little" && text != "big") {
            throw invalid_argument("endian is \"{}\"; choose \"little\" or \"big\"", text);
        }
        return std::make_unique<BytesCodec>(in.dtype.with_order(text == "little" ? ByteOrder::little : ByteOrder::big),
                                            in.shape);
    }
    return std::make_unique<BytesCodec>(in.dtype, in.shape);
}

constexpr CodecPart bytes_parts[] = {{"endian", CodecPart::Type::text}};

}  // namespace

extern constinit const CodecRow bytes_codec{
    .name = "bytes",
    .about = "elements packed in C order",
    .array_to_bytes = make_bytes_codec,
    .parts = bytes_parts,
};

}  // namespace tessera
