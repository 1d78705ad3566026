// The files in `.tessera/parity/`: the root of a seal with parity, and the indices of its segments. Private to the
// store module. The layout is in tools/docs/parity.md, byte by byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/seal.h>

#include "seal_mark.h"
#include "sha256.h"

namespace tessera {

/// Below what is sealed.
inline constexpr int parity_roots = 3;
/// Exists in that folder while a first seal is written. Without it, the remains of a killed run would look like a seal
/// that lost its roots.
inline constexpr std::string_view unfinished_parity = "unfinished";

/// A file as it was sealed.
struct SealedFile {
    std::string path;  ///< below what is sealed
    std::uint64_t size = 0;
    std::int64_t modified = 0;  ///< nanoseconds since 1970
    std::uint32_t mode = 0;     ///< permissions
    Sha256 sum{};

    friend bool operator==(const SealedFile&, const SealedFile&) = default;
};

/// Bytes of one file that lie in one block.
struct Piece {
    std::uint32_t file = 0;  ///< its number in the segment
    std::uint32_t block = 0;
    std::uint64_t offset = 0;  ///< in the file
    std::uint32_t length = 0;
    std::uint32_t place = 0;  ///< in the block
    std::uint32_t crc = 0;
};

/// The index of a segment.
struct Segment {
    std::uint32_t block_size = 0;
    std::uint32_t rows = 1;    ///< k: blocks of a group
    std::uint32_t parity = 0;  ///< m: parity blocks of a group
    std::uint32_t groups = 1;
    std::uint32_t blocks = 0;
    std::vector<SealedFile> files;
    std::vector<Piece> pieces;              ///< sorted by file, then by offset
    std::vector<std::uint32_t> parity_crc;  ///< of row i, group g at i * groups + g

    [[nodiscard]] std::uint32_t group_of(const Piece& piece) const { return piece.block % groups; }
    [[nodiscard]] std::uint32_t row_of(const Piece& piece) const { return piece.block / groups; }
};

/// A segment's entry in the root.
struct SegmentName {
    Sha256 sum{};  ///< of its index
    std::uint64_t index_size = 0;
    std::uint32_t parity = 0;

    friend bool operator==(const SegmentName&, const SegmentName&) = default;
};

struct ParityRoot {
    Redundancy redundancy;
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
    std::int64_t sealed = 0;  ///< nanoseconds since 1970
    Sha256 manifest{};
    std::vector<SegmentName> segments;
};

/// Where row `row` of a segment lies, below what is sealed.
[[nodiscard]] std::string parity_key(const Sha256& sum, std::uint32_t row);
[[nodiscard]] std::string root_key(int copy);
/// Whether the folder of parity may have a file of this name. Anything else there is not ours.
[[nodiscard]] bool is_parity_file(std::string_view name);
/// Whether it is the name of a row of a segment.
[[nodiscard]] bool is_segment_file(std::string_view name);
/// Where the parity block of a group lies in the file of its row.
[[nodiscard]] std::uint64_t parity_offset(const Segment& segment, std::uint64_t index_size, std::uint32_t group);

/// The bytes of its index, also before its parity is computed.
[[nodiscard]] std::uint64_t segment_index_size(const Segment& segment);
[[nodiscard]] Buffer encode_segment_index(const Segment& segment);
/// The SHA-256 at the end of such an index.
[[nodiscard]] Sha256 index_sum(ByteSpan index);
/// A segment, and what the root says of it.
struct NamedSegment {
    SegmentName name;
    Segment segment;
};
/// The index with which a parity file begins, checked: its SHA-256, its sizes, its names; that pieces lie within their
/// files and blocks and do not overlap. Throws corrupt or unsupported.
[[nodiscard]] NamedSegment read_named_segment(const ByteSource& file);

[[nodiscard]] Buffer encode_root(const ParityRoot& root);
/// Throws corrupt or unsupported.
[[nodiscard]] ParityRoot read_root(const ByteSource& file);

/// zlib's CRC-32.
[[nodiscard]] std::uint32_t crc32_of(ByteSpan bytes, std::uint32_t before = 0);
/// Fills `bytes` from offset `at` on. Returns false if they cannot be read or have another CRC-32.
[[nodiscard]] bool read_intact(const ByteSource& file, std::uint64_t at, Buffer& bytes, std::uint32_t crc);

}  // namespace tessera
