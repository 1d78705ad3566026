// sync_hierarchy: makes arrays and groups at a path like those at another one, by carrying only what differs.
#pragma once

#include <cstdint>
#include <string>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>

namespace tessera {

struct SyncOptions {
    bool dry_run = false;  ///< only counts
    IoOptions io = {};
    StoreOptions store = {};  ///< how the destination is opened
};

struct Synced {
    std::int64_t arrays = 0;
    std::int64_t made = 0;     ///< of these, arrays that were not there, and are copied whole
    std::int64_t same = 0;     ///< values (chunks, shards) that are the same on both sides
    std::int64_t carried = 0;  ///< values that differ, or were not there
    std::int64_t erased = 0;   ///< values that the source does not have
    std::uint64_t bytes = 0;   ///< of the carried values
};

/// Makes each array at and below `destination` that is also at `source` equal to it: chunks as they are stored,
/// metadata and attributes. Values differ if their sizes do, or their MD5 sums, which S3 lists; where neither side
/// lists one, the bytes are compared. What is not at the destination is copied (copy_hierarchy, in the same format);
/// nodes that are only there stay. An array that grew or shrank at the source does so at the destination. Data come
/// before metadata when it grows, and no reader sees a chunk half written, but one who reads meanwhile may see some old
/// and some new chunks. Holds the locks of the destination and of each array. Throws invalid_argument if the
/// destination is stored otherwise (format, dtype, chunks, codecs, keys), with nothing of that array changed; and the
/// errors of opening, reading and writing.
Synced sync_hierarchy(const std::string& source, const std::string& destination, const SyncOptions& options = {});

}  // namespace tessera
