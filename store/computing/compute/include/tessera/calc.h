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
/// (calc_functions()). Operands whose dimensions all have names are matched by them: a dimension of a name has one
/// length, and its coordinates, where arrays lie in different groups, the same values. Others are broadcast by
/// position, and so are all to a given `shape`. Dtypes are promoted as in NumPy 2: with literals, float32 stays
/// float32; with whole literals, integers keep their size. Inexact operations throw: int64 with uint64 (float64 in
/// NumPy), a literal outside its integer dtype, and an integer raised to a negative power. Integers wrap around;
/// integer division by zero gives 0. The result is broadcast to `shape`.
///
/// Datetimes and timedeltas can be added, subtracted, compared and selected (where, minimum …), in the largest unit
/// that divides the units of both operands, as in NumPy; NaT stays NaT. Every other operation throws, and so do months
/// with days. Reading a time that does not fit its unit throws too.
///
/// Text (U, S, or of any length) is compared with text between quotes: "station == 'Graz'".
///
/// Reductions of reduce_source() stand in it with the names or numbers of dimensions, or with groups of
/// group_by_time(), and leave missing elements out: "t - mean(t, time)", "where(p95(t, by=season) < t, 1, 0)",
/// "t.mean(axis=0)". What they reduce keeps its dimensions, so that their results are broadcast back to it. `month`
/// is the month of the year there, "year-month" each of them. They are computed when they are first read, and are then
/// kept: `reducing` bytes in memory, in a temporary file if they are more. 0: they are refused.
///
/// Throws invalid_argument, with the position in the text, for an expression that cannot be parsed, unknown names,
/// unused operands, shapes that do not broadcast, and operations that are undefined for their operands.
[[nodiscard]] std::unique_ptr<ArraySource> calc_source(std::string_view expression, std::vector<CalcOperand> operands,
                                                       const std::optional<Shape>& shape = std::nullopt,
                                                       std::int64_t reducing = std::int64_t{64} << 20);

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

/// The names of all functions.
[[nodiscard]] std::vector<std::string_view> calc_functions();

}  // namespace tessera
