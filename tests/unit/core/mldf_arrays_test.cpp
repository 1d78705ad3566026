#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/array_file.h>
#include <tessera/copy_elements.h>
#include <tessera/mldf.h>

#include "mldf_files.h"

namespace tessera {
namespace {

using namespace test;

TEST(Mldf, FieldsAreArrays) {
    const MldfReader reader = golden_mldf("other_fields");
    const Value samples = expected_of("other_fields").at("samples");
    EXPECT_EQ(reader.arrays(), (std::vector<std::string>{"image", "image.record", "score", "tokens", "tokens.record",
                                                         "label", "mat", "audio", "audio.record", "doc", "blob"}));
    const auto label = reader.open("label");
    EXPECT_EQ(label->info().dtype, DType("<i8"));
    EXPECT_EQ(list_value(load(*label).view()), Value::parse("[-9223372036854775808, 0, 7]"));
    EXPECT_EQ(list_value(load(*label, Region({1}, {2})).view()), Value::parse("[0, 7]"));
    EXPECT_EQ(list_value(load(*reader.open("score")).view()), Value::parse("[0.5, -1e300, 3.25]"));
    EXPECT_EQ(label->name(), reader.name() + "::label");

    const auto mat = reader.open("mat");
    EXPECT_EQ(mat->info().dtype, DType("<u2"));
    EXPECT_EQ(mat->info().shape, (Shape{3, 5}));
    EXPECT_EQ(list_value(load(*mat, Region({1, 1}, {2, 3})).view()), Value::parse("[[65535, 27, 0], [65535, 110, 0]]"));

    const auto doc = load(*reader.open("doc"));
    EXPECT_EQ(doc.dtype(), DType::variable_text());
    const auto image = load(*reader.open("image"), Region({1}, {2}));
    EXPECT_EQ(image.dtype(), DType::variable_bytes());
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(Value::parse(text_at(doc, i)), samples.as_array()[i].at("doc"));
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(hex(bytes(text_at(image, i))), samples.as_array()[i + 1].at("image").at("hex").as_string());
    }
    EXPECT_EQ(list_value(load(*reader.open("image.record")).view()),
              Value::parse("[[7, 5, 3, 0], [8, 5, 3, 0], [9, 5, 3, 0]]"));
    EXPECT_EQ(reader.open("audio.record")->info().dtype.fields()[1].name, "sample_rate");
    EXPECT_EQ(reader.open("audio")->attribute_values(),
              Value::parse(R"({"mldf": {"type": "AUDIO_WAVEFORM", "type_id": 20, "field": 5}})"));

    EXPECT_EQ(error_of([&] { static_cast<void>(reader.open("nothing")); }, "image.record"), ErrorCode::not_found);
    EXPECT_EQ(error_of([&] { load(*label, Region({2}, {2})); }), ErrorCode::out_of_bounds);
    EXPECT_EQ(error_of([&] { static_cast<void>(reader.read(3, 0)); }), ErrorCode::out_of_bounds);
    EXPECT_EQ(error_of([&] { static_cast<void>(reader.read(0, 8)); }), ErrorCode::out_of_bounds);
}

TEST(Mldf, AbsentValuesAreZerosOrEmpty) {
    const MldfReader reader = golden_mldf("missing_values");
    const Value samples = expected_of("missing_values").at("samples");
    std::size_t absent = 0;
    for (std::size_t f = 0; f < reader.fields().size(); ++f) {
        const MldfField& field = reader.fields()[f];
        const NDArray a = load(*reader.open(field.name));
        const std::size_t item = a.bytes().size() / 4;
        for (std::size_t i = 0; i < 4; ++i) {
            if (!samples.as_array()[i].at(field.name).is_null()) continue;
            ++absent;
            EXPECT_TRUE(
                std::ranges::all_of(a.bytes().subspan(i * item, item), [](auto b) { return b == std::byte{0}; }));
        }
    }
    EXPECT_GT(absent, 2U);
}

TEST(Mldf, SamplesOfOneShapeMakeOneArray) {
    const Folder folder;
    std::vector<std::uint8_t> pixels(2 * 3 * 4);
    std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
    std::vector<std::int16_t> sound{1, -2, 3, -4};
    std::vector<std::int32_t> tokens{7, 70000};
    {
        MldfWriter writer(folder / "a.mldf", {{.name = "image", .type = MldfType::image_raw},
                                              {.name = "sound", .type = MldfType::audio_waveform},
                                              {.name = "tokens", .type = MldfType::text_tokenized}});
        for (int i = 0; i < 3; ++i) {
            if (i != 1) {
                writer.put_array(0, view(pixels, {2, 3, 4}));
                writer.put_array(1, view(sound, {2, 2}), 8000);
                writer.put_array(2, view(tokens));
            }
            writer.end_sample();
        }
        writer.finish();
    }
    const MldfReader reader = mldf_at(folder / "a.mldf");
    EXPECT_EQ(reader.arrays(), (std::vector<std::string>{"image", "sound", "tokens"}));
    EXPECT_EQ(reader.header().page_size, 2U << 20U);
    const auto image = reader.open("image");
    EXPECT_EQ(image->info().shape, (Shape{3, 2, 3, 4}));
    EXPECT_EQ(image->info().dtype, DType("|u1"));
    EXPECT_EQ(list_value(load(*image, Region({0, 1, 2, 1}, {3, 1, 1, 3})).view()),
              Value::parse("[[[[21, 22, 23]]], [[[0, 0, 0]]], [[[21, 22, 23]]]]"));
    EXPECT_EQ(list_value(load(*reader.open("sound")).view()),
              Value::parse("[[[1, -2], [3, -4]], [[0, 0], [0, 0]], [[1, -2], [3, -4]]]"));
    EXPECT_EQ(reader.open("sound")->attribute_values().at("mldf").at("sample_rate"), Value(8000));
    EXPECT_EQ(list_value(load(*reader.open("tokens")).view()), Value::parse("[[7, 70000], [0, 0], [7, 70000]]"));
    EXPECT_EQ(reader.read(1, 0).value.shape(), (Shape{0, 0, 0}));
}

TEST(Mldf, DataSetsSurviveAsArrays) {
    const Folder folder;
    for (const std::string name : {"all_fields", "other_fields", "name_63_utf8", "one_field_label", "stride_204"}) {
        SCOPED_TRACE(name);
        const MldfReader reader = golden_mldf(name);
        const MldfColumns columns(reader);
        // A budget that makes blocks of one and of several samples.
        for (const std::uint64_t budget : {600, 100000}) {
            write_mldf(folder / "b.mldf", columns.columns, {.page_size = reader.header().page_size},
                       {.max_memory = budget});
            const MldfReader again = mldf_at(folder / "b.mldf");
            const MldfReport report = compare_mldf(reader, again);
            EXPECT_EQ(report.finding_count, 0U) << fmt::format("{}", fmt::join(report.findings, "\n"));
            if (name == "stride_204") continue;
            EXPECT_EQ(content(folder / "b.mldf"), content(mldf_golden / (name + ".mldf")));
        }
    }
}

TEST(Mldf, ColumnsBecomeFieldsByTheirDtype) {
    const Folder folder;
    const std::vector<std::int64_t> label{3, -1};
    const std::vector<double> score{0.5, -2};
    const std::vector<float> vec{1, 2, 3, 4, 5, 6};
    NDArray text(DType::variable_text(), {2});
    const VariableSlot slot{"{\"a\":1}", 7};
    fill_elements(text.view().part(Region({1}, {1})), reinterpret_cast<const std::byte*>(&slot));
    NDArray big(">i4", {2});
    copy_elements(view(std::vector<std::int32_t>{7, 1 << 20}), big.view());
    const auto a = view_source(view(label), "a"), b = view_source(view(score), "b"),
               c = view_source(view(vec, {2, 3}), "c"), d = view_source(text, "d"), e = view_source(big, "e");
    const std::vector<MldfColumn> columns{
        {"label", a.get()}, {"score", b.get()}, {"vec", c.get()}, {"text", d.get()}, {"doc", d.get(), MldfType::json},
        {"big", e.get()}};
    write_mldf(folder / "c.mldf", columns, {.page_size = 512, .checksum = true});
    const MldfReader reader = mldf_at(folder / "c.mldf");
    const std::vector<MldfType> types{MldfType::integer,  MldfType::real, MldfType::ndarray,
                                      MldfType::text_raw, MldfType::json, MldfType::ndarray};
    for (std::size_t f = 0; f < types.size(); ++f) EXPECT_EQ(reader.fields()[f].type, types[f]);
    EXPECT_EQ(list_value(load(*reader.open("vec")).view()), list_value(view(vec, {2, 3})));
    EXPECT_EQ(reader.open("big")->info().dtype, DType("<i4"));
    EXPECT_EQ(list_value(load(*reader.open("big")).view()), Value::parse("[7, 1048576]"));
    EXPECT_EQ(text_at(load(*reader.open("doc")), 1), "{\"a\":1}");
    EXPECT_EQ(text_at(load(*reader.open("text")), 0), "");

    const std::vector<std::int64_t> longer{1, 2, 3};
    const auto f = view_source(view(longer), "f");
    const auto refuse = [&](std::vector<MldfColumn> bad, const std::string& words) {
        return error_of([&] { write_mldf(folder / "d.mldf", bad, {}); }, words);
    };
    EXPECT_EQ(refuse({{"x", a.get()}, {"y", f.get()}}, "first lengths"), ErrorCode::invalid_argument);
    EXPECT_EQ(refuse({{"x", a.get(), MldfType::json}}, "JSON"), ErrorCode::invalid_argument);
    EXPECT_EQ(refuse({{"x", a.get()}, {"x", a.get()}}, "two fields"), ErrorCode::invalid_argument);
    EXPECT_EQ(refuse({}, "no column"), ErrorCode::invalid_argument);
    EXPECT_EQ(error_of([&] { write_mldf(folder / "d.mldf", columns, {}, {.max_memory = 8}); }, "one sample"),
              ErrorCode::budget);
    EXPECT_EQ(folder.entries(), 1);
}

TEST(Mldf, IsAnArrayFile) {
    const std::filesystem::path file = mldf_golden / "other_fields.mldf";
    const ArrayFileFormat* format = find_array_file_format(file);
    ASSERT_NE(format, nullptr);
    EXPECT_EQ(format->name, "mldf");
    EXPECT_EQ(format->members({file}).size(), 11U);
    EXPECT_EQ(open_array_file({file, "mat"})->info().shape, (Shape{3, 5}));
    EXPECT_EQ(error_of([&] { static_cast<void>(open_array_file({file})); }, "image, image.record, score"),
              ErrorCode::invalid_argument);
    const Value facts = format->describe({file});
    EXPECT_EQ(facts.at("version"), Value("1.0"));
    EXPECT_EQ(facts.at("pointers"),
              Value::parse(R"({"field_desc": 73, "metadata": 1792, "data": 2560, "alloc_table": 3593})"));
    EXPECT_EQ(facts.at("fields").as_array()[4].at("dtype"), Value("<u2"));
    EXPECT_EQ(facts.at("problem_count"), Value(0));
    EXPECT_EQ(error_of([&] { format->describe({mldf_golden / "error_flag_encrypted.mldf"}); }), ErrorCode::unsupported);
    // A damaged magic is still recognised, so that the message can name the damage.
    EXPECT_EQ(error_of([&] { static_cast<void>(open_array_file({mldf_golden / "error_magic_crlf.mldf"})); }, "CR LF"),
              ErrorCode::corrupt);

    const Folder folder;
    const std::vector<std::int64_t> label{4, 5};
    const auto sink = create_array_file({folder / "one.mldf", "label"}, "<i8", {2});
    sink->write(Region::whole({2}), view(label), {});
    sink->finish();
    EXPECT_EQ(list_value(load(*open_array_file({folder / "one.mldf"})).view()), Value::parse("[4, 5]"));
    EXPECT_EQ(golden_mldf("all_fields").open("label")->name().substr(mldf_golden.string().size()),
              "/all_fields.mldf::label");
}

}  // namespace
}  // namespace tessera
