// Decoded chunks of arrays that are read in small pieces, kept within a budget and shared by all readers.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <served.h>
#include <tessera/array_io.h>
#include <tessera/memory_account.h>
#include <tessera/ndarray.h>

namespace tessera::mount {

using Block = std::shared_ptr<const NDArray>;

/// Thread rule: any thread calls any member.
class BlockCache {
public:
    /// `budget`: bytes of elements.
    explicit BlockCache(std::uint64_t budget) : budget_(budget) {}
    BlockCache(const BlockCache&) = delete;
    BlockCache& operator=(const BlockCache&) = delete;
    ~BlockCache() = default;

    /// The elements of a chunk in the grid of the node's source. Decodes it if it is not kept, or if its value was
    /// replaced since; others who want it meanwhile wait. `since`: what was looked at before that is looked at again.
    [[nodiscard]] Block get(const serve::ServedNode& node, const Index& chunk,
                            std::chrono::steady_clock::time_point since, const IoOptions& io);

    /// The same if it is kept, and was looked at since; else nullptr.
    [[nodiscard]] Block kept(const serve::ServedNode& node, const Index& chunk,
                             std::chrono::steady_clock::time_point since);

private:
    /// The array, its version and the chunk.
    using Key = std::pair<std::string, std::vector<std::int64_t>>;
    struct Kept {
        Block block;
        std::optional<ValueStamp> stamp;
        std::chrono::steady_clock::time_point looked;
        std::list<Key>::iterator used;
    };

    [[nodiscard]] static bool is_stale(const Kept& kept, std::chrono::steady_clock::time_point since);
    [[nodiscard]] static Key key_of(const serve::ServedNode& node, const Index& chunk);
    /// The block, if it is kept and still what is stored; else nullptr. Leaves the lock while it looks.
    [[nodiscard]] Block kept(std::unique_lock<std::mutex>& lock, const Key& key, const serve::ServedNode& node,
                             const Index& chunk, std::chrono::steady_clock::time_point since);
    void keep(const Key& key, Kept made);
    void forget(std::map<Key, Kept>::iterator at);
    void shrink(std::uint64_t most);

    std::mutex mutex_;
    std::condition_variable decoded_;
    std::uint64_t budget_;
    std::uint64_t bytes_ = 0;
    std::map<Key, Kept> kept_;
    std::vector<Key> being_decoded_;
    std::list<Key> used_;  ///< the last used one first
    SpareMemory spare_{[this] {
        const std::lock_guard lock(mutex_);
        shrink(0);
    }};
};

/// A node's elements, read through the cache. The node and the cache live as long.
/// Thread rule: any thread.
[[nodiscard]] std::shared_ptr<const ArraySource> cached_source(serve::NodePointer node, BlockCache& cache);

}  // namespace tessera::mount
