// The row of an array file format whose reading is done in child processes (reader_process.h). Private to core/files.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "array_file_row.h"

namespace tessera {

/// The row that reads in this process, and what it reads with.
struct InnerFormat {
    const ArrayFileFormat& row;
    std::string_view library;                           ///< "libhdf5"
    std::unique_lock<std::recursive_mutex> (*still)();  ///< as ReaderWish::still
};

// Each does what the row's function does, in a child unless reads_in_process().
[[nodiscard]] std::vector<std::string> members_apart(const InnerFormat& inner, const ArrayPath& path);
[[nodiscard]] std::vector<ArrayFileGroup> groups_apart(const InnerFormat& inner, const ArrayPath& path);
[[nodiscard]] std::vector<PackedArray> packed_apart(const InnerFormat& inner, const ArrayPath& path);
[[nodiscard]] std::optional<PackedArray> chunked_apart(const InnerFormat& inner, const ArrayPath& path);
[[nodiscard]] std::unique_ptr<ArraySource> open_apart(const InnerFormat& inner, const ArrayPath& path,
                                                      const ArrayFileOptions& options);
[[nodiscard]] Value describe_apart(const InnerFormat& inner, const ArrayPath& path);

/// `inner.row` with these functions. It has members, groups, packed and chunked arrays.
template <const InnerFormat& inner>
constexpr ArrayFileFormat apart_format() {
    ArrayFileFormat row = inner.row;
    row.members = [](const ArrayPath& path) { return members_apart(inner, path); };
    row.groups = [](const ArrayPath& path) { return groups_apart(inner, path); };
    row.packed = [](const ArrayPath& path) { return packed_apart(inner, path); };
    row.chunked = [](const ArrayPath& path) { return chunked_apart(inner, path); };
    row.open = [](const ArrayPath& path, const ArrayFileOptions& options) { return open_apart(inner, path, options); };
    row.describe = [](const ArrayPath& path) { return describe_apart(inner, path); };
    return row;
}

}  // namespace tessera
