// What a pyramid will be, before anything is written.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tessera/copy.h>
#include <tessera/destination.h>
#include <tessera/pyramid.h>

namespace tessera {

/// A pyramid that is planned.
struct PlannedPyramid {
    PlannedGroup group;
    std::vector<Shape> factors;       ///< of each level, relative to the array
    std::vector<PlannedCopy> levels;  ///< the first one is the array itself
};
/// What make_pyramid() makes, without looking at the destination. Throws invalid_argument and unsupported.
[[nodiscard]] PlannedPyramid plan_pyramid(const std::shared_ptr<const ArraySource>& array, const std::string& source,
                                          const std::string& destination, const PyramidOptions& options);

}  // namespace tessera
