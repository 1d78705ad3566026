// CachedArray: an array whose chunks stay decoded in memory, for loops of small reads and writes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tessera/array.h>
#include <tessera/array_io.h>

namespace tessera {

/// Reads and writes go to decoded chunks in memory (with shards: inner chunks). When the budget is full, the least
/// recently used chunks are evicted. Written elements reach the array on flush() or eviction. Each touched chunk is
/// then decoded at most once and encoded once, however many writes touched it, and each touched shard is replaced once.
///
/// Other writers lose nothing: a dirty mask records the written elements one by one. If the stored chunk changed
/// meanwhile, only those elements are merged into it, under the chunk's lock. Each read checks that the chunk in memory
/// is still the stored one, so that it sees other writers' changes. A resize by others shows at the next flush(),
/// refresh() or access beyond the old shape. Written elements outside the new shape are dropped.
///
/// Eviction writes dirty chunks, so that a read may also throw a write's error. The elements then stay in memory, and
/// flush() may be retried. Thread rule: every member may be called from several threads at once. They take turns; each
/// works on several chunks in parallel. A thread must not use it while it holds an Edit of the same array.
class CachedArray final : public ArraySource, public ArraySink {
public:
    /// `budget` is the memory for chunks, in bytes; each element takes its size and one bit. If not even one chunk
    /// fits, throws budget, naming the minimum.
    explicit CachedArray(Array array, std::uint64_t budget = std::uint64_t{256} << 20U);
    /// Flushes. On failure, reports on stderr and loses everything written since the last flush(). To handle errors,
    /// call flush() first.
    ~CachedArray() override;
    CachedArray(const CachedArray&) = delete;
    CachedArray& operator=(const CachedArray&) = delete;

    [[nodiscard]] ArrayInfo info() const override;
    [[nodiscard]] const std::string& name() const override;
    [[nodiscard]] Value attribute_values() const override;

    /// As Array's: a region, or a selection, as text of info().shape (`c.read("3, ::2")`).
    [[nodiscard]] NDArray read(SelectionText selection = "", const IoOptions& io = {}) const;
    [[nodiscard]] NDArray read(const Selection& selection, const IoOptions& io = {}) const;
    [[nodiscard]] NDArray read(const Region& region, const IoOptions& io = {}) const;
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io = {}) const override;
    void read_into(const Selection& selection, const MutableArrayView& out, const IoOptions& io = {}) const;
    void read_into(SelectionText selection, const MutableArrayView& out, const IoOptions& io = {}) const;

    /// As Array's: elements in memory, a range of them, or one value for all: `c.write("3, :5", 0)`.
    void write(const Region& region, const ArrayView& in, const IoOptions& io = {}) override;
    void write(const Selection& selection, const ArrayView& in, const IoOptions& io = {});
    void write(SelectionText selection, const ArrayView& in, const IoOptions& io = {});
    template <ElementRange R>
    void write(const Region& region, const R& elements, const IoOptions& io = {}) {
        write(region, tessera::view(elements, region.extent), io);
    }
    template <ElementRange R>
    void write(const Selection& selection, const R& elements, const IoOptions& io = {}) {
        write(selection, tessera::view(elements, selection.full_shape()), io);
    }
    template <ElementRange R>
    void write(SelectionText selection, const R& elements, const IoOptions& io = {}) {
        write(named(selection), elements, io);
    }
    template <OneElement T>
    void write(const Region& region, const T& value, const IoOptions& io = {}) {
        write(Selection(region, info().shape), value, io);
    }
    template <OneElement T>
    void write(const Selection& selection, const T& value, const IoOptions& io = {}) {
        if constexpr (RegisteredType<T>) {
            fill(selection, ArrayView(&value, {}, {}), io);
        } else {
            fill(selection, Value(value), io);
        }
    }
    template <OneElement T>
    void write(SelectionText selection, const T& value, const IoOptions& io = {}) {
        write(named(selection), value, io);
    }
    void fill(const Selection& selection, const Value& value, const IoOptions& io = {});
    void fill(const Selection& selection, const ArrayView& element, const IoOptions& io = {});

    /// Writes all dirty elements to the array, as durable as the store's Durability says.
    void flush(const IoOptions& io = {});
    void finish() override { flush(); }
    /// Reloads the shape, which others may have changed.
    void refresh();

private:
    /// A selection as parse_selection() reads it of the array.
    [[nodiscard]] Selection named(SelectionText selection) const;

    std::unique_ptr<struct ChunkCache> cache_;
};

}  // namespace tessera
