// Parity of seals: Reed-Solomon parity beside the sums of a seal, from which `repair` computes damaged and missing
// files.
//
// tools/docs/parity.md describes what lies in `.tessera/parity/`, byte by byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/key_value_store.h>
#include <tessera/parallel.h>

namespace tessera {

/// How much may be lost.
struct Redundancy {
    enum class Kind : std::uint32_t {
        share = 1,  ///< of the data
        files = 2,  ///< so many files may vanish
    };
    Kind kind = Kind::share;
    std::uint32_t amount = 0;  ///< millionths, or files

    friend bool operator==(const Redundancy&, const Redundancy&) = default;
};
/// "5%", "0.5%" or "2". Throws invalid_argument, saying what is understood.
[[nodiscard]] Redundancy parse_redundancy(std::string_view text);
/// The reverse: "5%", "2 files".
[[nodiscard]] std::string redundancy_text(const Redundancy& redundancy);

/// What can be lost for certain, computed from the parity that is there and whole.
struct ParityPromise {
    Redundancy asked;
    std::uint64_t parity_bytes = 0;  ///< of the parity files
    std::int64_t segments = 0;
    std::int64_t lost_segments = 0;  ///< of which no index can be read: their files are not covered
    std::uint32_t block_size = 0;
    std::uint32_t blocks = 0;  ///< of one group; the least of all groups
    std::uint64_t run = 0;     ///< bytes of the archive in a row, its files in the order of their paths
    std::uint32_t files = 0;   ///< any so many
};
/// Of the seal at `prefix`; nothing where it has no parity. Reads the parity files, not the data. Throws corrupt where
/// nothing of the parity can be read.
[[nodiscard]] std::optional<ParityPromise> parity_promise(const KeyValueStore& store, std::string_view prefix,
                                                          const IoOptions& io = {});

}  // namespace tessera
