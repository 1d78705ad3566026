// A checksum.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include <tessera/buffer.h>
#include <tessera/little_endian.h>

namespace tessera {

/// Bob Jenkins' hashlittle: a checksum of numcodecs, and of HDF5's metadata.
[[nodiscard]] inline std::uint32_t jenkins_lookup3(ByteSpan bytes, std::uint32_t seed) {
    std::uint32_t a = 0xdeadbeef + static_cast<std::uint32_t>(bytes.size()) + seed;
    std::uint32_t b = a;
    std::uint32_t c = a;
    if (bytes.empty()) return c;
    for (; bytes.size() > 12; bytes = bytes.subspan(12)) {
        a += load_little<std::uint32_t>(&bytes[0]);
        b += load_little<std::uint32_t>(&bytes[4]);
        c += load_little<std::uint32_t>(&bytes[8]);
        a = (a - c) ^ std::rotl(c, 4), c += b;
        b = (b - a) ^ std::rotl(a, 6), a += c;
        c = (c - b) ^ std::rotl(b, 8), b += a;
        a = (a - c) ^ std::rotl(c, 16), c += b;
        b = (b - a) ^ std::rotl(a, 19), a += c;
        c = (c - b) ^ std::rotl(b, 4), b += a;
    }
    std::array<std::byte, 12> last{};
    std::memcpy(last.data(), bytes.data(), bytes.size());
    a += load_little<std::uint32_t>(last.data());
    b += load_little<std::uint32_t>(last.data() + 4);
    c += load_little<std::uint32_t>(last.data() + 8);
    c = (c ^ b) - std::rotl(b, 14);
    a = (a ^ c) - std::rotl(c, 11);
    b = (b ^ a) - std::rotl(a, 25);
    c = (c ^ b) - std::rotl(b, 16);
    a = (a ^ c) - std::rotl(c, 4);
    b = (b ^ a) - std::rotl(a, 14);
    return (c ^ b) - std::rotl(b, 24);
}

}  // namespace tessera
