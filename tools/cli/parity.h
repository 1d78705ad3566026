// What info says of the parity of a seal.
#pragma once

#include <tessera/locate.h>
#include <tessera/parallel.h>
#include <tessera/value.h>

#include "report.h"

namespace tessera::cli {

/// Adds "parity" where a seal there, or beside it, has some.
void add_parity(Facts& facts, const Located& at, const IoOptions& io);
void add_parity(Value& report, const Located& at, const IoOptions& io);

}  // namespace tessera::cli
