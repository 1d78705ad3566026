// The page of plain text that says how to read a sealed array or group without Tessera. Private to the store module.
#pragma once

#include <optional>
#include <string>

#include <tessera/place.h>

namespace tessera {

/// The page of the array or group at `place` and all arrays below: layouts, codecs with the names of their
/// specifications, and for each layout a program of Python that reads an element, and compares the first and the last
/// of each array. It depends on nothing but what is stored. Reads two chunks of each array. An array that cannot be
/// read is listed with the reason. Throws cancelled.
[[nodiscard]] std::string readme_page(const PlaceRef& place);

/// The page as it has to be, if it is `asked` for or is there under its name (readme_name); else nullopt. Throws
/// unsupported if asked for beside a single file or a bag, which have no folder of their own to write into.
[[nodiscard]] std::optional<std::string> wanted_readme(const PlaceRef& place, bool asked);

}  // namespace tessera
