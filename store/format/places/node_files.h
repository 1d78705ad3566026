// Which names in a directory belong to the array or group there. Private to the store module.
#pragma once

#include <tessera/error.h>
#include <tessera/place.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// In a store far away: the id of the job that made the array.
inline constexpr std::string_view job_key = ".tessera/job";

/// Whether a name is that of a description which Tessera writes beside an array's or group's metadata.
[[nodiscard]] inline bool is_description(std::string_view name) {
    return name == "ro-crate-metadata.json";
}

/// What becomes of arrays whose metadata are gone or cannot be read.
enum class BrokenNodes : std::uint8_t { refuse, guess };

/// The names directly below one node that are part of that node itself.
class NodeFiles {
public:
    /// Loads an array's metadata. `node.path` is its prefix in the store. An array without dialect is an unfinished
    /// one, whose marker holds them. An unreadable marker stands for the default layout of all dialects.
    /// So does an array's metadata that cannot be read, if `broken` allows it.
    NodeFiles(const ReadableStore& store, Node node, BrokenNodes broken = BrokenNodes::refuse);
    [[nodiscard]] bool owns(std::string_view name) const;

private:
    Node node_;
    ArrayMetadata metadata_;
};

/// Whether a name directly below a node is one of its documents: metadata, attributes, consolidated metadata.
[[nodiscard]] bool is_document(const Node& node, std::string_view name);

/// Throws an error of this code, naming it, for a file inside these nodes that belongs to none of them. `links` are
/// prefixes of links that belong to the nodes.
void require_nothing_foreign(const ReadableStore& store, const std::vector<Node>& nodes,
                             const std::vector<std::string>& links = {}, ErrorCode code = ErrorCode::invalid_argument,
                             BrokenNodes broken = BrokenNodes::refuse);

/// Whether a folder that is no node was an array of Tessera's: `.tessera` is in it still.
[[nodiscard]] bool lost_its_metadata(const PlaceView& place);

/// Whether no link forbids changing the node at `place` (LocalFiles::require_direct).
[[nodiscard]] bool is_direct(const PlaceView& place);

}  // namespace tessera
