// Reports of a transfer: results, plans and omissions.
#pragma once

#include <string_view>

#include <tessera/copy.h>

#include "transfer.h"

namespace tessera::cli {

/// Notes on stderr what the copy lacks.
void note_lacking(Session& session, const TransferOptions& options, const CopiedHierarchy& copied);
/// The report of --dry-run.
void report_plan(Session& session, const TransferOptions& options, const CopiedHierarchy& copied);
/// The report of a copy, in which `done` is the verb: "imported".
void report_copied(Session& session, const TransferOptions& options, const CopiedHierarchy& copied,
                   std::string_view done);

}  // namespace tessera::cli
