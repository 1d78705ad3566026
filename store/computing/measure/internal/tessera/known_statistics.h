// What an index of chunks says of a whole array.
#pragma once

#include <tessera/array.h>
#include <tessera/measure.h>
#include <tessera/parallel.h>

#include <optional>

namespace tessera {

/// The statistics of what elements stand for, without a histogram, if an index of chunks says all of them: no chunk is
/// read, but the stamp of each is asked for. nullopt else. Throws as listing what is stored does.
[[nodiscard]] std::optional<Statistics> known_statistics(const Array& array, const IoOptions& io = {});

}  // namespace tessera
