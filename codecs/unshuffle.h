// The byte shuffle of blosc undone for any part of a block, straight into where its bytes go.
#pragma once

#include <tessera/buffer.h>

namespace tessera {

/// A shuffled block: all first bytes of its elements, all second bytes, and so on, then the bytes of a last element
/// that is not whole.
struct ShuffledBlock {
    ByteSpan bytes;
    std::size_t typesize;  ///< at least 1
};

/// Writes bytes [first, first + n) of the block as they were before the shuffle. With `around_caches` in stores that
/// leave the caches alone, for memory that is not read again soon: finish_stores() before another thread may see it.
void unshuffle(const ShuffledBlock& block, std::size_t first, std::size_t n, std::byte* to, bool around_caches);

/// memcpy, by the same kind of stores.
void copy_around_caches(std::byte* to, const std::byte* from, std::size_t n);
void finish_stores();

}  // namespace tessera
