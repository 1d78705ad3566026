// Ranges of longitudes that go beyond the ends of a coordinate which runs around the earth: -10 to 40 of 0 to 359.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>

namespace tessera {

inline constexpr double whole_turn = 360;

/// Where such a range lies.
struct Turn {
    int dimension = 0;
    std::int64_t first = 0;   ///< counted on beyond the ends: -10 is 350 of 360, one turn before
    std::int64_t count = 0;   ///< at most one turn
    std::int64_t length = 1;  ///< of the dimension
    /// The index in the array as stored.
    [[nodiscard]] std::int64_t stored(std::int64_t at) const { return ((first + at) % length + length) % length; }
    /// The turns by which it is counted beyond the ends, negative ones before the first index.
    [[nodiscard]] std::int64_t turns(std::int64_t at) const { return (first + at - stored(at)) / length; }
    /// "350:360 and 0:41"
    [[nodiscard]] std::string to_string() const;
};

/// The indices of the values from `low` to `high`, which take part of two turns or of another one than the longitudes
/// of a coordinate that runs once around the earth. nullopt: there are none (empty), or the range needs no turn.
[[nodiscard]] std::optional<Turn> turn_of_range(const std::vector<long double>& longitudes, long double low,
                                                long double high);

/// The same place in the turn that the longitudes have; `value` itself if there are none.
[[nodiscard]] long double in_turn(const std::vector<long double>& longitudes, long double value);

/// The array with its indices turned, so that a selection that goes beyond the ends of its longitudes is one range:
/// parse_selection() of this text finds it. The longitudes of the result count on: they are those that were asked for.
/// Any other array as it is, also one that the text does not fit.
[[nodiscard]] std::unique_ptr<ArraySource> turned_source(std::unique_ptr<ArraySource> array, std::string_view text);
/// By how much an array, or the one that is converted, is turned; nullptr: it is as stored.
[[nodiscard]] const Turn* turn_of(const ArraySource& source);

/// Turned so. `name` is that of the dimension.
[[nodiscard]] std::unique_ptr<ArraySource> turned_by(std::unique_ptr<ArraySource> array, const Turn& turn,
                                                     const std::string& name, const std::string& bounds);

}  // namespace tessera
