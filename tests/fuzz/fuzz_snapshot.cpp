// The record of a snapshot, `.tessera/snapshot.json`.
#include "fuzz.h"
#include "snapshot_record.h"

using namespace tessera;

void fuzz_one(ByteSpan input) {
    const auto store = memory_store();
    store->put(join_key("s", snapshot_record_key), input);
    (void)load_record(*store, "s");
}
