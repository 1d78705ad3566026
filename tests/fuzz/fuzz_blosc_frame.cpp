// Our decoder of blosc frames beside c-blosc: what it decodes must be what c-blosc decodes, and what it takes on must
// be what c-blosc accepts. The first byte says what the rest is:
//
//   0         a frame
//   1 to 255  a choice of compressor, shuffle and split mode; then level, typesize, block size (2 bytes), up to four
//             places to damage (2 bytes) with the bits to flip there, and the data. c-blosc makes a frame of it.
#include <blosc.h>

#include <array>
#include <cstring>
#include <vector>

#include "blosc_frame.h"
#include "fuzz.h"
#include "span_source.h"

using namespace tessera;

namespace {

/// A source that is not in memory, as a file is.
class FileLike final : public ByteSource {
public:
    explicit FileLike(ByteSpan bytes) : bytes_(bytes, "frame") {}
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    void read(std::uint64_t offset, MutableByteSpan out) const override {
        if (offset + out.size() > bytes_.size()) __builtin_trap();  // the decoder asks for nothing that is not there
        bytes_.read(offset, out);
    }
    [[nodiscard]] const std::string& name() const override { return bytes_.name(); }

private:
    SpanSource bytes_;
};

bool decode(const ByteSource& frame, const Shape& chunk, const Region& part, std::span<std::byte> out) {
    CodecScratch scratch;
    const auto runs = ByteRuns::of(chunk, part, view_bytes(out.data(), "|u1", part.extent));
    return runs && decode_blosc_runs(frame, static_cast<std::uint64_t>(chunk[0]), *runs, scratch);
}

void compare(ByteSpan frame, bool intact) {
    const std::uint32_t size =
        read_blosc_header(frame.first(std::min<std::size_t>(frame.size(), 16)), frame.size()).nbytes;
    if (size > fuzz_limit || size == 0) return;
    const Shape chunk{static_cast<std::int64_t>(size)};
    std::vector<std::byte> theirs(size);
    const bool good = blosc_decompress_ctx(frame.data(), theirs.data(), size, 1) == static_cast<int>(size);
    std::vector<std::byte> ours(size);
    const bool done = decode(SpanSource(frame, "frame"), chunk, Region::whole(chunk), ours);
    // Some that c-blosc writes in its mode "always split" it cannot read.
    if (intact && good && !done) __builtin_trap();
    if (!done) return;
    if (!good || ours != theirs) __builtin_trap();
    // Parts of it, which the file-like source gives block by block.
    for (const std::size_t first : {std::size_t{0}, std::size_t{size} / 3, std::size_t{size} - 1}) {
        Region part = Region::whole(chunk);
        part.start[0] = static_cast<std::int64_t>(first);
        part.extent[0] = static_cast<std::int64_t>(std::min<std::size_t>(size - first, 777));
        if (!decode(FileLike(frame), chunk, part, ours)) __builtin_trap();
        if (std::memcmp(ours.data(), theirs.data() + first, static_cast<std::size_t>(part.extent[0])) != 0)
            __builtin_trap();
    }
}

/// Some bytes of a frame replaced by their opposites must give what c-blosc makes of all of them; of a damaged frame,
/// anything or nothing. `good` is the frame as it was.
template <class Encode>
void edit(ByteSpan frame, ByteSpan good, ByteSpan data, std::size_t at, std::size_t blocksize, const Encode& encode) {
    const BloscHeader header = read_blosc_header(good, good.size());
    const std::size_t first = at % data.size();
    std::vector<std::byte> all(data.begin(), data.end());
    for (std::size_t i = first; i < all.size() && i < first + 999; ++i) all[i] = ~all[i];
    const auto bytes = static_cast<std::int64_t>(std::min<std::size_t>(all.size() - first, 999));
    const Region part{{static_cast<std::int64_t>(first)}, {bytes}};
    const auto runs =
        ByteRuns::of({static_cast<std::int64_t>(all.size())}, part, view_bytes(all.data() + first, "|u1", part.extent));
    CodecScratch scratch;
    Buffer made;
    const auto encode_block = [&](ByteSpan block, Buffer& out) {
        out = Buffer(ByteSpan(encode(block, block.size(), 2 * block.size() + 2 * BLOSC_MAX_OVERHEAD)));
    };
    if (!edit_blosc_frame(frame, header, runs.value(), encode_block, scratch, made)) return;
    if (!std::ranges::equal(frame, good)) return;
    const auto theirs = encode(all, blocksize, all.size() + BLOSC_MAX_OVERHEAD);
    if (theirs != std::vector<std::byte>(made.data(), made.data() + made.size())) __builtin_trap();
}

std::size_t two_bytes(ByteSpan at) {
    return std::to_integer<std::size_t>(at[0]) | std::to_integer<std::size_t>(at[1]) << 8;
}

}  // namespace

void fuzz_one(ByteSpan input) {
    if (input.empty()) return;
    const auto choice = std::to_integer<unsigned>(input[0]);
    input = input.subspan(1);
    if (choice == 0) {
        compare(input, false);
        return;
    }
    constexpr std::size_t parameters = 16;
    if (input.size() < parameters) return;
    constexpr std::array compressors{"lz4", "blosclz", "lz4hc", "zlib", "zstd"};
    blosc_set_splitmode(static_cast<int>(1 + choice / 15 % 4));
    const ByteSpan data = input.subspan(parameters);
    const auto typesize = std::max<std::size_t>(1, std::to_integer<std::size_t>(input[1]));
    const auto encode = [&](ByteSpan bytes, std::size_t blocksize, std::size_t room) {
        std::vector<std::byte> made(room);
        const int size = blosc_compress_ctx(std::to_integer<int>(input[0]) % 10, static_cast<int>(choice / 5 % 3),
                                            typesize, bytes.size(), bytes.data(), made.data(), made.size(),
                                            compressors[choice % 5], blocksize, 1);
        made.resize(static_cast<std::size_t>(std::max(size, 0)));
        return made;
    };
    const std::size_t blocksize = two_bytes(input.subspan(2));
    std::vector<std::byte> frame = encode(data, blocksize, data.size() + BLOSC_MAX_OVERHEAD);
    if (frame.empty()) return;
    const std::vector<std::byte> good = frame;
    const auto edit_it = [&] { edit(frame, good, data, two_bytes(input.subspan(4)), blocksize, encode); };
    if (!data.empty()) edit_it();
    bool intact = true;
    for (std::size_t i = 4; i < parameters; i += 3) {
        const std::byte flip = input[i + 2];
        frame[two_bytes(input.subspan(i)) % frame.size()] ^= flip;
        intact = intact && flip == std::byte{0};
    }
    compare(frame, intact);
    if (!data.empty()) edit_it();
}
