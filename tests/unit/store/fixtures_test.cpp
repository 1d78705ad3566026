// What the original programs wrote, of every format: tests/golden/zarr0 … zarr3. Their READMEs explain the
// manifests.
#include <gtest/gtest.h>
#include <tessera/array.h>
#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/group.h>
#include <tessera/npy.h>

#include <filesystem>

#include "expect_error.h"
#include "metadata_json.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct Case {
    std::string format;   ///< the folder
    std::string dialect;  ///< ours
    Value info;

    [[nodiscard]] fs::path folder() const { return fs::path(TESSERA_GOLDEN) / format; }
    [[nodiscard]] fs::path path() const { return folder() / info.at("path").as_string(); }
    [[nodiscard]] const Value* find(std::string_view name) const { return info.find(name); }
    [[nodiscard]] bool is(std::string_view flag) const {
        const Value* v = info.find(flag);
        return v != nullptr && *v == Value(true);
    }
    /// What was written by a program and changed by nobody since.
    [[nodiscard]] bool is_array() const { return !is("expect_error") && !is("metadata_is_pickle") && !find("members"); }
};

std::string text_at(const ReadableStore& store, std::string_view key) {
    Buffer bytes;
    return store.get(key, bytes) ? std::string(text_of(bytes)) : "(absent)";
}

const std::vector<Case>& cases() {
    static const std::vector<Case> all = [] {
        std::vector<Case> found;
        for (const auto& [format, dialect] : {std::pair("zarr0", "zmeta"), std::pair("zarr1", "v1"),
                                              std::pair("zarr2", "v2"), std::pair("zarr3", "v3")}) {
            const auto store = directory_store(fs::path(TESSERA_GOLDEN) / format, {.read_only = true});
            const Value manifest = Value::parse(text_at(*store, "manifest.json"));
            for (const Value& info : manifest.at("cases").as_array()) found.push_back({format, dialect, info});
        }
        return found;
    }();
    return all;
}

class Fixtures : public testing::TestWithParam<std::size_t> {
protected:
    [[nodiscard]] static const Case& what() { return cases()[GetParam()]; }
};

/// Equal as bits, or, element by element, as values: NaN as NaN, fixed-size text as what it holds.
void expect_equal(const ArrayView& found, const ArrayView& expected) {
    ASSERT_EQ(found.shape, expected.shape);
    if (found.dtype.equal_but_order(expected.dtype) && elements_equal(found, expected)) return;
    // Variable-length elements are expected as U or S; everything else as what it is.
    ASSERT_TRUE(found.dtype.is_variable() || found.dtype.equal_but_order(expected.dtype.with_padding_named()))
        << found.dtype.to_string() << " instead of " << expected.dtype.to_string();
    const NDArray a = NDArray::copy_of(found);
    const NDArray b = NDArray::copy_of(expected);
    const auto element = [](const NDArray& array, std::int64_t n) {
        return element_to_value(array.dtype(), array.bytes().data() + n * array.dtype().size());
    };
    for (std::int64_t n = 0; n < a.count(); ++n) ASSERT_EQ(element(a, n).dump(), element(b, n).dump()) << n;
}

Index index_of(const Value& list) {
    return read_dims(list, 0);
}

Region box_of(const Value& start, const Value& stop) {
    const Index first = index_of(start);
    Shape extent = index_of(stop);
    for (int d = 0; d < extent.rank(); ++d) extent[d] -= first[d];
    return {first, extent};
}

void expect_content(const Array& array, const fs::path& expected_path, const Value* boxes) {
    const NDArray expected = load_npy(expected_path);
    if (boxes == nullptr) {
        expect_equal(array.read("").view(), expected.view());
        return;
    }
    for (const Value& box : boxes->as_array()) {
        const Region region = box_of(box.as_array()[0], box.as_array()[1]);
        NDArray part(array.info().dtype, region.extent);
        array.read_into(region, part.view());
        expect_equal(part.view(), expected.view().part(region));
    }
}

void expect_attributes(const Attributes& attributes, const Value* expected) {
    if (expected != nullptr) {
        EXPECT_EQ(attributes.all(), expected->is_null() ? Value::object() : *expected);
    }
}

/// Chunks of zfp are read if libzfp was there.
bool can_be_read(const Case& c) {
    if (!c.info.at("name").as_string().starts_with("zfp_")) return true;
    try {
        (void)Array::open(c.path(), {.read_only = true});
        return true;
    } catch (const Error& e) {
        if (std::string_view(e.what()).find("without libzfp") == std::string_view::npos) throw;
        return false;
    }
}

TEST_P(Fixtures, read_equal_or_are_refused) {
    const Case& c = what();
    if (!can_be_read(c)) GTEST_SKIP() << "built without libzfp";
    const auto read_all = [&] { (void)Array::open(c.path(), {.read_only = true}).read(""); };
    if (c.is("expect_error")) {
        expect_error(ErrorCode::corrupt, "error_", [&] {
            try {
                read_all();
            } catch (const Error& e) {
                // What the format does not have at all is unsupported, what it does not allow is corrupt.
                if (e.code() != ErrorCode::unsupported) throw;
                throw corrupt(e.what());
            }
        });
        return;
    }
    if (c.is("metadata_is_pickle")) return expect_error(ErrorCode::unsupported, "pickle", read_all);
    if (const Value* members = c.find("members")) {
        const Group group = Group::open(c.path(), {.read_only = true});
        expect_attributes(group.attributes(), c.find("attrs"));
        for (const auto& [path, member] : members->as_object()) {
            SCOPED_TRACE(path);
            expect_content(group.open_array(path), c.folder() / member.at("expected").as_string(), nullptr);
        }
        for (const Value& path : c.info.at("groups").as_array()) {
            EXPECT_EQ(Group::open({directory_store(c.path(), {.read_only = true}), path.as_string()}).dialect()->name,
                      c.dialect);
        }
        const ConsolidatedState consolidated = group.consolidated_state();
        EXPECT_EQ(consolidated.present, c.is("consolidated"));
        EXPECT_EQ(consolidated.stale, std::vector<std::string>());
        return;
    }
    const Array array = Array::open(c.path(), {.read_only = true});
    expect_attributes(array.attributes(), c.find("attrs"));
    if (const Value* expected = c.find("expected")) {
        expect_content(array, c.folder() / expected->as_string(), c.find("compare_boxes"));
    }
    const Value* probes = c.find("probes");
    EXPECT_TRUE(c.find("expected") != nullptr || probes != nullptr || array.info().shape.rank() == 0);
    if (probes == nullptr) return;
    for (const Value& probe : probes->as_array()) {
        const Region region = box_of(probe.at("start"), probe.at("stop"));
        NDArray part(array.info().dtype, region.extent);
        array.read_into(region, part.view());
        Value values = Value::array();
        for (std::int64_t n = 0; n < part.count(); ++n) {
            values.push_back(element_to_value(part.dtype(), part.bytes().data() + n * part.dtype().size()));
        }
        Value expected = Value::array();
        for (const Value& row : probe.at("values").as_array()) {
            for (const Value& v : row.as_array()) expected.push_back(v);
        }
        EXPECT_EQ(values, expected);
    }
}

TEST_P(Fixtures, metadata_are_written_back_as_they_were) {
    const Case& c = what();
    if (!c.is_array() || c.path().extension() == ".zip") return;
    const auto store = directory_store(c.path(), {.read_only = true});
    const Dialect* dialect = probe_dialect(*store);
    ASSERT_NE(dialect, nullptr);
    EXPECT_EQ(dialect->name, c.dialect);
    const ArrayMetadata m = load_metadata(*dialect, *store);
    if (c.dialect == "v1" && m.shape.rank() == 0) {
        return expect_error(ErrorCode::unsupported, "without dimensions", [&] { dialect->require_expressible(m); });
    }
    const auto copy = memory_store();
    const auto attributes = dialect->load_attributes(*store);
    dialect->save(*copy, m, attributes ? &*attributes : nullptr);

    const std::string_view key = dialect->metadata_key;
    const std::string original = text_at(*store, key);
    EXPECT_EQ(Value::parse(text_at(*copy, key)), Value::parse(original));
    // Byte for byte, where the program writes its members in one order.
    const std::string& writer = c.info.at("writer").as_string();
    const bool edited = writer.find("edited") != std::string::npos || c.info.at("name") == Value("fill_hex_nan");
    if (!edited && (c.dialect != "v2" || writer.starts_with("zarr-python 2"))) {
        EXPECT_EQ(text_at(*copy, key), original);
    }

    const ArrayMetadata again = load_metadata(*dialect, *copy);
    EXPECT_EQ(again.dtype, m.dtype);
    EXPECT_EQ(again.shape, m.shape);
    EXPECT_EQ(again.chunks, m.chunks);
    EXPECT_EQ(again.fill.bytes, m.fill.bytes);
    EXPECT_EQ(again.codecs, m.codecs);
    EXPECT_EQ(again.keys, m.keys);
    EXPECT_EQ(again.dimension_names, m.dimension_names);
    EXPECT_EQ(again.unknown, m.unknown);
    EXPECT_EQ(again.spelling, m.spelling);
    EXPECT_EQ(dialect->load_attributes(*copy), attributes);

    // The fill, known by its bytes only, comes to the same: it is spelt as the original program spells it.
    ArrayMetadata unspelt = m;
    unspelt.fill.spelling.reset();
    if (c.dialect == "zmeta" || c.dialect == "v1" || !m.fill.bytes) return;
    dialect->save(*copy, unspelt, nullptr);
    EXPECT_EQ(Value::parse(text_at(*copy, key)).at("fill_value"), Value::parse(original).at("fill_value"));
    EXPECT_EQ(dialect->load_attributes(*copy), attributes) << "those that were there stay";
}

INSTANTIATE_TEST_SUITE_P(Zarr, Fixtures, testing::Range<std::size_t>(0, cases().size()), [](const auto& param) {
    const Case& c = cases()[param.param];
    return c.format + "_" + c.info.at("name").as_string();
});

}  // namespace
}  // namespace tessera
