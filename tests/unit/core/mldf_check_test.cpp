#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/mldf.h>

#include "mldf_files.h"

namespace tessera {
namespace {

using namespace test;

TEST(Mldf, ChecksumIsWrittenAndChecked) {
    const Folder folder;
    write_again(folder / "c.mldf", expected_of("all_fields"), true);
    EXPECT_EQ(python(folder, R"(
import struct, zlib
b = open('c.mldf', 'rb').read()
flags, = struct.unpack_from('<I', b, 13)
data, alloc, crc, rest = struct.unpack_from('<QQII', b, 49)
assert flags == 5 and rest == 0 and crc == zlib.crc32(b[data:alloc])
print('equal')
)"),
              "equal\n");
    EXPECT_EQ(validate_mldf(folder / "c.mldf").finding_count, 0U);
    std::string file = content(folder / "c.mldf");
    const MldfHeader h = MldfReader(source_of(file)).header();
    file[h.data_ptr + 200] ^= 1;
    const MldfReader damaged(source_of(file));
    EXPECT_EQ(list_value(load(*damaged.open("label"), Region({0}, {2})).view()), Value::parse("[7, -1]"));
    for (int twice = 0; twice < 2; ++twice) {
        EXPECT_EQ(error_of([&] { load(*damaged.open("blob")); }, "CRC-32"), ErrorCode::corrupt);
        EXPECT_EQ(error_of([&] { static_cast<void>(damaged.read(0, 1)); }, "CRC-32"), ErrorCode::corrupt);
    }
    const MldfReader trusting(source_of(file), {.verify_checksum = false});
    EXPECT_EQ(hex(bytes(slot_text(trusting.read(0, 1).value))), "638bd4");
    const MldfReport report = validate_mldf(source_of(file));
    ASSERT_GE(report.finding_count, 1U);
    EXPECT_NE(report.findings[0].find("CRC-32"), std::string::npos);
}

/// The file of other_fields with one change, and what validate says to it.
MldfReport validate_changed(const std::function<void(std::string&)>& change) {
    std::string file = content(mldf_golden / "other_fields.mldf");
    change(file);
    return validate_mldf(source_of(file));
}

TEST(Mldf, ValidateNamesTheDamage) {
    constexpr std::size_t metadata = 1792, row = 128, alloc = 3593;
    const auto finding = [](const std::function<void(std::string&)>& change, const std::string& words) {
        const MldfReport report = validate_changed(change);
        const bool found = std::ranges::any_of(
            report.findings, [&](const std::string& f) { return f.find(words) != std::string::npos; });
        EXPECT_TRUE(found) << words << " is not in\n" << fmt::format("{}", fmt::join(report.findings, "\n"));
    };
    const auto at = [](std::size_t where, auto value) { return [=](std::string& file) { patch(file, where, value); }; };
    finding(at(metadata + row, std::uint64_t{1} << 40), "sample 1 of field 'image': the record points to");
    finding(at(metadata + row, std::uint64_t{2561}),
            "sample 1 of field 'image': the record has 120 bytes at 2561, "
            "where the allocation table has nothing");
    finding(at(metadata + 8, std::uint32_t{104}), "the allocation table has 105");
    finding(at(metadata + 12, std::uint16_t{8}), "sample 0 of field 'image': |u1 of shape (8, 5, 3) needs 120 bytes");
    finding(at(metadata + 48 + 24, std::uint64_t{0}), "sample 0 of field 'audio'");
    finding(at(2795, std::uint8_t{'['}), "sample 0 of field 'doc'");
    finding(at(2796, std::uint8_t{0xFF}), "sample 0 of field 'doc': the text is not UTF-8");
    finding(at(alloc + 8, std::uint32_t{106}), "allocation 1 at 2665 overlaps");
    finding(at(alloc + 8, std::uint32_t{2000}), "does not lie in the data region");
    finding(at(alloc, std::uint64_t{2559}), "does not lie in the data region");
    finding([](std::string& file) { file[73] = 'x', file[73 + 208] = 'x', file.replace(73, 64, file.substr(281, 64)); },
            "two fields are called");
    finding([](std::string& file) { file[73] = 0; }, "field 0 has no name");
    finding(at(9 + 4, std::uint32_t{0x101}), "flags 0x100");
    finding(at(9 + 20, std::uint32_t{4096}), "do not begin at a page");
    finding(at(73 + 68, std::uint32_t{16}), "records of 16 bytes");
    // A record of zeros in place of one with a payload.
    finding([](std::string& file) { file.replace(metadata, 24, std::string(24, '\0')); },
            "1 of 17 allocations belong to no sample");
    // Damage in one record keeps the array from being one, and no more.
    std::string file = content(mldf_golden / "other_fields.mldf");
    patch(file, metadata + 12, std::uint16_t{8});
    const MldfReader reader(source_of(file));
    EXPECT_EQ(error_of([&] { static_cast<void>(reader.open("image")); }, "sample 0"), ErrorCode::corrupt);
    EXPECT_EQ(reader.read(1, 0).value.shape(), (Shape{8, 5, 3}));
    EXPECT_EQ(error_of([&] { static_cast<void>(reader.read(0, 0)); }, "needs 120 bytes"), ErrorCode::corrupt);
    EXPECT_EQ(load(*reader.open("label")).count(), 3);
}

/// Everything that can be asked of a file. What is thrown must be an Error about the file.
void use(const std::string& file) {
    try {
        const auto source = source_of(file);
        static_cast<void>(validate_mldf(source));
        const MldfReader reader(source);
        for (const std::string& name : reader.arrays()) {
            try {
                const auto array = reader.open(name);
                Region region = Region::whole(array->info().shape);
                for (std::int64_t& n : region.extent) n = std::min<std::int64_t>(n, 4);
                load(*array, region);
            } catch (const Error&) {
            }
        }
        for (std::size_t f = 0; f < reader.fields().size() && reader.header().num_samples > 0; ++f) {
            try {
                static_cast<void>(reader.read(0, f));
            } catch (const Error&) {
            }
        }
        static_cast<void>(compare_mldf(reader, reader));
    } catch (const Error& e) {
        EXPECT_TRUE(e.code() == ErrorCode::corrupt || e.code() == ErrorCode::unsupported) << e.what();
    }
}

TEST(Mldf, FilesThatAttackAreNamed) {
    const std::filesystem::path bad = TESSERA_GOLDEN "/bad/mldf";
    const Value errors = Value::parse(content(bad / "errors.json"));
    EXPECT_GT(errors.as_object().size(), 20U);
    for (const auto& [name, words] : errors.as_object()) {
        SCOPED_TRACE(name);
        use(content(bad / name));
        const MldfReport report = validate_mldf(bad / name);
        EXPECT_NE(fmt::format("{}", fmt::join(report.findings, "\n")).find(words.as_string()), std::string::npos)
            << words.as_string() << " is not in\n"
            << fmt::format("{}", fmt::join(report.findings, "\n"));
    }
}

TEST(Mldf, TruncatedAnywhereIsAnError) {
    for (const std::string name : {"name_63_utf8", "other_fields"}) {
        const std::string file = content(mldf_golden / (name + ".mldf"));
        for (std::size_t n = 0; n < file.size(); ++n) {
            use(file.substr(0, n));
            EXPECT_GE(validate_mldf(source_of(file.substr(0, n))).finding_count, 1U) << n;
        }
    }
}

TEST(Mldf, RandomDamageNeverCrashes) {
    std::mt19937 random(3);
    for (const std::string name : {"name_63_utf8", "other_fields", "stride_204", "one_field_label"}) {
        const std::string whole = content(mldf_golden / (name + ".mldf"));
        for (int round = 0; round < 400; ++round) {
            std::string file = whole;
            // The header and the descriptors' numbers above all.
            for (int k = 0; k < 3; ++k) {
                const std::size_t limit = round % 2 == 0 ? std::min<std::size_t>(150, file.size()) : file.size();
                file[9 + random() % (limit - 9)] = static_cast<char>(round % 3 == 0 ? 0xFF : random());
            }
            use(file);
        }
    }
}

TEST(Mldf, CompareNamesTheDifferences) {
    const std::string whole = content(mldf_golden / "other_fields.mldf");
    const MldfReader a(source_of(whole));
    EXPECT_EQ(compare_mldf(a, a).finding_count, 0U);
    const auto differences = [&](std::string file) {
        return compare_mldf(a, MldfReader(memory_source(Buffer(bytes(file)), "b.mldf"))).findings;
    };
    using List = std::vector<std::string>;
    std::string b = whole;
    patch(b, 1792 + 128 + 48, std::uint64_t{5});
    EXPECT_EQ(differences(b), List{"sample 1 of field 'label': 0 and 5"});
    b = whole;
    b[2560 + 40] ^= 1;
    EXPECT_EQ(differences(b), List{"sample 0 of field 'image': the data differ from byte 40 of 105 on"});
    b = whole;
    patch(b, 1792 + 12, std::uint16_t{5});
    patch(b, 1792 + 14, std::uint16_t{7});
    EXPECT_EQ(differences(b), List{"sample 0 of field 'image': shapes (7, 5, 3) and (5, 7, 3)"});
    b = whole;
    b[73] = 'I';
    EXPECT_EQ(differences(b), (List{"field 'image' is only in test.mldf", "field 'Image' is only in b.mldf"}));
    b = whole;
    b[11] = 1;
    EXPECT_EQ(differences(b), List{"header: version_minor 0 and 1"});
    // Where the payloads lie is no difference.
    const Folder folder;
    const MldfColumns columns(a);
    write_mldf(folder / "moved.mldf", columns.columns, {.page_size = 512 * 8});
    EXPECT_EQ(differences(content(folder / "moved.mldf")), List{"header: page_size 512 and 4096"});
    // Fields of another type are not compared further.
    const auto label = a.open("label");
    write_mldf(folder / "one.mldf", std::vector<MldfColumn>{{"score", label.get()}}, {.page_size = 512});
    const auto other = compare_mldf(a, MldfReader(source_of(content(folder / "one.mldf"))), {.limit = 3});
    EXPECT_EQ(other.findings.size(), 3U);
    EXPECT_EQ(other.finding_count, 10U);
}

}  // namespace
}  // namespace tessera
