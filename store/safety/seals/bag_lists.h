// What the lists of a BagIt bag say: its manifests and fetch.txt. Private to the store module.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <openssl/evp.h>
#include <tessera/key_value_store.h>
#include <tessera/place.h>

#include "bag_names.h"
#include "file_list.h"
#include "package_state.h"
#include "sha256.h"

namespace tessera {

struct BagAlgorithm {
    std::string_view name;
    const EVP_MD* (*type)();
    std::size_t bytes;
};
/// Those of which there may be manifests.
inline constexpr std::array<BagAlgorithm, 6> bag_algorithms{{{"md5", EVP_md5, 16},
                                                             {"sha1", EVP_sha1, 20},
                                                             {"sha224", EVP_sha224, 28},
                                                             {"sha256", EVP_sha256, 32},
                                                             {"sha384", EVP_sha384, 48},
                                                             {"sha512", EVP_sha512, 64}}};
/// The `segment` of a line of fetch.txt, after the numbers of the algorithms.
inline constexpr std::uint32_t fetch_line = bag_algorithms.size();

/// A sum of any algorithm, as one of the size that lists hold: the SHA-256 of its bytes.
[[nodiscard]] Sha256 folded_sum(std::span<const unsigned char> sum);

struct BagLists {
    bool strict = true;     ///< version 1.0 or later
    bool readable = true;   ///< false: a list is not one, and nothing can be compared
    bool has_tags = false;  ///< there is a manifest of tag files
    /// The bytes and the files of the payload, as bag-info.txt says.
    std::optional<std::pair<std::uint64_t, std::uint64_t>> oxum = std::nullopt;
    std::uint32_t payload = 0;  ///< bits of the algorithms with a manifest of the payload
    /// All lines, sorted by path: `segment` is the number of the algorithm, `sum` the folded one.
    FileList lines;
};
/// Reads them. Adds what is wrong, and the rest to be noted, to `state`. Throws corrupt if there is no manifest of the
/// payload, and unsupported if there are only those of sums that Tessera does not compute.
[[nodiscard]] BagLists read_bag_lists(const PlaceView& place, PackageState& state);

/// A path as manifests spell it: RFC 8493 escapes line ends and '%' as in URLs.
[[nodiscard]] std::string bag_path(std::string_view path);

}  // namespace tessera
