// Every array that an original program wrote, converted to every other format and back.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/convert.h>
#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/error.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>

#include "expect_error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// The arrays of the original programs that can be opened and read, by path.
std::vector<fs::path> golden_arrays() {
    std::vector<fs::path> found;
    for (const char* folder : {"zarr0", "zarr1", "zarr2", "zarr3"}) {
        for (auto entry = fs::recursive_directory_iterator(fs::path(TESSERA_GOLDEN) / folder);
             entry != fs::recursive_directory_iterator(); ++entry) {
            if (!entry->is_directory() || entry->path().filename().string().starts_with("error_")) continue;
            if (probe_dialect(*directory_store(entry->path(), {.read_only = true})) != nullptr) {
                found.push_back(entry->path());
                entry.disable_recursion_pending();
            }
        }
    }
    std::ranges::sort(found);
    return found;
}

/// All elements, as they compare: those of variable length by their content.
std::vector<std::string> elements(const Array& array) {
    const NDArray all = array.read();
    std::vector<std::string> list;
    const std::int64_t size = all.dtype().size();
    for (std::int64_t i = 0; i < all.count(); ++i) {
        const std::byte* p = all.bytes().data() + i * size;
        if (all.dtype().is_variable()) {
            list.emplace_back(reinterpret_cast<const VariableSlot*>(p)->view());
        } else {
            list.emplace_back(reinterpret_cast<const char*>(p), static_cast<std::size_t>(size));
        }
    }
    return list;
}

/// The array in another format, in memory, made as the program makes it.
Array converted(const Array& from, const Dialect& to) {
    const Conversion c = convert_metadata(from.metadata(), from.attributes().stored(), from.dialect(), to);
    Array array = Array::create(memory_store(), to, c.metadata, false);
    if (c.attributes) array.attributes().replace(*c.attributes);
    if (why_recode(from.metadata(), c.metadata)) {
        copy_array(from, array);
    } else {
        (void)copy_chunks(from, array);
    }
    array.publish();
    return array;
}

TEST(Convert, every_pair_of_formats_there_and_back) {
    std::map<std::string, int> done;
    for (const fs::path& path : golden_arrays()) {
        SCOPED_TRACE(path.filename().string());
        std::optional<Array> original;
        try {
            original = Array::open(path, {.read_only = true});
            if (element_count(original->shape()) > 1'000'000) continue;
            (void)original->read();
        } catch (const Error& e) {
            continue;  // what cannot be read is the business of other tests
        }
        for (const Dialect* each_to : dialect_table()) {
            const Dialect& to = *each_to;
            if (&to == &original->dialect()) continue;
            SCOPED_TRACE(std::string(to.name));
            std::optional<Array> there;
            try {
                there = converted(*original, to);
            } catch (const Error& e) {
                EXPECT_EQ(e.code(), ErrorCode::unsupported) << e.what();
                EXPECT_THAT(e.what(), HasSubstr(std::string(to.name)));
                continue;
            }
            EXPECT_EQ(there->shape(), original->shape());
            // v3 has no big-endian structures, and no fill of null.
            const bool ordered = there->dtype() == original->dtype();
            EXPECT_TRUE(ordered || (to.name == "v3" && original->dtype().kind() == Kind::structure &&
                                    there->dtype().equal_but_order(original->dtype())));
            if (ordered && (to.null_fill || original->metadata().fill.bytes)) {
                EXPECT_EQ(there->metadata().fill.bytes, original->metadata().fill.bytes);
            } else {
                EXPECT_EQ(fill_element(there->metadata()).size(), fill_element(original->metadata()).size());
            }
            EXPECT_TRUE(elements_equal(there->read().view(), original->read().view()));
            // v1 could make an array without dimensions, but not write to it.
            if (original->dialect().name == "v1" && original->shape().empty()) continue;
            const Array back = converted(*there, original->dialect());
            EXPECT_TRUE(elements_equal(back.read().view(), original->read().view()));
            if (ordered) {
                EXPECT_EQ(back.dtype(), original->dtype());
                EXPECT_EQ(back.metadata().fill.bytes, original->metadata().fill.bytes);
            }
            EXPECT_EQ(back.metadata().dimension_names, original->metadata().dimension_names);
            EXPECT_EQ(back.attributes().all(), original->attributes().all());
            ++done[fmt::format("{} → {}", original->dialect().name, to.name)];
        }
    }
    EXPECT_EQ(done.size(), dialect_table().size() * (dialect_table().size() - 1));
    for (const auto& [pair, count] : done) EXPECT_GE(count, 20) << pair;
}

ArrayMetadata made(const char* format, const char* codec, Order order = Order::C) {
    return make_metadata(
        {.shape = {20, 30}, .chunks = {7, 8}, .dtype = "<i4", .codec = codec, .format = format, .order = order});
}

std::optional<std::string> recode(const ArrayMetadata& from, const char* source, const char* target) {
    return why_recode(from, convert_metadata(from, {}, dialect_named(source), dialect_named(target)).metadata);
}

TEST(Convert, chunk_files_stay_valid_where_their_bytes_do) {
    for (const char* source : {"zmeta", "v1", "v2"}) {
        for (const char* target : {"zmeta", "v1", "v2", "v3"}) {
            EXPECT_EQ(recode(made(source, "blosc:lz4:3"), source, target), std::nullopt) << source << target;
            // zarr 0.4 and 1 cannot read zstd.
            const bool read = std::string_view(target) == "v2" || std::string_view(target) == "v3";
            EXPECT_EQ(recode(made(source, "blosc:zstd:3"), source, target).has_value(),
                      !read && std::string_view(source) != target)
                << source << target;
        }
    }
    EXPECT_EQ(recode(made("v1", "zlib:3"), "v1", "v2"), std::nullopt);
    EXPECT_EQ(recode(made("v2", "zstd:3"), "v2", "v3"), std::nullopt);
    EXPECT_EQ(recode(made("v2", "blosc:lz4", Order::F), "v2", "v1"), std::nullopt);
    EXPECT_EQ(recode(made("v2", "blosc:lz4", Order::F), "v2", "v3"), std::nullopt);
    EXPECT_THAT(recode(made("v2", "zstd:3"), "v2", "zmeta").value_or(""), HasSubstr("zstd:3"));
    EXPECT_THAT(recode(made("v2", "blosc:lz4", Order::F), "v2", "zmeta").value_or(""), HasSubstr("transpose"));
    // gzip and zlib are not the same bytes.
    EXPECT_NE(recode(made("v2", "gzip:3"), "v2", "v1"), std::nullopt);
    ArrayMetadata other_fill = made("v2", "zstd");
    other_fill.fill.bytes = element_from_value("<i4", 7, Assign::exact);
    EXPECT_THAT(why_recode(made("v2", "zstd"), other_fill).value_or(""), HasSubstr("fill"));
}

/// Of Python's lzma without a header, so that only the configuration says how it is decoded.
CodecConfig raw_lzma(std::int64_t dist) {
    CodecConfig codec{"numcodecs.lzma"};
    codec.configuration = Value::parse(fmt::format(
        R"({{"format": 3, "check": -1, "preset": null, "filters": [{{"id": 3, "dist": {}}}, {{"id": 33, "preset": 1}}]}})",
        dist));
    return codec;
}

TEST(Convert, lzma_is_decoded_as_its_configuration_says) {
    ArrayMetadata from = made("v2", "lzma:1");
    from.codecs.back() = raw_lzma(4);
    ArrayMetadata to = from;
    EXPECT_EQ(why_recode(from, to), std::nullopt);
    to.codecs.back() = raw_lzma(2);
    EXPECT_THAT(why_recode(from, to).value_or(""), HasSubstr("codecs"));

    Array array = Array::create(memory_store(), dialect_named("v2"), from);
    std::vector<std::int32_t> values(600);
    std::iota(values.begin(), values.end(), 1000);
    array.write("", view(values, {20, 30}));
    Array copy = Array::create(memory_store(), dialect_named("v2"), to);
    if (why_recode(from, to)) {
        copy_array(array, copy);
    } else {
        (void)copy_chunks(array, copy);
    }
    EXPECT_EQ(elements(copy), elements(array));
}

TEST(Convert, the_nearest_codecs_are_chosen_and_named) {
    const auto convert = [](const ArrayMetadata& m, const char* source, const char* target) {
        return convert_metadata(m, {}, dialect_named(source), dialect_named(target));
    };
    Conversion c = convert(made("v2", "zstd:3"), "v2", "zmeta");
    EXPECT_EQ(codec_text(c.metadata.codecs.back()), "blosc:zlib:3:shuffle");
    ASSERT_EQ(c.changes.size(), 1U);
    EXPECT_THAT(c.changes[0], HasSubstr("zstd:3"));
    EXPECT_EQ(codec_text(convert(made("v3", "gzip:6"), "v3", "v1").metadata.codecs.back()), "zlib:6");
    EXPECT_EQ(codec_text(convert(made("v3", "none"), "v3", "zmeta").metadata.codecs.back()), "blosc:lz4:0:noshuffle");
    c = convert(made("v3", "zstd:3,crc32c"), "v3", "zmeta");
    EXPECT_EQ(codec_text(c.metadata.codecs.back()), "blosc:zlib:3:shuffle");
    EXPECT_THAT(c.changes[0], HasSubstr("crc32c"));
    c = convert(made("v2", "blosc:zstd:4:bitshuffle"), "v2", "v1");
    EXPECT_EQ(codec_text(c.metadata.codecs.back()), "blosc:zlib:4:bitshuffle");
    EXPECT_THAT(c.changes[0], HasSubstr("zarr 1 cannot read zstd"));
    const ArrayMetadata zstd = made("v2", "blosc:zstd:4:bitshuffle");
    EXPECT_EQ(convert_metadata(zstd, {}, dialect_named("v2"), dialect_named("v1"), true).metadata.codecs, zstd.codecs);
    c = convert(made("v2", "delta,zlib:4"), "v2", "v1");
    EXPECT_EQ(codec_text(c.metadata.codecs.back()), "zlib:4");
    EXPECT_THAT(c.changes[0], HasSubstr("delta"));

    ArrayMetadata sharded = made("v3", "zstd:1", Order::F);
    set_chunk_layout(sharded, {.chunks = {7, 8}, .shards = {14, 16}, .codecs = sharded.codecs});
    c = convert(sharded, "v3", "v2");
    EXPECT_EQ(c.metadata.chunks, (Shape{7, 8}));
    EXPECT_EQ(c.metadata.codecs.front().name, "transpose");
    EXPECT_THAT(c.changes[0], HasSubstr("(14, 16)"));
}

TEST(Convert, a_layout_is_taken_apart_and_put_together) {
    ArrayMetadata m = made("v3", "zstd:1");
    const ChunkLayout layout{.chunks = {7, 8}, .shards = {14, 16}, .codecs = m.codecs};
    set_chunk_layout(m, layout);
    EXPECT_EQ(m.chunks, (Shape{14, 16}));
    EXPECT_EQ(chunk_layout(m), layout);
    expect_error(ErrorCode::invalid_argument, "multiple", [&] {
        set_chunk_layout(m, {.chunks = {7, 8}, .shards = {14, 20}, .codecs = layout.codecs});
    });
    // A transpose before the shards: inner chunks are counted along the dimensions that it gives.
    CodecConfig transpose{"transpose"};
    transpose.configuration.set("order", Value::Array{1, 0});
    m.codecs.insert(m.codecs.begin(), transpose);
    m.codecs[1].configuration.set("chunk_shape", Value::Array{4, 2});
    EXPECT_EQ(chunk_layout(m).chunks, (Shape{2, 4}));
}

TEST(Convert, dimension_names_become_xarrays_attribute_and_back) {
    ArrayMetadata m = made("v3", "zstd");
    m.dimension_names = {"y", std::nullopt};
    Value attributes = Value::object();
    attributes.set("units", "m");
    const Dialect& v3 = dialect_named("v3");
    const Dialect& v2 = dialect_named("v2");
    const Conversion there = convert_metadata(m, attributes, v3, v2);
    EXPECT_TRUE(there.metadata.dimension_names.empty());
    ASSERT_TRUE(there.attributes);
    EXPECT_EQ(there.attributes->at("_ARRAY_DIMENSIONS"), (Value(Value::Array{"y", Value()})));
    const Conversion back = convert_metadata(there.metadata, there.attributes, v2, v3);
    EXPECT_EQ(back.metadata.dimension_names, m.dimension_names);
    EXPECT_EQ(back.attributes, attributes);
    attributes.set("_ARRAY_DIMENSIONS", Value::Array{"lat", "lon"});
    expect_error(ErrorCode::unsupported, "_ARRAY_DIMENSIONS", [&] { (void)convert_metadata(m, attributes, v3, v2); });
    // What only looks like it stays an attribute.
    attributes.set("_ARRAY_DIMENSIONS", Value::Array{"lat"});
    EXPECT_EQ(convert_metadata(made("v2", "zstd"), attributes, v2, v3).attributes, attributes);
}

TEST(Convert, what_the_fill_marks_in_v2_an_attribute_marks_elsewhere_and_back) {
    const Dialect& v2 = dialect_named("v2");
    const auto marked = [&](const char* dtype, const Value& fill, const char* to, const Value& attributes) {
        const ArrayMetadata m = make_metadata({.shape = {3}, .dtype = dtype, .fill_value = fill, .format = "v2"});
        const Conversion there = convert_metadata(m, attributes, v2, dialect_named(to));
        const Conversion back = convert_metadata(there.metadata, there.attributes, dialect_named(to), v2);
        // The attribute stays beside the fill, which marks nothing in images.
        Value came = back.attributes.value();
        EXPECT_EQ(came.erase("_FillValue"), there.attributes->find("_FillValue") != nullptr);
        EXPECT_EQ(came, attributes);
        // null, which says that none is missing, comes back in copies (python.test_moves), where the array is known.
        if (!fill.is_null()) {
            EXPECT_EQ(back.metadata.fill.bytes, m.fill.bytes);
        }
        const Value* const mark = there.attributes->find("_FillValue");
        return mark == nullptr ? std::string() : mark->dump();
    };
    Value named = Value::object();
    named.set("_ARRAY_DIMENSIONS", Value::Array{"x"});
    Value packed = named;
    packed.set("scale_factor", 0.5);
    EXPECT_EQ(marked("<i4", -9, "v3", named), "-9");
    EXPECT_EQ(marked("<i4", -9, "zmeta", named), "-9");
    EXPECT_EQ(marked("<f4", 0.1, "v3", named), "\"AAAAoJmZuT8=\"");  // the double that the float32 is
    EXPECT_EQ(marked("|b1", true, "v3", named), "true");
    // NaN needs no mark, and zero is missing only in packed data. xarray does not open arrays without names.
    EXPECT_EQ(marked("<f4", std::nan(""), "v3", named), "");
    EXPECT_EQ(marked("<i4", 0, "v3", named), "");
    EXPECT_EQ(marked("<i4", 0, "v3", packed), "0");
    EXPECT_EQ(marked("<i4", -9, "v3", Value::object()), "");
    EXPECT_EQ(marked("<i4", Value(), "v3", packed), "");
}

TEST(Convert, damaged_chunks_do_not_spread) {
    const auto store = memory_store();
    Array array = Array::create({store, "a"}, {.shape = {8}, .chunks = {4}, .dtype = "<i4", .format = "v2"});
    array.fill(Selection::all({8}), 3);
    store->put("a/1", std::as_bytes(std::span("damaged", 7)));
    Array copy = Array::create({store, "b"}, dialect_named("v2"), array.metadata(), false);
    expect_error(ErrorCode::corrupt, "a/1", [&] { (void)copy_chunks(array, copy, {.verify = true}); });
}

TEST(Convert, links_share_the_file_and_a_later_write_does_not) {
    const fs::path folder = fs::temp_directory_path() / fmt::format("tessera-convert-{}", ::getpid());
    fs::remove_all(folder);
    Array array = Array::create(folder / "a", {.shape = {8}, .chunks = {4}, .dtype = "<i4", .format = "v2"});
    array.fill(Selection::all({8}), 3);
    const Dialect& v3 = dialect_named("v3");
    Array copy = Array::create(directory_store(folder / "b"), v3,
                               convert_metadata(array.metadata(), {}, array.dialect(), v3).metadata, false);
    const CopiedChunks copied = copy_chunks(array, copy, {.link = true});
    copy.publish();
    EXPECT_EQ(copied.chunks, 2);
    EXPECT_EQ(copied.linked, 2);
    EXPECT_EQ(fs::hard_link_count(folder / "a" / "0"), 2U);
    copy.fill(Selection::parse("0", {8}), 9);
    EXPECT_EQ(elements(array), elements(Array::open(folder / "a")));
    EXPECT_EQ(array.read("0").values<std::int32_t>()[0], 3);
    EXPECT_EQ(Array::open(folder / "b").read("0").values<std::int32_t>()[0], 9);
    fs::remove_all(folder);
}

TEST(Convert, a_resumed_copy_takes_no_chunk_cut_short_for_a_whole_one) {
    const fs::path folder = fs::temp_directory_path() / fmt::format("tessera-resumed-{}", ::getpid());
    fs::remove_all(folder);
    Array array = Array::create(folder / "a", {.shape = {8}, .chunks = {4}, .dtype = "<i4", .format = "v2"});
    array.fill(Selection::all({8}), 3);
    const auto store = directory_store(folder / "b");
    Array copy = Array::create(store, dialect_named("v2"), array.metadata(), false);
    store->put("0", std::as_bytes(std::span("cut", 3)));
    EXPECT_EQ(copy_chunks(array, copy).chunks, 2);
    copy.publish();
    EXPECT_EQ(elements(copy), elements(array));
    EXPECT_EQ(fs::hard_link_count(folder / "b" / "1"), 1U);  // the copy is independent
    fs::remove_all(folder);
}

}  // namespace
}  // namespace tessera
