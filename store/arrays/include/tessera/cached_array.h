// CachedArray: an array whose chunks stay decoded in memory, for loops of small reads and writes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <tessera/array.h>
#include <tessera/array_io.h>

namespace tessera {

/// Reads and writes go to decoded chunks in memory (with shards: inner chunks), of which those least recently used
/// leave when the budget is full. What was written reaches the array by flush(), or when its chunk leaves: each touched
/// chunk is then decoded at most once and encoded once, however many writes touched it, and each touched shard is
/// replaced once.
///
/// Beside other writers nothing is lost: the elements that were written are known one by one, and where the stored
/// chunk was changed meanwhile, they alone are put into what is there now, under the chunk's lock. Reads look each time
/// whether the stored chunk is still the one that is in memory, so that what others wrote shows. A shape that others
/// changed shows at the next flush(), refresh() or access beyond the old one; elements that were written but are no
/// longer part of the array are dropped with the rest of what was cut off.
///
/// What has to leave to make room is written then, so that a read too may throw the error of a write; the elements stay
/// in memory, and flush() may be tried again.
/// Thread rule: every member may be called from several threads at once. They take turns; each works on several chunks
/// in parallel. No thread uses it while it has an Edit of the same array.
class CachedArray final : public ArraySource, public ArraySink {
public:
    /// `budget` is the memory for chunks, in bytes: an element takes one more than its size. Throws budget, naming the
    /// least that works, where not one chunk fits.
    explicit CachedArray(Array array, std::uint64_t budget = std::uint64_t{256} << 20U);
    /// Flushes. An error can only be reported on stderr then, and what was written since the last flush() is lost:
    /// whoever wants to know calls flush() before.
    ~CachedArray() override;
    CachedArray(const CachedArray&) = delete;
    CachedArray& operator=(const CachedArray&) = delete;

    [[nodiscard]] ArrayInfo info() const override;
    [[nodiscard]] const std::string& name() const override;
    [[nodiscard]] Value attribute_values() const override;

    [[nodiscard]] NDArray read(const Region& region, const IoOptions& io = {}) const;
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io = {}) const override;
    void write(const Region& region, const ArrayView& in, const IoOptions& io = {}) override;

    /// Writes everything that was written; durable then as the store's Durability says.
    void flush(const IoOptions& io = {});
    void finish() override { flush(); }
    /// Looks for a shape that others changed.
    void refresh();

private:
    std::unique_ptr<struct ChunkCache> cache_;
};

}  // namespace tessera
