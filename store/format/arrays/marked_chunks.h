// Writing the dirty elements of chunks, as a cache holds them. Private to the store module.
#pragma once

#include <vector>
#include "array_state.h"
#include "chunk_changes.h"
#include "element_mask.h"

namespace tessera {

/// New elements of a whole chunk, with shards of one inner chunk; `index` is in the grid of these. All packed in C
/// order.
struct MarkedChunk {
    Index index;
    ArrayView elements;
    const ElementMask* dirty_mask;  ///< which of them to write; null: all
};
/// Writes the dirty elements into one chunk or shard, which is replaced once. `output` has begun. The caller holds the
/// shape lock.
void write_marked(const ArrayState& array, const LoadedArray& loaded, const Index& index,
                  const std::vector<MarkedChunk>& chunks, ChunkOutput& output, const IoOptions& io);
/// Copies the dirty elements. All packed in C order.
void copy_marked(const ArrayView& from, const ElementMask& dirty_mask, const MutableArrayView& to);

}  // namespace tessera
