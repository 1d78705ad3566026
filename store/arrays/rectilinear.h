// Arrays of Zarr v3 whose chunks differ in length: the grid "rectilinear". They are read and copied, and not changed.
// Private to the store module.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/key_value_store.h>
#include <tessera/metadata.h>

namespace tessera {

/// The lengths of the chunks along one dimension, as runs of equal ones: a document may say 10^18 of them.
class ChunkEdges {
public:
    /// From the JSON of one dimension: a length, or a list of lengths and [length, count]. Throws corrupt.
    ChunkEdges(const Value& lengths, std::int64_t extent);

    struct Chunk {
        std::int64_t index = 0, start = 0, length = 0;
    };
    /// The chunk with the element at `position`, which lies inside the array.
    [[nodiscard]] Chunk at(std::int64_t position) const;
    /// A chunk that begins inside the array.
    [[nodiscard]] Chunk numbered(std::int64_t index) const;
    [[nodiscard]] std::int64_t longest() const;

private:
    struct Run {
        std::int64_t index, start, length, count;
        [[nodiscard]] Chunk chunk(std::int64_t n) const { return {index + n, start + n * length, length}; }
    };
    void add(std::int64_t length, std::int64_t count);

    std::vector<Run> runs_;
    std::int64_t chunks_ = 0, end_ = 0;
};

/// Opens the array at `prefix` if its document (of v3) says this grid; else nullptr. `name` is for people. Throws
/// corrupt and unsupported, naming the document.
[[nodiscard]] std::unique_ptr<ArraySource> rectilinear_source(std::shared_ptr<const KeyValueStore> store,
                                                              std::string_view prefix, ByteSpan document,
                                                              std::string name);

}  // namespace tessera
