// Every codec against numcodecs: what it wrote (tests/golden/numcodecs) decodes here to the same, and what is written
// here decodes there. Then what hostile data do to each of them.
#include <fmt/format.h>
#include <tessera/copy_elements.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "codec_test_util.h"

namespace tessera {
namespace {

/// One array as numcodecs encoded it.
struct Case {
    std::string name;
    CodecConfig codec;
    DType dtype;
    Shape shape;
    Value in;       ///< bytes in hexadecimal, or those of each element
    Value decoded;  ///< the same unless the codec loses something
    Buffer encoded;
    bool exact = false;  ///< whether encoding must give the very same bytes

    [[nodiscard]] ChunkSpec spec() const { return {dtype, shape, {}}; }
};

Buffer from_hex(std::string_view text) {
    Buffer bytes(text.size() / 2);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes.data()[i] = static_cast<std::byte>(std::stoi(std::string(text.substr(2 * i, 2)), nullptr, 16));
    }
    return bytes;
}

std::string to_hex(ByteSpan bytes) {
    std::string text;
    for (const std::byte b : bytes) text += fmt::format("{:02x}", std::to_integer<int>(b));
    return text;
}

const std::vector<Case>& cases() {
    static const std::vector<Case> all = [] {
        std::ifstream file(TESSERA_GOLDEN "/numcodecs/cases.json");
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        std::vector<Case> list;
        const Value json = Value::parse(text);
        for (const Value& v : json.as_array()) {
            Case c;
            c.codec = codec_from_json(v.at("codec"));
            c.dtype = v.at("dtype").as_string();
            for (const Value& n : v.at("shape").as_array()) c.shape.push_back(n.as_int64());
            c.in = v.at("in");
            c.decoded = v.find("decoded") ? v.at("decoded") : c.in;
            c.encoded = from_hex(v.at("encoded").as_string());
            c.exact = v.at("exact").as_bool();
            c.name = fmt::format("{} {} {} {}", list.size(), codec_to_json(c.codec).dump(), c.dtype.str(),
                                 c.shape.to_string());
            list.push_back(std::move(c));
        }
        return list;
    }();
    return all;
}

const CodecRow& row_of(const CodecConfig& codec) {
    const auto table = codec_table();
    const auto row = std::ranges::find(table, codec.name, &CodecRow::name);
    if (row == table.end()) throw unsupported(codec.name);
    return *row;
}

NDArray array_of(const Case& c, const Value& content) {
    NDArray a(c.dtype, c.shape);
    if (content.is_string()) {
        const Buffer bytes = from_hex(content.as_string());
        EXPECT_EQ(bytes.size(), a.bytes().size());
        std::ranges::copy(bytes.span(), a.bytes().data());
        return a;
    }
    auto* slot = reinterpret_cast<VariableSlot*>(a.bytes().data());
    for (const Value& item : content.as_array()) {
        const Buffer bytes = from_hex(item.as_string());
        *slot++ = a.view().arena->add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    return a;
}

/// As the golden file has it.
Value content_of(const NDArray& a) {
    if (!a.dtype().is_variable()) return to_hex(a.bytes());
    Value list = Value::array();
    const auto* slot = reinterpret_cast<const VariableSlot*>(a.bytes().data());
    for (std::int64_t i = 0; i < a.count(); ++i) {
        const std::string_view text = slot[i].view();
        list.push_back(to_hex(std::as_bytes(std::span(text))));
    }
    return list;
}

/// The elements as bytes in C order.
Buffer packed(const NDArray& a) {
    const NDArray c = NDArray::copy_of(a);
    return Buffer(c.bytes());
}

void check_array_to_array(const Case& c) {
    const auto codec = row_of(c.codec).array_to_array(c.codec.configuration, c.spec());
    const NDArray in = array_of(c, c.in);
    EXPECT_EQ(to_hex(packed(codec->encode(in))), to_hex(c.encoded));
    // From memory in another order, and into such memory.
    NDArray turned(c.dtype, c.shape, Order::F);
    copy_elements(in, turned);
    EXPECT_EQ(to_hex(packed(codec->encode(turned))), to_hex(c.encoded));
    const ChunkSpec& spec = codec->encoded();
    ASSERT_EQ(static_cast<std::size_t>(byte_count(spec.shape, spec.dtype.size())), c.encoded.size());
    const ArrayView encoded = view_bytes(c.encoded.data(), spec.dtype, spec.shape);
    for (const Order order : {Order::C, Order::F}) {
        NDArray out(c.dtype, c.shape, order);
        codec->decode(encoded, out);
        EXPECT_EQ(content_of(NDArray::copy_of(out)), c.decoded);
    }
}

void check_array_to_bytes(const Case& c) {
    const auto codec = row_of(c.codec).array_to_bytes(c.codec.configuration, c.spec());
    Buffer encoded;
    if (row_of(c.codec).only_decodes) {
        expect_error(ErrorCode::unsupported, "no encoder", [&] { codec->encode(array_of(c, c.in), encoded); });
    } else {
        codec->encode(array_of(c, c.in), encoded);
        EXPECT_EQ(to_hex(encoded), to_hex(c.encoded));
    }
    for (const Order order : {Order::C, Order::F}) {
        NDArray out(c.dtype, c.shape, order);
        codec->decode(c.encoded, out);
        EXPECT_EQ(content_of(NDArray::copy_of(out)), c.decoded);
    }
}

void check_bytes_to_bytes(const Case& c) {
    const auto codec = row_of(c.codec).bytes_to_bytes(c.codec.configuration, 1);
    const Buffer raw = from_hex(c.decoded.as_string());
    Buffer out(raw.size());
    codec->decode(c.encoded, out.span());
    EXPECT_TRUE(same_bytes(out, raw));
    Buffer unsized;
    EXPECT_TRUE(codec->decode_unsized(c.encoded, unsized, raw.size()));
    EXPECT_TRUE(same_bytes(unsized, raw));
    Buffer encoded;
    codec->encode(raw, encoded);
    EXPECT_LE(encoded.size(), codec->encoded_bound(raw.size()));
    if (c.exact) {
        EXPECT_EQ(to_hex(encoded), to_hex(c.encoded));
    }
    codec->decode(encoded, out.span());
    EXPECT_TRUE(same_bytes(out, raw));
}

TEST(Numcodecs, what_it_writes_decodes_here_and_filters_encode_alike) {
    std::set<std::string> names;
    for (const Case& c : cases()) {
        SCOPED_TRACE(c.name);
        const CodecRow& row = row_of(c.codec);
        if (row.array_to_array) check_array_to_array(c);
        if (row.array_to_bytes) check_array_to_bytes(c);
        if (row.bytes_to_bytes) check_bytes_to_bytes(c);
        names.insert(c.codec.name);
        if (testing::Test::HasFailure()) return;  // one is enough to read
    }
    EXPECT_EQ(names.size(), 23U);
}

TEST(Numcodecs, it_decodes_what_is_compressed_here) {
    const TemporaryFolder folder;
    int count = 0;
    for (const Case& c : cases()) {
        if (!row_of(c.codec).bytes_to_bytes) continue;
        // It cannot decode nothing where that has no bytes, nor filters that only the raw format needs.
        const Value* filters = c.codec.configuration.find("filters");
        if (filters && filters->is_array() && c.codec.configuration.at("format") != Value(3)) continue;
        if (c.decoded == Value("")) continue;
        const Buffer raw = from_hex(c.decoded.as_string());
        Buffer encoded;
        row_of(c.codec).bytes_to_bytes(c.codec.configuration, 1)->encode(raw, encoded);
        write_file(folder / fmt::format("{}.raw", count), raw);
        write_file(folder / fmt::format("{}.frame", count), encoded);
        const std::string json = codec_to_json(c.codec).dump();
        write_file(folder / fmt::format("{}.json", count), std::as_bytes(std::span(json)));
        ++count;
    }
    EXPECT_GT(count, 100);
    EXPECT_EQ(python_count(fmt::format("'{}/numcodecs/make.py' check '{}'", TESSERA_GOLDEN, folder.path().string())),
              count);
}

// ---- hostile data

/// The kinds of codec that decode bytes, each with some data: one case of every configuration, the longest.
std::vector<Case const*> hostile_cases() {
    std::vector<Case const*> found;
    for (const Case& c : cases()) {
        if (row_of(c.codec).array_to_array) continue;
        if (c.encoded.size() < 20 || c.encoded.size() > 700) continue;
        if (c.codec == CodecConfig{"gzip"}) continue;  // has padding at its end, which may be cut off
        if (found.empty() || found.back()->codec != c.codec) found.push_back(&c);
    }
    return found;
}

/// Whether `bytes` decode; if they do not, it must be said by a corrupt Error. Never more memory than asked for.
bool decodes(const Case& c, ByteSpan bytes) {
    const Buffer in(bytes);  // of its own exact size, so that a sanitizer sees any read beyond it
    try {
        if (const auto make = row_of(c.codec).array_to_bytes) {
            NDArray out(c.dtype, c.shape);
            make(c.codec.configuration, c.spec())->decode(in, out);
            return true;
        }
        const auto codec = row_of(c.codec).bytes_to_bytes(c.codec.configuration, 1);
        const std::size_t size = c.decoded.as_string().size() / 2;
        Buffer unsized;
        try {
            (void)codec->decode_unsized(in, unsized, size);
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::corrupt) << e.what();
        }
        EXPECT_LE(unsized.capacity(), size);
        Buffer out(size);
        codec->decode(in, out.span());
        return true;
    } catch (const Error& e) {
        // A text of JSON may also become one of numbers.
        EXPECT_TRUE(e.code() == ErrorCode::corrupt || c.codec.name == "numcodecs.json2" ||
                    c.codec.name == "numcodecs.msgpack2")
            << e.what();
        return false;
    }
}

TEST(HostileData, cut_short_or_lengthened) {
    std::set<std::string> names;
    for (const Case* c : hostile_cases()) {
        SCOPED_TRACE(c->name);
        names.insert(c->codec.name);
        ASSERT_TRUE(decodes(*c, c->encoded));
        for (std::size_t n = 0; n < c->encoded.size(); ++n) EXPECT_FALSE(decodes(*c, c->encoded.span().first(n))) << n;
        if (c->codec.name == "numcodecs.blosc") continue;  // bytes after a frame are ignored
        for (const std::size_t more : {1, 4, 100}) {
            Buffer longer(c->encoded.span());
            longer.append(counters(more + 100).span().subspan(100));
            EXPECT_FALSE(decodes(*c, longer)) << more;
        }
    }
    EXPECT_EQ(names.size(), 16U);
}

TEST(HostileData, flipped_bits) {
    for (const Case* c : hostile_cases()) {
        SCOPED_TRACE(c->name);
        for (std::size_t i = 0; i < c->encoded.size(); ++i) {
            for (const int mask : {0x01, 0x40, 0xff}) {
                Buffer bad(c->encoded.span());
                bad.data()[i] ^= static_cast<std::byte>(mask);
                const bool ok = decodes(*c, bad);
                const std::string& name = c->codec.name;
                if (name.ends_with("crc32") || name.ends_with("adler32")) {
                    EXPECT_FALSE(ok) << i;
                }
            }
        }
    }
}

TEST(HostileData, bombs_stop_at_the_limit) {
    const Buffer zeros = [] {
        Buffer b(std::size_t{16} << 20);
        std::ranges::fill(b.span(), std::byte{0});
        return b;
    }();
    for (const char* text : {"gzip:9", "zstd:3", "zlib:9", "lz4", "bz2:9", "lzma:1", "blosc:zstd:9", "crc32c"}) {
        SCOPED_TRACE(text);
        const CodecConfig config = parse_codec(text);
        const auto codec = row_of(config).bytes_to_bytes(config.configuration, 1);
        Buffer bomb;
        codec->encode(zeros, bomb);
        Buffer out;
        EXPECT_FALSE(codec->decode_unsized(bomb, out, 1'000'000));
        EXPECT_LE(out.capacity(), 1'000'000U);
        out.reset(1000);
        expect_error(ErrorCode::corrupt, "", [&] { codec->decode(bomb, out.span()); });
        EXPECT_TRUE(codec->decode_unsized(bomb, out, zeros.size()));
        EXPECT_TRUE(same_bytes(out, zeros));
    }
}

TEST(HostileData, claimed_sizes_are_not_allocated) {
    // A frame of zstd and a block of lz4 that claim 1 GiB and have next to nothing.
    const std::array<std::uint8_t, 12> zstd{0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40, 0x01, 0, 0};
    const std::array<std::uint8_t, 8> lz4{0, 0, 0, 0x40, 0x10, 0, 0, 0};
    // A block that exceeds the window of its frame, of which zstd says what it says of too little room.
    const std::array<std::uint8_t, 44> beyond{0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x77, 0x05, 0x01, 0,    0x6c, 0x69,
                                              0x74, 0xb8, 0x0f, 0,    0,    0,    0x01, 0,    0,    0,    0xfe,
                                              0x02, 0,    0,    0,    0x62, 0x63, 0x08, 0x62, 0x63, 0x64, 0xc5,
                                              0x66, 0xff, 0x68, 0x02, 0,    0xa9, 0x73, 0x23, 0x5b, 0x65, 0x09};
    // .lzma with a dictionary of 4 GiB less one.
    const std::array<std::uint8_t, 18> alone{0x5d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                             0xff, 0xff, 0xff, 0xff, 0,    0,    0,    0,    0};
    const auto refused = [](const CodecConfig& config, ByteSpan bytes) {
        const auto codec = row_of(config).bytes_to_bytes(config.configuration, 1);
        Buffer out;
        expect_error(ErrorCode::corrupt, "", [&] { (void)codec->decode_unsized(bytes, out, std::uint64_t{1} << 31); });
        EXPECT_LE(out.capacity(), std::size_t{2} << 20);
    };
    refused(parse_codec("zstd"), std::as_bytes(std::span(zstd)));
    refused(parse_codec("zstd"), std::as_bytes(std::span(beyond)));
    refused(parse_codec("lz4"), std::as_bytes(std::span(lz4)));
    refused({"numcodecs.lzma", Value::parse(R"({"format": 2})")}, std::as_bytes(std::span(alone)));
}

}  // namespace
}  // namespace tessera
