#include <tessera/picture.h>

#include <algorithm>
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
#include <tessera/packing.h>
#include <tessera/slices.h>

#include "missing.h"
#include "picture_plan.h"
#include "windows.h"

namespace tessera {

namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

CellState state_of(const Window& cell) {
    if (cell.count > 0) return CellState::value;
    return cell.has_missing ? CellState::missing : CellState::nan;
}

/// Takes blocks of the slice, from several threads, and sums them up cell by cell.
class CellSink final : public ArraySink {
public:
    /// `windows`: of each dimension of the slice.
    CellSink(ArrayInfo info, std::string name, const Shape& windows, std::vector<double> missing)
        : info_(std::move(info)), name_(std::move(name)), windows_(windows), missing_(std::move(missing)) {
        grid_ = coarsened(info_.shape, windows_);
        held_.add(static_cast<std::uint64_t>(byte_count(grid_, sizeof(Window))));
        cells_.resize(static_cast<std::size_t>(element_count(grid_)));
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    void finish() override {}

    void write(const Region& region, const ArrayView& in, const IoOptions& /*io*/) override {
        if (region.empty()) return;
        Region box = region;  // of cells
        for (int d = 0; d < region.rank(); ++d) {
            box.start[d] = region.start[d] / windows_[d];
            box.extent[d] = (region.start[d] + region.extent[d] - 1) / windows_[d] - box.start[d] + 1;
        }
        const MemoryHold held(static_cast<std::uint64_t>(byte_count(box.extent, sizeof(Window))));
        std::vector<Window> part(static_cast<std::size_t>(box.count()));
        NumberRows rows(info_.dtype);
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
        merge(box, part);
    }

    [[nodiscard]] const Window& at(std::int64_t i) const { return cells_[static_cast<std::size_t>(i)]; }
    [[nodiscard]] const Shape& grid() const { return grid_; }

private:
    void merge(const Region& box, const std::vector<Window>& part) {
        const bool flat = box.rank() == 1;
        const int across = flat ? 0 : 1;
        const std::lock_guard lock(mutex_);
        for (std::int64_t i = 0; i < (flat ? 1 : box.extent[0]); ++i) {
            const std::int64_t to = (flat ? 0 : (box.start[0] + i) * grid_[1]) + box.start[across];
            for (std::int64_t j = 0; j < box.extent[across]; ++j) {
                cells_[static_cast<std::size_t>(to + j)].merge(
                    part[static_cast<std::size_t>(i * box.extent[across] + j)]);
            }
        }
    }

    ArrayInfo info_;
    std::string name_;
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

/// Copies the sink's cells, whose dimensions are in the array's order, to the rows and columns of the picture.
void take_cells(const CellSink& sink, Picture& picture, Coarsening with) {
    const Shape cells{picture.rows.cells(), picture.columns.cells()};
    picture.values = NDArray(DType::of<double>(), cells);
    picture.states = NDArray(DType::of<std::uint8_t>(), cells);
    if (picture.line) {
        picture.low = NDArray(DType::of<double>(), cells);
        picture.high = NDArray(DType::of<double>(), cells);
    }
    const bool turned = !picture.line && picture.rows.dimension > picture.columns.dimension;
    const auto values = picture.values.values<double>();
    const auto states = picture.states.values<std::uint8_t>();
    for (std::int64_t i = 0; i < cells[0]; ++i) {
        for (std::int64_t j = 0; j < cells[1]; ++j) {
            const Window& cell = sink.at(turned ? j * cells[0] + i : i * cells[1] + j);
            const auto to = static_cast<std::size_t>(i * cells[1] + j);
            values[to] = cell.value(with);
            // The mean of both infinities is undefined.
            const bool undefined = cell.count > 0 && values[to] != values[to];
            states[to] = static_cast<std::uint8_t>(undefined ? CellState::nan : state_of(cell));
            if (!picture.line) continue;
            picture.low.values<double>()[to] = cell.count > 0 ? cell.low : nothing;
            picture.high.values<double>()[to] = cell.count > 0 ? cell.high : nothing;
        }
    }
}

/// Cells as what the stored numbers stand for. Means of packed numbers are packed means.
void unpack(Picture& picture, const Packing& packing) {
    if (picture.line && packing.scale < 0) std::swap(picture.low, picture.high);
    const auto states = picture.states.values<std::uint8_t>();
    for (NDArray* cells : {&picture.values, &picture.low, &picture.high}) {
        if (cells->count() != picture.values.count()) continue;
        const auto values = cells->values<double>();
        for (std::size_t i = 0; i < values.size(); ++i) {
            const bool outside = (packing.valid_min && values[i] < *packing.valid_min) ||
                                 (packing.valid_max && values[i] > *packing.valid_max);
            if (outside && cells == &picture.values && states[i] == static_cast<std::uint8_t>(CellState::value)) {
                states[i] = static_cast<std::uint8_t>(CellState::missing);
            }
            values[i] = outside ? nothing : packing.decoded(values[i]);
        }
    }
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
    const PicturePlan plan = plan_picture(source, options);
    Picture picture{.name = source.name(),
                    .slice = plan.slice,
                    .dtype = info.dtype,
                    .rows = plan.rows,
                    .columns = plan.columns,
                    .line = plan.line,
                    .sampled = plan.sampled,
                    .how = plan.how};
    const Value attributes = source.attribute_values();
    picture.label = text_attribute(attributes, {"long_name", "standard_name"});
    if (!is_time(info.dtype)) picture.units = text_attribute(attributes, {"units", "unit"});

    const ArrayInfo slice = slice_info(info, plan);
    CellSink sink(slice, source.name(), plan.windows, missing_values(source, options.missing));
    if (plan.stepped) {
        const NDArray elements = read_stepped(source, plan.selection, slice.dtype, io);
        sink.write(Region::whole(slice.shape), elements.view(), io);
    } else {
        copy_array(source, sink, {.io = io, .selection = plan.selection, .ample = passing_block, .repeatable = false});
    }
    take_cells(sink, picture, plan.with);
    if (const auto packing = packing_of(source)) unpack(picture, *packing);
    return picture;
}

}  // namespace tessera
