// StoredValues: the values that hold an array's chunks, unchanged, for programs that pass them on.
#pragma once

#include <memory>
#include <optional>

#include <tessera/array.h>
#include <tessera/byte_io.h>
#include <tessera/key_value_store.h>

namespace tessera {

/// Values of an array as it was at construction, with a pending batch of edits laid over. Thread rule: any thread.
class StoredValues {
public:
    explicit StoredValues(const Array& array);

    /// The grid of the units of storage: the metadata's chunks, which with shards are the shards.
    [[nodiscard]] const ChunkGrid& grid() const;
    /// The value that holds a chunk, and its stamp; nullopt if it is not stored. The stamp belongs to these bytes; it
    /// is nullopt if the value was replaced while it was opened. Throws as KeyValueStore::open.
    struct Opened {
        std::shared_ptr<const ByteSource> bytes;
        std::optional<ValueStamp> stamp;
    };
    [[nodiscard]] std::optional<Opened> open(const Index& chunk) const;
    /// The present stamp; nullopt if the chunk is not stored.
    [[nodiscard]] std::optional<ValueStamp> stamp(const Index& chunk) const;
    /// Whether other readers read an absent chunk as the fill (see ChunkBytes::may_be_absent).
    [[nodiscard]] bool may_be_absent() const;
    /// The size of the largest value that is read.
    [[nodiscard]] std::uint64_t encoded_limit() const;

private:
    std::shared_ptr<struct ArrayState> state_;
    std::shared_ptr<const struct LoadedArray> loaded_;
};

}  // namespace tessera
