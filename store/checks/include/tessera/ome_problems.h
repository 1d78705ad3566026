// The metadata of OME-Zarr in a group's attributes, held against the specifications 0.4, 0.5 and 0.6rc0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/ome.h>
#include <tessera/value.h>

namespace tessera {

enum class OmeRule : std::uint8_t {
    schema,   ///< what the JSON schemas of the specification check
    version,  ///< metadata of another version, which are not checked any further
    text,     ///< a MUST of the specification that no schema checks
    advice,   ///< a SHOULD, as the strict schemas check it
    tree,     ///< what the metadata say of other nodes; only verify() checks that
};
/// "ome/schema", "ome/version", "ome/text", "ome/advice", "ome/tree".
[[nodiscard]] std::string_view ome_rule_name(OmeRule rule);

struct OmeProblem {
    OmeRule rule = OmeRule::schema;
    std::string at;    ///< "ome.multiscales[0].datasets[1].path"
    std::string text;  ///< "expected a string, found 3"
};

/// Everything in a group's attributes that is not as its version says; sorted as they stand there. Looks at nothing but
/// the attributes. Throws nothing, whatever these hold. Without OME-Zarr metadata there is one problem.
[[nodiscard]] std::vector<OmeProblem> ome_problems(const Value& attributes);

/// The object with the members of OME-Zarr: the attribute "ome", or the attributes themselves before 0.5. nullptr if
/// there are no such metadata.
[[nodiscard]] const Value* ome_members_of(const Value& attributes);
/// The version that the metadata say; nullopt if they say none, or one that Tessera does not know.
[[nodiscard]] std::optional<OmeVersion> stored_ome_version(const Value& attributes);

}  // namespace tessera
