#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include <tessera/copy_elements.h>
#include <tessera/mldf.h>

#include "mldf_files.h"

namespace tessera {
namespace {

using namespace test;

TEST(Mldf, WrittenAgainIsTheSameFile) {
    const Folder folder;
    for (const std::string& name : good_mldf) {
        if (name == "stride_204") continue;  // such files are read only
        SCOPED_TRACE(name);
        write_again(folder / "again.mldf", expected_of(name));
        std::string want = content(mldf_golden / (name + ".mldf"));
        const std::string got = content(folder / "again.mldf");
        if (name == "minor_version_newer") want[11] = 0;
        if (name == "one_field_label_padded") {
            EXPECT_EQ(want.find_first_not_of('\0', got.size()), std::string::npos);
            want.resize(got.size());
        }
        EXPECT_EQ(hex(bytes(got)), hex(bytes(want)));
        EXPECT_EQ(folder.entries(), 1);
    }
}

// NumPy reads what create_mldf writes, by the layout's dtypes.
TEST(Mldf, OneArrayIsAFileThatNumPyReads) {
    const Folder folder;
    const std::string read_back = R"(
import numpy as np
b = open('x.mldf', 'rb').read()
assert b[:9] == b'\x89MLDF\r\n\x1a\n'
h = np.frombuffer(b, np.dtype([('ver', '<u2', 2), ('flags', '<u4'), ('n', '<u8'), ('fields', '<u2'), ('_', '<u2'),
    ('page', '<u4'), ('desc', '<u8'), ('meta', '<u8'), ('data', '<u8'), ('alloc', '<u8'), ('r', 'u1', 8)]), 1, 9)[0]
d = np.frombuffer(b, np.dtype([('name', 'S64'), ('type', '<u2'), ('flags', '<u2'), ('size', '<u4'), ('_', '<u4'),
    ('dtype', 'S16'), ('ndim', '<u8'), ('dims', '<u8', 13), ('pad', 'S4')]), h['fields'], h['desc'])[0]
rec = np.frombuffer(b, np.dtype([('ptr', '<u8'), ('size', '<u4'), ('_', '<u4')]), h['n'], h['meta'])
alloc = np.frombuffer(b[h['alloc']:], rec.dtype)
assert len(alloc) == h['n'] and (alloc == rec).all()
a = np.stack([np.frombuffer(b, d['dtype'].decode(), int(r['size']) // np.dtype(d['dtype'].decode()).itemsize, int(r['ptr']))
    .reshape(d['dims'][:int(d['ndim'])]) for r in rec])
assert d['name'] == b'x' and d['type'] == 4 and h['data'] % h['page'] == 0, (d, h)
want = np.load('x.npy')
assert a.dtype == want.dtype.newbyteorder('<') and (a == want).all()
print('equal')
)";
    NDArray array("<f4", {5, 3, 2});
    std::vector<float> values(30);
    std::iota(values.begin(), values.end(), 0.5F);
    copy_elements(view(values, {5, 3, 2}), array.view());
    save_npy(folder / "x.npy", array);
    const auto sink = create_mldf(folder / "x.mldf", "x", ">f4", array.shape());
    EXPECT_FALSE(std::filesystem::exists(folder / "x.mldf"));
    // In any order.
    for (const std::int64_t i : {3, 0, 4, 1, 2}) {
        const Region part({i, 0, 0}, {1, 3, 2});
        sink->write(part, array.view().part(part), {});
    }
    sink->finish();
    EXPECT_EQ(python(folder, read_back), "equal\n");
    EXPECT_EQ(validate_mldf(folder / "x.mldf").finding_count, 0U);

    const MldfReader reader = mldf_at(folder / "x.mldf");
    EXPECT_TRUE(elements_equal(load(*reader.open("x")), array));
}

TEST(Mldf, OneArrayOfEveryKind) {
    const Folder folder;
    const auto round = [&](const NDArray& array) {
        const auto sink = create_mldf(folder / "y.mldf", "y", array.dtype(), array.shape(), {.page_size = 64});
        sink->write(Region::whole(array.shape()), array, {});
        sink->finish();
        EXPECT_EQ(validate_mldf(folder / "y.mldf").finding_count, 0U);
        const MldfReader reader = mldf_at(folder / "y.mldf");
        EXPECT_TRUE(elements_equal(load(*reader.open("y")), array));
        return reader.fields()[0].type;
    };
    EXPECT_EQ(round(NDArray::copy_of(view(std::vector<std::int64_t>{1, -5}))), MldfType::integer);
    EXPECT_EQ(round(NDArray::copy_of(view(std::vector<double>{1, -5, 0}))), MldfType::real);
    EXPECT_EQ(round(NDArray::copy_of(view(std::vector<std::int64_t>{1, -5}, {1, 2}))), MldfType::ndarray);
    EXPECT_EQ(round(NDArray::copy_of(view(std::vector<float>{1, -5, 3}))), MldfType::ndarray);  // 0-d samples
    EXPECT_EQ(round(NDArray("<i4", {0, 3})), MldfType::ndarray);
    EXPECT_EQ(round(NDArray("<i4", {3, 0})), MldfType::ndarray);
    EXPECT_EQ(round(NDArray("<i8", {0})), MldfType::integer);
    NDArray texts(DType::variable_text(), {3});
    const VariableSlot slot{"h\xc3\xa9", 3};
    fill_elements(texts.view(), reinterpret_cast<const std::byte*>(&slot));
    EXPECT_EQ(round(texts), MldfType::text_raw);
    NDArray blobs(DType::variable_bytes(), {2});
    const VariableSlot raw{"\xff\0", 2};
    fill_elements(blobs.view(), reinterpret_cast<const std::byte*>(&raw));
    EXPECT_EQ(round(blobs), MldfType::bytes);

    // Elements that nobody writes are zero, and so are rows.
    const auto sink = create_mldf(folder / "z.mldf", "z", "<i2", {2, 2});
    sink->finish();
    const MldfReader reader = mldf_at(folder / "z.mldf");
    EXPECT_EQ(list_value(load(*reader.open("z")).view()), Value::parse("[[0, 0], [0, 0]]"));

    const auto refuse = [&](const DType& dtype, const Shape& shape, const std::string& words) {
        return error_of([&] { static_cast<void>(create_mldf(folder / "w.mldf", "w", dtype, shape)); }, words);
    };
    EXPECT_EQ(refuse("<i4", {}, "0-d"), ErrorCode::unsupported);
    EXPECT_EQ(refuse("i4,f8", {2}, "does not fit"), ErrorCode::unsupported);
    EXPECT_EQ(refuse("<f4", Shape::filled(15, 1), "does not fit"), ErrorCode::unsupported);
    EXPECT_EQ(refuse("|u1", {2, std::int64_t{1} << 32}, "4 GiB"), ErrorCode::unsupported);
    EXPECT_EQ(refuse(DType::variable_text(), {2, 2}, "a sample holds one"), ErrorCode::unsupported);
    EXPECT_FALSE(std::filesystem::exists(folder / "w.mldf"));
}

TEST(Mldf, ManySamplesAreFoundByBinarySearch) {
    const Folder folder;
    constexpr int count = 3000;
    {
        MldfWriter writer(folder / "m.mldf", {{.name = "n", .type = MldfType::integer}, {.name = "b"}},
                          {.page_size = 64});
        for (int i = 0; i < count; ++i) {
            writer.put(0, std::int64_t{i});
            writer.put_bytes(1, bytes(std::string(static_cast<std::size_t>(i % 7), static_cast<char>('a' + i % 26))));
            writer.end_sample();
        }
        writer.finish();
    }
    const MldfReader reader = mldf_at(folder / "m.mldf");
    EXPECT_EQ(reader.allocation_count(), count - (count + 6) / 7);
    for (std::uint64_t i = 0; i < reader.allocation_count(); ++i) {
        const MldfAllocation a = reader.allocation(i);
        ASSERT_EQ(reader.allocated_size(a.ptr), a.size);
    }
    EXPECT_EQ(reader.allocated_size(0), std::nullopt);
    EXPECT_EQ(reader.allocated_size(UINT64_MAX), std::nullopt);
    const NDArray b = load(*reader.open("b"));
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(text_at(b, i), std::string(i % 7, static_cast<char>('a' + i % 26)));
    }
    EXPECT_EQ(validate_mldf(folder / "m.mldf").finding_count, 0U);
}

TEST(Mldf, NamesAreCutBetweenCharacters) {
    const Folder folder;
    std::string name(62, 'x');
    name += "\xc3\xa9tail";  // the character has bytes 62 and 63
    {
        MldfWriter writer(folder / "n.mldf", {{.name = name, .type = MldfType::integer}});
        writer.finish();
    }
    std::string file = content(folder / "n.mldf");
    EXPECT_EQ(MldfReader(source_of(file)).fields()[0].name, name.substr(0, 62));
    // The original program cuts anywhere.
    file[73 + 62] = '\xc3';
    const MldfReader reader(source_of(file));
    EXPECT_EQ(reader.fields()[0].name, name.substr(0, 62));
    EXPECT_EQ(reader.warnings().size(), 1U);
}

TEST(Mldf, UnknownTypesAreCarriedAsBytes) {
    const Folder folder;
    const MldfType odd{999};
    EXPECT_EQ(mldf_type_name(odd), "unknown type 999");
    EXPECT_EQ(mldf_type_name(MldfType::video_optical_flow), "VIDEO_OPTICAL_FLOW");
    {
        MldfWriter writer(folder / "u.mldf",
                          {{.name = "record", .type = odd, .flags = 3, .metadata_size = 8},
                           {.name = "payload", .type = MldfType::multimodal_sample, .metadata_size = 24}},
                          {.page_size = 64});
        writer.put_record(0, bytes("12345678"));
        writer.put_bytes(1, bytes("some"), bytes("tail"));
        writer.end_sample();
        EXPECT_EQ(error_of([&] { writer.put_bytes(0, bytes("x")); }, "payload"), ErrorCode::invalid_argument);
        writer.put_record(0, bytes("abcdefgh"));
        writer.end_sample();
        writer.finish();
    }
    const MldfReader reader = mldf_at(folder / "u.mldf");
    const auto record = reader.open("record");
    EXPECT_EQ(record->info().dtype, DType::raw(8));
    const NDArray read = load(*record);
    EXPECT_EQ(hex(read.bytes()), hex(bytes("12345678abcdefgh")));
    EXPECT_EQ(text_at(load(*reader.open("payload")), 0), "some");
    EXPECT_EQ(slot_text(reader.read(0, 1).value), "some");
    EXPECT_EQ(reader.arrays(), (std::vector<std::string>{"record", "payload", "payload.record"}));

    const MldfColumns columns(reader);
    write_mldf(folder / "v.mldf", columns.columns, {.page_size = 64});
    EXPECT_EQ(content(folder / "v.mldf"), content(folder / "u.mldf"));
}

TEST(Mldf, MisuseOfTheWriterIsRefused) {
    const Folder folder;
    {
        MldfWriter writer(folder / "w.mldf", {{.name = "n", .type = MldfType::integer},
                                              {.name = "b"},
                                              {.name = "i", .type = MldfType::image_raw},
                                              mldf_ndarray_field("a", "<i4", {2})});
        const auto refused = [&](auto body, const char* words) {
            EXPECT_EQ(error_of(body, words), ErrorCode::invalid_argument);
        };
        const std::vector<std::int32_t> two{1, 2};
        const std::vector<std::uint8_t> three{1, 2, 3};
        refused([&] { writer.put(0, 1.5); }, "INT");
        writer.put_bytes(1, bytes("x"));
        refused([&] { writer.put(0, std::int64_t{1}); }, "ascending");
        refused([&] { writer.put_bytes(1, bytes("x")); }, "ascending");
        refused([&] { writer.put_bytes(4, bytes("x")); }, "field 4 of 4");
        refused([&] { writer.put_array(2, view(three)); }, "IMAGE_RAW");
        refused([&] { writer.put_array(3, view(three)); }, "NDARRAY");
        refused([&] { writer.finish(); }, "not ended");
        writer.end_sample();
        refused([&] { writer.put(1, std::int64_t{1}); }, "BYTES");
        writer.end_sample();
        refused([&] { writer.put_bytes(1, bytes("x"), bytes("too long for it")); }, "BYTES");
        // 300 channels do not fit the record.
        const std::vector<std::uint8_t> deep(300);
        refused([&] { writer.put_array(2, view(deep, {1, 1, 300})); }, "IMAGE_RAW");
    }
    EXPECT_EQ(folder.entries(), 0);
    EXPECT_EQ(error_of(
                  [&] {
                      MldfWriter(folder / "w.mldf", {{.name = "x"}, {.name = "x"}});
                  },
                  "two fields"),
              ErrorCode::invalid_argument);
    EXPECT_EQ(error_of([&] { MldfWriter(folder / "no/w.mldf", {{.name = "x"}}); }), ErrorCode::not_found);
    EXPECT_EQ(error_of([&] { MldfWriter(folder / "w.mldf", {{.name = "x"}}, {.page_size = 0}); }, "page size"),
              ErrorCode::invalid_argument);
    EXPECT_EQ(folder.entries(), 0);
}

}  // namespace
}  // namespace tessera
