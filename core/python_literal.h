// Python literals, as they stand in .npy headers. A restricted parser: it knows constants, strings and containers,
// and never executes anything. Private to the library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/value.h>

namespace tessera {

/// One literal. A value type.
struct PythonLiteral {
    enum class Kind { scalar, list, tuple, dict };
    struct Member;

    Kind kind = Kind::scalar;
    Value scalar;                      ///< None, a bool, an integer, a float or text
    std::vector<PythonLiteral> items;  ///< of a list or tuple
    std::vector<Member> members;       ///< of a dict, whose keys must be text; repeated keys are an error

    /// The same as JSON: lists and tuples become arrays.
    [[nodiscard]] Value to_value() const;
};

struct PythonLiteral::Member {
    std::string key;
    PythonLiteral value;
};

/// Parses one literal in UTF-8: dicts, lists, tuples, text in either quotes with escapes, u'' and b'' prefixes and
/// adjacent strings joined, integers (also Python 2's 3L), floats, True, False, None. Throws Error(corrupt) with the
/// position for anything else, and for nesting deeper than 200.
[[nodiscard]] PythonLiteral parse_python_literal(std::string_view text);

/// About the most memory that parsing such text takes, for the text and what is made of it. 0 for small texts.
[[nodiscard]] std::uint64_t literal_memory(std::string_view text);

/// Text as Python 3's repr writes it: 'a', "it's", '\n', '\x7f'; characters that print are kept.
[[nodiscard]] std::string python_repr(std::string_view utf8);

}  // namespace tessera
