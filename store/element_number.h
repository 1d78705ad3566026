// Elements as numbers, for what computes with values of any dtype. Private to the store module.
#pragma once

#include <tessera/dtype.h>

#include <complex>
#include <cstddef>

namespace tessera {

/// Whether elements are numbers that can be computed with: Boolean, integer, real, complex, bfloat16.
[[nodiscard]] bool is_number(const DType& dtype);
/// The element at `p` (any alignment, its dtype's byte order), rounded to double.
[[nodiscard]] std::complex<double> number_at(const DType& dtype, const std::byte* p);

}  // namespace tessera
