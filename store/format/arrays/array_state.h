// What an Array handle points to. Private to the store module.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/chunk_grid.h>
#include <tessera/dialect.h>
#include <tessera/memory_account.h>
#include <tessera/pipeline.h>
#include <tessera/retry.h>

#include "random_wait.h"

namespace tessera {

/// An array's metadata and everything derived from it. Immutable.
struct LoadedArray {
    explicit LoadedArray(ArrayMetadata m);
    /// See of().
    LoadedArray(const LoadedArray& all, const Index& chunk);

    /// For the work on one chunk or shard: this or, where they differ in length, the same with `metadata.chunks`,
    /// `grid.chunks()` and `pipeline` of its own shape. It is valid as long as this.
    [[nodiscard]] std::shared_ptr<const LoadedArray> of(const Index& chunk) const {
        if (grid.regular()) return {std::shared_ptr<const void>(), this};
        return of_length(chunk);
    }

    ArrayMetadata metadata;
    ChunkGrid grid;
    CodecPipeline pipeline;
    bool may_hold_no_text = false;  ///< chunks may contain elements that are not text: see no_text_mark

    /// The element of absent chunks: dtype.size() bytes (for variable-length kinds a slot). Throws if the metadata's
    /// fill cannot be assigned to the dtype.
    [[nodiscard]] const std::byte* fill() const;
    /// Whether a chunk full of the fill is left out.
    [[nodiscard]] bool may_omit() const { return tessera::may_omit(metadata.fill); }
    [[nodiscard]] std::int64_t chunk_bytes() const { return byte_count(grid.chunks(), metadata.dtype.size()); }

private:
    struct OtherLengths;
    [[nodiscard]] std::shared_ptr<const LoadedArray> of_length(const Index& chunk) const;
    void prepare();

    ElementBytes fill_;
    VariableSlot slot_;
    std::optional<Error> fill_error_;
    std::shared_ptr<OtherLengths> others_;  ///< of chunks of other lengths; not in these
};

/// The result of Array::info().
[[nodiscard]] ArrayInfo array_info(const LoadedArray& loaded);

/// Scratch memory of one worker.
struct WorkerScratch {
    Buffer encoded;
    NDArray chunk;
    NDArray unit;  ///< a second chunk buffer, used by read_many
    CodecScratch codec;
};

/// Reuses scratch memory from chunk to chunk and from call to call. Holds as many as were ever in use at once.
class ScratchPool {
public:
    class Loan {
    public:
        explicit Loan(ScratchPool& pool) : pool_(pool), scratch_(pool.take()) {}
        ~Loan() { pool_.give_back(std::move(scratch_)); }
        Loan(const Loan&) = delete;
        Loan& operator=(const Loan&) = delete;
        WorkerScratch* operator->() { return scratch_.get(); }
        WorkerScratch& operator*() { return *scratch_; }

    private:
        ScratchPool& pool_;
        std::unique_ptr<WorkerScratch> scratch_;
    };

private:
    std::unique_ptr<WorkerScratch> take();
    void give_back(std::unique_ptr<WorkerScratch> scratch);
    void drop();

    std::mutex mutex_;
    std::vector<std::unique_ptr<WorkerScratch>> idle_;
    SpareMemory spare_{[this] { drop(); }};  // the last member
};

/// An array or a group in a store, and its attributes.
struct NodeState : Place {
    /// `d` is nullptr for a plain directory.
    NodeState(std::shared_ptr<KeyValueStore> s, std::string_view p, const Dialect* d);

    const Dialect* dialect;
    std::string name;
    bool published = true;                        ///< false until a new array's metadata are written
    std::optional<Value> unpublished_attributes;  ///< written with them

    /// nullopt if there never were any.
    [[nodiscard]] std::optional<Value> attributes() const;
    /// The caller holds the shape lock.
    void save_attributes(const Value& attributes);
    /// Locks slot 0. Locks nothing before publication, when only the creator knows of the node.
    [[nodiscard]] StoreLock lock_shape(LockMode mode) const;
    /// Calls change(), which reads documents of this node and writes them, with the shape locked exclusively; again
    /// whenever another writer was faster (see KeyValueStore::begin_change).
    void change_documents(const std::function<void()>& change) const;
    /// Ends an operation (see Durability::commit). Does nothing before publication.
    void sync() const;
};

/// After a change that was refused, under the exclusive lock of its shape: removes the node's `.tessera/` if nothing
/// but the file of this lock is in it.
void drop_lock_file(const PlaceRef& place);
/// Does that if change() throws.
template <class Change>
auto or_drop_lock_file(const PlaceRef& place, const Change& change) {
    try {
        return change();
    } catch (const Error&) {
        try {
            drop_lock_file(place);
        } catch (const Error&) {  // it only lies there
        }
        throw;
    }
}

struct ArrayState : NodeState {
    ArrayState(std::shared_ptr<KeyValueStore> s, std::string_view p, const Dialect& d);

    mutable ScratchPool scratch;
    std::atomic<bool> stores_fill = false;     ///< see Array::store_fill
    std::function<void(const Region&)> watch;  ///< called before a region is read through a handle, unless empty

    [[nodiscard]] std::shared_ptr<const LoadedArray> loaded() const;
    void set_loaded(std::shared_ptr<const LoadedArray> l);
    /// Reads the metadata again if its bytes changed; keeps the present LoadedArray if not.
    std::shared_ptr<const LoadedArray> refresh();
    /// Parses the metadata document that was read and makes it current.
    std::shared_ptr<const LoadedArray> take(Buffer document);
    /// Writes metadata and makes it current.
    void save(std::shared_ptr<const LoadedArray> l);
    /// For an unpublished array: holds the documents that save() would write. Returns their keys, the metadata last.
    [[nodiscard]] std::vector<std::string> hold_documents(HeldValues& held);
    /// Puts these in place in that order, which publishes the array.
    void place_documents(HeldValues& held, const std::vector<std::string>& keys);

    [[nodiscard]] std::string chunk_key(const LoadedArray& l, const Index& chunk) const;
    /// For a chunk of `l` that is absent. Removing and shrinking change the metadata first: throws not_found if they
    /// are gone, and out_of_bounds if the chunk lies beyond the shape that they give now.
    void require_chunk(const LoadedArray& l, const Index& chunk) const;

private:
    mutable std::mutex mutex_;
    std::shared_ptr<const LoadedArray> loaded_;
    Buffer document_;  ///< the metadata as last read, to detect changes
    /// What require_chunk() last read: the stamp of the metadata, and their shape.
    mutable std::optional<std::pair<ValueStamp, Shape>> seen_;
};

/// The shape of a unit, which is decoded and encoded as a whole: a chunk, or with shards an inner chunk.
[[nodiscard]] const Shape& unit_shape(const LoadedArray& loaded);
/// The grid of the units. Inner chunks have one shape, also in shards that differ in length.
[[nodiscard]] ChunkGrid unit_grid(const LoadedArray& loaded);
/// The first unit of a chunk or shard, in unit_grid().
[[nodiscard]] Index first_unit(const LoadedArray& loaded, const Index& chunk);

/// Calls change(begun) with what begin() returned, which holds the locks; both again, after a wait, as long as the
/// error is that another writer was faster: begun.conflicted().
template <class Begin, class Change>
auto retry_when_overtaken(const Begin& begin, const Change& change) {
    return retry(
        begin, change, [](const auto& begun, const Error&) { return begun.conflicted(); },
        std::numeric_limits<int>::max(), [](int tries) { wait_before_retry(tries, std::chrono::milliseconds(500)); });
}

/// Throws unsupported for an array that its dialect can describe and not write: v1 has no key for the chunk of a 0-d
/// array, and no program reads back what v2 writes as JSON in order F.
void require_writable(const ArrayState& state, const LoadedArray& l);

}  // namespace tessera
