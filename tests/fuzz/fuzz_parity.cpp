// The index of a segment of parity, and its root. Their SHA-256 is set right, so that what stands before it is looked
// at.
#include <tessera/byte_io.h>
#include <tessera/error.h>
#include <tessera/little_endian.h>

#include <algorithm>

#include "fuzz.h"
#include "parity_index.h"

using namespace tessera;

namespace {

/// The input with the size and the SHA-256 that it claims.
Buffer made_right(ByteSpan input) {
    Buffer bytes(input);
    bytes.resize(input.size() + 32);
    if (input.size() >= 24) store_little<std::uint64_t>(bytes.data() + 16, bytes.size());
    Hasher hasher;
    hasher.add(bytes.data(), input.size());
    const Sha256 sum = hasher.finish();
    std::ranges::copy(std::as_bytes(std::span(sum)), bytes.data() + input.size());
    return bytes;
}

void check_segment(const Segment& segment) {
    if (segment.rows + segment.parity > 255 || segment.parity_crc.size() != segment.parity * segment.groups) {
        __builtin_trap();
    }
    for (const Piece& piece : segment.pieces) {
        const bool in_file =
            piece.file < segment.files.size() && piece.offset + piece.length <= segment.files[piece.file].size;
        const bool in_block =
            segment.row_of(piece) < segment.rows && std::uint64_t{piece.place} + piece.length <= segment.block_size;
        if (!in_file || !in_block) __builtin_trap();
    }
    for (const SealedFile& file : segment.files) {
        if (file.path.empty() || file.path.front() == '/' || file.path.find("..") == 0) __builtin_trap();
    }
}

}  // namespace

void fuzz_one(ByteSpan input) {
    const auto source = memory_source(made_right(input), "parity");
    try {
        check_segment(read_named_segment(*source).segment);
    } catch (const Error&) {
        // what it must throw
    }
    try {
        const ParityRoot root = read_root(*source);
        if (root.segments.size() > input.size()) __builtin_trap();
    } catch (const Error&) {
        // what it must throw
    }
}
