// Leases of stretches of units, so that processes share what is left. Private to the store module.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "descriptor.h"

namespace tessera {

/// Lease files in a folder, by number. A lease is renewed by its file's time; whoever waits measures with a clock of
/// its own how long that stays the same, so that no two clocks are compared. Two may hold one lease after all, if one
/// was cut off: that costs time, because units can be done twice. Thread rule: one thread.
class UnitClaims {
public:
    UnitClaims(std::filesystem::path folder, std::chrono::milliseconds lease);
    ~UnitClaims();  ///< gives all leases back
    UnitClaims(const UnitClaims&) = delete;
    UnitClaims& operator=(const UnitClaims&) = delete;

    /// Whether the lease is this object's now. Takes over one that is not valid any more.
    bool take(std::int64_t number);
    void give_back(std::int64_t number);

private:
    struct Seen {
        std::uint64_t inode = 0;
        std::int64_t renewed = 0;
        std::chrono::steady_clock::time_point since;
    };
    [[nodiscard]] std::filesystem::path path_of(std::int64_t number) const;
    [[nodiscard]] bool has_lapsed(const std::filesystem::path& path, std::int64_t number);
    bool make(std::int64_t number);
    void renew();

    std::filesystem::path folder_;
    std::chrono::milliseconds lease_;
    std::string own_;  ///< the text of this object's leases
    std::map<std::int64_t, Seen> seen_;
    std::mutex mutex_;
    std::condition_variable ending_;
    bool ends_ = false;
    std::map<std::int64_t, Descriptor> held_;
    std::thread renewer_;
};

}  // namespace tessera
