#include <tessera/raw_array.h>

#include <numeric>

#include <fmt/format.h>
#include <lz4.h>

#include <tessera/array_file.h>
#include <tessera/copy_elements.h>
#include <tessera/element.h>

#include "files.h"

namespace tessera {
namespace {

using namespace test;

const std::filesystem::path golden = std::filesystem::path(TESSERA_GOLDEN) / "ra";

const Value::Array& cases() {
    static const Value manifest = Value::parse(content(golden / "manifest.json"));
    return manifest.at("cases").as_array();
}

NDArray read_whole(const ArraySource& source) {
    NDArray a(source.info().dtype, source.info().shape);
    source.read_into(Region::whole(a.shape()), a.view(), {});
    return a;
}

NDArray load(const std::filesystem::path& path, const RawArrayOptions& options = {}) {
    return read_whole(*open_raw_array(open_file(path), options));
}

std::unique_ptr<ByteSource> memory(std::string_view text) {
    return memory_source(Buffer(bytes(text)), "made.ra");
}

/// A file made of words and what follows them.
std::string made(std::initializer_list<std::uint64_t> words, std::string_view data) {
    std::string file = "rawarray";
    for (const std::uint64_t w : words) {
        for (int i = 0; i < 8; ++i) file += static_cast<char>(w >> (8 * i) & 0xFF);
    }
    return file + std::string(data);
}

TEST(RawArrayGolden, EveryCaseReadsEqual) {
    int read = 0;
    for (const Value& c : cases()) {
        if (c.find("expected") == nullptr) continue;
        const std::string path = c.at("path").as_string();
        SCOPED_TRACE(path);
        const RawArrayHeader h = read_raw_array_header(*open_file(golden / path));
        const Value& words = c.at("header");
        EXPECT_EQ(h.flags, words.at("flags").as_uint64());
        EXPECT_EQ(h.eltype, words.at("eltype").as_uint64());
        EXPECT_EQ(h.elbyte, words.at("elbyte").as_uint64());
        EXPECT_EQ(h.size, words.at("size").as_uint64());
        EXPECT_EQ(h.data_offset, words.at("data_offset").as_uint64());
        EXPECT_EQ(h.dims.size(), words.at("dims").as_array().size());

        NDArray a = load(golden / path);
        if (h.dtype.kind() == Kind::bfloat16) {
            const auto source = view_source(a.view(), path);
            a = read_whole(*convert_for_array_file({"x.npy"}, *source));
        } else {
            EXPECT_EQ(h.dtype, DType(c.at("dtype").as_string()));
        }
        const NDArray expected = load_npy(golden / c.at("expected").as_string());
        ASSERT_EQ(a.shape(), expected.shape());
        ASSERT_TRUE(a.dtype().equal_but_order(expected.dtype())) << a.dtype().to_string();
        EXPECT_TRUE(elements_equal(a.view(), expected.view()));
        ++read;
    }
    EXPECT_EQ(read, 37);
}

TEST(RawArrayGolden, EveryDamagedFileIsAnError) {
    int refused = 0;
    for (const Value& c : cases()) {
        if (c.find("expect_error") == nullptr) continue;
        const std::string path = c.at("path").as_string();
        SCOPED_TRACE(path);
        const auto code = error_of([&] { (void)load(golden / path); }, path);
        EXPECT_EQ(code, path == "error_unknown_flag.ra" ? ErrorCode::unsupported : ErrorCode::corrupt);
        EXPECT_EQ(error_of([&] { (void)MappedRawArray(golden / path); }, path), code);
        ++refused;
    }
    EXPECT_EQ(refused, 10);
}

TEST(RawArrayGolden, PlainFilesWrittenAgainAreTheSameBytes) {
    const Folder folder;
    int written = 0;
    for (const Value& c : cases()) {
        if (c.find("expected") == nullptr) continue;
        const std::string path = c.at("path").as_string();
        const auto file = open_file(golden / path);
        if (read_raw_array_header(*file).encoding != RawArrayEncoding::plain) continue;
        for (const bool reverse_dims : {false, true}) {
            SCOPED_TRACE(path);
            const NDArray a = load(golden / path, {reverse_dims});
            const auto sink = create_raw_array(create_file(folder / "again.ra"), a.dtype(), a.shape(), {reverse_dims},
                                               read_raw_array_trailing(*file));
            EXPECT_EQ(sink->info().order, reverse_dims ? Order::C : Order::F);
            sink->write(Region::whole(a.shape()), a.view(), {});
            sink->finish();
            EXPECT_TRUE(content(folder / "again.ra") == content(golden / path));
        }
        ++written;
    }
    EXPECT_EQ(written, 31);
}

TEST(RawArray, TheDocumentsFileFromItsListing) {
    // The listing of "File Introspection": a ramp and minus its reciprocal, as pairs of float32.
    const Folder folder;
    NDArray a("<c8", {3, 4}, Order::F);
    std::size_t i = 0;
    for (auto& v : a.values<std::complex<float>>()) {
        const auto n = static_cast<float>(i++);
        v = {n, -1.0F / n};
    }
    const auto sink = create_array_file({folder / "test.ra"}, a.dtype(), a.shape());
    sink->write(Region::whole(a.shape()), a.view(), {});
    sink->finish();
    EXPECT_EQ(python(folder, "import hashlib\nprint(hashlib.md5(open('test.ra', 'rb').read()).hexdigest())"),
              "1dd9f98a0d57ec3c4d8ad50343bd20cd\n");
}

TEST(RawArray, ReversedDimensionsAreTheSameElementsTransposed) {
    const NDArray a = load(golden / "py_i4.ra"), r = load(golden / "py_i4.ra", {.reverse_dims = true});
    EXPECT_EQ(r.shape(), (Shape{5, 4, 3}));
    EXPECT_TRUE(elements_equal(r.view(), a.view().transposed({2, 1, 0})));
    const auto source = open_array_file({golden / "c_lz4_i4.ra"}, {.reverse_dims = true});
    EXPECT_EQ(source->info().shape, (Shape{30, 20}));
    EXPECT_EQ(source->info().order, Order::C);
    const NDArray whole = load(golden / "c_lz4_i4.ra");
    EXPECT_TRUE(elements_equal(read_whole(*source), whole.view().transposed({1, 0})));
}

TEST(RawArray, RegionsOfPlainAndCompressedFiles) {
    for (const char* name : {"py_i4.ra", "c_lz4_i4.ra", "julia_leb128_i4.ra", "julia_bitarray.ra"}) {
        SCOPED_TRACE(name);
        const NDArray all = load(golden / name);
        const auto source = open_raw_array(map_file(golden / name));
        Region region = Region::whole(all.shape());
        for (int d = 0; d < region.rank(); ++d) {
            region.start[d] = 1;
            region.extent[d] -= 2;
        }
        NDArray part(all.dtype(), region.extent);
        source->read_into(region, part.view(), {});
        EXPECT_TRUE(elements_equal(part.view(), all.view().part(region)));
        region.start[0] = 1000;
        EXPECT_EQ(error_of([&] { source->read_into(region, part.view(), {}); }, name), ErrorCode::out_of_bounds);
    }
}

TEST(RawArray, FactsForInfo) {
    const Value facts =
        find_array_file_format(golden / "trailing_metadata.ra")->describe({golden / "trailing_metadata.ra"});
    EXPECT_EQ(facts.dump(), R"({"format": "ra", "flags": 0, "eltype": 1, "elbyte": 4, "size": 60, "dims": [5, 3], )"
                            R"("data_offset": 64, "trailing_bytes": 15, "encoding": "plain", "dtype": "<i4"})");
    const auto encoding = [](const char* name) { return read_raw_array_header(*open_file(golden / name)).encoding; };
    EXPECT_EQ(to_string(encoding("c_lz4_f8.ra")), "lz4");
    EXPECT_EQ(to_string(encoding("julia_leb128_i4.ra")), "leb128");
    EXPECT_EQ(to_string(encoding("julia_bitarray.ra")), "bits");
    EXPECT_EQ(error_of(
                  [] {
                      (void)open_array_file({golden / "py_i4.ra", "member"});
                  },
                  "single array"),
              ErrorCode::invalid_argument);
}

TEST(RawArray, TrailingBytesSurviveRewritingAndEditingInPlace) {
    const Folder folder;
    const auto notes = content(golden / "trailing_metadata.ra").substr(64 + 60);
    ASSERT_EQ(notes.size(), 15U);
    std::filesystem::copy_file(golden / "trailing_metadata.ra", folder / "a.ra");
    {
        MappedRawArray map(folder / "a.ra", MappedRawArray::Mode::read_write);
        EXPECT_EQ(map.header().trailing, notes.size());
        map.mutable_view().typed<std::int32_t>()(4, 1) = -7;
        map.flush();
    }
    const NDArray changed = load(folder / "a.ra");
    EXPECT_EQ(changed.view().typed<std::int32_t>()(4, 1), -7);
    EXPECT_TRUE(content(folder / "a.ra").ends_with(notes));
    EXPECT_EQ(content(folder / "a.ra").substr(0, 64), content(golden / "trailing_metadata.ra").substr(0, 64));
}

TEST(MappedRawArray, EveryPlainCaseMapsEqualAndCompressedOnesAreRefused) {
    for (const Value& c : cases()) {
        if (c.find("expected") == nullptr) continue;
        const std::string path = c.at("path").as_string();
        SCOPED_TRACE(path);
        if (read_raw_array_header(*open_file(golden / path)).encoding == RawArrayEncoding::plain) {
            const MappedRawArray mapped(golden / path);
            EXPECT_TRUE(elements_equal(mapped.view(), load(golden / path).view()));
        } else {
            EXPECT_EQ(error_of([&] { (void)MappedRawArray(golden / path); }, "compressed"), ErrorCode::unsupported);
        }
    }
    const Folder folder;
    MappedRawArray w = MappedRawArray::create(folder / "w.ra", ">f8", {2, 3}, {.reverse_dims = true});
    EXPECT_EQ(w.header().dims, (Shape{3, 2}));
    EXPECT_EQ(w.header().flags, 1U);
    EXPECT_EQ(w.view().strides, (Strides{24, 8}));
}

TEST(RawArray, DtypesThatItCannotHoldAreRefusedInWords) {
    for (const char* dtype :
         {"S5", "<U3", "<M8[s]", "<m8[s]", "<f16", "<c32", "O", "string", "bytes", "V0", "[('a','<i4')]"}) {
        EXPECT_EQ(error_of([&] { (void)raw_array_header_bytes(dtype, {3}); }, DType(dtype).to_string()),
                  ErrorCode::unsupported)
            << dtype;
    }
    // Booleans and bfloat16 come back as what they were.
    for (const char* dtype : {"bool", "<bfloat16", ">bfloat16", "V3"}) {
        const std::string file = raw_array_header_bytes(dtype, {2}) + std::string(6, '\0');
        EXPECT_EQ(read_raw_array_header(*memory(file)).dtype, DType(dtype)) << dtype;
    }
}

TEST(RawArray, BigFloatsOfTheBrainWiden) {
    const std::string file = made({1, 5, 2, 8, 1, 4}, std::string("\x3f\x80\xc0\x49\x7f\x80\x00\x00", 8));
    const auto source = open_raw_array(memory(file));
    const NDArray a = read_whole(*convert_for_array_file({"x.npz"}, *source));
    ASSERT_EQ(a.dtype(), DType("<f4"));
    const auto v = a.values<float>();
    EXPECT_EQ(std::vector<float>(v.begin(), v.end()),
              (std::vector<float>{1.0F, -3.140625F, std::numeric_limits<float>::infinity(), 0.0F}));
    EXPECT_EQ(convert_for_array_file({"x.ra"}, *source), nullptr);
}

TEST(RawArray, Leb128OfEverySize) {
    // Unsigned ones are not zigzag. 624485 is the example of the encoding's article.
    const auto words = [](std::uint64_t eltype, std::uint64_t elbyte, std::uint64_t n) {
        return std::vector<std::uint64_t>{2, eltype, elbyte, elbyte * n, 1, n};
    };
    const auto values = [&](std::uint64_t eltype, std::uint64_t elbyte, std::uint64_t n, std::string_view data) {
        const auto w = words(eltype, elbyte, n);
        const NDArray a = read_whole(*open_raw_array(memory(made({w[0], w[1], w[2], w[3], w[4], w[5]}, data))));
        std::string out;
        for (std::uint64_t i = 0; i < n; ++i) {
            out += element_to_text(a.dtype(), a.bytes().data() + i * elbyte) + " ";
        }
        return out;
    };
    EXPECT_EQ(values(2, 4, 2, "\xE5\x8E\x26\x7F"), "624485 127 ");
    EXPECT_EQ(values(1, 1, 3, "\xFF\x01\xFE\x01\x03"), "-128 127 -2 ");
    EXPECT_EQ(values(2, 8, 1, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"), "18446744073709551615 ");
    EXPECT_EQ(values(1, 8, 1, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"), "-9223372036854775808 ");
    EXPECT_EQ(values(2, 2, 1, "\x01 and notes behind it"), "1 ");
    EXPECT_EQ(error_of([&] { (void)values(2, 1, 1, "\xFF\x03"); }, "does not fit"), ErrorCode::corrupt);
    EXPECT_EQ(error_of([&] { (void)values(2, 8, 1, std::string(20, '\x80')); }, "does not fit"), ErrorCode::corrupt);
    EXPECT_EQ(error_of([&] { (void)values(2, 2, 2, "\x01\x80"); }, "ends inside integer 1"), ErrorCode::corrupt);
}

TEST(RawArray, EveryFileThatAttacksIsRefusedInWords) {
    const std::filesystem::path bad = std::filesystem::path(TESSERA_GOLDEN) / "bad/ra";
    const Value errors = Value::parse(content(bad / "errors.json"));
    for (const auto& [name, words] : errors.as_object()) {
        SCOPED_TRACE(name);
        const std::filesystem::path path = bad / name;
        const auto code = error_of([&] { (void)load(path); }, words.as_string());
        EXPECT_TRUE(code == ErrorCode::corrupt || code == ErrorCode::unsupported);
    }
    EXPECT_EQ(errors.as_object().size(), 20U);
}

TEST(RawArray, SizesThatDisagreeAndTruncationAnywhere) {
    const auto code = [](const std::string& file, const std::string& words) {
        return error_of([&] { (void)read_whole(*open_raw_array(memory(file))); }, words);
    };
    EXPECT_EQ(code(made({0, 1, 4, 8, 1, 2}, "12345678"), ""), std::nullopt);
    EXPECT_EQ(code(made({0, 1, 4, 8, 1, 2}, "1234567"), "only 7 follow"), ErrorCode::corrupt);
    EXPECT_EQ(code(made({0, 1, 16, 16, 1, 1}, std::string(16, 'x')), "signed integer) of 16"), ErrorCode::unsupported);
    EXPECT_EQ(code(made({6, 5, 8, 16, 1, 64}, std::string(16, 'x')), "64 bits need 8"), ErrorCode::corrupt);
    EXPECT_EQ(code(made({7, 5, 8, 8, 1, 64}, std::string(8, 'x')), "single bits"), ErrorCode::unsupported);
    // A block that holds more, or less, than the header says.
    const std::string text(100, 'a');
    std::string block(200, '\0');
    block.resize(static_cast<std::size_t>(LZ4_compress_default(text.data(), block.data(), 100, 200)));
    EXPECT_EQ(code(made({2, 2, 1, block.size(), 1, 100}, block), ""), std::nullopt);
    EXPECT_EQ(code(made({2, 2, 1, block.size(), 1, 99}, block), "damaged"), ErrorCode::corrupt);
    EXPECT_EQ(code(made({2, 2, 1, block.size(), 1, 101}, block), "holds 100 bytes"), ErrorCode::corrupt);
    const std::string whole = content(golden / "c_lz4_i4.ra");
    for (std::size_t n = 0; n < whole.size(); ++n) {
        EXPECT_EQ(code(whole.substr(0, n), "made.ra"), ErrorCode::corrupt) << n;
    }
}

}  // namespace
}  // namespace tessera
