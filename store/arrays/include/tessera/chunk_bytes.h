// ChunkBytes: the chunks of an array as they are stored, for programs that decode them themselves; and whether anything
// of an array has changed.
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

/// Of an array as it was when this was made. With shards a chunk is an inner chunk here.
/// Thread rule: const members may be called from several threads at once.
class ChunkBytes {
public:
    explicit ChunkBytes(const Array& array);
    ChunkBytes(ChunkBytes&&) noexcept;
    ChunkBytes& operator=(ChunkBytes&&) noexcept;
    ~ChunkBytes();

    /// The `.zarray` of an array in Zarr v2 whose chunks are, byte for byte, what read() gives: a transpose that
    /// reverses all dimensions is its order F, and a crc32c at the end is none of its codecs. Nothing where v2 has no
    /// such array: other codecs, nested shards, elements or a fill that it cannot express.
    [[nodiscard]] const std::optional<Value>& zarray() const;

    /// The bytes of a chunk, without a crc32c at the end, which is checked; false where the chunk is absent. They are
    /// not decoded: only what a decoder would trust blindly is looked at. Throws corrupt; unsupported without zarray().
    [[nodiscard]] bool read(const Index& chunk, Buffer& out) const;
    /// Whether another reader takes an absent chunk for the fill. Where not, absent() stands for it.
    [[nodiscard]] bool may_be_absent() const;
    /// A chunk full of the fill (of zeros, where that is undefined), encoded. Throws unsupported without zarray().
    [[nodiscard]] Buffer absent() const;

    /// Where a chunk lies: what read() gives are these bytes of the value of a key of the store.
    struct Place {
        std::string key;
        std::uint64_t offset = 0;
        std::uint64_t size = 0;
        bool whole = false;  ///< all of the value
    };
    /// Calls each(chunk, place) for every chunk that is stored, in no order. Throws unsupported without zarray().
    void for_each(const std::function<void(const Index& chunk, const Place& place)>& each) const;

    /// Tells whether anything was changed: the SHA-256 of the metadata and of the stamps of all that is stored, and
    /// when the youngest of these was written, in nanoseconds since 1970 (0 in a store without times).
    struct State {
        std::string sum;
        std::int64_t newest = 0;
    };
    /// What is stored now, whatever the metadata were when this was made. Takes as long as listing the chunks and
    /// asking for the stamp of each.
    [[nodiscard]] State state() const;

private:
    struct Plan;
    std::unique_ptr<const Plan> plan_;
};

}  // namespace tessera
