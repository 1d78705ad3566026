// Pictures of arrays: a slice along two dimensions, or a line along one, reduced to as many cells as fit, and drawn.
//
// read_picture() reads no more than the picture needs, whatever the size of the array; draw_picture() turns it into
// pixels. A device with cells of its own (a terminal) draws them itself, with cell_colour().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/ndarray.h>
#include <tessera/reduce.h>
#include <tessera/shape.h>

namespace tessera {

struct AxisFacts;

/// One axis of a picture. Its cells are in the order of the array.
struct PictureAxis {
    int dimension = -1;       ///< of the array; -1 for the rows of a line, which has none
    std::string name;         ///< "y", or "axis 0"
    std::int64_t start = 0;   ///< index of the first element in the array
    std::int64_t step = 1;    ///< difference between the indices of neighbours
    std::int64_t count = 1;   ///< elements
    std::int64_t window = 1;  ///< elements that one cell represents; the last cell may represent fewer
    std::int64_t zoom = 1;    ///< pixels along one cell
    bool reversed = false;    ///< drawn from its last cell, so that north is up, and east on the right
    /// The coordinate that stands along the dimension; null: the indices.
    std::shared_ptr<const AxisFacts> facts = nullptr;
    [[nodiscard]] std::int64_t cells() const { return count / window + (count % window != 0 ? 1 : 0); }
    [[nodiscard]] std::int64_t pixels() const { return cells() * zoom; }
    /// The cell that is drawn at a pixel.
    [[nodiscard]] std::int64_t cell_at(std::int64_t pixel) const {
        return reversed ? cells() - 1 - pixel / zoom : pixel / zoom;
    }
    /// "longitude (°E)"; without a coordinate the name.
    [[nodiscard]] std::string title() const;
    /// The coordinate of an element of the axis, or its index.
    [[nodiscard]] std::string text(std::int64_t element) const;
};

enum class CellState : std::uint8_t {
    value,
    nan,      ///< all elements are NaN or NaT
    missing,  ///< no element is a number, and not all are NaN, or NaN is said to stand for missing ones
};

struct PictureOptions {
    std::string selection = {};  ///< NumPy's slices; dimensions that are not shown are taken at their middle
    /// The dimensions that are shown, by name or number: down and across, or one for a line. Empty: the last two
    /// dimensions with more than one element.
    std::vector<std::string> axes = {};
    std::int64_t height = 480;  ///< the largest height in pixels
    std::int64_t width = 640;
    std::int64_t line_width = 0;  ///< the largest width of a line; 0: as `width`
    /// The value of a cell: the mean, min or max of its elements, or nearest, which is the first one. nullopt: the mean
    /// if that takes no more than `limit`, else the first element.
    std::optional<Coarsening> with = std::nullopt;
    /// Elements that are shown differently, and excluded from means and ranges. "auto": those that are marked as
    /// missing
    /// (_FillValue, missing_value, nodata), and the fill value unless it is 0, but none with `raw`; "fill": the fill
    /// value; "none"; or a number.
    std::string missing = "auto";
    bool raw = false;   ///< the stored codes, not what they stand for
    bool dates = true;  ///< times that are counted by the attribute `units` become datetimes; else they stay counts
    /// An array of red, green and blue along its first or last dimension is shown in colours, unless `axes` are given.
    bool colours = true;
    /// The most that may be decoded, in bytes of elements. A picture that would take more shows fewer elements.
    std::int64_t limit = std::int64_t{2} << 30;
    /// The most chunks that may be looked for, stored or not, in the same way.
    std::int64_t most_chunks = 100'000;
};

/// A slice of an array as numbers: what elements stand for. Complex numbers are shown by their magnitude, times as
/// counts of their unit.
struct Picture {
    std::string name = {};    ///< of the array
    std::string slice = {};   ///< "[5, :, :]"
    DType dtype = {};         ///< of what elements stand for
    DType stored_dtype = {};  ///< of their codes
    std::string label = {};   ///< the quantity, from the attributes: "elevation"; may be empty
    std::string units = {};   ///< "m"; may be empty
    PictureAxis rows = {};
    PictureAxis columns = {};
    bool line = false;            ///< along one dimension, which is `columns`
    bool logarithmic = false;     ///< values, low and high are logarithms to the base 10
    bool sampled = false;         ///< not all elements were read, because that would have exceeded the limit
    std::string how = {};         ///< the meaning of a cell: "mean of 3×3 elements"; empty if it is one element
    NDArray values = {};          ///< f8, (cells of rows, cells of columns); NaN where the state is not `value`
    NDArray low = {}, high = {};  ///< for a line: the extremes of each cell
    /// u1, (cells of rows, cells of columns, 3): red, green and blue on white, where the array holds colours. `values`
    /// are their luminance then, from 0 to 255.
    std::optional<NDArray> colours = {};
    std::string nan_name = "NaN";  ///< names of the states in the legend
    std::string missing_name = "fill value";
    NDArray states = {};  ///< u1, CellState

    [[nodiscard]] double value(std::int64_t row, std::int64_t column) const;
    [[nodiscard]] CellState state(std::int64_t row, std::int64_t column) const;
    [[nodiscard]] bool has(CellState state) const;  ///< whether any cell has this state
};

/// Whether elements can be shown as numbers: all but text, bytes, structures, objects and x86 long doubles.
[[nodiscard]] bool has_picture(const DType& dtype);

/// Throws invalid_argument for axes that do not exist, an empty selection, and an array without dimensions; unsupported
/// if has_picture() is false; and the errors of reading.
[[nodiscard]] Picture read_picture(const ArraySource& source, const PictureOptions& options, const IoOptions& io = {});

/// Replaces the values of a picture by their logarithms to the base 10, for a logarithmic axis or colours. Values that
/// are not positive become missing. Throws unsupported for times.
void take_logarithms(Picture& picture);

/// Ten maps of even steps; `diverging`, which is centred on 0; `cyclic`, whose ends meet, for phases; and `labels`,
/// where neighbouring integers differ.
enum class ColourMap : std::uint8_t {
    viridis,
    plasma,
    inferno,
    magma,
    dusk,
    ocean,
    forest,
    copper,
    rose,
    grey,
    diverging,
    cyclic,
    labels,
    reversed = 0x80,  ///< added to one of these: from its other end
};
/// The words of the maps, in their order: "viridis", ….
[[nodiscard]] std::span<const std::string_view> colour_map_names();
/// One of these words, or one with "_r" at its end for the reversed map. Throws invalid_argument for any other.
[[nodiscard]] ColourMap parse_colour_map(std::string_view word);
/// A map without `reversed`.
[[nodiscard]] constexpr ColourMap forward_map(ColourMap map) {
    return static_cast<ColourMap>(static_cast<unsigned>(map) & 0x7FU);
}

struct Rgb {
    std::uint8_t red = 0, green = 0, blue = 0;
    friend bool operator==(const Rgb&, const Rgb&) = default;
};
/// The colour of `at`, from 0 to 1; outside this range, the colour of the nearer end.
[[nodiscard]] Rgb map_colour(ColourMap map, double at);
/// The colour of a value in a range. With `labels` the range does not matter: 0 is the background, and other integers
/// have one of 255 colours each.
[[nodiscard]] Rgb value_colour(ColourMap map, double value, std::pair<double, double> range);
/// The colour of NaN in every map.
inline constexpr Rgb nan_colour{235, 95, 225};

/// The values at the two ends of the colours. `range` is "" for the extremes, or LOW,HIGH, each a number or a
/// percentile of the cells' values: "-10,50", "2%,98%". Without a range the diverging map is centred on 0. Of a
/// logarithmic picture numbers are values, and the result is logarithms. Throws invalid_argument.
[[nodiscard]] std::pair<double, double> picture_range(const Picture& picture, std::string_view range, ColourMap map);
/// The position of a value in a range, from 0 to 1; 0.5 if both ends are equal.
[[nodiscard]] double place_in_range(double value, std::pair<double, double> range);
/// The colour of a cell whose state is `value`.
[[nodiscard]] Rgb cell_colour(const Picture& picture, std::int64_t row, std::int64_t column, ColourMap map,
                              std::pair<double, double> range);
/// Round coordinates or indices of an axis, at most `most`: calls mark(at, text) for each. `at` counts cells as they
/// are drawn: 0.5 is the middle of the first one. `letters`: longer dates are shortened.
void mark_axis(const PictureAxis& axis, std::int64_t most, std::int64_t letters,
               const std::function<void(double at, const std::string& text)>& mark);
/// A value as text for people: a date for times; else a number with enough digits to distinguish values that differ by
/// `step`.
[[nodiscard]] std::string picture_text(const Picture& picture, double value, double step);
/// Round values from `low` to `high`, at most `most` of them: multiples of 1, 2 or 5 times a power of ten.
struct Ticks {
    std::vector<double> at;
    double step = 1;
};
[[nodiscard]] Ticks round_ticks(double low, double high, int most, bool whole_numbers = false);

struct DrawOptions {
    ColourMap map = ColourMap::viridis;
    std::string range = {};  ///< see picture_range()
    int width = 960;         ///< of the whole drawing, at most
    int height = 720;
};

/// The smallest width and height that a drawing may have.
inline constexpr int least_drawing = 240;
inline constexpr int most_drawing = 8192;

/// The pixels (height, width) of a drawing of this size that are for the slice itself; request this size from
/// read_picture(). Throws invalid_argument for a size out of bounds.
[[nodiscard]] std::pair<std::int64_t, std::int64_t> drawing_room(const DrawOptions& options);
/// u1 pixels (height, width, 3): the picture with a title, coordinates or indices along its axes, a bar of colours, and
/// a legend for NaN and the fill value. `options` as for drawing_room().
[[nodiscard]] NDArray draw_picture(const Picture& picture, const DrawOptions& options);
/// The position (row, column) of the slice's first pixel in a drawing.
[[nodiscard]] std::pair<std::int64_t, std::int64_t> drawing_origin(const DrawOptions& options);

/// Counts of values in bins, as bars: bin i begins at start + i·width.
struct Bars {
    std::string title;
    std::string label;  ///< of the values
    std::string how;    ///< see Picture
    double start = 0;
    double width = 1;
    std::vector<std::int64_t> counts;
};
[[nodiscard]] NDArray draw_bars(const Bars& bars, const DrawOptions& options);

struct Place;

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
