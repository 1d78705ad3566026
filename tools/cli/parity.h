// The facts of info about the parity of a seal.
#pragma once

#include <tessera/locate.h>
#include <tessera/parallel.h>
#include <tessera/value.h>

#include "report.h"

namespace tessera::cli {

/// Adds "parity" if the seal at or beside the path has any.
void add_parity(Facts& facts, const Located& at, const IoOptions& io);
void add_parity(Value& report, const Located& at, const IoOptions& io);

}  // namespace tessera::cli
