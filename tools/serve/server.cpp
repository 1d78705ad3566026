// The server on libmicrohttpd.
//
// One thread serves all connections by epoll. It parses requests, sends what is ready, and never waits for anything
// else. A request that passes the rules of access is suspended and goes to a worker; when that has the answer, the
// connection is resumed. Bodies that are read from files while they are sent go back and forth in the same way.
//
// A watch checks all connections a few times a second: for expired time limits, for clients that have gone while their
// request is worked on, and, if memory is short, for clients that do not take their responses.
#include "server.h"

#include <fmt/format.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <tessera/error.h>
#include <tessera/open_files.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstring>
#include <thread>
#include <utility>

#include "access.h"
#include "chunk_sizes.h"
#include "dispatch.h"
#include "exchange.h"
#include "listener.h"
#include "loaded_httpd.h"
#include "parking.h"
#include "signals_blocked.h"
#include "watch.h"
#include "workers.h"

namespace tessera::serve {

namespace {

constexpr unsigned most_connections = 2048;
constexpr std::size_t longest_queue = 2048;
/// Memory of one connection: its headers, and what the library needs to parse them.
constexpr std::size_t connection_memory = 48U << 10U;
constexpr std::size_t send_block = 32U << 10U;
constexpr std::size_t least_send_block = 4U << 10U;
/// What a connection counts: all of that, which the library clears after each request, and our own records.
constexpr std::uint64_t used_memory = connection_memory + (6U << 10U);
/// Bytes that wait in the system for a client to take them: a client that takes none holds no more than these.
constexpr int most_unsent = 128 << 10;
constexpr unsigned idle_seconds = 30;
/// Responses up to this size are sent even while many clients do not take theirs.
constexpr std::uint64_t small_response = 1U << 20U;
/// As many connections as there are descriptors for, with as many again for files, and as take half of the memory.
unsigned connection_limit(std::uint64_t max_memory) {
    const std::uint64_t fit = std::max<std::uint64_t>(64, max_memory / 2 / used_memory);
    const auto most = static_cast<unsigned>(std::min<std::uint64_t>(fit, most_connections));
    return std::min(most, static_cast<unsigned>(share_of_open_files(2, 64, most_connections)));
}

using ExchangePointer = std::shared_ptr<Exchange>;

// Headers that the library finds before those of the request, so that it refuses none itself: its refusals come twice
// (up to 0.9.77), as HTML, and without the headers of our answers.
constexpr const char* no_host = "none";
constexpr const char* no_length = "0";

/// What a callback of the library returns. No exception may pass through the library, which is C: that would end the
/// process.
template <class Result, class Body>
Result guarded(Result otherwise, const Body& body) noexcept {
    try {
        return body();
    } catch (...) {
        return otherwise;
    }
}

void add_header(RawRequest& raw, const char* key, const char* value) {
    std::string name(key);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto [at, first] = raw.headers.try_emplace(std::move(name), value == nullptr ? "" : value);
    if (first) {
        raw.odd_headers = raw.odd_headers || !is_token(at->first);
        return;
    }
    if (at->first == "host") raw.several_hosts = true;
    at->second += ", ";
    at->second += value == nullptr ? "" : value;
}

MHD_Result collect_header(void* to, MHD_ValueKind /*kind*/, const char* key, const char* value) noexcept {
    auto& raw = *static_cast<RawRequest*>(to);
    if (value == no_host || value == no_length) return MHD_YES;
    try {
        add_header(raw, key, value);
        return MHD_YES;
    } catch (...) {
        raw.incomplete = true;
        return MHD_NO;
    }
}

void look_for_body(RawRequest& raw) {
    const auto length = raw.headers.find("content-length");
    const bool given = length != raw.headers.end();
    raw.has_odd_length = given && length->second.find_first_not_of("0123456789") != std::string::npos;
    raw.has_odd_length = raw.has_odd_length || (given && length->second.empty());
    raw.has_body = raw.headers.contains("transfer-encoding") || (given && length->second != "0");
}

/// Whether a chunk is requested, not a document.
bool is_chunk(const HttpRequest& request) {
    const auto& segments = request.segments;
    if (segments.empty() || (segments.front() != "v2" && segments.front() != "v3")) return false;
    // All documents of v2 begin so, and no chunk does.
    return !segments.back().starts_with(".z") && segments.back() != v3_document_name;
}

/// The page comes first, and then what readers ask for before anything else: those are quick. The queries of the page
/// may decode much.
Urgency urgency_of(const HttpRequest& request) {
    const auto& segments = request.segments;
    if (segments.empty() || segments.front() == "page") return Urgency::page;
    if (is_chunk(request)) return Urgency::bulk;
    return segments.front() == "api" ? Urgency::soon : Urgency::document;
}

}  // namespace

struct ServerState {
    ServerState(const std::vector<std::string>& paths, const ServedOptions& options, const ServerOptions& server);
    ~ServerState() { close(); }
    ServerState(const ServerState&) = delete;
    ServerState& operator=(const ServerState&) = delete;
    void close();

    // Called by the library, in its thread.
    MHD_Result on_request(MHD_Connection* connection, const char* method, ExchangePointer& exchange);
    MHD_Result begin_work(MHD_Connection* connection, const ExchangePointer& exchange);
    MHD_Result send(MHD_Connection* connection, const ExchangePointer& exchange, HttpResponse refusal);
    MHD_Result queue(MHD_Connection* connection, const ExchangePointer& exchange, const HttpResponse& response,
                     std::uint64_t size);

    /// Computes the answer, and has the connection go on. A job of the workers.
    void work(const ExchangePointer& exchange, MHD_Connection* connection) noexcept;
    void answer(const ExchangePointer& exchange, MHD_Connection* connection);
    void finish(const ExchangePointer& exchange, MHD_Connection* connection, HttpResponse response);
    [[nodiscard]] bool wait_for_memory(const ExchangePointer& exchange, MHD_Connection* connection);
    [[nodiscard]] bool has_room(std::uint64_t bytes);
    [[nodiscard]] bool count_connection(Watched& connection);
    [[nodiscard]] std::size_t block_size() const;
    void return_memory();

    Served served;
    Listener listener;
    Access access;
    std::vector<std::string> urls;
    std::atomic<bool> closed = false;
    std::atomic<int> busy = 0;             ///< requests that are computed now
    std::atomic<std::uint64_t> begun = 0;  ///< requests that were ever computed
    bool returns_memory;
    std::atomic<bool> worked = false;  ///< since memory was returned to the system
    Workers workers;
    Parking parking{workers};
    ChunkSizes sizes;
    Watch watch;
    MHD_Daemon* daemon = nullptr;
};

namespace {

/// The state for copying the body of one response. The connection is needed to suspend it.
struct Sending {
    ExchangePointer exchange;
    Workers* workers = nullptr;
    MHD_Connection* connection = nullptr;
    MemoryHold memory;  ///< for the library's block
};

ssize_t copy_body(void* closure, std::uint64_t position, char* out, std::size_t size) {
    auto& sending = *static_cast<Sending*>(closure);
    std::size_t copied = 0;
    const auto made = sending.exchange->copy(position, std::as_writable_bytes(std::span(out, size)), copied);
    if (made == Exchange::Copied::some) return static_cast<ssize_t>(copied);
    if (made == Exchange::Copied::failed) return MHD_CONTENT_READER_END_WITH_ERROR;
    httpd().suspend_connection(sending.connection);
    const auto read = [exchange = sending.exchange, connection = sending.connection] {
        exchange->read_ahead();
        httpd().resume_connection(connection);
    };
    if (guarded(false, [&] { return sending.workers->add(read, Urgency::bulk); })) return 0;
    sending.exchange->abandon();
    httpd().resume_connection(sending.connection);
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

void free_sending(void* closure) {
    delete static_cast<Sending*>(closure);
}

/// The connection as the watch knows it; null if there was no memory for that.
Watched* watched(MHD_Connection* connection) {
    const auto* const info = httpd().get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == nullptr ? nullptr : static_cast<Watched*>(info->socket_context);
}

void* on_uri(void* closure, const char* uri, MHD_Connection* connection) {
    return guarded<void*>(nullptr, [&] {
        auto exchange = std::make_unique<ExchangePointer>(std::make_shared<Exchange>());
        (*exchange)->raw.target = uri;
        // The library would take memory for each parameter, and have none left for an answer if there are many. The
        // text is in its buffer, which it is about to cut at '?'.
        const char* const query = std::strchr(uri, '?');
        if (query != nullptr && query[1] != '\0') const_cast<char*>(query)[1] = '\0';
        httpd().set_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST, no_host);
        httpd().set_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH, no_length);
        if (Watched* const known = watched(connection)) {
            static_cast<ServerState*>(closure)->watch.begin(*known, *exchange);
        }
        return exchange.release();
    });
}

MHD_Result on_request(void* closure, MHD_Connection* connection, const char* /*url*/, const char* method,
                      const char* /*version*/, const char* /*upload*/, std::size_t* upload_size, void** context) {
    *upload_size = 0;  // bodies are refused; bytes that arrive nevertheless are dropped
    if (*context == nullptr) return MHD_NO;
    return guarded(MHD_NO, [&] {
        return static_cast<ServerState*>(closure)->on_request(connection, method,
                                                              *static_cast<ExchangePointer*>(*context));
    });
}

void on_completed(void* closure, MHD_Connection* connection, void** context, MHD_RequestTerminationCode /*why*/) {
    const std::unique_ptr<ExchangePointer> exchange(static_cast<ExchangePointer*>(std::exchange(*context, nullptr)));
    ServerState& state = *static_cast<ServerState*>(closure);
    if (Watched* const known = watched(connection)) state.watch.end(*known);
    if (exchange) (*exchange)->abandon();
    state.parking.wake(2);
}

void on_connection(void* closure, MHD_Connection* connection, void** context, MHD_ConnectionNotificationCode what) {
    Watch& watch = static_cast<ServerState*>(closure)->watch;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const auto* const info = httpd().get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        const int unsent = most_unsent;
        (void)::setsockopt(info->connect_fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
        *context = guarded<Watched*>(nullptr, [&] {
            Watched& added = watch.add(info->connect_fd);
            ServerState& state = *static_cast<ServerState*>(closure);
            if (state.count_connection(added)) return &added;
            const bool freed = watch.free_memory() > 0;
            if (!freed || !state.count_connection(added)) watch.set_uncounted(added);
            return &added;
        });
    } else if (*context != nullptr) {
        watch.remove(*static_cast<Watched*>(std::exchange(*context, nullptr)));
    }
}

/// Leaves the text as it is: it is decoded once, later.
std::size_t keep_encoded(void* /*closure*/, MHD_Connection* /*connection*/, char* text) {
    return std::char_traits<char>::length(text);
}

std::vector<std::string> host_names(const ServerOptions& options, const Listener& listener) {
    std::vector<std::string> hosts = options.hosts;
    hosts.insert(hosts.end(), listener.hosts().begin(), listener.hosts().end());
    return hosts;
}

int worker_count(const ServerOptions& options) {
    return options.workers > 0 ? options.workers : std::max(8, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

MHD_Result ServerState::on_request(MHD_Connection* connection, const char* method, ExchangePointer& exchange) {
    Exchange& e = *exchange;
    switch (e.stage()) {
        case Stage::reading:
            break;
        case Stage::answered:
            if (e.abandoned()) return MHD_NO;
            return queue(connection, exchange, e.response(), e.size_to_send());
        default:
            return MHD_NO;
    }
    if (!e.headers_known) {
        e.headers_known = true;
        e.raw.method = method;
        httpd().get_connection_values(connection, MHD_HEADER_KIND, &collect_header, &e.raw);
        if (e.raw.incomplete) return MHD_NO;
        look_for_body(e.raw);
        // A body is refused before it comes; all else waits until the request is complete.
        if (!e.raw.has_body) return MHD_YES;
    }
    return begin_work(connection, exchange);
}

MHD_Result ServerState::begin_work(MHD_Connection* connection, const ExchangePointer& exchange) {
    Admission admission = access.admit(exchange->raw);
    exchange->head = admission.head;
    if (admission.refusal) return send(connection, exchange, *std::move(admission.refusal));
    exchange->request = std::move(admission.request);
    exchange->request.stop = exchange->stop.get_token();
    exchange->set_stage(Stage::working);
    httpd().suspend_connection(connection);
    const auto job = [this, exchange, connection] { work(exchange, connection); };
    if (guarded(false, [&] { return workers.add(job, urgency_of(exchange->request)); })) return MHD_YES;
    httpd().resume_connection(connection);
    HttpResponse crowded = error_response(503, "busy", "too many requests are waiting");
    crowded.headers["Retry-After"] = "1";
    return send(connection, exchange, std::move(crowded));
}

MHD_Result ServerState::send(MHD_Connection* connection, const ExchangePointer& exchange, HttpResponse refusal) {
    access.add_headers(exchange->raw, refusal);
    exchange->answer(std::move(refusal));
    return queue(connection, exchange, exchange->response(), exchange->size_to_send());
}

MHD_Result ServerState::queue(MHD_Connection* connection, const ExchangePointer& exchange, const HttpResponse& response,
                              std::uint64_t size) {
    MHD_Response* made = nullptr;
    if (size == 0) {
        made = httpd().create_response_from_buffer(0, nullptr, MHD_RESPMEM_PERSISTENT);
    } else {
        auto sending = std::make_unique<Sending>(Sending{exchange, &workers, connection, MemoryHold()});
        std::size_t block = std::min<std::size_t>(size, block_size());
        try {
            const MemoryScope scope(served.memory());
            sending->memory.add(block);
        } catch (const Error&) {
            block = std::min(block, least_send_block);  // sending it frees memory
        }
        made = httpd().create_response_from_callback(size, block, &copy_body, sending.get(), &free_sending);
        if (made != nullptr) static_cast<void>(sending.release());
    }
    if (made == nullptr) return MHD_NO;
    for (const auto& [name, value] : response.headers) httpd().add_response_header(made, name.c_str(), value.c_str());
    if (!response.type.empty()) httpd().add_response_header(made, MHD_HTTP_HEADER_CONTENT_TYPE, response.type.c_str());
    exchange->set_stage(Stage::sending);
    const MHD_Result queued = httpd().queue_response(connection, static_cast<unsigned>(response.status), made);
    httpd().destroy_response(made);
    return queued;
}

/// Counts a connection's memory; false if there is none.
bool ServerState::count_connection(Watched& connection) {
    const MemoryScope scope(served.memory());
    try {
        connection.memory.add(used_memory);
        return true;
    } catch (const Error&) {
        return false;
    }
}

/// The bytes that the library takes at once of a response: fewer if connections are many.
std::size_t ServerState::block_size() const {
    constexpr std::uint64_t share = 32;  // of the memory, for all blocks
    const std::uint64_t each = served.options().max_memory / share / std::max<std::size_t>(1, watch.connections());
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(each, least_send_block, send_block));
}

/// Returns what the C library keeps of freed memory, which is not counted, once nothing is computed any more.
void ServerState::return_memory() {
    if (!returns_memory || busy > 0 || !worked.exchange(false)) return;
#ifdef __GLIBC__
    ::malloc_trim(0);
#endif
}

/// Whether responses may hold this many more bytes. If necessary, frees responses that no client takes.
bool ServerState::has_room(std::uint64_t bytes) {
    const std::uint64_t most = served.options().max_memory / 2;
    if (watch.held_memory() + bytes <= most) return true;
    return watch.free_memory() > 0 && watch.held_memory() + bytes <= most;
}

/// Parks a request until memory is freed; false if its time is over, which the watch says, or its client gone.
bool ServerState::wait_for_memory(const ExchangePointer& exchange, MHD_Connection* connection) {
    if (closed || exchange->stop.stop_requested()) return false;
    return parking.park([this, exchange, connection] { work(exchange, connection); });
}

void ServerState::work(const ExchangePointer& exchange, MHD_Connection* connection) noexcept {
    try {
        answer(exchange, connection);
    } catch (...) {
        // Not even an error could be answered. The connection ends.
        exchange->abandon();
        exchange->set_stage(Stage::answered);
        httpd().resume_connection(connection);
    }
}

void ServerState::answer(const ExchangePointer& exchange, MHD_Connection* connection) {
    const MemoryScope scope(served.memory());
    HttpResponse full = error_response(503, "budget", "clients have not taken yet what fills the memory");
    full.headers["Retry-After"] = "1";
    if (closed) return finish(exchange, connection, std::move(full));
    // Chunks may be large: while many wait to be sent, no more are made.
    const bool chunk = is_chunk(exchange->request);
    if (chunk && !exchange->head && exchange->expected_size == 0) {
        exchange->expected_size = sizes.guess(exchange->request.segments);
    }
    if (chunk && !has_room(exchange->expected_size)) {
        if (!wait_for_memory(exchange, connection)) finish(exchange, connection, std::move(full));
        return;
    }
    const std::uint64_t number = ++begun;
    const bool begins_alone = ++busy == 1 && watch.held_memory() == 0;
    HttpResponse response = dispatch(served, exchange->request);
    worked = true;
    --busy;
    const bool alone = begins_alone && begun == number;
    const std::uint64_t size = response.body.in_memory() && !exchange->head ? response.body.size() : 0;
    const bool short_of_memory = response.status == 503 && !exchange->stop.stop_requested();
    if (size > small_response) exchange->expected_size = size;
    if (chunk && !exchange->head && response.status == 200) sizes.note(exchange->request.segments, size);
    if ((short_of_memory && !alone) || (size > small_response && !alone && !has_room(size))) {
        if (short_of_memory) static_cast<void>(watch.free_memory());
        if (!short_of_memory) response = std::move(full);
        if (wait_for_memory(exchange, connection)) return;
    }
    finish(exchange, connection, std::move(response));
}

void ServerState::finish(const ExchangePointer& exchange, MHD_Connection* connection, HttpResponse response) {
    const auto answer = [&](HttpResponse given) {
        access.add_headers(exchange->raw, given);
        exchange->answer(std::move(given));
    };
    try {
        answer(std::move(response));
    } catch (const Error& e) {  // reading what is sent
        if (e.code() == ErrorCode::budget && wait_for_memory(exchange, connection)) return;
        answer(response_for(served, e));
    } catch (const std::exception& e) {
        answer(error_response(500, "io", served.shown_text(e.what())));
    }
    exchange->set_stage(Stage::answered);
    httpd().resume_connection(connection);
}

ServerState::ServerState(const std::vector<std::string>& paths, const ServedOptions& options,
                         const ServerOptions& server)
    : served(paths, options),
      listener(server.bind, server.port),
      access(server.token ? random_token() : "", host_names(server, listener), server.origins, server.frames),
      returns_memory(server.returns_memory),
      workers(worker_count(server), longest_queue),
      watch(connection_limit(options.max_memory), [this] {
          parking.wake(longest_queue);
          return_memory();
          watch.count_again([this](Watched& connection) { return count_connection(connection); });
      }) {
    const std::string token = access.token().empty() ? "" : fmt::format("t/{}/", access.token());
    std::vector<std::string> hosts =
        listener.hosts().empty() ? std::vector<std::string>{"127.0.0.1"} : listener.hosts();
    if (!listener.is_loopback()) hosts.insert(hosts.begin(), server.hosts.begin(), server.hosts.end());
    for (const std::string& host : hosts) urls.push_back(fmt::format("http://{}:{}/{}", host, listener.port(), token));
    daemon = httpd().start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC, 0, nullptr, nullptr, &serve::on_request,
        this, MHD_OPTION_LISTEN_SOCKET, listener.descriptor(), MHD_OPTION_CONNECTION_LIMIT,
        connection_limit(options.max_memory), MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_memory,
        MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds, MHD_OPTION_NOTIFY_COMPLETED, &on_completed, this,
        MHD_OPTION_NOTIFY_CONNECTION, &on_connection, this, MHD_OPTION_URI_LOG_CALLBACK, &on_uri, this,
        MHD_OPTION_UNESCAPE_CALLBACK, &keep_encoded, nullptr, MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_END);
    if (daemon == nullptr) throw Error(ErrorCode::io, "the server could not be started");
}

void ServerState::close() {
    if (closed.exchange(true)) return;
    if (daemon != nullptr) httpd().quiesce_daemon(daemon);
    watch.stop_all();
    parking.close();
    // Each suspended connection is resumed by the job that it waits for; none is suspended from here on.
    workers.close();
    if (daemon != nullptr) httpd().stop_daemon(daemon);
}

bool has_server() {
    return true;
}

Server::Server(const std::vector<std::string>& paths, const ServedOptions& served, const ServerOptions& options) {
    const SignalsBlocked blocked;  // and in all threads that begin here
    state_ = std::make_unique<ServerState>(paths, served, options);
}
Server::~Server() = default;

const std::string& Server::url() const {
    return state_->urls.front();
}
const std::vector<std::string>& Server::urls() const {
    return state_->urls;
}
int Server::port() const {
    return state_->listener.port();
}
bool Server::is_loopback() const {
    return state_->listener.is_loopback();
}
void Server::close() {
    state_->close();
}

}  // namespace tessera::serve
