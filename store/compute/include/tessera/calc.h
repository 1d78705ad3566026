// An expression over arrays, in NumPy's notation, as an array.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>

namespace tessera {

/// An array that an expression names.
struct CalcOperand {
    std::string name;
    std::shared_ptr<const ArraySource> array;
};

/// The value of an expression such as "where(a < 0, 0, a * 0.1 + b)", computed block by block as it is read.
///
/// Operators and functions mean what they mean in NumPy, bit for bit but for exp, log, powers and trigonometry, which
/// are the C library's: + - * / // % ** comparisons & | ^ ~ << >>, where, minimum, maximum, clip, abs, isnan …
/// (calc_functions()). Operands are broadcast. Dtypes are promoted as in NumPy 2: float32 stays float32 beside Python's
/// numbers, and integers stay integers of their size beside whole ones. What would not be exact is refused: int64
/// beside uint64 (float64 in NumPy), a number that its integer dtype does not hold, and an integer to a negative power.
/// Integers wrap, and divided by zero give 0. `shape`: what the result is broadcast to.
///
/// Throws invalid_argument, with the place in the text, for an expression that cannot be parsed, unknown names,
/// operands that are not used, shapes that do not broadcast, and operations that have no meaning for their operands.
[[nodiscard]] std::unique_ptr<ArraySource> calc_source(std::string_view expression, std::vector<CalcOperand> operands,
                                                       const std::optional<Shape>& shape = std::nullopt);

/// The names of the functions that there are.
[[nodiscard]] std::vector<std::string_view> calc_functions();

}  // namespace tessera
