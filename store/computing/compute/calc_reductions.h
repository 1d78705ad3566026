// Reductions in expressions. Private to the store module.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <tessera/calc.h>

#include "expression.h"

namespace tessera {

/// Replaces each call of a reduction by an operand that holds its result, broadcast along groups. Operands that are
/// only reduced are left out. See calc_source().
void replace_reductions(std::string_view text, Expression& tree, std::vector<CalcOperand>& operands,
                        std::int64_t memory);

}  // namespace tessera
