// The server: connections, access, ranges and versions, over the routes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "served.h"

namespace tessera::serve {

struct ServerOptions {
    std::string bind = "127.0.0.1";  ///< an address of this machine
    int port = 0;                    ///< 0: one that the system chooses
    bool token = true;               ///< whether URLs begin with a random token
    /// Names that a Host header may have, beside the loopback ones and those of the addresses listened on.
    std::vector<std::string> hosts = {};
    std::vector<std::string> origins = {};  ///< whose pages may read: "https://viewer.example"
    /// Whether pages of this machine, such as notebooks, and those of `origins` may show the page in a frame.
    bool frames = false;
    int workers = 0;              ///< threads that answer; 0: as many as cores, at least 4
    bool returns_memory = false;  ///< whether what the C library keeps of freed memory is returned when nothing is done
};

/// Whether this build has a server; else the constructor throws unsupported, saying what was missing.
[[nodiscard]] bool has_server();

/// A server that runs from construction to destruction, in threads of its own. A forked child has no part in it.
class Server {
public:
    /// Throws io if the port is taken; invalid_argument.
    Server(const std::vector<std::string>& paths, const ServedOptions& served, const ServerOptions& options);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    [[nodiscard]] const std::string& url() const;  ///< "http://127.0.0.1:4711/t/TOKEN/"
    /// The same by every address of this machine, and by its name, if it listens on all of them; url() is the first.
    [[nodiscard]] const std::vector<std::string>& urls() const;
    [[nodiscard]] int port() const;
    /// Whether only programs of this machine reach it.
    [[nodiscard]] bool is_loopback() const;
    /// Ends all connections and work. May be called twice.
    void close();

private:
    std::unique_ptr<struct ServerState> state_;
};

}  // namespace tessera::serve
