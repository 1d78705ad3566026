// RemoteService: how one kind of service over HTTP names, lists and sets values. Private to the store module.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/buffer.h>
#include <tessera/far_store.h>

#include "http_client.h"

namespace tessera {

/// A version of a value.
struct RemoteVersion {
    std::string etag;  ///< empty: there is no value
    /// Its number, where conditions name that (Google Cloud Storage).
    std::string generation = {};
    /// The ids of the write that made it and of those before that, the newest first, down to "=" and what the first of
    /// them replaced. None: another program wrote it.
    std::vector<std::string> writes = {};

    friend bool operator==(const RemoteVersion& a, const RemoteVersion& b) {
        return a.etag == b.etag && a.generation == b.generation;
    }
};

/// A new value, and when it is to be set.
struct RemotePut {
    enum class If : std::uint8_t { always, absent, same };
    std::shared_ptr<const Buffer> body;
    std::vector<std::string> writes = {};  ///< see RemoteVersion: its own id first
    If condition = If::always;
    std::string etag = {};  ///< for If::same, and `generation`, too
    std::string generation = {};
    bool once = false;  ///< see HttpRequest
};

/// How one kind of service names and lists values. Thread rule: const members may be called from several threads.
class RemoteService {
public:
    virtual ~RemoteService() = default;
    /// A GET of a key, "" being the root of the store, with what the service wants in its header.
    [[nodiscard]] virtual HttpRequest request(std::string_view key) const = 0;
    /// Whether an answer says that there is no such value. Throws, naming the reason, if it says anything else than
    /// that the value is there.
    [[nodiscard]] virtual bool is_absent(const HttpResponse& response, std::string_view key) const = 0;

    /// Whether list() gives everything that is there.
    [[nodiscard]] virtual bool lists() const { return true; }
    using Each = std::function<void(std::string_view name, std::uint64_t size, std::string_view etag)>;
    /// Calls value(name, size, etag) for every value directly below a prefix, the ETag being empty if it is not listed,
    /// and folder(name, 0, "") for what lies deeper.
    virtual void list(std::string_view prefix, const Each& value, const Each& folder) const = 0;

    /// Calls value(name, size, etag) for all that lies below a prefix, by a listing that knows no folders; see
    /// FarStore::for_each_below. Only for services that list.
    virtual void list_all(std::string_view /*prefix*/, const FarStore::Places& /*places*/,
                          const Each& /*value*/) const {}

    // ---- for services that can be written to

    [[nodiscard]] virtual bool writes() const { return false; }
    /// The server and what of it was given; the same for all places that keep promises alike.
    [[nodiscard]] virtual std::string server() const { return {}; }
    [[nodiscard]] virtual RemoteVersion version_of(const HttpResponse& /*response*/) const { return {}; }
    [[nodiscard]] virtual HttpRequest put(std::string_view key, const RemotePut& /*put*/) const { return request(key); }
    [[nodiscard]] virtual HttpRequest erase(std::string_view key) const { return request(key); }
    /// Throws, naming the reason, unless the answer to a put() or erase() says that it is done.
    virtual void require_done(const HttpResponse& /*response*/, std::string_view /*key*/) const {}

    // A value sent in parts. Each throws io.
    [[nodiscard]] virtual std::string begin_parts(std::string_view /*key*/, const std::string& /*write*/) const {
        return {};
    }
    [[nodiscard]] virtual HttpRequest part(std::string_view key, const std::string& /*upload*/, std::size_t /*number*/,
                                           std::shared_ptr<const Buffer> /*body*/) const {
        return request(key);
    }
    virtual void finish_parts(std::string_view /*key*/, const std::string& /*upload*/, const std::string& /*write*/,
                              std::span<const std::string> /*etags*/) const {}
    virtual void abandon_parts(std::string_view /*key*/, const std::string& /*upload*/) const noexcept {}
    /// Abandons those that ended runs left at and below a prefix.
    virtual void abandon_all_parts(std::string_view /*prefix*/) const {}
};

}  // namespace tessera
