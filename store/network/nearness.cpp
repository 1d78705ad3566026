#include "nearness.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <string>

namespace tessera {

namespace {

struct Block {
    std::uint32_t address;
    int bits;
    Nearness nearness;
};

constexpr std::array<Block, 7> blocks{{{0x00000000, 8, Nearness::machine},
                                       {0x0A000000, 8, Nearness::network},
                                       {0x64400000, 10, Nearness::network},
                                       {0x7F000000, 8, Nearness::machine},
                                       {0xA9FE0000, 16, Nearness::link_local},
                                       {0xAC100000, 12, Nearness::network},
                                       {0xC0A80000, 16, Nearness::network}}};

Nearness of_ipv4(std::uint32_t address) {
    const auto* const found = std::ranges::find_if(
        blocks, [&](const Block& block) { return (address ^ block.address) >> (32 - block.bits) == 0; });
    return found == blocks.end() ? Nearness::anywhere : found->nearness;
}

Nearness of_ipv6(std::span<const std::uint8_t, 16> a) {
    const std::uint32_t last =
        std::uint32_t{a[12]} << 24U | std::uint32_t{a[13]} << 16U | std::uint32_t{a[14]} << 8U | a[15];
    const auto is_zero = [&](std::size_t begin, std::size_t end) {
        return std::all_of(a.begin() + static_cast<std::ptrdiff_t>(begin), a.begin() + static_cast<std::ptrdiff_t>(end),
                           [](std::uint8_t byte) { return byte == 0; });
    };
    if (is_zero(0, 12) && last <= 1) return Nearness::machine;
    // IPv4 in IPv6: mapped, and translated (NAT64).
    if (is_zero(0, 10) && a[10] == 0xFF && a[11] == 0xFF) return of_ipv4(last);
    if (a[0] == 0 && a[1] == 0x64 && a[2] == 0xFF && a[3] == 0x9B && is_zero(4, 12)) return of_ipv4(last);
    if (a[0] == 0xFE && (a[1] & 0xC0U) == 0x80) return Nearness::link_local;
    return (a[0] & 0xFEU) == 0xFC ? Nearness::network : Nearness::anywhere;
}

}  // namespace

Nearness nearness_of_host(std::string_view host) {
    if (host.starts_with('[')) host = host.substr(1, host.find(']') - 1);
    std::string text(host.substr(0, host.find('%')));  // without the zone of an IPv6 address
    in_addr v4{};
    if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) return of_ipv4(ntohl(v4.s_addr));
    std::array<std::uint8_t, 16> v6{};
    if (::inet_pton(AF_INET6, text.c_str(), v6.data()) == 1) return of_ipv6(v6);
    if (text.ends_with('.')) text.pop_back();
    return text == "localhost" || text.ends_with(".localhost") ? Nearness::machine : Nearness::anywhere;
}

Nearness nearness_of(std::string_view url, std::string_view address, long port) {
    const std::size_t begin = std::min(url.find("://"), url.size() - 3) + 3;
    std::string_view host = url.substr(begin, url.find_first_of("/?#", begin) - begin);
    host.remove_prefix(std::min(host.find('@') + 1, host.size()));
    const std::size_t colon = host.rfind(':');
    long stated = url.starts_with("https:") ? 443 : 80;
    if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) {
        std::from_chars(host.data() + colon + 1, host.data() + host.size(), stated);
        host = host.substr(0, colon);
    }
    const Nearness named = nearness_of_host(host);
    return address.empty() || port != stated ? named : std::max(named, nearness_of_host(address));
}

}  // namespace tessera
