// The cache of planes behind TileCache. Private to the store module.
#pragma once

#include <array>
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
#include <vector>

#include <tessera/memory_account.h>

#include "tile_plane.h"

namespace tessera {

/// How much a plane is worth: what was made on the way, and may be of use for other levels, goes first. Numbers between
/// these are for planes so many levels finer than the one that was wanted.
inline constexpr int wanted_plane = 0;
inline constexpr int unwanted_elements = 7;

/// Planes by key. Dropped are those of the least worth, and of these the one that was not used for longest. Thread
/// rule: any thread calls any member.
class TileStore {
public:
    explicit TileStore(std::uint64_t limit) : limit_(limit) {}

    /// nullptr if it is not there.
    [[nodiscard]] std::shared_ptr<const TilePlane> find(const std::string& key);
    /// `worth`: from wanted_plane to unwanted_elements. Only for a wanted plane are others of the same worth dropped.
    void insert(const std::string& key, std::shared_ptr<const TilePlane> plane, int worth);

    /// While one thread makes planes under a key, others that want to make the same wait. Returns whether this thread
    /// is to make them (and then calls finished()); after a wait, false: another thread has ended its work.
    [[nodiscard]] bool begin(const std::string& key);
    void finished(const std::string& key);

    /// Elements with indeterminate content, in memory that was recycled, where there is some.
    [[nodiscard]] NDArray fresh(const DType& dtype, const Shape& shape);
    /// Keeps memory for fresh(): touching new memory takes about as long as decoding into it.
    void recycle(NDArray&& elements);

    [[nodiscard]] std::uint64_t bytes() const;
    std::atomic<std::int64_t> decoded = 0;  ///< chunks

private:
    struct Entry {
        std::shared_ptr<const TilePlane> plane;
        int worth = wanted_plane;
        std::list<std::string>::iterator place;
    };
    /// Drops idle memory and what is not wanted; if there is no such thing, half of what is, the oldest first.
    void make_room();
    /// Removes an entry from all but the order.
    [[nodiscard]] std::shared_ptr<const TilePlane> take(const std::string& key);
    /// The entries to drop before others of this worth; nullptr if none may be dropped for it.
    [[nodiscard]] std::list<std::string>* droppable(int worth);

    std::uint64_t limit_;
    mutable std::mutex mutex_;
    std::uint64_t bytes_ = 0;
    std::array<std::list<std::string>, unwanted_elements + 1> order_;  ///< by worth, the latest first
    std::unordered_map<std::string, Entry> entries_;
    std::vector<NDArray> idle_;
    std::mutex work_mutex_;
    std::condition_variable work_ended_;
    std::set<std::string> in_work_;
    SpareMemory spare_{[this] { make_room(); }};  // the last member
};

}  // namespace tessera
