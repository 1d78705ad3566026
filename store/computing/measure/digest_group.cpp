// The digest of a group: one hash of the paths and digests of all arrays below.
#include <fmt/format.h>
#include <tessera/array.h>
#include <tessera/copy.h>
#include <tessera/error_text.h>
#include <tessera/measure.h>
#include <tessera/place.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sha256.h"

namespace tessera {

namespace {

/// The paths of the arrays below a group, and of the members of an array file; nothing if it is one array.
std::vector<std::string> arrays_below(const Located& at) {
    std::vector<std::string> paths;
    const bool group = at.kind == PathKind::group || at.kind == PathKind::folder;
    if (group) {
        const Hierarchy below = hierarchy_below(*at.place);
        for (const Node& node : below.nodes) {
            if (node.kind == NodeKind::array) paths.push_back(node.path);
        }
    } else if (at.kind == PathKind::array_file && at.format->members != nullptr) {
        paths = array_members(*at.format, at.file);
        if (paths.size() == 1) paths.clear();
    }
    std::ranges::sort(paths);
    return paths;
}

}  // namespace

NodeDigest digest(const Located& at, const IoOptions& io) {
    const std::vector<std::string> paths = arrays_below(at);
    const bool group = at.kind == PathKind::group || !paths.empty();
    if (!group) return {.digest = digest(*open_source(at), io)};
    NodeDigest made{.digest = {}, .group = true};
    Hasher hasher;
    for (const std::string& path : paths) {
        std::string sum = in_context([&] { return path; },
                                     [&] {
                                         return at.kind == PathKind::array_file
                                                    ? digest(*open_source(at.path + "::" + path), io)
                                                    : digest(Array::open({at.place->store, at.place->key(path)}), io);
                                     });
        const std::string line = fmt::format("{} {}\n", path, sum);
        hasher.add(line.data(), line.size());
        made.arrays.emplace_back(path, std::move(sum));
    }
    made.digest = "tessera1-group:" + hex(hasher.finish());
    return made;
}

}  // namespace tessera
