// Each step along an axis as an array or a file of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/array_plan.h>
#include <tessera/copy.h>
#include <tessera/recipe.h>
#include <tessera/result_options.h>

namespace tessera {

struct UnstackOptions {
    int axis = 0;
    ArrayWishes arrays = {};     ///< of each step
    ArrayFileOptions file = {};  ///< of each step, but `order`
    bool overwrite = false;      ///< replace what is there
    bool resume = false;         ///< keep what holds its step already, and what was made before a failure
    bool dry_run = false;
    IoOptions io = {};
    StoreOptions store = {};
    std::function<void(const Note& note)> note = nullptr;  ///< called for what differs from the source
};

/// What a result's options say of it. Throws invalid_argument for those that do not apply to the names of `pattern`.
[[nodiscard]] UnstackOptions unstack_options(const ResultOptions& result, const Recipe& recipe,
                                             const std::string& pattern);

struct Unstacked {
    std::vector<std::string> paths;
    Shape shape;  ///< of each
    DType dtype;
    std::optional<PlannedArray> array = std::nullopt;  ///< nullopt: array files
};

/// Makes an array or array file of each index along an axis. `pattern` has {} in its last part for the number; all
/// numbers have as many digits as the last. Whole chunks of the source are decoded once. Unless `resume`, a failure
/// removes what was new. Throws already_exists for what is there, invalid_argument for a pattern without {} and an
/// array without a step, and the errors of copying.
Unstacked unstack(const ArraySource& source, const std::string& pattern, const UnstackOptions& options);

/// The same of a data set: a copy of each index of a dimension, with the arrays that do not have it, as a group or a
/// file of several arrays; one after the other. `copy`: of a path that holds several arrays. Unstacked has only paths.
Unstacked unstack_set(const Recipe& copy, const ResultOptions& result, const std::string& pattern,
                      const std::string& dimension, const UnstackOptions& options);

/// The paths of the steps: the {} of a pattern replaced by numbers of equal width.
[[nodiscard]] std::vector<std::string> step_paths(const std::string& pattern, std::int64_t count);

}  // namespace tessera
