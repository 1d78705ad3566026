// The labels of groups as an array: the coordinate of what is grouped.
#pragma once

#include <memory>
#include <string>

#include <tessera/array_io.h>
#include <tessera/reduce.h>

namespace tessera {

/// Years and other numbers as they are, texts as text; months of a year as the days of their beginnings, with the
/// calendar of `coordinate`. `name` becomes the name of the dimension.
[[nodiscard]] std::unique_ptr<ArraySource> labels_source(const Grouping& grouping, const ArraySource& coordinate,
                                                         const std::string& name);

}  // namespace tessera
