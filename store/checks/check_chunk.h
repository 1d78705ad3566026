// Whether a stored chunk can be decoded. Private to the store module.
#pragma once

#include <tessera/verify.h>

#include <optional>
#include <string>
#include <vector>

#include "array_state.h"

namespace tessera {

/// What is wrong, in the kind of a finding.
struct Fault {
    FindingKind kind = FindingKind::damage;
    std::string text;
    bool over_budget = false;  ///< it took too much memory: beside others, or at all
};

/// Of the exception that is being handled; rethrows a cancellation, which is no fault of the data.
[[nodiscard]] Fault current_fault();

struct CheckedChunk {
    std::uint64_t bytes = 0;  ///< as stored
    struct Bad {
        std::optional<Index> inner;  ///< the chunk within the shard; none: the whole value
        Fault fault;
        std::uint64_t trailing = 0;  ///< the only fault are so many bytes at the end, which readers ignore
    };
    std::vector<Bad> bad;  ///< in order
};

/// Decodes a chunk, or each chunk of a shard (in parallel). Nothing is bad about one that is absent.
[[nodiscard]] CheckedChunk check_chunk(const ArrayState& array, const LoadedArray& loaded, const Index& index,
                                       const IoOptions& io);

/// The most memory that one thread takes for that, of chunks that are at most `largest` bytes stored.
[[nodiscard]] std::uint64_t check_memory(const LoadedArray& loaded, std::uint64_t largest);

}  // namespace tessera
