// What each chunk of an array amounts to, as arrays in the shape of the grid of chunks.
#pragma once

#include <tessera/array.h>
#include <tessera/measure.h>
#include <tessera/ndarray.h>
#include <tessera/parallel.h>
#include <tessera/shape.h>

#include <optional>

namespace tessera {

/// All arrays have a place for each chunk, or with shards for each inner chunk: along each dimension as many as there
/// are.
struct ChunkStatistics {
    NDArray stored;        ///< Booleans
    NDArray stored_bytes;  ///< int64; 0 where nothing is stored
    /// Of elements within the array, absent ones included, which are the fill value.
    struct Elements {
        NDArray count;          ///< int64: neither missing nor NaN
        NDArray missing;        ///< int64: all others
        NDArray min, max;       ///< of the elements' dtype; see `lacks`
        NDArray mean;           ///< float64; NaN where no element has a value
        NDArray lacks;          ///< Booleans: chunks without any value, whose `min` and `max` say nothing
        bool may_lack = false;  ///< whether there may be such chunks, as far as the kind of elements says
    };
    std::optional<Elements> elements;  ///< of real numbers and times; nullopt for all others
};

/// Of what elements stand for, or of the codes with `raw`. With IndexUse::use, chunks of which an index says all
/// (tessera/chunk_index.h) are not read: the results are the same. Throws as reading does; budget if there are
/// too many chunks.
[[nodiscard]] ChunkStatistics chunk_statistics(const Array& array, bool raw, IndexUse use, const IoOptions& io = {});

}  // namespace tessera
