// The dialects, one per sibling file; dialect.cpp lists them.
#pragma once

#include <tessera/dialect.h>

namespace tessera {

extern const Dialect zmeta_dialect;
extern const Dialect v1_dialect;
extern const Dialect v2_dialect;
extern const Dialect v3_dialect;

}  // namespace tessera
