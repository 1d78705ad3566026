// An array as tiles see it: blocks that are decoded whole, their versions, and which are stored. Private to the store
// module.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array.h>
#include <tessera/meaning.h>
#include <tessera/tile.h>

#include "array_state.h"
#include "tile_cache.h"

namespace tessera {

/// Blocks [row, row + rows) × [column, column + columns) of the grid of a slice.
using BlockRange = TileBox;

struct TileArray {
    TileArray(std::shared_ptr<const ArraySource> s, std::shared_ptr<TileCache> c, std::string name);

    std::shared_ptr<const ArraySource> source;
    std::shared_ptr<TileCache> cache;
    std::string identity;
    ArrayInfo info;
    DType native;
    Meaning meaning;
    std::vector<double> missing;  ///< codes, as doubles
    /// Of an array of chunks in a store, or of a field of one; nullptr for any other source.
    const ArrayState* state = nullptr;
    std::shared_ptr<const LoadedArray> loaded;
    const class ComplexPart* complex = nullptr;  ///< the source, if it is a part of complex numbers
    std::int64_t offset = 0;                     ///< of the field in the elements of the array
    std::int64_t chunk_bytes = 0;                ///< decoded; 0 without `state`
    bool reads_parts = true;                     ///< a few elements of a block are read without decoding it whole

    /// Throws invalid_argument unless the dimensions differ and are there, and `at` lies in the array.
    void require_slice(const TileSlice& slice) const;
    /// The lengths of the two dimensions.
    [[nodiscard]] TileBox elements_of(const TileSlice& slice) const;
    /// The lengths of a block along the two dimensions; its rows and columns alone are used. Throws unsupported for a
    /// compressed stream too large for one block.
    [[nodiscard]] TileBox block_of(const TileSlice& slice) const;
    /// What decoding a block takes.
    [[nodiscard]] std::int64_t decoded_bytes(const TileSlice& slice) const;
    /// The index of the value that stores a block: a chunk, or a shard.
    [[nodiscard]] Index value_of(const TileSlice& slice, std::int64_t block_row, std::int64_t block_column) const;
    /// Bytes that identify a version of a value; nullopt if it is not stored.
    [[nodiscard]] std::optional<std::string> version_of(const Index& value) const;
    /// What elements of a chunk that is not stored read as, as a number. Throws as reading them does.
    [[nodiscard]] double fill_number() const;
    /// Reads elements of the slice into (rows, columns) of `meaning.stored`, which is `native` but for the sign.
    void read_into(const TileSlice& slice, const TileBox& box, NDArray& elements, const IoOptions& io) const;
    /// Whether a chunk is decoded whole for a slice of it, and small enough to be kept for its other slices.
    [[nodiscard]] bool keeps_chunks(const TileSlice& slice) const;
    /// The elements of the chunk that a block of a slice lies in.
    [[nodiscard]] Region chunk_of(const TileSlice& slice, std::int64_t block_row, std::int64_t block_column) const;
    /// As read_into(), of elements of `region` that were read before.
    void copy_slice(const NDArray& chunk, const Region& region, const TileSlice& slice, const TileBox& box,
                    NDArray& elements) const;
    /// Blocks of stored values in a range, by listing what is stored: nullopt if that cannot be told, or if there are
    /// too many values to list. A list is kept for a few seconds.
    [[nodiscard]] std::optional<std::vector<BlockRange>> stored_in(const TileSlice& slice,
                                                                   const BlockRange& range) const;

private:
    struct Listing {
        std::chrono::steady_clock::time_point until = {};
        bool complete = false;
        std::vector<std::int64_t> values;  ///< numbers in the grid of values
    };
    void list_values() const;
    [[nodiscard]] Index at_of(const TileSlice& slice) const;
    [[nodiscard]] Region region_of(const TileSlice& slice, const TileBox& box) const;
    /// `elements` (rows, columns) as an array of all dimensions.
    [[nodiscard]] MutableArrayView view_of(const TileSlice& slice, const Region& region, NDArray& elements) const;

    mutable std::mutex mutex_;
    mutable Listing listing_;
};

}  // namespace tessera
