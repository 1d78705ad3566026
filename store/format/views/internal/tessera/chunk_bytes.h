// ChunkBytes: the stored chunks of an array, for programs that decode them themselves, and a state that shows whether
// an array has changed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <tessera/array.h>
#include <tessera/buffer.h>
#include <tessera/value.h>

namespace tessera {

/// The stored chunks of an array as it was at construction. With shards, a chunk here is an inner chunk. Thread rule:
/// const members may be called from several threads at once.
class ChunkBytes {
public:
    explicit ChunkBytes(const Array& array);
    ChunkBytes(ChunkBytes&&) noexcept;
    ChunkBytes& operator=(ChunkBytes&&) noexcept;
    ~ChunkBytes();

    /// The `.zarray` of a Zarr v2 array whose chunks are, byte for byte, the results of read(). A transpose that
    /// reverses all dimensions becomes order F; a crc32c at the end is dropped. nullopt if v2 cannot express the array:
    /// other codecs, nested shards, its dtype or fill.
    [[nodiscard]] const std::optional<Value>& zarray() const;

    /// Reads the bytes of a chunk; false if it is absent. A crc32c at the end is checked and removed. Nothing is
    /// decoded: only fields that a decoder would trust blindly are checked. Throws corrupt; unsupported without
    /// zarray().
    [[nodiscard]] bool read(const Index& chunk, Buffer& out) const;
    /// Whether other readers read an absent chunk as the fill. If not, give them absent() instead.
    [[nodiscard]] bool may_be_absent() const;
    /// An encoded chunk full of the fill, or of zeros if the fill is undefined. Throws unsupported without zarray().
    [[nodiscard]] Buffer absent() const;

    /// The place of a chunk: read() returns these bytes of the value of `key`.
    struct Place {
        std::string key;
        std::uint64_t offset = 0;
        std::uint64_t size = 0;
        bool whole = false;  ///< whether they are the whole value
    };
    /// Calls each(chunk, place) for every chunk that is stored, in no order. Throws unsupported without zarray().
    void for_each(const std::function<void(const Index& chunk, const Place& place)>& each) const;

    /// Detects changes. `sum` is the SHA-256 of the metadata and of the stamps of all stored values. `newest` is the
    /// time of the last write, in nanoseconds since 1970 (0 in a store without times).
    struct State {
        std::string sum;
        std::int64_t newest = 0;
    };
    /// The present state, even if the metadata changed since construction. Takes as long as listing the chunks and
    /// querying the stamp of each.
    [[nodiscard]] State state() const;

private:
    struct Plan;
    std::unique_ptr<const Plan> plan_;
};

}  // namespace tessera
