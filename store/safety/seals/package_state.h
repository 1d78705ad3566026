// What a check of a package finds: of a BagIt bag or an OCFL object. Private to the store module.
#pragma once

#include <string>
#include <vector>

#include <tessera/seal.h>

namespace tessera {

struct PackageRemark {
    std::string key;  ///< below the package
    std::string text;
};
struct PackageState {
    SealState files;                   ///< by all sums that are known
    std::vector<PackageRemark> wrong;  ///< whatever else makes the package invalid
    std::vector<PackageRemark> notes;
};

}  // namespace tessera
