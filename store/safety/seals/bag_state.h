// The files of a BagIt bag (RFC 8493), held against its manifests. Private to the store module.
#pragma once

#include <string_view>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>
#include <tessera/seal.h>

namespace tessera {

inline constexpr std::string_view bag_manifest = "manifest-sha256.txt";
inline constexpr std::string_view bag_tag_manifest = "tagmanifest-sha256.txt";

/// Whether a folder with these entries is a bag, even if some of what makes it one is lost.
[[nodiscard]] bool is_bag(const Listing& folder);

/// Compares a bag with its manifest, and with the manifest of its tag files if there is one. Tag files that no manifest
/// lists count as added only if there is one, and never those of a seal. Throws corrupt for a manifest that is missing
/// or invalid, and unsupported if there are only those of other sums than SHA-256.
[[nodiscard]] SealState bag_state(const PlaceView& place, const IoOptions& io);

}  // namespace tessera
