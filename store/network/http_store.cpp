// Arrays behind HTTP and HTTPS, read only. A server of files lists nothing: what is there is learnt from the documents,
// and below a group from its consolidated metadata, or as levels of an image of OME-Zarr.
#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/error_text.h>
#include <tessera/store_kind.h>
#include <tessera/value.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "answer_text.h"
#include "http_cache.h"
#include "keys.h"
#include "node_documents.h"
#include "remote_store.h"
#include "sorted_keys.h"
#include "url.h"

namespace tessera {

namespace {

constexpr std::uint64_t longest_document = std::uint64_t{64} << 20;

class HttpService final : public RemoteService {
public:
    /// `waiter` is notified of names that cannot be, and may be null.
    HttpService(Url url, std::shared_ptr<const RemoteOptions> options, Waiter* waiter)
        : url_(std::move(url)), options_(std::move(options)), cache_(HttpCache::of(*options_)), waiter_(waiter) {}

    [[nodiscard]] HttpRequest request(std::string_view key) const override {
        HttpRequest request;
        request.url = url_.of_key(key);
        request.name = join_key(url_.name(), key);
        request.cache = cache_;
        request.authorised = !url_.query.empty() || !options_->headers.empty();
        request.log = options_->log;
        if (!options_->headers.empty()) {
            request.headers = [options = options_](const HttpRequest& /*asked*/) { return options->headers; };
        }
        return request;
    }

    [[nodiscard]] bool is_absent(const HttpResponse& response, std::string_view key) const override {
        switch (response.status) {
            case 200:
            case 206:
            case 416:
                return false;
            case 404:
            case 410:
                return true;
            case 401:
            case 403:
                if (options_->absent_status == response.status) return true;
                throw Error(
                    ErrorCode::io,
                    fmt::format("{}: the server answers {}: reading it is not allowed, or it is not there and the "
                                "server does not say so",
                                join_key(url_.name(), key), response.status))
                    .advising(Action::absent_status, "takes this for absent", std::to_string(response.status));
            default:
                throw Error(ErrorCode::io,
                            fmt::format("{}: the server answers {}", join_key(url_.name(), key), response.status));
        }
    }

    [[nodiscard]] bool lists() const override { return false; }
    void list(std::string_view prefix, const Each& value, const Each& folder) const override {
        const std::lock_guard guard(mutex_);
        if (!known_) known_ = keys_of_documents();
        const Listing listing = list_below(*known_, prefix);
        for (const std::string& name : listing.keys) value(name, 0, "");
        for (const std::string& name : listing.prefixes) folder(name, 0, "");
    }

private:
    using Keys = std::map<std::string, int, std::less<>>;

    /// The documents that the root's own name.
    [[nodiscard]] Keys keys_of_documents() const {
        Keys keys;
        std::vector<std::pair<std::string, HttpTicket>> asked;
        const auto start = [&](std::string_view name) {
            HttpRequest wanted = request(name);
            wanted.limit = longest_document;
            wanted.cached = true;
            asked.emplace_back(name, HttpClient::shared().start(std::move(wanted)));
        };
        for (const std::string_view name : root_documents) start(name);
        start(v2_attributes_name);
        for (auto& [name, ticket] : asked) {
            const HttpResponse response = HttpClient::shared().wait(std::move(ticket));
            if (is_absent(response, name)) continue;
            require_plain(*this, response, name);
            keys.emplace(name, 0);
            if (name != v3_document_name && name != v2_consolidated_name && name != v2_attributes_name) continue;
            const Value document =
                Value::parse({reinterpret_cast<const char*>(response.body.data()), response.body.size()});
            if (name != v2_attributes_name) add_consolidated(name, document, keys);
            if (name != v2_consolidated_name) add_levels(name, document, keys);
        }
        return keys;
    }

    /// A document may name what is no key, such as "../x": that is left out, and the rest of the group is there.
    void add(const std::string& key, const std::string& name, Keys& keys) const {
        try {
            require_key(key);
        } catch (const Error& e) {
            const std::string text =
                fmt::format("{}: names what is left out: {}", join_key(url_.name(), name), e.what());
            if (options_->note) {
                options_->note(text);
            } else if (waiter_ != nullptr) {
                waiter_->notes(text);
            }
            return;
        }
        keys.emplace(key, 0);
    }

    /// The arrays that an image of OME-Zarr names.
    void add_levels(const std::string& name, const Value& document, Keys& keys) const {
        const auto in = [](const Value* value, std::string_view member) {
            return value != nullptr && value->is_object() ? value->find(member) : nullptr;
        };
        const Value* const images =
            in(name == v2_attributes_name ? &document : in(in(&document, "attributes"), "ome"), "multiscales");
        if (images == nullptr || !images->is_array()) return;
        for (const Value& image : images->as_array()) {
            const Value* const levels = in(&image, "datasets");
            if (levels == nullptr || !levels->is_array()) continue;
            for (const Value& level : levels->as_array()) {
                const Value* const path = in(&level, "path");
                if (path == nullptr || !path->is_string()) continue;
                add(join_key(path->as_string(), name == v2_attributes_name ? std::string(v2_array_name) : name), name,
                    keys);
            }
        }
    }

    void add_consolidated(const std::string& name, const Value& document, Keys& keys) const {
        const Value* all = name == v2_consolidated_name ? &document : document.find("consolidated_metadata");
        const Value* nodes = all != nullptr && all->is_object() ? all->find("metadata") : nullptr;
        if (nodes == nullptr || !nodes->is_object()) return;
        for (const auto& [path, node] : nodes->as_object()) {
            add(name == v2_consolidated_name ? path : join_key(path, v3_document_name), name, keys);
        }
    }

    Url url_;
    std::shared_ptr<const RemoteOptions> options_;
    std::shared_ptr<HttpCache> cache_;
    Waiter* waiter_;
    mutable std::mutex mutex_;
    mutable std::optional<Keys> known_;
};

Place http_place(const std::filesystem::path& path, const StoreOptions& options) {
    Url url = parse_url(path.native());
    std::string name = url.name();
    auto service = std::make_unique<HttpService>(std::move(url), remote_options_of(options), options.waiter);
    return {remote_store(std::move(name), std::move(service), options), ""};
}

}  // namespace

extern constinit const StoreKind http_kind{
    .scheme = "http", .about = "a server of files (HTTP)", .place = http_place, .url = true};
extern constinit const StoreKind https_kind{
    .scheme = "https", .about = "a server of files (HTTPS)", .place = http_place, .url = true};

}  // namespace tessera
