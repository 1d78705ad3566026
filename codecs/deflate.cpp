// "numcodecs.zlib" and "gzip": DEFLATE by libdeflate, in zlib's and in gzip's wrapping.
#include <libdeflate.h>
#include <tessera/error_text.h>
#include <tessera/little_endian.h>

#include <algorithm>
#include <new>

#include "codec_row.h"
#include "compressor.h"

namespace tessera {

namespace {

struct FreeEngine {
    void operator()(libdeflate_compressor* c) const { libdeflate_free_compressor(c); }
    void operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }
};

/// One wrapping of DEFLATE, as libdeflate has it.
struct Wrapping {
    std::string_view name;
    bool members;  ///< whether several members may follow each other, with zeros after the last
    decltype(&libdeflate_zlib_compress) compress;
    decltype(&libdeflate_zlib_compress_bound) bound;
    decltype(&libdeflate_zlib_decompress_ex) decompress;
};

constexpr Wrapping zlib{"zlib", false, libdeflate_zlib_compress, libdeflate_zlib_compress_bound,
                        libdeflate_zlib_decompress_ex};
constexpr Wrapping gzip{"gzip", true, libdeflate_gzip_compress, libdeflate_gzip_compress_bound,
                        libdeflate_gzip_decompress_ex};

class DeflateCodec final : public Compressor {
public:
    DeflateCodec(const Wrapping& wrapping, int level) : wrapping_(wrapping), level_(level) {}

    void encode(ByteSpan in, Buffer& out) const override {
        const std::unique_ptr<libdeflate_compressor, FreeEngine> engine(libdeflate_alloc_compressor(level_));
        if (!engine) throw std::bad_alloc();
        out.reset(static_cast<std::size_t>(encoded_bound(in.size())));
        out.resize(wrapping_.compress(engine.get(), in.data(), in.size(), out.data(), out.size()));
    }

    [[nodiscard]] std::uint64_t encoded_bound(std::uint64_t in_size) const override {
        return wrapping_.bound(nullptr, static_cast<std::size_t>(in_size));
    }

    [[nodiscard]] std::uint64_t trailing_bytes(ByteSpan in, std::uint64_t decoded_size) const override {
        if (!wrapping_.members) return 0;
        // A member ends with its decoded size. If that is the chunk's, nothing follows the member.
        constexpr std::size_t field = sizeof(std::uint32_t);
        const auto size = static_cast<std::uint32_t>(decoded_size);
        if (size != 0 && in.size() >= field && load_little<std::uint32_t>(in.last(field).data()) == size) return 0;
        Buffer out;
        if (!decode_unsized(in, out, decoded_size)) return 0;
        (void)decompress_members(in, out.span());
        return in.size();
    }

protected:
    [[nodiscard]] std::optional<std::size_t> decompress(ByteSpan in, MutableByteSpan out) const override {
        return decompress_members(in, out);
    }

private:
    /// The same; cuts `in` to the bytes after the last member: none, or zeros.
    [[nodiscard]] std::optional<std::size_t> decompress_members(ByteSpan& in, MutableByteSpan out) const {
        const std::unique_ptr<libdeflate_decompressor, FreeEngine> engine(libdeflate_alloc_decompressor());
        if (!engine) throw std::bad_alloc();
        std::size_t total = 0;
        do {
            std::size_t used = 0;
            std::size_t written = 0;
            const libdeflate_result result = wrapping_.decompress(
                engine.get(), in.data(), in.size(), out.data() + total, out.size() - total, &used, &written);
            if (result == LIBDEFLATE_INSUFFICIENT_SPACE) return std::nullopt;
            if (result != LIBDEFLATE_SUCCESS) {
                throw corrupt("the {} data are damaged or cut short", wrapping_.name);
            }
            total += written;
            in = in.subspan(used);
        } while (wrapping_.members && !is_padding(in));
        if (!wrapping_.members && !in.empty()) {
            throw corrupt("{} bytes follow the {} data", in.size(), wrapping_.name);
        }
        return total;
    }

    static bool is_padding(ByteSpan rest) {
        return std::ranges::all_of(rest, [](std::byte b) { return b == std::byte{0}; });
    }

    const Wrapping& wrapping_;
    int level_;
};

std::unique_ptr<BytesToBytesCodec> make(const Wrapping& wrapping, const Value& configuration) {
    require_known_members(configuration, {"level"});
    const auto level = static_cast<int>(integer_member(configuration, "level", 1, -1, 9));
    return std::make_unique<DeflateCodec>(wrapping, level == -1 ? 6 : level);  // -1 is zlib's name for its default
}

std::unique_ptr<BytesToBytesCodec> make_zlib_codec(const Value& configuration, std::int64_t /*item_size*/) {
    return make(zlib, configuration);
}

std::unique_ptr<BytesToBytesCodec> make_gzip_codec(const Value& configuration, std::int64_t /*item_size*/) {
    return make(gzip, configuration);
}

constexpr CodecPart gzip_parts[] = {{"level", CodecPart::Type::whole, "5"}};
constexpr CodecPart zlib_parts[] = {{"level", CodecPart::Type::whole, "1"}};

}  // namespace

extern constinit const CodecRow gzip_codec{
    .name = "gzip",
    .about = "gzip:LEVEL, 0 to 9",
    .bytes_to_bytes = make_gzip_codec,
    .parts = gzip_parts,
    .compressor = true,
    .self_describing = true,
    .numcodecs = true,
    .encoding_only = R"({"level": 1})",
};

extern constinit const CodecRow zlib_codec{
    .name = "numcodecs.zlib",
    .about = "zlib:LEVEL, 0 to 9",
    .bytes_to_bytes = make_zlib_codec,
    .parts = zlib_parts,
    .compressor = true,
    .self_describing = true,
    .encoding_only = R"({"level": 1})",
};

extern constinit const CodecRow numcodecs_gzip_codec{
    .name = "numcodecs.gzip",
    .about = "gzip under numcodecs' name",
    .bytes_to_bytes = make_gzip_codec,
    .parts = gzip_parts,
    .encoding_only = R"({"level": 1})",
};

}  // namespace tessera
