// The list of a snapshot's files, `.tessera/snapshot-files.txt`.
#include <string_view>

#include "fuzz.h"
#include "snapshot_record.h"

using namespace tessera;

void fuzz_one(ByteSpan input) {
    const auto store = memory_store();
    const std::string_view value = "value";
    for (const std::string_view key : {std::string_view("0.0"), std::string_view("c/0"), snapshot_record_key}) {
        store->put(key, std::as_bytes(std::span(value)));
    }
    store->put(snapshot_files_key, input);
    const auto changed = changed_since_snapshot(*store);
    if (!changed) __builtin_trap();
}
