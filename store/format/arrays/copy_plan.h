// How a copy is divided into blocks, by what both sides are good at and the memory that there is. Private to the store
// module.
#pragma once

#include <cstdint>

#include <tessera/array_io.h>
#include <tessera/copy_array.h>
#include <tessera/view.h>

namespace tessera {

inline constexpr std::uint64_t default_copy_memory = std::uint64_t{256} << 20;
inline constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

/// One side of a copy, as far as the plan is concerned.
struct CopySide {
    Shape chunks;  ///< empty for a plain file
    Shape shards;  ///< empty without sharding
    Order order = Order::C;
    bool in_order = false;     ///< only regions in ascending memory order are efficient
    bool in_turn = false;      ///< only one block at a time
    std::int64_t working = 0;  ///< bytes that a computing source takes in each thread

    [[nodiscard]] bool plain(int rank) const { return chunks.rank() != rank || rank == 0; }
    /// The unit that a sink writes as a whole.
    [[nodiscard]] const Shape& unit() const { return shards.empty() ? chunks : shards; }
};

[[nodiscard]] CopySide side_of(const ArrayInfo& info);

struct CopyPlan {
    Shape block;
    Shape unit;  ///< blocks are multiples of it
    int threads = 1;
    std::int64_t for_two = 0;      ///< the memory budget within which two threads work
    Dims axes;                     ///< axes of a block in memory, the slowest first
    Order block_order = Order::C;  ///< order of the blocks
    bool each = false;             ///< each thread has its own block; else all threads work on one block after another
    bool spool = false;            ///< copy by way of a plain temporary file: see spooled()
    bool shards = false;           ///< a block is a shard too large for memory, and is copied by a nested copy
    bool sink_in_order = false;    ///< the sink accepts each block only once
    std::int64_t spare = 0;        ///< bytes of the budget that neither blocks nor threads take
};

/// For `shape`, elements of `item` bytes. Throws over_budget if the memory does not do for one chunk.
[[nodiscard]] CopyPlan make_copy_plan(const Shape& shape, std::int64_t item, const CopySide& source,
                                      const CopySide& sink, const CopyOptions& options);

}  // namespace tessera
