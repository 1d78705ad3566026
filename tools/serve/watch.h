// All connections of a server, and a thread that looks after them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include <tessera/memory_account.h>

#include "exchange.h"

namespace tessera::serve {

/// A connection. Its members are guarded by the Watch.
struct Watched {
    int socket = -1;
    Clock::time_point idle_since = Clock::now();  ///< without a request
    std::shared_ptr<Exchange> exchange;
    MemoryHold memory;    ///< for what the HTTP library keeps of the connection
    bool counted = true;  ///< whether `memory` is held: there may have been none when the connection came
    std::list<Watched>::iterator place;
};

/// Ends requests that arrive too slowly, work that takes too long, and responses that are not taken. Ends work whose
/// client has gone. If connections run short, the one that was idle longest is closed, or else
/// one whose client takes nothing. Thread rule: any thread calls
/// any member; a Watched is the network thread's until remove().
class Watch {
public:
    /// `tick` is called several times a second.
    Watch(unsigned most_connections, std::function<void()> tick);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    Watched& add(int socket);
    void remove(Watched& connection);
    void begin(Watched& connection, std::shared_ptr<Exchange> exchange);
    void end(Watched& connection);

    [[nodiscard]] std::size_t connections() const;
    /// There is no memory for a connection yet. Requests that are computed take it for moments, so it is served all the
    /// same: the number of connections is limited, too.
    void set_uncounted(Watched& connection);
    /// Calls count(connection) for these, which says whether there is memory now. One that there is none for after a
    /// while is closed.
    void count_again(const std::function<bool(Watched& connection)>& count);

    /// Ends the work of all requests.
    void stop_all();
    /// Bytes of responses in memory that were not sent yet.
    [[nodiscard]] std::uint64_t held_memory() const;
    /// Ends connections that have not taken anything of their response for a while, and returns how many bytes that
    /// freed.
    std::uint64_t free_memory();

private:
    void run();
    void look();
    void look_at(Watched& connection, Clock::time_point now);
    void find_gone();
    [[nodiscard]] Watched* least_needed();
    static void cut(const Watched& connection);

    unsigned most_;
    std::function<void()> tick_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::list<Watched> connections_;
    bool over_ = false;
    std::thread thread_;
};

}  // namespace tessera::serve
