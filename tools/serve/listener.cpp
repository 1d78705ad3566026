// SO_REUSEADDR lets a server start anew while old connections linger. It does not let two listen on one port;
// SO_REUSEPORT would.
#include "listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <tessera/error_text.h>
#include <tessera/fork.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <climits>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>

namespace tessera::serve {

namespace {

constexpr int backlog = 511;

/// Descriptors to close in a forked child, which must take no lock for it.
std::array<std::atomic<int>, 64> listening;

void remember(int fd) {
    static std::once_flag once;
    std::call_once(once, [] {
        for (auto& slot : listening) slot = -1;
        after_fork_in_child([] {
            for (auto& slot : listening) {
                if (const int open = slot.exchange(-1); open >= 0) ::close(open);
            }
        });
    });
    for (auto& slot : listening) {
        int none = -1;
        if (slot.compare_exchange_strong(none, fd)) return;
    }
}

/// False in a forked child, where it is closed already.
bool forget(int fd) {
    for (auto& slot : listening) {
        int found = fd;
        if (slot.compare_exchange_strong(found, -1)) return true;
    }
    return false;
}

struct FreeAddresses {
    void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses find_addresses(const std::string& address, int port) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    std::string name = address;
    if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (error != 0) {
        throw invalid_argument("--bind {}: {}; expected an address of this machine, such as 127.0.0.1", address,
                               ::gai_strerror(error));
    }
    return Addresses(found);
}

/// As URLs have it: "127.0.0.1", "[::1]".
std::string address_text(const sockaddr& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (address.sa_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
        return fmt::format("[{}]", ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size()));
    }
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
}

bool is_loopback_address(const sockaddr& address) {
    if (address.sa_family == AF_INET6) {
        return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
    }
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24U == 127;
}

/// The addresses of the machine that others reach, and then its name.
std::vector<std::string> hosts_of_machine(bool v6) {
    std::vector<std::string> hosts;
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) all = nullptr;
    for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr || is_loopback_address(*one->ifa_addr)) continue;
        const int family = one->ifa_addr->sa_family;
        const auto* const six = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
        // A link-local address works only with the name of the client's own interface.
        const bool usable = family == AF_INET || (v6 && family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr));
        if (usable) hosts.push_back(address_text(*one->ifa_addr));
    }
    if (all != nullptr) ::freeifaddrs(all);
    std::array<char, HOST_NAME_MAX + 1> name{};
    const bool named = ::gethostname(name.data(), name.size() - 1) == 0;
    const std::string_view text(name.data());
    const auto in_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_'; };
    if (named && !text.empty() && std::ranges::all_of(text, in_name)) hosts.emplace_back(text);
    return hosts;
}

Error bind_error(const std::string& address, int port, int error) {
    if (error == EADDRINUSE) {
        return {ErrorCode::io, fmt::format("port {} of {} is taken by another program; --port gives another one, and "
                                           "without it the system chooses a free one",
                                           port, address)};
    }
    if (error == EACCES) {
        return {ErrorCode::io, fmt::format("port {} may not be used by this user; ports from 1024 on may", port)};
    }
    return {ErrorCode::io, fmt::format("cannot listen on {} port {}: {}", address, port, std::strerror(error))};
}

}  // namespace

Listener::Listener(const std::string& address, int port) {
    const Addresses found = find_addresses(address, port);
    fd_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0) throw bind_error(address, port, errno);
    const int yes = 1;
    (void)::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_storage bound{};
    socklen_t length = sizeof bound;
    if (::bind(fd_, found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd_, backlog) != 0 ||
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
        const Error error = bind_error(address, port, errno);
        ::close(fd_);
        throw error;
    }
    bool wildcard = false;
    const auto* const any = reinterpret_cast<const sockaddr*>(&bound);
    if (bound.ss_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(bound);
        port_ = ntohs(v6.sin6_port);
        loopback_ = is_loopback_address(*any);
        wildcard = IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr);
    } else {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(bound);
        port_ = ntohs(v4.sin_port);
        loopback_ = is_loopback_address(*any);
        wildcard = v4.sin_addr.s_addr == htonl(INADDR_ANY);
    }
    hosts_ = wildcard ? hosts_of_machine(bound.ss_family == AF_INET6) : std::vector{address_text(*any)};
    remember(fd_);
}

Listener::~Listener() {
    if (fd_ >= 0 && forget(fd_)) ::close(fd_);
}

}  // namespace tessera::serve
