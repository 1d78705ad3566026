// Our own decoder of blosc frames. It works block by block, straight into the destination. See blosc_frame.cpp.
#pragma once

#include <cstdint>
#include <functional>

#include <tessera/byte_io.h>
#include <tessera/pipeline.h>

#include "byte_runs.h"

namespace tessera {

/// The sizes and flags at the front of a frame.
struct BloscHeader {
    std::uint8_t compressor_version = 0;
    std::uint8_t flags = 0;
    std::uint32_t typesize = 0;
    std::uint32_t nbytes = 0;     ///< decoded
    std::uint32_t blocksize = 0;  ///< decoded, of every block but the last
    std::uint32_t cbytes = 0;     ///< of the frame
};

/// Reads and checks the first 16 of `available` bytes. Throws corrupt if they are no frame header, or if the frame is
/// longer than `available`.
[[nodiscard]] BloscHeader read_blosc_header(ByteSpan front, std::uint64_t available);

/// Decodes the blocks that `runs` touch, straight to their destinations. If the source is not in memory, reads only
/// those blocks and the front of the frame (at most 4 KiB if that holds its list of blocks). Returns false if the frame
/// is damaged or its layout is unusual; c-blosc then decides which. The destinations are then indeterminate. Throws
/// corrupt if the header is invalid or differs from `decoded_size`.
[[nodiscard]] bool decode_blosc_runs(const ByteSource& frame, std::uint64_t decoded_size, const ByteRuns& runs,
                                     CodecScratch& scratch);

/// Encodes the given block as a frame of one block, with the settings of the whole frame.
using EncodeBlock = std::function<void(ByteSpan block, Buffer& frame)>;

/// Sets `out` to the frame that encoding the whole chunk would give. `frame` is the old frame, `runs` lead to the new
/// bytes, and `ours` is the header of frames that this codec encodes. Only the blocks that `runs` touch are decoded and
/// encoded. Returns false if the frame was written in another way, if every block is touched and keeps old bytes, or if
/// the blocks depend on each other: when hardly any room is saved, c-blosc counts it from block to block.
[[nodiscard]] bool edit_blosc_frame(ByteSpan frame, const BloscHeader& ours, const ByteRuns& runs,
                                    const EncodeBlock& encode, CodecScratch& scratch, Buffer& out);

}  // namespace tessera
