// Codecs that put four little-endian bytes of a checksum before or after the data: "crc32c" and numcodecs' others.
#include <bit>
#include <cstring>

#include <isa-l/crc.h>
#include <libdeflate.h>
#include <tessera/error_text.h>
#include <tessera/little_endian.h>
#include <tessera/lookup3.h>

#include <algorithm>
#include <array>

#include "codec_row.h"
#include "compressor.h"

namespace tessera {

namespace {

/// Only jenkins_lookup3 uses `seed`.
using Sum = std::uint32_t (*)(ByteSpan bytes, std::uint32_t seed);

std::uint32_t crc32(ByteSpan bytes, std::uint32_t /*seed*/) {
    return libdeflate_crc32(0, bytes.data(), bytes.size());
}

std::uint32_t adler32(ByteSpan bytes, std::uint32_t /*seed*/) {
    return libdeflate_adler32(1, bytes.data(), bytes.size());
}

std::uint32_t crc32c(ByteSpan bytes, std::uint32_t /*seed*/) {
    constexpr std::size_t piece = std::size_t{1} << 30;  // the length is an int
    std::uint32_t crc = ~std::uint32_t{0};
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(piece, bytes.size()))) {
        auto* p = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
        crc = crc32_iscsi(p, static_cast<int>(std::min(piece, bytes.size())), crc);
    }
    return ~crc;
}

/// HDF5's variant: big-endian words of 16 bits, the last byte of an odd number taken as the high one.
std::uint32_t fletcher32(ByteSpan bytes, std::uint32_t /*seed*/) {
    constexpr std::size_t safe = 720;  // bytes after which the sums must be folded lest they overflow
    std::uint32_t sum1 = 0;
    std::uint32_t sum2 = 0;
    const auto fold = [&] {
        sum1 = (sum1 & 0xffff) + (sum1 >> 16);
        sum2 = (sum2 & 0xffff) + (sum2 >> 16);
    };
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
        if (i > 0 && i % safe == 0) fold();
        sum1 += std::to_integer<std::uint32_t>(bytes[i]) << 8;
        if (i + 1 < bytes.size()) sum1 += std::to_integer<std::uint32_t>(bytes[i + 1]);
        sum2 += sum1;
    }
    fold();
    fold();
    return sum2 << 16 | sum1;
}

class ChecksumCodec final : public Compressor {
public:
    ChecksumCodec(Sum sum, bool at_start, std::uint32_t seed = 0) : sum_(sum), at_start_(at_start), seed_(seed) {}

    void encode(ByteSpan in, Buffer& out) const override {
        out.reset(in.size() + 4);
        std::ranges::copy(in, out.data() + (at_start_ ? 4 : 0));
        store_little<std::uint32_t>(out.data() + (at_start_ ? 0 : in.size()), sum_(in, seed_));
    }

    [[nodiscard]] std::uint64_t encoded_bound(std::uint64_t in_size) const override { return in_size + 4; }
    [[nodiscard]] bool fixed_size() const override { return true; }

protected:
    [[nodiscard]] std::optional<std::size_t> decompress(ByteSpan in, MutableByteSpan out) const override {
        if (in.size() < 4) throw corrupt("{} bytes are too few for a checksum, which has 4", in.size());
        const std::size_t size = in.size() - 4;
        const ByteSpan data = at_start_ ? in.subspan(4) : in.first(size);
        const std::uint32_t stored = load_little<std::uint32_t>(at_start_ ? in.data() : in.data() + size);
        const std::uint32_t computed = sum_(data, seed_);
        if (stored != computed) {
            throw corrupt("the stored checksum is {:#010x}, but that of the data is {:#010x}: they are damaged", stored,
                          computed);
        }
        if (size > out.size()) return std::nullopt;
        std::ranges::copy(data, out.begin());
        return size;
    }

    [[nodiscard]] std::optional<std::uint64_t> claimed_size(ByteSpan in) const override { return in.size(); }

private:
    Sum sum_;
    bool at_start_;
    std::uint32_t seed_;
};

constexpr std::array<std::string_view, 2> locations{"start", "end"};

/// A checksum of numcodecs whose location can be chosen.
std::unique_ptr<BytesToBytesCodec> make_located(Sum sum, const Value& configuration, bool at_start) {
    require_known_members(configuration, {"location"});
    const std::string_view location = choice_member(configuration, "location", at_start ? "start" : "end", locations);
    return std::make_unique<ChecksumCodec>(sum, location == "start");
}

std::unique_ptr<BytesToBytesCodec> make_crc32c_codec(const Value& configuration, std::int64_t /*item_size*/) {
    require_known_members(configuration, {});
    return std::make_unique<ChecksumCodec>(crc32c, false);
}

std::unique_ptr<BytesToBytesCodec> make_numcodecs_crc32c_codec(const Value& configuration, std::int64_t /*item_size*/) {
    return make_located(crc32c, configuration, false);
}

std::unique_ptr<BytesToBytesCodec> make_crc32_codec(const Value& configuration, std::int64_t /*item_size*/) {
    return make_located(crc32, configuration, true);
}

std::unique_ptr<BytesToBytesCodec> make_adler32_codec(const Value& configuration, std::int64_t /*item_size*/) {
    return make_located(adler32, configuration, true);
}

std::unique_ptr<BytesToBytesCodec> make_fletcher32_codec(const Value& configuration, std::int64_t /*item_size*/) {
    require_known_members(configuration, {});
    return std::make_unique<ChecksumCodec>(fletcher32, false);
}

std::unique_ptr<BytesToBytesCodec> make_jenkins_lookup3_codec(const Value& configuration, std::int64_t /*item_size*/) {
    require_known_members(configuration, {"initval", "prefix"});
    if (given_member(configuration, "prefix"))
        throw unsupported("a prefix, which numcodecs cannot write as JSON either");
    const std::int64_t seed = integer_member(configuration, "initval", 0, 0, UINT32_MAX);
    return std::make_unique<ChecksumCodec>(jenkins_lookup3, false, static_cast<std::uint32_t>(seed));
}

}  // namespace

extern constinit const CodecRow crc32c_codec{
    .name = "crc32c",
    .about = "a checksum after the data",
    .bytes_to_bytes = make_crc32c_codec,
    .numcodecs = true,
};

extern constinit const CodecRow numcodecs_crc32c_codec{
    .name = "numcodecs.crc32c",
    .about = "a checksum after or before the data",
    .bytes_to_bytes = make_numcodecs_crc32c_codec,
};

extern constinit const CodecRow crc32_codec{
    .name = "numcodecs.crc32",
    .about = "a checksum before or after the data",
    .bytes_to_bytes = make_crc32_codec,
};

extern constinit const CodecRow adler32_codec{
    .name = "numcodecs.adler32",
    .about = "a checksum before or after the data",
    .bytes_to_bytes = make_adler32_codec,
};

extern constinit const CodecRow fletcher32_codec{
    .name = "numcodecs.fletcher32",
    .about = "HDF5's checksum after the data",
    .bytes_to_bytes = make_fletcher32_codec,
};

extern constinit const CodecRow jenkins_lookup3_codec{
    .name = "numcodecs.jenkins_lookup3",
    .about = "HDF5's checksum of metadata after the data",
    .bytes_to_bytes = make_jenkins_lookup3_codec,
};

}  // namespace tessera
