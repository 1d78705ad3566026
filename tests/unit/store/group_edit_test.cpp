// Batches over several arrays of a group: all or nothing in all of them, whoever opens one alone.
#include <gtest/gtest.h>
#include <tessera/dimensions.h>
#include <tessera/edit.h>
#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/selection.h>
#include <tessera/verify.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "dying_store.h"
#include "expect_error.h"
#include "journal.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> names{"level", "sub/heat", "time"};

void make_series(const std::shared_ptr<KeyValueStore>& store) {
    Group group = Group::create({store, "g"}, dialect_named("v3"));
    for (const std::string& name : names) {
        Array array = group.create_array(name, {.shape = {6}, .chunks = {4}, .dtype = "<i4", .fill_value = Value(-1)});
        array.write("...", view(std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}, {6}));
    }
}

void lengthen(Edit& edit, const std::vector<std::string>& which = names) {
    for (const std::string& name : which) {
        edit.array(name).append(view(std::vector<std::int32_t>{6, 7, 8}, {3}), 0);
        edit.array(name).fill("0:4", Value(-1));  // a chunk goes
        edit.array(name).attributes().set("long", true);
    }
}

std::int64_t length(const Array& array) {
    const NDArray all = array.read();
    const auto values = all.values<std::int32_t>();
    const bool grown = values.size() == 9;
    for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(values[i], grown && i < 4 ? -1 : static_cast<std::int32_t>(i)) << array.name();
    }
    EXPECT_EQ(array.attributes().get("long").has_value(), grown) << array.name();
    return array.shape()[0];
}

/// Of all arrays, which must agree.
std::int64_t lengths(const std::shared_ptr<KeyValueStore>& store) {
    std::int64_t found = -1;
    for (const std::string& name : names) {
        const std::int64_t one = length(Array::open({store, "g/" + name}));
        EXPECT_TRUE(found == -1 || one == found) << name << " " << one << " " << found;
        found = one;
    }
    return found;
}

// A coordinate that is changed in the same batch is looked at by way of another array.
TEST(GroupEdit, LeavesWhatIsStagedOfOthers) {
    const TemporaryFolder folder;
    for (const auto& store : {directory_store(folder / "d", {.durability = Durability::none}), memory_store()}) {
        Group group = Group::create({store, "g"}, dialect_named("v3"));
        for (const std::string name : {"time", "zone"}) {
            group.create_array(name, {.shape = {2}, .chunks = {4}, .dtype = "<i4", .dimension_names = {{"time"}}})
                .write("...", view(std::vector<std::int32_t>{1, 2}, {2}));
        }
        {
            Edit edit(group);
            edit.array("time").append(view(std::vector<std::int32_t>{3}, {1}), 0);
            EXPECT_EQ(parse_selection("time=2", edit.array("zone")), Selection::parse("1", {2}));
            edit.array("zone").append(view(std::vector<std::int32_t>{3}, {1}), 0);
            edit.commit();
        }
        EXPECT_EQ(group.open_array("time").shape(), Shape{3});
        EXPECT_EQ(group.open_array("zone").read().values<std::int32_t>()[2], 3);
    }
}

TEST(GroupEdit, TakesEffectInAllArraysAndIsTakenBackInAll) {
    const TemporaryFolder folder;
    for (const auto& store : {directory_store(folder / "d", {.durability = Durability::none}), memory_store()}) {
        make_series(store);
        const Group group = Group::open({store, "g"});
        {
            Edit edit(group);
            lengthen(edit);
            EXPECT_EQ(edit.array("time").shape(), Shape{9});
            EXPECT_EQ(lengths(store), 6) << "nobody sees it";
        }
        EXPECT_EQ(lengths(store), 6) << "it was dropped";
        EXPECT_TRUE(store->list("g/time/.tessera/batch").keys.empty());
        Edit edit(group);
        lengthen(edit);
        EXPECT_GT(edit.commit(), 9);
        EXPECT_EQ(lengths(store), 9);
        expect_error(ErrorCode::invalid_argument, "over", [&] { (void)edit.array("time"); });
        EXPECT_FALSE(store->contains("g/.tessera/batch/journal"));

        expect_error(ErrorCode::invalid_argument, "a batch over several arrays of the group", [&] {
            (void)undo(Array::open({store, "g/time"}));
        });
        EXPECT_GT(undo(group), 9);
        EXPECT_EQ(lengths(store), 6);
        EXPECT_GT(undo(group), 9);
        EXPECT_EQ(lengths(store), 9);
        Array time = Array::open({store, "g/time"});
        { Edit(time)->attributes().set("other", 1); }
        Edit own(time);
        own->attributes().set("other", 1);
        own.commit();
        expect_error(ErrorCode::invalid_argument, "time was changed after the batch", [&] { (void)undo(group); });
        EXPECT_EQ(lengths(store), 9);
        EXPECT_EQ(undo(time), 1) << "its last change is its own";
    }
}

TEST(GroupEdit, ConsolidatingFinishesWhatIsRecordedFirst) {
    const StoreOptions quick{.durability = Durability::none};
    bool old = false;
    for (const std::vector<std::string>& which : {names, {"time"}}) {
        for (std::int64_t lives = 0;; ++lives) {
            SCOPED_TRACE(lives);
            const TemporaryFolder folder;
            make_series(directory_store(folder.path(), quick));
            const std::shared_ptr<KeyValueStore> dying =
                std::make_shared<DyingStore>(directory_store(folder.path(), quick), lives);
            bool done = true;
            try {
                if (which.size() > 1) {
                    Edit edit(Group::open({dying, "g"}));
                    lengthen(edit);
                    edit.commit();
                } else {
                    Edit edit(Array::open({dying, "g/time"}));
                    edit->resize({9});
                    edit.commit();
                }
            } catch (const Error&) {
                done = false;
            }
            Group group = Group::open(folder / "g");
            group.consolidate();
            EXPECT_TRUE(group.consolidated_state().fresh());
            const bool grown = Array::open(folder / "g/time").shape()[0] == 9;
            old = old || !grown;
            EXPECT_TRUE(group.consolidated_state().fresh()) << "opening had nothing to finish";
            if (done) break;
        }
    }
    EXPECT_TRUE(old);
}

TEST(GroupEdit, APartIsNotTakenBackAloneWhereverItLies) {
    const TemporaryFolder folder;
    const auto store = directory_store(folder.path(), {.durability = Durability::none});
    make_series(store);
    const Group group = Group::open({store, "g"});
    Edit edit(group);
    lengthen(edit);
    edit.commit();
    const auto refused = [](const std::filesystem::path& path) {
        expect_error(ErrorCode::invalid_argument, "a part of it alone is not taken back",
                     [&] { (void)undo(Array::open(path)); });
    };
    fs::rename(folder / "g/time", folder / "time");
    refused(folder / "time");
    fs::create_directories(folder / "other/.tessera/undo");  // of a group that knows nothing of it
    fs::rename(folder / "time", folder / "other/time");
    refused(folder / "other/time");
    EXPECT_EQ(Array::open(folder / "other/time").shape(), Shape{9});
    fs::rename(folder / "other/time", folder / "g/time");
    EXPECT_EQ(lengths(store), 9);
    Group::open(folder / "g").attributes().set("later", 1);
    refused(folder / "g/time");
    EXPECT_GT(undo(group), 9);
    EXPECT_EQ(lengths(store), 6);
}

TEST(GroupEdit, RefusesWhatIsNotInTheGroup) {
    const TemporaryFolder folder;
    const auto store = directory_store(folder.path(), {.durability = Durability::none});
    make_series(store);
    (void)Array::create({store, "elsewhere"}, {.shape = {6}, .dtype = "<i4"});
    fs::create_directory_symlink("../elsewhere", folder / "g/linked");
    Edit edit(Group::open(folder / "g"));
    expect_error(ErrorCode::invalid_argument, "behind a symbolic link", [&] { (void)edit.array("linked"); });
    expect_error(ErrorCode::not_found, "g/nothing", [&] { (void)edit.array("nothing"); });
    expect_error(ErrorCode::invalid_argument, "", [&] { (void)edit.array("../elsewhere"); });
    expect_error(ErrorCode::invalid_argument, "name the array", [&] { (void)edit.array(); });
    expect_error(ErrorCode::invalid_argument, "", [&] { (void)edit.array(""); });
    EXPECT_EQ(edit.commit(), 0);
    expect_error(ErrorCode::invalid_argument, "over", [&] { (void)edit.commit(); });
    EXPECT_FALSE(fs::exists(folder / "g/.tessera/batch"));
}

TEST(GroupEdit, EndsInAllArraysOrNoneWhereverItStops) {
    const StoreOptions quick{.durability = Durability::none};
    bool old = false;
    for (std::int64_t lives = 0;; ++lives) {
        SCOPED_TRACE(lives);
        const TemporaryFolder folder;
        make_series(directory_store(folder.path(), quick));
        bool done = true;
        try {
            Edit edit(Group::open({std::make_shared<DyingStore>(directory_store(folder.path(), quick), lives), "g"}));
            lengthen(edit);
            edit.commit();
        } catch (const Error&) {
            done = false;
        }
        const auto reader = directory_store(folder.path(), {.read_only = true});
        const std::int64_t now = lengths(reader);
        old = old || now == 6;
        // One after another, each by its own path, for writing and reading.
        for (const std::string& name : names) {
            EXPECT_EQ(length(Array::open(folder / "g" / name, {.read_only = true})), now) << name;
            EXPECT_EQ(length(Array::open(folder / "g" / name, quick)), now) << name;
            EXPECT_EQ(lengths(reader), now) << name;
        }
        const Edit next(Group::open(folder / "g", quick));
        EXPECT_EQ(lengths(reader), now);
        EXPECT_FALSE(reader->contains("g/.tessera/batch/journal"));
        if (!done) continue;
        EXPECT_EQ(now, 9);
        break;
    }
    EXPECT_TRUE(old);
}

/// Leaves a batch that is recorded, and of which some parts are in place.
void leave_recorded(const fs::path& folder) {
    const StoreOptions quick{.durability = Durability::none};
    for (std::int64_t lives = 1;; ++lives) {
        ASSERT_LT(lives, 1000);
        fs::remove_all(folder / "g");
        make_series(directory_store(folder, quick));
        try {
            Edit edit(Group::open({std::make_shared<DyingStore>(directory_store(folder, quick), lives), "g"}));
            lengthen(edit);
            edit.commit();
            FAIL() << "never left";
        } catch (const Error& e) {
            if (e.code() == ErrorCode::recorded && !fs::exists(folder / "g/level/.tessera/batch/journal")) return;
        }
    }
}

TEST(GroupEdit, OfWhichAPartIsMovedIsFinishedBefore) {
    const TemporaryFolder folder;
    leave_recorded(folder.path());
    const auto store = directory_store(folder.path());
    ASSERT_TRUE(store->contains("g/time/.tessera/batch/journal"));
    Group::open(folder.path()).move("g/time", "elsewhere/far/time");
    EXPECT_EQ(length(Array::open(folder / "elsewhere/far/time")), 9);
    EXPECT_EQ(length(Array::open(folder / "g/sub/heat")), 9);
}

TEST(GroupEdit, APartWithoutItsGroupIsRefusedAndSetAside) {
    const TemporaryFolder folder;
    leave_recorded(folder.path());
    fs::create_directory(folder / "away");
    fs::copy(folder / "g/time", folder / "away/time", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    for (const bool read_only : {true, false}) {
        expect_error(ErrorCode::corrupt, "a part of a batch over a group",
                     [&] { (void)Array::open(folder / "away/time", {.read_only = read_only}); });
    }
    EXPECT_EQ(verify(directory_store(folder / "away/time")).count(FindingKind::damage), 1);
    EXPECT_TRUE(repair(directory_store(folder / "away/time")).mended());
    EXPECT_EQ(length(Array::open(folder / "away/time")), 6);
    EXPECT_EQ(length(Array::open(folder / "g/time")), 9) << "the array in the group is another one";
}

TEST(GroupEdit, IsFinishedOrGivenUpByRepair) {
    for (const bool give_up : {false, true}) {
        const TemporaryFolder folder;
        leave_recorded(folder.path());
        const auto store = directory_store(folder / "g");
        expect_error(ErrorCode::invalid_argument, "give it up there", [&] {
            const RepairReport alone = repair(directory_store(folder / "g/time"), {.give_up_batches = true});
            for (const Repaired& one : alone.actions) {
                if (!one.done) throw invalid_argument(one.text);
            }
        });
        const VerifyReport found = verify(store);
        EXPECT_EQ(found.count(FindingKind::damage), 0);
        EXPECT_GE(found.count(FindingKind::leftover), 3) << "the group's and two of its parts";
        for (const bool dry_run : {true, false}) {
            const RepairReport report = repair(store, {.dry_run = dry_run, .give_up_batches = give_up});
            EXPECT_TRUE(report.mended());
            for (const Repaired& one : report.actions) EXPECT_TRUE(one.done) << one.finding.key << ": " << one.text;
            for (const Finding& one : report.remaining) ADD_FAILURE() << one.key << ": " << one.text;
        }
        EXPECT_EQ(lengths(directory_store(folder.path())), give_up ? 6 : 9);
        // That nobody recorded which chunks were stored is all that is said.
        const VerifyReport left = verify(store);
        EXPECT_EQ(left.count(FindingKind::note), std::ssize(left.findings));
    }
}

TEST(GroupEdit, WithADamagedValueIsNotFinishedByRepair) {
    const TemporaryFolder folder;
    leave_recorded(folder.path());
    int damaged = 0;
    for (const auto& staged : fs::directory_iterator(folder / "g/time/.tessera/batch")) {
        std::fstream file(staged.path(), std::ios::in | std::ios::out | std::ios::binary);
        if (staged.path().filename() == "journal" || file.get() == '{') continue;  // of the metadata
        const fs::file_time_type time = fs::last_write_time(staged.path());
        file.seekp(0);
        file << std::string(fs::file_size(staged.path()), 'E');
        file.close();
        fs::last_write_time(staged.path(), time);  // which the record of the batch names
        ++damaged;
    }
    ASSERT_GT(damaged, 0);
    const auto store = directory_store(folder / "g");
    EXPECT_GE(verify(store).count(FindingKind::damage), 1);
    EXPECT_FALSE(repair(store, {.dry_run = true}).mended());
    EXPECT_FALSE(repair(store).mended());
    EXPECT_TRUE(fs::exists(folder / "g/.tessera/batch/journal"));
    EXPECT_TRUE(repair(store, {.give_up_batches = true}).mended());
    EXPECT_EQ(lengths(directory_store(folder.path())), 6);
}

TEST(GroupEdit, NamesAreBytes) {
    const TemporaryFolder folder;
    const Group group = Group::create(folder / "g", "v2");
    const std::string name = "\xFF\"\n";  // no UTF-8
    (void)Array::create(folder / "g" / name, {.shape = {4}, .chunks = {2}, .dtype = "<i4", .format = "v2"});
    const auto first = [&] { return Array::open(folder / "g" / name).read("0").values<std::int32_t>()[0]; };
    Edit edit(group);
    edit.array(name).fill(Selection::all({4}), Value(5));
    EXPECT_EQ(edit.commit(), 2);
    EXPECT_EQ(first(), 5);
    EXPECT_EQ(undo(group), 2);
    EXPECT_EQ(first(), 0);
    EXPECT_EQ(undo(group), 2);
    EXPECT_EQ(first(), 5);
}

// What somebody else put there.
TEST(GroupEdit, AJournalThatNoBatchCouldHaveRecordedIsRefused) {
    const TemporaryFolder folder;
    make_series(directory_store(folder.path()));
    const auto put = [&](const fs::path& at, const Journal& journal) {
        fs::create_directories(at / ".tessera/batch");
        const Buffer bytes = encode_journal(journal);
        std::ofstream(at / ".tessera/batch/journal", std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    };
    using Kind = Journal::Entry::Kind;
    const auto array = [](const char* path) { return Journal::Entry{.kind = Kind::array, .stamp = {}, .key = path}; };
    const auto refused = [&](const Journal& journal, const char* says) {
        put(folder / "g", journal);
        expect_error(ErrorCode::corrupt, says, [&] { Group::open(folder / "g").attributes().set("k", 1); });
        fs::remove_all(folder / "g/.tessera/batch");
    };
    refused({.id = 1, .of_group = true, .entries = {array("../other")}}, "damaged");
    refused({.id = 1, .of_group = true, .entries = {array("time/.tessera/batch")}}, "no array of the group");
    refused({.id = 1, .of_group = true, .entries = {array("time"), array("time")}}, "twice");
    refused({.id = 1, .entries = {array("time")}}, "an array, where values are expected");
    put(folder / "g/time", {.id = 1, .of_group = true, .entries = {array("x")}});
    expect_error(ErrorCode::corrupt, "lies in an array", [&] { (void)Array::open(folder / "g/time"); });
    put(folder / "g/time", {.id = 1, .group_above = 5000, .entries = {}});
    expect_error(ErrorCode::corrupt, "5000 folders above", [&] { (void)Array::open(folder / "g/time"); });
    // A part that nothing was recorded for is discarded.
    put(folder / "g/time", {.id = 1, .group_above = 1, .entries = {{.kind = Kind::erase, .stamp = {}, .key = "c/0"}}});
    (void)Group::open(folder / "g").attributes().set("k", 1);
    EXPECT_EQ(length(Array::open(folder / "g/time", {.read_only = true})), 6);
    EXPECT_EQ(length(Array::open(folder / "g/time")), 6);
    EXPECT_FALSE(fs::exists(folder / "g/time/.tessera/batch"));
    // A link in its place leads nowhere.
    put(folder / "g", {.id = 1, .of_group = true, .entries = {array("link")}});
    put(folder / "g/time", {.id = 1, .entries = {}});
    fs::create_directory_symlink("time", folder / "g/link");
    expect_error(ErrorCode::invalid_argument, "symbolic link",
                 [&] { Group::open(folder / "g").attributes().set("k", 2); });
}

}  // namespace
}  // namespace tessera
