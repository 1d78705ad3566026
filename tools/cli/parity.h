// What info says of the parity of a seal.
#pragma once

#include <string>

#include <tessera/parallel.h>
#include <tessera/value.h>

#include "report.h"

namespace tessera::cli {

/// Adds "parity" where a seal at `path`, or beside it, has some.
void add_parity(Facts& facts, const std::string& path, const IoOptions& io);
void add_parity(Value& report, const std::string& path, const IoOptions& io);

}  // namespace tessera::cli
