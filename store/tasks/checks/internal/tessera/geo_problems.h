// The metadata of GeoZarr in a node's attributes, held against its conventions "multiscales", "proj" and "spatial",
// v0.1 of June 2026.
#pragma once

#include <vector>

#include <tessera/convention_problem.h>
#include <tessera/value.h>

namespace tessera {

/// Everything in the attributes of an array or a group that is not as these conventions say; sorted as the conventions.
/// Looks at nothing but the attributes. Throws nothing, whatever these hold. None without such metadata.
[[nodiscard]] std::vector<ConventionProblem> geo_problems(const Value& attributes, bool of_array);

/// Whether attributes have members of these conventions, or list one of them.
[[nodiscard]] bool has_geo_metadata(const Value& attributes);

}  // namespace tessera
