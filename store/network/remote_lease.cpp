#include "remote_lease.h"

#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/parallel.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <span>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "http_work.h"
#include "remote_writer.h"

namespace tessera {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t life_seconds = 60;
constexpr std::chrono::seconds renewal{20};

class Lease {
public:
    Lease(std::shared_ptr<const RemoteService> service, std::string key)
        : writer_(service), service_(std::move(service)), key_(std::move(key)) {}

    /// Whether it is ours now; else for how long it was not renewed.
    bool take(std::int64_t& age) {
        RemoteVersion there;
        std::tie(there, age) = writer_.look(key_);
        if (!there.etag.empty() && age <= life_seconds) return false;
        const auto now = Clock::now();
        if (!write(there)) return false;
        renewed_ = now;
        return true;
    }
    /// Whether a value lies in the folder that it is for.
    [[nodiscard]] bool is_around(std::string_view value) const {
        const std::string own = name();
        return value.starts_with(std::string_view(own).substr(0, own.size() - lease_key.size())) && value != own;
    }
    void renew() {
        const std::lock_guard guard(mutex_);
        const auto now = Clock::now();
        if (now - renewed_ < renewal) return;
        RemoteVersion own = own_;
        if (!write(own)) {
            throw Error(ErrorCode::io, name() +
                                           ": another program took over what this one was making: nothing of it "
                                           "shows");
        }
        renewed_ = now;
    }
    [[nodiscard]] std::string name() const { return service_->request(key_).name; }
    void release() {
        const std::lock_guard guard(mutex_);
        for (int tries = 1; tries < 5 && writer_.version(key_) == own_; ++tries) {
            // Not sent again where it may have been carried out: the lease may be another program's by then. Else it
            // ends by itself.
            HttpRequest request = service_->erase(key_);
            request.once = true;
            if (!is_collision(HttpClient::shared().send(std::move(request)))) return;
        }
    }

private:
    bool write(RemoteVersion& expected) {
        // Each is another value: the ETag, by which it is known again, is often the sum of the content.
        const std::string text =
            "somebody makes, grows or removes this array; ends a minute after it was written; " + random_id();
        if (!writer_.put_if(key_, std::make_shared<const Buffer>(std::as_bytes(std::span(text))), expected))
            return false;
        own_ = expected;
        return true;
    }

    RemoteWriter writer_;
    std::shared_ptr<const RemoteService> service_;
    std::string key_;
    std::mutex mutex_;
    RemoteVersion own_;
    Clock::time_point renewed_;
};

struct Leases {
    std::mutex mutex;
    std::vector<std::shared_ptr<Lease>> held;
    std::atomic<std::size_t> count = 0;
};

Leases& all_leases() {
    static auto& all = *new Leases;  // never destroyed: threads may end later than main()
    return all;
}

void release(const std::shared_ptr<Lease>& lease) {
    {
        Leases& all = all_leases();
        const std::lock_guard guard(all.mutex);
        std::erase(all.held, lease);
        all.count = all.held.size();
    }
    try {
        const FinishScope finishing;
        lease->release();
    } catch (const Error&) {
        return;  // it ends by itself
    }
}

}  // namespace

StoreLock take_lease(std::shared_ptr<const RemoteService> service, std::string key, const std::string& place,
                     Waiter* waiter) {
    const auto lease = std::make_shared<Lease>(std::move(service), std::move(key));
    bool told = false;
    for (std::int64_t age = 0; !lease->take(age);) {
        if (waiter != nullptr && !std::exchange(told, true)) {
            const std::int64_t left = std::max<std::int64_t>(life_seconds - age, 0) + 1;
            waiter->waits(place, fmt::format("another program, or one that was killed (then for {} s),", left));
        }
        const auto end = Clock::now() + std::chrono::milliseconds(500);
        while (Clock::now() < end) {
            require_not_stopped();
            if (waiter != nullptr && waiter->stopped()) throw cancelled("{}: stopped while it waited", place);
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }
    Leases& all = all_leases();
    {
        const std::lock_guard guard(all.mutex);
        all.held.push_back(lease);
        all.count = all.held.size();
    }
    return StoreLock([lease] { release(lease); });
}

bool holds_lease(std::string_view name) {
    Leases& all = all_leases();
    const std::lock_guard guard(all.mutex);
    return std::ranges::any_of(all.held, [&](const auto& lease) { return lease->name() == name; });
}

void renew_lease_of(std::string_view name) {
    Leases& all = all_leases();
    if (all.count == 0) return;
    std::vector<std::shared_ptr<Lease>> around;
    {
        const std::lock_guard guard(all.mutex);
        for (const auto& lease : all.held) {
            if (lease->is_around(name)) around.push_back(lease);
        }
    }
    for (const auto& lease : around) lease->renew();
}

}  // namespace tessera
