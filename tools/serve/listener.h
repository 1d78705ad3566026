// The socket that a server listens on.
#pragma once

#include <string>

namespace tessera::serve {

/// Bound and listening until it is closed. It is closed in forked children and in executed programs, so that the port
/// is free once this process closes it.
class Listener {
public:
    /// Throws io, naming address and port; invalid_argument for an invalid address.
    Listener(const std::string& address, int port);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    [[nodiscard]] int descriptor() const { return fd_; }
    [[nodiscard]] int port() const { return port_; }
    /// The address as URLs have it: "127.0.0.1", "[::1]".
    [[nodiscard]] const std::string& host() const { return host_; }
    [[nodiscard]] bool is_loopback() const { return loopback_; }
    /// Whether it listens on all addresses of the machine.
    [[nodiscard]] bool is_wildcard() const { return wildcard_; }

private:
    int fd_ = -1;
    int port_ = 0;
    std::string host_;
    bool loopback_ = false;
    bool wildcard_ = false;
};

}  // namespace tessera::serve
