#include "check_batch.h"

#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/dialect.h>
#include <tessera/error_text.h>

#include <string>
#include <vector>

#include "array_state.h"
#include "batch.h"
#include "check_chunk.h"
#include "dialects.h"

namespace tessera {

namespace {

/// `after` is the array as it will be.
void require_whole_chunks(const Place& place, const Place& after, const Dialect& dialect,
                          const std::vector<std::string>& keys, const IoOptions& io) {
    const ArrayState array(after.store, after.prefix, dialect);
    const LoadedArray loaded(load_metadata(dialect, after));
    for (const std::string& key : keys) {
        const auto chunk = loaded.metadata.keys.parse(key, loaded.grid.shape().rank());
        if (!chunk || !in_grid(loaded.grid, *chunk)) continue;
        const auto value = after.store->stamp(after.key(key));
        if (!value || check_memory(loaded, value->size) > memory_for_checks(io)) continue;
        IoOptions one = io;
        one.threads = 1;
        for (const CheckedChunk::Bad& bad : check_chunk(array, loaded, *chunk, one).bad) {
            if (bad.fault.kind != FindingKind::damage || bad.trailing > 0) continue;
            throw corrupt(
                "{}: a batch of edits that is committed but not yet in place gives {} a value that is damaged, {}: it "
                "is not finished, and what is in place stays as it is",
                place.name(), key, bad.fault.text)
                .advising(Action::give_up_batches, "takes it back", place.name());
        }
    }
}

}  // namespace

void require_staged_whole(const Place& place, const IoOptions& io) {
    const std::vector<std::string> keys = keys_to_come(place);
    if (keys.empty()) return;
    if (const Dialect* dialect = probe_dialect(place)) {
        return require_whole_chunks(place, as_finished(place), *dialect, keys, io);
    }
    for (const std::string& array : keys) require_staged_whole({place.store, place.key(array)}, io);
}

}  // namespace tessera
