#include "compressor.h"

#include <fmt/format.h>
#include <tessera/error.h>

#include <algorithm>

namespace tessera {

void Compressor::decode(ByteSpan in, MutableByteSpan out) const {
    const std::optional<std::size_t> size = decompress(in, out);
    if (!size) throw corrupt(fmt::format("the data decode to more than the {} bytes expected", out.size()));
    if (*size != out.size()) {
        throw corrupt(fmt::format("the data decode to {} bytes, expected {}", *size, out.size()));
    }
}

void Compressor::decode_unsized(ByteSpan in, Buffer& out, std::uint64_t limit) const {
    constexpr std::uint64_t least = std::uint64_t{64} << 10;
    const std::uint64_t unsuspicious = std::max<std::uint64_t>(least, 256 * std::uint64_t{in.size()});
    const std::uint64_t guess = claimed_size(in).value_or(8 * std::uint64_t{in.size()});
    std::uint64_t room = std::min({std::max<std::uint64_t>(guess, 1), unsuspicious, limit});
    for (;;) {
        out.reset(static_cast<std::size_t>(room));
        if (const auto size = decompress(in, out.span())) {
            out.resize(*size);
            return;
        }
        if (room == limit) {
            throw Error(ErrorCode::budget, fmt::format("the data decode to more than the {} bytes allowed", limit));
        }
        room = std::min(limit, std::max(least, 2 * room));
    }
}

}  // namespace tessera
