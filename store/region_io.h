// The loops that read and write a region of an array, chunk by chunk, in parallel. Private to the store module.
//
// Writers hold the shape lock (slot 0) shared for the whole call, and each job the lock of its chunk from before it
// reads the old chunk until after the new one is in place. Readers take no lock: a chunk is replaced as a whole.
#pragma once

#include "array_state.h"

namespace tessera {

/// `out` has the shape region.extent; region lies inside the array.
void read_region(const ArrayState& array, const LoadedArray& loaded, const Region& region, const MutableArrayView& out,
                 const IoOptions& io);

/// The caller holds the shape lock. `in` has the shape region.extent; dimensions with stride 0 repeat an element.
void write_region(const ArrayState& array, const LoadedArray& loaded, const Region& region, const ArrayView& in,
                  const IoOptions& io);

// The same for a selection with steps; the shape is selection.full_shape().
void read_stepped(const ArrayState& array, const LoadedArray& loaded, const Selection& selection,
                  const MutableArrayView& out, const IoOptions& io);
void write_stepped(const ArrayState& array, const LoadedArray& loaded, const Selection& selection, const ArrayView& in,
                   const IoOptions& io);

/// Replaces one stored chunk by what `change` makes of its elements (the whole chunk, beyond the array's edge too).
/// Does nothing when the chunk is absent.
void change_chunk(const ArrayState& array, const LoadedArray& loaded, const Index& chunk,
                  const std::function<void(const MutableArrayView&)>& change);

/// Calls each(chunk index, key, size) for every stored chunk, inside the grid or not, and stray(name, size) for every
/// other value among them.
void for_each_stored(const ArrayState& array, const LoadedArray& loaded,
                     const std::function<void(const Index&, const std::string&, std::uint64_t)>& each,
                     const std::function<void(const std::string&, std::uint64_t)>& stray);

}  // namespace tessera
