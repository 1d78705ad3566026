// Arrays that a command computes, written anywhere: an array in a directory or zip, or an array file.
#pragma once

#include <string_view>

#include <tessera/array_io.h>
#include <tessera/write_computed.h>

#include "transfer.h"

namespace tessera::cli {

/// The memory that a computing source may take in each call of read_into. The other half of --max-memory is for the
/// copy.
[[nodiscard]] std::int64_t computing_memory(const Session& session);

/// Writes the source to o.destination as `copy` would, and reports. `done` is the word for the report.
int write_computed(Session& session, const TransferOptions& o, const ArraySource& source, const ComputedFrom& from,
                   std::string_view done);

}  // namespace tessera::cli
