// Journals that somebody put into an array: what they may say, and that nothing else is done.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tessera/edit.h>
#include <tessera/error.h>
#include <tessera/group.h>
#include <tessera/verify.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <vector>

#include "expect_error.h"
#include "journal.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Change = Journal::Entry::Kind;

constexpr std::size_t value_size = 16;  // of a chunk of 4 int32 without codecs

Journal::Entry put(std::uint64_t number, const std::string& key, std::uint64_t size = value_size) {
    return {.kind = Change::put, .had_old = true, .number = number, .stamp = {.size = size}, .key = key};
}
Journal::Entry erase(const std::string& key) {
    return {.kind = Change::erase, .had_old = true, .number = 1, .stamp = {}, .key = key};
}

std::string text_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

class HostileJournal : public testing::TestWithParam<const char*> {
protected:
    HostileJournal() {
        (void)Array::create(place,
                            {.shape = {8}, .chunks = {4}, .dtype = "<i4", .codec = "none", .format = GetParam()});
        Array array = Array::open(place);
        std::vector<std::int32_t> values(8, 7);
        array.write(Region{{0}, {8}}, view(values, {8}));
        metadata = array.dialect().metadata_key;
        key0 = array.metadata().keys.key({0});
        key1 = array.metadata().keys.key({1});
        key9 = array.metadata().keys.key({9});
        fs::create_directories(folder / "victim" / "docs");
        for (const char* name : {"thesis", "0", "docs/photo"}) std::ofstream(folder / "victim" / name) << name;
    }

    /// Puts a journal there, and staged values 0 and 1.
    void stage(const std::vector<Journal::Entry>& entries) {
        const Journal journal{.id = 1, .keeps_old = true, .entries = entries};
        fs::create_directories(place / ".tessera" / "batch");
        for (const std::uint64_t number : {0U, 1U}) {
            std::ofstream(place / ".tessera" / "batch" / value_name(1, number)) << std::string(value_size, 'E');
        }
        const Buffer bytes = encode_journal(journal);
        std::ofstream(place / ".tessera" / "batch" / "journal", std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }

    void expect_untouched() const {
        for (const char* name : {"thesis", "0", "docs/photo"}) EXPECT_EQ(text_of(folder / "victim" / name), name);
        EXPECT_EQ(std::distance(fs::recursive_directory_iterator(folder / "victim"), {}), 4);
    }

    void expect_found(const std::string& says) const {
        expect_error(ErrorCode::corrupt, says, [&] { (void)Array::open(place); });
        expect_error(ErrorCode::corrupt, says, [&] { (void)Array::open(place, {.read_only = true}); });
        const VerifyReport report = verify(directory_store(place, {.read_only = true}));
        ASSERT_EQ(report.count(FindingKind::damage), 1);
        EXPECT_NE(report.findings.front().text.find(says), std::string::npos) << report.findings.front().text;
    }

    /// Each way in refuses the journal, whose keys are the array's own, and repair leaves it. Giving it up needs only
    /// the old values: without those that are needed, it is set aside, and that mends nothing.
    void expect_not_finished(const std::string& says, bool old_known) {
        const std::string before = text_of(place / key0) + text_of(place / key1) + text_of(place / metadata);
        expect_found(says);
        EXPECT_FALSE(repair(directory_store(place)).mended());
        EXPECT_TRUE(fs::exists(place / ".tessera/batch/journal"));
        const RepairReport planned = repair(directory_store(place), {.dry_run = true, .give_up_batches = true});
        EXPECT_EQ(planned.mended(), old_known);
        EXPECT_TRUE(fs::exists(place / ".tessera/batch/journal"));
        EXPECT_EQ(repair(directory_store(place), {.give_up_batches = true}).mended(), old_known);
        EXPECT_EQ(fs::exists(place / ".tessera/damaged/batch.1/journal"), !old_known);
        EXPECT_FALSE(fs::exists(place / ".tessera/batch/journal"));
        EXPECT_NO_THROW((void)Array::open(place));
        EXPECT_EQ(text_of(place / key0) + text_of(place / key1) + text_of(place / metadata), before);
        expect_untouched();
        fs::remove_all(place / ".tessera/damaged");
        fs::remove_all(place / ".tessera/undo");
    }

    /// Each way in refuses the journal, and leaves the array's own files as they are as well; repair sets it aside.
    void expect_refused(const std::string& says) {
        const std::string before = text_of(place / key0) + text_of(place / key1) + text_of(place / metadata);
        expect_found(says);
        EXPECT_TRUE(repair(directory_store(place)).mended());
        EXPECT_TRUE(fs::exists(place / ".tessera/damaged/batch.1/journal"));
        EXPECT_NO_THROW((void)Array::open(place));
        EXPECT_EQ(text_of(place / key0) + text_of(place / key1) + text_of(place / metadata), before);
        expect_untouched();
        fs::remove_all(place / ".tessera/damaged");
    }

    TemporaryFolder folder;
    fs::path place = folder / "gift";
    std::string metadata, key0, key1, key9;
};

TEST_P(HostileJournal, keys_that_are_no_part_of_the_array) {
    fs::create_directory_symlink("../victim", place / "x");
    for (const std::string& key :
         {std::string("x/thesis"), std::string("x/docs/photo"), std::string("README"), std::string(".tessera/lock"),
          std::string(".tessera/undo/changes"), ".tessera/" + key0, key0 + "/0", "x/" + key0, key0 + ".bak"}) {
        SCOPED_TRACE(key);
        stage({put(0, key0), put(1, key)});
        expect_refused("which is no part of the array");
        stage({put(0, key0), erase(key)});
        expect_refused("which is no part of the array");
    }
}

TEST_P(HostileJournal, entries_that_no_batch_could_have_recorded) {
    stage({put(0, key0), erase(metadata)});
    expect_refused("and with it the array");
    stage({put(0, key0), put(1, key0)});
    expect_refused("twice");
    stage({put(0, key0), put(0, key1)});
    expect_refused("to two keys");
    stage({put(0, key0), put(1, key9)});
    expect_not_finished("a chunk outside the array", true);
    stage({put(0, key0), put(1, key1, value_size + 1)});
    expect_not_finished("batch/0000000000000001.1 has 16", true);
    stage({put(0, key0), put(2, key1, value_size + 1)});
    expect_not_finished("batch/0000000000000001.2, which is missing", false);
    fs::remove(place / key1);
    stage({put(0, key0), put(2, key1)});
    expect_not_finished("batch/0000000000000001.2, which is missing", false);
    // The metadata that are in place are whole, and the message is about those that are staged.
    stage({put(0, metadata)});
    expect_not_finished("batch/0000000000000001.0, which is damaged", true);
}

TEST_P(HostileJournal, half_of_a_batch_in_place_is_given_up_without_what_was_staged) {
    const fs::path undo = place / ".tessera" / "undo";
    const std::string before = text_of(place / key0) + text_of(place / key1);
    for (const bool old_known : {true, false}) {
        SCOPED_TRACE(old_known);
        stage({put(0, key0), put(1, key1)});
        fs::create_directories(undo);
        fs::create_hard_link(place / key0, undo / value_name(1, 0));
        fs::create_hard_link(place / key1, undo / value_name(1, 1));
        fs::rename(place / ".tessera" / "batch" / value_name(1, 0), place / key0);
        // The old value of this one has the size of the new one, and is not taken for it.
        fs::remove(place / ".tessera" / "batch" / value_name(1, 1));
        expect_found("batch/0000000000000001.1, which is missing");
        if (!old_known) fs::remove(undo / value_name(1, 0));
        EXPECT_FALSE(repair(directory_store(place)).mended());
        EXPECT_TRUE(fs::exists(place / ".tessera/batch/journal"));
        const RepairReport report = repair(directory_store(place), {.give_up_batches = true});
        EXPECT_EQ(report.mended(), old_known);
        EXPECT_EQ(text_of(place / key0) + text_of(place / key1) == before, old_known);
        if (old_known) continue;
        ASSERT_EQ(report.actions.size(), 1U);
        EXPECT_NE(report.actions[0].text.find("already in place stay"), std::string::npos) << report.actions[0].text;
    }
}

TEST_P(HostileJournal, staged_values_that_are_links) {
    stage({put(0, key0), put(1, key1)});
    const fs::path staged = place / ".tessera" / "batch" / value_name(1, 1);
    fs::remove(staged);
    fs::create_symlink("../../../victim/thesis", staged);
    expect_not_finished(".tessera/batch/0000000000000001.1 is a symbolic link", false);
}

TEST_P(HostileJournal, staged_values_that_were_changed_since) {
    stage({put(0, key0), put(1, key1)});
    struct stat status {};
    ASSERT_EQ(::stat((place / ".tessera" / "batch" / value_name(1, 1)).c_str(), &status), 0);
    Journal::Entry recorded = put(1, key1);
    recorded.stamp.id = status.st_ino;
    recorded.stamp.modified = 1;
    stage({put(0, key0), recorded});
    expect_not_finished("which was changed since", true);
}

// The binary layout of a version before: nothing can be known of such a batch, and nothing is guessed.
/// Finishing would replace a whole chunk by one that nobody can read, although nothing else about it is wrong.
TEST_P(HostileJournal, staged_values_that_do_not_decode) {
    fs::remove_all(place);
    (void)Array::create(place, {.shape = {8}, .chunks = {4}, .dtype = "<i4", .format = GetParam()});
    std::vector<std::int32_t> values(8, 7);
    Array::open(place).write(Region{{0}, {8}}, view(values, {8}));
    stage({put(0, key0)});
    const VerifyReport report = verify(directory_store(place, {.read_only = true}));
    ASSERT_EQ(report.count(FindingKind::damage), 1);
    EXPECT_NE(report.findings.front().text.find(key0 + " a value that is damaged"), std::string::npos)
        << report.findings.front().text;
    const VerifyReport limited = verify(directory_store(place, {.read_only = true}), {.io = {.max_memory = 1}});
    EXPECT_EQ(limited.count(FindingKind::damage), 0) << "what memory does not allow is not decoded";
    EXPECT_GE(limited.count(FindingKind::unchecked), 1);
    EXPECT_FALSE(repair(directory_store(place), {.dry_run = true}).mended());
    EXPECT_FALSE(repair(directory_store(place)).mended());
    EXPECT_TRUE(fs::exists(place / ".tessera/batch/journal"));
    EXPECT_TRUE(repair(directory_store(place), {.give_up_batches = true}).mended());
    EXPECT_TRUE(verify(directory_store(place)).sound());
    EXPECT_TRUE(std::ranges::equal(Array::open(place).read().values<std::int32_t>(), values));
}

TEST_P(HostileJournal, an_older_version_left_can_be_set_aside) {
    stage({put(0, key0), erase(key1)});
    const std::string binary("\x89TSJ\r\n\x1a\n\x02\0\0\0\x40", 13);
    std::ofstream(place / ".tessera/batch/journal", std::ios::binary) << binary << std::string(83, '\0');
    const char* const says = "binary layout of an earlier version";
    expect_error(ErrorCode::unsupported, says, [&] { (void)Array::open(place); });
    expect_error(ErrorCode::unsupported, says, [&] { (void)Array::open(place, {.read_only = true}); });
    expect_error(ErrorCode::unsupported, "finish it with the program that began it", [&] { (void)Array::open(place); });
    EXPECT_FALSE(repair(directory_store(place)).mended());
    EXPECT_TRUE(fs::exists(place / ".tessera/batch/journal"));
    EXPECT_TRUE(repair(directory_store(place), {.give_up_batches = true}).mended());
    EXPECT_TRUE(fs::exists(place / ".tessera/damaged/batch.1/journal"));
    EXPECT_EQ(Array::open(place).read("0").values<std::int32_t>()[0], 7);
    // Of what it left for undo() nothing is known either, and the next change removes it.
    fs::create_directories(place / ".tessera/undo");
    std::ofstream(place / ".tessera/undo/journal") << binary;
    Array array = Array::open(place);
    expect_error(ErrorCode::not_found, "nothing to take back", [&] { (void)undo(array); });
    {
        Edit batch(array);
        batch->fill(Selection::parse("0", {8}), 3);
        (void)batch.commit();
    }
    EXPECT_FALSE(fs::exists(place / ".tessera/undo/journal"));
    EXPECT_EQ(undo(array), 1);
}

// The record of a command is no batch, however it comes there.
TEST_P(HostileJournal, a_commands_record_in_its_place) {
    stage({});
    std::string record = header_line({.id = 1, .of_command = true});
    append_change(record, put(0, key0));
    std::ofstream(place / ".tessera/batch/journal", std::ios::binary) << record;
    expect_refused("it is that of a command");
}

TEST_P(HostileJournal, a_chunk_folder_that_is_a_link) {
    const fs::path chunks = (place / key0).parent_path();
    if (chunks == place) return;
    std::ofstream(folder / "victim" / fs::path(key0).filename()) << "0";
    fs::remove_all(chunks);
    fs::create_directory_symlink(folder / "victim", chunks);
    Journal::Entry second = erase(key1);
    second.number = 2;
    stage({erase(key0), second});
    expect_error(ErrorCode::unsupported, "by a symbolic link", [&] { (void)Array::open(place); });
    EXPECT_TRUE(fs::exists(folder / "victim" / fs::path(key0).filename()));
}

TEST_P(HostileJournal, what_is_the_arrays_own_is_finished) {
    stage({put(0, key0), erase(key1)});
    const VerifyReport report = verify(directory_store(place, {.read_only = true}));
    ASSERT_EQ(report.findings.size(), 1U);
    EXPECT_NE(report.findings.front().text.find("1 value is written (" + key0 + ") and 1 removed (" + key1 + ")"),
              std::string::npos)
        << report.findings.front().text;
    EXPECT_EQ(Array::open(place, {.read_only = true}).read("0").values<std::int32_t>()[0], 0x45454545);
    EXPECT_EQ(text_of(place / key0).front(), '\x07') << "a read-only opening changes nothing";
    EXPECT_EQ(Array::open(place).read("0").values<std::int32_t>()[0], 0x45454545);
    EXPECT_EQ(text_of(place / key0), std::string(value_size, 'E'));
    EXPECT_FALSE(fs::exists(place / key1));
}

TEST_P(HostileJournal, a_linked_undo_folder_is_neither_emptied_nor_written_to) {
    stage({});
    fs::create_directory_symlink("../../victim", place / ".tessera" / "undo");
    expect_error(ErrorCode::corrupt, ".tessera/undo is a symbolic link", [&] { (void)Array::open(place); });
    expect_untouched();
    // It keeps nothing from being recorded that then cannot be done.
    fs::remove_all(place / ".tessera" / "batch");
    Array array = Array::open(place);
    {
        Edit batch(array);
        batch->fill(Selection::parse("0", {8}), 3);
        expect_error(ErrorCode::corrupt, ".tessera/undo is a symbolic link", [&] { (void)batch.commit(); });
    }
    EXPECT_EQ(Array::open(place).read("0").values<std::int32_t>()[0], 7);
    EXPECT_FALSE(fs::exists(place / ".tessera" / "batch" / "journal"));
    expect_error(ErrorCode::corrupt, ".tessera/undo is a symbolic link", [&] { (void)undo(array); });
    expect_untouched();
    // repair removes the link.
    const RepairReport report = repair(directory_store(place));
    EXPECT_TRUE(report.mended());
    EXPECT_FALSE(fs::is_symlink(place / ".tessera" / "undo"));
    expect_untouched();
}

TEST_P(HostileJournal, an_undo_journal_is_no_more_trusted) {
    Array array = Array::open(place);
    fs::create_directory_symlink("../victim", place / "x");
    fs::create_directories(place / ".tessera" / "undo");
    struct stat status {};
    ASSERT_EQ(::stat((folder / "victim" / "thesis").c_str(), &status), 0);
    Journal journal{.id = 1, .keeps_old = true, .entries = {put(0, "x/thesis", 6)}};
    journal.entries[0].stamp.modified = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
    journal.entries[0].stamp.id = status.st_ino;
    const Buffer bytes = encode_journal(journal);
    std::ofstream(place / ".tessera" / "undo" / "changes", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    std::ofstream(place / ".tessera" / "undo" / "0000000000000001.0") << "EVIL";
    expect_error(ErrorCode::corrupt, "which is no part of the array", [&] { (void)undo(array); });
    expect_untouched();
}

TEST_P(HostileJournal, a_linked_own_folder_is_refused_by_all_and_removed_by_repair) {
    std::ofstream(folder / "victim" / "lock") << "lock";
    fs::create_directory(folder / "victim" / "batch");
    fs::remove_all(place / ".tessera");
    fs::create_directory_symlink("../victim", place / ".tessera");
    expect_error(ErrorCode::corrupt, ".tessera is a symbolic link", [&] { (void)Array::open(place); });
    expect_error(ErrorCode::corrupt, ".tessera is a symbolic link",
                 [&] { (void)Array::open(place, {.read_only = true}); });
    expect_error(ErrorCode::corrupt, ".tessera is a symbolic link",
                 [&] { Group::open(folder.path()).move("gift", "g"); });
    EXPECT_EQ(verify(directory_store(place, {.read_only = true})).count(FindingKind::damage), 1);
    EXPECT_TRUE(repair(directory_store(place)).mended());
    EXPECT_EQ(Array::open(place).read("0").values<std::int32_t>()[0], 7);
    EXPECT_EQ(text_of(folder / "victim" / "lock"), "lock");
    EXPECT_TRUE(fs::exists(folder / "victim" / "batch"));
}

TEST_P(HostileJournal, removing_the_array_removes_the_links_in_it) {
    std::ofstream(folder / "victim" / "lock") << "lock";
    fs::remove_all(place / ".tessera");
    fs::create_directory_symlink("../victim", place / ".tessera");
    remove_node({*directory_store(folder.path()), "gift"});
    EXPECT_FALSE(fs::exists(place));
    EXPECT_EQ(text_of(folder / "victim" / "lock"), "lock");
}

TEST_P(HostileJournal, a_group_has_no_batches) {
    Group group = Group::create(folder / "g", dialect_named("v2"));
    fs::create_directories(folder / "g" / ".tessera" / "batch");
    const Buffer bytes = encode_journal({.id = 1, .keeps_old = false, .entries = {put(0, ".zgroup")}});
    std::ofstream(folder / "g" / ".tessera" / "batch" / "journal", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    std::ofstream(folder / "g" / ".tessera" / "batch" / "0") << std::string(value_size, 'E');
    expect_error(ErrorCode::corrupt, "lies where no array is", [&] { group.attributes().set("k", 1); });
}

INSTANTIATE_TEST_SUITE_P(Formats, HostileJournal, testing::Values("v1", "v2", "v3"),
                         [](const auto& format) { return std::string(format.param); });

}  // namespace
}  // namespace tessera
