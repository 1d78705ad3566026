// A hash that is the same in every process, for names and versions: somebody could make texts of the same hash.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tessera {

/// FNV-1a of 32 or 64 bits; goes on from `hash`, that of a text before this one.
template <class Hash = std::uint64_t>
[[nodiscard]] constexpr Hash fnv1a(std::string_view text,
                                   Hash hash = static_cast<Hash>(sizeof(Hash) == 4 ? 0x811c9dc5U
                                                                                   : 0xcbf29ce484222325U)) {
    static_assert(std::is_same_v<Hash, std::uint32_t> || std::is_same_v<Hash, std::uint64_t>);
    constexpr auto prime = static_cast<Hash>(sizeof(Hash) == 4 ? 0x1000193U : 0x100000001b3U);
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * prime;
    return hash;
}

}  // namespace tessera
