#include "chunk_changes.h"

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <tessera/parallel.h>

namespace tessera {

StoreLock lock_chunk(const ArrayState& array, const LoadedArray& loaded, const Index& chunk) {
    return array.store->lock(array.prefix, static_cast<std::uint64_t>(loaded.grid.linear(chunk)) + 1,
                             LockMode::exclusive);
}

void ChunkOutput::begin(const Index& chunk, const std::string& key, bool keeps) {
    if (has_begun()) return;
    chunk_ = chunk;
    key_ = key;
    keeps_ = keeps;
    if (held_ == nullptr) {
        lock_ = lock_chunk(array_, loaded_, chunk);
        if (array_.published) change_ = array_.store->begin_change(key, keeps);
    } else if (keeps) {
        before_ = array_.store->stamp(key);
    }
}

void ChunkOutput::put(ByteSpan value) {
    if (held_ == nullptr) {
        array_.store->put(key_, value);
        return;
    }
    const auto sink = held_->create(key_);
    sink->append(value);
    sink->finish();
}

std::unique_ptr<ByteSink> ChunkOutput::create() {
    return held_ == nullptr ? array_.store->create(key_) : held_->create(key_);
}

bool ChunkOutput::erase() {
    if (change_ != nullptr) return loaded_.may_omit() && change_->was_absent();
    if (held_ == nullptr) {
        if (array_.published) notes_.add({&key_, 1});
        array_.store->erase(key_);
    } else {
        erases_ = true;
    }
    return true;
}

void ChunkOutput::leave_out(const ShardWriter& writer) {
    if (array_.published && !array_.store->has_versions()) notes_.add_inner(key_, writer.dropped());
}

bool ChunkOutput::place(const std::function<void()>& placed) {
    const StoreLock lock = lock_chunk(array_, loaded_, chunk_);
    if (keeps_ && array_.store->stamp(key_) != before_) return false;
    if (erases_) {
        array_.store->erase(key_);
    } else {
        held_->place(key_);
    }
    placed();
    return true;
}

namespace {

using Change = std::function<void(std::int64_t i, ChunkOutput& output)>;
using Placed = std::function<void(std::int64_t i)>;

/// Chunk i alone.
void change_now(const ArrayState& array, const LoadedArray& loaded, std::int64_t i, const Change& change,
                ErasedNotes& notes, const Placed& placed) {
    change_chunk(array, loaded, notes, [&](ChunkOutput& output) {
        change(i, output);
        if (placed && output.has_begun()) placed(i);
    });
}

/// Chunks `first` to `end` - 1, held until all are on the disk.
void change_together(const ArrayState& array, const LoadedArray& loaded, std::int64_t first, std::int64_t end,
                     const IoOptions& io, HeldValues& held, const Change& change, ErasedNotes& notes,
                     const Placed& placed) {
    std::mutex mutex;
    std::vector<std::pair<std::int64_t, ChunkOutput>> changed;
    parallel_in_memory(end - first, io, [&](std::int64_t n) {
        ChunkOutput output(array, loaded, notes, &held);
        change(first + n, output);
        if (!output.has_begun()) return;
        const std::lock_guard guard(mutex);
        changed.emplace_back(first + n, std::move(output));
    });
    held.sync();
    std::vector<std::string> erased;
    for (const auto& entry : changed) {
        if (entry.second.erases()) erased.push_back(entry.second.key());
    }
    notes.add(erased);
    std::vector<std::int64_t> anew;
    parallel_for(std::ssize(changed), {.threads = io.threads}, [&](std::int64_t n) {
        auto& entry = changed[static_cast<std::size_t>(n)];
        const std::int64_t i = entry.first;
        const auto in_place = [&] {
            if (placed) placed(i);
        };
        if (entry.second.place(in_place)) return;
        const std::lock_guard guard(mutex);
        anew.push_back(i);
    });
    parallel_in_memory(std::ssize(anew), io, [&](std::int64_t n) {
        change_now(array, loaded, anew[static_cast<std::size_t>(n)], change, notes, placed);
    });
}

/// How many chunks of so many bytes are changed at once in a store far away, where each waits for answers.
int writers_at_once(std::int64_t bytes) {
    constexpr std::int64_t most = 64;
    constexpr std::int64_t most_bytes = std::int64_t{128} << 20;
    return static_cast<int>(std::clamp<std::int64_t>(most_bytes / std::max<std::int64_t>(bytes, 1), 1, most));
}

}  // namespace

void change_chunks(const ArrayState& array, const LoadedArray& loaded, std::int64_t count, const IoOptions& io,
                   const Change& change, const Placed& placed) {
    constexpr std::int64_t few = 3;
    // Held values take disk space beside the old ones, and a record in memory.
    constexpr std::int64_t most = 16'384;
    constexpr std::int64_t most_bytes = std::int64_t{4} << 30;
    const std::int64_t bytes = byte_count(loaded.grid.chunks(), loaded.metadata.dtype.size());
    const std::int64_t at_once =
        std::clamp(most_bytes / std::max<std::int64_t>(bytes, 1), std::max<std::int64_t>(few, thread_count(io)), most);
    ErasedNotes notes(array);
    std::int64_t done = 0;
    while (count - done > few) {
        const auto held = array.published ? array.store->hold() : nullptr;
        if (held == nullptr) break;
        const std::int64_t end = done + std::min(at_once, count - done);
        change_together(array, loaded, done, end, io, *held, change, notes, placed);
        done = end;
    }
    parallel_waiting(count - done, io, array.store->is_far() ? writers_at_once(bytes) : 1,
                     [&](std::int64_t n) { change_now(array, loaded, done + n, change, notes, placed); });
}

void erase_values(KeyValueStore& store, std::span<const std::string> keys, const IoOptions& io) {
    parallel_waiting(std::ssize(keys), io, store.is_far() ? writers_at_once(1) : 1,
                     [&](std::int64_t n) { store.erase(keys[static_cast<std::size_t>(n)]); });
}

}  // namespace tessera
