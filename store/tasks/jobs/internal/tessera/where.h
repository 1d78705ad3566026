// Rows of a table, or elements of any other array, that meet a condition.
#pragma once

#include <memory>
#include <string_view>

#include <tessera/array_io.h>
#include <tessera/parallel.h>

namespace tessera {

/// The rows of a table (structures, one dimension) for which a condition holds, in their order. The condition is an
/// expression as of calc_source(), with the table's fields as operands: "(close > 100) & (volume > 0)". It is computed
/// here, which reads the table once; the result holds 8 bytes for each row. Throws invalid_argument for other arrays,
/// an expression that is no Boolean, and as calc_source(); budget if the rows are too many.
[[nodiscard]] std::unique_ptr<ArraySource> where_source(std::unique_ptr<ArraySource> table, std::string_view condition,
                                                        const IoOptions& io = {});

/// An array of numbers or times in which elements are missing for which a condition does not hold: an expression as of
/// find_elements(), about what elements stand for. The elements are codes as the array's are. Missing is its own
/// marker, or NaN or NaT; integers without a marker become int64 with `_FillValue`. Chunks in which nothing can match
/// are not read: which ones is found out here, by an index of them (with `by_index`) and by what is stored. Throws
/// invalid_argument for other elements and as find_elements(); unsupported where no element can be missing.
[[nodiscard]] std::unique_ptr<ArraySource> masked_source(std::unique_ptr<ArraySource> array, std::string_view condition,
                                                         const IoOptions& io = {}, bool by_index = true);

/// One of the two, by the array's elements.
[[nodiscard]] std::unique_ptr<ArraySource> rows_or_elements_where(std::unique_ptr<ArraySource> array,
                                                                  std::string_view condition, const IoOptions& io = {});

}  // namespace tessera
