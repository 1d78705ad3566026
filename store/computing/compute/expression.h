// Expressions in NumPy's notation, from text to tree. Private to the store module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tessera {

/// A number as Python has it: an int within 64 bits, a float or a bool.
using Literal = std::variant<bool, std::int64_t, std::uint64_t, double>;

/// A node of an expression's tree.
struct Expression {
    enum class Type : std::uint8_t { literal, name, call, text };
    Type type = Type::literal;
    std::size_t at = 0;  ///< its position in the text
    Literal literal = {};
    std::string name;  ///< of an operand, or of a NumPy function: operators are "add", "less" …; of a text its content
    std::vector<std::unique_ptr<Expression>> arguments;
    std::string keyword = {};  ///< of an argument: "by" in mean(t, by=season), whose value is a text
};

/// Throws invalid_argument with the position and the expected text.
[[nodiscard]] std::unique_ptr<Expression> parse_expression(std::string_view text);

/// Whether an operand's name stands in it.
[[nodiscard]] bool names_operand(const Expression& tree, std::string_view name);

/// An error at a position in the text, which it shows.
[[nodiscard]] class Error expression_error(std::string_view text, std::size_t at, std::string_view what);

}  // namespace tessera
