// What numcodecs 0.11 cannot show of the codecs: newer ones, v3's own, and what each refuses.
#include <fmt/format.h>
#include <tessera/copy_elements.h>
#include <tessera/pipeline.h>

#include <array>
#include <cmath>
#include <limits>

#include "codec_test_util.h"

namespace tessera {
namespace {

std::unique_ptr<BytesToBytesCodec> bytes_codec(std::string_view json, std::int64_t item_size = 1) {
    const CodecConfig config = codec_from_json(Value::parse(json));
    for (const CodecRow& row : codec_table()) {
        if (row.name == config.name) return row.bytes_to_bytes(config.configuration, item_size);
    }
    throw not_found(config.name);
}

std::unique_ptr<ArrayToArrayCodec> array_codec(std::string_view name, const char* configuration, const DType& dtype,
                                               const Shape& shape = {4}) {
    for (const CodecRow& row : codec_table()) {
        if (row.name == name) return row.array_to_array(Value::parse(configuration), {dtype, shape, {}});
    }
    throw not_found(std::string(name));
}

// ---- checksums

Buffer with_checksum(std::string_view json, ByteSpan data) {
    Buffer out;
    const auto codec = bytes_codec(json);
    codec->encode(data, out);
    EXPECT_EQ(out.size(), data.size() + 4);
    Buffer back(data.size());
    codec->decode(out, back.span());
    EXPECT_TRUE(same_bytes(back, data));
    return out;
}

std::uint32_t number_at(const Buffer& bytes, std::size_t at) {
    std::uint32_t sum = 0;
    for (int i = 3; i >= 0; --i) sum = sum << 8 | std::to_integer<std::uint32_t>(bytes.data()[at + i]);
    return sum;
}

std::uint32_t checksum(std::string_view json, ByteSpan data) {
    return number_at(with_checksum(json, data), data.size());
}

ByteSpan bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

TEST(Checksums, as_published) {
    EXPECT_EQ(checksum(R"("crc32c")", bytes_of("123456789")), 0xe3069283U);  // RFC 3720
    EXPECT_EQ(checksum(R"("numcodecs.crc32c")", bytes_of("123456789")), 0xe3069283U);
    // lookup3.c's own test.
    const ByteSpan text = bytes_of("Four score and seven years ago");
    EXPECT_EQ(checksum(R"("numcodecs.jenkins_lookup3")", text), 0x17770551U);
    EXPECT_EQ(checksum(R"({"name": "numcodecs.jenkins_lookup3", "configuration": {"initval": 1}})", text), 0xcd628161U);
    EXPECT_EQ(checksum(R"("numcodecs.jenkins_lookup3")", {}), 0xdeadbeefU);
}

TEST(Checksums, fletcher32_as_hdf5_writes_it) {
    // Chunks of a file that ncgen made with _Fletcher32: an odd number of bytes, and more than are folded at once.
    const std::array<std::uint8_t, 7> few{1, 2, 3, 252, 5, 6, 7};
    EXPECT_EQ(checksum(R"("numcodecs.fletcher32")", std::as_bytes(std::span(few))), 0x21081104U);
    Buffer many(2000);
    for (std::size_t i = 0; i < 1000; ++i) {
        const auto v = static_cast<std::uint16_t>(i * 40503 % 65536 - 32768);
        many.data()[2 * i] = static_cast<std::byte>(v);
        many.data()[2 * i + 1] = static_cast<std::byte>(v >> 8);
    }
    EXPECT_EQ(checksum(R"("numcodecs.fletcher32")", many), 0xb761685cU);
}

TEST(Checksums, stand_where_they_are_told_to) {
    for (const char* name : {"crc32", "adler32", "crc32c"}) {
        const auto at = [&](const char* location) {
            return fmt::format(R"({{"name": "numcodecs.{}", "configuration": {{"location": "{}"}}}})", name, location);
        };
        const Buffer data = counters(100);
        const Buffer start = with_checksum(at("start"), data);
        const Buffer end = with_checksum(at("end"), data);
        EXPECT_EQ(number_at(start, 0), number_at(end, 100));
        EXPECT_TRUE(same_bytes(start.span().subspan(4), data));
        expect_error(ErrorCode::invalid_argument, "choose one of start, end", [&] { (void)bytes_codec(at("middle")); });
    }
}

TEST(Checksums, damage_is_named) {
    Buffer bytes = with_checksum(R"("crc32c")", counters(100));
    bytes.data()[50] ^= std::byte{1};
    Buffer out(100);
    expect_error(ErrorCode::corrupt, "the stored checksum is 0x",
                 [&] { bytes_codec(R"("crc32c")")->decode(bytes, out.span()); });
    expect_error(ErrorCode::corrupt, "too few",
                 [&] { bytes_codec(R"("crc32c")")->decode(bytes.span().first(3), out.span()); });
}

// ---- blosc as numcodecs configures it

TEST(NumcodecsBlosc, automatic_shuffle_goes_by_the_item_size) {
    const auto flags = [](std::int64_t item_size) {
        Buffer frame;
        bytes_codec(R"({"name": "numcodecs.blosc", "configuration": {"shuffle": -1}})", item_size)
            ->encode(counters(4000), frame);
        return std::to_integer<int>(frame.data()[2]);
    };
    EXPECT_EQ(flags(1) & 5, 4);  // bits
    EXPECT_EQ(flags(4) & 5, 1);  // bytes
    expect_error(ErrorCode::invalid_argument, "shuffle is 3, expected -1 to 2",
                 [] { (void)bytes_codec(R"({"name": "numcodecs.blosc", "configuration": {"shuffle": 3}})"); });
}

// ---- lzma

TEST(Lzma, configurations_that_make_no_sense) {
    const auto refused = [](std::string_view message, std::string_view configuration,
                            ErrorCode code = ErrorCode::invalid_argument) {
        expect_error(code, message, [&] {
            (void)bytes_codec(fmt::format(R"({{"name": "numcodecs.lzma", "configuration": {}}})", configuration));
        });
    };
    refused("format is 0", R"({"format": 0})");
    refused("check is 2;", R"({"check": 2})");
    refused("check is 1, but only format 1", R"({"format": 2, "check": 1})");
    refused("both a preset and filters", R"({"preset": 1, "filters": [{"id": 33}]})");
    refused("needs filters", R"({"format": 3})");
    refused("preset is 10", R"({"preset": 10})");
    refused("filters has 0", R"({"format": 3, "filters": []})");
    refused("filters has 5", R"({"format": 3, "filters": [{"id": 3}, {"id": 3}, {"id": 3}, {"id": 3}, {"id": 33}]})");
    refused("no chain", R"({"format": 3, "filters": [{"id": 33}, {"id": 3}]})");
    refused("no chain", R"({"format": 3, "filters": [{"id": 77}]})");
    refused("no chain", R"({"format": 3, "filters": [{"id": 33, "lc": 9}]})");
    refused("dist is 257", R"({"format": 3, "filters": [{"id": 3, "dist": 257}, {"id": 33}]})");
    refused("unknown member \"size\"", R"({"format": 3, "filters": [{"id": 33, "size": 9}]})");
    refused("takes one filter only", R"({"format": 2, "filters": [{"id": 33}]})");
    refused("need 1024 MiB to decode", R"({"format": 3, "filters": [{"id": 33, "dict_size": 1073741824}]})",
            ErrorCode::unsupported);
}

// ---- transpose

TEST(Transpose, works_by_itself_and_says_its_axes) {
    const Shape shape{2, 3, 4};
    NDArray a("<i4", shape);
    for (std::int32_t i = 0; auto& v : a.values<std::int32_t>()) v = i++;
    const auto codec = array_codec("transpose", R"({"order": [2, 0, 1]})", "<i4", shape);
    EXPECT_EQ(codec->encoded().shape, (Shape{4, 2, 3}));
    EXPECT_EQ(*codec->axes(), (Dims{2, 0, 1}));
    const NDArray encoded = codec->encode(a);
    EXPECT_EQ(encoded.view().typed<std::int32_t>()(3, 1, 2), a.view().typed<std::int32_t>()(1, 2, 3));
    NDArray back("<i4", shape);
    codec->decode(encoded, back);
    EXPECT_TRUE(elements_equal(back, a));
    EXPECT_EQ(*array_codec("transpose", R"({"order": "F"})", "<i4", shape)->axes(), (Dims{2, 1, 0}));
    EXPECT_EQ(*array_codec("transpose", R"({"order": "C"})", "<i4", shape)->axes(), (Dims{0, 1, 2}));
    for (const char* bad : {R"({"order": [0, 1]})", R"({"order": [0, 1, 1]})", R"({"order": [1, 2, 3]})",
                            R"({"order": [-1, 0, 1]})", R"({"order": [0, 1, 2, 3]})"}) {
        expect_error(ErrorCode::invalid_argument, "each of the 3 axes once",
                     [&] { (void)array_codec("transpose", bad, "<i4", shape); });
    }
    expect_error(ErrorCode::invalid_argument, "give a list of axes",
                 [&] { (void)array_codec("transpose", R"({"order": "A"})", "<i4", shape); });
}

// ---- scale_offset: expected is what zarr-python 3.3's formulas give with NumPy

template <class T>
void check_scale_offset(const char* configuration, std::array<T, 4> in, std::array<T, 4> encoded,
                        std::array<T, 4> decoded) {
    for (const ByteOrder order : {ByteOrder::little, ByteOrder::big}) {
        const DType dtype = DType::of<T>().with_order(order);
        const auto codec = array_codec("scale_offset", configuration, dtype);
        const NDArray got = codec->encode(view(in));
        EXPECT_EQ(got.dtype(), dtype);
        EXPECT_TRUE(elements_equal(got, view(encoded))) << configuration;
        std::array<T, 4> back;
        codec->decode(got, view(back));
        EXPECT_TRUE(elements_equal(view(back), view(decoded))) << configuration;
    }
}

TEST(ScaleOffset, computes_in_the_dtype) {
    constexpr std::int16_t least = std::numeric_limits<std::int16_t>::min();
    check_scale_offset<double>(R"({"offset": 5, "scale": 2})", {5, 6.5, -1, 1e300}, {0, 3, -12, 2e300},
                               {5, 6.5, -1, 1e300});
    check_scale_offset<float>(R"({"offset": 0.1})", {0.1F, 1, 2, 3}, {0, 1 - 0.1F, 2 - 0.1F, 3 - 0.1F},
                              {0.1F, 1 - 0.1F + 0.1F, 2 - 0.1F + 0.1F, 3 - 0.1F + 0.1F});
    check_scale_offset<std::int16_t>(R"({"offset": 1, "scale": -3})", {1, 2, -7, 30}, {0, -3, 24, -87}, {1, 2, -7, 30});
    check_scale_offset<std::int16_t>(R"({"offset": 1, "scale": -1})", {1, 2, 3, least + 2}, {0, -1, -2, 32767},
                                     {1, 2, 3, least + 2});
    check_scale_offset<std::uint64_t>(R"({"offset": 1})", {1, 2, 3, UINT64_MAX}, {0, 1, 2, UINT64_MAX - 1},
                                      {1, 2, 3, UINT64_MAX});
    check_scale_offset<float>(R"({"offset": "0x40000000"})", {2, 3, 4, 5}, {0, 1, 2, 3}, {2, 3, 4, 5});
}

TEST(ScaleOffset, what_the_dtype_does_not_hold_is_an_error) {
    const auto refused = [](const char* configuration, std::uint8_t x, bool decoding, std::string_view message) {
        const auto codec = array_codec("scale_offset", configuration, "|u1", {1});
        const std::array<std::uint8_t, 1> in{x};
        std::array<std::uint8_t, 1> out;
        expect_error(decoding ? ErrorCode::corrupt : ErrorCode::invalid_argument, message, [&] {
            if (decoding)
                codec->decode(view(in), view(out));
            else
                (void)codec->encode(view(in));
        });
    };
    refused(R"({"offset": 10})", 9, false, "(9 - 10) × 1 is beyond the range");
    refused(R"({"scale": 3})", 100, false, "(100 - 0) × 3 is beyond");
    refused(R"({"scale": 3})", 100, true, "100 is no multiple of the scale 3");
    refused(R"({"scale": 0})", 0, true, "no multiple of the scale 0");
    refused(R"({"offset": 200})", 100, true, "100 / 1 + 200 is beyond");
}

TEST(ScaleOffset, refuses_what_the_dtype_cannot_say) {
    expect_error(ErrorCode::invalid_argument,
                 "offset: ", [] { (void)array_codec("scale_offset", R"({"offset": 0.5})", "<i4"); });
    expect_error(ErrorCode::invalid_argument,
                 "scale: ", [] { (void)array_codec("scale_offset", R"({"scale": 300})", "|u1"); });
    expect_error(ErrorCode::unsupported, "the dtype is |b1", [] { (void)array_codec("scale_offset", "{}", "|b1"); });
}

// ---- what filters refuse

TEST(Filters, dtypes_that_do_not_fit) {
    const auto refused = [](std::string_view name, const char* configuration, const DType& dtype,
                            std::string_view message, ErrorCode code = ErrorCode::invalid_argument) {
        SCOPED_TRACE(name);
        expect_error(code, message, [&] { (void)array_codec(name, configuration, dtype); });
    };
    refused("numcodecs.delta", R"({"dtype": "<i4"})", "<i8", "the codec is for elements of <i4, but they are of <i8");
    refused("numcodecs.delta", R"({"dtype": "<c16"})", "string", "the codec is for elements of <c16");
    refused("numcodecs.delta", R"({"dtype": "<M8[s]"})", "<M8[s]", "dtype is <M8[s], expected integers or floats",
            ErrorCode::unsupported);
    refused("numcodecs.delta", R"({"dtype": "<i4", "astype": "|S4"})", "<i4", "astype is |S4", ErrorCode::unsupported);
    refused("numcodecs.delta", R"({"dtype": "nonsense"})", "<i4", "dtype: dtype 'nonsense'");
    refused("numcodecs.fixedscaleoffset", R"({"offset": "1", "scale": 1})", "<f4",
            "offset is \"1\", expected a number");
    refused("numcodecs.fixedscaleoffset", R"({"scale": 1})", "<f4", "offset", ErrorCode::not_found);
    refused("numcodecs.quantize", R"({"digits": 1})", "<i4", "it is for floats");
    refused("numcodecs.quantize", R"({"digits": 301})", "<f4", "digits is 301");
    refused("numcodecs.bitround", R"({"keepbits": 24})", "<f4", "keepbits is 24, expected 0 to 23");
    refused("numcodecs.bitround", R"({"keepbits": 1})", "<i4", "it is for floats");
    refused("numcodecs.packbits", "{}", "|u1", "it is for booleans");
    refused("numcodecs.astype", R"({"encode_dtype": "<U4"})", "<i4", "is no type of number", ErrorCode::unsupported);
    refused("numcodecs.categorize", R"({"labels": ["a"], "dtype": "<U5"})", "<U4", "but they are of <U4");
    refused("numcodecs.categorize", R"({"labels": ["a"], "astype": "<f4"})", "<U4", "expected integers");
    Value many = Value::array();
    for (int i = 0; i < 256; ++i) many.push_back(std::to_string(i));
    Value configuration = Value::object();
    configuration.set("labels", many);
    refused("numcodecs.categorize", configuration.dump().c_str(), "<U4",
            "256 labels are more than astype |u1 can count");
}

TEST(Filters, casts_beyond_the_range_are_those_of_x86) {
    const double inf = std::numeric_limits<double>::infinity();
    const std::array<double, 4> in{std::numeric_limits<double>::quiet_NaN(), inf, -1e10, 300.7};
    const auto cast = [&]<class T>(std::array<T, 4> expected) {
        Value c = Value::object();
        c.set("encode_dtype", DType::of<T>().str());
        const NDArray got = array_codec("numcodecs.astype", c.dump().c_str(), "<f8")->encode(view(in));
        EXPECT_TRUE(elements_equal(got, view(expected))) << DType::of<T>().str();
    };
    cast(std::array<std::int8_t, 4>{0, 0, 0, 44});
    cast(std::array<std::uint16_t, 4>{0, 0, 0, 300});
    cast(std::array<std::int32_t, 4>{INT32_MIN, INT32_MIN, INT32_MIN, 300});
    cast(std::array<std::int64_t, 4>{INT64_MIN, INT64_MIN, -10'000'000'000, 300});
}

TEST(Filters, halves_keep_every_bit_in_wider_floats) {
    NDArray all("<f2", {65536});
    const std::span bits(reinterpret_cast<std::uint16_t*>(all.bytes().data()), 65536);
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
    for (const char* wider : {"<f4", "<f8"}) {
        const auto codec =
            array_codec("numcodecs.astype", fmt::format(R"({{"encode_dtype": "{}"}})", wider).c_str(), "<f2", {65536});
        const NDArray encoded = codec->encode(all);
        NDArray decoded("<f2", {65536});
        codec->decode(encoded, decoded);
        EXPECT_TRUE(elements_equal(decoded, all)) << wider;
        if (encoded.dtype() == DType("<f4")) {  // as NumPy: a signalling NaN stays one
            EXPECT_EQ(reinterpret_cast<const std::uint32_t*>(encoded.bytes().data())[0x7D00], 0x7FA00000);
        }
    }
    // Of a float's NaN the upper bits stay, and where these are zero it is still a NaN.
    const std::array<std::uint32_t, 3> nans{0x7F800001, 0xFFC00001, 0x7FA00000};
    NDArray floats("<f4", {3});
    std::memcpy(floats.bytes().data(), nans.data(), sizeof nans);
    const NDArray narrow =
        array_codec("numcodecs.astype", R"({"encode_dtype": "<f2"})", "<f4", {3})->encode(std::as_const(floats));
    const std::array<std::uint16_t, 3> expected{0x7C01, 0xFE00, 0x7D00};
    EXPECT_EQ(std::memcmp(narrow.bytes().data(), expected.data(), sizeof expected), 0);
}

TEST(Filters, packed_bits_must_say_the_right_padding) {
    const auto codec = array_codec("numcodecs.packbits", "{}", "|b1", {5});
    EXPECT_EQ(codec->encoded().shape, (Shape{2}));
    for (const std::uint8_t padding : {0, 2, 8, 255}) {
        const std::array<std::uint8_t, 2> bytes{padding, 0xff};
        NDArray out("|b1", {5});
        expect_error(ErrorCode::corrupt, "bits are padding", [&] { codec->decode(view(bytes), out); });
    }
}

TEST(Filters, json_of_other_things_names_them) {
    const auto decode = [](std::string_view text) {
        NDArray out("string", {2});
        find_codec("numcodecs.json2")
            ->array_to_bytes(Value::object(), {"string", {2}, {}})
            ->decode(bytes_of(text), out);
        return std::string(reinterpret_cast<const VariableSlot*>(out.bytes().data())[0].view());
    };
    EXPECT_EQ(decode(R"(["a","b","|O",[2]])"), "a");
    // What is no text is marked, and comes out with the same value.
    EXPECT_EQ(decode(R"([null,0,"|O",[2]])"), "\xFFnull");
    EXPECT_EQ(decode(R"([{"k": [1]},"b","|O",[2]])"), "\xFF{\"k\": [1]}");
    const auto there_and_back = [](std::string_view text) {
        NDArray elements(DType::variable_text(), {2});
        const auto codec = find_codec("numcodecs.json2")->array_to_bytes(Value::object(), {"string", {2}, {}});
        codec->decode(bytes_of(text), elements);
        Buffer out;
        codec->encode(std::as_const(elements), out);
        return std::string(reinterpret_cast<const char*>(out.data()), out.size());
    };
    for (const char* text : {R"([null,"a","|O",[2]])", R"([{"k": [1.5]},0,"|O",[2]])", R"([true,[],"|O",[2]])"}) {
        EXPECT_EQ(there_and_back(text), text);
    }
    expect_error(ErrorCode::corrupt, "the shape at its end is [3], expected [2]",
                 [&] { (void)decode(R"(["a","b","|O",[3]])"); });
    expect_error(ErrorCode::corrupt, "a list has 1 items, expected 2", [&] { (void)decode(R"(["a","|O",[2]])"); });
    expect_error(ErrorCode::corrupt, "no JSON list", [&] { (void)decode("{}"); });
    expect_error(ErrorCode::corrupt, "", [&] { (void)decode(R"(["a")"); });
}

TEST(Filters, variable_length_counts_are_checked) {
    const auto decode = [](const DType& dtype, std::vector<std::uint8_t> bytes) {
        NDArray out(dtype, {1});
        const ChunkSpec spec{dtype, {1}, {}};
        (dtype.kind() == Kind::variable_text
             ? find_codec("vlen-utf8")->array_to_bytes(Value::object(), spec)
             : find_codec("numcodecs.vlen-array")->array_to_bytes(Value::parse(R"({"dtype": "<i2"})"), spec))
            ->decode(std::as_bytes(std::span(bytes)), out);
    };
    decode("string", {1, 0, 0, 0, 1, 0, 0, 0, 'a'});
    expect_error(ErrorCode::corrupt, "there are 2 elements, but a chunk has 1", [&] {
        decode("string", {2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    });
    expect_error(ErrorCode::corrupt, "beyond the end", [&] {
        decode("string", {1, 0, 0, 0, 255, 255, 255, 255, 'a'});
    });
    expect_error(ErrorCode::corrupt, "1 bytes follow", [&] { decode("string", {1, 0, 0, 0, 0, 0, 0, 0, 'a'}); });
    expect_error(ErrorCode::corrupt, "not UTF-8", [&] { decode("string", {1, 0, 0, 0, 1, 0, 0, 0, 0xff}); });
    expect_error(ErrorCode::corrupt, "no whole number of items of 2", [&] {
        decode("bytes", {1, 0, 0, 0, 1, 0, 0, 0, 'a'});
    });
    // A chunk of very many elements is not believed on the word of its count.
    NDArray none("string", {0});
    expect_error(ErrorCode::corrupt, "too few for 100000000 elements", [&] {
        const std::array<std::uint8_t, 4> count{0x00, 0xe1, 0xf5, 0x05};
        find_codec("vlen-utf8")
            ->array_to_bytes(Value::object(), {"string", {100'000'000}, {}})
            ->decode(std::as_bytes(std::span(count)), none);
    });
}

TEST(Filters, byte_orders_of_the_callers_memory_do_not_matter) {
    // The chunk is big-endian, and the filter takes its bytes as something else.
    const std::array<float, 4> floats{1, -2, 3.5F, 1e10F};
    const auto codec = array_codec("numcodecs.delta", R"({"dtype": ">u4"})", ">f4");
    NDArray big(">f4", {4});
    copy_elements(view(floats), big);
    const NDArray from_native = codec->encode(view(floats));
    EXPECT_TRUE(elements_equal(from_native, codec->encode(big)));
    std::array<float, 4> back;
    codec->decode(from_native, view(back));
    EXPECT_EQ(back, floats);
}

TEST(Filters, differences_of_views_in_any_byte_order) {
    const Shape shape{5, 7, 6};
    for (const DType& dtype :
         {DType("|u1"), DType("<i2"), DType(">i2"), DType("<f4"), DType(">f4"), DType(">f8"), DType("<u8")}) {
        const std::string configuration = R"({"dtype": ")" + dtype.str() + R"("})";
        const auto codec = array_codec("numcodecs.delta", configuration.c_str(), dtype, shape);
        NDArray plain(dtype, shape);
        const auto size = static_cast<std::size_t>(dtype.size());
        for (std::size_t i = 0; i < plain.bytes().size() / size; ++i) {
            const bool minus_zero = i == 0 && dtype.kind() == Kind::real;  // whose sign it keeps
            const auto element = element_from_text(dtype, minus_zero ? "-0.0" : std::to_string(i * 37 % 59));
            std::ranges::copy(element, plain.bytes().subspan(i * size).begin());
        }
        const NDArray expected = codec->encode(plain);
        EXPECT_TRUE(std::ranges::equal(expected.bytes().first(size), plain.bytes().first(size)));
        for (const ByteOrder order : {ByteOrder::little, ByteOrder::big}) {
            NDArray turned(dtype.with_order(order), shape, Order::F);
            MutableArrayView reversed = turned.view();
            reversed.data += 4 * reversed.strides[0];
            reversed.strides[0] = -reversed.strides[0];
            copy_elements(plain, reversed);
            EXPECT_TRUE(elements_equal(expected, codec->encode(reversed))) << dtype.str();
            fill_elements(turned.view(), plain.bytes().data());
            codec->decode(expected, reversed);
            EXPECT_TRUE(elements_equal(plain, reversed)) << dtype.str();
        }
    }
    const std::array<float, 3> zeros{-0.0F, -0.0F, -0.0F};
    std::array<float, 3> sums{};
    const auto delta = array_codec("numcodecs.delta", R"({"dtype": "<f4"})", "<f4", {3});
    delta->decode(view(zeros), view(sums));
    for (const float sum : sums) EXPECT_TRUE(std::signbit(sum)) << "as NumPy's cumsum";
    const std::array<std::int32_t, 4> numbers{5, 3, -2147483647, 2147483647};
    const NDArray differences = array_codec("numcodecs.delta", R"({"dtype": "<i4"})", "<i4")->encode(view(numbers));
    const std::array<std::int32_t, 4> wanted{5, -2, 2147483646, -2};  // these wrap
    EXPECT_TRUE(std::ranges::equal(differences.values<std::int32_t>(), wanted));
}

}  // namespace
}  // namespace tessera
