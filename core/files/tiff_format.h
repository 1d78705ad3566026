// The structure of TIFF files, classic and BigTIFF: their directories, and the images that these make up. Private to
// core/files. It takes no library: libtiff is only asked to decode.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/byte_io.h>
#include <tessera/dtype.h>
#include <tessera/error.h>
#include <tessera/memory_account.h>
#include <tessera/value.h>

namespace tessera {

/// Numbers of TIFF's tags.
enum class TiffTag : std::uint16_t {
    subfile = 254,
    width = 256,
    height = 257,
    bits = 258,
    compression = 259,
    photometric = 262,
    fill_order = 266,
    description = 270,
    strip_offsets = 273,
    samples = 277,
    rows_per_strip = 278,
    strip_sizes = 279,
    x_resolution = 282,
    y_resolution = 283,
    planar = 284,
    resolution_unit = 296,
    software = 305,
    date_time = 306,
    predictor = 317,
    color_map = 320,
    tile_width = 322,
    tile_height = 323,
    tile_offsets = 324,
    tile_sizes = 325,
    sub_directories = 330,
    extra_samples = 338,
    sample_format = 339,
    subsampling = 530,
    pixel_scale = 33550,
    tie_points = 33922,
    transformation = 34264,
    geo_keys = 34735,
    geo_doubles = 34736,
    geo_texts = 34737,
    gdal_metadata = 42112,
    gdal_nodata = 42113,
};

/// One tag of a directory: where its values are.
struct TiffEntry {
    std::uint16_t type = 0;
    std::uint64_t count = 0;
    std::uint64_t offset = 0;  ///< of the first value in the file
};

enum class TiffCompression : std::uint16_t { none = 1, jpeg = 7, deflate = 8, old_deflate = 32946, zstd = 50000 };
inline constexpr int tiff_ycbcr = 6;  ///< a photometric interpretation

/// One directory: a page.
struct TiffPage {
    std::uint64_t directory = 0;  ///< its offset in the file
    std::uint32_t subfile = 0;    ///< bit 0: of reduced resolution; bit 2: a mask
    std::int64_t width = 0, height = 0, samples = 1;
    std::int64_t chunk_width = 0, chunk_height = 0;  ///< of a tile; of a strip, which is as wide as the page
    int bits = 1, compression = 1, photometric = 0, predictor = 1;
    bool planar = false;    ///< each sample is a plane of its own
    bool tiled = false;     ///< tiles, which are padded; else strips, of which the last may be short
    bool reversed = false;  ///< the bits of each byte
    DType dtype{};          ///< in the byte order of the file
    TiffEntry offsets{}, sizes{};
    std::uint64_t moved = 0;             ///< added to the offsets, for images without a directory
    std::vector<std::size_t> smaller{};  ///< numbers of the pages that SubIFDs name
    std::optional<Error> error{};        ///< why its elements cannot be read

    /// Chunks along one plane, and in all.
    [[nodiscard]] std::int64_t chunks_across() const { return ceil_div(width, chunk_width); }
    [[nodiscard]] std::int64_t chunks_down() const { return ceil_div(height, chunk_height); }
    [[nodiscard]] std::int64_t chunk_count() const { return chunks_across() * chunks_down() * (planar ? samples : 1); }
    /// Rows that chunk `row` from the top stores.
    [[nodiscard]] std::int64_t rows_of(std::int64_t row) const;
    /// Bytes of a row of a chunk, decoded.
    [[nodiscard]] std::int64_t row_bytes() const;
    [[nodiscard]] bool same_layout(const TiffPage& o) const;
};

/// Pages of one layout as one array: (page…, band if planar, y, x, band if not).
struct TiffImage {
    std::string name;                  ///< "image", "overview/1", "mask", "series/2"
    std::vector<std::size_t> pages{};  ///< numbers
    Shape shape{};
    Shape chunks{};
    std::vector<std::string> dimensions{};  ///< names; "" for one without a name
};

struct TiffFile {
    bool big_endian = false, is_big = false;
    std::vector<TiffPage> pages;
    std::vector<TiffImage> images;
    std::map<TiffTag, TiffEntry> tags;  ///< all of the first page
    MemoryHold held;                    ///< memory of all of this
};

/// Throws corrupt or unsupported, naming the file. What concerns one page is in its `error`.
[[nodiscard]] TiffFile read_tiff(const ByteSource& file);

/// Where the chunks of a page lie; of size 0: they were never written.
struct TiffPlaces {
    std::vector<std::uint64_t> offsets, sizes;
    MemoryHold held;
};
[[nodiscard]] TiffPlaces tiff_places(const ByteSource& file, const TiffFile& tiff, const TiffPage& page);

/// Numbers of an entry from `first` on, at most `count`; rationals as quotients. Throws corrupt.
[[nodiscard]] std::vector<std::uint64_t> tiff_integers(const ByteSource& file, const TiffFile& tiff,
                                                       const TiffEntry& entry);
[[nodiscard]] std::vector<double> tiff_doubles(const ByteSource& file, const TiffFile& tiff, const TiffEntry& entry);
/// A text without NULs at its end, as UTF-8.
[[nodiscard]] std::string tiff_text(const ByteSource& file, const TiffEntry& entry);

}  // namespace tessera
