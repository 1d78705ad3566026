// The power fails while a process writes: nothing that it acknowledged is lost, and nothing is torn.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>
#include <sstream>

#include "check.h"
#include "child.h"
#include "disk.h"

namespace tessera::faults {
namespace {

namespace fs = std::filesystem;

class PowerFailure : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(PowerFailure, loses_nothing_that_was_acknowledged) {
    const auto& [layout, durability] = GetParam();
    constexpr int count = all_kinds;
    for (unsigned seed = 2; seed < 2 + static_cast<unsigned>(rounds(1, 12)) && !HasFailure(); ++seed) {
        const Folder folder;
        create_first(folder.data() / "array", layout);
        Disk disk(folder.data());
        const Ended ended = run(folder,
                                {worker(), "steps", folder.data() / "array", std::to_string(seed), "0",
                                 std::to_string(count), durability, "2"},
                                Fault{.trace = true});
        ASSERT_EQ(ended.code, 0) << ended.to_string();

        const auto steps = make_steps(seed, count);
        std::mt19937 random(seed);
        std::istringstream trace(text_of(folder / "child" / "trace"));
        const fs::path left = folder / "left";
        int line_number = 0;
        std::set<std::pair<std::size_t, std::size_t>> checked;  // steps done, hash of what is left
        for (std::string line; std::getline(trace, line) && !HasFailure();) {
            ++line_number;
            disk.play(line);
            if ((line_number + static_cast<int>(std::string_view(layout).size())) % rounds(2, 1) != 0) continue;
            const auto done = static_cast<std::size_t>(disk.acknowledged());
            for (int i = 0; i < 2 + rounds(1, 4); ++i) {
                const auto kept = i == 0 ? Disk::Kept::nothing : i == 1 ? Disk::Kept::everything : Disk::Kept::some;
                const Disk::Tree tree = disk.after_power_failure(kept, random);
                if (!checked.emplace(done, Disk::hash(tree)).second) continue;
                Disk::write(tree, left);
                EXPECT_TRUE(old_or_next(left / "array", steps, done))
                    << "seed " << seed << ", after line " << line_number << " of the trace: " << line.substr(0, 200)
                    << "\nkept " << i;
            }
        }
        EXPECT_EQ(disk.acknowledged(), count);
        EXPECT_GT(line_number, 10 * count);
    }
}

INSTANTIATE_TEST_SUITE_P(Layouts, PowerFailure,
                         testing::Combine(testing::Values("zmeta", "v2", "v3", "sharded"),
                                          testing::Values("commit", "each")),
                         [](const auto& p) { return std::string(std::get<0>(p.param)) + "_" + std::get<1>(p.param); });

}  // namespace
}  // namespace tessera::faults
