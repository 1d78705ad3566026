// OCFL objects in their storage roots: found, read, held against their inventories. Private to the store module.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>
#include <tessera/place.h>

#include "ocfl_inventory.h"
#include "package_state.h"

namespace tessera {

/// The folder in which an object of this identifier is to be made, below its storage root. Throws unsupported if the
/// root names another layout than those of extensions 0003 and 0004.
[[nodiscard]] std::filesystem::path ocfl_folder(const std::filesystem::path& root, std::string_view id);
/// The folder of an object, below its storage root, whatever the layout; nullopt if there is none. Throws not_found if
/// `root` is no storage root, and io.
[[nodiscard]] std::optional<std::filesystem::path> find_ocfl_object(const std::filesystem::path& root,
                                                                    std::string_view id);
/// The version of OCFL that a storage root declares, "1.0" or "1.1".
[[nodiscard]] std::string ocfl_root_spec(const std::filesystem::path& root);
/// The inventory at the root of an object. Throws corrupt if it is none, or not as its sidecar says.
[[nodiscard]] OcflInventory read_ocfl_inventory(const PlaceView& object);

/// Holds the object at `place` against the OCFL specification 1.1, and each of its content files against all digests
/// that its inventories have.
[[nodiscard]] PackageState ocfl_state(const PlaceView& place, const IoOptions& io);

}  // namespace tessera
