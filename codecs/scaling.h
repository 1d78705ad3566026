// Arithmetic between arrays and one Python number, as in NumPy 1, for the filters that scale.
#pragma once

#include "numeric_filter.h"

namespace tessera {

enum class Operation : std::uint8_t { add, subtract, multiply, divide };

/// Applies `operation` with `number` to `a` (integers or floats, host order). The result has NumPy's dtype, which is
/// wider if the number needs it. Divisions give floats.
[[nodiscard]] NDArray compute(NDArray a, Operation operation, const Value& number);

/// Rounds floats to whole numbers, half to even; leaves integers unchanged.
[[nodiscard]] NDArray rounded(NDArray a);

}  // namespace tessera
