// Values that were sent and not yet answered. Private to the store module.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <tessera/byte_io.h>

#include "remote_writer.h"

namespace tessera {

/// Many PUTs without conditions at once. Thread rule: every member may be called from several threads at once.
class SentValues {
public:
    explicit SentValues(const RemoteWriter& writer) : writer_(writer) {}

    /// Sends a value, after an earlier one of the key is answered; waits while too much is on its way.
    void send(std::string_view key, std::shared_ptr<const Buffer> body);
    /// Waits until a value that was sent is there. Throws io if it is not.
    void settle(std::string_view key);
    void settle_all();
    /// Throws what went wrong since the last forget_failure(), for whoever has waited for it or not.
    void require_no_failure() const;
    void forget_failure();

private:
    struct Sent {
        std::mutex mutex;
        HttpTicket ticket;  ///< with its mutex; none once it is answered
        std::string key;
        std::uint64_t size = 0;
    };
    void settle(const std::shared_ptr<Sent>& sent);
    void take_out(const std::shared_ptr<Sent>& sent);

    const RemoteWriter& writer_;
    mutable std::mutex mutex_;
    std::deque<std::shared_ptr<Sent>> sent_;
    std::uint64_t bytes_ = 0;
    std::exception_ptr failure_;  ///< of what was sent, and is missing now
};

}  // namespace tessera
