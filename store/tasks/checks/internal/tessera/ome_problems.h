// The metadata of OME-Zarr in a group's attributes, held against the specifications 0.4, 0.5 and 0.6rc0.
#pragma once

#include <optional>
#include <vector>

#include <tessera/convention_problem.h>
#include <tessera/conventions.h>
#include <tessera/value.h>

namespace tessera {

/// Everything in a group's attributes that is not as its version says; sorted as they stand there. Looks at nothing but
/// the attributes. Throws nothing, whatever these hold. Without OME-Zarr metadata there is one problem.
[[nodiscard]] std::vector<ConventionProblem> ome_problems(const Value& attributes);

/// The object with the members of OME-Zarr: the attribute "ome", or the attributes themselves before 0.5. nullptr if
/// there are no such metadata.
[[nodiscard]] const Value* ome_members_of(const Value& attributes);
/// The version that the metadata say; nullopt if they say none, or one that Tessera does not know.
[[nodiscard]] std::optional<OmeVersion> stored_ome_version(const Value& attributes);

}  // namespace tessera
