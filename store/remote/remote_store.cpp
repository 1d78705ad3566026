// What is opened is asked for by its last bytes: the answer states size and version (ETag), holds small values whole,
// and the index of a shard. Later ranges carry the version, so that all bytes of a source are of one value.
//
// A change of a value notes the version that is read, and sets the value only if it still has that (RemoteWriter).
// Values of an array that nobody can open yet are sent without conditions, many at once, and waited for by sync().
#include "remote_store.h"

#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error_text.h>
#include <tessera/memory_account.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kept_value.h"
#include "keys.h"
#include "lock_table.h"
#include "remote_lease.h"
#include "remote_writer.h"
#include "seal_mark.h"

namespace tessera {

namespace {

constexpr std::uint64_t tail_bytes = std::uint64_t{64} << 10;
// Ranges of one value that lie so close together are one request of at most so many bytes.
constexpr std::uint64_t widest_gap = std::uint64_t{1} << 20;
constexpr std::uint64_t longest_request = std::uint64_t{16} << 20;
/// The documents of a node: whoever asks for one asks for others next, so all are asked for at once.
constexpr std::array<std::string_view, 12> documents{"zarr.json",
                                                     ".zarray",
                                                     ".zattrs",
                                                     ".zgroup",
                                                     ".zmetadata",
                                                     "__zmeta__",
                                                     "__zattr__",
                                                     "meta",
                                                     "attrs",
                                                     ".tessera/batch/journal",
                                                     ".tessera/unfinished.json",
                                                     seal_sums_key};
/// So long the answers serve who opens the node.
constexpr std::chrono::seconds document_age{2};
/// Fetched before anybody asked, at most: of one value, and of all of them.
constexpr std::uint64_t most_ahead = std::uint64_t{64} << 20;
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
    std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
    for (const char c : etag) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
    return hash;
}

/// Sent and not yet answered, at most.
constexpr std::uint64_t most_sent = std::uint64_t{64} << 20;
/// A value that is longer goes in parts of so many bytes, so many at once, if that needs no condition.
constexpr std::uint64_t longest_whole = std::uint64_t{64} << 20;
constexpr std::size_t part_bytes = std::size_t{16} << 20;
constexpr std::size_t parts_at_once = 3;

/// Goes up with each document that this process writes, so that no store answers with an older one.
std::atomic<std::uint64_t> documents_written = 0;

/// The locks of all remote stores, by names. Never destroyed, because threads may end later than main().
LockTables& remote_locks() {
    static auto& locks = *new LockTables;
    return locks;
}

/// The name of the document of a node that a key is; documents.end() if it is none.
auto document_name(std::string_view key) {
    return std::ranges::find_if(documents, [&](std::string_view document) {
        return key == document || (key.ends_with(document) && key[key.size() - document.size() - 1] == '/');
    });
}

/// A value, by ranges of one version.
class RemoteSource final : public RangedSource {
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
        held_ = MemoryHold();
        // The rest is for who reads.
        const std::uint64_t room = std::min(memory_left() / 4, most_ahead);
        std::uint64_t bytes = 0;
        for (std::size_t i = 0; i < extents.size() && bytes < room;) {
            const std::uint64_t begin = extents[i].begin;
            std::uint64_t end = extents[i].end;
            for (++i; i < extents.size(); ++i) {
                const Extent& next = extents[i];
                if (next.begin < begin || next.begin > end + widest_gap || next.end > begin + longest_request) break;
                if (next.end - begin > room - bytes) break;
                end = std::max(end, next.end);
            }
            if (end - begin > room - bytes) break;
            if (end > size() || begin >= size() - std::min<std::uint64_t>(size(), tail_.body.size())) continue;
            auto fetched = std::make_shared<Fetched>();
            fetched->first = begin;
            fetched->length = end - begin;
            fetched->ticket = start(begin, end - begin);
            ahead_.push_back(std::move(fetched));
            bytes += end - begin;
            try {
                held_.add(end - begin);
            } catch (const Error&) {  // another thread has that room now
                break;
            }
        }
    }

    [[nodiscard]] bool take_first(std::uint64_t offset, MutableByteSpan out) const override {
        return take(tail_, offset, out);
    }
    [[nodiscard]] HttpTicket start(std::uint64_t offset, std::uint64_t length) const override {
        HttpRequest request = service_->request(key_);
        request.cached = true;
        request.range = HttpRange{.first = offset, .length = length};
        const std::string_view version = tail_.etag();
        if (version.starts_with('"')) request.if_match = version;
        return HttpClient::shared().start(std::move(request));
    }
    [[nodiscard]] HttpResponse finish(HttpTicket ticket) const override {
        HttpResponse response = HttpClient::shared().wait(std::move(ticket));
        const bool other = (response.total != tail_.total && response.status < 300) ||
                           (!tail_.etag().empty() && response.etag() != tail_.etag() && response.status < 300);
        if (response.status == 412 || response.status == 404 || response.status == 416 || other) {
            throw Error(ErrorCode::io, name_ + ": was replaced while it was read; read again");
        }
        (void)service_->is_absent(response, key_);
        return response;
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

    std::shared_ptr<const RemoteService> service_;
    std::string key_;
    std::string name_;
    HttpResponse tail_;
    mutable std::mutex mutex_;
    mutable std::vector<std::shared_ptr<Fetched>> ahead_;
    mutable MemoryHold held_;  ///< for these
};

class RemoteStore final : public KeyValueStore {
public:
    RemoteStore(std::string name, std::unique_ptr<RemoteService> service, const StoreOptions& options)
        : name_(std::move(name)), options_(options), service_(std::move(service)), writer_(service_) {
        options_.remote = remote_options_of(options);  // also for what is opened beside it later on
    }

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        require_key(key);
        settle(key);
        if (const auto known = document(key)) return small_source(*known, key);
        if (const auto kept = kept_value(key)) return open_kept(*kept, key);
        HttpResponse response;
        if (!fetch_opened(key, response)) return nullptr;
        const std::string name = join_key(name_, key);
        if (response.first == 0) return memory_source(std::move(response.body), name);
        return std::make_unique<RemoteSource>(service_, std::string(key), name, std::move(response));
    }

    [[nodiscard]] bool get(std::string_view key, Buffer& out, std::uint64_t limit) const override {
        require_key(key);
        settle(key);
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
        if (is_absent(response, key)) return false;
        if (response.body.size() != response.total) {  // longer than what was announced
            response = HttpClient::shared().wait(start_whole(key, limit));
            if (is_absent(response, key)) return false;
        }
        require_size(join_key(name_, key), response.body.size(), limit);
        out.reset(response.body.size());
        if (!response.body.empty()) std::memcpy(out.data(), response.body.data(), out.size());
        HttpClient::shared().reuse(std::move(response));
        return true;
    }

    [[nodiscard]] std::optional<ValueStamp> stamp(std::string_view key) const override {
        require_key(key);
        settle(key);
        if (const auto made = stamp_of_change(key)) return made;
        if (const auto known = document(key)) return stamp_of(*known, key);
        return stamp_of(HttpClient::shared().send(to_stamp(key)), key);
    }
    [[nodiscard]] std::vector<std::optional<ValueStamp>> stamps(std::span<const std::string> keys) const override {
        settle_all();
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
        settle_all();
        Listing listing;
        service_->list(
            prefix, [&](std::string_view name, std::uint64_t, std::string_view) { listing.keys.emplace_back(name); },
            [&](std::string_view name, std::uint64_t, std::string_view) { listing.prefixes.emplace_back(name); });
        std::ranges::sort(listing.keys);
        std::ranges::sort(listing.prefixes);
        return listing;
    }

    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override {
        require_prefix(prefix);
        settle_all();
        service_->list(
            prefix,
            [&](std::string_view name, std::uint64_t size, std::string_view) { each(name, [size] { return size; }); },
            [&](std::string_view name, std::uint64_t, std::string_view) {
                if (folder) folder(name, false);
            });
    }

    void for_each_sum(std::string_view prefix, const EachSum& each, const EachFolder& folder) const override {
        require_prefix(prefix);
        settle_all();
        service_->list(
            prefix,
            [&](std::string_view name, std::uint64_t size, std::string_view etag) { each(name, size, md5_in(etag)); },
            [&](std::string_view name, std::uint64_t, std::string_view) {
                if (folder) folder(name, false);
            });
    }

    void for_each_stamp(std::string_view prefix, const EachStamp& each, const EachFolder& folder) const override {
        require_prefix(prefix);
        settle_all();
        service_->list(
            prefix,
            [&](std::string_view name, std::uint64_t size, std::string_view etag) {
                each(name, {.size = size, .id = version_id(etag)});
            },
            [&](std::string_view name, std::uint64_t, std::string_view) { folder(name, false); });
    }

    [[nodiscard]] std::unique_ptr<ReadAhead> read_ahead(std::uint64_t usual, NextWish next,
                                                        std::uint64_t most) const override {
        auto ahead = std::make_unique<Ahead>(*this, usual, std::move(next), most);
        return ahead->is_idle() ? nullptr : std::move(ahead);
    }
    [[nodiscard]] std::unique_ptr<ReadAhead> keep_parts(bool whole) const override {
        return std::make_unique<Keep>(*this, whole);
    }
    [[nodiscard]] bool is_far() const override { return true; }
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
        forget_document(key);
        return made;
    }
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override {
        require_writable(key);
        return std::make_unique<Sink>(*this, key);
    }
    bool erase(std::string_view key) override {
        require_writable(key);
        if (!contains(key)) return false;
        service_->require_done(HttpClient::shared().send(service_->erase(key)), key);
        forget_document(key);
        return true;
    }
    void erase_below(std::string_view prefix) override {
        require_prefix(prefix);
        require_writable(prefix.empty() ? "all" : prefix);
        {
            const std::lock_guard guard(mutex_);
            failure_ = nullptr;  // of what is removed
        }
        settle_all();
        service_->abandon_all_parts(prefix);
        std::deque<std::pair<std::string, HttpTicket>> begun;
        const auto finish = [&] {
            service_->require_done(HttpClient::shared().wait(std::move(begun.front().second)), begun.front().first);
            begun.pop_front();
        };
        for_each_below(std::string(prefix), [&](std::string key) {
            if (key.ends_with(lease_key) && holds_lease(service_->request(key).name)) return;
            if (begun.size() >= HttpClient::most_in_flight) finish();
            HttpTicket ticket = HttpClient::shared().start(service_->erase(key));
            begun.emplace_back(std::move(key), std::move(ticket));
        });
        while (!begun.empty()) finish();
        ++documents_written;
    }
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
        {
            const std::lock_guard guard(mutex_);
            nodes_.erase(std::string(key));  // what is read from now on is new
        }
        return std::make_unique<Change>(*this, key);
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
        tessera::require_unsealed(*this, prefix, options_.break_seal);
    }

    void sync() override {
        settle_all();
        const std::lock_guard guard(mutex_);
        later_ = false;
        if (failure_) std::rethrow_exception(failure_);
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
        const std::lock_guard guard(mutex_);
        for (Change* const change : changes_) {
            if (change->covers(key)) change->note(key, absent ? RemoteVersion() : service_->version_of(response));
        }
        return absent;
    }

    void forget_document(std::string_view key) const {
        if (document_name(key) != documents.end()) ++documents_written;
    }

    /// Calls each(key) for all values at and below a prefix.
    void for_each_below(const std::string& prefix, const std::function<void(std::string key)>& each) const {
        std::vector<std::string> folders;
        service_->list(
            prefix, [&](std::string_view name, std::uint64_t, std::string_view) { each(join_key(prefix, name)); },
            [&](std::string_view name, std::uint64_t, std::string_view) { folders.push_back(join_key(prefix, name)); });
        for (const std::string& folder : folders) for_each_below(folder, each);
    }

    // ---- changes

    /// What was read of one value, with the store's mutex.
    struct Seen {
        std::optional<RemoteVersion> version;
        bool conflict = false;
        bool set = false;     ///< `version` is what was set
        bool failed = false;  ///< setting it failed, and may have taken effect
        std::uint64_t size = 0;
    };

    class Change final : public ValueChange {
    public:
        Change(RemoteStore& store, std::string_view key) : store_(store), key_(key) {
            const std::lock_guard guard(store_.mutex_);
            ++store_.changing_;
            store_.changes_.push_back(this);
        }
        ~Change() override {
            const std::lock_guard guard(store_.mutex_);
            --store_.changing_;
            std::erase(store_.changes_, this);
        }
        Change(const Change&) = delete;
        Change& operator=(const Change&) = delete;

        [[nodiscard]] bool covers(std::string_view key) const {
            if (key == key_) return true;
            const auto* const name = document_name(key);
            return name != documents.end() && join_key(key_, *name) == key;
        }
        void note(std::string_view key, RemoteVersion version) {
            Seen& seen = seen_[std::string(key)];
            seen.conflict = seen.conflict || (seen.version && !(*seen.version == version));
            seen.version = std::move(version);
        }
        Seen& of(std::string_view key) { return seen_[std::string(key)]; }

        [[nodiscard]] bool conflicted() const override {
            std::vector<std::pair<std::string, RemoteVersion>> read;
            {
                const std::lock_guard guard(store_.mutex_);
                if (std::ranges::any_of(seen_, [](const auto& one) { return one.second.failed; })) return false;
                for (const auto& [key, seen] : seen_) {
                    if (seen.conflict) return true;
                    if (seen.version && !seen.set) read.emplace_back(key, *seen.version);
                }
            }
            // A value may have been replaced while it was read by ranges.
            return std::ranges::any_of(read, [&](const auto& one) {
                try {
                    return !(store_.writer_.version(one.first) == one.second);
                } catch (const Error&) {
                    return false;
                }
            });
        }
        [[nodiscard]] bool was_absent() override {
            {
                const std::lock_guard guard(store_.mutex_);
                if (const Seen& seen = of(key_); seen.version) return seen.version->etag.empty();
            }
            RemoteVersion version = store_.writer_.version(key_);
            const bool absent = version.etag.empty();
            const std::lock_guard guard(store_.mutex_);
            note(key_, std::move(version));
            return absent;
        }

    private:
        RemoteStore& store_;
        std::string key_;
        std::map<std::string, Seen, std::less<>> seen_;
    };

    [[nodiscard]] Change* change_of(std::string_view key) const {
        const std::lock_guard guard(mutex_);
        const auto found = std::ranges::find_if(changes_, [&](const Change* change) { return change->covers(key); });
        return found == changes_.end() ? nullptr : *found;
    }

    /// For a value that is being changed and was set: its stamp, whatever others did since.
    [[nodiscard]] std::optional<ValueStamp> stamp_of_change(std::string_view key) const {
        const std::lock_guard guard(mutex_);
        for (Change* const change : changes_) {
            if (!change->covers(key)) continue;
            const Seen& seen = change->of(key);
            if (seen.set) return ValueStamp{.size = seen.size, .id = version_id(seen.version->etag)};
        }
        return std::nullopt;
    }

    void put_changed(Change& change, std::string_view key, std::shared_ptr<const Buffer> body) {
        const std::uint64_t size = body->size();
        const auto conflict = [&] {
            return Error(ErrorCode::io, fmt::format("{}: another writer changed it meanwhile", join_key(name_, key)));
        };
        std::optional<RemoteVersion> expected;
        {
            const std::lock_guard guard(mutex_);
            const Seen& seen = change.of(key);
            if (seen.conflict) throw conflict();
            expected = seen.version;
        }
        const ServerConduct::Holds holds = writer_.conduct().holds;
        if (!expected && holds == ServerConduct::Holds::full) expected = writer_.version(key);
        const bool on_condition = holds == ServerConduct::Holds::full ||
                                  (holds == ServerConduct::Holds::create_only && expected && expected->etag.empty());
        if (!on_condition) {
            renew_lease_of(service_->request(key).name);
            writer_.finish(writer_.start_put(key, std::move(body)), key);
            forget_document(key);
            return;
        }
        renew_lease_of(service_->request(key).name);
        bool set = false;
        try {
            set = writer_.put_if(key, std::move(body), *expected);
        } catch (...) {
            const std::lock_guard guard(mutex_);
            change.of(key).failed = true;
            throw;
        }
        forget_document(key);
        const std::lock_guard guard(mutex_);
        Seen& seen = change.of(key);
        if (!set) {
            seen.conflict = true;
            throw conflict();
        }
        seen.version = std::move(expected);
        seen.set = true;
        seen.size = size;
    }

    // ---- values on their way

    struct Sent {
        std::mutex mutex;
        HttpTicket ticket;  ///< with its mutex; none once it is answered
        std::string key;
        std::uint64_t size = 0;
    };

    std::shared_ptr<const Buffer> copied(ByteSpan value) {
        try {
            return std::make_shared<const Buffer>(value);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::budget) throw;
            settle_all();
            return std::make_shared<const Buffer>(value);
        }
    }

    void put_shared(std::string_view key, std::shared_ptr<const Buffer> body) {
        if (Change* const change = change_of(key)) return put_changed(*change, key, std::move(body));
        renew_lease_of(service_->request(key).name);
        if (!later_) {
            writer_.finish(writer_.start_put(key, std::move(body)), key);
            forget_document(key);
            return;
        }
        settle(key);
        auto sent = std::make_shared<Sent>();
        sent->key = key;
        sent->size = body->size();
        sent->ticket = writer_.start_put(key, std::move(body));
        std::shared_ptr<Sent> oldest;
        {
            const std::lock_guard guard(mutex_);
            sent_bytes_ += sent->size;
            sent_.push_back(std::move(sent));
            if (sent_bytes_ > most_sent || sent_.size() > HttpClient::most_in_flight) oldest = sent_.front();
        }
        forget_document(key);
        if (oldest) settle(oldest);
    }

    void settle(const std::shared_ptr<Sent>& sent) const {
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
    void take_out(const std::shared_ptr<Sent>& sent) const {
        const auto found = std::ranges::find(sent_, sent);
        if (found == sent_.end()) return;
        sent_bytes_ -= sent->size;
        sent_.erase(found);
    }
    /// Waits until a value that was put is there.
    void settle(std::string_view key) const {
        std::shared_ptr<Sent> found;
        {
            const std::lock_guard guard(mutex_);
            const auto at = std::ranges::find_if(sent_, [&](const auto& sent) { return sent->key == key; });
            if (at != sent_.end()) found = *at;
        }
        if (found) settle(found);
    }
    void settle_all() const {
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

    /// A value that is written piece by piece: kept in memory, or sent in parts.
    class Sink final : public ByteSink {
    public:
        Sink(RemoteStore& store, std::string_view key)
            : store_(store), key_(key), name_(join_key(store.name_, key)), whole_(store.change_of(key) != nullptr) {}
        ~Sink() override {
            parts_.clear();
            if (!upload_.empty()) store_.service_->abandon_parts(key_, upload_);
        }
        Sink(const Sink&) = delete;
        Sink& operator=(const Sink&) = delete;

        [[nodiscard]] bool random_access() const override { return false; }
        void write_at(std::uint64_t /*offset*/, ByteSpan /*bytes*/) override {
            throw unsupported("{}: is written from its beginning to its end", name_);
        }
        void append(ByteSpan bytes) override {
            value_.append(bytes);
            if (whole_) return;
            if (upload_.empty() && value_.size() > longest_whole) {
                write_ = random_id();
                upload_ = store_.service_->begin_parts(key_, write_);
            }
            while (!upload_.empty() && value_.size() > part_bytes) send(part_bytes);
        }
        void finish() override {
            if (upload_.empty()) {
                store_.put_shared(key_, std::make_shared<const Buffer>(std::move(value_)));
                return;
            }
            send(value_.size());
            while (!parts_.empty()) finish_part();
            store_.service_->finish_parts(key_, upload_, write_, etags_);
            upload_.clear();
        }
        [[nodiscard]] const std::string& name() const override { return name_; }

    private:
        void send(std::size_t size) {
            renew_lease_of(store_.service_->request(key_).name);
            if (parts_.size() >= parts_at_once) finish_part();
            auto body = std::make_shared<const Buffer>(value_.span().first(size));
            value_ = Buffer(value_.span().subspan(size));
            parts_.push_back(HttpClient::shared().start(
                store_.service_->part(key_, upload_, etags_.size() + parts_.size() + 1, std::move(body))));
        }
        void finish_part() {
            const HttpResponse response = HttpClient::shared().wait(std::move(parts_.front()));
            parts_.pop_front();
            store_.service_->require_done(response, key_);
            etags_.emplace_back(response.etag());
        }

        RemoteStore& store_;
        std::string key_;
        std::string name_;
        bool whole_;
        Buffer value_;
        std::string upload_;  ///< empty until there are parts
        std::string write_;
        std::deque<HttpTicket> parts_;
        std::vector<std::string> etags_;
    };

    /// What is being changed is read anew. Who writes believes in no age: others may write, too.
    [[nodiscard]] HttpRequest to_read(std::string_view key) const {
        HttpRequest request = service_->request(key);
        request.cached = changing_ == 0;
        request.always_asks = changes_values_;
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
    [[nodiscard]] HttpTicket start_tail(std::string_view key) const {
        HttpRequest request = to_read(key);
        request.range = HttpRange{.length = tail_bytes, .suffix = true};
        return HttpClient::shared().start(std::move(request));
    }
    [[nodiscard]] HttpTicket start_whole(std::string_view key, std::uint64_t limit, bool gives_up = false) const {
        HttpRequest request = to_read(key);
        request.limit = limit;
        request.gives_up = gives_up;
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
        if (keeping_ == 0 || changing_ > 0) return nullptr;
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
        if (!fetch_opened(key, response)) {
            kept.opened = true;
            return nullptr;
        }
        const std::string name = join_key(name_, key);
        Buffer all;
        if (response.first == 0) all = std::move(response.body);
        const std::uint64_t size = response.total;
        auto source = std::make_unique<RemoteSource>(service_, std::string(key), name, std::move(response));
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
    [[nodiscard]] bool fetch_opened(std::string_view key, HttpResponse& response) const {
        HttpTicket ticket = announced(key);
        response = HttpClient::shared().wait(ticket ? std::move(ticket) : start_tail(key));
        if (is_absent(response, key)) return false;
        if (response.body.empty() && response.total > 0) {  // announced whole, and longer than it should be
            response = HttpClient::shared().wait(start_tail(key));
            if (is_absent(response, key)) return false;
        }
        return true;
    }

    /// The answer for a document of a node; null for other keys.
    [[nodiscard]] std::shared_ptr<const HttpResponse> document(std::string_view key) const {
        const auto* const name = document_name(key);
        if (name == documents.end()) return nullptr;
        const std::string prefix(key.substr(0, key.size() - std::min(key.size(), name->size() + 1)));
        std::shared_ptr<Documents> node;
        {
            const auto now = std::chrono::steady_clock::now();
            const std::lock_guard guard(mutex_);
            const std::uint64_t written = documents_written;
            std::erase_if(nodes_, [&](const auto& entry) {
                return now - entry.second->asked > document_age || entry.second->written != written;
            });
            std::shared_ptr<Documents>& entry = nodes_[prefix];
            if (entry == nullptr) {
                entry = std::make_shared<Documents>();
                entry->asked = now;
                entry->written = written;
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
        if (is_absent(response, key)) return nullptr;
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
        std::uint64_t written = 0;  ///< see documents_written
        std::mutex mutex;
        std::map<std::string, Answer, std::less<>> answers;
    };

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
                tickets_.insert_or_assign(
                    wish.key, wish.whole ? store_.start_whole(wish.key, usual_, true) : store_.start_tail(wish.key));
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
    std::atomic<bool> later_ = false;  ///< see sync_later()
    std::atomic<int> changing_ = 0;    ///< how many changes there are
    mutable std::atomic<bool> changes_values_ = false;
    mutable std::mutex mutex_;  ///< for what follows
    mutable std::vector<Change*> changes_;
    mutable std::deque<std::shared_ptr<Sent>> sent_;
    mutable std::uint64_t sent_bytes_ = 0;
    mutable std::exception_ptr failure_;  ///< of what was sent, and is missing now
    mutable std::vector<Ahead*> ahead_;
    mutable int keeping_ = 0;  ///< how many Keep there are
    mutable bool keeps_whole_ = true;
    mutable std::shared_ptr<KeptFile> kept_file_ = std::make_shared<KeptFile>();
    mutable std::list<std::string> kept_order_;  ///< the keys of kept_, what was used last at the end
    mutable std::map<std::string, std::pair<std::shared_ptr<Kept>, std::list<std::string>::iterator>, std::less<>>
        kept_;
    mutable std::map<std::string, std::shared_ptr<Documents>, std::less<>> nodes_;
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
