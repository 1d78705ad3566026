// Arrays that a command computes, written anywhere: an array in a directory or zip, or an array file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/picture.h>

#include "transfer.h"

namespace tessera::cli {

/// The sources and the defaults of a result.
struct ComputedFrom {
    std::vector<std::string> paths;                                ///< paths of the sources
    const ArraySource* like = nullptr;                             ///< its format is the default; nullptr: zmeta
    Shape chunks = {};                                             ///< the default; empty: about 1 MiB
    std::vector<std::optional<std::string>> dimension_names = {};  ///< the default; empty: none
};

/// The memory that a computing source may take in each call of read_into. The other half of --max-memory is for the
/// copy.
[[nodiscard]] std::int64_t computing_memory(const Session& session);

/// Writes the source to o.destination as `copy` would, and reports. `done` is the word for the report.
int write_computed(Session& session, const TransferOptions& o, const ArraySource& source, const ComputedFrom& from,
                   std::string_view done);

}  // namespace tessera::cli
