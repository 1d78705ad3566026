#include "coordinate_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/coordinates.h>
#include <tessera/copy_elements.h>
#include <tessera/dimensions.h>
#include <tessera/dtype.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/meaning.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/shape.h>
#include <tessera/slices.h>

namespace tessera {

namespace {

/// Calls each(region) for boxes that hold `count` elements from `first` on, in C order.
template <class Each>
void for_each_box(const Shape& shape, std::int64_t first, std::int64_t count, const Each& each) {
    const int rank = shape.rank();
    while (count > 0) {
        std::int64_t inside = 1;
        int d = rank - 1;
        while (d > 0 && first % (inside * shape[d]) == 0 && count >= inside * shape[d]) inside *= shape[d--];
        Region box(Index::filled(rank, 0), shape);
        std::int64_t left = first;
        for (int k = rank - 1; k >= 0; --k) {
            box.start[k] = left % shape[k];
            left /= shape[k];
        }
        for (int k = 0; k < d; ++k) box.extent[k] = 1;
        box.extent[d] = std::min(count / inside, shape[d] - box.start[d]);
        const std::int64_t n = element_count(box.extent);
        each(box, n);
        first += n;
        count -= n;
    }
}

class TableSource final : public ArraySource {
public:
    explicit TableSource(std::unique_ptr<ArraySource> array) {
        const ArrayInfo from = array->info();
        const DimensionNames names = dimension_names_of(*array);
        shape_ = from.shape;
        std::vector<Field> fields;
        std::int64_t size = 0;
        const auto add = [&](const std::string& name, const DType& dtype) {
            Field field;
            field.name = name;
            field.dtype = dtype;
            field.offset = size;
            fields.push_back(std::move(field));
            size += dtype.size();
        };
        for (int d = 0; d < shape_.rank(); ++d) {
            const std::string name = dimension_name(names, d);
            if (names.empty() || !names[static_cast<std::size_t>(d)]) {
                throw invalid_argument("{}: {} has no name, and so no coordinate", array->name(), name);
            }
            columns_.push_back(column(*array, name, shape_[d]));
            add(name, columns_.back().dtype());
        }
        const std::string own = last_of(array->name());
        elements_ = text_source(std::move(array));
        const DType dtype = native_dtype(elements_->info().dtype);
        if (dtype.is_variable() || dtype.kind() == Kind::structure) {
            throw unsupported("{}: elements of {} have no column in such a table", elements_->name(),
                              dtype.to_string());
        }
        add(own, dtype);
        info_ = {.dtype = DType::structure(std::move(fields), size), .shape = {element_count(shape_)}, .chunks = {}};
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return elements_->name(); }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        const std::int64_t most = std::max<std::int64_t>(1, (std::int64_t{4} << 20) / info_.dtype.size());
        for (std::int64_t done = 0; done < region.extent[0];) {
            const std::int64_t n = std::min(most, region.extent[0] - done);
            NDArray rows(info_.dtype, {n});
            fill(region.start[0] + done, n, rows.bytes().data(), io);
            copy_elements(rows.view(), out.part({{done}, {n}}));
            done += n;
        }
    }

private:
    static std::string last_of(const std::string& name) {
        const ArrayPath file = split_array_path(name);
        const std::string path = file.member.value_or(file.path.stem().string());
        return path.substr(path.rfind('/') + 1);
    }

    /// The coordinate of a dimension, as it is shown.
    static NDArray column(const ArraySource& array, const std::string& name, std::int64_t length) {
        if (auto shown = shown_coordinate(array, name, length)) return std::move(*shown);
        NDArray indices(DType::of<std::int64_t>(), {length});
        for (std::int64_t i = 0; i < length; ++i) indices.values<std::int64_t>()[static_cast<std::size_t>(i)] = i;
        return indices;
    }

    void fill(std::int64_t first, std::int64_t count, std::byte* rows, const IoOptions& io) const {
        const std::int64_t size = info_.dtype.size();
        const DType own = native_dtype(elements_->info().dtype);
        for_each_box(shape_, first, count, [&](const Region& box, std::int64_t n) {
            NDArray elements(own, box.extent);
            elements_->read_into(box, elements.view(), io);
            const std::byte* from = elements.bytes().data();
            Index at = box.start;
            for (std::int64_t i = 0; i < n; ++i, rows += size, from += own.size()) {
                put_row(at, from, own.size(), rows);
                for (int d = shape_.rank() - 1; d >= 0; --d) {
                    if (++at[d] < box.start[d] + box.extent[d]) break;
                    at[d] = box.start[d];
                }
            }
        });
    }

    void put_row(const Index& at, const std::byte* element, std::int64_t bytes, std::byte* row) const {
        for (std::size_t d = 0; d < columns_.size(); ++d) {
            const std::int64_t size = columns_[d].dtype().size();
            row = std::copy_n(columns_[d].bytes().data() + at[static_cast<int>(d)] * size, size, row);
        }
        std::copy_n(element, bytes, row);
    }

    Shape shape_;
    std::vector<NDArray> columns_;  ///< of each dimension
    std::unique_ptr<ArraySource> elements_;
    ArrayInfo info_;
};

}  // namespace

std::optional<NDArray> shown_coordinate(const ArraySource& array, const std::string& name, std::int64_t length) {
    auto beside = Coordinate::find(array, name, length) ? array_beside(array, name) : nullptr;
    if (beside == nullptr) return std::nullopt;
    const auto shown = text_source(std::move(beside));
    NDArray values(native_dtype(shown->info().dtype), {length});
    if (values.dtype().is_variable()) {
        throw unsupported("{}: text of variable length has no column in such a table", shown->name());
    }
    shown->read_into(Region::whole({length}), values.view(), {});
    return values;
}

std::unique_ptr<ArraySource> coordinate_table(std::unique_ptr<ArraySource> array) {
    return std::make_unique<TableSource>(std::move(array));
}

}  // namespace tessera
