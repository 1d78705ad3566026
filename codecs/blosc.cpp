// The "blosc" codec. It uses only c-blosc's context calls, which share no global state and start no threads.
//
// A frame describes its own decoding (blosc_frame.cpp has the format); the configuration is for encoding only.
#include <blosc.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <vector>

#include "blosc_frame.h"
#include "codec_row.h"

namespace tessera {

namespace {

constexpr std::array<std::string_view, 3> shuffle_names{"noshuffle", "shuffle", "bitshuffle"};  // by blosc's numbers

/// The compressors that the installed c-blosc was built with. (blosc_list_compressors fills a static buffer.)
std::vector<std::string_view> compressors() {
    std::vector<std::string_view> names;
    for (const char* name : {BLOSC_BLOSCLZ_COMPNAME, BLOSC_LZ4_COMPNAME, BLOSC_LZ4HC_COMPNAME, BLOSC_SNAPPY_COMPNAME,
                             BLOSC_ZLIB_COMPNAME, BLOSC_ZSTD_COMPNAME}) {
        if (blosc_compname_to_compcode(name) >= 0) names.emplace_back(name);
    }
    return names;
}

/// Checks all claims of the header and returns the decoded size. Cuts `in` to the frame, because trailing bytes are
/// ignored, as in the original.
std::size_t check_frame(ByteSpan& in) {
    const BloscHeader header = read_blosc_header(in, in.size());
    in = in.first(header.cbytes);
    return header.nbytes;
}

class BloscCodec final : public BytesToBytesCodec {
public:
    BloscCodec(std::string cname, int clevel, int shuffle, std::size_t typesize, std::size_t blocksize)
        : cname_(std::move(cname)), clevel_(clevel), shuffle_(shuffle), typesize_(typesize), blocksize_(blocksize) {}

    void encode(ByteSpan in, Buffer& out) const override { compress(in, blocksize_, encoded_bound(in.size()), out); }

    [[nodiscard]] bool encode_runs(ByteSpan in, std::uint64_t decoded_size, const ByteRuns& runs, CodecScratch& scratch,
                                   Buffer& out) const override {
        const BloscHeader old = read_blosc_header(in, in.size());
        if (old.nbytes <= old.blocksize) return false;  // a single block is encoded as a whole in any case
        const auto encode_block = [&](ByteSpan block, Buffer& frame) {
            // Room for the uncompressed block, after the sizes of its splits.
            compress(block, block.size(), 2 * block.size() + 2 * BLOSC_MAX_OVERHEAD, frame);
        };
        return edit_blosc_frame(in, header_of(decoded_size), runs, encode_block, scratch, out);
    }

    void decode(ByteSpan in, MutableByteSpan out) const override {
        const std::size_t nbytes = check_frame(in);
        if (nbytes != out.size()) {
            throw corrupt("the header says that the frame decodes to {} bytes, expected {}", nbytes, out.size());
        }
        decompress(in, out);
    }

    [[nodiscard]] std::uint64_t trailing_bytes(ByteSpan in, std::uint64_t /*decoded_size*/) const override {
        return in.size() - read_blosc_header(in, in.size()).cbytes;
    }

    [[nodiscard]] bool decode_runs(const ByteSource& in, std::uint64_t decoded_size, const ByteRuns& runs,
                                   CodecScratch& scratch) const override {
        return decode_blosc_runs(in, decoded_size, runs, scratch);
    }

    [[nodiscard]] bool decode_unsized(ByteSpan in, Buffer& out, std::uint64_t limit) const override {
        const std::size_t nbytes = check_frame(in);
        if (nbytes > limit) return false;
        out.reset(nbytes);
        decompress(in, out.span());
        return true;
    }

    [[nodiscard]] std::uint64_t encoded_bound(std::uint64_t in_size) const override {
        if (in_size > BLOSC_MAX_BUFFERSIZE) {
            throw unsupported("a chunk of {} bytes is more than blosc can hold, {}: choose smaller chunks", in_size,
                              BLOSC_MAX_BUFFERSIZE);
        }
        return in_size + BLOSC_MAX_OVERHEAD;
    }

private:
    void compress(ByteSpan in, std::size_t blocksize, std::uint64_t room, Buffer& out) const {
        out.reset(static_cast<std::size_t>(room));
        const int size = blosc_compress_ctx(clevel_, shuffle_, typesize_, in.size(), in.data(), out.data(), out.size(),
                                            cname_.c_str(), blocksize, 1);
        if (size <= 0) {
            throw unsupported("c-blosc could not compress {} bytes with {}, level {} (its error {})", in.size(), cname_,
                              clevel_, size);
        }
        out.resize(static_cast<std::size_t>(size));
    }

    /// The header of frames of `decoded_size` bytes, apart from cbytes. It is taken from a trial frame, which shows how
    /// c-blosc applies its settings.
    [[nodiscard]] BloscHeader header_of(std::uint64_t decoded_size) const {
        const std::lock_guard guard(mutex_);
        if (header_.nbytes != decoded_size) {
            Buffer zeros(static_cast<std::size_t>(decoded_size));
            std::ranges::fill(zeros.span(), std::byte{0});
            Buffer frame;
            encode(zeros, frame);
            header_ = read_blosc_header(frame, frame.size());
        }
        return header_;
    }

    static void decompress(ByteSpan frame, MutableByteSpan out) {
        // c-blosc allocates three blocks of the size that the frame states.
        const std::size_t block = std::min<std::size_t>(read_blosc_header(frame, frame.size()).blocksize, out.size());
        constexpr std::size_t usual = std::size_t{2} << 20;
        const MemoryHold blocks(block > usual ? 3 * std::uint64_t{block} : 0);
        const int size = blosc_decompress_ctx(frame.data(), out.data(), out.size(), 1);
        if (size < 0 || static_cast<std::size_t>(size) != out.size()) {
            throw corrupt("the compressed data are damaged (c-blosc gave {}, expected {} bytes)", size, out.size());
        }
    }

    std::string cname_;
    int clevel_;
    int shuffle_;
    std::size_t typesize_;
    std::size_t blocksize_;
    mutable std::mutex mutex_;
    mutable BloscHeader header_;  ///< the last result of header_of(), kept because all chunks have one size
};

/// The codec for a compressor by name and a shuffle by number.
std::unique_ptr<BytesToBytesCodec> make(const Value& configuration, const std::string& cname, int shuffle,
                                        std::int64_t item_size) {
    const auto known = compressors();
    if (std::ranges::find(known, cname) == known.end()) {
        throw invalid_argument("no compressor \"{}\"; choose one of {}", cname, fmt::join(known, ", "));
    }
    const auto clevel = static_cast<int>(integer_member(configuration, "clevel", 5, 0, 9));
    // The header has one byte for typesize. If it does not fit, c-blosc (and so zarr 0.4) treats the data as plain
    // bytes.
    std::int64_t typesize =
        integer_member(configuration, "typesize", std::max<std::int64_t>(item_size, 1), 1, INT32_MAX);
    if (typesize > BLOSC_MAX_TYPESIZE) typesize = 1;
    const std::int64_t blocksize = integer_member(configuration, "blocksize", 0, 0, BLOSC_MAX_BLOCKSIZE);
    return std::make_unique<BloscCodec>(cname, clevel, shuffle, static_cast<std::size_t>(typesize),
                                        static_cast<std::size_t>(blocksize));
}

std::unique_ptr<BytesToBytesCodec> make_blosc_codec(const Value& configuration, std::int64_t item_size) {
    require_known_members(configuration, {"cname", "clevel", "shuffle", "typesize", "blocksize"});
    const std::string_view shuffle = choice_member(configuration, "shuffle", "shuffle", shuffle_names);
    const auto* number = std::ranges::find(shuffle_names, shuffle);
    return make(configuration, configuration.at("cname").as_string(), static_cast<int>(number - shuffle_names.begin()),
                item_size);
}

std::unique_ptr<BytesToBytesCodec> make_numcodecs_blosc_codec(const Value& configuration, std::int64_t item_size) {
    require_known_members(configuration, {"cname", "clevel", "shuffle", "typesize", "blocksize"});
    constexpr int automatic = -1;
    auto shuffle =
        static_cast<int>(integer_member(configuration, "shuffle", BLOSC_SHUFFLE, automatic, BLOSC_BITSHUFFLE));
    if (shuffle == automatic) shuffle = item_size == 1 ? BLOSC_BITSHUFFLE : BLOSC_SHUFFLE;
    const Value* cname = given_member(configuration, "cname");
    return make(configuration, cname ? cname->as_string() : "lz4", shuffle, item_size);
}

constexpr CodecPart blosc_parts[] = {{"cname", CodecPart::Type::text, R"("lz4")"},
                                     {"clevel", CodecPart::Type::whole, "5"},
                                     {"shuffle", CodecPart::Type::text, R"("shuffle")"},
                                     {"blocksize", CodecPart::Type::whole}};
constexpr CodecPart numcodecs_blosc_parts[] = {{"cname", CodecPart::Type::text, R"("lz4")"},
                                               {"clevel", CodecPart::Type::whole, "5"},
                                               {"shuffle", CodecPart::Type::whole, "1"},
                                               {"blocksize", CodecPart::Type::whole}};

}  // namespace

extern constinit const CodecRow blosc_codec{
    .name = "blosc",
    .about = "fast compressors with a shuffle: blosc:COMPRESSOR:LEVEL:SHUFFLE:BLOCKSIZE",
    .bytes_to_bytes = make_blosc_codec,
    .parts = blosc_parts,
    .compressor = true,
    .self_describing = true,
    .numcodecs = true,
    .encoding_only = R"({"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 1, "blocksize": 0})",
};

extern constinit const CodecRow numcodecs_blosc_codec{
    .name = "numcodecs.blosc",
    .about = "blosc as numcodecs configures it",
    .bytes_to_bytes = make_numcodecs_blosc_codec,
    .parts = numcodecs_blosc_parts,
    .compressor = true,
    .self_describing = true,
    .encoding_only = R"({"cname": "lz4", "clevel": 5, "shuffle": 1, "typesize": 1, "blocksize": 0})",
};

}  // namespace tessera
