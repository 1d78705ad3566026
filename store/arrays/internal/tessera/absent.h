// What an array stores nothing of, which costs by the run rather than by the chunk.
#pragma once

#include <optional>

#include <tessera/array_io.h>
#include <tessera/chunk_grid.h>
#include <tessera/counted.h>

namespace tessera {

/// Whether it can be listed what a source stores: an array of elements of a fixed size, in a store that lists.
[[nodiscard]] bool knows_absent(const ArraySource& source);

/// Sets elements to what absent chunks of such a source read as.
void fill_as_absent(const ArraySource& source, const MutableArrayView& out);

/// Adds the numbers of the blocks of `source`, in a grid over its shape, of which a part is stored. False, if something
/// that is no chunk lies in the place of some.
[[nodiscard]] bool add_stored_blocks(const ArraySource& source, const ChunkGrid& blocks,
                                     CountedVector<std::int64_t>& numbers);

}  // namespace tessera
