// The socket that a server listens on.
#pragma once

#include <string>
#include <vector>

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
    [[nodiscard]] bool is_loopback() const { return loopback_; }
    /// By what others reach it, as URLs have it: the address, or if it listens on all addresses those of the machine,
    /// and the machine's name. May be empty.
    [[nodiscard]] const std::vector<std::string>& hosts() const { return hosts_; }

private:
    int fd_ = -1;
    int port_ = 0;
    std::vector<std::string> hosts_;
    bool loopback_ = false;
};

}  // namespace tessera::serve
