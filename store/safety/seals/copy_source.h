// What bags, OCFL objects and packages are copied from. Private to the store module.
#pragma once

#include <filesystem>

#include <tessera/place.h>

#include "replace_directory.h"

namespace tessera {

/// An absolute path without a '/' at its end. Throws invalid_argument if it leads into what lies at `from`: each copy
/// would hold the one before, and locks would be taken in it.
[[nodiscard]] std::filesystem::path place_for_copy(const std::filesystem::path& path, const PlaceView& from);

/// As lock_settled_nodes. Takes no locks in a store that is opened read-only, and throws invalid_argument if a batch of
/// edits is pending there: a copy would lack them.
[[nodiscard]] LockedNodes lock_to_copy(const PlaceRef& place);

}  // namespace tessera
