// A seal, `.tessera/sha256sums.txt`. What names a file that is not there is missing; nothing outside is looked at.
#include <tessera/seal.h>

#include <string_view>

#include "fuzz.h"

using namespace tessera;

void fuzz_one(ByteSpan input) {
    const auto store = memory_store();
    const std::string_view value = "value";
    for (const std::string_view key : {"0.0", ".zarray", "c/0"}) store->put(key, std::as_bytes(std::span(value)));
    store->put(seal_key, input);
    const SealState state = seal_state(*store, {.threads = 1});
    if (!state.present) __builtin_trap();
    if (state.unchanged + std::ssize(state.changed) + std::ssize(state.added) != 3) __builtin_trap();
}
