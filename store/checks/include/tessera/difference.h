// What differs between two arrays, element by element, whatever holds them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/value.h>

namespace tessera {

/// Which numbers count as equal: |a − b| ≤ atol + rtol · |b|, and NaN to NaN, as numpy.isclose(equal_nan=True). Both 0:
/// bit for bit, byte order and padding aside.
struct Tolerance {
    double atol = 0;
    double rtol = 0;
};

struct Difference {
    /// Why the elements cannot be compared, or what else than elements differs: "shape (3,) is not (4,)". Empty when
    /// only elements may differ.
    std::vector<std::string> structure;
    bool compared = false;       ///< whether elements were compared
    std::int64_t elements = 0;   ///< compared
    std::int64_t different = 0;  ///< of these
    struct Place {
        Index index;
        std::string a, b;      ///< the two elements, for a person
        Value json_a, json_b;  ///< the same as element_to_json
    };
    std::vector<Place> first;  ///< the first ones in C order
    /// The largest |a − b| of numbers, infinite where one is not finite; none where elements are no numbers.
    std::optional<double> largest;
    Index largest_at;

    [[nodiscard]] bool none() const { return structure.empty() && different == 0; }
};

/// Compares within io.max_memory, reading each array once where their chunks allow. At most `places` differing elements
/// are listed. Numbers of different types are compared by value, and the dtype is named as a difference.
[[nodiscard]] Difference difference(const ArraySource& a, const ArraySource& b, const Tolerance& tolerance = {},
                                    int places = 10, const IoOptions& io = {});

}  // namespace tessera
