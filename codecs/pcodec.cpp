// "numcodecs.pcodec": pco's standalone format (docs/format.md of github.com/pcodec/pcodec), versions 0 to 4.1, only
// read.
//
// A file is a sequence of pco chunks of up to 2^24 numbers, each with its own metadata. A number is put together from
// one or two latents, unsigned integers, as the chunk's mode says. Latents may be differences of earlier ones, as the
// delta encoding says. What remains are latent variables: bins, whose indices are coded by tANS, and offsets in them.
// Both lie in batches of 256. All bits are little-endian: the first one is the lowest of its byte.
#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include <tessera/copy_elements.h>
#include <tessera/error_text.h>

#include "codec_row.h"
#include "pco_chunk.h"

namespace tessera {

namespace {

struct PcoType {
    std::uint8_t byte;
    PcoNumbers numbers;
    std::int64_t size;
};
constexpr std::array<PcoType, 11> pco_types{{{1, PcoNumbers::unsigned_integers, 4},
                                             {2, PcoNumbers::unsigned_integers, 8},
                                             {3, PcoNumbers::integers, 4},
                                             {4, PcoNumbers::integers, 8},
                                             {5, PcoNumbers::floats, 4},
                                             {6, PcoNumbers::floats, 8},
                                             {7, PcoNumbers::unsigned_integers, 2},
                                             {8, PcoNumbers::integers, 2},
                                             {9, PcoNumbers::floats, 2},
                                             {10, PcoNumbers::unsigned_integers, 1},
                                             {11, PcoNumbers::integers, 1}}};

const PcoType& pco_type_of(const DType& dtype) {
    const auto numbers = [&]() -> std::optional<PcoNumbers> {
        switch (dtype.kind()) {
            case Kind::unsigned_integer:
                return PcoNumbers::unsigned_integers;
            case Kind::integer:
            case Kind::datetime:
            case Kind::timedelta:
                return PcoNumbers::integers;
            case Kind::real:
                return PcoNumbers::floats;
            default:
                return std::nullopt;
        }
    }();
    for (const PcoType& type : pco_types) {
        if (numbers == type.numbers && dtype.size() == type.size) return type;
    }
    throw invalid_argument("it is for integers, times and floats up to 8 bytes, not for {}", dtype.to_string());
}

class PcodecCodec final : public ArrayToBytesCodec {
public:
    explicit PcodecCodec(const ChunkSpec& in)
        : dtype_(in.dtype.with_order(native_order)),
          type_(pco_type_of(in.dtype)),
          count_(static_cast<std::size_t>(element_count(in.shape))) {}

    void encode(const ArrayView& /*in*/, Buffer& /*out*/) const override { throw no_encoder(); }

    void decode(ByteSpan in, const MutableArrayView& out) const override {
        if (out.contiguous() && out.dtype == dtype_) return decode_numbers(in, out.data);
        NDArray numbers(dtype_, out.shape);
        decode_numbers(in, numbers.bytes().data());
        copy_elements(numbers, out);
    }

    [[nodiscard]] std::optional<std::uint64_t> encoded_size() const override { return std::nullopt; }

private:
    void decode_numbers(ByteSpan in, std::byte* out) const {
        constexpr std::string_view magic = "pco!";
        PcoBits bits(in);
        if (in.size() < magic.size() || std::memcmp(in.data(), magic.data(), magic.size()) != 0) {
            throw corrupt("it does not begin with \"{}\"", magic);
        }
        bits.go_to(8 * magic.size());
        const int version = read_versions(bits);
        std::size_t done = 0;
        while (const std::uint64_t type = bits.take(8)) {
            if (type != type_.byte) {
                throw corrupt("it has numbers of type {}, expected {} for {}", type, type_.byte, dtype_.to_string());
            }
            const std::size_t count = 1 + bits.take(24);
            bits.require_inside();
            if (count > count_ - done) {
                throw corrupt("it has at least {} numbers, but a chunk has {}", done + count, count_);
            }
            decode_pco_chunk(bits, version, type_.numbers, type_.size, count,
                             out + done * static_cast<std::size_t>(type_.size));
            done += count;
        }
        bits.require_inside();
        if (done != count_) throw corrupt("it has {} numbers, but a chunk has {}", done, count_);
        if (!bits.at_end()) throw corrupt("bytes follow the last number");
    }

    /// The headers of both formats. Returns the major version of the wrapped one.
    static int read_versions(PcoBits& bits) {
        constexpr std::uint64_t newest_file = 3;
        constexpr std::uint64_t newest = 4;
        const std::size_t start = bits.bit();
        const std::uint64_t file = bits.take(8);
        if (file > newest_file) {
            throw corrupt("a file of version {}, expected at most {}: damaged, or newer than Tessera", file,
                          newest_file);
        }
        if (file < 2) bits.go_to(start);    // files had no version of their own
        if (file >= 3) (void)bits.take(8);  // the type of all numbers; each pco chunk says it, too
        if (file >= 2) {
            (void)bits.take(static_cast<int>(1 + bits.take(6)));  // how many numbers there may be
            bits.align();
        }
        const std::uint64_t major = bits.take(8);
        if (major > newest) {
            throw corrupt("version {} of the format, expected at most {}: damaged, or newer than Tessera", major,
                          newest);
        }
        if (major >= 4) (void)bits.take(8);  // the minor version: what is unknown in it is refused where it occurs
        bits.require_inside();
        return static_cast<int>(major);
    }

    DType dtype_;
    const PcoType& type_;
    std::size_t count_;
};

std::unique_ptr<ArrayToBytesCodec> make_pcodec_codec(const Value& configuration, const ChunkSpec& in) {
    require_known_members(configuration, {"level", "mode_spec", "delta_spec", "paging_spec", "delta_encoding_order",
                                          "equal_pages_up_to"});
    return std::make_unique<PcodecCodec>(in);
}

}  // namespace

extern constinit const CodecRow pcodec_codec{
    .name = "numcodecs.pcodec",
    .about = "pco, without loss; only read",
    .array_to_bytes = make_pcodec_codec,
    .short_notation = false,
    .compressor = true,
    .only_decodes = true,
};

}  // namespace tessera
