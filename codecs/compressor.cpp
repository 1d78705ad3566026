#include "compressor.h"

#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>

#include <algorithm>

namespace tessera {

void Compressor::decode(ByteSpan in, MutableByteSpan out) const {
    const std::optional<std::size_t> size = decompress(in, out);
    if (!size) throw corrupt("the data decode to more than the {} bytes expected", out.size());
    if (*size != out.size()) {
        throw corrupt("the data decode to {} bytes, expected {}", *size, out.size());
    }
}

bool Compressor::decode_unsized(ByteSpan in, Buffer& out, std::uint64_t limit) const {
    constexpr std::uint64_t least = std::uint64_t{64} << 10;
    const std::uint64_t unsuspicious = std::max<std::uint64_t>(least, 256 * std::uint64_t{in.size()});
    const std::optional<std::uint64_t> claimed = claimed_size(in);
    // A claim that exceeds the memory left is believed and refused.
    if (claimed && *claimed <= limit && *claimed > out.capacity()) {
        in_context([&] { return fmt::format("it decodes to {}", memory_text(*claimed)); },
                   [&] { require_memory(*claimed - out.capacity()); });
    }
    const std::uint64_t guess = claimed.value_or(8 * std::uint64_t{in.size()});
    // Uses all memory that is left before it asks for more.
    const auto most = [&] {
        const std::uint64_t left = memory_left();
        return left > limit ? limit : std::max(out.capacity() + left, least);
    };
    std::uint64_t room = std::min({std::max<std::uint64_t>(guess, 1), unsuspicious, limit, most()});
    for (;;) {
        out.reset(static_cast<std::size_t>(room));
        if (const auto size = decompress(in, out.span())) {
            out.resize(*size);
            return true;
        }
        if (room == limit) return false;
        const std::uint64_t wanted = std::min(limit, std::max(least, 2 * room));
        room = room < most() ? std::min(wanted, most()) : wanted;
    }
}

}  // namespace tessera
