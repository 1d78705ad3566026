#include "tile_cache.h"

#include <utility>
#include <vector>

#include <tessera/tile.h>

namespace tessera {

// Planes are freed outside of the lock, and none is allocated within it: a thread that allocates may call clear().

std::shared_ptr<const TilePlane> TileStore::find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second.place);
    return found->second.plane;
}

void TileStore::insert(const std::string& key, std::shared_ptr<const TilePlane> plane, bool spare) {
    const std::uint64_t size = plane->bytes() + key.size();
    std::vector<std::shared_ptr<const TilePlane>> dropped;
    const std::lock_guard lock(mutex_);
    if (size > limit_ || entries_.contains(key)) return;
    if (spare && bytes_ + size > limit_) return;
    while (bytes_ + size > limit_) {
        const auto oldest = entries_.find(order_.back());
        bytes_ -= oldest->second.plane->bytes() + order_.back().size();
        dropped.push_back(std::move(oldest->second.plane));
        entries_.erase(oldest);
        order_.pop_back();
    }
    order_.push_front(key);
    entries_.emplace(key, Entry{std::move(plane), order_.begin()});
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

std::uint64_t TileStore::bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
}

void TileStore::clear() {
    std::unordered_map<std::string, Entry> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(entries_);
    order_.clear();
    bytes_ = 0;
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
