// An expression as loops over rows of elements. Private to the store module.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <tessera/calc.h>
#include <tessera/error.h>

#include "calc_times.h"
#include "expression.h"
#include "kernels.h"

namespace tessera {

inline constexpr std::int64_t row_length = 1024;  ///< elements that pass all steps before the next piece
inline constexpr std::int64_t most_bytes = 16;    ///< of an element
inline constexpr std::int64_t row_bytes = row_length * most_bytes;

/// The location of a row of elements: an operand's, a constant's, or an intermediate row.
struct RowPlace {
    enum class Type : std::uint8_t { operand, constant, row };
    Type type = Type::row;
    std::size_t index = 0;
    Number number = Number::b1;
    std::optional<TimeType> time = {};  ///< of rows of times, whose number is int64
    [[nodiscard]] DType dtype() const { return time ? time->dtype() : dtype_of(number); }
};

/// One loop over a row.
struct Step {
    Kernel kernel = nullptr;  ///< nullptr: conversion of in[0]
    std::array<RowPlace, 3> in;
    int arguments = 0;
    RowPlace out;
};

struct Program {
    std::vector<Step> steps;
    std::vector<std::vector<std::byte>> constants;  ///< one row for each
    std::size_t rows = 0;                           ///< intermediate rows needed at the same time
    RowPlace result;
};

/// A tree whose reductions and comparisons of text are operands. Throws invalid_argument, with the place in the text,
/// as calc_source().
[[nodiscard]] Program compile_tree(std::string_view text, const Expression& tree,
                                   const std::vector<CalcOperand>& operands);

/// The value of such a tree as an array of this name. `text` is for messages.
[[nodiscard]] std::unique_ptr<ArraySource> source_of_tree(std::string_view text, const Expression& tree,
                                                          std::vector<CalcOperand> operands,
                                                          const std::optional<Shape>& shape,
                                                          std::vector<Note>* notes = nullptr);

/// calc_source() for the elements of an array: broadcast to its shape, by the names of its dimensions.
[[nodiscard]] std::unique_ptr<ArraySource> calc_source_into(std::string_view expression,
                                                            std::vector<CalcOperand> operands,
                                                            const std::shared_ptr<const ArraySource>& into);

}  // namespace tessera
