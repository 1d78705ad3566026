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

/// What is known of a result beside its elements.
struct ComputedFrom {
    std::vector<std::string> paths;     ///< what is read
    const ArraySource* like = nullptr;  ///< whose format the result has where nobody chose one; nullptr: zmeta
    Shape chunks = {};                  ///< where nobody chose others; empty: about 1 MiB
    std::vector<std::optional<std::string>> dimension_names = {};  ///< where nobody chose others; empty: none
};

/// How much of --max-memory a source that computes may take in each call of read_into; the other half is for the copy.
[[nodiscard]] std::int64_t computing_memory(const Session& session);

/// Writes the source to o.destination as `copy` would, and reports. `done` is the word for the report.
int write_computed(Session& session, const TransferOptions& o, const ArraySource& source, const ComputedFrom& from,
                   std::string_view done);

}  // namespace tessera::cli
