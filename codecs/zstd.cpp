// "zstd": one or more frames, with or without their content size. (Debian's library also reads frames of zstd 0.7.)
#include <tessera/error_text.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <limits>
#include <new>

#include "codec_row.h"
#include "compressor.h"

namespace tessera {

namespace {

struct FreeContext {
    void operator()(ZSTD_CCtx* c) const { ZSTD_freeCCtx(c); }
    void operator()(ZSTD_DCtx* d) const { ZSTD_freeDCtx(d); }
};

void require_encoded(std::size_t result) {
    if (ZSTD_isError(result)) throw unsupported("zstd could not compress: {}", ZSTD_getErrorName(result));
}

/// The most bytes that frames decode to: what they claim, and 128 KiB for each block of those that claim nothing.
std::uint64_t decoded_bound(ByteSpan in) {
    constexpr std::uint64_t largest_block = std::uint64_t{128} << 10;
    constexpr std::uint64_t least_encoded = 4;  // a block's header and one byte
    std::uint64_t bound = 0;
    while (!in.empty()) {
        const std::size_t frame = ZSTD_findFrameCompressedSize(in.data(), in.size());
        const bool damaged = ZSTD_isError(frame) != 0 || frame == 0 || frame > in.size();
        const std::size_t length = damaged ? in.size() : frame;
        const unsigned long long claimed = ZSTD_getFrameContentSize(in.data(), in.size());
        const bool known = !damaged && claimed != ZSTD_CONTENTSIZE_UNKNOWN && claimed != ZSTD_CONTENTSIZE_ERROR;
        const std::uint64_t most = known ? claimed : length / least_encoded * largest_block + largest_block;
        bound += std::min(most, std::numeric_limits<std::uint64_t>::max() - bound);
        in = in.subspan(length);
    }
    return bound;
}

/// Each thread keeps its engines: making them costs as much as a small chunk.
class ZstdCodec final : public Compressor {
public:
    ZstdCodec(int level, bool checksum) : level_(level), checksum_(checksum) {}

    void encode(ByteSpan in, Buffer& out) const override {
        thread_local std::unique_ptr<ZSTD_CCtx, FreeContext> engine;
        if (!engine) engine.reset(ZSTD_createCCtx());
        if (!engine) throw std::bad_alloc();
        require_encoded(ZSTD_CCtx_setParameter(engine.get(), ZSTD_c_compressionLevel, level_));
        require_encoded(ZSTD_CCtx_setParameter(engine.get(), ZSTD_c_checksumFlag, checksum_ ? 1 : 0));
        out.reset(static_cast<std::size_t>(encoded_bound(in.size())));
        const std::size_t size = ZSTD_compress2(engine.get(), out.data(), out.size(), in.data(), in.size());
        constexpr std::size_t large = std::size_t{8} << 20;
        if (ZSTD_sizeof_CCtx(engine.get()) > large) engine.reset();  // high levels take hundreds of MiB
        require_encoded(size);
        out.resize(size);
    }

    [[nodiscard]] std::uint64_t encoded_bound(std::uint64_t in_size) const override {
        return ZSTD_compressBound(static_cast<std::size_t>(in_size));
    }

protected:
    [[nodiscard]] std::optional<std::size_t> decompress(ByteSpan in, MutableByteSpan out) const override {
        if (in.empty()) throw corrupt("there is nothing where a zstd frame should be");
        thread_local std::unique_ptr<ZSTD_DCtx, FreeContext> engine;
        if (!engine) engine.reset(ZSTD_createDCtx());
        if (!engine) throw std::bad_alloc();
        // One call, because streaming allocates the window size that a frame claims.
        const std::size_t size = ZSTD_decompressDCtx(engine.get(), out.data(), out.size(), in.data(), in.size());
        if (!ZSTD_isError(size)) return size;
        // zstd says the same of a damaged block that exceeds its own frame's window: no room is enough for it.
        if (ZSTD_getErrorCode(size) == ZSTD_error_dstSize_tooSmall && out.size() < decoded_bound(in))
            return std::nullopt;
        throw corrupt("the zstd data are damaged: {}", ZSTD_getErrorName(size));
    }

    [[nodiscard]] std::optional<std::uint64_t> claimed_size(ByteSpan in) const override {
        const unsigned long long size = ZSTD_getFrameContentSize(in.data(), in.size());
        if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR) return std::nullopt;
        return size;
    }

private:
    int level_;
    bool checksum_;
};

std::unique_ptr<BytesToBytesCodec> make_zstd_codec(const Value& configuration, std::int64_t /*item_size*/) {
    require_known_members(configuration, {"level", "checksum"});
    const std::int64_t level = integer_member(configuration, "level", 0, ZSTD_minCLevel(), ZSTD_maxCLevel());
    return std::make_unique<ZstdCodec>(static_cast<int>(level), bool_member(configuration, "checksum", false));
}

constexpr CodecPart zstd_parts[] = {{"level", CodecPart::Type::whole, "3"},
                                    {"checksum", CodecPart::Type::flag, "false"}};

}  // namespace

extern constinit const CodecRow zstd_codec{
    .name = "zstd",
    .about = "zstd:LEVEL:CHECKSUM, up to 22, negative ones are faster; true or false",
    .bytes_to_bytes = make_zstd_codec,
    .parts = zstd_parts,
    .compressor = true,
    .self_describing = true,
    .numcodecs = true,
    .encoding_only = R"({"level": 0, "checksum": false})",
};

extern constinit const CodecRow numcodecs_zstd_codec{
    .name = "numcodecs.zstd",
    .about = "zstd under numcodecs' name",
    .bytes_to_bytes = make_zstd_codec,
    .parts = zstd_parts,
    .encoding_only = R"({"level": 0, "checksum": false})",
};

}  // namespace tessera
