// Reductions in expressions. Private to the store module.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/calc.h>
#include <tessera/error.h>

#include "expression.h"

namespace tessera {

/// Replaces each call of a reduction by an operand that holds its result, broadcast along groups. Operands that are
/// only reduced are left out. See calc_source(). `notes` gets sentences about words that other reductions take
/// otherwise.
void replace_reductions(std::string_view text, Expression& tree, std::vector<CalcOperand>& operands,
                        std::int64_t memory, std::vector<Note>& notes);

/// calc_source() with these notes.
[[nodiscard]] std::unique_ptr<ArraySource> noted_calc_source(std::string_view expression,
                                                             std::vector<CalcOperand> operands, std::int64_t reducing,
                                                             std::vector<Note>& notes);

}  // namespace tessera
