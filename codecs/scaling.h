// Arrays and one Python number, as NumPy 1 computes with them: what the filters that scale share.
#pragma once

#include "numbers.h"

namespace tessera {

enum class Operation : std::uint8_t { add, subtract, multiply, divide };

/// `a` (integers or floats, host order) with `number` added, subtracted, …: in the dtype of the result that NumPy gives
/// them, which is wider where the number needs it. Divisions give floats.
[[nodiscard]] NDArray compute(NDArray a, Operation operation, const Value& number);

/// Floats rounded to whole numbers, half to even; integers as they are.
[[nodiscard]] NDArray rounded(NDArray a);

}  // namespace tessera
