// Undoes the byte shuffle of blosc for any part of a block, straight into the destination.
#pragma once

#include <tessera/buffer.h>

#include <array>
#include <cstdint>
#include <optional>

namespace tessera {

constexpr std::size_t cache_line = 64;  ///< bytes

/// A shuffled block: the first bytes of all elements, the second bytes, and so on, then the bytes of an incomplete last
/// element.
struct ShuffledBlock {
    ByteSpan bytes;
    std::size_t typesize;  ///< at least 1
    bool swapped = false;  ///< elements of 2, 4, 8 or 16 bytes come out in the other byte order
};

/// Writes bytes [first, first + n) of the block as they were before the shuffle; with `swapped` these are whole
/// elements. `streaming` writes whole cache lines with streaming stores, for memory that is not read again soon. Call
/// finish_stores() before another thread may see them.
void unshuffle(const ShuffledBlock& block, std::size_t first, std::size_t n, std::byte* to, bool streaming);

/// Writes `n` single elements as they were before the shuffle: the one at byte `first` of the block, and each `step`
/// bytes further, `to_step` bytes apart. `first` and `step` are multiples of typesize; no element is incomplete.
void unshuffle_each(const ShuffledBlock& block, std::size_t first, std::size_t step, std::size_t n, std::byte* to,
                    std::int64_t to_step);

/// memcpy that swaps the byte order of each number of `number` bytes (2, 4 or 8); n is a multiple of that.
void copy_swapped(std::byte* to, const std::byte* from, std::size_t n, std::size_t number);

/// Gathers elements with a small stride into adjacent ones.
class ElementPacker {
public:
    /// For elements of `size` bytes, `step` bytes apart, whose byte order is swapped on the way if `swapped`. nullopt
    /// if copying one by one is as fast, on this machine or for these numbers.
    [[nodiscard]] static std::optional<ElementPacker> of(std::size_t size, std::size_t step, bool swapped);
    /// Copies the first of `n` elements, not all of them. Returns the number copied.
    [[nodiscard]] std::size_t copy(std::byte* to, const std::byte* from, std::size_t n) const;

private:
    std::size_t size_ = 0;
    std::size_t step_ = 0;
    std::size_t lines_ = 0;                         ///< that hold the elements of a packed one
    std::array<std::uint8_t, cache_line> order_{};  ///< of each packed byte the place in its line
    std::array<std::uint64_t, 8> masks_{};          ///< of each line the packed bytes that are from there
};

/// memcpy with streaming stores.
void stream_copy(std::byte* to, const std::byte* from, std::size_t n);
void finish_stores();
/// Prefetches a cache line that will soon be written.
void fetch_line(const std::byte* p);

/// The instruction sets that the code can use; tests try all of them.
enum class Machine : std::uint8_t { portable, avx2, avx512 };
[[nodiscard]] Machine best_machine();
/// For tests: uses no better instruction set than this from now on.
void limit_machine(Machine most);

}  // namespace tessera
