// What is opened is asked for by its last bytes: the answer states size and version (ETag), holds small values whole,
// and the index of a shard. Later ranges carry the version, so that all bytes of a source are of one value.
#include "remote_store.h"

#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "keys.h"

namespace tessera {

namespace {

constexpr std::uint64_t tail_bytes = std::uint64_t{64} << 10;
// Ranges of one value that lie so close together are one request of at most so many bytes.
constexpr std::uint64_t widest_gap = std::uint64_t{1} << 20;
constexpr std::uint64_t longest_request = std::uint64_t{16} << 20;
/// The documents of a node: whoever asks for one asks for others next, so all are asked for at once.
constexpr std::array<std::string_view, 11> documents{"zarr.json",
                                                     ".zarray",
                                                     ".zattrs",
                                                     ".zgroup",
                                                     ".zmetadata",
                                                     "__zmeta__",
                                                     "__zattr__",
                                                     "meta",
                                                     "attrs",
                                                     ".tessera/batch/journal",
                                                     ".tessera/unfinished.json"};
/// So long the answers serve who opens the node.
constexpr std::chrono::seconds document_age{2};
/// Fetched before anybody asked, at most.
constexpr std::uint64_t most_ahead = std::uint64_t{64} << 20;

std::uint64_t hash_of(std::string_view text) {
    std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
    return hash;
}

/// A value, by ranges of one version.
class RemoteSource final : public ByteSource {
public:
    RemoteSource(std::shared_ptr<const RemoteService> service, std::string key, std::string name, HttpResponse tail)
        : service_(std::move(service)), key_(std::move(key)), name_(std::move(name)), tail_(std::move(tail)) {}

    [[nodiscard]] std::uint64_t size() const override { return tail_.total; }
    [[nodiscard]] const std::string& name() const override { return name_; }

    void read(std::uint64_t offset, MutableByteSpan out) const override {
        if (offset > size() || out.size() > size() - offset) {
            throw corrupt("{}: expected {} bytes at offset {}, but it has {}", name_, out.size(), offset, size());
        }
        if (out.empty() || take(tail_, offset, out)) return;
        std::shared_ptr<Fetched> fetched = announced(offset, out.size());
        if (fetched == nullptr) {
            fetched = std::make_shared<Fetched>();
            fetched->first = offset;
            fetched->length = out.size();
            fetched->ticket = start(offset, out.size());
        }
        const std::lock_guard guard(fetched->mutex);
        if (fetched->ticket) fetched->response = finish(std::move(fetched->ticket));
        if (!take(fetched->response, offset, out)) {
            throw corrupt("{}: asked for {} bytes at offset {}, and got others", name_, out.size(), offset);
        }
    }

    void expect(std::span<const Extent> extents) const override {
        if (extents.size() < 2) return;
        const std::lock_guard guard(mutex_);
        ahead_.clear();
        std::uint64_t bytes = 0;
        for (std::size_t i = 0; i < extents.size() && bytes < most_ahead;) {
            const std::uint64_t begin = extents[i].begin;
            std::uint64_t end = extents[i].end;
            for (++i; i < extents.size(); ++i) {
                const Extent& next = extents[i];
                if (next.begin < begin || next.begin > end + widest_gap || next.end > begin + longest_request) break;
                end = std::max(end, next.end);
            }
            if (end > size() || begin >= size() - std::min<std::uint64_t>(size(), tail_.body.size())) continue;
            auto fetched = std::make_shared<Fetched>();
            fetched->first = begin;
            fetched->length = end - begin;
            fetched->ticket = start(begin, end - begin);
            ahead_.push_back(std::move(fetched));
            bytes += end - begin;
        }
    }

private:
    struct Fetched {
        std::uint64_t first = 0;
        std::uint64_t length = 0;
        std::mutex mutex;
        HttpTicket ticket;
        HttpResponse response;
    };

    /// Copies bytes out of an answer, if it has all of them.
    static bool take(const HttpResponse& response, std::uint64_t offset, MutableByteSpan out) {
        const ByteSpan body = response.body;
        if (offset < response.first || offset - response.first > body.size() ||
            out.size() > body.size() - (offset - response.first)) {
            return false;
        }
        std::memcpy(out.data(), body.data() + (offset - response.first), out.size());
        return true;
    }

    [[nodiscard]] std::shared_ptr<Fetched> announced(std::uint64_t offset, std::uint64_t length) const {
        const std::lock_guard guard(mutex_);
        const auto found = std::ranges::find_if(ahead_, [&](const auto& fetched) {
            return fetched->first <= offset && offset + length <= fetched->first + fetched->length;
        });
        return found == ahead_.end() ? nullptr : *found;
    }

    [[nodiscard]] HttpTicket start(std::uint64_t offset, std::uint64_t length) const {
        HttpRequest request = service_->request(key_);
        request.range = HttpRange{.first = offset, .length = length};
        const std::string_view version = tail_.etag();
        if (version.starts_with('"')) request.if_match = version;
        return HttpClient::shared().start(std::move(request));
    }

    [[nodiscard]] HttpResponse finish(HttpTicket ticket) const {
        HttpResponse response = HttpClient::shared().wait(std::move(ticket));
        const bool other = (response.total != tail_.total && response.status < 300) ||
                           (!tail_.etag().empty() && response.etag() != tail_.etag() && response.status < 300);
        if (response.status == 412 || response.status == 404 || response.status == 416 || other) {
            throw Error(ErrorCode::io, name_ + ": was replaced while it was read; read again");
        }
        (void)service_->is_absent(response, key_);
        return response;
    }

    std::shared_ptr<const RemoteService> service_;
    std::string key_;
    std::string name_;
    HttpResponse tail_;
    mutable std::mutex mutex_;
    mutable std::vector<std::shared_ptr<Fetched>> ahead_;
};

class RemoteStore final : public KeyValueStore {
public:
    RemoteStore(std::string name, std::unique_ptr<RemoteService> service)
        : name_(std::move(name)), service_(std::move(service)) {}

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        require_key(key);
        if (const auto known = document(key)) return small_source(*known, key);
        HttpTicket ticket = announced(key);
        HttpResponse response = HttpClient::shared().wait(ticket ? std::move(ticket) : start_tail(key));
        if (service_->is_absent(response, key)) return nullptr;
        const std::string name = join_key(name_, key);
        if (response.first == 0) return memory_source(std::move(response.body), name);
        return std::make_unique<RemoteSource>(service_, std::string(key), name, std::move(response));
    }

    [[nodiscard]] bool get(std::string_view key, Buffer& out, std::uint64_t limit) const override {
        require_key(key);
        if (const auto known = document(key)) {
            const auto source = small_source(*known, key);
            if (source == nullptr) return false;
            require_size(source->name(), source->size(), limit);
            out.reset(source->size());
            source->read(0, out.span());
            return true;
        }
        HttpTicket ticket = announced(key);
        HttpResponse response = HttpClient::shared().wait(ticket ? std::move(ticket) : start_whole(key, limit));
        if (service_->is_absent(response, key)) return false;
        if (response.body.size() != response.total) {  // announced by its tail, and longer
            response = HttpClient::shared().wait(start_whole(key, limit));
            if (service_->is_absent(response, key)) return false;
        }
        require_size(join_key(name_, key), response.body.size(), limit);
        out.reset(response.body.size());
        if (!response.body.empty()) std::memcpy(out.data(), response.body.data(), out.size());
        return true;
    }

    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const override {
        require_key(key);
        std::shared_ptr<const HttpResponse> known = document(key);
        if (known == nullptr) {
            HttpRequest request = service_->request(key);
            request.range = HttpRange{.first = 0, .length = 1};
            known = std::make_shared<const HttpResponse>(HttpClient::shared().send(std::move(request)));
        }
        const HttpResponse& response = *known;
        if (service_->is_absent(response, key)) return std::nullopt;
        return ValueStamp{.size = response.total, .id = hash_of(response.etag())};
    }
    [[nodiscard]] bool contains(std::string_view key) const override { return stamp(key).has_value(); }

    [[nodiscard]] Listing list(std::string_view prefix) const override {
        require_prefix(prefix);
        Listing listing;
        service_->list(
            prefix, [&](std::string_view name, std::uint64_t) { listing.keys.emplace_back(name); },
            [&](std::string_view name, std::uint64_t) { listing.prefixes.emplace_back(name); });
        std::ranges::sort(listing.keys);
        std::ranges::sort(listing.prefixes);
        return listing;
    }

    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override {
        require_prefix(prefix);
        service_->list(
            prefix, [&](std::string_view name, std::uint64_t size) { each(name, [size] { return size; }); },
            [&](std::string_view name, std::uint64_t) {
                if (folder) folder(name, false);
            });
    }

    [[nodiscard]] std::unique_ptr<ReadAhead> read_ahead(std::uint64_t limit, NextWish next) const override {
        return std::make_unique<Ahead>(*this, limit, std::move(next));
    }
    [[nodiscard]] bool is_far() const override { return true; }
    [[nodiscard]] bool lists() const override { return service_->lists(); }

    void put(std::string_view key, ByteSpan /*value*/) override { refuse(key); }
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override { refuse(key); }
    bool erase(std::string_view key) override { refuse(key); }
    void erase_below(std::string_view prefix) override { refuse(prefix); }
    void move(std::string_view from, std::string_view /*to*/) override { refuse(from); }
    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t /*slot*/, LockMode /*mode*/) override {
        refuse(prefix);
    }
    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view prefix) override { refuse(prefix); }
    [[nodiscard]] bool read_only() const override { return true; }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    [[noreturn]] void refuse(std::string_view key) const {
        throw unsupported("{}: Tessera reads arrays over the network, and does not write them there",
                          join_key(name_, key));
    }

    [[nodiscard]] HttpTicket start_tail(std::string_view key) const {
        HttpRequest request = service_->request(key);
        request.range = HttpRange{.length = tail_bytes, .suffix = true};
        return HttpClient::shared().start(std::move(request));
    }
    [[nodiscard]] HttpTicket start_whole(std::string_view key, std::uint64_t limit) const {
        HttpRequest request = service_->request(key);
        request.limit = limit;
        return HttpClient::shared().start(std::move(request));
    }
    [[nodiscard]] HttpTicket announced(std::string_view key) const {
        const std::lock_guard guard(mutex_);
        for (Ahead* const ahead : ahead_) {
            if (HttpTicket ticket = ahead->take(key)) return ticket;
        }
        return nullptr;
    }

    /// The answer for a document of a node; null for other keys.
    [[nodiscard]] std::shared_ptr<const HttpResponse> document(std::string_view key) const {
        const auto* const name = std::ranges::find_if(documents, [&](std::string_view document) {
            return key == document || (key.ends_with(document) && key[key.size() - document.size() - 1] == '/');
        });
        if (name == documents.end()) return nullptr;
        const std::string prefix(key.substr(0, key.size() - std::min(key.size(), name->size() + 1)));
        std::shared_ptr<Documents> node;
        {
            const auto now = std::chrono::steady_clock::now();
            const std::lock_guard guard(mutex_);
            std::erase_if(nodes_, [&](const auto& entry) { return now - entry.second->asked > document_age; });
            std::shared_ptr<Documents>& entry = nodes_[prefix];
            if (entry == nullptr) {
                entry = std::make_shared<Documents>();
                entry->asked = now;
                for (const std::string_view each : documents) {
                    entry->answers[std::string(each)].ticket = start_tail(join_key(prefix, each));
                }
            }
            node = entry;
        }
        const std::lock_guard guard(node->mutex);
        Answer& answer = node->answers.find(*name)->second;
        if (answer.response == nullptr) {
            HttpTicket ticket = answer.ticket ? std::move(answer.ticket) : start_tail(key);
            answer.response = std::make_shared<const HttpResponse>(HttpClient::shared().wait(std::move(ticket)));
        }
        return answer.response;
    }

    /// Of the answer for a document, which is mostly all of it.
    [[nodiscard]] std::unique_ptr<ByteSource> small_source(const HttpResponse& response, std::string_view key) const {
        if (service_->is_absent(response, key)) return nullptr;
        const std::string name = join_key(name_, key);
        if (response.first == 0) return memory_source(Buffer(response.body.span()), name);
        HttpResponse tail;
        tail.status = response.status;
        tail.headers = response.headers;
        tail.body = Buffer(response.body.span());
        tail.first = response.first;
        tail.total = response.total;
        return std::make_unique<RemoteSource>(service_, std::string(key), name, std::move(tail));
    }

    struct Answer {
        HttpTicket ticket;
        std::shared_ptr<const HttpResponse> response;
    };
    struct Documents {
        std::chrono::steady_clock::time_point asked;
        std::mutex mutex;
        std::map<std::string, Answer, std::less<>> answers;
    };

    /// Requests for keys that will be asked for. All with the store's mutex.
    class Ahead final : public ReadAhead {
    public:
        Ahead(const RemoteStore& store, std::uint64_t limit, NextWish next)
            : store_(store), limit_(limit), next_(std::move(next)) {
            const std::uint64_t each = limit == 0 ? tail_bytes : limit;
            most_ =
                static_cast<std::size_t>(std::clamp<std::uint64_t>(most_ahead / each, 0, HttpClient::most_in_flight));
            while (most_ > 0) {
                try {
                    held_ = MemoryHold(most_ * each);
                    break;
                } catch (const Error&) {
                    most_ /= 2;  // the budget has no room for so many
                }
            }
            const std::lock_guard guard(store_.mutex_);
            refill();
            store_.ahead_.push_back(this);
        }
        ~Ahead() override {
            const std::lock_guard guard(store_.mutex_);
            std::erase(store_.ahead_, this);
        }
        Ahead(const Ahead&) = delete;
        Ahead& operator=(const Ahead&) = delete;

        HttpTicket take(std::string_view key) {
            const auto found = tickets_.find(key);
            if (found == tickets_.end()) return nullptr;
            HttpTicket ticket = std::move(found->second);
            tickets_.erase(found);
            refill();
            return ticket;
        }

    private:
        void refill() {
            for (ReadWish wish; tickets_.size() < most_ && next_(wish);) {
                tickets_.insert_or_assign(
                    wish.key, wish.whole ? store_.start_whole(wish.key, limit_) : store_.start_tail(wish.key));
            }
        }

        const RemoteStore& store_;
        std::uint64_t limit_;
        NextWish next_;
        std::size_t most_ = 0;
        MemoryHold held_;
        std::map<std::string, HttpTicket, std::less<>> tickets_;
    };

    std::string name_;
    std::shared_ptr<const RemoteService> service_;
    mutable std::mutex mutex_;
    mutable std::vector<Ahead*> ahead_;
    mutable std::map<std::string, std::shared_ptr<Documents>, std::less<>> nodes_;
};

}  // namespace

bool is_absent_by_wish(int status) {
    const char* wish = std::getenv("TESSERA_ABSENT");
    return (status == 401 || status == 403) && wish != nullptr && wish == std::to_string(status);
}

std::shared_ptr<KeyValueStore> remote_store(std::string name, std::unique_ptr<RemoteService> service) {
    return std::make_shared<RemoteStore>(std::move(name), std::move(service));
}

}  // namespace tessera
