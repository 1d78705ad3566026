// The files of a BagIt bag (RFC 8493), held against its manifests. Private to the store module.
#pragma once

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>
#include <tessera/place.h>

#include "bag_names.h"
#include "package_state.h"

namespace tessera {

/// Whether a folder with these entries is a bag, even if some of what makes it one is lost.
[[nodiscard]] bool is_bag(const Listing& folder);

/// Compares a bag of version 0.93 to 1.0 with all its manifests and with fetch.txt, from which nothing is fetched. A
/// name in a list that leads out of the bag, or out of its payload, is never looked at. Throws corrupt if there is no
/// manifest of the payload, and unsupported if there are only those of sums that Tessera does not compute.
[[nodiscard]] PackageState bag_state(const PlaceView& place, const IoOptions& io);

}  // namespace tessera
