// Operands of an expression by the names of their dimensions. Private to the store module.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <tessera/calc.h>
#include <tessera/dimensions.h>
#include <tessera/error.h>

namespace tessera {

struct NamedOperands {
    std::vector<CalcOperand> operands;
    DimensionNames names = {};  ///< of the result; empty: operands have their dimensions by position
};

/// Operands whose dimensions have the same places: those of the operand with the most dimensions come first, in its
/// order. What an operand lacks has the length 1. Where an array has dimensions without names, all stay as they are,
/// and are broadcast by position. The dimensions of `into` are those of the result. Throws invalid_argument where a
/// name has two lengths, or coordinates with other values; times that differ are matched one after the other, as in
/// CDO, which `notes` tells.
[[nodiscard]] NamedOperands by_names(std::string_view text, std::vector<CalcOperand> operands,
                                     const std::shared_ptr<const ArraySource>& into = nullptr,
                                     std::vector<Note>* notes = nullptr);

}  // namespace tessera
