// RemoteSource: a value over HTTP, by ranges of one version. Private to the store module.
#pragma once

#include <tessera/memory_account.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kept_value.h"
#include "remote_service.h"

namespace tessera {

/// Thread rule: every member may be called from several threads at once.
class RemoteSource final : public RangedSource {
public:
    /// `tail` is the answer to a GET of the last bytes, of the first ones, or of all. `replaced` counts reads that fail
    /// because the value is another by then; may be null.
    RemoteSource(std::shared_ptr<const RemoteService> service, std::string key, std::string name, HttpResponse tail,
                 std::shared_ptr<std::atomic<std::uint64_t>> replaced)
        : service_(std::move(service)),
          key_(std::move(key)),
          name_(std::move(name)),
          tail_(std::move(tail)),
          replaced_(std::move(replaced)) {}

    [[nodiscard]] std::uint64_t size() const override { return tail_.total; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    void read(std::uint64_t offset, MutableByteSpan out) const override;
    void expect(std::span<const Extent> extents) const override;
    [[nodiscard]] bool take_first(std::uint64_t offset, MutableByteSpan out) const override;
    [[nodiscard]] HttpTicket start(std::uint64_t offset, std::uint64_t length, bool held) const override;
    [[nodiscard]] HttpResponse finish(HttpTicket ticket) const override;

private:
    struct Fetched {
        std::uint64_t first = 0;
        std::uint64_t length = 0;
        std::mutex mutex;
        HttpTicket ticket;
        HttpResponse response;
    };
    [[nodiscard]] std::shared_ptr<Fetched> announced(std::uint64_t offset, std::uint64_t length) const;

    std::shared_ptr<const RemoteService> service_;
    std::string key_;
    std::string name_;
    HttpResponse tail_;
    std::shared_ptr<std::atomic<std::uint64_t>> replaced_;
    mutable std::mutex mutex_;
    mutable std::vector<std::shared_ptr<Fetched>> ahead_;
    mutable MemoryHold held_;  ///< for these
};

}  // namespace tessera
