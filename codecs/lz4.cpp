// "numcodecs.lz4": the decoded size as 4 little-endian bytes, then one LZ4 block.
#include <lz4.h>
#include <tessera/error_text.h>
#include <tessera/little_endian.h>

#include "codec_row.h"
#include "compressor.h"

namespace tessera {

namespace {

class Lz4Codec final : public Compressor {
public:
    explicit Lz4Codec(int acceleration) : acceleration_(acceleration) {}

    void encode(ByteSpan in, Buffer& out) const override {
        out.reset(static_cast<std::size_t>(encoded_bound(in.size())));
        store_little<std::uint32_t>(out.data(), static_cast<std::uint32_t>(in.size()));
        const int size =
            LZ4_compress_fast(reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data() + 4),
                              static_cast<int>(in.size()), static_cast<int>(out.size() - 4), acceleration_);
        if (size <= 0) throw unsupported("lz4 could not compress {} bytes", in.size());
        out.resize(4 + static_cast<std::size_t>(size));
    }

    [[nodiscard]] std::uint64_t encoded_bound(std::uint64_t in_size) const override {
        if (in_size > LZ4_MAX_INPUT_SIZE) {
            throw unsupported("a chunk of {} bytes is more than lz4 can hold, {}: choose smaller chunks", in_size,
                              LZ4_MAX_INPUT_SIZE);
        }
        return 4 + static_cast<std::uint64_t>(LZ4_compressBound(static_cast<int>(in_size)));
    }

protected:
    [[nodiscard]] std::optional<std::size_t> decompress(ByteSpan in, MutableByteSpan out) const override {
        const std::size_t size = header(in);
        if (size > out.size()) return std::nullopt;
        if (in.size() - 4 > INT32_MAX) throw corrupt("{} bytes are too many for an lz4 block", in.size());
        const int written =
            LZ4_decompress_safe(reinterpret_cast<const char*>(in.data() + 4), reinterpret_cast<char*>(out.data()),
                                static_cast<int>(in.size() - 4), static_cast<int>(size));
        if (written < 0 || static_cast<std::size_t>(written) != size) {
            throw corrupt("the lz4 data are damaged, or not of the {} bytes that they claim", size);
        }
        return size;
    }

    [[nodiscard]] std::optional<std::uint64_t> claimed_size(ByteSpan in) const override { return header(in); }

private:
    static std::size_t header(ByteSpan in) {
        if (in.size() < 5) throw corrupt("{} bytes are too few for lz4 data, at least 5", in.size());
        const std::uint32_t size = load_little<std::uint32_t>(in.data());
        // One byte of an LZ4 sequence decodes to at most 255 bytes.
        if (size > LZ4_MAX_INPUT_SIZE || size > 255 * (std::uint64_t{in.size()} - 4)) {
            throw corrupt("the lz4 data claim {} bytes, more than {} can hold", size, in.size());
        }
        return size;
    }

    int acceleration_;
};

std::unique_ptr<BytesToBytesCodec> make_lz4_codec(const Value& configuration, std::int64_t /*item_size*/) {
    require_known_members(configuration, {"acceleration"});
    return std::make_unique<Lz4Codec>(
        static_cast<int>(integer_member(configuration, "acceleration", 1, INT32_MIN, INT32_MAX)));
}

constexpr CodecPart lz4_parts[] = {{"acceleration", CodecPart::Type::whole, "1"}};

}  // namespace

extern constinit const CodecRow lz4_codec{
    .name = "numcodecs.lz4",
    .about = "lz4:ACCELERATION",
    .bytes_to_bytes = make_lz4_codec,
    .parts = lz4_parts,
    .compressor = true,
    .self_describing = true,
    .encoding_only = R"({"acceleration": 1})",
};

}  // namespace tessera
