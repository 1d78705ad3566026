// One thread runs all transfers of the process. It starts few at once, twice as many with each round that goes well,
// and half as many when a server asks for less (429, 503), so that a new host sees few connections at first.
//
// libcurl 7.88: HTTP/2 by prior knowledge fails on connections that are used again, so only TLS negotiates it. A body
// that ends with its connection and states no length looks whole to libcurl; here it is an error.
#include "http_client.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <tessera/byte_io.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <tessera/parallel.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "http_cache.h"
#include "http_work.h"
#include "remote_activity.h"

namespace tessera {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int most_tries = 10;
constexpr int most_tries_to_connect = 3;
constexpr int most_redirects = 5;
constexpr milliseconds most_time{180'000};
constexpr milliseconds first_delay{100};
constexpr milliseconds longest_delay{20'000};
using Work = HttpWork;

bool is_tried_again(int status) {
    return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

bool is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// How often a failure of libcurl is tried.
int tries_after(CURLcode code) {
    switch (code) {
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY:
        case CURLE_COULDNT_CONNECT:
        case CURLE_SSL_CONNECT_ERROR:
            return most_tries_to_connect;
        case CURLE_PARTIAL_FILE:
        case CURLE_OPERATION_TIMEDOUT:
        case CURLE_GOT_NOTHING:
        case CURLE_SEND_ERROR:
        case CURLE_RECV_ERROR:
        case CURLE_HTTP2:
        case CURLE_HTTP2_STREAM:
            return most_tries;
        default:
            return 1;
    }
}

/// Whether the request has certainly not reached the server.
bool is_before_sending(CURLcode code) {
    return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_CONNECT ||
           code == CURLE_SSL_CONNECT_ERROR;
}

}  // namespace

std::string_view HttpResponse::header(std::string_view name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

// ---- the thread

class HttpClient::Loop {
public:
    Loop() : multi_(curl().multi_init()) {
        curl().multi_setopt(multi_, CURLMOPT_MAXCONNECTS, long{most_in_flight});
        curl().multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
        // It serves until the process ends; nothing of it is ever destroyed.
        std::thread([this] { run(); }).detach();
    }

    /// Called while the process ends: from then on the threads do nothing more. Requests that nobody waits for may be
    /// under way, and libcrypto frees what signing them takes.
    /// One that does not stop soon, as it looks up a host's name, keeps nobody waiting.
    void end() {
        constexpr std::chrono::seconds longest{1};
        (void)after_.try_lock_for(longest);
        (void)turn_.try_lock_for(longest);
    }

    void add(std::shared_ptr<Work> work) {
        {
            const std::lock_guard guard(mutex_);
            arrived_.push_back(std::move(work));
        }
        curl().multi_wakeup(multi_);
    }

    void abandon(Work& work) {
        work.abandoned = true;
        curl().multi_wakeup(multi_);
    }

    void wait_for(Work& work) {
        std::unique_lock guard(mutex_);
        while (!work.done) {
            // By the system's clock: GCC 12's ThreadSanitizer does not see waits by the steady one.
            changed_.wait_until(guard, std::chrono::system_clock::now() + milliseconds(50));
            if (work.done) break;
            guard.unlock();
            require_not_stopped();
            guard.lock();
        }
    }

    void reuse(Buffer body) {
        const auto& account = MemoryAccount::current();
        spares_.give_back(std::move(body), account == nullptr ? UINT64_MAX : account->limit());
    }

    [[nodiscard]] HttpCounts counts() const { return {requests_.load(), bytes_.load()}; }
    [[nodiscard]] std::uint64_t worth_a_request(const std::string& host) {
        constexpr double least = 256 << 10;
        constexpr double most = 16 << 20;
        Pace pace;
        {
            const std::lock_guard guard(mutex_);
            if (const auto found = paces_.find(host); found != paces_.end()) pace = found->second;
        }
        return static_cast<std::uint64_t>(std::clamp(pace.round_trip * pace.bytes_per_second, least, most));
    }
    [[nodiscard]] RemoteActivity activity() {
        constexpr std::chrono::seconds patience{3};
        RemoteActivity result{.requests = requests_, .bytes = bytes_};
        const std::lock_guard guard(mutex_);
        if (oldest_ != nullptr && Clock::now() - last_answer_ > patience) result.waits_for = oldest_->request.name;
        return result;
    }

private:
    using Shared = std::shared_ptr<Work>;

    /// Of the answers of one host, the latest weighing most.
    struct Pace {
        double round_trip = 0.03;        ///< seconds until an answer begins
        double bytes_per_second = 50e6;  ///< of one answer, once it has begun
        bool measured = false;
    };

    void note_pace(const Work& work) {
        constexpr curl_off_t least = 256 << 10;  // of a shorter body most comes at once
        curl_off_t sent = 0;
        curl_off_t begun = 0;
        curl_off_t ended = 0;
        curl_off_t bytes = 0;
        curl().easy_getinfo(work.easy, CURLINFO_PRETRANSFER_TIME_T, &sent);
        curl().easy_getinfo(work.easy, CURLINFO_STARTTRANSFER_TIME_T, &begun);
        curl().easy_getinfo(work.easy, CURLINFO_TOTAL_TIME_T, &ended);
        curl().easy_getinfo(work.easy, CURLINFO_SIZE_DOWNLOAD_T, &bytes);
        if (begun <= sent || work.request.body != nullptr) return;
        constexpr double weight = 0.25;
        const double round_trip = static_cast<double>(begun - sent) / 1e6;
        const std::lock_guard guard(mutex_);
        Pace& pace = paces_[work.home];
        pace.round_trip = pace.measured ? pace.round_trip + weight * (round_trip - pace.round_trip) : round_trip;
        pace.measured = true;
        if (bytes < least || ended <= begun) return;
        const double rate = static_cast<double>(bytes) * 1e6 / static_cast<double>(ended - begun);
        pace.bytes_per_second += weight * (rate - pace.bytes_per_second);
    }

    [[noreturn]] void run() {
        for (;;) {
            std::unique_lock turn(turn_);
            take_arrived();
            drop_abandoned();
            start_waiting();
            int running = 0;
            curl().multi_perform(multi_, &running);
            for (int left = 0; const CURLMsg* message = curl().multi_info_read(multi_, &left);) {
                if (message->msg == CURLMSG_DONE) end_try(message->easy_handle, message->data.result);
            }
            note_oldest();
            if (running_.empty() && waiting_.empty()) spares_.drop();
            const auto sleep = static_cast<int>(time_to_sleep().count());
            turn.unlock();
            curl().multi_poll(multi_, nullptr, 0, sleep, nullptr);
        }
    }

    /// For people who wait.
    void note_oldest() {
        const Shared oldest = !running_.empty() ? running_.front() : waiting_.empty() ? nullptr : waiting_.front();
        const std::lock_guard guard(mutex_);
        if (oldest_ == oldest) return;
        oldest_ = oldest;
        last_answer_ = Clock::now();
    }

    void take_arrived() {
        const std::lock_guard guard(mutex_);
        for (Shared& work : arrived_) waiting_.push_back(std::move(work));
        arrived_.clear();
    }

    void drop_abandoned() {
        std::erase_if(waiting_, [](const Shared& work) { return work->abandoned.load(); });
        std::erase_if(running_, [&](const Shared& work) {
            if (!work->abandoned) return false;
            close(*work);
            return true;
        });
    }

    [[nodiscard]] milliseconds time_to_sleep() const {
        milliseconds time{60'000};
        if (running_.size() >= window()) return time;
        const auto now = Clock::now();
        for (const Shared& work : waiting_) {
            time = std::min(time, std::chrono::duration_cast<milliseconds>(work->not_before - now) + milliseconds(1));
        }
        return std::max(time, milliseconds(0));
    }

    [[nodiscard]] std::size_t window() const { return static_cast<std::size_t>(window_); }

    void start_waiting() {
        const auto now = Clock::now();
        for (auto at = waiting_.begin(); at != waiting_.end() && running_.size() < window();) {
            if ((*at)->not_before > now) {
                ++at;
                continue;
            }
            Shared work = std::move(*at);
            at = waiting_.erase(at);
            begin_try(work);
        }
    }

    void begin_try(const Shared& shared) {
        Work& work = *shared;
        ++work.tries;
        work.response = {};
        work.too_long = false;
        work.header_bytes = 0;
        work.easy = curl().easy_init();
        work.spares = &spares_;
        try {
            set_options(work);
        } catch (...) {
            work.failure = std::current_exception();
            close(work);
            finish(shared);
            return;
        }
        ++requests_;
        curl().multi_add_handle(multi_, work.easy);
        running_.push_back(shared);
    }

    void end_try(CURL* easy, CURLcode code) {
        const auto found = std::ranges::find_if(running_, [&](const Shared& work) { return work->easy == easy; });
        const Shared shared = *found;
        running_.erase(found);
        Work& work = *shared;
        long status = 0;
        curl().easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        work.response.status = static_cast<int>(status);
        const char* next = nullptr;
        curl().easy_getinfo(easy, CURLINFO_REDIRECT_URL, &next);
        const std::string redirect = next == nullptr ? "" : next;
        if (work.redirects == 0 && next != nullptr) work.origin = nearness_of(work);
        const bool framed = is_framed(work);
        bytes_ += work.response.body.size();
        if (work.request.log && !work.abandoned) tell(work, code);
        if (code == CURLE_OK && work.redirects == 0) note_pace(work);
        close(work);
        if (work.abandoned) return;
        try {
            if (work.failure) std::rethrow_exception(std::exchange(work.failure, nullptr));
            const MemoryScope scope(work.account);
            if (judge(work, code, framed, redirect)) {
                finish(shared);
            } else {
                waiting_.push_back(shared);
            }
        } catch (...) {
            work.failure = std::current_exception();
            finish(shared);
        }
    }

    /// Whether the answer is there; false to try again. Throws what ends the request.
    bool judge(Work& work, CURLcode code, bool framed, const std::string& redirect) {
        const HttpRequest& request = work.request;
        const int status = work.response.status;
        if (work.too_long) return cut_short(work);
        if (request.once && !is_before_sending(code) && (code != CURLE_OK || is_tried_again(status))) {
            return left_unsure(work, code);
        }
        if (code != CURLE_OK) {
            const bool has_body = status == 200 || status == 206;
            if (has_body) keep_what_came(work);
            return later(work, tries_after(code), failure_text(work, code), false);
        }
        if (is_tried_again(status)) {
            return later(work, most_tries, fmt::format("the server answers {}", status),
                         status == 429 || status == 503);
        }
        if (!request.once && is_collision(work.response)) {
            return later(work, most_tries, fmt::format("the server answers {}", status), false);
        }
        if (request.follow && is_redirect(status)) return redirected(work, redirect);
        window_ = std::min<double>(most_in_flight, window_ + (slow_start_ ? 1 : 1 / window_));
        return !is_reading(request) || judge_value(work, framed);
    }

    /// An answer that is longer than what was asked for.
    static bool cut_short(Work& work) {
        const HttpRequest& request = work.request;
        const int status = work.response.status;
        if (request.gives_up) {
            work.response.body = {};
            work.response.total = limit_of(request, status) + 1;
            return true;
        }
        throw corrupt("{}: larger than {} bytes{}", request.name, limit_of(request, status),
                      status == 200 && request.range ? ", and its server ignores ranges" : "");
    }

    /// A request that is sent once, and may have been carried out.
    bool left_unsure(Work& work, CURLcode code) {
        const int status = work.response.status;
        if (status == 429 || status == 503) ask_for_less();
        work.response.unsure = true;
        if (code == CURLE_OK) return true;
        work.response.status = 0;
        work.response.trouble = failure_text(work, code);
        return true;
    }

    /// The answer to a request that reads.
    bool judge_value(Work& work, bool framed) {
        const int status = work.response.status;
        if (work.request.method == "HEAD") {
            work.response.total = number_in_header(work.response.header("content-length")).value_or(0);
            return true;
        }
        if (status == 412 && !work.kept.empty()) {  // another version: from the beginning
            work.kept = {};
            work.kept_version.clear();
            return later(work, most_tries, "the value is replaced again and again", false);
        }
        if (status == 416) {
            const ContentRange range = content_range(work.response.header("content-range"));
            work.response.total = range.total.value_or(0);
            work.response.body = {};
            return true;
        }
        if (status != 200 && status != 206) return true;
        if (!framed) {
            throw corrupt("{}: the server's answer does not state how long it is, so that it may be cut",
                          work.request.name);
        }
        if (status == 206) {
            check_part(work);
        } else {
            cut_whole(work);
        }
        return true;
    }

    bool redirected(Work& work, const std::string& to) {
        const std::string& name = work.request.name;
        if (++work.redirects > most_redirects) throw unsupported("{}: more than {} redirections", name, most_redirects);
        const bool safe = to.starts_with("https://") || (to.starts_with("http://") && work.url.starts_with("http://"));
        if (!safe) throw unsupported("{}: a redirection to \"{}\" is not followed", name, to.substr(0, to.find('?')));
        work.url = to;
        require_not_inward(work, nearness_of(work.url));
        --work.tries;
        return false;
    }

    void ask_for_less() {
        slow_start_ = false;
        window_ = std::max(1.0, window_ / 2);
    }

    bool later(Work& work, int tries, const std::string& why, bool too_many) {
        if (too_many) ask_for_less();
        const auto now = Clock::now();
        if (work.request.patience.count() > 0) tries = 1;
        if (work.tries >= tries || now - work.begun > most_time) {
            throw Error(ErrorCode::io, fmt::format("{}: {}{}", work.request.name, why,
                                                   work.tries > 1 ? fmt::format(" (tried {} times)", work.tries) : ""));
        }
        // All of the delay is drawn by lot, so that clients that failed together do not come back together.
        const auto most = std::min(longest_delay, first_delay * (1 << std::min(work.tries - 1, 10)));
        auto delay = milliseconds(std::uniform_int_distribution<std::int64_t>(0, most.count())(random_));
        if (const auto asked = number_in_header(work.response.header("retry-after"))) {
            delay = std::max(delay, milliseconds(1000 * std::min<std::uint64_t>(*asked, 60)));
        }
        work.not_before = now + delay;
        return false;
    }

    void close(Work& work) const {
        if (work.easy != nullptr) {
            curl().multi_remove_handle(multi_, work.easy);
            curl().easy_cleanup(std::exchange(work.easy, nullptr));
        }
        curl().slist_free_all(std::exchange(work.lines, nullptr));
    }

    void finish(const Shared& work) {
        const std::lock_guard guard(mutex_);
        if (work->after) {
            ended_.push_back(work);
            if (!std::exchange(runs_after_, true)) std::thread([this] { run_after(); }).detach();
            some_ended_.notify_one();
            return;
        }
        work->done = true;
        changed_.notify_all();
    }

    /// Keeps answers on the disk, so that the thread of all transfers never waits for one.
    [[noreturn]] void run_after() {
        for (;;) {
            Shared work;
            {
                std::unique_lock guard(mutex_);
                some_ended_.wait(guard, [&] { return !ended_.empty(); });
                work = std::move(ended_.front());
                ended_.pop_front();
            }
            const std::lock_guard turn(after_);
            const auto after = std::exchange(work->after, nullptr);
            const MemoryScope scope(work->account);
            if (!work->abandoned && after(*work)) {
                add(std::move(work));
            } else {
                finish(work);
            }
        }
    }

    CURLM* multi_;
    std::timed_mutex turn_;   ///< held by the thread but while it sleeps
    std::timed_mutex after_;  ///< held by the thread for what follows an answer while that is done
    std::mutex mutex_;
    std::condition_variable changed_;
    std::condition_variable some_ended_;
    std::deque<Shared> arrived_;
    Shared oldest_;  ///< of those under way
    Clock::time_point last_answer_ = Clock::now();
    std::deque<Shared> ended_;
    std::map<std::string, Pace> paces_;  ///< by host
    HttpSpares spares_;
    bool runs_after_ = false;  ///< the thread for what follows an answer has begun
    std::atomic<std::uint64_t> requests_ = 0;
    std::atomic<std::uint64_t> bytes_ = 0;
    // ---- the thread's own
    std::deque<Shared> waiting_;
    std::vector<Shared> running_;
    double window_ = 64;  ///< how many may run at once
    bool slow_start_ = true;
    std::minstd_rand random_{std::random_device{}()};
};

// ---- times

void TimesOfAnswers::note(const std::string& name, const HttpResponse& response) {
    const auto time = [&](std::string_view line) -> std::int64_t {
        const std::string text(response.header(line));
        return text.empty() ? 0 : curl().getdate(text.c_str(), nullptr);
    };
    const std::int64_t now = time("date");
    const std::int64_t changed = time("last-modified");
    const std::lock_guard guard(mutex_);
    seen_.now = std::max(seen_.now, now);
    if (changed <= seen_.changed) return;
    seen_.changed = changed;
    seen_.name = name;
}

SeenTimes TimesOfAnswers::seen() const {
    const std::lock_guard guard(mutex_);
    return seen_;
}

// ---- HttpClient

class HttpTransfer {
public:
    HttpTransfer(std::shared_ptr<HttpClient::Loop> loop, HttpRequest request)
        : loop_(std::move(loop)), work_(std::make_shared<Work>(std::move(request))), cache_(work_->request.cache) {
        send();
    }
    ~HttpTransfer() {
        if (state_ == State::sent) loop_->abandon(*work_);
    }
    HttpTransfer(const HttpTransfer&) = delete;
    HttpTransfer& operator=(const HttpTransfer&) = delete;

    HttpResponse take() {
        HttpResponse response = answer();
        constexpr int most = 2;
        for (int again = 0; again < most && renews(response); ++again) {
            const bool unsure = response.unsure;  // it may have been sent twice
            work_ = std::make_shared<Work>(std::move(work_->request));
            send();
            response = answer();
            response.unsure = response.unsure || unsure;
        }
        if (work_->request.times) work_->request.times->note(work_->request.name, response);
        return response;
    }

private:
    enum class State : std::uint8_t {
        sent,          ///< or answered
        kept,          ///< the answer lies in the cache
        others_fetch,  ///< another thread or process is asking for the same
    };

    bool renews(const HttpResponse& response) {
        constexpr std::array<int, 5> statuses{301, 307, 400, 401, 403};
        HttpRequest& request = work_->request;
        return request.renew && std::ranges::find(statuses, response.status) != statuses.end() &&
               request.renew(request, response);
    }

    void send() {
        if (cache_ != nullptr && cache_->serves(work_->request)) {
            begin(true);
            return;
        }
        if (cache_ != nullptr && cache_->is_offline()) {
            refuse();
            return;
        }
        if (cache_ != nullptr && !is_reading(work_->request)) {
            const bool known = cache_->forget(work_->request);
            work_->after = [cache = cache_, known](Work& work) {
                (void)cache->forget(work.request);
                const bool set = !work.failure && work.response.status / 100 == 2 && !work.response.unsure;
                if (known && set && work.request.method == "PUT") cache->replace(work.request, work.response);
                return false;
            };
        }
        loop_->add(work_);
    }

    HttpResponse answer() {
        for (;;) {
            if (state_ == State::others_fetch) {
                wait_for_others();
            } else if (state_ == State::kept) {
                if (auto response = cache_->load(work_->request)) return *std::move(response);
                begin(false);  // it is damaged, or gone
            } else {
                break;
            }
        }
        loop_->wait_for(*work_);
        if (work_->failure) std::rethrow_exception(work_->failure);
        return std::move(work_->response);
    }

    /// Asks the cache, else the server. `look`: an entry may serve without validation.
    void begin(bool look) {
        HttpRequest& request = work_->request;
        std::shared_ptr<void> claim;
        for (;;) {
            const auto found = cache_->look(request, begun_);
            if (look && found && found->fresh) {
                state_ = State::kept;
                return;
            }
            if (cache_->is_offline()) return refuse();
            request.if_none_match = look && found ? found->etag : std::string();
            if (claim != nullptr || alone_) break;
            claim = cache_->claim(request);
            if (claim == nullptr) {
                state_ = State::others_fetch;
                return;
            }
        }
        state_ = State::sent;
        work_->after = [cache = cache_, claim = std::move(claim), writes = cache_->writes()](Work& work) {
            if (work.failure) return false;
            if (work.response.status != 304) {
                cache->keep(work.request, work.response, writes);
                return false;
            }
            cache->confirm(work.request);
            if (auto kept = cache->load(work.request)) {
                work.response = *std::move(kept);
                return false;
            }
            work.request.if_none_match.clear();  // it is damaged, or gone
            return true;
        };
        loop_->add(work_);
    }

    void wait_for_others() {
        constexpr std::chrono::seconds longest{30};
        const auto end = Clock::now() + longest;
        while (state_ == State::others_fetch) {
            require_not_stopped();
            std::this_thread::sleep_for(milliseconds(5));
            alone_ = Clock::now() > end;
            begin(true);
        }
    }

    void refuse() {
        state_ = State::sent;
        work_->failure = std::make_exception_ptr(Error(
            ErrorCode::io, fmt::format("{}: is not in the cache{}, and nothing is asked over the network (offline)",
                                       work_->request.name, cache_->folder().empty() ? "" : " " + cache_->folder())));
        work_->done = true;
    }

    std::shared_ptr<HttpClient::Loop> loop_;
    std::shared_ptr<Work> work_;
    std::shared_ptr<HttpCache> cache_;
    State state_ = State::sent;
    bool alone_ = false;  ///< does not wait for others
    std::int64_t begun_ = DiskCache::now();
};

void AbandonTransfer::operator()(HttpTransfer* transfer) const noexcept {
    delete transfer;
}

HttpClient::HttpClient() {
    curl().global_init(CURL_GLOBAL_DEFAULT);
    loop_ = std::make_shared<Loop>();
    set_activity_source([] { return shared().loop_->activity(); });
}

struct HttpClient::Process {
    explicit Process(int of) : number(of) {}
    int number;
    HttpClient client;
};

namespace {

/// Has `end` called when the process ends: before libcrypto's own end, which is registered first.
bool call_at_end(void (*end)()) {
    return OPENSSL_init_crypto(0, nullptr) == 1 && std::atexit(end) == 0;
}

}  // namespace

HttpClient& HttpClient::shared() {
    static std::atomic<Process*> current = nullptr;
    // A forked child that has asked for nothing has no thread to end.
    [[maybe_unused]] static const bool called = call_at_end([] {
        const Process* const last = current.load();
        if (last != nullptr && last->number == process_number()) last->client.loop_->end();
    });
    Process* process = current.load();
    while (process == nullptr || process->number != process_number()) {
        auto made = std::make_unique<Process>(process_number());
        if (current.compare_exchange_strong(process, made.get())) process = made.release();
    }
    return process->client;
}

HttpTicket HttpClient::start(HttpRequest request) {
    return HttpTicket(new HttpTransfer(loop_, std::move(request)));
}

HttpResponse HttpClient::wait(HttpTicket ticket) {
    return ticket->take();
}

void HttpClient::reuse(HttpResponse response) {
    if (response.fetched && !response.counted) loop_->reuse(std::move(response.body));
}

std::uint64_t HttpClient::worth_a_request(const std::string& url) const {
    return loop_->worth_a_request(host_of(url));
}

HttpCounts HttpClient::counts() const {
    return loop_->counts();
}

}  // namespace tessera
