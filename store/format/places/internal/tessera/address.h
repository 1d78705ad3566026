// Addresses as URL pipelines (ZEP 8): "file:///data/a.zip|zip:sub/|zarr3:", as synonyms of Tessera's own paths.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/dialect.h>
#include <tessera/key_value_store.h>

namespace tessera {

/// The path that an address stands for: "/data/a.zip/sub". Its first part may also be a path of this machine. Which
/// format lies there is found, and not taken from the address. Any other text is returned as it is, and so is the name
/// of an existing file. Throws unsupported, naming it, for a scheme that Tessera lacks.
[[nodiscard]] std::string own_path(std::string_view address);

/// The address of the array or group of a format at a path. `folder`: it lies in a folder of this machine. nullopt
/// where other programs have no scheme for the format or the place.
[[nodiscard]] std::optional<std::string> address_of(const std::filesystem::path& path, const Place& place,
                                                    const Dialect& dialect, bool folder);

}  // namespace tessera
