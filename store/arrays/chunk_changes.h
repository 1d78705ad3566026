// How one operation gives many chunks their new values, so that it waits for the disk a few times and not once for each
// chunk. Private to the store module.
//
// Few chunks are changed one by one: locked, read where a part of them stays, written, on the disk, put in place,
// unlocked. Of many the new values are written first, without locks; then one wait puts all of them on the disk; then
// each chunk is locked for as long as it takes to put its value in place. Where a part of the old value stays, and
// somebody else has replaced that meanwhile (ValueStamp), the chunk is changed anew, one by one. No write of another
// thread or process is lost either way, a chunk has its old value or its new one, and a new one is on the disk before
// it is seen. What fails before the wait leaves all of these chunks as they were.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "array_state.h"

namespace tessera {

/// Where the new value of one chunk or shard goes. One thread.
class ChunkOutput {
public:
    ChunkOutput(const ArrayState& array, const LoadedArray& loaded, HeldValues* held)
        : array_(array), loaded_(loaded), held_(held) {}

    /// Called before the old value is read. `keeps` says whether a part of it may stay. Does nothing once it has begun.
    void begin(const Index& chunk, const std::string& key, bool keeps);
    /// The new value: one of these three.
    void put(ByteSpan value);
    [[nodiscard]] std::unique_ptr<ByteSink> create();
    void erase();

    // For change_chunks, once the value is held: puts it in place, or removes the old one, and then calls placed()
    // under the chunk's lock. False where the chunk has to be changed anew.
    [[nodiscard]] bool place(const std::function<void()>& placed);
    [[nodiscard]] bool has_begun() const { return !key_.empty(); }

private:
    const ArrayState& array_;
    const LoadedArray& loaded_;
    HeldValues* held_;
    StoreLock lock_;
    Index chunk_;
    std::string key_;
    bool keeps_ = false;
    bool erases_ = false;
    std::optional<ValueStamp> before_;
};

/// Calls change(i, output) once for each i in [0, count), each of which changes at most one chunk, in parallel; of a
/// chunk that was changed meanwhile once more. Calls placed(i), if there is one, after the value of a chunk is in its
/// place and before others can change that. The caller holds the shape lock.
void change_chunks(const ArrayState& array, const LoadedArray& loaded, std::int64_t count, const IoOptions& io,
                   const std::function<void(std::int64_t i, ChunkOutput& output)>& change,
                   const std::function<void(std::int64_t i)>& placed = {});

}  // namespace tessera
