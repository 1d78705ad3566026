#include "remote_source.h"

#include <tessera/error_text.h>

#include <algorithm>
#include <cstring>

namespace tessera {

namespace {

// Ranges of one value that lie so close together are one request of at most so many bytes.
constexpr std::uint64_t widest_gap = std::uint64_t{1} << 20;
/// As long as there are few: more requests at once then take no longer than one.
constexpr std::uint64_t gap_of_few = std::uint64_t{64} << 10;
constexpr std::size_t few_ranges = 32;
constexpr std::uint64_t longest_request = std::uint64_t{16} << 20;
/// Fetched before anybody asked, of one value, at most.
constexpr std::uint64_t most_ahead = std::uint64_t{64} << 20;

/// Copies bytes out of an answer, if it has all of them.
bool take(const HttpResponse& response, std::uint64_t offset, MutableByteSpan out) {
    const ByteSpan body = response.body;
    if (offset < response.first || offset - response.first > body.size() ||
        out.size() > body.size() - (offset - response.first)) {
        return false;
    }
    std::memcpy(out.data(), body.data() + (offset - response.first), out.size());
    return true;
}

}  // namespace

void RemoteSource::read(std::uint64_t offset, MutableByteSpan out) const {
    require_range(*this, offset, out.size());
    if (out.empty() || take(tail_, offset, out)) return;
    std::shared_ptr<Fetched> fetched = announced(offset, out.size());
    if (fetched == nullptr) {
        fetched = std::make_shared<Fetched>();
        fetched->first = offset;
        fetched->length = out.size();
        fetched->ticket = start(offset, out.size(), false);
    }
    const std::lock_guard guard(fetched->mutex);
    if (fetched->ticket) fetched->response = finish(std::move(fetched->ticket));
    if (!take(fetched->response, offset, out)) {
        throw corrupt("{}: asked for {} bytes at offset {}, and got others", name_, out.size(), offset);
    }
}

void RemoteSource::expect(std::span<const Extent> extents) const {
    if (extents.size() < 2) return;
    const std::lock_guard guard(mutex_);
    ahead_.clear();
    held_ = MemoryHold();
    // The rest is for who reads.
    const std::uint64_t room = std::min(memory_left() / 4, most_ahead);
    std::uint64_t bytes = 0;
    const std::uint64_t gap = extents.size() <= few_ranges ? gap_of_few : widest_gap;
    for (std::size_t i = 0; i < extents.size() && bytes < room;) {
        const std::uint64_t begin = extents[i].begin;
        std::uint64_t end = extents[i].end;
        for (++i; i < extents.size(); ++i) {
            const Extent& next = extents[i];
            if (next.begin < begin || next.begin > end + gap || next.end > begin + longest_request) break;
            if (next.end - begin > room - bytes) break;
            end = std::max(end, next.end);
        }
        if (end - begin > room - bytes) break;
        if (end > size() || (begin >= tail_.first && end <= tail_.first + tail_.body.size())) continue;
        try {
            held_.add(end - begin);
        } catch (const Error&) {  // another thread has that room now
            break;
        }
        auto fetched = std::make_shared<Fetched>();
        fetched->first = begin;
        fetched->length = end - begin;
        fetched->ticket = start(begin, end - begin, true);
        ahead_.push_back(std::move(fetched));
        bytes += end - begin;
    }
}

bool RemoteSource::take_first(std::uint64_t offset, MutableByteSpan out) const {
    return take(tail_, offset, out);
}

HttpTicket RemoteSource::start(std::uint64_t offset, std::uint64_t length, bool held) const {
    HttpRequest request = service_->request(key_);
    request.cached = true;
    request.range = HttpRange{.first = offset, .length = length};
    if (held) request.held = length;
    const std::string_view version = tail_.etag();
    if (version.starts_with('"')) request.if_match = version;
    return HttpClient::shared().start(std::move(request));
}

HttpResponse RemoteSource::finish(HttpTicket ticket) const {
    HttpResponse response = HttpClient::shared().wait(std::move(ticket));
    const bool other = (response.total != tail_.total && response.status < 300) ||
                       (!tail_.etag().empty() && response.etag() != tail_.etag() && response.status < 300);
    if (response.status == 412 || response.status == 404 || response.status == 416 || other) {
        if (replaced_ != nullptr) ++*replaced_;
        throw Error(ErrorCode::io, name_ + ": was replaced while it was read; read again");
    }
    (void)service_->is_absent(response, key_);
    return response;
}

std::shared_ptr<RemoteSource::Fetched> RemoteSource::announced(std::uint64_t offset, std::uint64_t length) const {
    const std::lock_guard guard(mutex_);
    const auto found = std::ranges::find_if(ahead_, [&](const auto& fetched) {
        return fetched->first <= offset && offset + length <= fetched->first + fetched->length;
    });
    return found == ahead_.end() ? nullptr : *found;
}

}  // namespace tessera
