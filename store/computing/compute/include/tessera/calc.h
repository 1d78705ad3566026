// An expression over arrays, in NumPy's notation, as an array.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array.h>
#include <tessera/array_io.h>
#include <tessera/derived_source.h>
#include <tessera/parallel.h>
#include <tessera/selection.h>

namespace tessera {

/// An array that an expression names.
struct CalcOperand {
    std::string name;
    std::shared_ptr<const ArraySource> array;
};

/// The value of an expression such as "where(a < 0, 0, a * 0.1 + b)", computed block by block as it is read.
///
/// Operators and functions give NumPy's results bit for bit, except exp, log, powers and trigonometry, which are the C
/// library's: + - * / // % ** comparisons & | ^ ~ << >>, where, minimum, maximum, clip, abs, isnan …
/// (calc_functions()). Operands are broadcast. Dtypes are promoted as in NumPy 2: with literals, float32 stays float32;
/// with whole literals, integers keep their size. Inexact operations throw: int64 with uint64 (float64 in NumPy), a
/// literal outside its integer dtype, and an integer raised to a negative power. Integers wrap around; integer division
/// by zero gives 0. The result is broadcast to `shape`.
///
/// Datetimes and timedeltas can be added, subtracted, compared and selected (where, minimum …), in the largest unit
/// that divides the units of both operands, as in NumPy; NaT stays NaT. Every other operation throws, and so do months
/// with days. Reading a time that does not fit its unit throws too.
///
/// Text (U, S, or of any length) is compared with text between quotes: "station == 'Graz'".
///
/// Throws invalid_argument, with the position in the text, for an expression that cannot be parsed, unknown names,
/// unused operands, shapes that do not broadcast, and operations that are undefined for their operands.
[[nodiscard]] std::unique_ptr<ArraySource> calc_source(std::string_view expression, std::vector<CalcOperand> operands,
                                                       const std::optional<Shape>& shape = std::nullopt);

struct InPlaceOptions {
    std::optional<Selection> selection = std::nullopt;  ///< what is changed; nullopt: everything
    Cast cast = Cast::same_kind;                        ///< for a value of another dtype than the array's
    bool keep_old = true;                               ///< for undo()
    /// The value is what elements stand for (decoded()), and is packed as the array's are; `cast` is then for arrays
    /// that are not packed. Else it is stored as it is.
    bool decoded = false;
    IoOptions io = {};
};

/// Gives the elements of `array` the value of an expression, broadcast to its shape, as one Edit: all of them, or none
/// if it fails. The array may be an operand. Throws as calc_source, Edit and reading. Returns the number of values that
/// changed.
std::int64_t calc_in_place(Array& array, std::string_view expression, std::vector<CalcOperand> operands,
                           const InPlaceOptions& options = {});

/// A reduction that an expression calls as NumPy's, and that it cannot have: "nanmean(a, axis=(0, 1))".
struct CalledReduction {
    std::string text;     ///< of the call
    std::string with;     ///< as parse_reduction reads it: "mean"
    std::string operand;  ///< "a"; empty if it is an expression
    std::string axes;     ///< "0,1"; empty for all
    bool skip_nan = false;
};
/// The first one in the text of an expression; nullopt if there is none.
[[nodiscard]] std::optional<CalledReduction> called_reduction(std::string_view expression);

/// The names of all functions.
[[nodiscard]] std::vector<std::string_view> calc_functions();

}  // namespace tessera
