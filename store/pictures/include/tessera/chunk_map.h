// A picture that shows which chunks of an array are stored, how well each compresses, and which are damaged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/picture.h>
#include <tessera/place.h>

namespace tessera {

/// Chunks of a slice. With shards a chunk is an inner chunk here.
struct ChunkMap {
    /// A cell is a chunk, or a block of chunks. Its value is the ratio of decoded to stored bytes. Its state is
    /// `missing` if no chunk is stored, and `nan` if one is damaged. Axes count chunks.
    Picture picture;
    std::int64_t chunks = 0;     ///< chunks that were looked for
    std::int64_t stored = 0;     ///< of these
    std::int64_t damaged = 0;    ///< of the stored ones
    std::int64_t unchecked = 0;  ///< stored, but not decoded: beyond `limit`, or not decodable by this build
    std::uint64_t bytes = 0;     ///< of the stored ones, as stored
    std::uint64_t decoded_bytes = 0;
    struct Damage {
        Index chunk;
        std::string text;
    };
    std::vector<Damage> damage;  ///< in C order
};

/// The map of the array at a place. Of `options`, only selection, axes, height, width and limit are used. The selection
/// is of elements; every chunk that it touches along the dimensions shown is examined. If the chunks exceed the limit,
/// an evenly spaced part of them is decoded. Throws not_found if there is no array, and as read_picture().
[[nodiscard]] ChunkMap read_chunk_map(const Place& place, const PictureOptions& options, const IoOptions& io = {});

}  // namespace tessera
