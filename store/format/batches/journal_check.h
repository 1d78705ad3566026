// Whether a journal may be applied to the array in which it lies. Private to the store module.
#pragma once

#include <string>
#include <string_view>

#include <tessera/key_value_store.h>

#include "journal.h"

namespace tessera {

/// Throws corrupt, naming the journal `name`, unless every entry concerns a chunk, the metadata or the attributes of
/// the array at `place`, each at most once, and the metadata is not removed.
void require_own_keys(const PlaceView& place, const Journal& journal, std::string_view name);

/// The same, and also requires of each put value that it is staged in `folder` with the recorded size, or already under
/// its key, and that its chunk is in the array's grid after the batch. What fails only in that cannot be finished, but
/// can be given up: that needs the old values only.
void require_applicable(const PlaceView& place, std::string_view folder, const Journal& journal, std::string_view name);

/// The same for the journal of a group at `place`: unless its entries are paths of other nodes below it.
void require_own_arrays(const PlaceView& place, const Journal& journal, std::string_view name);

/// "3 values are written (zarr.json, c/0, c/1) and 1 removed (c/2)".
/// Of a group's: "3 arrays change (a, b, c)".
[[nodiscard]] std::string changes_text(const Journal& journal);

}  // namespace tessera
