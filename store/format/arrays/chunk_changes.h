// Replaces many chunks in one operation, with a few waits for the disk instead of one for each chunk. Private to the
// store module.
//
// A few chunks are changed one by one: lock, read if a part is kept, write, sync, put in place, unlock. For many
// chunks, all new values are first written without locks. Then one wait puts all of them on the disk. Then each chunk
// is locked just to put its value in place. If a part of the old value is kept and somebody replaced that meanwhile
// (ValueStamp), the chunk is changed again, individually. Either way, no write of another thread or process is lost, a
// chunk has its old or its new value, and a new value is on the disk before it is visible. A failure before the wait
// leaves all of these chunks unchanged.
//
// Where the store's locks do not keep others away (KeyValueStore::begin_change), a chunk is changed again whenever
// another writer was faster.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <tessera/shard.h>
#include "array_state.h"
#include "stored_record.h"

namespace tessera {

/// The lock of a chunk or shard. The caller holds the shape lock.
[[nodiscard]] StoreLock lock_chunk(const ArrayState& array, const LoadedArray& loaded, const Index& chunk);

/// Receives the new value of one chunk or shard. Thread rule: one thread.
class ChunkOutput {
public:
    ChunkOutput(const ArrayState& array, const LoadedArray& loaded, ErasedNotes& notes, HeldValues* held)
        : array_(array), loaded_(loaded), notes_(notes), held_(held) {}

    /// Call before the old value is read. `keeps`: whether a part of it may be kept. Further calls do nothing.
    void begin(const Index& chunk, const std::string& key, bool keeps);
    /// Sets the new value, by one of these three.
    void put(ByteSpan value);
    [[nodiscard]] std::unique_ptr<ByteSink> create();
    /// For a value that equals the fill: removes it, or leaves it absent. False if it has to be put nevertheless: where
    /// others' writes are told by versions, only an array that shrinks removes values.
    [[nodiscard]] bool erase();
    /// Before a new shard is finished: notes which inner chunks it leaves out.
    void leave_out(const ShardWriter& writer);

    // For change_chunks, once the value is held: puts it in place, or removes the old one, and then calls placed()
    // under the chunk's lock. False if the chunk must be changed again.
    [[nodiscard]] bool place(const std::function<void()>& placed);
    [[nodiscard]] bool has_begun() const { return !key_.empty(); }
    [[nodiscard]] bool erases() const { return erases_; }
    [[nodiscard]] const std::string& key() const { return key_; }
    /// After an error: whether the reason is another writer, so that the chunk must be changed again.
    [[nodiscard]] bool conflicted() const { return change_ != nullptr && change_->conflicted(); }

private:
    const ArrayState& array_;
    const LoadedArray& loaded_;
    ErasedNotes& notes_;
    HeldValues* held_;
    StoreLock lock_;
    std::unique_ptr<ValueChange> change_;
    Index chunk_;
    std::string key_;
    bool keeps_ = false;
    bool erases_ = false;
    std::optional<ValueStamp> before_;
};

/// Whether a chunk that is cut by the array's edge keeps what lies beyond it, even if all inside is replaced: others
/// may have grown the array meanwhile.
[[nodiscard]] inline bool keeps_beyond_edge(const ArrayState& array, const LoadedArray& loaded, const Index& chunk) {
    return array.published && array.store->has_versions() &&
           !(loaded.grid.chunk_region(chunk).extent == loaded.grid.chunks());
}

/// Calls change(output), which changes at most one chunk, and again whenever another writer was faster. The caller
/// holds the shape lock. A template, since each chunk passes through it.
template <class Change>
void change_chunk(const ArrayState& array, const LoadedArray& loaded, ErasedNotes& notes, const Change& change) {
    retry_when_overtaken([&] { return ChunkOutput(array, loaded, notes, nullptr); }, change);
}

/// Calls change(i, output) in parallel for each i in [0, count), and again if others changed its chunk meanwhile. Each
/// call changes at most one chunk. Then calls placed(i), if given, once the value is in place and before others can
/// change it. The caller holds the shape lock.
void change_chunks(const ArrayState& array, const LoadedArray& loaded, std::int64_t count, const IoOptions& io,
                   const std::function<void(std::int64_t i, ChunkOutput& output)>& change,
                   const std::function<void(std::int64_t i)>& placed = {});

/// Removes values, whoever wrote them. The caller has noted which.
void erase_values(KeyValueStore& store, std::span<const std::string> keys, const IoOptions& io);

}  // namespace tessera
