// Little-endian numbers at any address, on hosts of either byte order.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tessera {

/// The number of sizeof(T) bytes at `p`.
template <class T>
[[nodiscard]] T load_little(const std::byte* p) {
    std::array<std::byte, sizeof(T)> bytes{};
    std::copy_n(p, sizeof(T), bytes.begin());
    if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(bytes);
    return std::bit_cast<T>(bytes);
}

/// The reverse.
template <class T>
void store_little(std::byte* p, T value) {
    auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
    if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(bytes);
    std::ranges::copy(bytes, p);
}

}  // namespace tessera
