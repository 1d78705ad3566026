// The cache of planes behind TileCache. Private to the store module.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include <tessera/memory_account.h>

#include "tile_plane.h"

namespace tessera {

/// Planes by key, the least recently used dropped first. Thread rule: any thread calls any member.
class TileStore {
public:
    explicit TileStore(std::uint64_t limit) : limit_(limit) {}

    /// nullptr if it is not there.
    [[nodiscard]] std::shared_ptr<const TilePlane> find(const std::string& key);
    /// `spare`: takes it only where there is room, and drops nothing for it.
    void insert(const std::string& key, std::shared_ptr<const TilePlane> plane, bool spare);

    /// While one thread makes planes under a key, others that want to make the same wait. Returns whether this thread
    /// is to make them (and then calls finished()); after a wait, false: another thread has ended its work.
    [[nodiscard]] bool begin(const std::string& key);
    void finished(const std::string& key);

    [[nodiscard]] std::uint64_t bytes() const;
    std::atomic<std::int64_t> decoded = 0;  ///< chunks

private:
    struct Entry {
        std::shared_ptr<const TilePlane> plane;
        std::list<std::string>::iterator place;
    };
    void clear();

    std::uint64_t limit_;
    mutable std::mutex mutex_;
    std::uint64_t bytes_ = 0;
    std::list<std::string> order_;  ///< the latest first
    std::unordered_map<std::string, Entry> entries_;
    std::mutex work_mutex_;
    std::condition_variable work_ended_;
    std::set<std::string> in_work_;
    SpareMemory spare_{[this] { clear(); }};  // the last member
};

}  // namespace tessera
