// The program is killed, its system calls fail and the power fails while it copies, replaces and exports: the
// destination is not there, or as it was, or complete, and the same command again makes it complete.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/copy.h>
#include <tessera/error.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "check.h"
#include "child.h"
#include "disk.h"

namespace tessera::faults {
namespace {

namespace fs = std::filesystem;
using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;
using testing::HasSubstr;

struct Command {
    std::string name;
    std::vector<std::string> words;  ///< "SRC" and "DST" stand for the array and for what is made
    std::string destination;
    bool replaces = false;  ///< something is at the destination before
};

void PrintTo(const Command& command, std::ostream* out) {
    *out << command.name;
}

std::vector<Command> array_commands() {
    return {{"copy", {"copy", "SRC", "DST", "--format", "v2"}, "copy.zarr"},
            {"copy_sharded", {"copy", "SRC", "DST", "--format", "v3", "--shard", "12,10"}, "copy.zarr"},
            {"replace", {"copy", "SRC", "DST", "--format", "v3", "--overwrite"}, "copy.zarr", true}};
}

/// Array files are left to the system: a power failure may cost them.
std::vector<Command> file_commands() {
    return {{"export", {"export", "SRC", "DST", "--overwrite"}, "out.npy", true},
            {"export_npz", {"export", "SRC", "DST", "--overwrite"}, "out.npz", true},
            {"export_new", {"export", "SRC", "DST"}, "new.npy"}};
}

class Program : public testing::TestWithParam<Command> {
protected:
    Program() {
        fs::create_directory(folder_ / "first");
        create_first(folder_ / "first/source.zarr", "zmeta");
        start_afresh();
        EXPECT_EQ(run_command(Fault{}).code, 0);
        if (directory()) {
            fs::copy(destination(), folder_ / "complete", fs::copy_options::recursive);
        } else {
            complete_ = text_of(destination());
        }
        if (!GetParam().replaces) return;
        // Another array, and a file that is no array: neither is looked into when it is replaced.
        const fs::path old = folder_ / "first" / GetParam().destination;
        if (directory()) {
            create_first(old, "v1");
            Array::open(old).write("", view(old_table_.values, old_table_.shape));
        } else {
            std::ofstream(old) << old_text;
        }
    }

    [[nodiscard]] bool directory() const { return fs::path(GetParam().destination).extension() == ".zarr"; }
    [[nodiscard]] fs::path destination() const { return folder_.data() / GetParam().destination; }
    void start_afresh() {
        fs::remove_all(folder_.data());
        fs::copy(folder_ / "first", folder_.data(), fs::copy_options::recursive);
    }
    [[nodiscard]] Ended run_command(const std::optional<Fault>& fault, const std::string& more = "",
                                    const fs::path& root = {}) const {
        std::vector<std::string> words{program()};
        const fs::path below = root.empty() ? folder_.data() : root;
        for (const std::string& word : GetParam().words) {
            words.push_back(word == "SRC"   ? below / "source.zarr"
                            : word == "DST" ? below / GetParam().destination
                                            : fs::path(word));
        }
        if (!more.empty()) words.push_back(more);
        words.insert(words.end(), {"--threads", "1", "--quiet"});
        return run(folder_, words, fault);
    }

    [[nodiscard]] bool is_complete(const fs::path& root) const {
        const fs::path path = root / GetParam().destination;
        if (directory()) return occupant(path) == Occupant::array && holds(path, {table_});
        return text_of(path) == complete_;
    }
    [[nodiscard]] bool is_old(const fs::path& root) const {
        const fs::path path = root / GetParam().destination;
        if (!GetParam().replaces) {
            return directory() ? occupant(path) == Occupant::nothing || occupant(path) == Occupant::unfinished
                               : !fs::exists(path);
        }
        return directory() ? bool(holds(path, {old_table_})) : text_of(path) == old_text;
    }
    /// Of what a run left that may have been stopped, and of the same command after it.
    [[nodiscard]] AssertionResult old_or_complete(const fs::path& root, bool resume) const {
        try {
            if (auto result = holds(root / "source.zarr", {table_}); !result) return result;
            if (!is_complete(root) && !is_old(root)) return AssertionFailure() << "neither old nor complete";
            std::string more;
            if (directory() && occupant(root / GetParam().destination) == Occupant::unfinished) {
                more = resume ? "--resume" : "--overwrite";
            } else if (!GetParam().replaces && is_complete(root)) {
                more = "--overwrite";
            }
            const Ended again = run_command(Fault{}, more, root);
            if (again.code != 0) return AssertionFailure() << "again: " << again.to_string();
            if (!is_complete(root)) return AssertionFailure() << "not complete after it was done again";
            for (const auto& entry : fs::directory_iterator(root)) {
                const std::string name = entry.path().filename();
                if (directory() && name != "source.zarr" && name != GetParam().destination) {
                    return AssertionFailure() << name << " is left";
                }
            }
            return AssertionSuccess();
        } catch (const Error& e) {
            return AssertionFailure() << e.what();
        }
    }

    Folder folder_;
    Table table_ = first_table();
    Table old_table_ = [] {
        Table table = first_table();
        table.values.assign(table.values.size(), 3);
        return table;
    }();
    std::string complete_;
    static constexpr const char* old_text = "what was there before";
};

TEST_P(Program, killed_at_every_system_call) {
    for (const char* action : {"kill", "tear"}) {
        for (long n = 1; !HasFailure(); n += stride()) {
            start_afresh();
            const Ended ended =
                run_command(Fault{.calls = action == std::string("tear") ? "write" : "", .at = n, .action = action});
            if (ended.fired.empty()) {
                EXPECT_TRUE(is_complete(folder_.data())) << ended.to_string();
                break;
            }
            ASSERT_EQ(ended.signal, SIGKILL) << ended.to_string();
            EXPECT_TRUE(old_or_complete(folder_.data(), n % 2 == 0)) << ended.to_string();
        }
    }
}

TEST_P(Program, each_call_fails_once) {
    const std::vector<std::pair<const char*, std::vector<int>>> kinds = {
        {"open", {EMFILE, EACCES, EIO}}, {"read", {EIO}},      {"write", {ENOSPC, EIO}},  {"sync", {EIO}},
        {"close", {EIO, ENOSPC}},        {"rename", {ENOSPC}}, {"unlink", {EACCES, EIO}}, {"mkdir", {ENOSPC, EACCES}}};
    for (const auto& [calls, errors] : kinds) {
        for (long n = 1; !HasFailure(); n += stride()) {
            start_afresh();
            const int error = errors[static_cast<std::size_t>(n) % errors.size()];
            const Ended ended = run_command(Fault{.calls = calls, .at = n, .action = std::to_string(error)});
            if (ended.fired.empty()) break;
            if (ended.code == 0) {
                EXPECT_TRUE(is_complete(folder_.data())) << ended.to_string();
            } else {
                EXPECT_THAT(ended.error, HasSubstr(folder_.data().string())) << ended.to_string();
            }
            EXPECT_TRUE(old_or_complete(folder_.data(), n % 2 == 0)) << ended.to_string();
        }
    }
}

class DurableProgram : public Program {};

TEST_P(DurableProgram, loses_nothing_when_the_power_fails) {
    start_afresh();
    Disk disk(folder_.data());
    const Ended ended = run_command(Fault{.trace = true});
    ASSERT_EQ(ended.code, 0) << ended.to_string();
    std::mt19937 random(1);
    std::istringstream trace(text_of(folder_ / "child" / "trace"));
    const fs::path left = folder_ / "left";
    std::set<Disk::Tree> checked;
    const auto check = [&](Disk::Kept kept, const std::string& line) {
        const auto [tree, is_new] = checked.insert(disk.after_power_failure(kept, random));
        if (!is_new) return;
        Disk::write(*tree, left);
        EXPECT_TRUE(is_complete(left) || is_old(left)) << "after " << line.substr(0, 200);
        EXPECT_TRUE(holds(left / "source.zarr", {table_})) << "after " << line.substr(0, 200);
    };
    for (std::string line; std::getline(trace, line) && !HasFailure();) {
        disk.play(line);
        check(Disk::Kept::nothing, line);
        check(Disk::Kept::everything, line);
        for (int i = 0; i < rounds(2, 10); ++i) check(Disk::Kept::some, line);
    }
    if (HasFailure()) return;
    Disk::write(disk.after_power_failure(Disk::Kept::nothing, random), left);
    EXPECT_TRUE(is_complete(left)) << "what was reported as done is lost";
}

/// The bytes of every file below a directory.
std::multiset<std::string> all_bytes(const fs::path& path) {
    std::multiset<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
        if (entry.is_regular_file()) all.insert(text_of(entry.path()));
    }
    return all;
}

TEST(Repair, killed_at_every_system_call) {
    const Folder folder;
    create_first(folder / "first", "v2");
    const std::string whole = text_of(folder / "first/1.1");
    const std::string damaged = whole.substr(0, whole.size() / 2);
    std::ofstream(folder / "first/1.1", std::ios::binary) << damaged;
    const fs::path array = folder.data() / "array";
    Table mended = first_table();
    for (std::int64_t r = 6; r < 12; ++r) {
        for (std::int64_t c = 5; c < 10; ++c) mended.at(r, c) = fill_value;
    }
    for (long n = 1;; n += stride()) {
        fs::remove_all(array);
        fs::copy(folder / "first", array, fs::copy_options::recursive);
        const Ended ended = run(folder, {program(), "repair", array, "--quiet"}, Fault{.at = n, .action = "kill"});
        ASSERT_TRUE(all_bytes(array).contains(damaged)) << "a damaged chunk is gone\n" << ended.to_string();
        if (ended.fired.empty()) {
            EXPECT_EQ(ended.code, 0) << ended.to_string();
            EXPECT_TRUE(holds(array, {mended}));
            EXPECT_GT(n, 5);
            return;
        }
        const Ended again = run(folder, {program(), "repair", array, "--quiet"}, Fault{});
        ASSERT_EQ(again.code, 0) << again.to_string() << ended.to_string();
        ASSERT_TRUE(all_bytes(array).contains(damaged)) << ended.to_string();
        ASSERT_TRUE(holds(array, {mended})) << ended.to_string();
    }
}

std::string command_name(const testing::TestParamInfo<Command>& command) {
    return command.param.name;
}

INSTANTIATE_TEST_SUITE_P(Arrays, Program, testing::ValuesIn(array_commands()), command_name);
INSTANTIATE_TEST_SUITE_P(Files, Program, testing::ValuesIn(file_commands()), command_name);
INSTANTIATE_TEST_SUITE_P(Arrays, DurableProgram, testing::ValuesIn(array_commands()), command_name);

}  // namespace
}  // namespace tessera::faults
