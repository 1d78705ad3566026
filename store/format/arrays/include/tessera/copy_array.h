// copy_array: the one engine for import, export, rechunking, recompression and change of format.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <tessera/array_io.h>
#include <tessera/error.h>
#include <tessera/selection.h>

namespace tessera {

/// A decoded block of this size is still in the processor's cache when the sink reads it.
constexpr std::int64_t passing_block = std::int64_t{1} << 20;

struct CopyOptions {
    IoOptions io = {};  ///< io.max_memory counts blocks and the scratch of every thread
    /// The part of the source to copy, with the shape of the sink; nullopt: all.
    std::optional<Selection> selection = std::nullopt;
    /// For resumed copies: whether a region of the sink is complete already and need not be copied. Null: copy
    /// everything.
    std::function<bool(const Region&)> done = nullptr;
    /// Block-sized buffers that the sink allocates per block. The memory budget is divided by it.
    int held = 1;
    /// Upper limit in bytes for blocks that would gain nothing from being larger: `passing_block` for a sink that only
    /// reads elements.
    std::int64_t ample = std::int64_t{8} << 20;
    /// Another source of the same shape of which the sink reads each block, too; may be null.
    const ArraySource* beside = nullptr;
    /// Whether the sink need not get what `source`, and `beside`, store nothing of. Such blocks are passed over if
    /// there are very many: an array may claim any shape.
    bool skip_absent = false;
    /// Whether a block may be written again after write() threw Error(budget) because other threads held the memory.
    bool repeatable = true;
    /// What holds a block, where blocks are copied one after another: kept from one copy to the next of the same
    /// thread, between the same arrays, because the system takes as long to give memory as a chunk to be decoded.
    NDArray* memory = nullptr;
};

/// Copies `source` (or a selection of it) to `sink` and finishes the sink. Shapes and dtypes must agree (byte order
/// apart). A temporary file (in $TMPDIR, else /var/tmp) is used if a compressed file would otherwise be read several
/// times, or chunks decoded more than twice. Blocks follow the sink, so that each destination chunk is written once. A
/// budget below one chunk per thread lowers the number of threads; one below a single chunk throws Error(budget),
/// naming the minimum.
void copy_array(const ArraySource& source, ArraySink& sink, const CopyOptions& options = {});

/// A note with the budget that helps, if copy_array() would work with only one thread of several because the memory
/// allowed holds no more. Throws Error(budget) as copy_array().
[[nodiscard]] std::optional<Note> one_thread_note(const ArrayInfo& source, const ArrayInfo& sink,
                                                  const CopyOptions& options = {});

/// The block of the sink that is best copied by itself, as one of many that are copied in any order and by any process:
/// whole chunks or shards, of about `options.ample` bytes, and larger if fewer chunks of the source are then decoded
/// twice. Throws unsupported for a source of which parts cannot be read alone, and Error(budget) as copy_array().
[[nodiscard]] Shape independent_block(const ArrayInfo& source, const ArrayInfo& sink, const CopyOptions& options = {});

}  // namespace tessera
