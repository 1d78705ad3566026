// Arrays that are computed or joined from others, written as a copy is: what their options leave open follows the
// sources.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/calc.h>
#include <tessera/chunk_layout.h>
#include <tessera/copy.h>
#include <tessera/derived_source.h>
#include <tessera/reduce.h>
#include <tessera/value.h>

namespace tessera {

/// The sources of a result, and its defaults.
struct ComputedFrom {
    std::vector<std::string> paths = {};  ///< of sources that lie somewhere
    const ArraySource* like = nullptr;    ///< its format is the default; nullptr: the usual one
    Shape chunks = {};                    ///< empty: about 1 MiB
    std::vector<std::optional<std::string>> dimension_names = {};  ///< empty: none
    bool named = false;                                            ///< whether that is said of no dimensions, too
    std::optional<Value> fill = std::nullopt;                      ///< nullopt: the default one
};

/// The names of the first operand that has the result's dimensions, also where reductions leave one index of them, and
/// the chunks of the result.
[[nodiscard]] ComputedFrom calculated_from(const std::vector<CalcOperand>& operands, const ArraySource& made);
/// The names of the dimensions that are left.
[[nodiscard]] ComputedFrom reduced_from(const ArraySource& array, const ReduceOptions& options);
/// The chunks of the array, clipped to the result's shape, and its names.
[[nodiscard]] ComputedFrom coarsened_from(const ArraySource& array, const Shape& result);

/// The names of the array's dimensions, which the result has in other lengths.
[[nodiscard]] ComputedFrom regridded_from(const ArraySource& array);

/// The names of the first part, with none for a new axis, and its fill.
[[nodiscard]] ComputedFrom joined_from(const ArraySource& first, const JoinOptions& options);
/// The attributes of joined arrays of this shape: those of the first one that are not about its own dimensions or fill.
[[nodiscard]] Value attributes_of_joined(const ArraySource& first, const Shape& shape, const JoinOptions& options);

/// Completes what new arrays of this rank are wished to be. `destination` is no array file.
void complete_wishes(ArrayWishes& wishes, const std::string& destination, int rank, const ComputedFrom& from);

/// The attributes of a result for an array file, where names of dimensions are an attribute: those of its own, not of
/// the array that it was computed from.
[[nodiscard]] Value attributes_in_file(const ArraySource& source, const ComputedFrom& from);

/// Copies the source to the destination as copy_hierarchy does, with the defaults where `options` say nothing.
/// Throws also as require_apart.
CopiedHierarchy write_computed(const ArraySource& source, const std::string& destination, const ComputedFrom& from,
                               HierarchyOptions options);

/// ReduceOptions::memory for a thread of a copy with these options.
[[nodiscard]] std::int64_t computing_memory(const IoOptions& io);

}  // namespace tessera
