// A hierarchy in packages: zips of a size, as a tape or a medium takes them.
//
// A folder of packages has `package-0001.zip` and so on, whose members are the files of the hierarchy, stored and never
// cut; beside each `package-0001.sha256sums.txt`, the sums of its members in sha256sum's format; and `index.json`,
// references (kerchunk, version 1) into the zips, in which every reading command opens the whole. All zips unpacked in
// one folder are the hierarchy again. The folder is sealed: its parity restores packages that were lost.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <tessera/parallel.h>
#include <tessera/place.h>
#include <tessera/seal.h>

namespace tessera {

struct PackageOptions {
    std::uint64_t size = 0;  ///< bytes of a zip at most; one with a single larger file is larger
    std::optional<Redundancy> parity = std::nullopt;  ///< of the whole folder
    IoOptions io = {};
    StoreOptions store = {};  ///< for the folder
};
struct Packaged {
    std::int64_t packages = 0;
    std::int64_t files = 0;
    std::uint64_t bytes = 0;  ///< of the files
    std::uint64_t parity_bytes = 0;
};
/// Makes the new directory `folder` of what is at `place`: what a seal covers, without chunks outside their arrays. It
/// is built beside its name and appears when it is complete. Holds the same locks as make_bag(). Throws already_exists
/// if anything is at `folder`, not_found if nothing is at `place`, and unsupported for so many files that their index
/// would not be read. If it is sealed, throws corrupt for a file that is not as it was sealed.
Packaged make_packages(const PlaceRef& place, const std::filesystem::path& folder, const PackageOptions& options);

/// The index of a folder of packages, which opens as the whole; any other path as it is. For what takes the whole as a
/// source: the folder itself is what is verified and repaired.
[[nodiscard]] std::string whole_of_packages(const std::string& path);

}  // namespace tessera
