// How much of a chunk that lies far away is fetched if a part of it is wanted: all of it at once, or first some bytes,
// by which the rest is known that is needed. Private to the store module.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <tessera/byte_io.h>

#include "array_state.h"

namespace tessera {

/// Thread rule: immutable.
class FarParts {
public:
    /// Both must outlive this.
    FarParts(const ArrayState& array, const LoadedArray& loaded);

    /// The bytes of a chunk that are fetched first if `part` of it is wanted. nullopt: it is fetched whole, or the
    /// store is near.
    [[nodiscard]] std::optional<ByteSource::Extent> first(const Region& part) const;
    /// The same if of a decoded chunk `pieces` pieces are wanted, the first of which begins at byte `begin`; the last
    /// ends at byte `end`.
    [[nodiscard]] std::optional<ByteSource::Extent> first(std::uint64_t begin, std::uint64_t end,
                                                          std::uint64_t pieces) const;
    /// How many threads it takes to wait for many chunks, of each of which `wanted` bytes are wanted; 1 if waiting is
    /// not what takes the time. `announced`: those that are fetched whole are fetched ahead.
    [[nodiscard]] int waiters(std::uint64_t wanted, bool announced) const;
    [[nodiscard]] bool far() const { return far_; }

    /// Calls decode(source) with the value of a chunk, and again with another if it was replaced meanwhile. Returns
    /// false if the chunk is absent.
    [[nodiscard]] bool read(const std::string& key, const std::optional<ByteSource::Extent>& first,
                            const std::function<void(const ByteSource&)>& decode) const;
    /// The same with all of the chunk by one request.
    [[nodiscard]] bool read_whole(const std::string& key, const std::function<void(const ByteSource&)>& decode) const;

private:
    [[nodiscard]] bool divides(std::uint64_t wanted) const;

    const ArrayState& array_;
    const LoadedArray& loaded_;
    bool far_;
    std::uint64_t usual_;  ///< bytes of a chunk
    std::uint64_t worth_;  ///< see FarStore::worth_a_request()
};

}  // namespace tessera
