#include "watch.h"

#include <poll.h>
#include <sys/socket.h>

#include <new>
#include <utility>
#include <vector>

namespace tessera::serve {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto between_looks = milliseconds(100);
/// From the first byte of a request, or the last one of a response, until the next request is complete.
constexpr auto longest_request = seconds(60);
constexpr auto longest_work = seconds(300);
/// How long a client may take nothing of its response, and the least that it has to take on the whole.
constexpr auto longest_stall = seconds(30);
constexpr std::uint64_t least_rate = 16U << 10U;
/// How long an idle connection may be without memory of its own.
constexpr auto longest_uncounted = seconds(5);
/// After this long, memory in a response that is not taken may be freed for others.
constexpr auto patience = milliseconds(1000);

}  // namespace

Watch::Watch(unsigned most_connections, std::function<void()> tick)
    : most_(most_connections), tick_(std::move(tick)), thread_([this] { run(); }) {}

Watch::~Watch() {
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
        changed_.notify_all();
    }
    thread_.join();
}

Watched& Watch::add(int socket) {
    const std::lock_guard lock(mutex_);
    constexpr std::size_t spare = 8;
    if (connections_.size() + spare >= most_) {
        if (Watched* const least = least_needed()) {
            if (least->exchange) least->exchange->abandon();
            cut(*least);
            least->idle_since = Clock::time_point::max();  // it ends by itself now
        }
    }
    connections_.emplace_front();
    Watched& connection = connections_.front();
    connection.socket = socket;
    connection.place = connections_.begin();
    return connection;
}

/// The connection that was idle longest, or else one whose client takes nothing of its response.
Watched* Watch::least_needed() {
    Watched* oldest = nullptr;
    Watched* stalled = nullptr;
    Clock::duration longest = patience;
    for (Watched& other : connections_) {
        if (!other.exchange || other.exchange->stage() == Stage::reading) {
            if (oldest == nullptr || other.idle_since < oldest->idle_since) oldest = &other;
        } else if (const Exchange::Held held = other.exchange->held(); held.stalled > longest) {
            stalled = &other;
            longest = held.stalled;
        }
    }
    return oldest != nullptr && oldest->idle_since != Clock::time_point::max() ? oldest : stalled;
}

void Watch::remove(Watched& connection) {
    const std::lock_guard lock(mutex_);
    connections_.erase(connection.place);
}

void Watch::begin(Watched& connection, std::shared_ptr<Exchange> exchange) {
    const std::lock_guard lock(mutex_);
    connection.exchange = std::move(exchange);
}

void Watch::end(Watched& connection) {
    const std::lock_guard lock(mutex_);
    connection.exchange.reset();
    connection.idle_since = Clock::now();
}

void Watch::set_uncounted(Watched& connection) {
    const std::lock_guard lock(mutex_);
    connection.counted = false;
}

void Watch::count_again(const std::function<bool(Watched& connection)>& count) {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    for (Watched& connection : connections_) {
        if (connection.counted) continue;
        connection.counted = count(connection);
        const bool idle = !connection.exchange || connection.exchange->stage() == Stage::reading;
        if (!connection.counted && idle && now - connection.idle_since > longest_uncounted) cut(connection);
    }
}

std::size_t Watch::connections() const {
    const std::lock_guard lock(mutex_);
    return connections_.size();
}

void Watch::stop_all() {
    const std::lock_guard lock(mutex_);
    for (const Watched& connection : connections_) {
        if (connection.exchange) connection.exchange->stop.request_stop();
    }
}

std::uint64_t Watch::held_memory() const {
    const std::lock_guard lock(mutex_);
    std::uint64_t bytes = 0;
    for (const Watched& connection : connections_) {
        if (connection.exchange) bytes += connection.exchange->held().bytes;
    }
    return bytes;
}

std::uint64_t Watch::free_memory() {
    const std::lock_guard lock(mutex_);
    std::uint64_t bytes = 0;
    for (const Watched& connection : connections_) {
        if (!connection.exchange) continue;
        const Exchange::Held held = connection.exchange->held();
        if (held.bytes == 0 || held.stalled < patience) continue;
        bytes += held.bytes;
        connection.exchange->abandon();
        cut(connection);
    }
    return bytes;
}

void Watch::cut(const Watched& connection) {
    // The library sees that the connection has ended, and closes it; the descriptor stays its own until then.
    ::shutdown(connection.socket, SHUT_RDWR);
}

void Watch::run() {
    std::unique_lock lock(mutex_);
    while (!over_) {
        changed_.wait_for(lock, between_looks, [this] { return over_; });
        if (over_) return;
        try {
            look();
        } catch (const std::bad_alloc&) {
            // The next look may have memory again.
        }
        lock.unlock();
        tick_();
        lock.lock();
    }
}

void Watch::look() {
    const auto now = Clock::now();
    for (Watched& connection : connections_) look_at(connection, now);
    find_gone();
}

void Watch::look_at(Watched& connection, Clock::time_point now) {
    const Stage stage = connection.exchange ? connection.exchange->stage() : Stage::reading;
    if (stage == Stage::reading) {
        if (connection.idle_since < now && now - connection.idle_since > longest_request) cut(connection);
        return;
    }
    const auto age = now - connection.exchange->since();
    if (stage == Stage::working && age > longest_work) connection.exchange->stop.request_stop();
    if (stage != Stage::sending) return;
    const Exchange::Held held = connection.exchange->held();
    const auto allowed = longest_request + seconds(held.sent / least_rate);
    if (held.stalled > longest_stall || age > allowed) {
        connection.exchange->abandon();
        cut(connection);
    }
}

/// A suspended connection is not looked at by the library.
void Watch::find_gone() {
    std::vector<pollfd> sockets;
    std::vector<Exchange*> exchanges;
    for (const Watched& connection : connections_) {
        if (!connection.exchange || connection.exchange->stage() != Stage::working) continue;
        sockets.push_back({.fd = connection.socket, .events = POLLRDHUP, .revents = 0});
        exchanges.push_back(connection.exchange.get());
    }
    if (sockets.empty() || ::poll(sockets.data(), sockets.size(), 0) <= 0) return;
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        if ((sockets[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) exchanges[i]->stop.request_stop();
    }
}

}  // namespace tessera::serve
