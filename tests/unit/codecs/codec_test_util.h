// What the tests of codecs share.
#pragma once

#include <gtest/gtest.h>
#include <tessera/codec.h>
#include <tessera/error.h>

#include <cstring>
#include <string>
#include <string_view>

#include "expect_error.h"

namespace tessera {

inline bool same_bytes(ByteSpan a, ByteSpan b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// `size` bytes that compress: little-endian counters of 4 bytes, with some noise.
inline Buffer counters(std::size_t size) {
    Buffer bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
        const std::uint32_t n = static_cast<std::uint32_t>(i / 4) * 3 + (i % 97 == 0 ? 1 : 0);
        bytes.data()[i] = static_cast<std::byte>(n >> 8 * (i % 4));
    }
    return bytes;
}

}  // namespace tessera
