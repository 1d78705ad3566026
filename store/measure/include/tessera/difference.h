// Differences between two arrays, element by element, wherever they are stored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/value.h>

namespace tessera {

/// The numbers that count as equal: |a − b| ≤ atol + rtol · |b|, or both NaN, as in numpy.isclose(equal_nan=True). With
/// both members 0, elements are compared bit for bit, apart from byte order and padding.
struct Tolerance {
    double atol = 0;
    double rtol = 0;
};

struct Difference {
    /// Differences other than elements, which may prevent comparing those: "shape (3,) is not (4,)". Empty if only
    /// elements may differ.
    std::vector<std::string> structure;
    bool compared = false;       ///< whether elements were compared
    std::int64_t elements = 0;   ///< compared
    std::int64_t different = 0;  ///< of these
    struct Place {
        Index index;
        std::string a, b;      ///< the two elements as text
        Value json_a, json_b;  ///< the same as JSON: NaN as "NaN", dates as ISO 8601 text
    };
    std::vector<Place> first;  ///< the first ones in C order
    /// The largest |a − b|, infinite if one of the two is not finite; nullopt if elements are not numbers.
    std::optional<double> largest;
    Index largest_at;

    [[nodiscard]] bool none() const { return structure.empty() && different == 0; }
};

/// Compares within io.max_memory. Reads each array only once if their chunks allow it. At most `places` differing
/// elements are listed. Numbers of different types are compared by value, and the dtype is named as a difference.
[[nodiscard]] Difference difference(const ArraySource& a, const ArraySource& b, const Tolerance& tolerance = {},
                                    int places = 10, const IoOptions& io = {});

}  // namespace tessera
