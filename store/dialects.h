// The dialects, one per sibling file; dialect.cpp lists them.
#pragma once

#include <tessera/dialect.h>

namespace tessera {

extern const Dialect zmeta_dialect;

}  // namespace tessera
