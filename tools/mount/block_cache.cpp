#include "block_cache.h"

#include <tessera/chunk_grid.h>
#include <tessera/copy_elements.h>
#include <tessera/parallel.h>
#include <tessera/store_kind.h>

#include <algorithm>
#include <functional>

namespace tessera::mount {

namespace {

/// How long a reader that keeps its file open may see a chunk as it was. The kernel keeps pages as long.
constexpr std::chrono::seconds chunk_fresh(1);

using Clock = std::chrono::steady_clock;

std::uint64_t bytes_of(const Block& block) {
    return static_cast<std::uint64_t>(byte_count(block->shape(), block->dtype().size()));
}

/// Reads through a cache of chunks.
class CachedSource final : public ArraySource {
public:
    CachedSource(serve::NodePointer node, BlockCache& cache)
        : node_(std::move(node)),
          cache_(cache),
          // A look at a far chunk takes a round trip, so that one within a second is enough.
          opened_(is_local(node_->name) ? Clock::now() : Clock::time_point::min()),
          info_(node_->source().info()),
          grid_(info_.shape, info_.chunks) {}

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return node_->source().name(); }
    [[nodiscard]] Value attribute_values() const override { return node_->source().attribute_values(); }
    [[nodiscard]] const ArraySource* model() const override { return &node_->source(); }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        // Threads are for decoding, and for looking whether chunks changed; what needs neither is copied at once.
        std::vector<Index> wanted;
        const Region chunks = grid_.overlapping(region);
        for (std::int64_t n = 0, count = chunks.count(); n < count; ++n) {
            Index chunk = chunks.start;
            std::int64_t rest = n;
            for (int d = chunk.rank(); d-- > 0; rest /= chunks.extent[d]) chunk[d] += rest % chunks.extent[d];
            const Block block = cache_.kept(*node_, chunk, opened_);
            if (block) copy_part(*block, chunk, region, out);
            if (!block) wanted.push_back(chunk);
        }
        parallel_for(std::ssize(wanted), io, [&](std::int64_t n) {
            const Index& chunk = wanted[static_cast<std::size_t>(n)];
            copy_part(*cache_.get(*node_, chunk, opened_, io), chunk, region, out);
        });
    }

private:
    void copy_part(const NDArray& block, const Index& chunk, const Region& region, const MutableArrayView& out) const {
        const Region whole = grid_.chunk_region(chunk);
        const Region part = intersection(whole, region);
        const auto within = [&](const Region& outer) {
            Index start = part.start;
            for (int d = 0; d < start.rank(); ++d) start[d] -= outer.start[d];
            return Region(start, part.extent);
        };
        copy_elements(block.view().part(within(whole)), out.part(within(region)));
    }

    serve::NodePointer node_;
    BlockCache& cache_;
    Clock::time_point opened_;
    ArrayInfo info_;
    ChunkGrid grid_;
};

}  // namespace

Block BlockCache::kept(std::unique_lock<std::mutex>& lock, const Key& key, const serve::ServedNode& node,
                       const Index& chunk, Clock::time_point since) {
    auto found = kept_.find(key);
    if (found == kept_.end()) return nullptr;
    const Block block = found->second.block;
    if (is_stale(found->second, since)) {
        const Clock::time_point now = Clock::now();
        const std::optional<ValueStamp> stamp = found->second.stamp;
        lock.unlock();  // a stamp may be a question over the network
        const bool same = node.stamp_of(chunk) == stamp;
        lock.lock();
        found = kept_.find(key);
        const bool still = found != kept_.end() && found->second.block == block;
        if (still && same) found->second.looked = now;
        if (still && !same) forget(found);
        if (!same) return nullptr;
        if (!still) return block;
    }
    used_.splice(used_.begin(), used_, found->second.used);
    return block;
}

void BlockCache::forget(std::map<Key, Kept>::iterator at) {
    bytes_ -= bytes_of(at->second.block);
    used_.erase(at->second.used);
    kept_.erase(at);
}

void BlockCache::shrink(std::uint64_t most) {
    while (bytes_ > most && !used_.empty()) forget(kept_.find(used_.back()));
}

void BlockCache::keep(const Key& key, Kept made) {
    // Another reader may have kept it meanwhile.
    if (const auto before = kept_.find(key); before != kept_.end()) forget(before);
    const std::uint64_t bytes = bytes_of(made.block);
    if (bytes > budget_) return;
    shrink(budget_ - bytes);
    used_.push_front(key);
    made.used = used_.begin();
    bytes_ += bytes;
    kept_.insert_or_assign(key, std::move(made));
}

BlockCache::Key BlockCache::key_of(const serve::ServedNode& node, const Index& chunk) {
    return {node.path + '\0' + node.version, std::vector<std::int64_t>(chunk.begin(), chunk.end())};
}

bool BlockCache::is_stale(const Kept& kept, Clock::time_point since) {
    return kept.looked < since || Clock::now() - kept.looked > chunk_fresh;
}

Block BlockCache::kept(const serve::ServedNode& node, const Index& chunk, Clock::time_point since) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(key_of(node, chunk));
    if (found == kept_.end() || is_stale(found->second, since)) return nullptr;
    used_.splice(used_.begin(), used_, found->second.used);
    return found->second.block;
}

Block BlockCache::get(const serve::ServedNode& node, const Index& chunk, Clock::time_point since, const IoOptions& io) {
    const Key key = key_of(node, chunk);
    {
        std::unique_lock lock(mutex_);
        for (;;) {
            if (Block block = kept(lock, key, node, chunk, since)) return block;
            if (std::ranges::find(being_decoded_, key) == being_decoded_.end()) break;
            decoded_.wait(lock);
        }
        being_decoded_.push_back(key);
    }
    Kept made{.block = nullptr, .stamp = {}, .looked = Clock::now(), .used = {}};
    const auto ended = [&] {
        std::erase(being_decoded_, key);
        decoded_.notify_all();
    };
    try {
        made.stamp = node.stamp_of(chunk);
        const ArraySource& source = node.source();
        const ArrayInfo info = source.info();
        const Region region = ChunkGrid(info.shape, info.chunks).chunk_region(chunk);
        NDArray elements(info.dtype, region.extent);
        IoOptions one = io;
        one.threads = 1;
        source.read_into(region, elements.view(), one);
        made.block = std::make_shared<const NDArray>(std::move(elements));
    } catch (...) {
        const std::lock_guard lock(mutex_);
        ended();
        throw;
    }
    Block block = made.block;
    const std::lock_guard lock(mutex_);
    ended();
    keep(key, std::move(made));
    return block;
}

std::shared_ptr<const ArraySource> cached_source(serve::NodePointer node, BlockCache& cache) {
    const ArrayInfo info = node->source().info();
    if (info.chunks.empty() || !node->stamps_chunks()) {
        const ArraySource& source = node->source();
        return {std::move(node), &source};
    }
    return std::make_shared<CachedSource>(std::move(node), cache);
}

}  // namespace tessera::mount
