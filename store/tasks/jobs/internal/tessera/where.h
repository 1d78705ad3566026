// Rows of a table that meet a condition.
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

}  // namespace tessera
