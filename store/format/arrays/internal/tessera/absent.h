// What an array stores nothing of, which costs by the run rather than by the chunk: of sources with an
// absent_element().
#pragma once

#include <tessera/array_io.h>
#include <tessera/chunk_grid.h>
#include <tessera/counted.h>

namespace tessera {

/// Sets elements to what those of such a source read as that are not stored.
void fill_as_absent(const ArraySource& source, const MutableArrayView& out);

/// Adds the numbers of the blocks of `source`, in a grid over its shape, of which a part is stored. False if they are
/// not known, or are all.
[[nodiscard]] bool add_stored_blocks(const ArraySource& source, const ChunkGrid& blocks,
                                     CountedVector<std::int64_t>& numbers);

}  // namespace tessera
