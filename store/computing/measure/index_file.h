// A file of the index of chunks: entries for a run of chunks, as tools/docs/formats.md describes it. Private to the
// store module.
#pragma once

#include <tessera/chunk_grid.h>
#include <tessera/key_value_store.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// Changes whenever the bytes, or what goes into `sense`, do.
inline constexpr int index_version = 2;

/// What is kept of a chunk.
struct IndexEntry {
    std::int64_t chunk = 0;
    ValueStamp stamp;   ///< of the value that it was made from
    std::string units;  ///< the summaries of all of the chunk's units, each as a text, in C order
};

/// What decides whether entries of a file count: a hash of what gives the bytes of chunks their sense, and the grid;
/// and which run the file is about.
struct IndexRun {
    const std::string& sense;
    const ChunkGrid& grid;
    std::int64_t first = 0;  ///< its first chunk
    std::int64_t count = 1;  ///< of its chunks
};

/// `entries` ascend.
[[nodiscard]] std::string index_file(const IndexRun& run, const std::vector<IndexEntry>& entries);
/// None of a file of another version, shape or sense, except that entries of an array that became longer or shorter
/// count where their chunks did not. Throws corrupt, and what parsing JSON throws.
[[nodiscard]] std::vector<IndexEntry> entries_in(std::string_view file, const IndexRun& run);

}  // namespace tessera
