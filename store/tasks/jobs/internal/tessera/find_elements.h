// The elements of an array that meet a condition.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/counted.h>
#include <tessera/ndarray.h>
#include <tessera/parallel.h>
#include <tessera/selection.h>
#include <tessera/value.h>

namespace tessera {

struct FindOptions {
    std::optional<Selection> selection = std::nullopt;  ///< only within this region
    bool raw = false;                                   ///< of the codes, not of what they stand for
    bool by_index = true;                               ///< leave out chunks that cannot match, by their index
    IoOptions io = {};
};

struct FoundElements {
    Shape shape;                                 ///< of the array
    CountedVector<std::int64_t> positions = {};  ///< of the elements, as numbers in C order of the array; ascending
    NDArray values = {};                         ///< one for each, in host order
    bool marks = false;         ///< values of missing_integer, or NaN of what was stored as integers, are missing
    std::int64_t left_out = 0;  ///< chunks, or inner chunks, that were not read, because none could match

    [[nodiscard]] Index index(std::size_t n) const;
    /// Whether an element is missing. Such ones meet no comparison but !=, as NaN does.
    [[nodiscard]] bool lacks(std::size_t n) const;
    /// All of them, a row each, as numpy.argwhere gives them.
    [[nodiscard]] NDArray indices() const;
};

/// The elements for which an expression of calc_source() is true, in which `value` is the array: "value > 40" or
/// "(value > 40) & (value < 50)". Comparisons with numbers, alone or joined by &, leave out the chunks of an indexed
/// array (tessera/chunk_index.h) in which no element can match. What is not stored is left out if it does not match.
/// Throws invalid_argument for an expression that is not true or false, and a selection with steps; unsupported where
/// missing ones stand beside integers that no float64 is equal to; budget if too many match.
[[nodiscard]] FoundElements find_elements(const ArraySource& array, std::string_view condition,
                                          const FindOptions& options = {});

/// Whether elements of a chunk, or with shards of an inner chunk, may meet such a condition: Booleans in the shape of
/// the grid. nullopt: nothing is known, and any may. Reads no chunk. Throws as find_elements().
[[nodiscard]] std::optional<NDArray> chunks_that_may_match(const ArraySource& array, std::string_view condition,
                                                           const FindOptions& options = {});

/// How found elements are shown: columns of text, and as JSON.
struct FoundColumn {
    std::string name;
    bool coordinate = false;
    std::vector<std::string> texts = {};
    Value json = Value::array();
};
/// The first `most` of them: a column for each index, for each coordinate that a dimension has, and for the value.
[[nodiscard]] std::vector<FoundColumn> found_columns(const ArraySource& array, const FoundElements& found,
                                                     std::int64_t most = INT64_MAX);

}  // namespace tessera
