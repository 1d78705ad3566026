// Arrays on which Tessera and the programs that wrote them once differed: tests/golden/exchange. Its README and the
// notes of its manifest say what must hold; tests/python/test_exchange.py asks the programs themselves.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tessera/array.h>
#include <tessera/convert.h>
#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/group.h>
#include <tessera/npy.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "expect_error.h"
#include "metadata_json.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

fs::path golden() {
    return fs::path(TESSERA_GOLDEN) / "exchange";
}

std::string file_text(const fs::path& path) {
    Buffer bytes;
    const auto store = directory_store(path.parent_path(), {.read_only = true});
    return store->get(path.filename().string(), bytes) ? std::string(text_of(bytes)) : "(absent)";
}

const Value::Array& cases() {
    static const Value manifest = Value::parse(file_text(golden() / "manifest.json"));
    return manifest.at("cases").as_array();
}

class Exchange : public testing::TestWithParam<std::size_t> {
protected:
    [[nodiscard]] static const Value& info() { return cases()[GetParam()]; }
    [[nodiscard]] static std::string name() { return info().at("name").as_string(); }
    [[nodiscard]] static fs::path path() { return golden() / info().at("path").as_string(); }
    /// A copy of the folder that may be written.
    [[nodiscard]] fs::path copied() const {
        fs::copy(path(), folder_ / name(), fs::copy_options::recursive);
        return folder_ / name();
    }

    TemporaryFolder folder_;
};

/// All files below a folder, Tessera's own apart, by their path.
std::map<std::string, std::string> files_below(const fs::path& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        const std::string relative = entry.path().lexically_relative(folder).string();
        if (entry.is_regular_file() && !relative.starts_with(".tessera")) files[relative] = file_text(entry.path());
    }
    return files;
}

TEST_P(Exchange, reads_as_the_program_that_wrote_it_does) {
    if (info().find("expected") == nullptr) return;
    const NDArray expected = load_npy(golden() / info().at("expected").as_string());
    const NDArray read = Array::open(path(), {.read_only = true}).read();
    EXPECT_EQ(read.shape(), expected.shape());
    ASSERT_TRUE(read.dtype().equal_but_order(expected.dtype())) << read.dtype().to_string();
    EXPECT_TRUE(elements_equal(read.view(), expected.view()));
}

TEST_P(Exchange, written_again_its_chunks_are_what_they_were) {
    if (info().find("expected") == nullptr) return;
    const fs::path copy = copied();
    const auto before = files_below(copy);
    Array array = Array::open(copy);
    array.write(Region::whole(array.shape()), array.read().view());
    const std::vector<CodecConfig> codecs = array.metadata().codecs;
    if (codec_row(codecs.back().name).bytes_to_bytes == nullptr && array.metadata().fill.bytes) {
        EXPECT_EQ(files_below(copy), before);
    }
    const NDArray expected = load_npy(golden() / info().at("expected").as_string());
    EXPECT_TRUE(elements_equal(Array::open(copy).read().view(), expected.view()));
}

TEST_P(Exchange, goes_to_every_format_and_back) {
    if (info().find("expected") == nullptr) return;
    const Array array = Array::open(path(), {.read_only = true});
    for (const Dialect* each_dialect : dialect_table()) {
        const Dialect& dialect = *each_dialect;
        SCOPED_TRACE(dialect.name);
        const auto convert = [](const Array& from, const Dialect& to) {
            const Conversion c = convert_metadata(from.metadata(), from.attributes().stored(), from.dialect(), to);
            Array made = Array::create(memory_store(), to, c.metadata, false);
            copy_array(from, made);
            made.publish();
            return made;
        };
        const Array there = convert(array, dialect);
        EXPECT_TRUE(elements_equal(there.read().view(), array.read().view()));
        const Array back = convert(there, array.dialect());
        EXPECT_TRUE(elements_equal(back.read().view(), array.read().view()));
        EXPECT_EQ(back.dtype(), array.dtype());
    }
}

TEST_P(Exchange, what_is_no_text_is_read_as_json_and_stays) {
    if (info().find("expected_json") == nullptr) return;
    const Value expected = Value::parse(file_text(golden() / info().at("expected_json").as_string()));
    const fs::path copy = copied();
    const auto before = files_below(copy);
    Array array = Array::open(copy);
    const std::int64_t chunk = array.chunks()[0];
    const VariableSlot slot{"new", 3};
    const ArrayView text{reinterpret_cast<const std::byte*>(&slot), DType::variable_text(), {1}, {0}};
    const auto text_at = [&](std::int64_t i) {
        const NDArray one = array.read(Region{{i}, {1}});
        return std::string(reinterpret_cast<const VariableSlot*>(one.bytes().data())->view());
    };
    const Value::Array& list = expected.as_array();
    for (std::int64_t i = 0; i < std::ssize(list); ++i) {
        SCOPED_TRACE(i);
        const Value& element = list[static_cast<std::size_t>(i)];
        if (element.is_string()) {
            EXPECT_EQ(text_at(i), element.as_string());
            continue;
        }
        EXPECT_EQ(text_at(i), element.dump());
        const NDArray all = array.read();
        const auto* slots = reinterpret_cast<const VariableSlot*>(all.bytes().data());
        EXPECT_EQ(slots[i].view(), element.dump());
        // Another element of its chunk: nothing is written.
        const std::int64_t other = i / chunk * chunk;
        if (other == i) continue;
        expect_error(ErrorCode::unsupported, "is no text, but ", [&] { array.write(Region{{other}, {1}}, text); });
        const std::vector<RegionWrite> parts{{Region{{other}, {1}}, text}};
        expect_error(ErrorCode::unsupported, "is no text", [&] { array.write_many(parts); });
        EXPECT_EQ(files_below(copy), before);
    }
    // Each of them may become a text; beyond the edge there is no text either, and it does not matter.
    std::int64_t first = -1;
    std::int64_t last = -1;
    for (std::int64_t i = 0; i < std::ssize(list); ++i) {
        if (list[static_cast<std::size_t>(i)].is_string()) continue;
        if (first < 0) first = i;
        last = i;
    }
    if (first >= 0) {
        ArrayView many = text;
        many.shape = {last - first + 1};
        array.write(Region{{first}, many.shape}, many);
        EXPECT_EQ(text_at(first), "new");
    }
    array.write(Region{{std::ssize(list) - 1}, {1}}, text);
    EXPECT_EQ(text_at(std::ssize(list) - 1), "new");
    EXPECT_EQ(array.read().shape(), array.shape());
}

TEST(ExchangeVlenBytes, empty_chunks_are_stored) {
    // zarr-python 2 reads an absent chunk of bytes as the text "".
    const TemporaryFolder folder;
    Array array = Array::create(folder / "a", {.shape = {4}, .chunks = {2}, .dtype = "bytes", .format = "v2"});
    array.write(Region::whole({4}), NDArray("bytes", {4}).view());
    EXPECT_TRUE(fs::exists(folder / "a" / "0"));
    EXPECT_TRUE(fs::exists(folder / "a" / "1"));
    // In v3 they are left out, and on the way to v2 made again.
    Array bare = Array::create(folder / "b", {.shape = {4}, .chunks = {2}, .dtype = "bytes", .format = "v3"});
    bare.write(Region::whole({4}), NDArray("bytes", {4}).view());
    EXPECT_FALSE(fs::exists(folder / "b" / "c"));
    const Conversion c = convert_metadata(bare.metadata(), {}, bare.dialect(), dialect_named("v2"));
    EXPECT_NE(why_recode(bare.metadata(), c.metadata), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Golden, Exchange, testing::Range<std::size_t>(0, cases().size()),
                         [](const auto& param) { return cases()[param.param].at("name").as_string(); });

}  // namespace
}  // namespace tessera
