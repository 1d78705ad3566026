#include "remote_writer.h"

#include <fmt/format.h>
#include <tessera/byte_io.h>
#include <tessera/error_text.h>
#include <tessera/parallel.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <span>
#include <utility>

#include "http_work.h"
#include "keys.h"
#include "loaded_curl.h"
#include "random_wait.h"
#include "s3_credentials.h"
#include "sha256.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kept_writes = 49;  ///< a write's own id and the 48 before: S3 takes 2 KiB of metadata
constexpr int most_writes = 20;
constexpr std::chrono::seconds longest_write{180};
constexpr std::chrono::seconds longest_wait{5};
constexpr std::chrono::hours conduct_age{24};

std::mt19937_64& random_numbers() {
    thread_local std::mt19937_64 numbers{[] {
        std::random_device device;
        std::seed_seq seed{device(), device(), device(), device(), device(), device(), device(), device()};
        return std::mt19937_64(seed);
    }()};
    return numbers;
}

bool is_done(int status) {
    return status >= 200 && status < 300;
}

/// The server says that the value is another one than the condition wants, or is being changed just now.
bool is_refusal(const HttpResponse& response, const RemoteVersion& expected) {
    return response.status == 412 || response.status == 409 || (response.status == 404 && !expected.etag.empty());
}

std::shared_ptr<const Buffer> text_body(std::string_view text) {
    return std::make_shared<const Buffer>(std::as_bytes(std::span(text)));
}

std::string bare(std::string_view etag) {
    if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
    return std::string(etag);
}

/// Names a version in the list of writes: its own id; if another program made it, its ETag; "=" if there is no value.
std::string mark_of(const RemoteVersion& version) {
    if (!version.writes.empty()) return version.writes.front();
    if (version.etag.empty()) return "=";
    Hasher hasher;
    hasher.add(version.etag.data(), version.etag.size());
    hasher.add(version.generation.data(), version.generation.size());
    return "=" + hex(hasher.finish()).substr(0, 32);
}

// ---- what is known of servers

/// Where it is kept; empty if there is no such place.
fs::path conduct_file(const std::string& server) {
    fs::path folder = environment("XDG_CACHE_HOME");
    if (folder.empty() && !environment("HOME").empty()) folder = fs::path(environment("HOME")) / ".cache";
    if (folder.empty() || !folder.is_absolute()) return {};
    Hasher hasher;
    hasher.add(server.data(), server.size());
    return folder / "tessera" / "servers" / hex(hasher.finish()).substr(0, 32);
}

constexpr std::array<std::pair<std::string_view, ServerConduct>, 4> conducts{
    {{"full", {ServerConduct::Holds::full, false}},
     {"full, bare ETags", {ServerConduct::Holds::full, true}},
     {"create-only", {ServerConduct::Holds::create_only, false}},
     {"none", {ServerConduct::Holds::none, false}}}};

std::optional<ServerConduct> load_conduct(const fs::path& file) {
    std::error_code error;
    const auto written = fs::last_write_time(file, error);
    const auto age = fs::file_time_type::clock::now() - written;
    if (file.empty() || error || age > conduct_age || age < std::chrono::hours(-1)) return std::nullopt;
    try {
        const auto source = open_file(file);
        if (source->size() > 64) return std::nullopt;
        const Buffer text = read_all(*source);
        const std::string_view word(reinterpret_cast<const char*>(text.data()), text.size());
        for (const auto& [name, conduct] : conducts) {
            if (word == name) return conduct;
        }
    } catch (const Error&) {
        return std::nullopt;  // it is asked again
    }
    return std::nullopt;
}

void save_conduct(const fs::path& file, const ServerConduct& conduct) {
    if (file.empty()) return;
    try {
        fs::create_directories(file.parent_path());
        for (const auto& [name, known] : conducts) {
            if (known.holds != conduct.holds || known.bare != conduct.bare) continue;
            const auto sink = create_file(file, false);
            sink->append(std::as_bytes(std::span(name)));
            sink->finish();
        }
    } catch (const std::exception&) {
        return;  // a cache
    }
}

struct Conducts {
    std::mutex mutex;
    std::map<std::string, ServerConduct> known;
    std::set<std::string> confirmed;  ///< that were tested by this process, or by confirm()
    std::set<std::string> being_confirmed;
};

/// Until it ends, no other write is repeated to confirm what a server promises.
struct BeingConfirmed {
    Conducts& all;
    const std::string& server;
    BeingConfirmed(Conducts& among, const std::string& of) : all(among), server(of) {}
    ~BeingConfirmed() {
        const std::lock_guard guard(all.mutex);
        all.being_confirmed.erase(server);
    }
    BeingConfirmed(const BeingConfirmed&) = delete;
    BeingConfirmed& operator=(const BeingConfirmed&) = delete;
};

Conducts& all_conducts() {
    static auto& all = *new Conducts;  // never destroyed: threads may end later than main()
    return all;
}

}  // namespace

std::string random_id() {
    return fmt::format("{:016x}{:016x}", random_numbers()(), random_numbers()());
}

std::optional<ServerConduct> RemoteWriter::known_conduct() const {
    const std::lock_guard guard(mutex_);
    if (conduct_) return conduct_;
    const std::string server = service_->server();
    const std::lock_guard all_guard(all_conducts().mutex);
    auto& known = all_conducts().known;
    if (const auto found = known.find(server); found != known.end()) {
        conduct_ = found->second;
    } else if ((conduct_ = load_conduct(conduct_file(server)))) {
        known.emplace(server, *conduct_);
    }
    return conduct_;
}

const ServerConduct& RemoteWriter::conduct() const {
    if (!known_conduct()) {
        const ServerConduct found = probe();
        const std::string server = service_->server();
        save_conduct(conduct_file(server), found);
        const std::lock_guard guard(mutex_);
        if (!conduct_) conduct_ = found;
        const std::lock_guard all_guard(all_conducts().mutex);
        all_conducts().known.emplace(server, found);
        all_conducts().confirmed.insert(server);
    }
    return *conduct_;  // never changed once it is there
}

namespace {

/// Puts a value under conditions, to see which of them a server keeps.
class Probe {
public:
    Probe(const RemoteService& service, const std::string& key) : service_(service), key_(key) {}

    /// What the server promises. Of no worth if the probe is unsure().
    ServerConduct found() {
        if (!put(If::absent, "")) {
            if (unsure_) return {};
            // A server that knows no conditions refuses them, or cannot be written to at all.
            if (last_.status != 403 && last_.status != 401 && put(If::always, "")) return {};
            if (!unsure_) service_.require_done(last_, key_);
            return {};
        }
        if (put(If::absent, "")) return {};
        HttpRequest request = service_.request(key_);
        request.method = "HEAD";
        const RemoteVersion made = service_.version_of(HttpClient::shared().send(std::move(request)));
        const std::string& etag = made.etag;
        if (put(If::same, "\"0123456789abcdef0123456789abcdef\"") || etag.empty()) {
            return {.holds = ServerConduct::Holds::create_only};
        }
        if (put(If::same, etag, made.generation)) return {.holds = ServerConduct::Holds::full};
        if (put(If::same, bare(etag))) return {.holds = ServerConduct::Holds::full, .bare = true};
        return {.holds = ServerConduct::Holds::create_only};
    }

    /// Whether an answer was lost, so that nobody knows what is stored.
    [[nodiscard]] bool unsure() const { return unsure_; }

private:
    using If = RemotePut::If;

    bool put(If condition, std::string etag, std::string generation = {}) {
        last_ = HttpClient::shared().send(
            service_.put(key_, {.body = text_body("a test by tessera of what this server promises; delete it at will"),
                                .condition = condition,
                                .etag = std::move(etag),
                                .generation = std::move(generation),
                                .once = true}));
        unsure_ = unsure_ || last_.unsure || is_collision(last_);
        return is_done(last_.status);
    }

    const RemoteService& service_;
    const std::string& key_;
    bool unsure_ = false;
    HttpResponse last_;
};

}  // namespace

ServerConduct RemoteWriter::probe() const {
    for (int tries = 1; tries <= most_writes; ++tries) {
        const std::string key = ".tessera/probe-" + random_id();
        Probe probe(*service_, key);
        const ServerConduct found = probe.found();
        (void)HttpClient::shared().send(service_->erase(key));
        if (!probe.unsure()) return found;
        wait_before_retry(tries, longest_wait);
    }
    throw Error(ErrorCode::io,
                fmt::format("{}: the server's answers were lost again and again, so that it is not known "
                            "what it promises to writers",
                            service_->request("").name));
}

std::pair<RemoteVersion, std::int64_t> RemoteWriter::look(std::string_view key) const {
    HttpRequest request = service_->request(key);
    request.method = "HEAD";
    HttpResponse response = HttpClient::shared().send(std::move(request));
    if (response.status == 403) {  // without a word on why, which the answer to a GET has
        request = service_->request(key);
        request.range = HttpRange{.first = 0, .length = 1};
        response = HttpClient::shared().send(std::move(request));
    }
    if (service_->is_absent(response, key)) return {};
    RemoteVersion version = service_->version_of(response);
    if (version.etag.empty()) throw corrupt("{}: the server states no ETag", service_->request(key).name);
    const auto time = [&](std::string_view name) {
        return curl().getdate(std::string(response.header(name)).c_str(), nullptr);
    };
    const std::time_t now = time("date");
    const std::time_t made = time("last-modified");
    return {std::move(version), now < 0 || made < 0 ? 0 : now - made};
}

void RemoteWriter::confirm(std::string_view key, const RemotePut& put, const RemoteVersion& now) const {
    // If the content is the same, the version is, too; and what is to be absent may have been removed meanwhile.
    if (put.condition != RemotePut::If::same || bare(put.etag) == bare(now.etag)) return;
    const std::string server = service_->server();
    Conducts& all = all_conducts();
    {
        const std::lock_guard guard(all.mutex);
        // One write is enough, also of many at once.
        if (all.confirmed.contains(server) || !all.being_confirmed.insert(server).second) return;
    }
    const BeingConfirmed confirming(all, server);
    const HttpResponse response = HttpClient::shared().send(service_->put(key, put));
    const std::lock_guard guard(all.mutex);
    if (!is_done(response.status)) {
        if (response.status == 412) all.confirmed.insert(server);
        return;
    }
    all.known.erase(server);
    std::error_code error;
    fs::remove(conduct_file(server), error);
    throw Error(ErrorCode::io,
                fmt::format("{}: it was written, but the server does not hold the condition that a value is still the "
                            "one that was read (If-Match), though it did when it was tested: what others wrote "
                            "meanwhile may be lost, and it is tested anew before the next change",
                            service_->request(key).name));
}

/// A conditional write whose answers may be lost.
struct RemoteWriter::Doubted {
    const RemoteWriter& writer;
    std::string_view key;
    const RemotePut& put;
    const std::string& mark;  ///< of the value that is to be replaced
    bool doubt = false;       ///< an earlier try may have been carried out

    [[nodiscard]] std::string name() const { return writer.service_->request(key).name; }

    [[nodiscard]] Error lost(std::string_view why) const {
        return Error(ErrorCode::io, fmt::format("{}: the answer to a write was lost, and {}: it may have taken effect; "
                                                "look before you repeat it",
                                                name(), why));
    }

    /// What `call` gives, or the error: in doubt that the answer was lost.
    template <class Call>
    auto asked(const Call& call) const {
        try {
            return call();
        } catch (const Error& e) {
            if (!doubt || e.code() == ErrorCode::cancelled) throw;
            throw lost(e.what());
        }
    }

    void require_unsure(const HttpResponse& response) const {
        if (doubt) throw lost(fmt::format("then the server answers {}", response.status));
        writer.service_->require_done(response, key);
    }

    [[nodiscard]] bool made(const RemoteVersion& there) const {
        return std::ranges::find(there.writes, put.writes.front()) != there.writes.end();
    }

    /// What others wrote in its place: whether it was carried out before must be known.
    void require_replaced(const RemoteVersion& there) const {
        if (!doubt || std::ranges::find(there.writes, mark) != there.writes.end()) return;
        throw lost(there.writes.empty() && !there.etag.empty()
                       ? "the value that is there now states no writes (x-amz-meta-tessera-writes), by which "
                         "another program made it or the server drops them"
                   : there.etag.empty() ? "the value is gone now"
                                        : "others have written it since");
    }

    [[noreturn]] void give_up(const HttpResponse& response) const {
        if (doubt) throw lost("the server does not answer");
        throw Error(ErrorCode::io,
                    fmt::format("{}: the server answers {} to a write, though the value is the one that was read",
                                name(), response.status));
    }
};

RemotePut RemoteWriter::conditional(std::shared_ptr<const Buffer> body, const RemoteVersion& expected,
                                    const std::string& mark) const {
    RemotePut put{.body = std::move(body), .writes = {random_id(), mark}, .once = true};
    if (!expected.writes.empty()) {
        put.writes.insert(put.writes.end(), expected.writes.begin() + 1, expected.writes.end());
    }
    put.writes.resize(std::min(put.writes.size(), kept_writes));
    put.condition = expected.etag.empty() ? RemotePut::If::absent : RemotePut::If::same;
    put.etag = conduct().bare ? bare(expected.etag) : expected.etag;
    put.generation = expected.generation;
    return put;
}

bool RemoteWriter::put_if(std::string_view key, std::shared_ptr<const Buffer> body, RemoteVersion& expected) const {
    const std::string mark = mark_of(expected);
    const RemotePut put = conditional(std::move(body), expected, mark);
    Doubted write{.writer = *this, .key = key, .put = put, .mark = mark};
    const auto begun = Clock::now();
    for (int tries = 1;; ++tries) {
        const HttpResponse response = write.asked([&] { return HttpClient::shared().send(service_->put(key, put)); });
        write.doubt = write.doubt || response.unsure;
        if (is_done(response.status) && !response.etag().empty()) {
            expected = service_->version_of(response);
            expected.writes = put.writes;
            confirm(key, put, expected);
            return true;
        }
        const bool refused = is_refusal(response, expected);
        if (!is_done(response.status) && !refused && !response.unsure) write.require_unsure(response);
        RemoteVersion there = write.asked([&] { return version(key); });
        if (write.made(there)) {
            expected = std::move(there);
            return true;
        }
        if (!(there == expected)) {
            write.require_replaced(there);
            expected = std::move(there);
            return false;
        }
        // Not carried out yet; if it still is, the condition or the id tell.
        if (tries >= most_writes || Clock::now() - begun > longest_write) write.give_up(response);
        wait_before_retry(tries, longest_wait);
    }
}

HttpTicket RemoteWriter::start_put(std::string_view key, std::shared_ptr<const Buffer> body) const {
    return HttpClient::shared().start(service_->put(key, {.body = std::move(body), .writes = {random_id()}}));
}

void RemoteWriter::finish(HttpTicket ticket, std::string_view key) const {
    service_->require_done(HttpClient::shared().wait(std::move(ticket)), key);
}

}  // namespace tessera
