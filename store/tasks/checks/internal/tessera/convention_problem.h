// What is wrong with the attributes of a node, by the conventions for metadata that it follows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

enum class Convention : std::uint8_t { ome, geo };

enum class ConventionRule : std::uint8_t {
    schema,   ///< what the JSON schemas of the specification check
    version,  ///< metadata of another version, which are not checked any further
    text,     ///< a MUST of the specification that no schema checks
    advice,   ///< a SHOULD
    tree,     ///< what the metadata say of the array, or of other nodes; only verify() checks that
};
/// "ome/schema", "geo/tree" and so on.
[[nodiscard]] std::string_view rule_name(Convention convention, ConventionRule rule);

struct ConventionProblem {
    ConventionRule rule = ConventionRule::schema;
    std::string at;    ///< "ome.multiscales[0].datasets[1].path"
    std::string text;  ///< "expected a string, found 3"
};

}  // namespace tessera
