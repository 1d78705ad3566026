#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/action.h>
#include <tessera/copy_elements.h>
#include <tessera/group.h>
#include <tessera/seal.h>
#include <tessera/snapshot.h>
#include <tessera/verify.h>
#include <tessera/zip.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "expect_error.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using Store = std::shared_ptr<KeyValueStore>;

ByteSpan bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

/// What an array of a test is like. Its chunks are of 2 × 2 elements.
struct Layout {
    const char* name;
    const char* format;
    const char* codec;
    Shape shards = {};
};

std::ostream& operator<<(std::ostream& out, const Layout& layout) {
    return out << layout.name;
}

Array make_array(const Store& store, const Layout& layout, std::string_view prefix = "") {
    Array array = Array::create({store, prefix}, {.shape = {5, 4},
                                                  .chunks = {2, 2},
                                                  .dtype = DType::parse("<i4"),
                                                  .fill_value = -1,
                                                  .shards = layout.shards,
                                                  .codec = layout.codec,
                                                  .format = layout.format,
                                                  .attributes = Value::parse(R"({"units": "m"})")});
    for (std::int64_t i = 0; i < 5; ++i) {
        // Chunk (1, 1) stays as it is, and so does shard (1, 1).
        const bool whole = i < 2;
        NDArray row(array.dtype(), {1, whole ? 4 : 2});
        for (std::int64_t j = 0; j < row.count(); ++j) row.values<std::int32_t>()[j] = static_cast<int>(100 * i + j);
        array.write(Region({i, 0}, row.shape()), row);
    }
    return array;
}

/// Keys and content of everything below, `.tessera` included.
std::map<std::string, std::string> content(const PlaceView& place) {
    std::map<std::string, std::string> all;
    const Listing listing = place.store.list(place.prefix);
    for (const std::string& name : listing.keys) {
        Buffer bytes;
        EXPECT_TRUE(place.store.get(place.key(name), bytes));
        all[place.key(name)] = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    for (const std::string& name : listing.prefixes) all.merge(content({place.store, place.key(name)}));
    return all;
}

std::vector<FindingKind> kinds_of(const VerifyReport& report) {
    std::vector<FindingKind> kinds;
    for (const Finding& finding : report.findings) kinds.push_back(finding.kind);
    return kinds;
}

std::vector<std::string> keys_of(const VerifyReport& report, FindingKind kind) {
    std::vector<std::string> keys;
    for (const Finding& finding : report.findings) {
        if (finding.kind == kind) keys.push_back(finding.key);
    }
    return keys;
}

std::string first_text(const VerifyReport& report) {
    return report.findings.empty() ? "" : report.findings.front().text;
}

/// For thousands of runs over a few bytes: threads would only cost time.
const VerifyOptions one_thread{.io = {.threads = 1}};

class EveryLayout : public testing::TestWithParam<Layout> {
protected:
    Store store = memory_store();
};

const Layout zmeta{"zmeta", "zmeta", "blosc:lz4:5:shuffle"};
const Layout v1{"v1", "v1", "zlib:1"};
const Layout v2{"v2", "v2", "none"};
const Layout v3{"v3", "v3", "zstd:1,crc32c"};
const Layout sharded{"sharded", "v3", "crc32c", {4, 2}};

INSTANTIATE_TEST_SUITE_P(All, EveryLayout, testing::Values(zmeta, v1, v2, v3, sharded),
                         [](const auto& layout) { return std::string(layout.param.name); });

TEST_P(EveryLayout, sound_array_has_no_findings) {
    make_array(store, GetParam());
    const VerifyReport report = verify(store);
    EXPECT_THAT(report.findings, IsEmpty());
    EXPECT_TRUE(report.sound());
    EXPECT_EQ(report.arrays, 1);
    EXPECT_EQ(report.chunks, 4);
    EXPECT_EQ(report.missing, 2);
    EXPECT_EQ(report.seals, 0);
}

TEST_P(EveryLayout, empty_and_cut_chunks_are_named) {
    const Array array = make_array(store, GetParam());
    const std::string key = array.metadata().keys.key({0, 0});
    const std::string whole = content(*store).at(key);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        SCOPED_TRACE(size);
        store->put(key, bytes_of(std::string_view(whole).substr(0, size)));
        const VerifyReport report = verify(store, one_thread);
        EXPECT_EQ(report.chunks, 4) << "it is stored, and so not missing";
        ASSERT_THAT(keys_of(report, FindingKind::damage), Contains(key));
        EXPECT_EQ(report.findings.front().chunk, (Index{0, 0}));
    }
}

TEST_P(EveryLayout, seal_names_every_changed_byte) {
    make_array(store, GetParam(), "deep/array");
    EXPECT_TRUE(seal({*store, "deep"}).written);
    ASSERT_TRUE(verify({store, "deep"}).sound());
    const auto files = content(*store);
    for (const auto& [key, whole] : files) {
        const std::string below = key.substr(std::string("deep/").size());
        for (std::size_t i = 0; i < whole.size(); ++i) {
            SCOPED_TRACE(key + " at " + std::to_string(i));
            std::string changed = whole;
            changed[i] = static_cast<char>(changed[i] ^ 1);
            store->put(key, bytes_of(changed));
            const VerifyReport report = verify({store, "deep"}, one_thread);
            EXPECT_FALSE(report.sound());
            if (below != seal_key) {
                EXPECT_THAT(keys_of(report, FindingKind::changed), Contains(below));
            }
            store->put(key, bytes_of(std::string_view(whole).substr(0, i)));
            if (below == seal_key) continue;
            EXPECT_THAT(seal_state({*store, "deep"}, one_thread.io).changed, ElementsAre(below)) << "cut short";
        }
        store->put(key, bytes_of(whole));
    }
    EXPECT_TRUE(verify({store, "deep"}).sound()) << "all is as it was";
}

TEST_P(EveryLayout, without_a_seal_nothing_crashes_and_checksums_tell) {
    const Array array = make_array(store, GetParam());
    const NDArray before = array.read();
    const std::string_view codec = GetParam().codec;
    const bool all_checked = codec.find("crc32c") != std::string_view::npos;
    const bool content_checked = all_checked || codec.starts_with("zlib");  // whose last byte has bits of no meaning
    for (const auto& [key, whole] : content(*store)) {
        const bool is_chunk = key != array.dialect().metadata_key && key != array.dialect().documents.back();
        for (std::size_t i = 0; i < whole.size(); ++i) {
            for (const int bits : {0x01, 0xff}) {
                SCOPED_TRACE(key + " at " + std::to_string(i));
                std::string changed = whole;
                changed[i] = static_cast<char>(changed[i] ^ bits);
                store->put(key, bytes_of(changed));
                const VerifyReport report = verify(store, one_thread);
                if (is_chunk && !report.sound()) {
                    EXPECT_EQ(report.findings.front().key, key);
                } else if (is_chunk) {
                    EXPECT_FALSE(all_checked);
                    EXPECT_TRUE(!content_checked || elements_equal(array.read().view(), before.view()));
                }
            }
            SCOPED_TRACE(key + " cut to " + std::to_string(i));
            store->put(key, bytes_of(std::string_view(whole).substr(0, i)));
            const VerifyReport report = verify(store, one_thread);
            // A document may end with a line feed, without which it says the same.
            if (is_chunk || i + 1 < whole.size()) {
                EXPECT_THAT(keys_of(report, FindingKind::damage), Contains(key));
            }
        }
        store->put(key, bytes_of(whole));
    }
}

TEST_P(EveryLayout, damaged_chunk_is_set_aside_and_reads_as_the_fill) {
    Array array = make_array(store, GetParam());
    const std::string key = array.metadata().keys.key({0, 0});
    store->put(key, bytes_of("not a chunk"));
    const auto before = content(*store);

    const RepairReport planned = repair(store, {.dry_run = true});
    EXPECT_THAT(planned.actions, SizeIs(1));
    EXPECT_EQ(content(*store), before) << "a dry run changes nothing";

    const RepairReport report = repair(store);
    EXPECT_FALSE(report.mended()) << "the elements are lost";
    EXPECT_GT(report.lost(), 0);
    EXPECT_EQ(report.done, 1);
    EXPECT_EQ(content(*store).at(".tessera/damaged/" + key), "not a chunk");
    EXPECT_EQ(array.read("0, 0").values<std::int32_t>()[0], -1);
    EXPECT_EQ(array.read("0, 2").values<std::int32_t>()[0], 2) << "the others stay";
    EXPECT_TRUE(verify(store).sound());
    EXPECT_THAT(repair(store).actions, IsEmpty()) << "the second time nothing is to be done";

    store->put(key, bytes_of("again"));
    repair(store);
    EXPECT_EQ(content(*store).at(".tessera/damaged/" + key), "not a chunk") << "what was set aside stays";
    EXPECT_EQ(content(*store).at(".tessera/damaged/" + key + ".1"), "again");
}

TEST_P(EveryLayout, chunks_outside_the_array_are_set_aside) {
    Array array = make_array(store, GetParam());
    const KeyScheme keys = array.metadata().keys;
    const std::string inside = keys.key({0, 0});
    const std::string outside = keys.key({9, 0});
    store->put(outside, bytes_of(content(*store).at(inside)));
    const VerifyReport report = verify(store);
    EXPECT_TRUE(report.sound()) << "nothing reads it";
    EXPECT_THAT(keys_of(report, FindingKind::leftover), ElementsAre(outside));
    EXPECT_TRUE(repair(store).mended());
    EXPECT_FALSE(content(*store).contains(outside));
    EXPECT_TRUE(content(*store).contains(".tessera/damaged/" + outside));
}

TEST_P(EveryLayout, metadata_that_cannot_be_read_are_damage) {
    const Array array = make_array(store, GetParam(), "a");
    make_array(store, GetParam(), "b");
    const std::string key = join_key("a", array.dialect().metadata_key);
    store->put(key, bytes_of("{"));
    const VerifyReport report = verify(store);
    EXPECT_THAT(keys_of(report, FindingKind::damage), Contains(key));
    EXPECT_EQ(report.arrays, 2) << "the others are verified all the same";
}

TEST_P(EveryLayout, strays_locks_and_attributes) {
    const Array array = make_array(store, GetParam());
    store->put("notes.txt", bytes_of("x"));
    store->put("stray/file", bytes_of("x"));
    store->put("x.lock", {});
    const std::string chunk = array.metadata().keys.key({0, 0});
    const VerifyReport report = verify(store);
    EXPECT_TRUE(report.sound());
    EXPECT_THAT(keys_of(report, FindingKind::note), ElementsAre("notes.txt", "stray"));
    EXPECT_THAT(keys_of(report, FindingKind::leftover), ElementsAre("x.lock"));
    EXPECT_THAT(repair(store).remaining, SizeIs(1));
    EXPECT_TRUE(content(*store).contains("notes.txt"));
    store->put(array.dialect().documents.back(), bytes_of("[1]"));
    EXPECT_FALSE(verify(store).sound()) << "attributes are an object";
}

// ---- single cases

TEST(Verify, nothing_there_is_an_error) {
    expect_error(ErrorCode::not_found, "nothing", [] { (void)verify(memory_store()); });
}

TEST(Verify, shard_keeps_its_good_chunks) {
    const Store store = memory_store();
    Array array = make_array(store, sharded);
    const std::string key = array.metadata().keys.key({0, 0});
    std::string bytes = content(*store).at(key);
    const std::size_t place = bytes.find(std::string_view("\x64\0\0\0\x65\0\0\0", 8));  // 100, 101
    ASSERT_NE(place, std::string::npos);
    bytes[place] = 'x';
    store->put(key, bytes_of(bytes));
    const VerifyReport report = verify(store);
    ASSERT_THAT(report.findings, SizeIs(1));
    EXPECT_EQ(report.findings[0].chunk, (Index{0, 0}));
    EXPECT_EQ(report.findings[0].inner, (Index{0, 0}));
    EXPECT_EQ(report.findings[0].remedy, Remedy::rewrite_shard);
    EXPECT_GT(repair(store).lost(), 0);
    EXPECT_EQ(content(*store).at(".tessera/damaged/" + key), bytes);
    EXPECT_TRUE(verify(store).sound());
    const NDArray read = array.read("0:4, 0");
    const auto column = read.values<std::int32_t>();
    EXPECT_THAT(std::vector(column.begin(), column.end()), ElementsAre(-1, -1, 200, 300));
}

TEST(Verify, what_we_lack_is_not_damage) {
    const Store store = memory_store();
    make_array(store, v3);
    std::string metadata = content(*store).at("zarr.json");
    metadata.replace(metadata.find("zstd"), 4, "best");
    store->put("zarr.json", bytes_of(metadata));
    const VerifyReport report = verify(store);
    EXPECT_EQ(report.count(FindingKind::unchecked), 1);
    EXPECT_EQ(report.count(FindingKind::damage), 0);
    EXPECT_FALSE(report.sound());
}

TEST(Verify, chunk_beyond_the_budget_is_not_decoded) {
    const Store store = memory_store();
    Array array = Array::create(store, {.shape = {1 << 20}, .chunks = {1 << 20}, .dtype = DType::parse("<f8")});
    array.fill(Selection::all(array.shape()), 1);
    const VerifyReport report = verify(store, {.io = {.max_memory = 1 << 20}});
    ASSERT_EQ(report.count(FindingKind::unchecked), 1);
    ASSERT_EQ(report.findings.front().advice.size(), 1U);
    EXPECT_EQ(report.findings.front().advice.front().action, Action::max_memory);
    EXPECT_TRUE(verify(store, {.io = {.max_memory = 64 << 20}}).sound());
}

TEST(Verify, stale_consolidated_metadata_are_renewed) {
    for (const char* format : {"v2", "v3"}) {
        const Store store = memory_store();
        Group root = Group::create(store, dialect_named(format));
        root.create_array("a", {.shape = {4}, .chunks = {2}, .dtype = DType::parse("<i4")});
        root.consolidate();
        EXPECT_THAT(verify(store).findings, IsEmpty());
        root.open_array("a").resize({8});
        const VerifyReport report = verify(store);
        EXPECT_TRUE(report.sound());
        EXPECT_EQ(report.count(FindingKind::leftover), 1);
        EXPECT_TRUE(repair(store).mended());
        EXPECT_THAT(verify(store).findings, IsEmpty());
        EXPECT_TRUE(root.consolidated_state().fresh());
    }
}

TEST(Verify, metadata_that_are_gone_leave_traces) {
    for (const Layout& layout : {zmeta, v2}) {
        const Store store = memory_store();
        const Array array = make_array(store, layout, "a");
        store->erase(join_key("a", array.dialect().metadata_key));
        EXPECT_FALSE(verify(store).sound());
    }
}

TEST(Verify, batches_and_unfinished_copies) {
    const Store store = memory_store();
    make_array(store, zmeta, "a");
    store->put("a/.tessera/batch/0", bytes_of("staged"));
    store->put("b/.tessera/unfinished.json", bytes_of("{}"));
    store->put("b/__zdata__/0.0.blosc", bytes_of("x"));
    const VerifyReport report = verify(store);
    EXPECT_TRUE(report.sound());
    EXPECT_THAT(keys_of(report, FindingKind::leftover), ElementsAre("a/.tessera/batch", "b/.tessera/unfinished.json"));
    EXPECT_TRUE(repair(store).mended());
    EXPECT_FALSE(content(*store).contains("a/.tessera/batch/0"));
    EXPECT_TRUE(content(*store).contains("b/__zdata__/0.0.blosc")) << "a copy may be gone on with";
}

// ---- files

class VerifyFiles : public testing::Test {
protected:
    void write(const fs::path& path, std::string_view text) const {
        fs::create_directories((folder / path).parent_path());
        std::ofstream(folder / path, std::ios::binary) << text;
    }
    [[nodiscard]] std::string read(const fs::path& path) const {
        std::ifstream file(folder / path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    TemporaryFolder folder;
};

TEST_F(VerifyFiles, the_worst_is_said_first) {
    const Store store = directory_store(folder.path());
    make_array(store, v2);
    seal(*store);
    write("0.0", "too short");
    write("a", "x");
    write("z", "x");
    store->erase("0.1");
    const VerifyReport report = verify(store);
    std::vector<std::string> found;
    for (const Finding& f : report.findings) found.push_back(std::string(kind_name(f.kind)) + " " + f.key);
    EXPECT_THAT(found, ElementsAre("damage 0.0", "changed 0.0", "lost 0.1", "added a", "added z",
                                   "note .tessera/stored", "note a", "note z"));
}

TEST_F(VerifyFiles, chunks_without_metadata_are_damage) {
    for (const auto& [format, separator, chunk] : {std::tuple("v1", ".", "0.0"), std::tuple("v2", ".", "0.0"),
                                                   std::tuple("v2", "/", "0/0"), std::tuple("v3", "/", "c/0/0")}) {
        SCOPED_TRACE(std::string(format) + " " + chunk);
        const fs::path root = folder / (std::string(format) + chunk[1]);
        (void)Group::create(root, dialect_named("v2"));
        Array array = Array::create(
            root / "lost",
            {.shape = {4, 4}, .chunks = {2, 2}, .dtype = "<i4", .format = format, .separator = separator});
        array.write("...", view(std::vector<std::int32_t>(16, 1), {4, 4}));
        EXPECT_TRUE(verify(root.string()).sound());
        fs::remove(root / "lost" / array.dialect().metadata_key);
        const VerifyReport report = verify(root.string());
        EXPECT_THAT(keys_of(report, FindingKind::damage), Contains(std::string("lost/") + chunk));
        EXPECT_FALSE(verify((root / "lost").string()).sound());
    }
}

TEST_F(VerifyFiles, plain_folders_are_no_lost_arrays) {
    make_array(directory_store(folder.path()), v2, "array");
    for (const char* name : {"g/readme.txt", "g/1.txt", "g/2024/01/a.csv", "g/c/notes"}) write(name, "x");
    const VerifyReport report = verify(folder.path().string());
    EXPECT_TRUE(report.sound()) << first_text(report);
}

TEST_F(VerifyFiles, appended_bytes_are_found_and_cut_off) {
    for (const char* codec : {"blosc:lz4:5:shuffle", "gzip:1"}) {
        for (const std::string& tail : {std::string(1, '\0'), std::string(7, '\0'), std::string("\0x", 2)}) {
            SCOPED_TRACE(codec);
            const fs::path root = folder / fmt::format("{}{}", std::string(codec).substr(0, 4), tail.size());
            const Store store = directory_store(root);
            const Array array = make_array(store, {"v2", "v2", codec});
            const std::string whole = content(*store).at("0.0");
            store->put("0.0", bytes_of(whole + tail));
            const VerifyReport report = verify(store);
            ASSERT_THAT(keys_of(report, FindingKind::damage), ElementsAre("0.0")) << first_text(report);
            if (tail.back() != 0 && codec[0] == 'g') continue;  // another member, damaged: no reader takes it
            EXPECT_THAT(first_text(report), HasSubstr(fmt::format("{} bytes follow", tail.size())));
            EXPECT_TRUE(repair(store).mended());
            EXPECT_EQ(content(*store).at("0.0"), whole);
            EXPECT_EQ(content(*store).at(".tessera/damaged/0.0"), whole + tail);
            EXPECT_EQ(verify(store).count(FindingKind::damage), 0);
        }
    }
}

TEST_F(VerifyFiles, temporary_files_of_other_writers_stay) {
    const Store store = directory_store(folder.path());
    make_array(store, zmeta);
    // An export's, by this process; one of another machine; one of an earlier version, whose hexadecimal digits begin
    // with the number of no process.
    const std::string own = temporary_name();
    const std::vector<std::string> names{own, own.substr(0, own.rfind('-')) + "-00000000",
                                         std::string(temporary_prefix) + "2147483646abcdef",
                                         std::string(temporary_prefix) + "2147483646-7-00000000"};
    for (const std::string& name : names) write(name, "x");
    EXPECT_EQ(repair(store).done, 0);
    for (const std::string& name : names) EXPECT_TRUE(fs::exists(folder / name)) << name;
    EXPECT_TRUE(temporary_writer_has_ended(".tessera-tmp-2147483646-7"));
    EXPECT_TRUE(temporary_writer_has_ended(".tessera-tmp-2147483646-7" + own.substr(own.rfind('-'))));
    EXPECT_FALSE(temporary_writer_has_ended(own));
}

TEST_F(VerifyFiles, temporary_files_of_dead_writers_are_removed) {
    const Store store = directory_store(folder.path());
    make_array(store, zmeta);
    const std::string alive = ".tessera-tmp-" + std::to_string(::getpid()) + "-7";
    const std::string dead = ".tessera-tmp-2147483646-7";  // above every process's number
    write(fs::path("__zdata__") / alive, "x");
    write(fs::path("__zdata__") / dead, "x");
    write(dead, "x");
    const VerifyReport report = verify(store);
    EXPECT_TRUE(report.sound());
    EXPECT_EQ(report.count(FindingKind::leftover), 3);
    RepairReport repaired = repair(store);
    EXPECT_EQ(repaired.done, 2);
    EXPECT_TRUE(repaired.mended()) << "what is left is no damage";
    EXPECT_TRUE(fs::exists(folder / "__zdata__" / alive)) << "its writer may be at work";
    EXPECT_FALSE(fs::exists(folder / dead));
    fs::last_write_time(folder / "__zdata__" / alive, fs::file_time_type::clock::now() - std::chrono::hours(2));
    EXPECT_EQ(repair(store).done, 1);
    EXPECT_THAT(kinds_of(verify(store)), Each(FindingKind::note));
}

TEST_F(VerifyFiles, damage_in_a_zip_is_named) {
    const Store store = memory_store();
    make_array(store, v2, "a");
    make_array(store, sharded, "b");
    const auto zip = zip_store(folder / "a.zip", ZipMode::create);
    for (const auto& [key, bytes] : content(*store)) zip->put(key, bytes_of(bytes));
    zip->finish();
    const std::string path = (folder / "a.zip").string();
    EXPECT_THAT(verify(path).findings, IsEmpty());
    EXPECT_EQ(verify(path).arrays, 2);
    const std::string whole = read("a.zip");
    for (std::size_t i = 0; i < whole.size(); i += 3) {
        std::string changed = whole;
        changed[i] = static_cast<char>(changed[i] ^ 0x10);
        write("a.zip", changed);
        try {
            (void)verify(path, one_thread);
        } catch (const Error&) {  // no archive any more
        }
    }
    std::string changed = whole;
    const std::size_t chunk = whole.find(std::string_view("\x64\0\0\0\x65\0\0\0", 8));  // 100, 101
    ASSERT_NE(chunk, std::string::npos);
    changed[chunk] = 'x';
    write("a.zip", changed);
    EXPECT_THAT(keys_of(verify(path), FindingKind::damage), ElementsAre("a/0.0"));
    write("a.zip", whole.substr(0, whole.size() / 2));
    EXPECT_FALSE(verify(path).sound());
}

TEST_F(VerifyFiles, zip_of_very_deep_folders_is_walked_to_a_limit) {
    ZipWriter zip(folder / "deep.zip");
    std::string deep = "zarr.json";
    while (deep.size() < 60000) deep.insert(0, "d/");
    for (const std::string& name : {deep, deep.substr(deep.size() - 4001), std::string("zarr.json")}) {
        const auto sink = zip.add(name, 0);
        sink->append(bytes_of(R"({"zarr_format": 3, "node_type": "group", "attributes": {}})"));
        sink->finish();
    }
    zip.finish();
    const std::string path = (folder / "deep.zip").string();
    const VerifyReport report = verify(path);
    EXPECT_EQ(report.groups, 1);
    EXPECT_EQ(report.count(FindingKind::unchecked), 1) << first_text(report);
    const Hierarchy hierarchy = hierarchy_below(*zip_store(path, ZipMode::read));
    EXPECT_TRUE(hierarchy.nodes.empty());
    ASSERT_EQ(hierarchy.passed.size(), 1U);
    EXPECT_EQ(hierarchy.passed[0].why, PassedFolder::Why::too_deep);
    EXPECT_EQ(hierarchy.passed[0].path.size(), 2U * deepest_folder + 1);
}

TEST_F(VerifyFiles, array_files) {
    const fs::path golden = TESSERA_GOLDEN;
    for (const fs::path& path : {golden / "npy", golden / "npz", golden / "ra", golden / "mldf"}) {
        for (const auto& file : fs::recursive_directory_iterator(path)) {
            const std::string extension = file.path().extension().string();
            if (extension != ".npy" && extension != ".npz" && extension != ".ra" && extension != ".mldf") continue;
            SCOPED_TRACE(file.path());
            const VerifyReport report = verify(file.path().string());
            const bool bad = file.path().filename().string().starts_with("error_");
            // One of the good ones holds Python objects, which we do not check.
            EXPECT_EQ(bad ? report.sound() : report.count(FindingKind::damage) > 0, false) << first_text(report);
        }
    }
    ZipWriter zip(folder / "a.npz");
    const auto sink = zip.add("x.npy", 0);
    const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,)}\n";
    const std::string npy =
        std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header + "abc";
    sink->append(bytes_of(npy));
    sink->finish();
    zip.finish();
    const std::string path = (folder / "a.npz").string();
    EXPECT_TRUE(verify(path).sound()) << first_text(verify(path));
    std::string changed = read("a.npz");
    changed[changed.find("}\nabc") + 2] = 'z';
    write("a.npz", changed);
    EXPECT_THAT(keys_of(verify(path), FindingKind::damage), ElementsAre("x.npy"));
    write("b.npy", "\x93NUMPX");
    EXPECT_FALSE(verify((folder / "b.npy").string()).sound());
    write("c.txt", "hello");
    expect_error(ErrorCode::unsupported, "no array file", [&] { (void)verify((folder / "c.txt").string()); });
    expect_error(ErrorCode::not_found, "none", [&] { (void)verify((folder / "none").string()); });
}

TEST_F(VerifyFiles, snapshot_that_was_changed_in_place_is_damage) {
    make_array(directory_store(folder / "a.zarr"), v2);
    const fs::path snapshot = create_snapshot(folder / "a.zarr", "first").path;
    EXPECT_THAT(kinds_of(verify(snapshot.string())), Each(FindingKind::note));
    fs::last_write_time(snapshot / "0.0", fs::file_time_type::clock::now() - std::chrono::hours(2));
    EXPECT_THAT(keys_of(verify(snapshot.string()), FindingKind::damage), ElementsAre("0.0"));
    EXPECT_EQ(verify(folder.path().string()).arrays, 2) << "the array and its snapshot";
}

// ---- seals

TEST(Seal, says_what_changed) {
    const Store store = memory_store();
    Array array = make_array(store, v2);
    store->put("odd\nna\\me\r", bytes_of("x"));
    store->put("x.lock", {});
    store->put(".tessera/lock", {});
    const Sealed first = seal(*store);
    EXPECT_TRUE(first.written);
    EXPECT_EQ(first.files, 7) << "four chunks, two documents, the odd one";
    const std::string manifest = content(*store).at(std::string(seal_key));
    EXPECT_THAT(manifest, HasSubstr("\n\\2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  "
                                    "odd\\nna\\\\me\\r\n"));
    EXPECT_FALSE(seal(*store).written) << "nothing has changed";
    EXPECT_EQ(verify(store).sealed, 7);

    array.fill(Selection::parse("0, 0", array.shape()), 5);
    store->erase("0.1");
    store->put("new", bytes_of("x"));
    const SealState state = seal_state(*store);
    EXPECT_THAT(state.changed, ElementsAre("0.0"));
    EXPECT_THAT(state.missing, ElementsAre("0.1"));
    EXPECT_THAT(state.added, ElementsAre("new"));
    EXPECT_EQ(state.unchanged, 5);
    const VerifyReport report = verify(store);
    EXPECT_THAT(keys_of(report, FindingKind::changed), ElementsAre("0.0"));
    EXPECT_THAT(keys_of(report, FindingKind::lost), ElementsAre("0.1"));
    EXPECT_THAT(keys_of(report, FindingKind::added), ElementsAre("new"));
    EXPECT_EQ(report.count(FindingKind::damage), 0);
    EXPECT_FALSE(report.sound());
    expect_error(ErrorCode::already_exists, "0.0, 0.1, new", [&] { (void)seal(*store); });
    EXPECT_TRUE(seal(*store, {.overwrite = true}).written);
    EXPECT_TRUE(verify(store).sound());
}

TEST(Seal, manifest_that_is_none_is_damage) {
    const Store store = memory_store();
    make_array(store, zmeta);
    const std::string sum(64, 'a');
    std::string twice = sum + "  a\n";
    twice += twice;
    for (const std::string& text :
         {std::string("x"), sum + "  __zmeta__", sum + "  ../x\n", sum + " __zmeta__\n", twice, "\\" + sum + "  a\\x\n",
          "\\" + sum + "  a\\\n", std::string(64, 'g') + "  a\n", sum + "\n"}) {
        SCOPED_TRACE(text);
        store->put(seal_key, bytes_of(text));
        EXPECT_THAT(keys_of(verify(store), FindingKind::damage), ElementsAre(seal_key));
        expect_error(ErrorCode::corrupt, "line", [&] { (void)seal(*store); });
    }
    EXPECT_TRUE(seal(*store, {.overwrite = true}).written);
    EXPECT_TRUE(verify(store).sound());
    expect_error(ErrorCode::not_found, "nothing to seal", [] { (void)seal(*memory_store()); });
}

}  // namespace
}  // namespace tessera
