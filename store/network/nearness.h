// How far inside a network an address lies, so that no server leads from outside to what is not its own. Private to the
// store module. Facts: RFC 1918, 3927, 4193, 4291, 6598.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

enum class Nearness : std::uint8_t {
    anywhere,    ///< a public address, or a name
    network,     ///< private
    machine,     ///< loopback
    link_local,  ///< where machines in clouds are given their keys
};

/// Of "10.0.0.1", "::1", "[fe80::1]", "localhost".
[[nodiscard]] Nearness nearness_of_host(std::string_view host);
/// Of the host in a URL; if that is where a connection leads, and not to a proxy, also of the connection's address.
[[nodiscard]] Nearness nearness_of(std::string_view url, std::string_view address = {}, long port = 0);

}  // namespace tessera
