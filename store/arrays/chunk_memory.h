// What it takes to change a chunk, asked for before a part of it is taken. Private to the store module.
#pragma once

#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/memory_account.h>

#include <cstdint>
#include <optional>

#include "array_state.h"

namespace tessera {

/// Throws budget where a chunk of fixed size cannot be put together and encoded, naming all that this takes, before a
/// part of it is taken.
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
