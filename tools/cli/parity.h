// What info says of the parity of a seal.
#pragma once

#include <tessera/parity.h>
#include <tessera/place.h>
#include <tessera/value.h>

#include "report.h"

namespace tessera::cli {

/// Adds "parity" where a seal there has some.
void add_parity(Facts& facts, const Place& place, const IoOptions& io);
void add_parity(Value& report, const Place& place, const IoOptions& io);

}  // namespace tessera::cli
