// The byte shuffle of blosc undone for any part of a block, straight into where its bytes go.
#pragma once

#include <tessera/buffer.h>

namespace tessera {

/// A shuffled block: all first bytes of its elements, all second bytes, and so on, then the bytes of a last element
/// that is not whole.
struct ShuffledBlock {
    ByteSpan bytes;
    std::size_t typesize;  ///< at least 1
    bool swapped = false;  ///< elements of 2, 4, 8 or 16 bytes come out in the other byte order
};

/// Writes bytes [first, first + n) of the block as they were before the shuffle; with `swapped` these are whole
/// elements. With `streaming` whole lines of the cache are written by stores that leave the
/// caches alone, for memory that is not read again soon: finish_stores() before another thread may see it.
void unshuffle(const ShuffledBlock& block, std::size_t first, std::size_t n, std::byte* to, bool streaming);

/// memcpy of numbers of `number` bytes (2, 4 or 8), each turned round; n is a multiple of that.
void copy_swapped(std::byte* to, const std::byte* from, std::size_t n, std::size_t number);

/// memcpy, by the same kind of stores.
void stream_copy(std::byte* to, const std::byte* from, std::size_t n);
void finish_stores();
/// Begins to bring a line of the cache near that will soon be written.
void fetch_line(const std::byte* p);

/// What the machine has for that: tests try all of it.
enum class Machine : std::uint8_t { portable, avx2, avx512 };
[[nodiscard]] Machine best_machine();
/// For tests: no better than this from now on.
void limit_machine(Machine most);

}  // namespace tessera
