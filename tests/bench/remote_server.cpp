// A server of files, read only, whose answers begin a given time after their requests, as if it were far away. It waits
// for many at once, and counts them.
//
//   remote_server FOLDER MILLISECONDS      prints its port; ends when stdin does
//
// GET and HEAD of /KEY below FOLDER, ranges of one part, If-Match. GET /-/counts answers at once with JSON, and counts
// from 0 again: requests, bytes of bodies, absent (404), most_in_flight, connections, and rounds: the length of the
// longest chain of requests each of which came after the answer to the one before was sent.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace {

using Clock = std::chrono::steady_clock;

struct Counts {
    std::int64_t requests = 0;
    std::int64_t bytes = 0;
    std::int64_t absent = 0;
    std::int64_t in_flight = 0;
    std::int64_t most_in_flight = 0;
    std::int64_t connections = 0;
    std::int64_t rounds = 0;  ///< the longest chain of those that were answered
};

std::string lower(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::tolower(c); });
    return result;
}

/// The value of a header; empty if there is none.
std::string_view header(std::string_view head, std::string_view name) {
    for (std::size_t at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at + 2)) {
        const std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
        if (line.size() <= name.size() || line[name.size()] != ':' || lower(line.substr(0, name.size())) != name) {
            continue;
        }
        return line.substr(std::min(line.find_first_not_of(' ', name.size() + 1), line.size()));
    }
    return {};
}

std::string decoded(std::string_view path) {
    std::string result;
    for (std::size_t i = 0; i < path.size(); ++i) {
        const bool coded = path[i] == '%' && i + 2 < path.size();
        result +=
            coded ? static_cast<char>(std::strtol(std::string(path.substr(i + 1, 2)).c_str(), nullptr, 16)) : path[i];
        if (coded) i += 2;
    }
    return result;
}

/// Closes a descriptor.
class Handle {
public:
    explicit Handle(int fd = -1) : fd_(fd) {}
    Handle(Handle&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
    Handle& operator=(Handle&& o) noexcept {
        std::swap(fd_, o.fd_);
        return *this;
    }
    ~Handle() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const { return fd_; }

private:
    int fd_;
};

/// One connection: requests are answered one after another.
struct Connection {
    Handle socket;
    std::string read;        ///< not yet answered
    bool waits = false;      ///< for the time of its answer
    std::int64_t depth = 0;  ///< of the request that waits, in its chain
    std::string head;        ///< still to be sent, before the file
    Handle file;
    off_t at = 0;
    off_t end = 0;
};

class Server {
public:
    Server(std::string folder, std::chrono::milliseconds delay)
        : folder_(std::move(folder)),
          delay_(delay),
          poll_(::epoll_create1(EPOLL_CLOEXEC)),
          listener_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const place = reinterpret_cast<sockaddr*>(&address);
        if (::bind(listener_.get(), place, size) != 0 || ::listen(listener_.get(), SOMAXCONN) != 0 ||
            ::getsockname(listener_.get(), place, &size) != 0) {
            throw std::runtime_error("cannot listen");
        }
        watch(listener_.get(), EPOLLIN);
        watch(STDIN_FILENO, EPOLLIN);
        std::cout << ntohs(address.sin_port) << std::endl;
    }

    void run() {
        for (;;) {
            std::array<epoll_event, 256> events{};
            const int count = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), time_to_wait());
            for (int i = 0; i < count; ++i) {
                const epoll_event& event = events[static_cast<std::size_t>(i)];
                if (event.data.fd == STDIN_FILENO) return;
                if (event.data.fd == listener_.get()) {
                    accept_all();
                } else if (const auto found = connections_.find(event.data.fd); found != connections_.end()) {
                    const std::shared_ptr<Connection> connection = found->second;
                    if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive(connection);
                    if ((event.events & EPOLLOUT) != 0) send(connection);
                }
            }
            for (; !due_.empty() && due_.front().first <= Clock::now(); due_.pop_front()) {
                if (const auto connection = due_.front().second.lock()) answer(connection);
            }
        }
    }

private:
    using Shared = std::shared_ptr<Connection>;

    void watch(int fd, std::uint32_t events, int operation = EPOLL_CTL_ADD) {
        epoll_event event{};
        event.events = events;
        event.data.fd = fd;
        ::epoll_ctl(poll_.get(), operation, fd, &event);
    }

    [[nodiscard]] int time_to_wait() const {
        if (due_.empty()) return -1;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_.front().first - Clock::now());
        return static_cast<int>(std::max<std::int64_t>(0, left.count()));
    }

    void accept_all() {
        for (;;) {
            Handle socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (socket.get() < 0) return;
            const int on = 1;
            ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            watch(socket.get(), EPOLLIN);
            ++counts_.connections;
            auto connection = std::make_shared<Connection>();
            const int number = socket.get();
            connection->socket = std::move(socket);
            connections_[number] = std::move(connection);
        }
    }

    void drop(const Shared& connection) {
        if (connections_.erase(connection->socket.get()) == 0) return;
        if (connection->waits || connection->end > 0 || !connection->head.empty()) --counts_.in_flight;
    }

    void receive(const Shared& connection) {
        std::array<char, 16384> block{};
        for (;;) {
            const ssize_t got = ::recv(connection->socket.get(), block.data(), block.size(), 0);
            if (got < 0 && errno == EAGAIN) break;
            if (got <= 0) return drop(connection);
            connection->read.append(block.data(), static_cast<std::size_t>(got));
        }
        begin(connection);
    }

    /// Takes a request, if a whole one came.
    void begin(const Shared& connection) {
        if (connection->waits || !connection->head.empty() || connection->read.find("\r\n\r\n") == std::string::npos) {
            return;
        }
        connection->waits = true;
        if (connection->read.starts_with("GET /-/counts ")) return answer(connection);
        ++counts_.requests;
        counts_.most_in_flight = std::max(counts_.most_in_flight, ++counts_.in_flight);
        connection->depth = counts_.rounds + 1;
        due_.emplace_back(Clock::now() + delay_, connection);
    }

    void answer(const Shared& connection) {
        const std::size_t size = connection->read.find("\r\n\r\n") + 4;
        const std::string head = connection->read.substr(0, size);
        connection->read.erase(0, size);
        connection->waits = false;
        const std::size_t space = std::min(head.find(' '), head.size() - 1);
        const std::string_view method = std::string_view(head).substr(0, space);
        const std::string_view target =
            std::string_view(head).substr(space + 1, head.find_first_of(" ?", space + 1) - space - 1);
        if (target == "/-/counts") {
            connection->depth = -1;
            connection->head = counts();
        } else if (method != "GET" && method != "HEAD") {
            status(*connection, "405 Method Not Allowed");
        } else {
            open(*connection, decoded(target), method == "GET", header(head, "range"), header(head, "if-match"));
        }
        send(connection);
    }

    static void status(Connection& connection, std::string_view text) {
        connection.head = fmt::format("HTTP/1.1 {}\r\nContent-Length: 0\r\n\r\n", text);
    }

    void open(Connection& connection, const std::string& key, bool body, std::string_view range,
              std::string_view version) {
        Handle file(key.find("..") != std::string::npos ? -1 : ::open((folder_ + key).c_str(), O_RDONLY | O_CLOEXEC));
        struct stat about {};
        if (file.get() < 0 || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
            ++counts_.absent;
            return status(connection, "404 Not Found");
        }
        const std::int64_t size = about.st_size;
        const std::string etag = fmt::format("\"{:x}-{:x}-{:x}\"", about.st_ino, size,
                                             about.st_mtim.tv_sec * 1'000'000'000 + about.st_mtim.tv_nsec);
        if (!version.empty() && version != etag) return status(connection, "412 Precondition Failed");
        std::int64_t first = 0;
        std::int64_t end = size;
        std::string part;
        if (range.starts_with("bytes=")) {
            const std::string numbers(range.substr(6));
            const std::size_t dash = std::min(numbers.find('-'), numbers.size() - 1);
            const std::int64_t last = std::atoll(numbers.c_str() + dash + 1);
            first = dash == 0 ? size - std::min(size, last) : std::atoll(numbers.c_str());
            if (dash > 0 && dash + 1 < numbers.size()) end = std::min(size, last + 1);
            if (first >= end) {
                connection.head = fmt::format(
                    "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{}\r\nContent-Length: 0\r\n\r\n",
                    size);
                return;
            }
            part = fmt::format("Content-Range: bytes {}-{}/{}\r\n", first, end - 1, size);
        }
        connection.head = fmt::format(
            "HTTP/1.1 {}\r\nContent-Length: {}\r\nAccept-Ranges: bytes\r\nETag: {}\r\n"
            "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n{}\r\n",
            part.empty() ? "200 OK" : "206 Partial Content", end - first, etag, part);
        if (!body || first == end) return;
        connection.file = std::move(file);
        connection.at = first;
        connection.end = end;
        counts_.bytes += end - first;
    }

    std::string counts() {
        const std::string body = fmt::format(
            R"({{"requests": {}, "bytes": {}, "absent": {}, "most_in_flight": {}, "connections": {}, "rounds": {}}})",
            counts_.requests, counts_.bytes, counts_.absent, counts_.most_in_flight, counts_.connections,
            counts_.rounds);
        counts_ = {.in_flight = counts_.in_flight, .most_in_flight = counts_.in_flight};
        return fmt::format("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                           body.size(), body);
    }

    void send(const Shared& connection) {
        Connection& c = *connection;
        if (c.head.empty() && c.end == 0) return;
        if (!c.head.empty()) {
            const ssize_t sent =
                ::send(c.socket.get(), c.head.data(), c.head.size(), MSG_NOSIGNAL | (c.end > 0 ? MSG_MORE : 0));
            if (sent < 0 && errno != EAGAIN) return drop(connection);
            if (sent > 0) c.head.erase(0, static_cast<std::size_t>(sent));
        }
        while (c.head.empty() && c.at < c.end) {
            constexpr off_t most = off_t{1} << 20;
            const ssize_t sent =
                ::sendfile(c.socket.get(), c.file.get(), &c.at, static_cast<std::size_t>(std::min(most, c.end - c.at)));
            if (sent < 0 && errno == EAGAIN) break;
            if (sent <= 0) return drop(connection);
        }
        const bool done = c.head.empty() && c.at >= c.end;
        watch(c.socket.get(), done ? EPOLLIN : EPOLLOUT, EPOLL_CTL_MOD);
        if (!done) return;
        c.file = Handle();
        c.at = c.end = 0;
        if (c.depth >= 0) {
            --counts_.in_flight;
            counts_.rounds = std::max(counts_.rounds, c.depth);
        }
        c.depth = 0;
        begin(connection);
    }

    std::string folder_;
    std::chrono::milliseconds delay_;
    Handle poll_;
    Handle listener_;
    std::map<int, Shared> connections_;
    std::deque<std::pair<Clock::time_point, std::weak_ptr<Connection>>> due_;
    Counts counts_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "remote_server FOLDER MILLISECONDS\n";
        return 2;
    }
    try {
        std::signal(SIGPIPE, SIG_IGN);  // of sendfile() to who hung up
        Server(argv[1], std::chrono::milliseconds(std::atoi(argv[2]))).run();
    } catch (const std::exception& e) {
        std::cerr << "remote_server: " << e.what() << '\n';
        return 1;
    }
    return 0;
}
