// plan: what other commands call when they are planned instead of run.
#pragma once

#include "command.h"
#include "transfer.h"

namespace tessera::cli {

/// Plans a job that makes `o.destination` as `o.recipe` says, and reports it.
int plan_transfer(Session& session, const TransferOptions& o);

}  // namespace tessera::cli
