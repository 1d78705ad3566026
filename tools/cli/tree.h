// The content of a directory or zip: groups, arrays and array files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <tessera/dtype.h>
#include <tessera/folder_walk.h>
#include <tessera/group.h>
#include <tessera/locate.h>
#include <tessera/node_facts.h>
#include <tessera/shape.h>

namespace tessera::cli {

struct Leaf {
    std::string format = {};  ///< "zmeta", "npy"
    DType dtype = {};
    Shape shape = {};
    std::optional<Shape> chunks = {};  ///< nullopt for array files
    Shape shards = {};                 ///< empty without sharding
    std::string error = {};            ///< why it cannot be read; the rest is then unknown
};

/// A group with metadata.
struct GroupFacts {
    std::string format = {};
    std::size_t attributes = 0;
    ConsolidatedState consolidated = {};
    std::string error = {};  ///< why its attributes cannot be read
};

/// A directory, a zip or a file of several arrays, with children; or one array.
struct TreeNode {
    std::string name;
    std::optional<Leaf> leaf = {};
    std::optional<GroupFacts> group = {};
    std::vector<TreeNode> children = {};
    std::optional<PassedFolder> passed = {};  ///< not entered by the walk; `path` is below its root
    bool is_file = false;                     ///< a file of several arrays, or a zip
};

/// Everything there and below. Throws not_found and io.
[[nodiscard]] TreeNode scan(const Located& at);
[[nodiscard]] std::int64_t count_arrays(const TreeNode& node);
/// Whether any node is unreadable, or too deep for the walk.
[[nodiscard]] bool any_unreadable(const TreeNode& node);

/// Why the walk did not enter a folder, as text.
[[nodiscard]] std::string passed_text(const PassedFolder& passed);

}  // namespace tessera::cli
