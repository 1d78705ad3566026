// Parts of arrays that are computed with: their coordinates are parts, too.
#pragma once

#include <memory>
#include <string>

#include <tessera/array_io.h>

namespace tessera {

/// The part of an array that a selection as parse_selection() takes it names. Coordinates beside it (array_beside())
/// are parts by the same items, where these have names. Throws what parse_selection() throws.
[[nodiscard]] std::unique_ptr<ArraySource> part_source(std::unique_ptr<ArraySource> array,
                                                       const std::string& selection);

/// The array that a part is of, or that the source before a conversion is; the source itself, if it is no part.
[[nodiscard]] const ArraySource& whole_of(const ArraySource& source);

/// What lies beside the array of a part, as a part; null: there is none. `is_part` becomes whether `source` is one.
[[nodiscard]] std::unique_ptr<ArraySource> beside_part(const ArraySource& source, const std::string& name,
                                                       bool& is_part);

}  // namespace tessera
