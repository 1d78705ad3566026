// Several arrays as one: stacked along a new axis, or one after another along one that they have. Nothing is copied:
// a region is read from the arrays that it touches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/array_io.h>

namespace tessera {

struct JoinOptions {
    int axis = 0;
    /// Whether the axis is a new one, of the length of the list, as numpy.stack makes it; else as numpy.concatenate.
    bool new_axis = false;
    /// So many of the arrays are kept open at once; the others are opened again when they are read.
    int most_open = 64;
};

/// The arrays of these names as one, each opened by `open`, which several threads may wait for. Opens each of them now,
/// and throws invalid_argument, naming the first one whose dtype (but for byte order) or shape does not fit the first
/// array's. The dtype is that of the first. What changes its shape or dtype later is Error(corrupt) when it is read.
[[nodiscard]] std::unique_ptr<ArraySource> join_sources(
    std::vector<std::string> names, std::function<std::unique_ptr<ArraySource>(const std::string&)> open,
    const JoinOptions& options = {});

/// The other way round: one sink of as many steps along a new axis as there are sinks, all of one dtype and shape, each
/// of which takes a step. finish() finishes them in their order.
[[nodiscard]] std::unique_ptr<ArraySink> split_sink(std::vector<std::unique_ptr<ArraySink>> sinks, int axis);

/// The same elements with an axis of length 1 more. `source` must outlive the result.
[[nodiscard]] std::unique_ptr<ArraySource> with_new_axis(const ArraySource& source, int axis);

}  // namespace tessera
