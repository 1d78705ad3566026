// Whether a stored chunk can be decoded. Private to the store module.
#pragma once

#include <tessera/verify.h>

#include <optional>
#include <string>
#include <vector>

#include "array_state.h"

namespace tessera {

/// A fault, with its kind of finding.
struct Fault {
    FindingKind kind = FindingKind::damage;
    std::string text;
    bool over_budget = false;  ///< it took too much memory, beside others or alone
    std::vector<Advice> advice = {};
};

/// The fault for the current exception. Rethrows a cancellation, which is not a fault of the data.
[[nodiscard]] Fault current_fault();

struct CheckedChunk {
    std::uint64_t bytes = 0;  ///< as stored
    bool decoded = false;     ///< all of it, or one chunk of the shard
    struct Bad {
        std::optional<Index> inner;  ///< the chunk within the shard; nullopt: the whole value
        Fault fault;
        std::uint64_t trailing = 0;  ///< if not 0, the only fault: extra bytes at the end, which readers ignore
    };
    std::vector<Bad> bad;  ///< in order
};

/// Decodes a chunk, or all chunks of a shard in parallel. An absent chunk is not bad.
[[nodiscard]] CheckedChunk check_chunk(const ArrayState& array, const LoadedArray& loaded, const Index& index,
                                       const IoOptions& io);

/// The maximum memory that a thread takes for that, if stored chunks have at most `largest` bytes.
[[nodiscard]] std::uint64_t check_memory(const LoadedArray& loaded, std::uint64_t largest);
/// The memory for that in all threads: what `io` says, or 256 MiB.
[[nodiscard]] std::uint64_t memory_for_checks(const IoOptions& io);

}  // namespace tessera
