#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tessera/group.h>
#include <tessera/seal.h>
#include <tessera/snapshot.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "expect_error.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const IoOptions one_thread{.threads = 1};

class Snapshots : public testing::Test {
protected:
    [[nodiscard]] std::vector<std::string> names(const fs::path& path) const {
        std::vector<std::string> names;
        for (const SnapshotInfo& info : list_snapshots(folder / path)) names.push_back(info.name);
        return names;
    }

    TemporaryFolder folder;
};

Array make_array(const fs::path& path, const std::string& format = "zmeta", std::int64_t length = 100) {
    Array array = Array::create(path, {.shape = {length},
                                       .chunks = {10},
                                       .dtype = DType::of<std::int32_t>(),
                                       .fill_value = 0,
                                       .codec = format == "zmeta" ? "blosc:lz4:5:shuffle" : "none",
                                       .format = format});
    array.attributes().set("title", "old");
    return array;
}

void set_all(Array array, int value) {
    array.fill(Selection::all(array.shape()), value);
}

/// The one value that all elements have.
int value_of(const Array& array) {
    const NDArray all = array.read("", one_thread);
    const auto values = all.values<std::int32_t>();
    for (const std::int32_t v : values) EXPECT_EQ(v, values[0]);
    return values[0];
}

class SnapshotsOf : public Snapshots, public testing::WithParamInterface<const char*> {};

TEST_P(SnapshotsOf, an_array_is_kept_and_put_back) {
    const fs::path path = folder / "a.zarr";
    Array array = make_array(path, GetParam());
    set_all(array, 1);
    const SnapshotInfo made = create_snapshot(path, "one");
    EXPECT_EQ(made.path, folder / "a.zarr.snapshots" / "one");
    EXPECT_EQ(made.arrays, 1);
    EXPECT_EQ(made.reflinked + made.linked + made.copied, made.files);
    EXPECT_GE(made.files, 11);
    EXPECT_GT(made.bytes, 400U);
    EXPECT_LE(made.copied, 3) << "metadata and attributes";

    set_all(array, 2);
    array.resize({200});
    array.attributes().set("title", "new");
    const Array kept = Array::open(made.path);
    EXPECT_EQ(value_of(kept), 1);
    EXPECT_EQ(kept.shape(), Shape{100});
    EXPECT_EQ(kept.attributes().get("title"), Value("old"));
    EXPECT_THAT(changed_since_snapshot(*directory_store(made.path)).value(), IsEmpty());

    (void)create_snapshot(path, "two");
    EXPECT_THAT(names("a.zarr"), ElementsAre("one", "two"));
    const SnapshotInfo listed = list_snapshots(path)[0];
    EXPECT_EQ(std::tuple(listed.made, listed.files, listed.bytes, listed.node),
              std::tuple(made.made, made.files, made.bytes, ""));

    restore_snapshot(path, "one");
    const Array restored = Array::open(path);
    EXPECT_EQ(value_of(restored), 1);
    EXPECT_EQ(restored.shape(), Shape{100});
    EXPECT_EQ(restored.attributes().get("title"), Value("old"));
    EXPECT_THAT(names("a.zarr"), ElementsAre("one", "two")) << "both stay";
    EXPECT_EQ(Array::open(folder / "a.zarr.snapshots" / "two").shape(), Shape{200});
    EXPECT_EQ(folder.entries(), 2) << "nothing is left beside them";

    set_all(restored, 5);
    EXPECT_EQ(value_of(Array::open(made.path)), 1) << "what was restored is no part of the snapshot";
    remove_snapshot(path, "one");
    EXPECT_THAT(names("a.zarr"), ElementsAre("two"));
    expect_error(ErrorCode::not_found, "there is two", [&] { remove_snapshot(path, "one"); });
    expect_error(ErrorCode::not_found, "there is two", [&] { restore_snapshot(path, "one"); });
}
INSTANTIATE_TEST_SUITE_P(Formats, SnapshotsOf, testing::Values("zmeta", "v1", "v2", "v3"));

TEST_F(Snapshots, chunks_take_no_further_room) {
    set_all(make_array(folder / "a.zarr"), 1);
    const SnapshotInfo info = create_snapshot(folder / "a.zarr", "one");
    EXPECT_EQ(info.linked + info.reflinked, 10);
    if (info.linked == 0) return;  // reflinks have inodes of their own
    struct stat original {};
    struct stat kept {};
    for (const auto& entry : fs::directory_iterator(folder / "a.zarr" / "__zdata__")) {
        ASSERT_EQ(::stat(entry.path().c_str(), &original), 0);
        ASSERT_EQ(::stat((info.path / "__zdata__" / entry.path().filename()).c_str(), &kept), 0);
        EXPECT_EQ(original.st_ino, kept.st_ino);
    }
    ASSERT_EQ(::stat((folder / "a.zarr/__zmeta__").c_str(), &original), 0);
    ASSERT_EQ(::stat((info.path / "__zmeta__").c_str(), &kept), 0);
    EXPECT_NE(original.st_ino, kept.st_ino) << "metadata are copies";
}

TEST_F(Snapshots, a_program_that_truncates_in_place_is_noticed) {
    set_all(make_array(folder / "a.zarr", "v2"), 1);
    const SnapshotInfo info = create_snapshot(folder / "a.zarr", "one");
    const auto store = directory_store(info.path);
    EXPECT_THAT(changed_since_snapshot(*store).value(), IsEmpty());
    std::ofstream(info.path / "3", std::ios::app) << "x";
    fs::remove(info.path / "5");
    EXPECT_THAT(changed_since_snapshot(*store).value(), ElementsAre("3", "5"));
    EXPECT_EQ(changed_since_snapshot(*directory_store(folder / "a.zarr")), std::nullopt) << "no snapshot";
    expect_error(ErrorCode::corrupt, "2 of its files", [&] { restore_snapshot(folder / "a.zarr", "one"); });
}

TEST_F(Snapshots, names_of_files_may_hold_anything) {
    Group root = Group::create(folder / "h", dialect_named("v2"));
    const std::string name = "a\\n\nb\\";
    set_all(root.create_array(name, {.shape = {4}, .chunks = {2}, .dtype = DType::of<std::int32_t>()}), 1);
    const SnapshotInfo info = create_snapshot(folder / "h", "one");
    const auto store = directory_store(info.path);
    EXPECT_THAT(changed_since_snapshot(*store).value(), IsEmpty());
    std::ofstream(info.path / name / "0", std::ios::app) << "x";
    EXPECT_THAT(changed_since_snapshot(*store).value(), ElementsAre(name + "/0"));
}

TEST_F(Snapshots, records_that_are_none_are_corrupt) {
    set_all(make_array(folder / "a.zarr"), 1);
    const SnapshotInfo info = create_snapshot(folder / "a.zarr", "one");
    const auto store = directory_store(info.path);
    for (const char* text : {"x", "1 2", "1 2 a", "1 2 \n1", "1 2 a\\\n", "-1 2 a\n", "99999999999999999999 2 a\n"}) {
        std::ofstream(info.path / ".tessera/snapshot-files.txt") << text;
        SCOPED_TRACE(text);
        EXPECT_THROW((void)changed_since_snapshot(*store), Error);
    }
    std::ofstream(info.path / ".tessera/snapshot-files.txt") << "1 2 ../../etc/passwd\n";
    EXPECT_THROW((void)changed_since_snapshot(*store), Error);
    fs::remove(info.path / ".tessera/snapshot-files.txt");
    expect_error(ErrorCode::corrupt, "is missing", [&] { (void)changed_since_snapshot(*store); });
    for (const char* text : {"", "{}", "{\"version\": 1}", "[]"}) {
        std::ofstream(info.path / ".tessera/snapshot.json") << text;
        expect_error(ErrorCode::corrupt, "not the record", [&] { (void)list_snapshots(folder / "a.zarr"); });
    }
    std::ofstream(info.path / ".tessera/snapshot.json") << R"({"version": 2})";
    expect_error(ErrorCode::unsupported, "newer", [&] { (void)list_snapshots(folder / "a.zarr"); });
}

class HierarchySnapshots : public Snapshots {
protected:
    HierarchySnapshots() {
        Group root = Group::create(folder / "h", dialect_named("v2"));
        root.attributes().set("n", 1);
        for (const char* name : {"a", "sub/b", "sub/c"}) {
            set_all(root.create_array(name, {.shape = {20}, .chunks = {10}, .dtype = DType::of<std::int32_t>()}), 1);
        }
        root.consolidate();
    }
    [[nodiscard]] Array array(const std::string& name) const { return Array::open(folder / name); }
};

TEST_F(HierarchySnapshots, all_of_it_is_kept_and_put_back) {
    const SnapshotInfo info = create_snapshot(folder / "h", "one");
    EXPECT_EQ(info.arrays, 3);
    set_all(array("h/a"), 2);
    set_all(array("h/sub/b"), 2);
    Group root = Group::open(folder / "h");
    root.attributes().set("n", 2);
    root.remove("sub/c");
    set_all(root.create_array("later", {.shape = {20}, .dtype = DType::of<std::int32_t>()}), 3);
    const Group kept = Group::open(info.path);
    EXPECT_EQ(kept.nodes().size(), 4U);
    EXPECT_TRUE(kept.consolidated_state().fresh()) << "consolidated metadata are kept too";

    restore_snapshot(folder / "h", "one");
    for (const char* name : {"h/a", "h/sub/b", "h/sub/c"}) EXPECT_EQ(value_of(array(name)), 1) << name;
    EXPECT_EQ(Group::open(folder / "h").attributes().get("n"), Value(1));
    EXPECT_EQ(Group::open(folder / "h").nodes().size(), 4U);
}

TEST_F(HierarchySnapshots, of_a_part_lie_beside_the_root) {
    const SnapshotInfo info = create_snapshot(folder / "h/sub/b", "part");
    EXPECT_EQ(info.path, folder / "h.snapshots/part");
    EXPECT_EQ(info.node, "sub/b");
    EXPECT_EQ(value_of(Array::open(info.path)), 1) << "it is the array itself";
    EXPECT_EQ(Group::open(folder / "h").nodes().size(), 4U);
    set_all(array("h/sub/b"), 2);
    expect_error(ErrorCode::invalid_argument, "a snapshot of sub/b, in which a is not",
                 [&] { restore_snapshot(folder / "h/a", "part"); });
    expect_error(ErrorCode::invalid_argument, "a snapshot of sub/b", [&] { restore_snapshot(folder / "h", "part"); });
    restore_snapshot(folder / "h/sub/b", "part");
    EXPECT_EQ(value_of(array("h/sub/b")), 1);
    EXPECT_THAT(names("h/a"), ElementsAre("part")) << "those of the whole hierarchy";
}

TEST_F(HierarchySnapshots, a_part_of_the_whole_is_put_back) {
    (void)create_snapshot(folder / "h", "one");
    for (const char* name : {"h/a", "h/sub/b", "h/sub/c"}) set_all(array(name), 2);
    restore_snapshot(folder / "h/sub/b", "one");
    EXPECT_EQ(value_of(array("h/a")), 2);
    EXPECT_EQ(value_of(array("h/sub/b")), 1);
    EXPECT_EQ(value_of(array("h/sub/c")), 2);
    Group::open(folder / "h").remove("sub/c");
    restore_snapshot(folder / "h/sub/c", "one");
    EXPECT_EQ(value_of(array("h/sub/c")), 1) << "what is not there any more comes back";
    fs::remove_all(folder / "h");
    restore_snapshot(folder / "h", "one");
    EXPECT_EQ(value_of(array("h/a")), 1);
    expect_error(ErrorCode::not_found, "no snapshot", [&] { restore_snapshot(folder / "h/nothing", "none"); });
    expect_error(ErrorCode::not_found, "no array or group", [&] { restore_snapshot(folder / "h/nothing", "one"); });
}

TEST_F(HierarchySnapshots, an_open_group_goes_on_with_what_was_put_back) {
    Group root = Group::open(folder / "h");
    Array b = root.open_array("sub/b");
    (void)create_snapshot(folder / "h", "one");
    set_all(b, 2);
    restore_snapshot(folder / "h/sub/b", "one");
    EXPECT_EQ(value_of(b), 1);
    b.fill(Selection::all(b.shape()), 3);
    EXPECT_EQ(value_of(array("h/sub/b")), 3) << "the directory that has the name now";
}

TEST_F(HierarchySnapshots, nothing_that_is_no_part_of_it_is_lost) {
    (void)create_snapshot(folder / "h", "one");
    std::ofstream(folder / "h/sub/README") << "mine";
    expect_error(ErrorCode::invalid_argument, "README", [&] { restore_snapshot(folder / "h", "one"); });
    EXPECT_TRUE(fs::exists(folder / "h/sub/README"));
    EXPECT_FALSE(fs::exists(folder / ".h.tessera-restored"));
    fs::remove(folder / "h/sub/README");
    fs::create_directory(folder / "elsewhere");
    set_all(make_array(folder / "elsewhere/x", "v2"), 7);
    fs::create_directory_symlink(folder / "elsewhere/x", folder / "h/linked");
    (void)create_snapshot(folder / "h", "two");
    restore_snapshot(folder / "h", "two");
    EXPECT_EQ(value_of(Array::open(folder / "elsewhere/x")), 7) << "what a link leads to stays";
    EXPECT_EQ(value_of(array("h/linked")), 7);
}

TEST_F(HierarchySnapshots, an_array_that_two_links_lead_to_is_locked_once) {
    fs::create_directory_symlink(folder / "h/a", folder / "h/again");
    EXPECT_EQ(create_snapshot(folder / "h", "one").arrays, 4);
}

TEST_F(HierarchySnapshots, seals_are_kept) {
    const auto store = directory_store(folder / "h");
    (void)seal(*store);
    const SnapshotInfo info = create_snapshot(folder / "h", "one");
    EXPECT_TRUE(seal_state(*directory_store(info.path)).intact());
    expect_error(ErrorCode::sealed, "is sealed", [&] { restore_snapshot(folder / "h", "one"); });
    restore_snapshot(folder / "h", "one", {.break_seal = true});
    EXPECT_TRUE(seal_state(*directory_store(folder / "h")).intact());
    EXPECT_FALSE(fs::exists(folder / "h/.tessera/seal-broken"));
}

TEST_F(Snapshots, plain_folders_do_not_show_them) {
    set_all(make_array(folder / "survey/a"), 1);
    set_all(make_array(folder / "survey/b.snapshots"), 1);
    (void)create_snapshot(folder / "survey/a", "one");
    EXPECT_TRUE(fs::exists(folder / "survey/a.snapshots/one/__zmeta__"));
    EXPECT_EQ(Group::open(folder / "survey").nodes().size(), 2U) << "but an array of such a name is one";
    EXPECT_EQ(create_snapshot(folder / "survey", "all").arrays, 2);
    EXPECT_FALSE(fs::exists(folder / "survey.snapshots/all/a.snapshots"));
}

TEST_F(Snapshots, refusals) {
    set_all(make_array(folder / "a"), 1);
    for (const char* name : {"", ".", "..", ".hidden", "x/y", "/x"}) {
        SCOPED_TRACE(name);
        expect_error(ErrorCode::invalid_argument, "", [&] { (void)create_snapshot(folder / "a", name); });
    }
    expect_error(ErrorCode::not_found, "", [&] { (void)create_snapshot(folder / "nothing", "x"); });
    fs::create_directory(folder / "empty");
    expect_error(ErrorCode::not_found, "empty", [&] { (void)create_snapshot(folder / "empty", "x"); });
    EXPECT_FALSE(fs::exists(folder / "empty.snapshots"));
    expect_error(ErrorCode::not_found, "there is none", [&] { restore_snapshot(folder / "a", "x"); });
    EXPECT_FALSE(fs::exists(folder / "a.snapshots"));
    const fs::path made = create_snapshot(folder / "a", "x").path;
    expect_error(ErrorCode::already_exists, "there already", [&] { (void)create_snapshot(folder / "a", "x"); });
    expect_error(ErrorCode::invalid_argument, "a snapshot itself", [&] { (void)create_snapshot(made, "y"); });
    fs::remove_all(folder / "a");
    std::ofstream(folder / "a") << "a file";
    EXPECT_THROW(restore_snapshot(folder / "a", "x"), Error);
    EXPECT_TRUE(fs::is_regular_file(folder / "a"));
}

TEST_F(Snapshots, what_an_interrupted_attempt_left_is_no_snapshot) {
    set_all(make_array(folder / "a"), 1);
    fs::create_directories(folder / "a.snapshots/.one.tessera-new/__zdata__");
    fs::create_directories(folder / ".a.tessera-new/__zdata__");
    EXPECT_THAT(names("a"), IsEmpty());
    (void)create_snapshot(folder / "a", "one");
    EXPECT_THAT(names("a"), ElementsAre("one"));
    restore_snapshot(folder / "a", "one");
    EXPECT_EQ(value_of(Array::open(folder / "a")), 1);
    EXPECT_FALSE(fs::exists(folder / ".a.tessera-new"));
}

TEST_F(Snapshots, temporaries_and_lock_files_are_left_out) {
    set_all(make_array(folder / "a", "zmeta"), 1);
    std::ofstream(folder / "a/__zdata__/.tessera-tmp-1-1") << "x";
    std::ofstream(folder / "a/__zdata__/0.none.lock") << "";
    std::ofstream(folder / "a/__zmeta__.lock") << "";
    const fs::path made = create_snapshot(folder / "a", "one").path;
    for (const auto& entry : fs::recursive_directory_iterator(made)) {
        EXPECT_NE(entry.path().extension(), ".lock");
        EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("tmp")));
    }
}

// Writers of two arrays keep both at the same number; a snapshot must never see them differ by more than the one step
// between the two writes.
TEST_F(Snapshots, show_one_moment) {
    for (const char* name : {"h/a", "h/b"}) make_array(folder / name, "zmeta", 300);
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that fails leaves nobody behind
        Array a = Array::open(folder / "h/a", {.durability = Durability::none});
        Array b = Array::open(folder / "h/b", {.durability = Durability::none});
        for (int i = 1;; ++i) {
            a.fill(Selection::all(a.shape()), i, one_thread);
            b.fill(Selection::all(b.shape()), i, one_thread);
        }
    }
    for (int i = 0; i < 8; ++i) {
        const fs::path made = create_snapshot(folder / "h", std::to_string(i), {.durability = Durability::none}).path;
        const int a = value_of(Array::open(made / "a"));
        const int b = value_of(Array::open(made / "b"));
        EXPECT_TRUE(a == b || a == b + 1) << a << ' ' << b;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
}

/// Writes ever higher numbers until `stop` exists, and a last one after that; opens the array again whenever it is
/// gone. Whether what it wrote was there afterwards, but for a restore in between.
bool write_numbers(const std::function<Array()>& open, const fs::path& stop, int last) {
    std::optional<Array> array;
    for (int value = 1;;) {
        const bool stopping = fs::exists(stop);
        try {
            if (!array) array = open();
            array->fill(Selection::all(array->shape()), stopping ? last : value, one_thread);
            if (stopping) return true;
            const int there = value_of(open());
            if (there != value && there != 0) return false;
            ++value;
        } catch (const Error& e) {
            if (e.code() != ErrorCode::not_found) return false;
            array.reset();
        }
    }
}

TEST_F(Snapshots, restoring_beside_a_writer_loses_no_write_silently) {
    const StoreOptions fast{.durability = Durability::none};
    constexpr int last = 1'000'000;
    for (const bool by_group : {false, true}) {
        SCOPED_TRACE(by_group);
        const fs::path path = folder / (by_group ? "g/a" : "a");
        const fs::path stop = folder / (by_group ? "stop-group" : "stop");
        if (by_group) (void)Group::create(folder / "g", dialect_named("v3"));
        make_array(path, "v3", 10);
        (void)create_snapshot(path, "zero", fast);
        const pid_t child = ::fork();
        if (child == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            std::optional<Group> group;
            if (by_group) group = Group::open(folder / "g", fast);
            ::_exit(write_numbers([&] { return group ? group->open_array("a") : Array::open(path, fast); }, stop, last)
                        ? 0
                        : 1);
        }
        for (int i = 0; i < 50; ++i) restore_snapshot(path, "zero", fast);
        std::ofstream(stop) << "";
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        EXPECT_EQ(value_of(Array::open(path)), last);
    }
}

TEST_F(Snapshots, a_reader_that_is_left_behind_is_told) {
    make_array(folder / "a");
    Array array = Array::open(folder / "a");
    set_all(array, 1);
    (void)create_snapshot(folder / "a", "one");
    restore_snapshot(folder / "a", "one");
    expect_error(ErrorCode::not_found, "open it again", [&] { (void)array.read(); });
    expect_error(ErrorCode::not_found, "gone", [&] { array.fill(Selection::all(array.shape()), 2); });
    EXPECT_EQ(value_of(Array::open(folder / "a")), 1);
}

}  // namespace
}  // namespace tessera
