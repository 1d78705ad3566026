// Which chunks are stored. Private to the store module.
#pragma once

#include <tessera/counted.h>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include "array_state.h"
#include "stored_record.h"

namespace tessera {

/// Callbacks of for_each_stored(). The keys of strays and obstacles are below the array.
struct StoredVisitor {
    /// A chunk, inside the grid or not. Includes unreadable things with a chunk's name (a FIFO, a dangling link): they
    /// are not absent, but reading them fails.
    std::function<void(const Index&, const std::string& key, const KeyValueStore::ValueSize& size)> each;
    /// Every other value beside them.
    std::function<void(const std::string&)> stray = [](const std::string&) {};
    /// An obstacle to chunks: a directory in a chunk's place (then with its index), a thing that is not a folder in the
    /// place of a folder of chunks, or a folder that the walk already visited under another name.
    std::function<void(const Index*, const std::string& key, const std::string& text)> in_the_way;
    /// In place of `each`, if there is one and the store lists: with what a listing tells: the whole stamp far away,
    /// else only the size; and the MD5 sum, or nothing (ReadableStore::for_each_sum).
    std::function<void(const std::string& key, const ValueStamp& stamp, std::string_view md5)> each_listed = nullptr;
};
void for_each_stored(const ArrayState& array, const LoadedArray& loaded, const StoredVisitor& visitor);

/// What a record of the array's stored chunks says of itself.
[[nodiscard]] StoredGrid stored_grid(const LoadedArray& loaded);
/// What is stored of the chunks with these numbers in `loaded.grid`, as ascending numbers in unit_grid(): themselves,
/// or with shards the inner chunks in them, for which the index of each is read. A shard whose index cannot be read
/// counts as full. Throws Error(budget) if the list does not fit in memory.
[[nodiscard]] CountedVector<std::int64_t> stored_units(const ArrayState& array, const LoadedArray& loaded,
                                                       std::span<const std::int64_t> chunks, const IoOptions& io);

/// Writes the record of the chunks that are stored now (stored_record.h), of an array that nobody can open yet. Without
/// the memory for it there is none.
void record_stored_chunks(const ArrayState& array, const LoadedArray& loaded);

}  // namespace tessera
