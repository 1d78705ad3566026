// Names and sizes of the kinds of elements. Private to the core module.
#pragma once

#include <tessera/dtype.h>
#include <tessera/view.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace tessera {

/// One row per kind, in the order of the enumeration.
struct KindRow {
    Kind kind;
    std::string_view letter;  // in dtype.str; a whole name if NumPy has no letter
    std::string_view name;    // for messages
    std::uint64_t sizes;      // bit n: n bytes are possible; 0: any number
    int swapped_parts;        // number of parts of an element that are byte-swapped; 0: it is not swapped
};

constexpr std::uint64_t byte_sizes(std::initializer_list<int> bytes) {
    std::uint64_t mask = 0;
    for (const int n : bytes) mask |= std::uint64_t{1} << n;
    return mask;
}

inline constexpr KindRow kind_rows[] = {
    {Kind::boolean, "b", "boolean", byte_sizes({1}), 0},
    {Kind::integer, "i", "integer", byte_sizes({1, 2, 4, 8}), 1},
    {Kind::unsigned_integer, "u", "unsigned integer", byte_sizes({1, 2, 4, 8}), 1},
    {Kind::real, "f", "float", byte_sizes({2, 4, 8}), 1},
    {Kind::complex, "c", "complex", byte_sizes({8, 16}), 2},
    {Kind::bfloat16, "bfloat16", "bfloat16", byte_sizes({2}), 1},
    {Kind::extended, "f", "long double", byte_sizes({16}), 1},
    {Kind::extended_complex, "c", "complex long double", byte_sizes({32}), 2},
    {Kind::datetime, "M", "datetime", byte_sizes({8}), 1},
    {Kind::timedelta, "m", "timedelta", byte_sizes({8}), 1},
    {Kind::bytes, "S", "bytes", 0, 0},
    {Kind::text, "U", "text", 0, 1},  // one part a character
    {Kind::raw, "V", "raw", 0, 0},
    {Kind::structure, "V", "structure", 0, 0},
    {Kind::object, "O", "object", byte_sizes({8}), 0},
    {Kind::variable_text, "string", "variable-length text", byte_sizes({sizeof(VariableSlot)}), 0},
    {Kind::variable_bytes, "bytes", "variable-length bytes", byte_sizes({sizeof(VariableSlot)}), 0},
};

inline const KindRow& row_of(Kind kind) {
    return kind_rows[static_cast<std::size_t>(kind)];
}

}  // namespace tessera
