#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/mldf.h>

#include "mldf_files.h"

namespace tessera {
namespace {

using namespace test;

Value shape_value(const Shape& s) {
    return Value::Array(s.begin(), s.end());
}

/// A sample as the expected.json files spell it.
Value spell(const MldfField& field, const MldfValue& v) {
    Value o = Value::object();
    switch (field.type) {
        case MldfType::integer:
        case MldfType::real:
        case MldfType::text_tokenized:
            return list_value(v.value.view());
        case MldfType::text_raw:
            return slot_text(v.value);
        case MldfType::json:
            return Value::parse(slot_text(v.value));
        case MldfType::bytes:
            o.set("hex", hex(bytes(slot_text(v.value))));
            return o;
        case MldfType::audio_waveform:
            o.set("rate", static_cast<unsigned>(v.record[16]) | static_cast<unsigned>(v.record[17]) << 8U);
            o.set("shape", shape_value(v.value.shape()));
            o.set("values", list_value(v.value.view()));
            return o;
        default:
            o.set("dtype", v.value.dtype().str());
            o.set("shape", shape_value(v.value.shape()));
            o.set("hex", hex(v.value.bytes()));
            return o;
    }
}

TEST(Mldf, EveryCaseReadsAsExpected) {
    for (const std::string& name : good_mldf) {
        SCOPED_TRACE(name);
        const MldfReader reader = golden_mldf(name);
        const Value expected = expected_of(name);
        const Value& h = expected.at("header");
        EXPECT_EQ(reader.header().version_major, h.at("version_major").as_uint64());
        EXPECT_EQ(reader.header().version_minor, h.at("version_minor").as_uint64());
        EXPECT_EQ(reader.header().flags, h.at("flags").as_uint64());
        EXPECT_EQ(reader.header().num_samples, h.at("num_samples").as_uint64());
        EXPECT_EQ(reader.header().num_fields, h.at("num_fields").as_uint64());
        EXPECT_EQ(reader.header().page_size, h.at("page_size").as_uint64());
        EXPECT_EQ(reader.header().field_desc_ptr, h.at("field_desc_ptr").as_uint64());
        EXPECT_EQ(reader.header().metadata_ptr, h.at("metadata_ptr").as_uint64());
        EXPECT_EQ(reader.header().data_ptr, h.at("data_ptr").as_uint64());
        EXPECT_EQ(reader.header().alloc_table_ptr, h.at("alloc_table_ptr").as_uint64());
        EXPECT_EQ(reader.descriptor_size(), expected.at("descriptor_size").as_uint64());
        EXPECT_EQ(reader.row_size(), expected.at("row_size").as_uint64());

        const auto& fields = expected.at("fields").as_array();
        ASSERT_EQ(reader.fields().size(), fields.size());
        for (std::size_t f = 0; f < fields.size(); ++f) {
            const MldfField& field = reader.fields()[f];
            EXPECT_EQ(field.name, fields[f].at("name").as_string());
            EXPECT_EQ(static_cast<std::uint64_t>(field.type), fields[f].at("type_id").as_uint64());
            EXPECT_EQ(field.flags, fields[f].at("flags").as_uint64());
            EXPECT_EQ(field.metadata_size, fields[f].at("metadata_size").as_uint64());
            // Nothing says how long they are: zeros at the end are not kept.
            std::vector<std::byte> arguments = unhex(fields[f].at("arguments_hex").as_string());
            while (!arguments.empty() && arguments.back() == std::byte{0}) arguments.pop_back();
            EXPECT_EQ(field.arguments, arguments);
            EXPECT_EQ(field.row_offset, expected.at("row_offsets").at(field.name).as_uint64());
        }
        const auto& allocations = expected.at("alloc").as_array();
        ASSERT_EQ(reader.allocation_count(), allocations.size());
        for (std::size_t i = 0; i < allocations.size(); ++i) {
            const auto& entry = allocations[i].as_array();
            EXPECT_EQ(reader.allocation(i).ptr, entry[0].as_uint64());
            EXPECT_EQ(reader.allocation(i).size, entry[1].as_uint64());
            EXPECT_EQ(reader.allocated_size(entry[0].as_uint64()), entry[1].as_uint64());
            EXPECT_EQ(reader.allocated_size(entry[0].as_uint64() + 1), std::nullopt);
        }
        const auto& samples = expected.at("samples").as_array();
        for (std::size_t s = 0; s < samples.size(); ++s) {
            for (std::size_t f = 0; f < fields.size(); ++f) {
                const MldfValue v = reader.read(s, f);
                const Value& want = samples[s].at(reader.fields()[f].name);
                if (want.is_null()) {
                    EXPECT_TRUE(v.absent) << s << ' ' << f;
                    EXPECT_LE(v.value.count(), 1);
                } else {
                    EXPECT_EQ(spell(reader.fields()[f], v), want) << s << ' ' << f;
                }
            }
        }
        EXPECT_EQ(reader.warnings().size(), name == "stride_204" || name == "minor_version_newer" ? 1U : 0U);
        const MldfReport report = validate_mldf(mldf_golden / (name + ".mldf"));
        EXPECT_EQ(report.finding_count, 0U) << fmt::format("{}", fmt::join(report.findings, "\n"));
        EXPECT_EQ(report.summary.at("num_samples").as_uint64(), samples.size());
    }
}

TEST(Mldf, EveryErrorCaseIsAClearError) {
    const std::map<std::string, std::pair<ErrorCode, std::string>> cases{
        {"error_major_newer", {ErrorCode::unsupported, "version 2.0"}},
        {"error_major_older", {ErrorCode::unsupported, "version 0.9"}},
        {"error_magic_8", {ErrorCode::corrupt, "8 bytes"}},
        {"error_magic_crlf", {ErrorCode::corrupt, "CR LF in its magic became LF"}},
        {"error_truncated_header", {ErrorCode::corrupt, "inside the header"}},
        {"error_truncated_descriptors", {ErrorCode::corrupt, "descriptors"}},
        {"error_truncated_alloc", {ErrorCode::corrupt, "cut short"}},
        {"error_field_ptr", {ErrorCode::corrupt, "descriptors"}},
        {"error_metadata_ptr", {ErrorCode::corrupt, "metadata table"}},
        {"error_num_samples", {ErrorCode::corrupt, "samples"}},
        {"error_flag_compressed", {ErrorCode::unsupported, "compressed"}},
        {"error_flag_encrypted", {ErrorCode::unsupported, "encrypted"}},
        {"error_flag_big_endian", {ErrorCode::unsupported, "little-endian"}},
        {"error_alloc_unsorted", {ErrorCode::corrupt, "not sorted"}},
    };
    std::size_t found = 0;
    const Value manifest = Value::parse(content(mldf_golden / "manifest.json"));
    for (const Value& c : manifest.at("cases").as_array()) {
        if (c.find("expect_error") == nullptr) continue;
        ++found;
        const std::string name = c.at("name").as_string();
        SCOPED_TRACE(name);
        EXPECT_EQ(error_of([&] { golden_mldf(name); }, cases.at(name).second), cases.at(name).first);
        const MldfReport report = validate_mldf(mldf_golden / (name + ".mldf"));
        EXPECT_EQ(report.finding_count, 1U);
    }
    EXPECT_EQ(found, cases.size());
}

TEST(Mldf, TextModeDamageIsNamed) {
    const std::string rest(200, '\0');
    const auto words = [&](const std::string& begin, const char* text) {
        EXPECT_EQ(error_of([&] { MldfReader(source_of(begin + rest)); }, text), ErrorCode::corrupt);
    };
    words("\x89MLDF\n\x1a\n", "CR LF in its magic became LF");
    words("\x89MLDF\r\r\n\x1a\r\n", "a LF in its magic became CR LF");
    words("\x89MLDF\r\n\x1a\r\n", "a LF in its magic became CR LF");
    words("\x09MLDF\r\n\x1a\n", "eighth bit");
    words("\xc2\x89MLDF\r\n\x1a\n", "UTF-8");
    words("\x93NUMPY", "not an MLDF file");
    EXPECT_EQ(error_of([] { MldfReader(source_of("")); }, "not an MLDF file"), ErrorCode::corrupt);
}

}  // namespace
}  // namespace tessera
