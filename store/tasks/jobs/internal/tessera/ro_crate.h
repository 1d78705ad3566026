// A description of data as an RO-Crate 1.2: ro-crate-metadata.json.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <tessera/parallel.h>
#include <tessera/place.h>

namespace tessera {

inline constexpr std::string_view ro_crate_name = "ro-crate-metadata.json";

struct CrateOptions {
    std::filesystem::path citation = {};  ///< a CITATION.cff; empty: the one at the place, if there is one
    std::string version = {};             ///< of Tessera
    IoOptions io = {};
};

/// The ro-crate-metadata.json for beside the metadata of the array or group at `place`, a folder of this machine. It
/// says what the attributes of CF, ACDD and OME, the citation and the log of commands say: title, licence, authors,
/// extents in space and time, which it computes from coordinates where no attribute has them, and each array with its
/// units. A file of that name that Tessera wrote may be there. Throws invalid_argument if no licence is given, and for
/// a citation that cannot be read; already_exists for a file of somebody else; and as reading coordinates does.
[[nodiscard]] std::string ro_crate_text(const Place& place, const CrateOptions& options);

}  // namespace tessera
