// What must hold of an array after its writer was stopped, failed or lost power.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "steps.h"

namespace tessera::faults {

/// Success when the array opens, verify finds nothing but leftovers, and each chunk (with shards: shard) is as in `old`
/// or as in `next`; when the shape is that of `next` and not that of `old`, everything is as in `next`. With `together`
/// everything is as in one of the two. Each snapshot of `old` or `next` is there as it was made, or not at all if it is
/// not in both. Then writes to the array, so that it is of no use afterwards.
[[nodiscard]] testing::AssertionResult old_or_next(const std::filesystem::path& path, const State& old,
                                                   const State& next, bool together);
/// The same of what may be there when `done` of the steps were acknowledged.
[[nodiscard]] testing::AssertionResult old_or_next(const std::filesystem::path& path, const std::vector<Step>& steps,
                                                   std::size_t done);

/// Success when what is in the array and its snapshots is exactly this, and verify finds nothing but leftovers.
[[nodiscard]] testing::AssertionResult holds(const std::filesystem::path& path, const State& state);

}  // namespace tessera::faults
