// Replaces server.cpp if the HTTP library was missing at build time.
#include <tessera/error.h>

#include "../server.h"

namespace tessera::serve {

struct ServerState {};

bool has_server() {
    return false;
}

Server::Server(const std::vector<std::string>& /*paths*/, const ServedOptions& /*served*/,
               const ServerOptions& /*options*/) {
    throw unsupported("this build has no server: libmicrohttpd (libmicrohttpd-dev) was not there when it was made");
}
Server::~Server() = default;

const std::string& Server::url() const {
    static const std::string none;
    return none;
}
const std::vector<std::string>& Server::urls() const {
    static const std::vector<std::string> none;
    return none;
}
int Server::port() const {
    return 0;
}
bool Server::is_loopback() const {
    return true;
}
void Server::close() {}

}  // namespace tessera::serve
