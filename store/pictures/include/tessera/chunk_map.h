// Which chunks of an array are stored, how well each compresses, and which are damaged, as a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/picture.h>
#include <tessera/place.h>

namespace tessera {

/// Chunks of a slice. With shards a chunk is an inner chunk here.
struct ChunkMap {
    /// A cell is a chunk, or a block of chunks; its value the ratio of decoded to stored bytes. Its state is `missing`
    /// where no chunk is stored, and `nan` where one is damaged. Axes count chunks.
    Picture picture;
    std::int64_t chunks = 0;     ///< looked for
    std::int64_t stored = 0;     ///< of these
    std::int64_t damaged = 0;    ///< of the stored ones
    std::int64_t unchecked = 0;  ///< stored, and not decoded: more than `limit`, or not for this build to decode
    std::uint64_t bytes = 0;     ///< of the stored ones, as stored
    std::uint64_t decoded_bytes = 0;
    struct Damage {
        Index chunk;
        std::string text;
    };
    std::vector<Damage> damage;  ///< in C order
};

/// The map of the array at a place. Of `options` selection, axes, height, width and limit count; the selection is of
/// elements, and every chunk that it touches along the dimensions shown is looked at. Chunks are decoded up to the
/// limit, evenly chosen beyond it. Throws not_found where there is no array, and as read_picture().
[[nodiscard]] ChunkMap read_chunk_map(const Place& place, const PictureOptions& options, const IoOptions& io = {});

}  // namespace tessera
