// Computing the parity of a segment, and writing it. Private to the store module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>

#include "parity_index.h"

namespace tessera {

/// A file's facts in the file system.
struct FileFacts {
    std::uint64_t size = 0;
    std::int64_t modified = 0;
    std::uint32_t mode = 0644;
    std::int64_t placed = 0;  ///< when the file got its name, or anything else of it last changed; 0: unknown
};
/// Nothing where the key is absent. Of stores that are no directory: what stamp() says.
[[nodiscard]] std::optional<FileFacts> facts_of(const ReadableStore& store, const std::string& key);
/// The free space on the disk for this user; nullopt in stores that are no directory.
[[nodiscard]] std::optional<std::uint64_t> space_of(const ReadableStore& store);
/// Gives a file that lies directly below the store's directory, behind no link, a time and a mode.
void set_facts(const ReadableStore& store, const std::string& key, std::int64_t modified, std::uint32_t mode);

/// Reads the files of a segment once, in parallel. Returns its parity blocks, row after row, and sets `parity_crc`.
/// With `sealing` it sets the CRC of each piece, and the sums of the files that lie in this segment wholly; else it
/// throws corrupt for a piece with another CRC. Throws invalid_argument for a file that has another size now.
[[nodiscard]] Buffer encode_parity(const PlaceView& place, Segment& segment, bool sealing, const IoOptions& io);

/// Writes one row of parity, with the index.
void write_parity(const PlaceRef& place, const Segment& segment, ByteSpan index, ByteSpan parity, std::uint32_t row);

}  // namespace tessera
