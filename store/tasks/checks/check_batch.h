// Whether what a pending batch puts in place can be decoded. Private to the store module.
#pragma once

#include <tessera/array_io.h>
#include <tessera/key_value_store.h>

namespace tessera {

/// Throws corrupt, naming the chunk, if a value that a pending batch of the array or group has yet to put in place does
/// not decode, so that finishing the batch would replace a whole chunk by a damaged one. Values that cannot be looked
/// at now (memory, permissions) are not damaged.
void require_staged_whole(const Place& place, const IoOptions& io);

}  // namespace tessera
