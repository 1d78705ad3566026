// Checks the memory for changing a chunk before any of it is allocated. Private to the store module.
#pragma once

#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/memory_account.h>
#include <tessera/shard.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "array_state.h"

namespace tessera {

/// Throws budget, naming the total, if memory does not suffice to assemble and encode a chunk of fixed size. Call
/// before allocating any of it.
inline void require_chunk_memory(const LoadedArray& loaded, const WorkerScratch& scratch) {
    const std::optional<std::uint64_t> encoded = loaded.pipeline.encoded_bound();
    const auto decoded = static_cast<std::uint64_t>(loaded.chunk_bytes());
    if (!encoded) return;
    const std::uint64_t needed = (scratch.chunk.bytes().size() >= decoded ? 0 : decoded) +
                                 (scratch.codec.encoded.capacity() >= *encoded ? 0 : *encoded);
    if (needed <= memory_left()) return;
    in_context([&] { return fmt::format("it decodes to {}", memory_text(decoded)); }, [&] { require_memory(needed); });
}

/// The most bytes that reading, changing and writing one chunk (with shards: an inner chunk) of fixed size take at
/// once: it as stored, decoded, after each codec, encoded anew, and the elements read or written.
[[nodiscard]] inline std::uint64_t changing_memory(const LoadedArray& loaded) {
    const ShardCodec* shard = loaded.pipeline.shard();
    const auto decoded = static_cast<std::uint64_t>(
        shard == nullptr ? loaded.chunk_bytes() : byte_count(shard->grid().chunks(), loaded.metadata.dtype.size()));
    const std::uint64_t stored =
        shard == nullptr ? std::max(decoded, loaded.pipeline.encoded_bound().value_or(decoded)) : decoded;
    constexpr std::uint64_t contexts = std::uint64_t{1} << 20;
    const std::uint64_t index = shard == nullptr ? 0 : 64 * static_cast<std::uint64_t>(shard->grid().chunk_count());
    return 2 * stored + (2 + loaded.metadata.codecs.size()) * decoded + index + contexts;
}

/// Runs `body`, which reads or changes one chunk. If memory does not suffice for one of its steps, the error names what
/// all of them take, so that the next attempt succeeds.
template <class Body>
void in_chunk_memory(const LoadedArray& loaded, const Body& body) {
    try {
        body();
    } catch (const Error& e) {
        const MemoryAccount* account = MemoryAccount::current().get();
        if (e.code() != ErrorCode::budget || account == nullptr || loaded.metadata.dtype.is_variable()) throw;
        const std::uint64_t needed = changing_memory(loaded);
        if (account->used() + needed <= account->limit()) throw;  // something larger than it should be
        throw account->shortage(needed);
    }
}

}  // namespace tessera
