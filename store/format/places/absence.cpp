// What is said of a place that has no array or group.
#include <tessera/action.h>
#include <tessera/place.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>

#include "keys.h"
#include "remove_array.h"

namespace tessera {

namespace {

std::string names_text(const Listing& listing) {
    std::string names;
    for (const auto* list : {&listing.prefixes, &listing.keys}) {
        for (const std::string& name : *list) {
            if (names.size() > 60) return names + ", …";
            names += (names.empty() ? "" : ", ") + name;
        }
    }
    return names;
}

std::string too_deep_text(std::ptrdiff_t folders) {
    return fmt::format("; {} deeper than {} levels {} not looked at", folders == 1 ? "a folder" : "folders",
                       deepest_folder, folders == 1 ? "was" : "were");
}

/// The keys by which a node of this kind is known.
std::vector<std::string_view> keys_of(std::string_view wanted) {
    std::vector<std::string_view> keys;
    for (const Dialect* d : dialect_table()) {
        for (const std::string_view key :
             {wanted == "group" ? "" : d->metadata_key, wanted == "array" ? "" : d->group_key}) {
            if (!key.empty() && std::ranges::count(keys, key) == 0) keys.push_back(key);
        }
    }
    return keys;
}

/// The error for a place without the document of an array or group.
Error no_node_here(const PlaceView& place, std::string_view wanted) {
    const std::string name = place.name();
    const Listing below = place.store.list(place.prefix);
    const bool empty = below.keys.empty() && below.prefixes.empty();
    if (empty && !place.store.lists()) {
        return not_found("{}: no {} here; what lies below it, and its server does not list, has to be named", name,
                         wanted);
    }
    if (empty) {
        return not_found("{}: no {} here: there is nothing, or an empty directory", name, wanted);
    }
    const Hierarchy all = hierarchy_below(place);
    const auto deep = std::ranges::count(all.passed, PassedFolder::Why::too_deep, &PassedFolder::why);
    return not_found("{}: no {} here: looked for {}, found {}{}", name, wanted, fmt::join(keys_of(wanted), ", "),
                     names_text(below), deep == 0 ? "" : too_deep_text(deep));
}

}  // namespace

Error absence(const PlaceView& place, std::string_view wanted) {
    const std::string name = place.name();
    const std::string_view article = wanted.starts_with('a') ? "an" : "a";
    if (is_being_removed(place)) {
        return not_found(
            "{}: an array that was being removed, not {} {}: rm goes on with that, and so does what makes "
            "an array there",
            name, article, wanted);
    }
    if (place.store.open(place.key(unfinished_marker_key)) != nullptr) {
        return not_found("{}: an unfinished copy, not {} {} yet", name, article, wanted)
            .advising(Action::resume, "goes on with it where it was begun")
            .advising(Action::overwrite, "starts afresh");
    }
    if (const Dialect* there = probe_dialect(place)) {
        return not_found("{}: an array ({}), not {} {}", name, there->name, article, wanted);
    }
    if (const Dialect* there = probe_group_dialect(place)) {
        return not_found("{}: a group ({}), not {} {}", name, there->name, article, wanted);
    }
    return no_node_here(place, wanted);
}

}  // namespace tessera
