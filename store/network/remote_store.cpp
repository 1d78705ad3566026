// What is opened is asked for by its last bytes: the answer states size and version (ETag), holds small values whole,
// and the index of a shard. Later ranges carry the version, so that all bytes of a source are of one value.
//
// A change of a value notes the version that is read, and sets the value only if it still has that (RemoteWriter).
// Values of an array that nobody can open yet are sent without conditions, many at once, and waited for by sync().
#include "remote_store.h"

#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error_text.h>
#include <tessera/fnv.h>
#include <tessera/memory_account.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "answer_text.h"
#include "kept_value.h"
#include "keys.h"
#include "lock_table.h"
#include "node_documents.h"
#include "remote_changes.h"
#include "remote_lease.h"
#include "remote_sink.h"
#include "remote_source.h"
#include "remote_writer.h"
#include "seal_mark.h"
#include "sent_values.h"

namespace tessera {

namespace {

constexpr std::uint64_t tail_bytes = std::uint64_t{64} << 10;
/// Documents of a node are asked for together; so much of each, where a server knows no ranges.
constexpr std::uint64_t usual_document = std::uint64_t{2} << 20;
/// Fetched before anybody asked, at most.
constexpr std::uint64_t most_ahead_together = std::uint64_t{128} << 20;

/// Kept while values are read part by part, at most; a longer value is not.
constexpr std::uint64_t most_kept_bytes = std::uint64_t{4} << 30;
constexpr std::size_t most_kept_values = 256;

/// The MD5 sum that the ETag of a value in S3 is, unless it was sent in parts or encrypted.
std::string_view md5_in(std::string_view etag) {
    constexpr std::size_t digits = 32;
    if (etag.size() == digits + 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, digits);
    const bool is_sum = etag.size() == digits && etag.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    return is_sum ? etag : std::string_view();
}

/// An ETag as a number. Some servers list it without its quotation marks.
std::uint64_t version_id(std::string_view etag) {
    if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
    return fnv1a(etag);
}

/// The locks of all remote stores, by names. Never destroyed, because threads may end later than main().
LockTables& remote_locks() {
    static auto& locks = *new LockTables;
    return locks;
}

class RemoteStore final : public KeyValueStore, private FarStore {
public:
    RemoteStore(std::string name, std::unique_ptr<RemoteService> service, const StoreOptions& options)
        : name_(std::move(name)),
          options_(options),
          service_(std::move(service)),
          writer_(service_),
          changes_(*service_, writer_, name_),
          sent_(writer_) {
        options_.remote = remote_options_of(options);  // also for what is opened beside it later on
    }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override { return open_from(key, {}); }
    [[nodiscard]] std::unique_ptr<ByteSource> open_from(std::string_view key, ByteSource::Extent first) const override {
        require_key(key);
        sent_.settle(key);
        if (const auto known = document(key)) return small_source(*known, key);
        if (const auto kept = kept_value(key)) return open_kept(*kept, key);
        HttpResponse response;
        if (!fetch_opened(key, first, response)) return nullptr;
        const std::string name = join_key(name_, key);
        if (is_all(response)) return memory_source(std::move(response.body), name);
        return std::make_unique<RemoteSource>(service_, std::string(key), name, std::move(response), replaced_);
    }

    [[nodiscard]] bool get(std::string_view key, Buffer& out, std::uint64_t limit) const override {
        require_key(key);
        sent_.settle(key);
        if (const auto known = document(key)) {
            const auto source = small_source(*known, key);
            if (source == nullptr) return false;
            require_size(source->name(), source->size(), limit);
            out.reset(source->size());
            source->read(0, out.span());
            return true;
        }
        HttpTicket ticket = announced(key);
        if (ticket == nullptr) out = {};  // what comes takes its place
        HttpResponse response = HttpClient::shared().wait(ticket ? std::move(ticket) : start_whole(key, limit));
        if (is_absent(response, key)) return false;
        if (response.body.size() != response.total) {  // longer than what was announced
            response = HttpClient::shared().wait(start_whole(key, limit));
            if (is_absent(response, key)) return false;
        }
        require_size(join_key(name_, key), response.body.size(), limit);
        if (response.counted) {
            out = std::move(response.body);
            return true;
        }
        out.reset(response.body.size());
        if (!response.body.empty()) std::memcpy(out.data(), response.body.data(), out.size());
        HttpClient::shared().reuse(std::move(response));
        return true;
    }

    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const override {
        require_key(key);
        sent_.settle(key);
        if (const auto set = changes_.set_value(key))
            return ValueStamp{.size = set->first, .id = version_id(set->second)};
        if (const auto known = document(key)) return stamp_of(*known, key);
        return stamp_of(HttpClient::shared().send(to_stamp(key)), key);
    }
    [[nodiscard]] std::vector<std::optional<ValueStamp>> stamps(std::span<const std::string> keys) const override {
        sent_.settle_all();
        std::vector<std::optional<ValueStamp>> found;
        std::deque<HttpTicket> begun;
        for (std::size_t next = 0; found.size() < keys.size();) {
            for (; next < keys.size() && begun.size() < HttpClient::most_in_flight; ++next) {
                require_key(keys[next]);
                begun.push_back(HttpClient::shared().start(to_stamp(keys[next])));
            }
            const HttpResponse response = HttpClient::shared().wait(std::move(begun.front()));
            begun.pop_front();
            found.push_back(stamp_of(response, keys[found.size()]));
        }
        return found;
    }
    [[nodiscard]] bool contains(std::string_view key) const override { return stamp(key).has_value(); }

    [[nodiscard]] Listing list(std::string_view prefix) const override {
        require_prefix(prefix);
        sent_.settle_all();
        Listing listing;
        MemoryHold names;
        const auto add = [&](std::vector<std::string>& to, std::string_view name) {
            names.add(sizeof(std::string) + name.size());
            to.emplace_back(name);
        };
        service_->list(
            prefix, [&](std::string_view name, std::uint64_t, std::string_view) { add(listing.keys, name); },
            [&](std::string_view name, std::uint64_t, std::string_view) { add(listing.prefixes, name); });
        std::ranges::sort(listing.keys);
        std::ranges::sort(listing.prefixes);
        return listing;
    }

    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override {
        require_prefix(prefix);
        sent_.settle_all();
        service_->list(
            prefix,
            [&](std::string_view name, std::uint64_t size, std::string_view) { each(name, [size] { return size; }); },
            [&](std::string_view name, std::uint64_t, std::string_view) {
                if (folder) folder(name, false);
            });
    }

    bool for_each_version(std::string_view prefix, const EachVersion& each, const EachFolder& folder) const override {
        require_prefix(prefix);
        sent_.settle_all();
        service_->list(
            prefix,
            [&](std::string_view name, std::uint64_t size, std::string_view etag) {
                each(name, {.size = size, .id = version_id(etag)}, md5_in(etag));
            },
            [&](std::string_view name, std::uint64_t, std::string_view) {
                if (folder) folder(name, false);
            });
        return true;
    }

    bool for_each_below(std::string_view prefix, const Places& places, const EachVersion& each) const override {
        require_prefix(prefix);
        if (!service_->lists()) return false;
        sent_.settle_all();
        service_->list_all(prefix, places, [&](std::string_view name, std::uint64_t size, std::string_view etag) {
            each(name, {.size = size, .id = version_id(etag)}, md5_in(etag));
        });
        return true;
    }

    [[nodiscard]] std::unique_ptr<ReadAhead> read_ahead(std::uint64_t usual, NextWish next,
                                                        std::uint64_t most) const override {
        auto ahead = std::make_unique<Ahead>(*this, usual, std::move(next), most);
        return ahead->is_idle() ? nullptr : std::move(ahead);
    }
    [[nodiscard]] std::unique_ptr<ReadAhead> keep_parts(bool whole) const override {
        return std::make_unique<Keep>(*this, whole);
    }
    [[nodiscard]] const FarStore* far() const override { return this; }
    [[nodiscard]] std::uint64_t worth_a_request() const override {
        return HttpClient::shared().worth_a_request(service_->request("").url);
    }
    [[nodiscard]] std::uint64_t replaced() const override { return *replaced_; }
    [[nodiscard]] SeenTimes seen_times() const override { return times_->seen(); }
    [[nodiscard]] StoreOptions options_beside() const override { return tessera::to_read(options_); }
    [[nodiscard]] bool lists() const override { return service_->lists(); }

    // ---- writing

    void put(std::string_view key, ByteSpan value) override {
        require_writable(key);
        put_shared(key, copied(value));
    }
    bool put_new(std::string_view key, ByteSpan value) override {
        require_writable(key);
        if (!options_.process_locks || writer_.conduct().holds == ServerConduct::Holds::none) {
            return KeyValueStore::put_new(key, value);
        }
        RemoteVersion absent;
        const bool made = writer_.put_if(key, copied(value), absent);
        note_written(key);
        return made;
    }
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override {
        require_writable(key);
        return std::make_unique<RemoteSink>(
            *service_, std::string(key), join_key(name_, key), changes_.cover(key),
            [this, key = std::string(key)](std::shared_ptr<const Buffer> body) { put_shared(key, std::move(body)); });
    }
    bool erase(std::string_view key) override {
        require_writable(key);
        if (!contains(key)) return false;
        service_->require_done(HttpClient::shared().send(service_->erase(key)), key);
        note_written(key);
        return true;
    }
    void erase_below(std::string_view prefix) override {
        require_prefix(prefix);
        require_writable(prefix.empty() ? "all" : prefix);
        sent_.forget_failure();  // of what is removed
        sent_.settle_all();
        service_->abandon_all_parts(prefix);
        std::deque<std::pair<std::string, HttpTicket>> begun;
        const auto finish = [&] {
            service_->require_done(HttpClient::shared().wait(std::move(begun.front().second)), begun.front().first);
            begun.pop_front();
        };
        for_each_key(std::string(prefix), [&](std::string key) {
            if (key.ends_with(lease_key) && holds_lease(service_->request(key).name)) return;
            if (begun.size() >= HttpClient::most_in_flight) finish();
            HttpTicket ticket = HttpClient::shared().start(service_->erase(key));
            begun.emplace_back(std::move(key), std::move(ticket));
        });
        while (!begun.empty()) finish();
        note_documents_written();
    }
    void abandon_uploads(std::string_view prefix) const override { service_->abandon_all_parts(prefix); }
    bool replace(std::string_view from, std::string_view to) override {
        Buffer value;
        if (!get(from, value, UINT64_MAX)) return false;
        put(to, value);
        erase(from);
        return true;
    }

    [[nodiscard]] StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) override {
        require_prefix(prefix);
        require_writable(prefix.empty() ? "a" : prefix);
        return remote_locks().lock(join_key(name_, prefix), slot, mode);
    }
    [[nodiscard]] std::optional<StoreLock> try_lock(std::string_view prefix) override {
        require_prefix(prefix);
        require_writable(prefix.empty() ? "a" : prefix);
        return remote_locks().try_lock(join_key(name_, prefix));
    }
    [[nodiscard]] StoreLock lock_destination(std::string_view prefix) override {
        require_prefix(prefix);
        require_writable(prefix.empty() ? "a" : prefix);
        if (!options_.process_locks || writer_.conduct().holds != ServerConduct::Holds::full) return {};
        return take_lease(service_, join_key(prefix, lease_key), join_key(name_, prefix), options_.waiter);
    }
    [[nodiscard]] std::unique_ptr<ValueChange> begin_change(std::string_view key, bool keeps) override {
        if (!options_.process_locks || !service_->writes()) return nullptr;
        if (keeps && writer_.conduct().holds != ServerConduct::Holds::full) {
            throw unsupported(
                "{}: the server does not hold the condition that a value is still the one that was read "
                "(If-Match), so that a change of a part of it could undo what others write meanwhile",
                join_key(name_, key))
                .advising(Action::no_locks, "goes on, if you know that nobody else writes");
        }
        documents_.forget(key);
        return changes_.begin(key);
    }
    [[nodiscard]] bool has_versions() const override {
        return options_.process_locks && service_->writes() && !options_.read_only &&
               writer_.conduct().holds == ServerConduct::Holds::full;
    }
    [[nodiscard]] std::string promise() const override {
        if (!service_->writes()) return {};
        const auto known = writer_.known_conduct();
        if (!known) return "not known before something is written";
        switch (known->holds) {
            case ServerConduct::Holds::full:
                return known->bare ? "full: changes of several writers are never lost (by ETags without quotes)"
                                   : "full: changes of several writers are never lost";
            case ServerConduct::Holds::create_only:
                return "create-only: parts of chunks are changed by a single writer alone";
            case ServerConduct::Holds::none:
                break;
        }
        return "none: one writer at a time";
    }
    void require_unsealed(std::string_view prefix) override {
        tessera::require_unsealed({*this, prefix}, options_.break_seal);
    }

    void sync() override {
        sent_.settle_all();
        later_ = false;
        sent_.require_no_failure();
    }
    void sync_later() override { later_ = true; }

    [[nodiscard]] bool read_only() const override { return options_.read_only || !service_->writes(); }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    void require_writable(std::string_view key) const {
        require_key(key);
        if (!service_->writes()) {
            throw unsupported("{}: Tessera reads arrays from servers of files, and does not write them there",
                              join_key(name_, key));
        }
        if (options_.read_only) throw invalid_argument("{}: opened for reading only", join_key(name_, key));
        changes_values_ = true;
        const std::lock_guard guard(mutex_);
        if (const auto kept = kept_.find(key); kept != kept_.end()) {  // what is read from now on is new
            kept_order_.erase(kept->second.second);
            kept_.erase(kept);
        }
    }

    /// As RemoteService::is_absent(); notes the version for whoever changes the value.
    bool is_absent(const HttpResponse& response, std::string_view key) const {
        const bool absent = service_->is_absent(response, key);
        if (!absent) require_plain(*service_, response, key);
        constexpr int wrong_range = 416;  // of an empty value; the answer does not say which version it is
        if (response.status == wrong_range) return absent;
        changes_.note(key, [&] { return absent ? RemoteVersion() : service_->version_of(response); });
        return absent;
    }

    /// Calls each(key) for all values below a prefix.
    void for_each_key(const std::string& prefix, const std::function<void(std::string key)>& each) const {
        service_->list_all(prefix, nullptr, [&](std::string_view name, std::uint64_t, std::string_view) {
            each(join_key(prefix, name));
        });
    }

    // ---- values on their way

    std::shared_ptr<const Buffer> copied(ByteSpan value) {
        try {
            return std::make_shared<const Buffer>(value);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::budget) throw;
            sent_.settle_all();
            return std::make_shared<const Buffer>(value);
        }
    }

    void put_shared(std::string_view key, std::shared_ptr<const Buffer> body) {
        if (changes_.cover(key)) {
            changes_.put(key, std::move(body));
        } else {
            renew_lease_of(service_->request(key).name);
            if (later_) {
                sent_.send(key, std::move(body));
            } else {
                writer_.finish(writer_.start_put(key, std::move(body)), key);
            }
        }
        note_written(key);
    }

    /// What is being changed is read anew. Who writes believes in no age: others may write, too.
    [[nodiscard]] HttpRequest to_read(std::string_view key) const {
        HttpRequest request = service_->request(key);
        request.cached = changes_.are_none();
        request.always_asks = changes_values_;
        request.times = times_;
        return request;
    }
    /// Asks for the size and the version.
    [[nodiscard]] HttpRequest to_stamp(std::string_view key) const {
        HttpRequest request = to_read(key);
        request.range = HttpRange{.first = 0, .length = 1};
        request.stamp = true;
        return request;
    }
    [[nodiscard]] std::optional<ValueStamp> stamp_of(const HttpResponse& response, std::string_view key) const {
        if (is_absent(response, key)) return std::nullopt;
        return ValueStamp{.size = response.total, .id = version_id(response.etag())};
    }
    /// Asks for the bytes `first`; if these are none, for the last ones.
    [[nodiscard]] HttpTicket start_part(std::string_view key, ByteSource::Extent first, bool held = false) const {
        HttpRequest request = to_read(key);
        const std::uint64_t length = first.end - first.begin;
        request.range = length == 0 ? HttpRange{.length = tail_bytes, .suffix = true}
                                    : HttpRange{.first = first.begin, .length = length};
        if (held) request.held = request.range->length;
        return HttpClient::shared().start(std::move(request));
    }
    [[nodiscard]] HttpTicket start_whole(std::string_view key, std::uint64_t limit, bool gives_up = false) const {
        HttpRequest request = to_read(key);
        request.limit = limit;
        request.gives_up = gives_up;
        if (gives_up) request.held = limit;
        return HttpClient::shared().start(std::move(request));
    }
    [[nodiscard]] HttpTicket announced(std::string_view key) const {
        const std::lock_guard guard(mutex_);
        HttpTicket ticket;
        for (Ahead* const ahead : ahead_) {
            if (ticket == nullptr) {
                ticket = ahead->take(key);
            } else {
                ahead->pass(key);
            }
        }
        return ticket;
    }

    /// A value that was opened, or will be, while values are kept (keep_parts).
    struct Kept {
        std::mutex mutex;
        bool opened = false;
        std::shared_ptr<KeptValue> value;  ///< null: absent
        std::uint64_t size = 0;            ///< of the value, with the store's mutex
    };
    class Keep final : public ReadAhead {
    public:
        Keep(const RemoteStore& store, bool whole) : store_(store) {
            const std::lock_guard guard(store_.mutex_);
            if (store_.keeping_++ == 0) store_.keeps_whole_ = true;
            store_.keeps_whole_ = store_.keeps_whole_ && whole;
        }
        ~Keep() override {
            const std::lock_guard guard(store_.mutex_);
            if (--store_.keeping_ > 0) return;
            store_.kept_.clear();
            store_.kept_order_.clear();
            store_.kept_file_ = std::make_shared<KeptFile>();
        }
        Keep(const Keep&) = delete;
        Keep& operator=(const Keep&) = delete;

    private:
        const RemoteStore& store_;
    };

    /// Null unless values are kept.
    [[nodiscard]] std::shared_ptr<Kept> kept_value(std::string_view key) const {
        const std::lock_guard guard(mutex_);
        if (keeping_ == 0 || !changes_.are_none()) return nullptr;
        const auto found = kept_.find(key);
        if (found != kept_.end()) {
            kept_order_.splice(kept_order_.end(), kept_order_, found->second.second);  // used last
            return found->second.first;
        }
        std::uint64_t bytes = 0;
        for (const auto& [each, entry] : kept_) bytes += entry.first->size;
        while (!kept_.empty() && (kept_.size() >= most_kept_values || bytes > most_kept_bytes)) {
            const auto oldest = kept_.find(kept_order_.front());
            bytes -= oldest->second.first->size;
            kept_order_.pop_front();
            kept_.erase(oldest);
        }
        auto kept = std::make_shared<Kept>();
        kept_.emplace(std::string(key), std::pair(kept, kept_order_.insert(kept_order_.end(), std::string(key))));
        return kept;
    }

    [[nodiscard]] std::unique_ptr<ByteSource> open_kept(Kept& kept, std::string_view key) const {
        const std::lock_guard guard(kept.mutex);
        if (kept.opened) return kept.value == nullptr ? nullptr : std::make_unique<KeptSource>(kept.value);
        HttpResponse response;
        if (!fetch_opened(key, {}, response)) {
            kept.opened = true;
            return nullptr;
        }
        const std::string name = join_key(name_, key);
        Buffer all;
        if (is_all(response)) all = std::move(response.body);
        const std::uint64_t size = response.total;
        auto source = std::make_unique<RemoteSource>(service_, std::string(key), name, std::move(response), replaced_);
        bool whole = false;
        std::shared_ptr<KeptFile> file;
        {
            const std::lock_guard store_guard(mutex_);
            whole = keeps_whole_;
            file = kept_file_;
            kept.size = size;
        }
        if (size > most_kept_bytes || !file->works()) {
            if (size != all.size()) return source;
            return memory_source(std::move(all), name);
        }
        auto value = std::make_shared<KeptValue>(std::move(file), std::move(source), whole);
        if (all.size() == size && !value->fill(all)) return memory_source(std::move(all), name);
        kept.value = std::move(value);
        kept.opened = true;
        return std::make_unique<KeptSource>(kept.value);
    }

    /// With the store's mutex: whether a value is kept, or was announced by somebody else.
    [[nodiscard]] bool is_here(std::string_view key) const {
        return kept_.contains(key) || std::ranges::any_of(ahead_, [&](const Ahead* ahead) { return ahead->has(key); });
    }

    /// The answer to who opens a value, for which it may have been announced; false if there is no value.
    [[nodiscard]] bool fetch_opened(std::string_view key, ByteSource::Extent first, HttpResponse& response) const {
        HttpTicket ticket = announced(key);
        response = HttpClient::shared().wait(ticket ? std::move(ticket) : start_part(key, first));
        if (is_absent(response, key)) return false;
        // Announced whole, and longer than it should be; or shorter than the part that was asked for.
        if (response.body.empty() && response.total > 0) {
            response = HttpClient::shared().wait(start_part(key, {}));
            if (is_absent(response, key)) return false;
        }
        return true;
    }

    [[nodiscard]] static bool is_all(const HttpResponse& response) {
        return response.first == 0 && response.body.size() == response.total;
    }

    /// The answer for a document of a node; null for other keys.
    [[nodiscard]] std::shared_ptr<const HttpResponse> document(std::string_view key) const {
        return documents_.find(key, [&](std::string_view each, bool alone) {
            HttpRequest request = to_read(each);
            request.range = HttpRange{.length = tail_bytes, .suffix = true};
            request.gives_up = !alone;
            if (!alone) request.limit = usual_document;
            return HttpClient::shared().start(std::move(request));
        });
    }

    /// Of the answer for a document, which is mostly all of it.
    [[nodiscard]] std::unique_ptr<ByteSource> small_source(const HttpResponse& response, std::string_view key) const {
        if (is_absent(response, key)) return nullptr;
        const std::string name = join_key(name_, key);
        if (response.first == 0) return memory_source(Buffer(response.body.span()), name);
        HttpResponse tail;
        tail.status = response.status;
        tail.headers = response.headers;
        tail.body = Buffer(response.body.span());
        tail.first = response.first;
        tail.total = response.total;
        return std::make_unique<RemoteSource>(service_, std::string(key), name, std::move(tail), replaced_);
    }

    /// Requests for keys that will be asked for. All with the store's mutex.
    class Ahead final : public ReadAhead {
    public:
        Ahead(const RemoteStore& store, std::uint64_t usual, NextWish next, std::uint64_t most)
            : store_(store), usual_(usual), next_(std::move(next)) {
            const std::uint64_t each = usual == 0 ? tail_bytes : usual;
            // The rest is for who reads.
            const std::uint64_t room = std::min({memory_left() / 2, most_ahead_together, most});
            // Some wait to be sent, or to be taken: so there are always as many under way as may be.
            constexpr std::uint64_t most_tickets = 2 * HttpClient::most_in_flight;
            most_ = static_cast<std::size_t>(std::min(room / each, most_tickets));
            while (most_ > 0) {
                try {
                    held_ = MemoryHold(most_ * each);
                    break;
                } catch (const Error&) {
                    most_ /= 2;  // the budget has no room for so many
                }
            }
            {
                const std::lock_guard guard(store_.mutex_);
                refill();
                store_.ahead_.push_back(this);
                if (tickets_.size() == most_) return;
                most_ = tickets_.size();
            }
            held_ = MemoryHold();  // there are no more wishes: the rest of it is free
            try {
                held_ = MemoryHold(most_ * each);
            } catch (const Error&) {  // another thread was faster; what is under way is not abandoned
            }
        }
        ~Ahead() override {
            const std::lock_guard guard(store_.mutex_);
            std::erase(store_.ahead_, this);
        }
        Ahead(const Ahead&) = delete;
        Ahead& operator=(const Ahead&) = delete;

        [[nodiscard]] bool is_idle() const { return most_ == 0; }
        [[nodiscard]] bool has(std::string_view key) const { return tickets_.contains(key); }
        HttpTicket take(std::string_view key) {
            const auto found = tickets_.find(key);
            if (found == tickets_.end()) {
                passed_.emplace(key);
                return nullptr;
            }
            HttpTicket ticket = std::move(found->second);
            tickets_.erase(found);
            refill();
            return ticket;
        }

        /// It was asked for without this: not to be announced any more.
        void pass(std::string_view key) {
            if (!has(key)) passed_.emplace(key);
        }

    private:
        void refill() {
            for (ReadWish wish; tickets_.size() < most_ && next_(wish);) {
                if (passed_.erase(wish.key) > 0 || has(wish.key) || store_.is_here(wish.key)) continue;
                tickets_.insert_or_assign(wish.key, wish.whole ? store_.start_whole(wish.key, usual_, true)
                                                               : store_.start_part(wish.key, wish.first, true));
            }
        }

        const RemoteStore& store_;
        std::uint64_t usual_;
        NextWish next_;
        std::size_t most_ = 0;
        MemoryHold held_;
        std::map<std::string, HttpTicket, std::less<>> tickets_;
        std::set<std::string, std::less<>> passed_;  ///< see pass()
    };

    std::string name_;
    StoreOptions options_;
    std::shared_ptr<const RemoteService> service_;
    RemoteWriter writer_;
    mutable RemoteChanges changes_;
    mutable SentValues sent_;
    mutable NodeDocuments documents_;
    const std::shared_ptr<std::atomic<std::uint64_t>> replaced_ = std::make_shared<std::atomic<std::uint64_t>>(0);
    const std::shared_ptr<TimesOfAnswers> times_ = std::make_shared<TimesOfAnswers>();
    std::atomic<bool> later_ = false;  ///< see sync_later()
    mutable std::atomic<bool> changes_values_ = false;
    mutable std::mutex mutex_;  ///< for what follows
    mutable std::vector<Ahead*> ahead_;
    mutable int keeping_ = 0;  ///< how many Keep there are
    mutable bool keeps_whole_ = true;
    mutable std::shared_ptr<KeptFile> kept_file_ = std::make_shared<KeptFile>();
    mutable std::list<std::string> kept_order_;  ///< the keys of kept_, what was used last at the end
    mutable std::map<std::string, std::pair<std::shared_ptr<Kept>, std::list<std::string>::iterator>, std::less<>>
        kept_;
};

}  // namespace

std::shared_ptr<const RemoteOptions> remote_options_of(const StoreOptions& options) {
    return options.remote ? options.remote : remote_options();
}

std::shared_ptr<KeyValueStore> remote_store(std::string name, std::unique_ptr<RemoteService> service,
                                            const StoreOptions& options) {
    return std::make_shared<RemoteStore>(std::move(name), std::move(service), options);
}

}  // namespace tessera
