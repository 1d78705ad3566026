// Tiles: squares of 256×256 numbers of any two axes of an array, at any scale, for viewers that pan and zoom.
//
//     const auto cache = std::make_shared<TileCache>(256 << 20);
//     const TileSource source(std::make_shared<Array>(array), cache, "elevation, first version");
//     const Tile tile = source.tile({.slice = {.rows = 0, .columns = 1}, .row_level = 3, .column_level = 3});
//
// A number represents a window of 2^row_level × 2^column_level elements. Windows begin at multiples of their size, so
// that windows of one level combine into those of the next; a window may span chunks. The contribution of a chunk is
// cached, at several levels, so that panning and zooming decode no chunk twice.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/ndarray.h>
#include <tessera/reduce.h>

namespace tessera {

struct Meaning;

/// The number of values along each side of a tile; fewer at the end of the array.
inline constexpr std::int64_t tile_side = 256;
/// The largest level: windows of 2^40 elements.
inline constexpr int most_tile_level = 40;

/// Two different dimensions, and the indices of a slice along all others. An empty `at` stands for zeros; the indices
/// of the two dimensions are ignored.
struct TileSlice {
    int rows = 0;
    int columns = 1;
    Index at = {};
};

struct TileRequest {
    TileSlice slice = {};
    int row_level = 0;
    int column_level = 0;
    std::int64_t row = 0;  ///< the tile's number along each dimension, from 0
    std::int64_t column = 0;
    Coarsening with = Coarsening::mean;  ///< of what codes stand for: mean, min, max or nearest
};

struct Tile {
    /// Little-endian, (rows, columns). NaN where all elements are NaN or NaT. Where no element is a number and not all
    /// are NaN, the first of TileSource::missing().
    NDArray values;
    /// Some chunks were not decoded, because they were too many. Each of them is shown as one value, from a few
    /// elements of the chunk or of one near it.
    bool sampled = false;
    std::int64_t decoded = 0;   ///< chunks that were decoded for this tile
    std::int64_t left = 0;      ///< chunks that were not decoded; repeating the request decodes more of them
    std::uint64_t version = 0;  ///< a hash of the versions of all chunks in the tile
};

/// A preview of a slice: a few elements of some chunks, at most 512.
struct TilePreview {
    NDArray values;               ///< f8, (rows, columns), as in a tile with `mean`
    std::int64_t row_length = 1;  ///< elements that one value represents; the last ones represent fewer
    std::int64_t column_length = 1;
};

/// Caches the contributions of chunks to tiles, within a number of bytes; the least recently used are evicted first.
/// Several sources may share one cache. Its memory counts against the account of the reading thread, and is freed when
/// that account is full. Thread rule: any thread may call any member.
class TileCache {
public:
    explicit TileCache(std::uint64_t bytes);
    ~TileCache();
    TileCache(const TileCache&) = delete;
    TileCache& operator=(const TileCache&) = delete;

    [[nodiscard]] std::uint64_t bytes() const;          ///< held now
    [[nodiscard]] std::int64_t chunks_decoded() const;  ///< ever, by sources that share this cache

private:
    friend class TileSource;
    std::unique_ptr<class TileStore> store_;
};

/// An array as tiles. Thread rule: any thread may call any member.
class TileSource {
public:
    /// `identity` names this array and, if its chunks are not files of a store, its version: sources with the same
    /// identity share the content of the cache. Throws unsupported if has_picture() is false, invalid_argument below
    /// two dimensions.
    TileSource(std::shared_ptr<const ArraySource> source, std::shared_ptr<TileCache> cache, std::string identity);
    ~TileSource();

    /// The dtype of a tile's values, little-endian. Floats, and integers of up to 32 bits, keep their dtype, except
    /// that f2 becomes f4, and the mean of integers is f4, or f8 for 32 bits. bool becomes u1; its mean is f4. All
    /// other dtypes become f8: integers of 64 bits are rounded, complex numbers become magnitudes, and times become
    /// counts of their unit.
    [[nodiscard]] DType dtype(Coarsening with, int row_level, int column_level) const;
    /// The codes that are excluded from means and extremes: see PictureOptions::missing.
    [[nodiscard]] const std::vector<double>& missing() const;
    /// What the numbers of tiles, which are codes and means of codes, stand for.
    [[nodiscard]] const Meaning& meaning() const;

    /// Reads a tile. Decodes at most 128 chunks or 512 MiB of them; if it would take more, the result is `sampled`.
    /// Shows each chunk in one version. Throws out_of_bounds for a tile outside the array, invalid_argument for other
    /// bad requests, unsupported for a compressed stream that is too large, cancelled (checked between chunks), and the
    /// errors of reading.
    [[nodiscard]] Tile tile(const TileRequest& request, const IoOptions& io = {}) const;
    /// Reads one codec block of each chunk, of at most 512 chunks that are evenly chosen.
    [[nodiscard]] TilePreview preview(const TileSlice& slice, const IoOptions& io = {}) const;

private:
    class Work;
    std::unique_ptr<const struct TileArray> array_;
};

}  // namespace tessera
