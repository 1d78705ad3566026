// Little-endian numbers in the headers of encoded bytes, at any alignment.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

[[nodiscard]] inline std::uint32_t load_32(const std::byte* p) {
    std::uint32_t v = 0;
    for (int i = 3; i >= 0; --i) v = v << 8 | std::to_integer<std::uint32_t>(p[i]);
    return v;
}

inline void store_32(std::byte* p, std::uint32_t v) {
    for (int i = 0; i < 4; ++i) p[i] = static_cast<std::byte>(v >> 8 * i);
}

}  // namespace tessera
