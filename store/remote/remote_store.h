// RemoteStore: a KeyValueStore for reading over HTTP, whatever the service; what differs between services is a
// RemoteService. Private to the store module.
#pragma once

#include <tessera/key_value_store.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http_client.h"

namespace tessera {

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
    using Each = std::function<void(std::string_view name, std::uint64_t size)>;
    /// Calls value(name, size) for every value directly below a prefix, and folder(name, 0) for what lies deeper.
    virtual void list(std::string_view prefix, const Each& value, const Each& folder) const = 0;
};

/// Whether a person says by TESSERA_ABSENT=403 that this status (401 or 403) means that there is no such value, as S3
/// answers who may not list the bucket.
[[nodiscard]] bool is_absent_by_wish(int status);

/// `name` is what a person typed, without secrets.
[[nodiscard]] std::shared_ptr<KeyValueStore> remote_store(std::string name, std::unique_ptr<RemoteService> service);

}  // namespace tessera
