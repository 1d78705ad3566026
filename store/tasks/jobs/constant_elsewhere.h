// "where(a > 40, a * 2, 0)" of an array in which few chunks have elements above 40.
#pragma once

#include <tessera/array_io.h>
#include <tessera/calc.h>
#include <tessera/parallel.h>

#include <memory>
#include <string_view>
#include <vector>

namespace tessera {

/// `computed`, the source of an expression over operands. If that is where(CONDITION, VALUE, CONSTANT), and the
/// condition compares one operand with numbers, which is a stored array of the result's shape or decoded from one,
/// chunks in which the condition cannot hold are the constant without being read: see candidate_chunks(). Else
/// `computed` itself.
[[nodiscard]] std::unique_ptr<ArraySource> constant_elsewhere(std::unique_ptr<ArraySource> computed,
                                                              std::string_view expression,
                                                              const std::vector<CalcOperand>& operands, bool raw,
                                                              const IoOptions& io);

}  // namespace tessera
