#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "codec_test_util.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::array cnames{"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
constexpr std::array shuffles{"noshuffle", "shuffle", "bitshuffle"};

Value configuration(std::string_view cname, int clevel, std::string_view shuffle) {
    Value v = Value::object();
    v.set("cname", cname);
    v.set("clevel", clevel);
    v.set("shuffle", shuffle);
    return v;
}

std::unique_ptr<BytesToBytesCodec> codec(std::string_view cname = "lz4", int clevel = 5,
                                         std::string_view shuffle = "shuffle", std::int64_t item_size = 4) {
    return find_codec("blosc")->bytes_to_bytes(configuration(cname, clevel, shuffle), item_size);
}

Buffer read_file(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    return Buffer(std::as_bytes(std::span(text)));
}

/// Runs numcodecs_frames.py and returns the number of frames that it says it dealt with.
int numcodecs(std::string_view verb, const fs::path& folder) {
    return python_count(
        fmt::format("'{}/../unit/codecs/numcodecs_frames.py' {} '{}'", TESSERA_GOLDEN, verb, folder.string()));
}

TEST(Blosc, numcodecs_decodes_what_is_written_here) {
    const TemporaryFolder folder;
    const Buffer raw = counters(50'003);
    int count = 0;
    for (const char* cname : cnames) {
        for (const char* shuffle : shuffles) {
            for (const int clevel : {0, 1, 2, 5, 9}) {
                for (const std::int64_t item_size : {1, 4, 15, 300}) {
                    const ByteSpan part = raw.span().first(clevel == 2 ? 100 : raw.size() - 10 * clevel);
                    Buffer frame;
                    codec(cname, clevel, shuffle, item_size)->encode(part, frame);
                    const std::string name = fmt::format("{}-{}-{}-{}", cname, shuffle, clevel, item_size);
                    write_file(folder / (name + ".frame"), frame);
                    write_file(folder / (name + ".raw"), part);
                    ++count;
                    Buffer back(part.size());
                    codec()->decode(frame, back.span());
                    EXPECT_TRUE(same_bytes(back, part)) << name;
                }
            }
        }
    }
    EXPECT_EQ(numcodecs("check", folder.path()), count);
}

TEST(Blosc, what_numcodecs_writes_decodes_here) {
    const TemporaryFolder folder;
    const int count = numcodecs("make", folder.path());
    EXPECT_GE(count, 5 * 3 * 3 * 6);
    int decoded = 0;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
        fs::path path = entry.path();
        if (path.extension() != ".frame") continue;
        const Buffer frame = read_file(path);
        const Buffer raw = read_file(path.replace_extension(".raw"));
        Buffer out(raw.size());
        codec()->decode(frame, out.span());
        EXPECT_TRUE(same_bytes(out, raw)) << path;
        Buffer unsized;
        EXPECT_TRUE(codec()->decode_unsized(frame, unsized, raw.size()));
        EXPECT_TRUE(same_bytes(unsized, raw)) << path;
        ++decoded;
    }
    EXPECT_EQ(decoded, count);
}

TEST(Blosc, the_header_has_the_typesize) {
    const auto typesize = [](std::int64_t item_size, std::optional<int> given) {
        Value c = configuration("lz4", 5, "shuffle");
        if (given) c.set("typesize", *given);
        Buffer frame;
        find_codec("blosc")->bytes_to_bytes(c, item_size)->encode(counters(4000), frame);
        return std::to_integer<int>(frame.data()[3]);
    };
    EXPECT_EQ(typesize(4, {}), 4);
    EXPECT_EQ(typesize(255, {}), 255);
    EXPECT_EQ(typesize(256, {}), 1);
    EXPECT_EQ(typesize(4, 8), 8);
    EXPECT_EQ(typesize(4, 1000), 1);
}

TEST(Blosc, the_configuration_is_checked) {
    const auto refused = [](std::string_view message, const char* json) {
        expect_error(ErrorCode::invalid_argument, message,
                     [&] { (void)find_codec("blosc")->bytes_to_bytes(Value::parse(json), 4); });
    };
    refused("choose one of blosclz, lz4, lz4hc", R"({"cname": "LZ4"})");
    refused("clevel is 10, expected 0 to 9", R"({"cname": "lz4", "clevel": 10})");
    refused("clevel is -1", R"({"cname": "lz4", "clevel": -1})");
    refused("clevel", R"({"cname": "lz4", "clevel": "5"})");
    refused("choose one of noshuffle, shuffle, bitshuffle", R"({"cname": "lz4", "shuffle": "yes"})");
    refused("typesize is 0", R"({"cname": "lz4", "typesize": 0})");
    refused("blocksize", R"({"cname": "lz4", "blocksize": 18446744073709551615})");
    refused("unknown member \"level\"", R"({"cname": "lz4", "level": 5})");
    expect_error(ErrorCode::not_found, "cname", [] { (void)find_codec("blosc")->bytes_to_bytes(Value::object(), 4); });
}

TEST(Blosc, sizes_beyond_its_limit_are_refused_in_words) {
    EXPECT_EQ(codec()->encoded_bound(2'147'483'631), 2'147'483'647U);
    expect_error(ErrorCode::unsupported, "choose smaller chunks", [] { (void)codec()->encoded_bound(2'147'483'632); });
}

TEST(Blosc, nothing_at_all_round_trips) {
    Buffer frame;
    codec()->encode({}, frame);
    EXPECT_EQ(frame.size(), 16U);
    codec()->decode(frame, {});
}

TEST(Blosc, bytes_after_the_frame_are_ignored) {
    const Buffer raw = counters(4000);
    Buffer frame;
    codec()->encode(raw, frame);
    frame.append(counters(77));
    Buffer out(raw.size());
    codec()->decode(frame, out.span());
    EXPECT_TRUE(same_bytes(out, raw));
}

TEST(Blosc, damaged_golden_chunks_are_errors) {
    const fs::path golden = fs::path(TESSERA_GOLDEN) / "zarr0";
    Buffer out(200);
    expect_error(ErrorCode::corrupt, "expected 200",
                 [&] { codec()->decode(read_file(golden / "error_wrong_nbytes/__zdata__/0.blosc"), out.span()); });
    out.resize(2000);
    expect_error(ErrorCode::corrupt, "damaged",
                 [&] { codec()->decode(read_file(golden / "error_corrupt_payload/__zdata__/0.blosc"), out.span()); });
}

// ---- hostile frames: an error, or the right number of bytes. The memory beyond the output must stay as it was.

/// Decodes into the middle of guarded memory; true when it was no error.
bool decodes(ByteSpan frame, std::size_t size) {
    // Of its own exact size, so that a sanitizer sees any read beyond it.
    const Buffer in(frame);
    Buffer out(size + 128);
    std::memset(out.data(), 0xA5, out.size());
    const Buffer guard(out.span().first(64));
    bool ok = false;
    try {
        codec()->decode(in, out.span().subspan(64, size));
        ok = true;
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::corrupt) << e.what();
    }
    EXPECT_EQ(std::memcmp(out.data(), guard.data(), 64), 0);
    EXPECT_EQ(std::memcmp(out.data() + 64 + size, guard.data(), 64), 0);
    return ok;
}

void put_32(Buffer& frame, std::size_t at, std::uint32_t v) {
    for (std::size_t i = 0; i < 4; ++i) frame.data()[at + i] = static_cast<std::byte>(v >> 8 * i);
}

class HostileBlosc : public testing::TestWithParam<const char*> {};

TEST_P(HostileBlosc, truncated_frames_are_errors) {
    const Buffer raw = counters(3000);
    for (const char* shuffle : shuffles) {
        Buffer frame;
        codec(GetParam(), 5, shuffle)->encode(raw, frame);
        ASSERT_TRUE(decodes(frame, raw.size()));
        for (std::size_t n = 0; n < frame.size(); ++n) {
            EXPECT_FALSE(decodes(frame.span().first(n), raw.size())) << n;
            if (n < 16) continue;
            Buffer lie(frame.span().first(n));  // the header agrees with the truncation
            put_32(lie, 12, static_cast<std::uint32_t>(n));
            decodes(lie, raw.size());
        }
    }
}

TEST_P(HostileBlosc, lies_in_the_header) {
    const Buffer raw = counters(40'000);
    Buffer frame;
    codec(GetParam())->encode(raw, frame);
    for (const std::size_t at : {4, 8, 12}) {
        for (const std::uint32_t lie : {0U, 1U, 15U, 16U, 17U, 100U, 39'999U, 40'001U, 65'536U, 0x7fffffefU,
                                        0x7fffffffU, 0x80000000U, 0xffffffffU}) {
            Buffer bad(frame.span());
            put_32(bad, at, lie);
            const bool ok = decodes(bad, raw.size());
            if (at == 4) {
                EXPECT_FALSE(ok) << "nbytes " << lie;
            }
            Buffer out;  // a limit keeps what the header claims from being allocated
            EXPECT_THROW(
                {
                    if (!codec()->decode_unsized(bad, out, 39'000)) throw corrupt("beyond the limit");
                    if (out.size() <= 39'000) throw corrupt("within the limit");
                },
                Error);
            EXPECT_LE(out.capacity(), 48'000U);
        }
    }
    for (const std::size_t at : {0, 1, 2, 3}) {
        for (int b = 0; b < 256; ++b) {
            Buffer bad(frame.span());
            bad.data()[at] = static_cast<std::byte>(b);
            const bool ok = decodes(bad, raw.size());
            if (at == 0) {
                EXPECT_EQ(ok, b == 2) << "version " << b;
            }
        }
    }
}

TEST_P(HostileBlosc, flipped_bytes) {
    const Buffer raw = counters(2000);
    Buffer frame;
    codec(GetParam(), 5, "bitshuffle")->encode(raw, frame);
    for (std::size_t i = 0; i < frame.size(); ++i) {
        for (const int mask : {0x01, 0x80, 0xff}) {
            Buffer bad(frame.span());
            bad.data()[i] ^= static_cast<std::byte>(mask);
            decodes(bad, raw.size());
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Compressors, HostileBlosc, testing::ValuesIn(cnames),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace tessera
