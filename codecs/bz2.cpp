// "numcodecs.bz2": one bzip2 stream or several.
#include <bzlib.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <new>

#include "codec_row.h"
#include "compressor.h"

namespace tessera {

namespace {

/// bzip2 counts in 32 bits, so memory is handed to it in pieces of at most this.
constexpr std::size_t piece = std::size_t{1} << 30;

struct Decompressor {
    Decompressor() {
        if (BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK) throw std::bad_alloc();
    }
    ~Decompressor() { BZ2_bzDecompressEnd(&stream); }
    Decompressor(const Decompressor&) = delete;
    Decompressor& operator=(const Decompressor&) = delete;
    bz_stream stream{};
};

class Bz2Codec final : public Compressor {
public:
    explicit Bz2Codec(int level) : level_(level) {}

    void encode(ByteSpan in, Buffer& out) const override {
        out.reset(static_cast<std::size_t>(encoded_bound(in.size())));
        auto size = static_cast<unsigned>(out.size());
        const int error = BZ2_bzBuffToBuffCompress(
            reinterpret_cast<char*>(out.data()), &size,
            const_cast<char*>(reinterpret_cast<const char*>(in.empty() ? out.data() : in.data())),
            static_cast<unsigned>(in.size()), level_, 0, 0);
        if (error != BZ_OK) throw unsupported("bzip2 could not compress {} bytes ({})", in.size(), error);
        out.resize(size);
    }

    [[nodiscard]] std::uint64_t encoded_bound(std::uint64_t in_size) const override {
        const std::uint64_t bound = in_size + in_size / 100 + 600;  // from its manual
        if (bound > UINT32_MAX) {
            throw unsupported("a chunk of {} bytes is more than bzip2 takes at once: choose smaller chunks", in_size);
        }
        return bound;
    }

protected:
    [[nodiscard]] std::optional<std::size_t> decompress(ByteSpan in, MutableByteSpan out) const override {
        std::size_t total = 0;
        do {
            if (!decompress_stream(in, out.subspan(total), total)) return std::nullopt;
        } while (!in.empty());
        return total;
    }

private:
    /// Decodes one stream and removes it from the front of `in`. Returns false if `out` is too small.
    static bool decompress_stream(ByteSpan& in, MutableByteSpan out, std::size_t& total) {
        Decompressor engine;
        bz_stream& s = engine.stream;
        char none = 0;  // bzip2 takes no null pointer
        for (;;) {
            const auto in_piece = static_cast<unsigned>(std::min(piece, in.size()));
            const auto out_piece = static_cast<unsigned>(std::min(piece, out.size()));
            s.next_in = in.empty() ? &none : const_cast<char*>(reinterpret_cast<const char*>(in.data()));
            s.avail_in = in_piece;
            s.next_out = out.empty() ? &none : reinterpret_cast<char*>(out.data());
            s.avail_out = out_piece;
            const int result = BZ2_bzDecompress(&s);
            const std::size_t used = in_piece - s.avail_in;
            const std::size_t written = out_piece - s.avail_out;
            in = in.subspan(used);
            out = out.subspan(written);
            total += written;
            if (result == BZ_STREAM_END) return true;
            if (result == BZ_MEM_ERROR) throw std::bad_alloc();
            if (result != BZ_OK) throw corrupt("the bzip2 data are damaged ({})", result);
            if (used > 0 || written > 0) continue;
            if (out.empty()) return false;
            throw corrupt("the bzip2 data are cut short");
        }
    }

    int level_;
};

std::unique_ptr<BytesToBytesCodec> make_bz2_codec(const Value& configuration, std::int64_t /*item_size*/) {
    require_known_members(configuration, {"level"});
    return std::make_unique<Bz2Codec>(static_cast<int>(integer_member(configuration, "level", 1, 1, 9)));
}

constexpr CodecPart bz2_parts[] = {{"level", CodecPart::Type::whole, "1"}};

}  // namespace

extern constinit const CodecRow bz2_codec{
    .name = "numcodecs.bz2",
    .about = "bz2:LEVEL, 1 to 9",
    .bytes_to_bytes = make_bz2_codec,
    .parts = bz2_parts,
    .compressor = true,
    .self_describing = true,
    .encoding_only = R"({"level": 1})",
};

}  // namespace tessera
