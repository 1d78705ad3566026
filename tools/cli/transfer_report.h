// What a transfer says: of what it made, of what it would make, of what it left out.
#pragma once

#include <string_view>

#include <tessera/copy_hierarchy.h>

#include "transfer.h"

namespace tessera::cli {

/// Says on stderr what the copy lacks.
void note_lacking(Session& session, const TransferOptions& options, const CopiedHierarchy& copied);
/// The report of --dry-run.
void report_plan(Session& session, const TransferOptions& options, const CopiedHierarchy& copied);
/// The report of everything else; `done` is the word for it: "imported".
void report_copied(Session& session, const TransferOptions& options, const CopiedHierarchy& copied,
                   std::string_view done);

}  // namespace tessera::cli
