#include "lost_separator.h"

#include <algorithm>

#include "keys.h"

namespace tessera {

std::optional<std::string> chunk_of_lost_separator(const PlaceView& place, const ArrayMetadata& metadata,
                                                   std::string_view name) {
    const int rank = metadata.shape.rank();
    const KeyScheme& keys = metadata.keys;
    if (rank < 2 || keys.separator != "." || !keys.prefix.empty()) return std::nullopt;
    const KeyScheme lost = keys.with_separator("/");
    const auto is_index = [](const std::string& part) {
        return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    };
    std::string folder(name);
    if (!is_index(folder)) return std::nullopt;
    for (int d = 1; d < rank - 1; ++d) {
        const Listing listing = place.store.list(place.key(folder));
        const auto next = std::ranges::find_if(listing.prefixes, is_index);
        if (next == listing.prefixes.end()) return std::nullopt;
        folder = join_key(folder, *next);
    }
    for (const std::string& key : place.store.list(place.key(folder)).keys) {
        if (lost.parse(join_key(folder, key), rank)) return join_key(folder, key);
    }
    return std::nullopt;
}

}  // namespace tessera
