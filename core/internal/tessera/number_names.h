// The numbers that NumPy and Zarr v3 call by the same names.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include <tessera/dtype.h>

namespace tessera {

struct NumberName {
    std::string_view name;
    Kind kind;
    int size;
};
/// bfloat16, which NumPy itself lacks, is the last.
inline constexpr std::array number_names{
    NumberName{"bool", Kind::boolean, 1},
    NumberName{"int8", Kind::integer, 1},
    NumberName{"int16", Kind::integer, 2},
    NumberName{"int32", Kind::integer, 4},
    NumberName{"int64", Kind::integer, 8},
    NumberName{"uint8", Kind::unsigned_integer, 1},
    NumberName{"uint16", Kind::unsigned_integer, 2},
    NumberName{"uint32", Kind::unsigned_integer, 4},
    NumberName{"uint64", Kind::unsigned_integer, 8},
    NumberName{"float16", Kind::real, 2},
    NumberName{"float32", Kind::real, 4},
    NumberName{"float64", Kind::real, 8},
    NumberName{"complex64", Kind::complex, 8},
    NumberName{"complex128", Kind::complex, 16},
    NumberName{"bfloat16", Kind::bfloat16, 2},
};

/// The row of a name, or null.
[[nodiscard]] constexpr const NumberName* number_named(std::string_view name) {
    const auto* found = std::ranges::find(number_names, name, &NumberName::name);
    return found == number_names.end() ? nullptr : found;
}
/// The row of a dtype of any byte order, or null.
[[nodiscard]] inline const NumberName* number_name_of(const DType& dtype) {
    const auto* found = std::ranges::find_if(
        number_names, [&](const NumberName& row) { return row.kind == dtype.kind() && row.size == dtype.size(); });
    return found == number_names.end() ? nullptr : found;
}

}  // namespace tessera
