// Our decoder of blosc frames against c-blosc, which writes them and says what is in them.
#include "blosc_frame.h"

#include <blosc.h>
#include <gmock/gmock.h>
#include <tessera/copy_elements.h>
#include <tessera/little_endian.h>
#include <tessera/pipeline.h>

#include <cstring>
#include <random>
#include <vector>

#include "../../expect_error.h"
#include "span_source.h"
#include "unshuffle.h"

namespace tessera {
namespace {

using Bytes = std::vector<std::byte>;

/// Compressible, and different at every place that a wrong shuffle could take for another.
Bytes sample(std::size_t size) {
    Bytes data(size);
    for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i % 7 == 0 ? i / 5 : i / 256);
    return data;
}

Bytes frame_of(const Bytes& data, const char* compressor, int level, int shuffle, std::size_t typesize,
               std::size_t blocksize) {
    Bytes frame(data.size() + BLOSC_MAX_OVERHEAD);
    const int size = blosc_compress_ctx(level, shuffle, typesize, data.size(), data.data(), frame.data(), frame.size(),
                                        compressor, blocksize, 1);
    EXPECT_GT(size, 0);
    frame.resize(static_cast<std::size_t>(size));
    return frame;
}

/// A source that is not in memory, and counts what is read of it.
class CountedSource final : public ByteSource {
public:
    explicit CountedSource(const Bytes& bytes) : bytes_(bytes, "counted") {}
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    void read(std::uint64_t offset, MutableByteSpan out) const override {
        read_bytes += out.size();
        bytes_.read(offset, out);
    }
    [[nodiscard]] const std::string& name() const override { return bytes_.name(); }
    mutable std::size_t read_bytes = 0;

private:
    SpanSource bytes_;
};

/// Bytes [first, first + n) of a frame; nothing where the decoder leaves it to c-blosc.
std::optional<Bytes> decoded(const ByteSource& frame, std::size_t whole, std::size_t first, std::size_t n) {
    Bytes out(n);
    const Shape chunk{static_cast<std::int64_t>(whole)};
    Region part = Region::whole(Shape{static_cast<std::int64_t>(n)});
    part.start[0] = static_cast<std::int64_t>(first);
    const auto runs = ByteRuns::of(chunk, part, view_bytes(out.data(), "|u1", part.extent));
    CodecScratch scratch;
    if (!decode_blosc_runs(frame, whole, runs.value(), scratch)) return std::nullopt;
    return out;
}

Bytes slice(const Bytes& data, std::size_t first, std::size_t n) {
    const auto begin = data.begin() + static_cast<std::ptrdiff_t>(first);
    return {begin, begin + static_cast<std::ptrdiff_t>(n)};
}

struct Kind {
    const char* compressor;
    int level;
    int shuffle;
};

class BloscFrame : public testing::TestWithParam<Kind> {};

TEST_P(BloscFrame, DecodesWhatCBloscWrote) {
    const auto [compressor, level, shuffle] = GetParam();
    for (const std::size_t typesize : {1, 2, 3, 4, 7, 8, 12, 16, 17, 24, 255}) {
        for (const std::size_t blocksize : {0, 128, 4096}) {
            for (const std::size_t size : {1, 127, 4099, 70000}) {
                const Bytes data = sample(size);
                const Bytes frame = frame_of(data, compressor, level, shuffle, typesize, blocksize);
                ASSERT_EQ(decoded(SpanSource(frame, "frame"), size, 0, size), data)
                    << typesize << ' ' << blocksize << ' ' << size;
                const std::size_t n = size / 2 + 1;
                ASSERT_EQ(decoded(CountedSource(frame), size, size / 3, std::min(n, size - size / 3)),
                          slice(data, size / 3, std::min(n, size - size / 3)));
            }
        }
    }
}

/// The frame with `n` bytes of it, from `first` on, replaced; nothing where that is left to encoding all of it.
std::optional<Bytes> edited(const Bytes& frame, const Kind& kind, const Bytes& data, std::size_t first, std::size_t n) {
    const BloscHeader header = read_blosc_header(frame, frame.size());
    Bytes news = slice(data, first, n);
    const Region part{{static_cast<std::int64_t>(first)}, {static_cast<std::int64_t>(n)}};
    const auto runs =
        ByteRuns::of({static_cast<std::int64_t>(data.size())}, part, view_bytes(news.data(), "|u1", part.extent));
    const auto encode = [&](ByteSpan block, Buffer& out) {
        const Bytes made = frame_of({block.begin(), block.end()}, kind.compressor, kind.level, kind.shuffle,
                                    header.typesize, block.size());
        out = Buffer(ByteSpan(made));
    };
    CodecScratch scratch;
    Buffer out;
    if (!edit_blosc_frame(frame, header, runs.value(), encode, scratch, out)) return std::nullopt;
    return Bytes(out.data(), out.data() + out.size());
}

TEST_P(BloscFrame, EditedIsWhatEncodingAllGives) {
    const Kind kind = GetParam();
    std::mt19937_64 random(7);
    int sure = 0;
    for (const std::size_t typesize : {1, 2, 3, 4, 7, 8, 16, 17, 255}) {
        for (const std::size_t blocksize : {0, 128, 4096}) {
            for (const std::size_t size : {1, 4099, 70000, 1 << 18}) {
                for (const std::size_t noise_in : {0, 3, 64}) {  // how many bytes of 64 cannot be compressed
                    Bytes data(size);
                    for (std::size_t i = 0; i < size; ++i)
                        data[i] = static_cast<std::byte>(i % 64 < noise_in ? random() : i / 256);
                    const Bytes frame = frame_of(data, kind.compressor, kind.level, kind.shuffle, typesize, blocksize);
                    const std::size_t first = random() % size;
                    const std::size_t n = 1 + random() % std::min<std::size_t>(size - first, 50000);
                    for (std::size_t i = first; i < first + n; ++i) data[i] = static_cast<std::byte>(i / 9);
                    const auto made = edited(frame, kind, data, first, n);
                    if (made) {
                        ASSERT_EQ(*made, frame_of(data, kind.compressor, kind.level, kind.shuffle, typesize, blocksize))
                            << typesize << ' ' << blocksize << ' ' << size << ' ' << noise_in;
                    }
                    // What compresses well and has no shorter last block must not be left to encoding all of it.
                    const std::size_t block = load_little<std::uint32_t>(&frame[8]);
                    if (frame.size() < size / 2 && size % block == 0 && size / block > 1 && block >= 4096) {
                        EXPECT_TRUE(made) << typesize << ' ' << blocksize << ' ' << size;
                        ++sure;
                    }
                }
            }
        }
    }
    EXPECT_TRUE(sure > 0 || kind.level == 0);
}

TEST(BloscFrameTest, KeepsNoBlockThatIsLongerThanItCanBe) {
    const Bytes data = sample(1 << 18);
    const Kind kind{"lz4", 5, BLOSC_SHUFFLE};
    Bytes frame = frame_of(data, kind.compressor, kind.level, kind.shuffle, 4, 4096);
    ASSERT_EQ(load_little<std::uint32_t>(&frame[8]), 65536U);
    ASSERT_TRUE(edited(frame, kind, data, 0, 10));
    const std::size_t more = 10 * data.size();
    frame.insert(frame.begin() + load_little<std::uint32_t>(&frame[16 + 4 * 2]), more, std::byte{7});  // behind block 1
    for (const std::size_t at : {16 + 4 * 2, 16 + 4 * 3, 12})
        store_little(&frame[at], static_cast<std::uint32_t>(load_little<std::uint32_t>(&frame[at]) + more));
    EXPECT_FALSE(edited(frame, kind, data, 0, 10));
}

TEST(BloscFrameTest, EditsOnlyWhatItsOwnSettingsWrote) {
    const Bytes data = sample(1 << 20);
    const CodecPipeline pipeline({"<f4", {1 << 18}, std::nullopt},
                                 std::vector{CodecConfig{"bytes"}, parse_codec("blosc:lz4:5:shuffle")});
    const Region part{{77777}, {5}};
    const ArrayView news = view_bytes(data.data(), "<f4", part.extent);
    CodecScratch scratch;
    const auto edits = [&](const Bytes& frame) { return pipeline.encode_part(frame, part, news, scratch).has_value(); };
    EXPECT_TRUE(edits(frame_of(data, "lz4", 5, BLOSC_SHUFFLE, 4, 0)));
    EXPECT_FALSE(edits(frame_of(data, "zstd", 5, BLOSC_SHUFFLE, 4, 0)));
    EXPECT_FALSE(edits(frame_of(data, "lz4", 5, BLOSC_NOSHUFFLE, 4, 0)));
    EXPECT_FALSE(edits(frame_of(data, "lz4", 5, BLOSC_SHUFFLE, 8, 0)));
    EXPECT_FALSE(edits(frame_of(data, "lz4", 5, BLOSC_SHUFFLE, 4, 16384)));
    EXPECT_FALSE(edits(frame_of(data, "lz4", 0, BLOSC_SHUFFLE, 4, 0)));
}

INSTANTIATE_TEST_SUITE_P(All, BloscFrame,
                         testing::Values(Kind{"lz4", 5, BLOSC_SHUFFLE}, Kind{"lz4", 5, BLOSC_NOSHUFFLE},
                                         Kind{"lz4", 9, BLOSC_BITSHUFFLE}, Kind{"lz4", 0, BLOSC_SHUFFLE},
                                         Kind{"lz4hc", 5, BLOSC_SHUFFLE}, Kind{"blosclz", 5, BLOSC_SHUFFLE},
                                         Kind{"blosclz", 9, BLOSC_BITSHUFFLE}, Kind{"zlib", 1, BLOSC_SHUFFLE},
                                         Kind{"zstd", 1, BLOSC_SHUFFLE}, Kind{"zstd", 5, BLOSC_NOSHUFFLE}));

TEST(BloscFrameTest, ReadsTheFrontAndTheBlocksThatAreNeeded) {
    const Bytes data = sample(1 << 20);
    const Bytes frame = frame_of(data, "lz4", 5, BLOSC_SHUFFLE, 4, 16384);
    const auto encoded_bytes = [&](std::size_t from, std::size_t to) {  // of blocks [from, to)
        return load_little<std::uint32_t>(&frame[16 + 4 * to]) - load_little<std::uint32_t>(&frame[16 + 4 * from]);
    };
    // Asked for blocks of 16 KiB, c-blosc makes blocks of 64 KiB where they are split by bytes.
    ASSERT_EQ(load_little<std::uint32_t>(&frame[8]), 65536U);
    const CountedSource one(frame);
    EXPECT_EQ(decoded(one, data.size(), 700000, 4), slice(data, 700000, 4));
    EXPECT_EQ(one.read_bytes, 4096 + encoded_bytes(10, 11));
    const CountedSource two(frame);
    EXPECT_EQ(decoded(two, data.size(), 700000, 16384), slice(data, 700000, 16384));
    EXPECT_EQ(two.read_bytes, 4096 + encoded_bytes(10, 11));
}

TEST(BloscFrameTest, PutsRowsWhereTheyBelong) {
    const auto check = [](const Shape& chunk, const Region& part, const Index& at) {
        const Bytes data = sample(static_cast<std::size_t>(byte_count(chunk, 4)));
        const ArrayView packed = view_bytes(data.data(), "<f4", chunk);
        const Bytes frame = frame_of(data, "lz4", 5, BLOSC_SHUFFLE, 4, 1024);
        NDArray big("<f4", {7, 32, 2000});  // far apart, so that stores may go around the caches
        const MutableArrayView out = big.view().part({at, part.extent});
        CodecScratch scratch;
        ASSERT_TRUE(decode_blosc_runs(SpanSource(frame, "frame"), data.size(), ByteRuns::of(chunk, part, out).value(),
                                      scratch));
        EXPECT_TRUE(elements_equal(out, packed.part(part))) << part.to_string();
    };
    check({5, 6, 70}, {{1, 2, 3}, {3, 4, 65}}, {2, 1, 5});
    check({6, 32, 32}, Region::whole({6, 32, 32}), {1, 0, 16});  // rows that are whole lines of the cache
    check({6, 32, 33}, Region::whole({6, 32, 33}), {1, 0, 16});  // short rows
}

TEST(BloscFrameTest, LeavesWhatIsDamagedToCBlosc) {
    const Bytes data = sample(20000);
    const Bytes good = frame_of(data, "lz4", 5, BLOSC_SHUFFLE, 4, 4096);
    for (std::size_t at = 16; at < good.size(); ++at) {
        Bytes bad = good;
        bad[at] ^= std::byte{0xff};
        Bytes theirs(data.size());
        const int size = blosc_decompress_ctx(bad.data(), theirs.data(), theirs.size(), 1);
        const auto ours = decoded(SpanSource(bad, "frame"), data.size(), 0, data.size());
        if (ours) {
            EXPECT_EQ(size, static_cast<int>(data.size())) << at;
            EXPECT_EQ(*ours, theirs) << at;
        }
    }
    Bytes longer = good;
    longer[15] = std::byte{1};
    expect_error(ErrorCode::corrupt, "frame has",
                 [&] { (void)decoded(SpanSource(longer, "frame"), data.size(), 0, 4); });
    expect_error(ErrorCode::corrupt, "decodes to 20000 bytes, expected 9",
                 [&] { (void)decoded(SpanSource(good, "frame"), 9, 0, 4); });
}

/// What each machine does that this one can stand in for.
template <class Body>
void on_every_machine(const Body& body) {
    for (const Machine m : {Machine::portable, Machine::avx2, Machine::avx512}) {
        limit_machine(m);
        body();
    }
    limit_machine(best_machine());
}

Bytes shuffled(const Bytes& data, std::size_t typesize) {
    Bytes block(data.size());
    const std::size_t n = data.size() / typesize;
    for (std::size_t i = 0; i < data.size(); ++i) {
        block[i < n * typesize ? i % typesize * n + i / typesize : i] = data[i];
    }
    return block;
}

TEST(Unshuffle, AnyPartOfAnyBlock) {
    for (const std::size_t typesize : {1, 2, 3, 4, 8, 9, 16}) {
        const Bytes data = sample(typesize * 101 + typesize / 2);
        const Bytes block = shuffled(data, typesize);
        on_every_machine([&] {
            for (std::size_t first = 0; first < data.size(); first += 5) {
                for (const std::size_t size : {std::size_t{1}, std::size_t{40}, data.size()}) {
                    const std::size_t part = std::min(size, data.size() - first);
                    for (const bool around : {false, true}) {
                        Bytes out(part);
                        unshuffle({block, typesize}, first, part, out.data(), around);
                        finish_stores();
                        ASSERT_EQ(out, slice(data, first, part)) << typesize << ' ' << first;
                    }
                }
            }
        });
    }
}

TEST(Unshuffle, SingleElementsThatLieApart) {
    for (const std::size_t typesize : {2, 3, 4, 8, 16}) {
        const Bytes data = sample(typesize * 101 + typesize / 2);
        const Bytes block = shuffled(data, typesize);
        for (const std::size_t step : {1, 2, 7, 50}) {
            const std::size_t n = 100 / step;
            Bytes out(2 * n * typesize);
            unshuffle_each({block, typesize}, typesize, step * typesize, n, out.data(),
                           static_cast<std::int64_t>(2 * typesize));
            for (std::size_t i = 0; i < n; ++i) {
                ASSERT_EQ(slice(out, 2 * i * typesize, typesize), slice(data, (1 + i * step) * typesize, typesize))
                    << typesize << ' ' << step << ' ' << i;
            }
        }
    }
}

/// Calls body(to, check) with memory that begins at every place of a line; check() sees that n bytes of it are as
/// expected and none round them was written.
template <class Body>
void at_every_place(std::span<const std::byte> expected, const Body& body) {
    constexpr std::size_t line = 64;
    alignas(line) std::array<std::byte, 3 * line + 16 * 300> memory;
    const std::size_t n = expected.size();
    for (std::size_t place = 0; place < line; ++place) {
        std::byte* const to = &memory[line + place];
        const auto round = std::span(memory).first(line + place + n + line / 2);
        std::memset(round.data(), 0xA5, round.size());
        body(to);
        finish_stores();
        ASSERT_TRUE(std::ranges::equal(expected, std::span(to, n))) << n << " bytes at " << place;
        const auto untouched = [](std::byte b) { return b == std::byte{0xA5}; };
        ASSERT_TRUE(std::ranges::all_of(round.first(line + place), untouched)) << n << " bytes at " << place;
        ASSERT_TRUE(std::ranges::all_of(round.subspan(line + place + n), untouched)) << n << " bytes at " << place;
    }
}

TEST(Unshuffle, AnyLengthToAnyPlaceInEitherByteOrder) {
    for (const std::size_t typesize : {2, 4, 8, 16}) {
        const Bytes data = sample(typesize * 300);
        const Bytes block = shuffled(data, typesize);
        Bytes turned = data;
        for (std::size_t i = 0; i < turned.size(); i += typesize) {
            std::reverse(turned.begin() + static_cast<std::ptrdiff_t>(i),
                         turned.begin() + static_cast<std::ptrdiff_t>(i + typesize));
        }
        on_every_machine([&] {
            for (std::size_t n = 0; n <= 300; n = n < 80 ? n + 1 : n + 11) {
                for (const bool swapped : {false, true}) {
                    for (const bool around : {false, true}) {
                        // The end of the block, so that nothing behind it is read either.
                        const std::size_t first = (300 - n) * typesize;
                        const std::span expected = std::span(swapped ? turned : data).subspan(first);
                        at_every_place(expected, [&](std::byte* to) {
                            unshuffle({block, typesize, swapped}, first, n * typesize, to, around);
                        });
                        if (HasFatalFailure()) return;
                    }
                }
            }
        });
    }
}

TEST(Unshuffle, CopiesAnyLengthToAnyPlace) {
    const Bytes data = sample(300);
    on_every_machine([&] {
        for (std::size_t n = 0; n <= 300; ++n) {
            at_every_place(std::span(data).first(n), [&](std::byte* to) { stream_copy(to, data.data(), n); });
            if (HasFatalFailure()) return;
            for (const std::size_t number : {2, 4, 8}) {
                if (n % number != 0) continue;
                Bytes turned(n);
                for (std::size_t i = 0; i < n; ++i) turned[i] = data[i / number * number + number - 1 - i % number];
                at_every_place(turned, [&](std::byte* to) { copy_swapped(to, data.data(), n, number); });
                if (HasFatalFailure()) return;
            }
        }
    });
}

}  // namespace
}  // namespace tessera
