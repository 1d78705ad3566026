// Tables whose columns hold coordinates and values, as arrays over these coordinates. Private to store/tasks/jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/counted.h>
#include <tessera/dtype.h>
#include <tessera/ndarray.h>
#include <tessera/shape.h>

#include "distinct_values.h"

namespace tessera {

/// Where each row of a table lies in an array. The coordinates are in the order of the rows if these go through the
/// cells in C order, or if they ascend, or as numbers descend; else they are sorted. Keeps at most 16 bytes for each
/// row, and the elements of one column, within the memory account of the threads that ask. Thread rule: const members
/// may be called from several threads at once.
class TableCells {
public:
    /// `table`: structures in one dimension. `dims`: names of fields. `where` says where a row is: "line 7". Throws
    /// corrupt for a missing coordinate and for two rows of one cell, naming both, and invalid_argument for far more
    /// cells than rows.
    TableCells(std::shared_ptr<const ArraySource> table, const std::vector<std::string>& dims,
               std::function<std::string(std::int64_t row)> where);

    [[nodiscard]] const ArraySource& table() const { return *table_; }
    [[nodiscard]] const Shape& shape() const { return shape_; }
    /// Whether there are cells without a row.
    [[nodiscard]] bool lacks() const { return rows_ < element_count(shape_); }
    /// The coordinate of a dimension.
    [[nodiscard]] NDArray coordinate(std::size_t dimension) const;
    /// The elements of a column in the order of the rows; those of the last one that was asked for are kept.
    [[nodiscard]] std::shared_ptr<const NDArray> column(const Field& field) const;
    /// Calls each(i, row) for the cells of a run in C order that have rows: the i-th from `first` on.
    template <class Each>
    void visit(std::int64_t first, std::int64_t count, const Each& each) const {
        if (places_.empty()) {  // every row at its place
            for (std::int64_t i = 0; i < count; ++i) each(i, first + i);
            return;
        }
        for (auto at = from(first); at != places_.end() && at->cell < first + count; ++at)
            each(at->cell - first, at->row);
    }

private:
    struct Place {
        std::int64_t cell, row;
    };
    using Codes = std::vector<CountedVector<std::uint32_t>>;  ///< by dimensions: the number of each row's coordinate
    [[nodiscard]] CountedVector<Place>::const_iterator from(std::int64_t cell) const;
    [[nodiscard]] Codes number_rows(const std::vector<std::string>& dims);
    [[nodiscard]] std::int64_t cell_of(const Codes& codes, std::int64_t row) const;
    [[nodiscard]] bool ascends(const Codes& codes) const;
    void sort_coordinates(Codes& codes);
    void require_room(const std::vector<std::string>& dims) const;
    void require_one_each(const std::vector<std::string>& dims) const;

    std::shared_ptr<const ArraySource> table_;
    std::function<std::string(std::int64_t)> where_;
    std::int64_t rows_;
    std::vector<DistinctValues> values_;  ///< of each dimension
    Shape shape_;
    CountedVector<Place> places_;  ///< in the order of the cells; empty: every row lies at its own number
    mutable std::mutex mutex_;
    mutable std::string kept_name_;
    mutable std::shared_ptr<const NDArray> kept_;
};

}  // namespace tessera
