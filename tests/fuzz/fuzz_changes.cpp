// The record of a command's changes, in an array that has it: what can be taken back of it changes the array's own
// parts and nothing else.
#include <tessera/edit.h>
#include <tessera/error.h>

#include <cstring>

#include "fuzz.h"

using namespace tessera;

namespace {

constexpr const char* metadata = R"({"zarr_format": 2, "shape": [6, 4], "chunks": [2, 2], "dtype": "<i4",
    "compressor": null, "fill_value": 0, "filters": null, "order": "C"})";

ByteSpan bytes_of(const char* text) {
    return std::as_bytes(std::span(text, std::strlen(text)));
}

}  // namespace

void fuzz_one(ByteSpan input) {
    const auto store = memory_store();
    store->put("a/.zarray", bytes_of(metadata));
    store->put("a/0.1", bytes_of("0123456789abcdef"));
    store->put("a/.tessera/undo/0000000000000001.0", bytes_of("fedcba9876543210"));
    store->put("a/.tessera/undo/changes", input);
    store->put("victim", bytes_of("mine"));
    store->put("a/notes", bytes_of("mine"));
    try {
        (void)undo(Array::open({store, "a"}));
    } catch (const Error&) {
        // What bad input should give.
    }
    for (const char* other : {"victim", "a/notes"}) {
        Buffer found;
        if (!store->get(other, found) || std::memcmp(found.data(), "mine", 4) != 0) __builtin_trap();
    }
    if (!store->contains("a/.zarray") || store->list("").prefixes.size() != 1) __builtin_trap();
}
