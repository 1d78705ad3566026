// Batches in stores far away: arrays of a group whose metadata documents change together. Private to the store module.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <tessera/byte_io.h>
#include <tessera/key_value_store.h>

#include "group_batch.h"

namespace tessera {

/// The journal of the group that lies so many folders above; null if there is none. Throws not_found if there is no
/// folder that far above.
[[nodiscard]] std::unique_ptr<ByteSource> open_group_journal(const PlaceView& place, std::uint32_t levels);

/// Finishes the batch over a group of which this journal lies at the array or group, once the lease of the group is
/// free.
void finish_far_batch(const PlaceRef& place, const Journal& journal);
/// The same for who holds the lease of the group at `place`.
void finish_leased_batch(const PlaceRef& place);

/// Records a batch over the group at `place`, whose lease the caller holds, and puts it in place. The parts' documents
/// are staged, and their entries say what each replaces (`old`). `require_current` throws if anything that they depend
/// on was changed meanwhile; it is called at the last moment, and once the batch is recorded, `release` is, to let go
/// of the arrays. Throws recorded as record_batch(); after any other error nothing has changed.
void record_far_batch(const PlaceRef& place, std::vector<BatchPart>& parts,
                      const std::function<void()>& require_current, const std::function<void()>& release);

}  // namespace tessera
