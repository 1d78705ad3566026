#include "sent_values.h"

#include <algorithm>
#include <utility>

namespace tessera {

namespace {

/// Sent and not yet answered, at most.
constexpr std::uint64_t most_sent = std::uint64_t{64} << 20;

}  // namespace

void SentValues::send(std::string_view key, std::shared_ptr<const Buffer> body) {
    settle(key);
    auto sent = std::make_shared<Sent>();
    sent->key = key;
    sent->size = body->size();
    sent->ticket = writer_.start_put(key, std::move(body));
    std::shared_ptr<Sent> oldest;
    {
        const std::lock_guard guard(mutex_);
        bytes_ += sent->size;
        sent_.push_back(std::move(sent));
        if (bytes_ > most_sent || sent_.size() > HttpClient::most_in_flight) oldest = sent_.front();
    }
    if (oldest) settle(oldest);
}

void SentValues::settle(const std::shared_ptr<Sent>& sent) {
    try {
        const std::lock_guard guard(sent->mutex);
        if (sent->ticket) writer_.finish(std::move(sent->ticket), sent->key);
    } catch (...) {
        const std::lock_guard guard(mutex_);
        failure_ = std::current_exception();
        take_out(sent);
        throw;
    }
    const std::lock_guard guard(mutex_);
    take_out(sent);
}

void SentValues::take_out(const std::shared_ptr<Sent>& sent) {
    const auto found = std::ranges::find(sent_, sent);
    if (found == sent_.end()) return;
    bytes_ -= sent->size;
    sent_.erase(found);
}

void SentValues::settle(std::string_view key) {
    std::shared_ptr<Sent> found;
    {
        const std::lock_guard guard(mutex_);
        const auto at = std::ranges::find_if(sent_, [&](const auto& sent) { return sent->key == key; });
        if (at != sent_.end()) found = *at;
    }
    if (found) settle(found);
}

void SentValues::settle_all() {
    for (;;) {
        std::shared_ptr<Sent> first;
        {
            const std::lock_guard guard(mutex_);
            if (sent_.empty()) return;
            first = sent_.front();
        }
        settle(first);
    }
}

void SentValues::require_no_failure() const {
    const std::lock_guard guard(mutex_);
    if (failure_) std::rethrow_exception(failure_);
}

void SentValues::forget_failure() {
    const std::lock_guard guard(mutex_);
    failure_ = nullptr;
}

}  // namespace tessera
