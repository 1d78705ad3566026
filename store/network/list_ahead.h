// Listings that are asked for before anybody wants them. Private to the store module.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "http_client.h"

namespace tessera {

/// Whoever goes through all that lies below a folder lists one folder after another. Each begins with an answer that
/// takes a round trip. So the more folders of one were listed in their order, the more of the next are asked for.
/// Thread rule: every member may be called from several threads at once.
class ListAhead {
public:
    /// Begins a request for the first page of a folder.
    using Ask = std::function<HttpTicket(const std::string& folder)>;

    /// The request for a folder, if it was begun; else null. Begins those for the folders that follow.
    [[nodiscard]] HttpTicket take(const std::string& folder, const Ask& ask);
    /// What lies in a folder, in the order in which it will be listed.
    void found(std::vector<std::string> folders);

private:
    struct Asked {
        HttpTicket ticket;
        std::chrono::steady_clock::time_point when;
    };
    /// The folders in one.
    struct Level {
        std::deque<std::string> waiting;
        std::map<std::string, Asked, std::less<>> asked;
        std::size_t taken = 0;
    };

    std::mutex mutex_;
    std::deque<Level> levels_;
    std::uint64_t written_ = 0;  ///< how often this process had written a value: what was asked before is old
};

}  // namespace tessera
