#include "tile_cache.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <tessera/tile.h>

namespace tessera {

// Planes are freed outside of the lock, and none is allocated within it: a thread that allocates may call make_room().

std::shared_ptr<const TilePlane> TileStore::find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    Entry& entry = found->second;
    order_[wanted_plane].splice(order_[wanted_plane].begin(), order_[static_cast<std::size_t>(entry.worth)],
                                entry.place);
    entry.worth = wanted_plane;
    return entry.plane;
}

std::list<std::string>* TileStore::droppable(int worth) {
    const int last = worth == wanted_plane ? wanted_plane : worth + 1;
    for (int least = unwanted_elements; least >= last; --least) {
        auto& order = order_[static_cast<std::size_t>(least)];
        if (!order.empty()) return &order;
    }
    return nullptr;
}

void TileStore::insert(const std::string& key, std::shared_ptr<const TilePlane> plane, int worth) {
    const std::uint64_t size = plane->bytes() + key.size();
    std::vector<std::shared_ptr<const TilePlane>> dropped;
    const std::lock_guard lock(mutex_);
    // Planes that were not requested fill only half, so that the next read need not drop any (SpareMemory).
    const std::uint64_t limit = worth == wanted_plane ? limit_ : limit_ / 2;
    if (size > limit || entries_.contains(key)) return;
    while (bytes_ + size > limit) {
        auto* const order = droppable(worth);
        if (order == nullptr) return;
        dropped.push_back(take(order->back()));
        order->pop_back();
    }
    auto& order = order_[static_cast<std::size_t>(worth)];
    order.push_front(key);
    entries_.emplace(key, Entry{std::move(plane), worth, order.begin()});
    bytes_ += size;
}

bool TileStore::begin(const std::string& key) {
    std::unique_lock lock(work_mutex_);
    if (in_work_.insert(key).second) return true;
    work_ended_.wait(lock, [&] { return !in_work_.contains(key); });
    return false;
}

void TileStore::finished(const std::string& key) {
    {
        const std::lock_guard lock(work_mutex_);
        in_work_.erase(key);
    }
    work_ended_.notify_all();
}

NDArray TileStore::fresh(const DType& dtype, const Shape& shape) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = std::ranges::find_if(
            idle_, [&](const NDArray& idle) { return idle.shape() == shape && idle.dtype() == dtype; });
        if (found != idle_.end()) {
            NDArray elements = std::move(*found);
            idle_.erase(found);
            return elements;
        }
    }
    return {dtype, shape};
}

void TileStore::recycle(NDArray&& elements) {
    constexpr std::size_t most = 4;
    NDArray dropped = std::move(elements);
    const std::lock_guard lock(mutex_);
    if (bytes_ + most * dropped.bytes().size() > limit_) return;
    idle_.push_back(std::move(dropped));
    if (idle_.size() <= most) return;
    dropped = std::move(idle_.front());
    idle_.erase(idle_.begin());
}

std::uint64_t TileStore::bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
}

void TileStore::make_room() {
    std::vector<std::shared_ptr<const TilePlane>> dropped;
    std::vector<NDArray> idle;
    const std::lock_guard lock(mutex_);
    idle.swap(idle_);
    const std::uint64_t before = bytes_;
    for (std::size_t worth = wanted_plane + 1; worth < order_.size(); ++worth) {
        for (const std::string& key : order_[worth]) dropped.push_back(take(key));
        order_[worth].clear();
    }
    if (bytes_ < before || !idle.empty()) return;
    constexpr std::uint64_t little = std::uint64_t{1} << 20;
    auto& wanted = order_[wanted_plane];
    while (!wanted.empty() && (bytes_ > before / 2 || before < little)) {
        dropped.push_back(take(wanted.back()));
        wanted.pop_back();
    }
}

std::shared_ptr<const TilePlane> TileStore::take(const std::string& key) {
    const auto found = entries_.find(key);
    std::shared_ptr<const TilePlane> plane = std::move(found->second.plane);
    bytes_ -= plane->bytes() + key.size();
    entries_.erase(found);
    return plane;
}

TileCache::TileCache(std::uint64_t bytes) : store_(std::make_unique<TileStore>(bytes)) {}
TileCache::~TileCache() = default;

std::uint64_t TileCache::bytes() const {
    return store_->bytes();
}

std::int64_t TileCache::chunks_decoded() const {
    return store_->decoded;
}

}  // namespace tessera
