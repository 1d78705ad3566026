// Several arrays as one: stacked along a new axis, or concatenated along an existing one. Nothing is copied: a region
// is read from the arrays that it touches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/array_io.h>

namespace tessera {

struct JoinOptions {
    int axis = 0;
    /// Whether the axis is new, as with numpy.stack; otherwise as with numpy.concatenate.
    bool new_axis = false;
    /// The largest number of arrays that are kept open. The others are reopened when they are read.
    int most_open = 64;
};

/// The arrays of these names as one, each opened by `open`. Opens each of them once now; several threads may wait for a
/// later call of `open`. Throws invalid_argument, naming the first array whose dtype (except for byte order) or shape
/// does not fit the first one's. The dtype is that of the first. Reading an array that has changed its shape or dtype
/// since throws Error(corrupt).
[[nodiscard]] std::unique_ptr<ArraySource> join_sources(
    std::vector<std::string> names, std::function<std::unique_ptr<ArraySource>(const std::string&)> open,
    const JoinOptions& options = {});

/// The reverse: one sink with a new axis, along which each of `sinks` takes one step. All have one dtype and shape.
/// finish() finishes them in order.
[[nodiscard]] std::unique_ptr<ArraySink> split_sink(std::vector<std::unique_ptr<ArraySink>> sinks, int axis);

/// The same elements with one more axis, of length 1. `source` must outlive the result.
[[nodiscard]] std::unique_ptr<ArraySource> with_new_axis(const ArraySource& source, int axis);

}  // namespace tessera
