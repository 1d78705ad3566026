// Checks the memory for changing a chunk before any of it is allocated. Private to the store module.
#pragma once

#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/memory_account.h>

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

}  // namespace tessera
