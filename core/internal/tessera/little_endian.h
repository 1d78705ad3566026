// Little-endian numbers at any address, on hosts of either byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tessera {

/// The whole number of sizeof(T) bytes at `p`.
template <class T>
[[nodiscard]] T load_little(const std::byte* p) {
    std::make_unsigned_t<T> n = 0;
    for (std::size_t i = sizeof(T); i-- > 0;) {
        n = static_cast<std::make_unsigned_t<T>>(static_cast<std::uint64_t>(n) << 8 | std::to_integer<unsigned>(p[i]));
    }
    return static_cast<T>(n);
}

/// The reverse.
template <class T>
void store_little(std::byte* p, T value) {
    auto n = static_cast<std::uint64_t>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i, n >>= 8) p[i] = static_cast<std::byte>(n & 0xFF);
}

}  // namespace tessera
