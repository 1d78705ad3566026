// What must hold of an array after its writer was stopped, failed or lost power.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "steps.h"

namespace tessera::faults {

/// Success when the array opens, verify finds nothing but leftovers, and each chunk (with shards: shard) is as in `old`
/// or as in `next`; when the shape is that of `next` and not that of `old`, everything is as in `next`. With `together`
/// everything is as in one of the two. Then writes to it, so that it is of no use afterwards.
[[nodiscard]] testing::AssertionResult old_or_next(const std::filesystem::path& path, const Table& old,
                                                   const Table& next, bool together);

/// Success when what is in the array is exactly this, and verify finds nothing but leftovers.
[[nodiscard]] testing::AssertionResult holds(const std::filesystem::path& path, const Table& table);

}  // namespace tessera::faults
