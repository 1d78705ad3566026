// Numbers rounded to their first bits.
#pragma once

#include <cstdint>

#include <tessera/dtype.h>

namespace tessera {

/// `x` with its last `dropped` bits zero: the nearest such number, half to even. It wraps at the end of the range.
template <class Bits>
[[nodiscard]] Bits round_off(Bits x, int dropped) {
    if (dropped <= 0) return x;
    const auto almost_half = static_cast<Bits>((Bits{1} << (dropped - 1)) - 1);
    const auto up = static_cast<Bits>(almost_half + (x >> dropped & 1));
    return static_cast<Bits>(static_cast<Bits>(x + up) & static_cast<Bits>(~Bits{0} << dropped));
}

/// Bits of the fraction of a real number or bfloat16; of a complex number, of each part.
[[nodiscard]] inline int fraction_bits(const DType& dtype) {
    if (dtype.kind() == Kind::bfloat16) return 7;
    const std::int64_t size = dtype.kind() == Kind::complex ? dtype.size() / 2 : dtype.size();
    return size == 2 ? 10 : size == 4 ? 23 : 52;
}

}  // namespace tessera
