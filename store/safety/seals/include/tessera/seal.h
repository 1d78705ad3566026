// Seals: a manifest of SHA-256 sums, which shows later whether a file was changed, lost or added.
//
// The manifest is `.tessera/sha256sums.txt` at the root of the sealed node, in sha256sum's own format, so that
// `cd ROOT && sha256sum -c .tessera/sha256sums.txt` checks it without Tessera. It lies in `.tessera/` because
// everything else ignores that folder: Zarr readers, consolidation, copies and the sealing of a group above.
//
// It lists every file below the root, sorted by path, with three exceptions: Tessera's own files (names that begin with
// ".tessera"), empty lock files of other programs, and chunks outside their arrays, which nobody reads and `repair`
// sets aside.
//
// With parity, `.tessera/parity/` has Reed-Solomon parity, from which `repair` recomputes damaged and missing files;
// tools/docs/parity.md describes these files byte by byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/key_value_store.h>
#include <tessera/locate.h>
#include <tessera/parallel.h>
#include <tessera/place.h>

namespace tessera {

/// The key of the manifest, relative to the sealed node.
inline constexpr std::string_view seal_key = ".tessera/sha256sums.txt";

/// How the files have changed since they were sealed. Paths are sorted, and relative to the sealed node.
struct SealState {
    bool present = false;
    std::int64_t unchanged = 0;
    std::vector<std::string> changed;  ///< files with other content, or that cannot be read
    std::vector<std::string> missing;
    std::vector<std::string> added;
    [[nodiscard]] bool intact() const { return present && changed.empty() && missing.empty() && added.empty(); }
};
/// With parity, the manifest that the parity's roots name counts; a different manifest is ignored. Throws corrupt for
/// an invalid manifest.
[[nodiscard]] SealState seal_state(const PlaceView& place, const IoOptions& io = {});

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

struct Sealed {
    std::int64_t files = 0;
    std::uint64_t bytes = 0;
    bool written = false;            ///< false: it was sealed already, and nothing has changed
    std::uint64_t parity_bytes = 0;  ///< bytes of parity that were written
    std::int64_t outside = 0;        ///< chunk files outside their arrays, which are left out
    bool signature_gone = false;     ///< the seal before was signed, and this one is not yet
};
struct SealOptions {
    /// Seal anew despite files that were changed, lost or added since the last seal, but not despite damage, which
    /// parity reveals.
    bool overwrite = false;
    /// Files below the sealed node to seal in their present state, even if damaged or changed.
    std::vector<std::string> accept = {};
    /// Whether everything is read, including all parity, and files with the size and time of the seal.
    bool check = false;
    /// The redundancy, for a directory. nullopt: existing parity is renewed with its own redundancy.
    std::optional<Redundancy> parity = std::nullopt;
    bool drop_parity = false;  ///< delete existing parity
    /// Put the page README.tessera.txt beside the data, which says how to read them without Tessera; it is sealed with
    /// them. Not for files and bags (unsupported). A page that is there is renewed in any case.
    bool readme = false;
    /// Files, by name and text, that are put beside the data and sealed with them. A seal that is refused writes none.
    std::vector<std::pair<std::string, std::string>> beside = {};
    IoOptions io = {};
};
/// Computes the manifest of everything at and below `place` in parallel, and writes it in one step. Finishes recorded
/// batches of edits. Meanwhile holds the shape locks of all arrays and groups, so that it waits for writers and they
/// wait for it. Throws not_found if nothing is there. Unless `overwrite`, throws already_exists, naming some of them,
/// if files have changed since they were sealed, and corrupt for an invalid manifest.
///
/// With parity (tools/docs/parity.md): an unchanged seal with intact parity of the same redundancy is left as
/// it is. If there is parity, files with the size and time of the seal are not read, and a segment's parity stays if
/// all its files are unchanged; so sealing again costs only the changes. Files that were written after the seal was
/// broken (StoreOptions::break_seal) need no permission. A kill at any moment leaves the old seal or the new one. In
/// addition, throws already_exists (or corrupt if it is discovered late) for damaged files that are not in `accept`;
/// invalid_argument for a redundancy that needs more than 255 blocks in a group, for a name in `accept` that is no
/// file, and for a file that a program is writing to; and io if the disk has too little space for the parity.
Sealed seal(const PlaceRef& place, const SealOptions& options = {});

/// Says whether a file, by its path below `place`, has the size and time that the parity there records of it; always
/// false without parity. Any thread may call it. Reads no data. The store must outlive it.
[[nodiscard]] std::function<bool(std::string_view path)> unchanged_since_seal(const PlaceView& place);

/// The place of a seal that lies beside the sealed file, for seal(), seal_state(), parity_promise(), verify() and
/// repair(). The seal of a zip or an array file, even one that is gone, is in `NAME.tessera-seal/`; that of a bag
/// (make_bag()) is in its tag directory `tessera-seal/`. Keys are names beside the file, or below the bag. nullopt if
/// there is no such seal; with `make`, only if in addition `path` is not a file.
[[nodiscard]] std::optional<Place> place_beside(const std::filesystem::path& path, const StoreOptions& options = {},
                                                bool make = false);
[[nodiscard]] std::optional<Place> place_beside(const Located& at, const StoreOptions& options = {});

/// To open what make_bag() and the like copy: read-only where it cannot be written, and so nothing can be locked.
[[nodiscard]] StoreOptions options_to_copy(const std::filesystem::path& path, StoreOptions options);

/// What goes into a bag beside the data.
struct BagInfo {
    std::vector<std::pair<std::string, std::string>> labels;  ///< of bag-info.txt, in their order
    std::string datacite;                                     ///< a record in JSON, as it was; empty: none
};
/// Each word is "LABEL=VALUE" or the path of a file: lines "LABEL: VALUE", as in bag-info.txt, or a DataCite record in
/// JSON, whose identifier, publisher and title become labels where there are none of these names. Throws
/// invalid_argument for anything else, for labels that make_bag() computes, and for records without what DataCite
/// demands, naming it.
[[nodiscard]] BagInfo parse_bag_info(std::span<const std::string> words);

struct BagOptions {
    BagInfo info = {};
    std::optional<Redundancy> parity = std::nullopt;  ///< of everything in the bag but the manifests of its tag files
    IoOptions io = {};
    StoreOptions store = {};  ///< of writing the bag
};
/// Makes a BagIt 1.0 bag (RFC 8493) of the node at `place`, in the new directory `bag`: a copy of the files as
/// data/NAME/..., manifests with SHA-256 and SHA-512 of them and of the tag files, bag-info.txt with Payload-Oxum,
/// Bagging-Date and the labels of `info`, and its record as metadata/datacite.json. It is built beside `bag` and
/// appears when it is complete; if another run makes the same bag, waits for it. Holds the same locks as seal(),
/// except those of a store that is opened read-only. Parity lies in its tag directory `tessera-seal/`. Throws
/// already_exists if `bag` exists; invalid_argument if it would lie in what it is of, or a batch of edits is pending in
/// a store that is opened read-only.
Sealed make_bag(const PlaceRef& place, std::string_view name, const std::filesystem::path& bag,
                const BagOptions& options = {});

struct OcflOptions {
    std::string message = {};
    std::string user = {};     ///< who adds the version
    std::string address = {};  ///< a URI of that user
    IoOptions io = {};
    StoreOptions store = {};  ///< of writing the object
};
struct OcflVersionAdded {
    std::string version;           ///< "v2"; the last one if nothing was written
    std::filesystem::path folder;  ///< of the object
    std::int64_t files = 0;        ///< of the version
    std::int64_t stored = 0;       ///< files whose content no earlier version has
    std::uint64_t bytes = 0;       ///< of the stored files
    bool written = false;          ///< false: nothing has changed since the last version
    std::int64_t outside = 0;      ///< chunk files outside their arrays, which are left out
};
/// Adds what lies at `place` as the next version of the object `id` (a URI) to the OCFL 1.1 storage root `root`. Makes
/// both where they are not there yet; a new root has the layout of extension 0003. Content that the object has is not
/// stored again. The object is built beside the root, with hard links to what it holds (copies where the file system
/// has none), and exchanged for the old one: whoever looks, and whatever is killed, finds the object as before or as
/// after. Holds the same locks as seal(), except those of a store that is opened read-only, and excludes others that
/// add to `root`. "ocfl:ROOT::ID@v2" opens a version. Throws not_found if nothing is at `place` or `root` is a folder
/// of other things, corrupt if the object is damaged in its inventory, and unsupported for a new object in a root of
/// another layout; and as make_bag().
OcflVersionAdded add_ocfl_version(const PlaceRef& place, const std::filesystem::path& root, const std::string& id,
                                  const OcflOptions& options = {});

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
/// For the seal at `place`; nullopt if it has no parity. Reads the parity files, not the data. Throws corrupt if none
/// of the parity can be read.
[[nodiscard]] std::optional<ParityPromise> parity_promise(const PlaceView& place, const IoOptions& io = {});

}  // namespace tessera
