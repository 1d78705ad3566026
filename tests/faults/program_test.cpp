// The program is killed, its system calls fail and the power fails while it copies, replaces, exports, edits and
// repairs: what it makes or changes is not there, or as it was, or complete, and the same command again makes it
// complete.
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
    std::vector<std::string> words;  ///< "SRC" (or "PATTERN") and "DST" stand for the array and for what is made
    std::string destination;
    bool replaces = false;  ///< something is at the destination before
    /// It makes other elements, or several arrays: complete is what an undisturbed run makes, file by file.
    bool computes = false;
};

void PrintTo(const Command& command, std::ostream* out) {
    *out << command.name;
}

std::vector<Command> array_commands() {
    return {{"copy", {"copy", "SRC", "DST", "--format", "v2"}, "copy.zarr"},
            {"copy_sharded", {"copy", "SRC", "DST", "--format", "v3", "--shard", "12,10"}, "copy.zarr"},
            {"replace", {"copy", "SRC", "DST", "--format", "v3", "--overwrite"}, "copy.zarr", true}};
}

std::vector<Command> computing_commands() {
    return {{"concat", {"concat", "PATTERN", "DST"}, "concat.zarr"},
            {"stack", {"stack", "SRC", "SRC", "DST", "--axis", "1", "--chunks", "9,1,9"}, "stack.zarr", false, true},
            {"calc", {"calc", "DST", "where(a > 5, a * 2, 7)", "a=SRC", "--chunks", "9,9"}, "calc.zarr", false, true},
            {"reduce",
             {"reduce", "SRC", "DST", "--axis", "0", "--with", "max", "--chunks", "4"},
             "reduce.zarr",
             false,
             true},
            {"coarsen", {"coarsen", "SRC", "DST", "--by", "2,3", "--chunks", "4,4"}, "coarsen.zarr", false, true},
            {"pyramid", {"pyramid", "SRC", "DST", "--levels", "2"}, "pyramid.zarr", false, true}};
}

/// Array files are left to the system: a power failure may cost them.
std::vector<Command> file_commands() {
    std::vector<Command> commands{
        {"export", {"export", "SRC", "DST", "--overwrite"}, "out.npy", true},
        {"export_npz", {"export", "SRC", "DST", "--overwrite"}, "out.npz", true},
        {"export_h5", {"export", "SRC", "DST", "--overwrite", "--deflate", "1"}, "out.h5", true},
        {"copy_zip", {"copy", "SRC", "DST"}, "new.zip"},
        {"view_png", {"view", "SRC", "--png", "DST"}, "new.png"}};
    for (const std::string format : {"npy", "nc4", "ra", "mldf", "nc", "tif", "safetensors", "csv"}) {
        commands.push_back({"export_" + format, {"export", "SRC", "DST"}, "new." + format});
    }
    return commands;
}

/// What can happen to which call; "link" is left out because a copy takes its place.
const std::vector<std::pair<const char*, std::vector<int>>> failures = {
    {"open", {EMFILE, EACCES, EIO}}, {"read", {EIO}},      {"write", {ENOSPC, EIO}},  {"sync", {EIO}},
    {"close", {EIO, ENOSPC}},        {"rename", {ENOSPC}}, {"unlink", {EACCES, EIO}}, {"mkdir", {ENOSPC, EACCES}}};

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
    void start_afresh() { folder_.start_afresh(folder_.data()); }
    [[nodiscard]] Ended run_command(const std::optional<Fault>& fault, const std::string& more = "",
                                    const fs::path& root = {}) const {
        std::vector<std::string> words{program()};
        const fs::path below = root.empty() ? folder_.data() : root;
        for (const std::string& word : GetParam().words) {
            words.push_back(word == "SRC"       ? (below / "source.zarr").string()
                            : word == "PATTERN" ? (below / "source*.zarr").string()
                            : word == "a=SRC"   ? "a=" + (below / "source.zarr").string()
                            : word == "DST"     ? (below / GetParam().destination).string()
                                                : word);
        }
        if (!more.empty()) words.push_back(more);
        words.insert(words.end(), {"--threads", "1", "--quiet"});
        return run(folder_, words, fault);
    }

    [[nodiscard]] bool is_complete(const fs::path& root) const {
        const fs::path path = root / GetParam().destination;
        if (GetParam().computes) return files_of(path) == files_of(folder_ / "complete");
        if (directory()) return occupant(path) == Occupant::array && holds(path, {table_});
        return text_of(path) == complete_;
    }
    [[nodiscard]] bool is_old(const fs::path& root) const {
        const fs::path path = root / GetParam().destination;
        if (GetParam().computes && !fs::exists(path / ".tessera/unfinished.json")) {
            return !fs::exists(path / "zarr.json") && !fs::exists(path / "__zmeta__");  // nobody opens it
        }
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
                more = resume && !GetParam().computes ? "--resume" : "--overwrite";
            } else if (!GetParam().replaces && (is_complete(root) || GetParam().computes)) {
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
    for (const auto& [calls, errors] : failures) {
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
            // A file that could not be removed is all that may be left beside it.
            for (const auto& entry : fs::directory_iterator(folder_.data())) {
                if (directory() || calls == std::string_view("unlink")) break;
                const std::string name = entry.path().filename();
                EXPECT_TRUE(name == "source.zarr" || name == GetParam().destination) << name << ended.to_string();
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

/// A command that changes an array where it is.
struct Change {
    std::string name;
    std::string layout;
    std::vector<std::string> words;  ///< "ARRAY" and "SCRIPT" stand for the paths
    std::string damaged = {};        ///< a chunk whose bytes must not be lost
    Region lost = {};                ///< what is the fill when it is mended
};

void PrintTo(const Change& change, std::ostream* out) {
    *out << change.name;
}

std::vector<Change> changes() {
    const std::vector<std::string> repair{"repair", "ARRAY"};
    return {{"edit", "sharded", {"edit", "ARRAY", "--script", "SCRIPT"}},
            {"convert", "zmeta", {"copy", "ARRAY", "ARRAY", "--format", "v2", "--chunks", "10,7", "--overwrite"}},
            {"repair", "v2", repair, "1.1", Region({6, 5}, {6, 5})},
            {"repair_sharded", "sharded", repair, "c/0/0", Region({0, 0}, {6, 5})}};
}

class ProgramInPlace : public testing::TestWithParam<Change> {
protected:
    ProgramInPlace() {
        const fs::path first = folder_ / "first";
        create_first(first, GetParam().layout);
        std::ofstream(folder_ / "script") << "set 0:9,0:9 5\nset 3:4,: 7\nresize 25,14\nattr mark 6\n";
        if (GetParam().words[0] == "edit") {
            for (std::int64_t r = 0; r < 9; ++r) {
                for (std::int64_t c = 0; c < 9; ++c) after_.at(r, c) = 5;
            }
            for (std::int64_t c = 0; c < 14; ++c) after_.at(3, c) = fill_value;
            after_.shape = {25, 14};
            after_.values.resize(std::size_t{25} * 14, fill_value);
            after_.mark = 6;
        }
        if (GetParam().damaged.empty()) return;
        const Region& lost = GetParam().lost;
        for (std::int64_t r = lost.start[0]; r < lost.start[0] + lost.extent[0]; ++r) {
            for (std::int64_t c = lost.start[1]; c < lost.start[1] + lost.extent[1]; ++c) after_.at(r, c) = fill_value;
        }
        damaged_ = text_of(first / GetParam().damaged);
        damaged_[0] = static_cast<char>(damaged_[0] ^ 0xff);  // with shards: of the first inner chunk
        std::ofstream(first / GetParam().damaged, std::ios::binary) << damaged_;
    }

    [[nodiscard]] fs::path array() const { return folder_.data() / "array"; }
    [[nodiscard]] Ended run_command(const Fault& fault) const {
        std::vector<std::string> words{program()};
        for (const std::string& word : GetParam().words) {
            words.push_back(word == "ARRAY" ? array() : word == "SCRIPT" ? folder_ / "script" : fs::path(word));
        }
        words.insert(words.end(), {"--threads", "1"});
        return run(folder_, words, fault);
    }
    [[nodiscard]] Ended run_afresh(const Fault& fault) {
        folder_.start_afresh(array());
        return run_command(fault);
    }

    /// Of what a run left that may have been stopped, and of the same command after it.
    [[nodiscard]] AssertionResult old_or_complete() const {
        if (damaged_.empty() && !holds(array(), {first_table()}) && !holds(array(), {after_})) {
            return AssertionFailure() << "neither old nor complete";
        }
        if (!is_damage_kept()) return AssertionFailure() << "a damaged chunk is gone";
        const Ended again = run_command(Fault{});
        // Where elements are lost for good, repair says so by 1, until they are.
        const bool lost = !damaged_.empty() && again.code == 1;
        if (again.code != 0 && !lost) return AssertionFailure() << "again: " << again.to_string();
        if (!is_damage_kept()) return AssertionFailure() << "a damaged chunk is gone when it was done again";
        return holds(array(), {after_});
    }

    Folder folder_;
    Table after_ = first_table();

private:
    [[nodiscard]] bool is_damage_kept() const {
        const auto files = fs::recursive_directory_iterator(array());
        return damaged_.empty() || std::any_of(begin(files), end(files), [&](const fs::directory_entry& entry) {
                   return entry.is_regular_file() && text_of(entry.path()) == damaged_;
               });
    }

    std::string damaged_;
};

TEST_P(ProgramInPlace, killed_at_every_system_call) {
    for (long n = 1; !HasFailure(); n += stride()) {
        const Ended ended = run_afresh(Fault{.at = n, .action = "kill"});
        if (ended.fired.empty()) {
            EXPECT_EQ(ended.code, GetParam().damaged.empty() ? 0 : 1) << ended.to_string();
            EXPECT_TRUE(holds(array(), {after_})) << ended.to_string();
            EXPECT_GT(n, 5);
            break;
        }
        ASSERT_EQ(ended.signal, SIGKILL) << ended.to_string();
        EXPECT_TRUE(old_or_complete()) << ended.to_string();
    }
}

TEST_P(ProgramInPlace, each_call_fails_once) {
    for (const auto& [calls, errors] : failures) {
        for (long n = 1; !HasFailure(); n += stride()) {
            const int error = errors[static_cast<std::size_t>(n) % errors.size()];
            const Ended ended = run_afresh(Fault{.calls = calls, .at = n, .action = std::to_string(error)});
            if (ended.fired.empty()) break;
            if (ended.code == 0) {
                EXPECT_TRUE(holds(array(), {after_})) << ended.to_string();
            } else {
                EXPECT_THAT(ended.error + ended.out, HasSubstr(folder_.data().string())) << ended.to_string();
            }
            EXPECT_TRUE(old_or_complete()) << ended.to_string();
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Arrays, ProgramInPlace, testing::ValuesIn(changes()),
                         [](const auto& change) { return change.param.name; });

std::string command_name(const testing::TestParamInfo<Command>& command) {
    return command.param.name;
}

INSTANTIATE_TEST_SUITE_P(Arrays, Program, testing::ValuesIn(array_commands()), command_name);
INSTANTIATE_TEST_SUITE_P(Computed, Program, testing::ValuesIn(computing_commands()), command_name);
INSTANTIATE_TEST_SUITE_P(Files, Program, testing::ValuesIn(file_commands()), command_name);
INSTANTIATE_TEST_SUITE_P(Arrays, DurableProgram, testing::ValuesIn(array_commands()), command_name);

}  // namespace
}  // namespace tessera::faults
