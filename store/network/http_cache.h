// HttpCache: answers to GET requests, kept in a DiskCache. Private to the store module.
//
// The last bytes of a value, or all of it, are one entry, the head: it says which version there is. Other ranges are
// entries of their own, which serve only who asks for that version (If-Match). So only heads need validation
// (If-None-Match), and a value that is replaced costs its head alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <tessera/remote_options.h>

#include "disk_cache.h"
#include "http_client.h"

namespace tessera {

/// Thread rule: every member may be called from several threads at once.
class HttpCache {
public:
    /// Null if there is neither a cache nor a wish to stay offline. Throws as DiskCache::open().
    static std::shared_ptr<HttpCache> of(const RemoteOptions& options);
    HttpCache(std::shared_ptr<DiskCache> disk, std::chrono::milliseconds age, bool offline)
        : disk_(std::move(disk)), age_(age), offline_(offline) {}

    struct Found {
        std::string etag;    ///< to validate it by; may be empty
        bool fresh = false;  ///< it serves without that
    };
    /// An entry that answers a request, whose caller waits since `begun`.
    [[nodiscard]] std::optional<Found> look(const HttpRequest& request, std::int64_t begun) const;
    /// That answer; nullopt if it is not there any more.
    [[nodiscard]] std::optional<HttpResponse> load(const HttpRequest& request) const;
    /// Null while another thread or process fetches it.
    [[nodiscard]] std::shared_ptr<void> claim(const HttpRequest& request) const;
    /// Keeps an answer of the server, if it may be kept. `writes`: writes() when the request began.
    void keep(const HttpRequest& request, const HttpResponse& response, std::uint64_t writes) const;
    /// The server says that the entry is valid.
    void confirm(const HttpRequest& request) const;
    /// Before and after a request that changes a value: whether there was an entry.
    bool forget(const HttpRequest& request) const;
    /// The value that was just set, in place of what was there.
    void replace(const HttpRequest& request, const HttpResponse& response) const;

    [[nodiscard]] std::uint64_t writes() const { return disk_ ? disk_->writes.load() : 0; }
    [[nodiscard]] bool is_offline() const { return offline_; }
    /// Whether a request can be answered from here, and its answer be kept.
    [[nodiscard]] bool serves(const HttpRequest& request) const;
    [[nodiscard]] bool is_shared() const { return disk_ && disk_->is_shared(); }
    [[nodiscard]] std::string folder() const { return disk_ ? disk_->folder().string() : ""; }

private:
    struct Entry;
    [[nodiscard]] std::optional<Entry> entry(const HttpRequest& request, bool with_body) const;

    std::shared_ptr<DiskCache> disk_;  ///< null: there is none
    std::chrono::milliseconds age_;
    bool offline_;
};

}  // namespace tessera
