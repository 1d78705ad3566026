#include <tessera/picture.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <span>
#include <utility>

#include <tessera/array.h>
#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/numbers.h>
#include <tessera/slices.h>

#include "picture_plan.h"
#include "shown_elements.h"
#include "windows.h"

namespace tessera {

namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

Shape without(const Shape& shape, int dimension) {
    Shape rest;
    for (int d = 0; d < shape.rank(); ++d) {
        if (d != dimension) rest.push_back(shape[d]);
    }
    return rest;
}

/// Takes blocks of the slice, from several threads, and sums them up cell by cell.
class CellSink final : public ArraySink {
public:
    /// `plan` has windows of each dimension of the slice. Elements are read as `meaning.stored`.
    CellSink(ArrayInfo info, std::string name, const PicturePlan& plan, const Meaning& meaning,
             std::vector<double> missing)
        : info_(std::move(info)),
          name_(std::move(name)),
          stored_(meaning.stored),
          colours_(plan.colours ? plan.colours_at : -1),
          windows_(without(plan.windows, colours_)),
          missing_(std::move(missing)) {
        grid_ = coarsened(without(info_.shape, colours_), windows_);
        const std::int64_t channels = colours_ < 0 ? 1 : info_.shape[colours_];
        held_.add(static_cast<std::uint64_t>(byte_count(grid_, sizeof(Window)) * channels));
        cells_.resize(static_cast<std::size_t>(element_count(grid_) * channels));
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    void finish() override {}

    void write(const Region& region, const ArrayView& in, const IoOptions& /*io*/) override {
        if (region.empty()) return;
        if (colours_ < 0) return add(region, in, 0);
        const Region plane(without(region.start, colours_), without(region.extent, colours_));
        for (std::int64_t k = 0; k < region.extent[colours_]; ++k) {
            ArrayView channel = in;
            channel.data += k * in.strides[colours_];
            channel.shape = plane.extent;
            channel.strides = without(in.strides, colours_);
            add(plane, channel, region.start[colours_] + k);
        }
    }

    /// Cell i in C order, of one channel of colours.
    [[nodiscard]] const Window& at(std::int64_t i, std::int64_t channel = 0) const {
        return cells_[static_cast<std::size_t>(channel * element_count(grid_) + i)];
    }
    [[nodiscard]] const Shape& grid() const { return grid_; }

private:
    void add(const Region& region, const ArrayView& in, std::int64_t channel) {
        Region box = region;  // of cells
        for (int d = 0; d < region.rank(); ++d) {
            box.start[d] = region.start[d] / windows_[d];
            box.extent[d] = (region.start[d] + region.extent[d] - 1) / windows_[d] - box.start[d] + 1;
        }
        const MemoryHold held(static_cast<std::uint64_t>(byte_count(box.extent, sizeof(Window))));
        std::vector<Window> part(static_cast<std::size_t>(box.count()));
        NumberRows rows(stored_);
        const bool flat = region.rank() == 1;
        const int across = flat ? 0 : 1;
        for (std::int64_t i = 0; i < (flat ? 1 : region.extent[0]); ++i) {
            const std::int64_t row = flat ? 0 : (region.start[0] + i) / windows_[0] - box.start[0];
            Window* const cells = part.data() + row * box.extent[across] - box.start[across];
            rows.reals(in.data + (flat ? 0 : i * in.strides[0]), in.strides[across], region.extent[across],
                       [&](const double* numbers, std::int64_t first, std::int64_t n) {
                           for_each_window(region.start[across] + first, n, windows_[across],
                                           [&](std::int64_t cell, std::int64_t at, std::int64_t count) {
                                               cells[cell].add(numbers + at, count, missing_);
                                           });
                       });
        }
        merge(box, part, channel * element_count(grid_));
    }

    void merge(const Region& box, const std::vector<Window>& part, std::int64_t first) {
        const bool flat = box.rank() == 1;
        const int across = flat ? 0 : 1;
        const std::lock_guard lock(mutex_);
        for (std::int64_t i = 0; i < (flat ? 1 : box.extent[0]); ++i) {
            const std::int64_t to = first + (flat ? 0 : (box.start[0] + i) * grid_[1]) + box.start[across];
            for (std::int64_t j = 0; j < box.extent[across]; ++j) {
                cells_[static_cast<std::size_t>(to + j)].merge(
                    part[static_cast<std::size_t>(i * box.extent[across] + j)]);
            }
        }
    }

    ArrayInfo info_;
    std::string name_;
    DType stored_;
    int colours_;  ///< the dimension of the slice that holds them, or -1
    Shape windows_, grid_;
    std::vector<double> missing_;
    MemoryHold held_;
    std::mutex mutex_;
    std::vector<Window> cells_;
};

/// The slice with windows of one element: those that the steps of the selection pick.
NDArray read_stepped(const ArraySource& source, const Selection& selection, const DType& dtype, const IoOptions& io) {
    NDArray elements(dtype, selection.full_shape());
    read_selection_into(source, selection, elements.view(), io);
    return std::move(elements).reshaped(selection.shape());
}

/// The sink has the source's chunks, so that it receives one chunk per block.
ArrayInfo slice_info(const ArrayInfo& info, const PicturePlan& plan) {
    ArrayInfo slice{.dtype = native_dtype(info.dtype), .shape = plan.selection.shape(), .chunks = {}};
    if (plan.stepped || !plan.selection.is_region() || info.chunks.rank() != info.shape.rank()) return slice;
    for (int d = 0; d < info.shape.rank(); ++d) {
        const Selection::Axis& axis = plan.selection.axes()[static_cast<std::size_t>(d)];
        if (axis.dropped) continue;
        slice.chunks.push_back(info.chunks[d]);
        slice.chunk_offset.push_back(axis.start % info.chunks[d]);
    }
    return slice;
}

std::string text_attribute(const Value& attributes, std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
        const Value* value = attributes.find(key);
        if (value != nullptr && value->is_string()) return value->as_string();
    }
    return "";
}

/// What becomes of cells: how their elements are reduced, and decoded.
struct Decoding {
    Coarsening with = Coarsening::mean;
    LinearPart decoded;
    bool marks_nan = false;

    [[nodiscard]] CellState state(const Window& cell) const {
        if (cell.count > 0) return CellState::value;
        return cell.has_missing || marks_nan ? CellState::missing : CellState::nan;
    }
};

/// Calls each(row, column, number of the cell in C order of the array's dimensions).
template <class Each>
void for_each_cell(const Picture& picture, const Each& each) {
    const Shape cells{picture.rows.cells(), picture.columns.cells()};
    const bool turned = !picture.line && picture.rows.dimension > picture.columns.dimension;
    for (std::int64_t i = 0; i < cells[0]; ++i) {
        for (std::int64_t j = 0; j < cells[1]; ++j) {
            each(static_cast<std::size_t>(i * cells[1] + j), turned ? j * cells[0] + i : i * cells[1] + j);
        }
    }
}

/// Copies the sink's cells, whose dimensions are in the array's order, to the rows and columns of the picture.
void take_cells(const CellSink& sink, Picture& picture, const Decoding& how) {
    const Shape cells = picture.values.shape();
    if (picture.line) {
        picture.low = NDArray(DType::of<double>(), cells);
        picture.high = NDArray(DType::of<double>(), cells);
    }
    const auto values = picture.values.values<double>();
    const auto states = picture.states.values<std::uint8_t>();
    for_each_cell(picture, [&](std::size_t to, std::int64_t from) {
        const Window& cell = sink.at(from);
        values[to] = how.decoded(cell.value(how.with));
        // The mean of both infinities is undefined.
        const bool undefined = cell.count > 0 && values[to] != values[to];
        states[to] = static_cast<std::uint8_t>(undefined ? CellState::nan : how.state(cell));
        if (!picture.line) return;
        const bool any = cell.count > 0;
        std::pair ends{any ? how.decoded(cell.low) : nothing, any ? how.decoded(cell.high) : nothing};
        if (how.decoded.scale < 0) std::swap(ends.first, ends.second);
        picture.low.values<double>()[to] = ends.first;
        picture.high.values<double>()[to] = ends.second;
    });
}

/// The same of an array of colours. What is not opaque shines on white.
void take_colours(const CellSink& sink, Picture& picture, const Decoding& how, const ColourAxis& axis) {
    constexpr double white = 255;
    constexpr std::array<double, 3> luminance{0.2126, 0.7152, 0.0722};
    picture.colours.emplace(DType::of<std::uint8_t>(), Shape{picture.rows.cells(), picture.columns.cells(), 3});
    const auto levels = picture.colours->values<std::uint8_t>();
    const auto level = [&](const Window& cell) {
        return cell.count == 0 ? 0 : white * std::clamp(cell.value(how.with) / axis.full, 0.0, 1.0);
    };
    for_each_cell(picture, [&](std::size_t to, std::int64_t from) {
        Window all;
        for (std::int64_t k = 0; k < axis.count; ++k) all.merge(sink.at(from, k));
        const double opaque = axis.count == 4 && sink.at(from, 3).count > 0 ? level(sink.at(from, 3)) / white : 1;
        double sum = 0;
        for (std::size_t k = 0; k < 3; ++k) {
            const double shown =
                std::round(white + (level(sink.at(from, static_cast<std::int64_t>(k))) - white) * opaque);
            levels[3 * to + k] = static_cast<std::uint8_t>(shown);
            sum += luminance.at(k) * shown;
        }
        const CellState state = how.state(all);
        picture.states.values<std::uint8_t>()[to] = static_cast<std::uint8_t>(state);
        picture.values.values<double>()[to] = state == CellState::value ? sum : nothing;
    });
}

/// The picture without its cells.
Picture described(const ArraySource& source, const Meaning& meaning, const PicturePlan& plan,
                  const PictureOptions& options) {
    const bool dates = options.dates && meaning.has_datetimes();
    Picture picture{.name = source.name(),
                    .slice = plan.slice,
                    .dtype = dates ? decoded_dtype(meaning) : meaning.decoded(),
                    .stored_dtype = source.info().dtype,
                    .rows = plan.rows,
                    .columns = plan.columns,
                    .line = plan.line,
                    .sampled = plan.sampled,
                    .how = plan.how};
    if (picture.dtype == meaning.held) picture.dtype = source.info().dtype;
    const Value attributes = source.attribute_values();
    picture.label = text_attribute(attributes, {"long_name", "standard_name"});
    if (!is_time(picture.dtype)) picture.units = text_attribute(attributes, {"units", "unit"});
    if (!meaning.missing.empty() || meaning.marks_nan) picture.missing_name = "missing";
    const Shape cells{plan.rows.cells(), plan.columns.cells()};
    picture.values = NDArray(DType::of<double>(), cells);
    picture.states = NDArray(DType::of<std::uint8_t>(), cells);
    return picture;
}

}  // namespace

double Picture::value(std::int64_t row, std::int64_t column) const {
    return values.values<double>()[static_cast<std::size_t>(row * columns.cells() + column)];
}

CellState Picture::state(std::int64_t row, std::int64_t column) const {
    return static_cast<CellState>(
        states.values<std::uint8_t>()[static_cast<std::size_t>(row * columns.cells() + column)]);
}

bool Picture::has(CellState state) const {
    const std::span<const std::uint8_t> all = states.values<std::uint8_t>();
    return std::ranges::count(all, static_cast<std::uint8_t>(state)) > 0;
}

bool has_picture(const DType& dtype) {
    return is_number(dtype) || is_time(dtype);
}

void take_logarithms(Picture& picture) {
    if (is_time(picture.dtype)) throw unsupported("{}: times have no logarithm", picture.name);
    if (picture.colours) {
        throw unsupported("{}: colours have no logarithm; a selection such as '..., 0' shows one of them",
                          picture.name);
    }
    const std::span<std::uint8_t> states = picture.states.values<std::uint8_t>();
    const auto take = [&](NDArray& cells, std::size_t i) {
        double& v = cells.values<double>()[i];
        const bool positive = v > 0;
        v = positive ? std::log10(v) : std::numeric_limits<double>::quiet_NaN();
        return positive;
    };
    bool any = false;
    for (std::size_t i = 0; i < states.size(); ++i) {
        const bool value = states[i] == static_cast<std::uint8_t>(CellState::value);
        const bool high = picture.line && take(picture.high, i);
        if (picture.line && !take(picture.low, i) && high)
            picture.low.values<double>()[i] = picture.high.values<double>()[i];
        if (take(picture.values, i) || !value) continue;
        states[i] = static_cast<std::uint8_t>(CellState::missing);
        any = true;
    }
    if (any)
        picture.missing_name = picture.missing_name.empty() ? "not above 0" : picture.missing_name + ", or not above 0";
    picture.logarithmic = true;
}

Picture read_picture(const ArraySource& source, const PictureOptions& options, const IoOptions& io) {
    const ArrayInfo info = source.info();
    if (!has_picture(info.dtype)) {
        throw unsupported("{}: elements of {} are no numbers that a picture could show", source.name(),
                          info.dtype.to_string());
    }
    const Meaning meaning = shown_meaning(source, options.raw);
    const PicturePlan plan = plan_picture(source, meaning, options);
    Picture picture = described(source, meaning, plan, options);
    const ArrayInfo slice = slice_info(info, plan);
    const std::string missing = options.raw && options.missing == "auto" ? "none" : options.missing;
    CellSink sink(slice, source.name(), plan, meaning, missing_codes(source, meaning, missing));
    if (plan.stepped) {
        const NDArray elements = read_stepped(source, plan.selection, slice.dtype, io);
        sink.write(Region::whole(slice.shape), elements.view(), io);
    } else {
        copy_array(source, sink, {.io = io, .selection = plan.selection, .ample = passing_block, .repeatable = false});
    }
    const Decoding how{reduction_of_codes(meaning, plan.with), linear_part(meaning, options.dates),
                       meaning.marks_nan && missing == "auto"};
    if (plan.colours) {
        take_colours(sink, picture, how, *plan.colours);
    } else {
        take_cells(sink, picture, how);
    }
    return picture;
}

}  // namespace tessera
