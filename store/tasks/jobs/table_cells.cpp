#include "table_cells.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/parallel.h>
#include <tessera/selection.h>

namespace tessera {

namespace {

const Field& field_named(const DType& dtype, const std::string& name) {
    return *std::ranges::find(dtype.fields(), name, &Field::name);
}

/// Calls each(row, its bytes) for all rows, in host order.
template <class Each>
void for_each_row(const ArraySource& table, const Each& each) {
    constexpr std::int64_t some_memory = std::int64_t{1} << 20;
    constexpr std::int64_t in_step = 1024;  // rows of a .csv are found by their thousands
    const ArrayInfo info = table.info();
    const DType dtype = info.dtype.with_order(native_order);
    std::int64_t at_once = std::max<std::int64_t>(1, some_memory / std::max<std::int64_t>(1, dtype.size()));
    if (at_once > in_step) at_once -= at_once % in_step;
    for (std::int64_t first = 0; first < info.shape[0]; first += at_once) {
        require_not_stopped();
        const std::int64_t n = std::min(at_once, info.shape[0] - first);
        NDArray rows(dtype, {n});
        table.read_into({{first}, {n}}, rows.view(), {});
        for (std::int64_t i = 0; i < n; ++i) each(first + i, rows.bytes().data() + i * dtype.size());
    }
}

}  // namespace

TableCells::TableCells(std::shared_ptr<const ArraySource> table, const std::vector<std::string>& dims,
                       std::function<std::string(std::int64_t)> where)
    : table_(std::move(table)), where_(std::move(where)), rows_(table_->info().shape[0]) {
    Codes codes = number_rows(dims);
    shape_ = Shape::filled(static_cast<int>(dims.size()), 0);
    for (std::size_t d = 0; d < dims.size(); ++d) shape_[static_cast<int>(d)] = values_[d].count();
    require_room(dims);
    if (!ascends(codes)) sort_coordinates(codes);
    if (!lacks() && ascends(codes)) return;
    places_.reserve(static_cast<std::size_t>(rows_));
    for (std::int64_t row = 0; row < rows_; ++row) places_.push_back({cell_of(codes, row), row});
    const auto before = [](const Place& a, const Place& b) {
        return a.cell != b.cell ? a.cell < b.cell : a.row < b.row;
    };
    if (!std::ranges::is_sorted(places_, before)) std::ranges::sort(places_, before);
    require_one_each(dims);
}

TableCells::Codes TableCells::number_rows(const std::vector<std::string>& dims) {
    const DType dtype = table_->info().dtype.with_order(native_order);
    std::vector<std::int64_t> offsets;
    for (const std::string& name : dims) {
        const Field& field = field_named(dtype, name);
        values_.emplace_back(field.dtype);
        offsets.push_back(field.offset);
    }
    Codes codes(dims.size());
    for (auto& of_dimension : codes) of_dimension.reserve(static_cast<std::size_t>(rows_));
    for_each_row(*table_, [&](std::int64_t row, const std::byte* bytes) {
        for (std::size_t d = 0; d < dims.size(); ++d) {
            const auto number = values_[d].number_of(bytes + offsets[d]);
            if (!number) throw corrupt("{}: {} has no {}, and so no cell", table_->name(), where_(row), dims[d]);
            codes[d].push_back(*number);
        }
    });
    return codes;
}

std::int64_t TableCells::cell_of(const Codes& codes, std::int64_t row) const {
    std::int64_t cell = 0;
    for (std::size_t d = 0; d < codes.size(); ++d) {
        cell = cell * shape_[static_cast<int>(d)] + codes[d][static_cast<std::size_t>(row)];
    }
    return cell;
}

bool TableCells::ascends(const Codes& codes) const {
    std::int64_t last = -1;
    for (std::int64_t row = 0; row < rows_; ++row) {
        const std::int64_t cell = cell_of(codes, row);
        if (cell <= last) return false;
        last = cell;
    }
    return true;
}

void TableCells::sort_coordinates(Codes& codes) {
    for (std::size_t d = 0; d < codes.size(); ++d) {
        if (values_[d].ascend_or_descend()) continue;
        const auto places = values_[d].sort();
        for (std::uint32_t& code : codes[d]) code = places[code];
    }
}

void TableCells::require_room(const std::vector<std::string>& dims) const {
    // A mistake in a coordinate makes rows that fit no others: n of them make n cells to the power of the dimensions.
    constexpr double most_for_a_row = 1000;
    constexpr double always = 1 << 24;
    double cells = 1;
    for (const std::int64_t length : shape_) cells *= static_cast<double>(length);
    if (cells <= always || cells <= most_for_a_row * static_cast<double>(rows_)) return;
    std::string lengths;
    for (std::size_t d = 0; d < dims.size(); ++d) {
        lengths += fmt::format("{}{} of {}", d == 0 ? "" : ", ", shape_[static_cast<int>(d)], dims[d]);
    }
    throw invalid_argument("{}: {} rows for {:.3g} cells ({}): they are no grid; name fewer columns in dims",
                           table_->name(), rows_, cells, lengths);
}

void TableCells::require_one_each(const std::vector<std::string>& dims) const {
    std::optional<std::pair<std::int64_t, std::int64_t>> first;
    for (std::size_t i = 1; i < places_.size(); ++i) {
        if (places_[i].cell != places_[i - 1].cell) continue;
        if (!first || places_[i].row < first->second) first = {places_[i - 1].row, places_[i].row};
    }
    if (!first) return;
    const auto at = std::ranges::find(places_, first->second, &Place::row);
    std::string cell;
    std::int64_t left = at->cell;
    for (std::size_t d = dims.size(); d-- > 0; left /= shape_[static_cast<int>(d)]) {
        const auto number = static_cast<std::uint32_t>(left % shape_[static_cast<int>(d)]);
        cell = fmt::format("{}={}{}{}", dims[d], element_to_text(values_[d].dtype(), values_[d].at(number)),
                           cell.empty() ? "" : ", ", cell);
    }
    throw corrupt("{}: {} and {} are of one cell, {}", table_->name(), where_(first->first), where_(first->second),
                  cell);
}

CountedVector<TableCells::Place>::const_iterator TableCells::from(std::int64_t cell) const {
    return std::ranges::lower_bound(places_, cell, {}, &Place::cell);
}

NDArray TableCells::coordinate(std::size_t dimension) const {
    return values_[dimension].values();
}

std::shared_ptr<const NDArray> TableCells::column(const Field& field) const {
    const std::lock_guard lock(mutex_);
    if (kept_ && kept_name_ == field.name) return kept_;
    kept_.reset();
    const DType table = table_->info().dtype.with_order(native_order);
    const Field& native = field_named(table, field.name);
    auto read = std::make_shared<NDArray>(native.dtype, Shape{rows_});
    std::byte* to = read->bytes().data();
    for_each_row(*table_, [&](std::int64_t /*row*/, const std::byte* bytes) {
        to = std::copy_n(bytes + native.offset, native.dtype.size(), to);
    });
    kept_name_ = field.name;
    return kept_ = std::move(read);
}

}  // namespace tessera
