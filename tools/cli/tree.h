// What lies below a directory: arrays and array files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <tessera/dtype.h>
#include <tessera/shape.h>

namespace tessera::cli {

struct Leaf {
    std::string format = {};  ///< "zmeta", "npy"
    DType dtype = {};
    Shape shape = {};
    std::optional<Shape> chunks = {};  ///< none for array files
    std::string error = {};            ///< why it cannot be read; the rest is then unknown
};

/// A directory or a file of several arrays, with children; or one array.
struct Node {
    std::string name;
    std::optional<Leaf> leaf;
    std::vector<Node> children;
    bool is_file = false;  ///< without a leaf: of several arrays
};

/// Everything at and below a path. Throws not_found and io.
[[nodiscard]] Node scan(const std::filesystem::path& path);
[[nodiscard]] std::int64_t count_arrays(const Node& node);
[[nodiscard]] bool any_unreadable(const Node& node);

}  // namespace tessera::cli
