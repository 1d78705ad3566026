// Which chunks an array held when it was imported or copied, so that verify() notices those that got lost since.
// Private to the store module.
#pragma once

#include <tessera/byte_io.h>
#include <tessera/shape.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/counted.h>

#include "directory_store.h"

namespace tessera {

/// The record, below its array.
inline constexpr std::string_view stored_record_key = ".tessera/stored";

/// What the numbers in a record mean.
struct StoredGrid {
    Shape grid;       ///< number of chunks along each dimension: chunks are numbered in its C order
    Shape chunks;     ///< shape of a chunk; another one means another array
    std::string key;  ///< of the first chunk, which tells how chunks are named
    // With shards, which are the chunks above: number and shape of their inner chunks, of which the record speaks.
    Shape units = {};
    Shape unit = {};

    /// What the record counts.
    [[nodiscard]] const Shape& counted() const { return unit.empty() ? grid : units; }
    friend bool operator==(const StoredGrid&, const StoredGrid&) = default;
};

/// Erased on purpose since: a chunk, or of a shard the inner chunks `first` to `last`, numbered in its C order.
struct ErasedChunk {
    std::int64_t chunk = 0;
    std::int64_t first = 0;
    std::int64_t last = INT64_MAX;
};

struct StoredRecord {
    StoredGrid of;
    CountedVector<std::pair<std::int64_t, std::int64_t>> ranges;  ///< first and last, ascending
    CountedVector<ErasedChunk> erased;                            ///< may be absent; in no order
    Shape within;  ///< in number of chunks: those beyond may be absent, too, because the array was shorter meanwhile
};

/// Writes the record of the array at `place`, which no other thread or program can open yet. `numbers` ascend. Does
/// nothing in stores that are not directories, and without or with absurdly many chunks.
void write_stored_record(const PlaceRef& place, const StoredGrid& of, std::span<const std::int64_t> numbers);

/// Tells the record which chunks an operation erases on purpose, so that it no longer expects them. Opens it at the
/// first, and only once: while the shape lock is held, no array gets another record. Both arguments outlive it. Thread
/// rule: any.
class ErasedNotes {
public:
    explicit ErasedNotes(const PlaceRef& place) : place_(place) {}
    /// Called before the chunks are erased, with their locks held. `keys` are keys of the store. If that cannot be
    /// noted, the record is removed; throws io if even that fails.
    void add(std::span<const std::string> keys);
    /// The same of the inner chunks with these ascending numbers in one shard, before it is replaced. In a batch they
    /// are noted at once, which at worst makes the record say less.
    void add_inner(const std::string& shard, std::span<const std::int64_t> numbers);

private:
    void append(KeyValueStore& store, std::string_view text);

    PlaceRef place_;
    std::once_flag opened_;
    std::unique_ptr<OwnValue> record_;
};
/// Called before an array is resized, with its number of chunks along each dimension before or afterwards.
void note_grid(const PlaceRef& place, const Shape& grid);

/// Before a program that tells of no erasures replaces the value of a key: inner chunks may go with it.
void note_replaced(KeyValueStore& store, std::string_view key);

/// Reads a record. `number_of` gives the number of a chunk from its key below the array; nullopt for keys that do not
/// matter. Throws corrupt if it is none, and budget if it does not fit in memory.
[[nodiscard]] StoredRecord read_stored_record(
    const ByteSource& file,
    const std::function<std::optional<std::int64_t>(const StoredGrid& of, std::string_view key)>& number_of);

}  // namespace tessera
