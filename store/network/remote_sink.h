// RemoteSink: a value that is written piece by piece over HTTP. Private to the store module.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/byte_io.h>

#include "remote_service.h"

namespace tessera {

/// Kept in memory, or sent in parts. Thread rule: one thread.
class RemoteSink final : public ByteSink {
public:
    using Put = std::function<void(std::shared_ptr<const Buffer> body)>;
    /// `put` sets the whole value. `whole`: never in parts, because it is set on a condition.
    RemoteSink(const RemoteService& service, std::string key, std::string name, bool whole, Put put);
    ~RemoteSink() override;
    RemoteSink(const RemoteSink&) = delete;
    RemoteSink& operator=(const RemoteSink&) = delete;

    [[nodiscard]] bool random_access() const override { return false; }
    void append(ByteSpan bytes) override;
    void write_at(std::uint64_t offset, ByteSpan bytes) override;
    void finish() override;
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    void send(std::size_t size);
    void finish_part();

    const RemoteService& service_;
    std::string key_;
    std::string name_;
    bool whole_;
    Put put_;
    Buffer value_;
    std::string upload_;  ///< empty until there are parts
    std::string write_;
    std::deque<HttpTicket> parts_;
    std::vector<std::string> etags_;
};

}  // namespace tessera
