// What processes and threads do to one array at the same time, each to elements of its own that share chunks with the
// others', and what must be there at the end. An increment is a read, an addition and a write: nobody else may do that
// to the same element meanwhile, since there is no lock over both, so every element has one owner.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <tessera/array.h>

namespace tessera::faults {

/// Who takes part: number `self` of `all`, doing `count` things that depend on `self` alone.
struct Party {
    int self = 0;
    int all = 1;
    int count = 0;
};

/// Of int32, fill 0, rows that resizing leaves alone and more below them; chunks 16×16, with `sharded` in 32×32.
Array create_shared(const std::filesystem::path& path, bool sharded);
inline constexpr std::int64_t shared_rows = 75;  // ends within a chunk
inline constexpr std::int64_t shared_columns = 40;

/// Adds one to random slices of the rows that are `self` modulo `all`, which never lie whole in a chunk.
void increment(Array& array, const Party& party);
/// Sets its rows within one chunk at a time to a number or to the fill, mostly to the fill, so that chunks and shards
/// are often removed while others write to them.
void toggle(Array& array, const Party& party);
/// What the elements are after increment() or toggle() by all of them, in C order.
[[nodiscard]] std::vector<std::int32_t> after_increments(int all, int count);
[[nodiscard]] std::vector<std::int32_t> after_toggles(int all, int count);

/// Changes the number of rows, never below shared_rows, and writes to the rows beyond.
void resize_often(Array& array, const Party& party);

/// Appends pieces of one to five rows, each row with the piece's number; appended(old length, rows, number) for each.
void append_often(Array& array, const Party& party,
                  const std::function<void(std::int64_t, std::int64_t, std::int32_t)>& appended);

/// Writes whole chunks and whole shards, each write with one number for all elements; now and then the fill.
void write_blocks(Array& array, const Party& party);
/// Reads such chunks and shards. Throws Error(corrupt) for one that is not all one number.
void read_blocks(const Array& array, const Party& party);

}  // namespace tessera::faults
