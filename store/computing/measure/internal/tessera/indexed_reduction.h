// Reductions that take from an index of chunks what it says.
#pragma once

#include <tessera/array_io.h>
#include <tessera/chunk_index.h>
#include <tessera/reduce.h>
#include <tessera/selection.h>

#include <memory>
#include <optional>

namespace tessera {

/// reduce_source() of an array, or of a `part` of one, of which there is an index: of min, max, sum, mean, count, any
/// and all, where each chunk belongs to one result, only chunks are read of which the index does not say what is asked.
/// The results are the same to the last bit, or all is read: also if a chunk cannot be. Throws as reduce_source().
///
/// `index`: that of the array before the part was taken, and decoded if `array` is; null, or of other elements: it is
/// not used.
[[nodiscard]] std::unique_ptr<ArraySource> reduce_by_index(std::unique_ptr<ArraySource> array,
                                                           const ReduceOptions& options,
                                                           std::shared_ptr<const ChunkIndex> index,
                                                           const std::optional<Selection>& part = std::nullopt);

}  // namespace tessera
