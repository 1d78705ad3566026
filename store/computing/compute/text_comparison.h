// Comparisons of text in expressions. Private to the store module.
#pragma once

#include <vector>

#include <tessera/calc.h>

#include "expression.h"

namespace tessera {

/// Replaces each comparison of an operand of text with text between quotes, as in "station == 'Graz'", by an operand of
/// Booleans. Operands of text that are only compared so are left out.
void replace_text_comparisons(Expression& tree, std::vector<CalcOperand>& operands);

}  // namespace tessera
