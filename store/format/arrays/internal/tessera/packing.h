// Numbers that are stored packed, as the CF conventions have it: what they stand for is stored × scale + offset.
#pragma once

#include <optional>

#include <tessera/value.h>

namespace tessera {

struct Packing {
    double scale = 1;
    double offset = 0;
    bool scaled = false;  ///< whether there is a scale or an offset
    /// What is valid, as stored: said by statistics, but not applied.
    std::optional<double> valid_min = {}, valid_max = {};
    [[nodiscard]] double decoded(double stored) const { return stored * scale + offset; }
};

/// From the attributes scale_factor, add_offset, valid_min, valid_max and valid_range; those that are no finite
/// numbers, or lists of one, do not count. nullopt if there are none.
[[nodiscard]] std::optional<Packing> packing_of(const Value& attributes);

}  // namespace tessera
