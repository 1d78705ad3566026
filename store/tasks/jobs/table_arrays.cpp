#include "table_arrays.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/array_file.h>
#include <tessera/conventions.h>
#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/csv_line.h>
#include <tessera/derived_source.h>
#include <tessera/dialect.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/locate.h>
#include <tessera/numbers.h>
#include <tessera/shared_source.h>
#include <tessera/where.h>

#include "fill_attribute.h"
#include "table_cells.h"

namespace tessera {

namespace {

using Cells = std::shared_ptr<const TableCells>;
using Names = std::vector<std::string>;

Value named_dimensions(const Names& names) {
    const DimensionNames all(names.begin(), names.end());
    Value attributes = Value::object();
    attributes.set(dimensions_attribute, dimension_names_json(all));
    return attributes;
}

/// Integers as float64, of which some are missing. Throws for one that it does not hold.
void widen(const DType& from, const std::byte* elements, std::int64_t n, std::byte* to) {
    with_integer(from, [&](auto one) {
        using T = decltype(one);
        for (std::int64_t i = 0; i < n; ++i) {
            const T value = load_number<T>(elements, i);
            const auto real = static_cast<double>(value);
            // At 2^63 and 2^64 the way back does not exist.
            constexpr double end = static_cast<double>(std::numeric_limits<T>::max());
            if ((sizeof(T) == 8 && real >= end) || static_cast<T>(real) != value) {
                throw invalid_argument("some cells are missing, and float64, which has NaN, does not hold {}", value)
                    .advising(Action::fill, "or with `missing`, which says what stands for them", {});
            }
            store_number(to, i, real);
        }
    });
}

/// What a column is as an array.
struct Column {
    Field field;
    DType dtype;           ///< of the array
    ElementBytes missing;  ///< of a cell without a row; empty: there is none
};

class ColumnSource final : public ArraySource {
public:
    ColumnSource(Cells cells, Column column, Value attributes)
        : cells_(std::move(cells)),
          column_(std::move(column)),
          attributes_(std::move(attributes)),
          name_(fmt::format("{}::{}", cells_->table().name(), column_.field.name)) {}

    [[nodiscard]] ArrayInfo info() const override {
        return {.dtype = column_.dtype, .shape = cells_->shape(), .chunks = {}};
    }
    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] Value attribute_values() const override { return attributes_; }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& /*io*/) const override {
        if (region.empty()) return;
        const std::shared_ptr<const NDArray> elements = cells_->column(column_.field);
        NDArray block(column_.dtype, region.extent);
        std::byte* to = block.bytes().data();
        const std::int64_t run = region.extent[region.extent.rank() - 1];
        Index at = region.start;
        for (std::int64_t left = element_count(region.extent); left > 0; left -= run) {
            read_run(*elements, first_cell(at), run, to);
            to += run * column_.dtype.size();
            for (int d = at.rank() - 2; d >= 0; --d) {
                if (++at[d] < region.start[d] + region.extent[d]) break;
                at[d] = region.start[d];
            }
        }
        copy_elements(block.view(), out);
    }

private:
    [[nodiscard]] std::int64_t first_cell(const Index& at) const {
        std::int64_t cell = 0;
        for (int d = 0; d < at.rank(); ++d) cell = cell * cells_->shape()[d] + at[d];
        return cell;
    }

    void read_run(const NDArray& elements, std::int64_t first, std::int64_t count, std::byte* to) const {
        const std::int64_t size = column_.dtype.size();
        if (!column_.missing.empty()) {
            for (std::int64_t i = 0; i < count; ++i) std::ranges::copy(column_.missing, to + i * size);
        }
        const DType& from = elements.dtype();
        const std::byte* const bytes = elements.bytes().data();
        cells_->visit(first, count, [&](std::int64_t i, std::int64_t row) {
            const std::byte* const element = bytes + row * from.size();
            if (from == column_.dtype) {
                std::copy_n(element, size, to + i * size);
            } else {
                widen(from, element, 1, to + i * size);
            }
        });
    }

    Cells cells_;
    Column column_;
    Value attributes_;
    std::string name_;
};

/// What stands for a missing element, if anything does.
ElementBytes missing_of(const DType& dtype, const std::optional<std::string>& given) {
    switch (dtype.kind()) {
        case Kind::integer:
        case Kind::unsigned_integer:
            return given ? element_from_text(dtype, *given) : ElementBytes();
        case Kind::real:
        case Kind::bfloat16:
        case Kind::complex:
            return element_from_text(dtype, given.value_or("NaN"));
        case Kind::datetime:
        case Kind::timedelta:
            return element_from_text(dtype, "NaT");
        case Kind::text:
        case Kind::bytes:
            return zero_element(dtype);
        default:
            return {};
    }
}

bool is_whole_number(const DType& dtype) {
    return dtype.kind() == Kind::integer || dtype.kind() == Kind::unsigned_integer;
}

/// Makes the recipes of a table's arrays.
class TableDivider {
public:
    TableDivider(const Recipe& recipe, std::shared_ptr<const ArraySource> table, Names dims)
        : recipe_(recipe), dims_(std::move(dims)), dtype_(table->info().dtype) {
        require_columns();
        const bool rows_alone = recipe.view()->where.has_value();
        const std::int64_t rows = table->info().shape[0];
        const std::string path = rows_alone ? std::string() : std::get<CopyRecipe>(recipe.make).source.path;
        auto where = [path, rows](std::int64_t row) {
            const auto* const format = path.empty() ? nullptr : named_array_file_format(path);
            const bool text = format != nullptr && format->name == "csv";
            if (!text) return fmt::format("row {}", row);
            return fmt::format("line {}", csv_line(*open_file(path), row, rows));
        };
        cells_ = std::make_shared<const TableCells>(std::move(table), dims_, std::move(where));
    }

    DividedRecipe divide() {
        DividedRecipe divided;
        divided.groups.push_back({.name = ""});
        divided.consolidated = true;
        divided.names_dimensions = true;
        for (std::size_t d = 0; d < dims_.size(); ++d) {
            auto values = held_source(cells_->coordinate(d), name_of(dims_[d]), named_dimensions({dims_[d]}));
            divided.arrays.push_back({dims_[d], copy_of(encode_cf(std::move(values)), {})});
        }
        for (const Field& field : dtype_.fields()) {
            if (std::ranges::count(dims_, field.name) > 0) continue;
            View view = *recipe_.view();
            view.where.reset();
            view.order.clear();
            divided.arrays.push_back({field.name, copy_of(column(field), std::move(view))});
        }
        if (divided.arrays.size() > dims_.size()) return divided;
        throw invalid_argument("dims: all columns of {} are named, and none is left that has values",
                               cells_->table().name());
    }

private:
    [[nodiscard]] std::string name_of(const std::string& column) const {
        return fmt::format("{}::{}", cells_->table().name(), column);
    }

    static Recipe copy_of(std::shared_ptr<const ArraySource> array, View view) {
        return {.make = CopyRecipe{.source = {.array = std::move(array)}, .view = std::move(view)}};
    }

    void require_columns() const {
        for (const Field& field : dtype_.fields()) {
            const bool plain = field.shape.rank() == 0 && field.dtype.kind() != Kind::structure &&
                               field.dtype.kind() != Kind::raw && !field.dtype.is_variable();
            if (!plain) {
                throw unsupported("column '{}': its elements of {} become no array of a group", field.name,
                                  field.dtype.to_string());
            }
            const bool names_array = !field.name.starts_with('.') && field.name.find('/') == std::string::npos;
            if (!names_array) throw unsupported("column '{}': no array of a group has such a name", field.name);
        }
        for (const std::string& name : dims_) {
            const auto& dtype = std::ranges::find(dtype_.fields(), name, &Field::name)->dtype;
            if (dtype.kind() != Kind::complex) continue;
            throw unsupported("column '{}': complex numbers are no coordinates", name);
        }
    }

    [[nodiscard]] std::unique_ptr<ArraySource> column(const Field& field) const {
        Column made{.field = field, .dtype = field.dtype.with_order(native_order), .missing = {}};
        const std::optional<std::string>& given = recipe_.missing;
        const bool number = is_number(made.dtype);
        Value attributes = named_dimensions(dims_);
        if (cells_->lacks() && is_whole_number(made.dtype) && !given) made.dtype = DType::of<double>();
        made.missing = missing_of(made.dtype, given);
        if (cells_->lacks() && made.missing.empty()) {
            throw unsupported("{}: some cells have no row, and {} has nothing that stands for missing ones",
                              name_of(field.name), made.dtype.to_string());
        }
        if (number && given && !made.missing.empty()) {
            attributes.set(fill_attribute, element_to_value(made.dtype, made.missing.data()));
        }
        if (made.dtype.kind() == Kind::datetime) attributes.set(fill_attribute, "NaT");
        return encode_cf(std::make_unique<ColumnSource>(cells_, std::move(made), std::move(attributes)));
    }

    const Recipe& recipe_;
    Names dims_;
    DType dtype_;
    Cells cells_;
};

/// The table that is copied; null: it is none.
std::shared_ptr<const ArraySource> table_of(const Recipe& recipe) {
    const auto& source = std::get<CopyRecipe>(recipe.make).source;
    const auto is_table = [](const ArraySource& array) {
        const ArrayInfo info = array.info();
        return info.shape.rank() == 1 && info.dtype.kind() == Kind::structure;
    };
    if (source.array) return is_table(*source.array) ? source.array : nullptr;
    const auto* const format = named_array_file_format(source.path);
    if (format != nullptr && format->groups != nullptr) return nullptr;  // netCDF and its like have no tables
    const Located at = locate(source.path);
    if (at.kind == PathKind::group || at.kind == PathKind::folder || at.kind == PathKind::nothing) return nullptr;
    Recipe reading = recipe;
    const bool text = at.format != nullptr && at.format->name == "csv";
    if (text && !reading.missing) reading.missing = "nan";
    std::shared_ptr<const ArraySource> table = open_readable_source(at, reading_options(reading, at));
    return is_table(*table) ? table : nullptr;
}

}  // namespace

std::optional<DividedRecipe> arrays_of_table(const Recipe& recipe) {
    const View* const view = recipe.view();
    if (view == nullptr || view->order.empty() || !std::holds_alternative<CopyRecipe>(recipe.make)) return std::nullopt;
    std::shared_ptr<const ArraySource> table = table_of(recipe);
    if (!table) return std::nullopt;
    Names dims;
    std::vector<std::string> columns;
    for (const Field& field : table->info().dtype.fields()) columns.push_back(field.name);
    const auto is_column = [&](const auto& name) { return name && std::ranges::count(columns, *name) > 0; };
    if (view->order.size() == 1 && !is_column(view->order.front())) return std::nullopt;
    for (const auto& name : view->order) {
        if (!is_column(name)) {
            throw invalid_argument("dims: {} has no column '{}'; its columns are {}", table->name(), name.value_or(""),
                                   fmt::join(columns, ", "));
        }
        dims.push_back(*name);
    }
    if (recipe.selection || view->points || view->coordinates || view->cf) {
        throw invalid_argument("{}: not of a table that becomes arrays; copy a part of these afterwards",
                               recipe.selection ? "selection"
                               : view->points   ? "points"
                               : view->cf       ? "cf"
                                                : "coordinates");
    }
    if (view->where) table = where_source(shared_source(table), *view->where);
    return TableDivider(recipe, std::move(table), std::move(dims)).divide();
}

}  // namespace tessera
