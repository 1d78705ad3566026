// The list of a snapshot's files, `.tessera/snapshot-files.txt`.
#include <string_view>

#include "fuzz.h"
#include "snapshot_record.h"

using namespace tessera;

void fuzz_one(ByteSpan input) {
    const auto store = memory_store();
    const std::string_view value = "value";
    for (const std::string_view key : {"0.0", "c/0"}) store->put(key, std::as_bytes(std::span(value)));
    const std::string_view record =
        R"({"version": 1, "node": "", "made": "", "arrays": 1, "files": 2, "bytes": 10, "reflinked": 0, "linked": 0,
            "copied": 2})";
    store->put(snapshot_record_key, std::as_bytes(std::span(record)));
    store->put(snapshot_files_key, input);
    const auto changed = changed_since_snapshot(*store);
    if (!changed) __builtin_trap();
}
