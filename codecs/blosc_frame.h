// Our own decoder of blosc frames: block by block, straight to where the bytes go. See blosc_frame.cpp.
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

/// Reads and checks the first 16 of `available` bytes. Throws corrupt when there is no frame in them, or one that is
/// longer than what is there.
[[nodiscard]] BloscHeader read_blosc_header(ByteSpan front, std::uint64_t available);

/// Decodes the blocks that `runs` touch and puts their bytes in place; of a source that is not in memory, reads only
/// the front of the frame (at most 4 KiB, where its list of blocks has room in that) and those blocks. Returns false
/// for a frame that is not laid out as writers do it, or is damaged: c-blosc then says what it is. What runs lead to is
/// indeterminate then. Throws corrupt when the header is none, or `decoded_size` is not what it says.
[[nodiscard]] bool decode_blosc_runs(const ByteSource& frame, std::uint64_t decoded_size, const ByteRuns& runs,
                                     CodecScratch& scratch);

/// Makes a frame of one block, of which it is given the bytes: blosc's call with the settings of the whole.
using EncodeBlock = std::function<void(ByteSpan block, Buffer& frame)>;

/// Gives `out` the frame that encoding the whole gives where `frame` holds it but for the bytes that `runs` lead to;
/// `ours` is the header of what is encoded in such a way. Only the blocks that they touch are decoded and encoded.
/// Returns false where the frame was written in another way, or where its blocks depend on each other: where hardly any
/// room is saved, c-blosc counts it from block to block.
[[nodiscard]] bool edit_blosc_frame(ByteSpan frame, const BloscHeader& ours, const ByteRuns& runs,
                                    const EncodeBlock& encode, CodecScratch& scratch, Buffer& out);

}  // namespace tessera
