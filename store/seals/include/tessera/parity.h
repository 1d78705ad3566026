// Parity of seals: Reed-Solomon parity beside the sums of a seal, from which `repair` recomputes damaged and missing
// files.
//
// tools/docs/parity.md describes the files in `.tessera/parity/`, byte by byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>

namespace tessera {

/// The loss that parity can restore.
struct Redundancy {
    enum class Kind : std::uint32_t {
        share = 1,  ///< a share of the data
        files = 2,  ///< a number of files
    };
    Kind kind = Kind::share;
    std::uint32_t amount = 0;  ///< millionths, or files

    friend bool operator==(const Redundancy&, const Redundancy&) = default;
};
/// "5%", "0.5%" or "2". Throws invalid_argument, listing the accepted forms.
[[nodiscard]] Redundancy parse_redundancy(std::string_view text);
/// The reverse: "5%", "2 files".
[[nodiscard]] std::string redundancy_text(const Redundancy& redundancy);

/// The loss that can certainly be restored, computed from the intact parity.
struct ParityPromise {
    Redundancy asked;
    std::uint64_t parity_bytes = 0;  ///< of the parity files
    std::int64_t segments = 0;
    std::int64_t lost_segments = 0;  ///< segments without a readable index: their files are not covered
    std::uint32_t block_size = 0;
    std::uint32_t blocks = 0;  ///< blocks of one group that may be lost; the least of all groups
    std::uint64_t run = 0;     ///< consecutive bytes of the archive, with its files in the order of their paths
    std::uint32_t files = 0;   ///< number of files, whichever they are
};
/// For the seal at `prefix`; nullopt if it has no parity. Reads the parity files, not the data. Throws corrupt if none
/// of the parity can be read.
[[nodiscard]] std::optional<ParityPromise> parity_promise(const KeyValueStore& store, std::string_view prefix,
                                                          const IoOptions& io = {});

}  // namespace tessera
